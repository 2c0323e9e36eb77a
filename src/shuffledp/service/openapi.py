"""What both servers answer, as data: routes, roles, bodies and refusals, and the OpenAPI documents made of them."""

import re
from dataclasses import dataclass
from typing import Any

from shuffledp.service.problems import MEDIA_TYPE
from shuffledp.service.tokens import ADMIN, ENROL, HOP, READ
from shuffledp.service.wire import MOST_REPORTS_AN_UPLOAD

BINARY, JSON, TEXT = "application/octet-stream", "application/json", "text/plain"
ARROW = "application/vnd.apache.arrow.stream"

# The parameters of paths: what they are, and the pattern that they must have.
_PATH_PARAMETERS = {
    "task_id": ("SHA-256 of the task's document.", None),
    "report_id": ("16 random bytes in hexadecimal, drawn by the client; the same in every retry.", "^[0-9a-f]{32}$"),
    "batch_id": ("Level, first slot and end slot, as in 2.0.15.", r"^[0-9]+\.[0-9]+\.[0-9]+$"),
}


@dataclass(frozen=True, slots=True)
class Query:
    """A whole number in a request's query, which may be left out."""

    name: str
    words: str
    default: int
    least: int
    most: int

    def document(self) -> dict[str, Any]:
        """The parameter in OpenAPI."""
        schema = {"type": "integer", "minimum": self.least, "maximum": self.most}
        return {"name": self.name, "in": "query", "required": False, "description": self.words, "schema": schema}


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that a server does for whoever asks.

    Attributes:
        name: what clients that are generated call it.
        route: the HTTP method and the path, with parameters in braces.
        words: what it does.
        answers: what each status of success means.
        roles: whose tokens are taken; none are asked for if it is empty.
        takes: the media type of its body.
        refuses: the statuses of its refusals, beside those that tokens and bodies have.
        query: what may be in the query.
        gives: the media types of its answer.
    """

    name: str
    route: str
    words: str
    answers: dict[int, str]
    roles: tuple[str, ...] = ()
    takes: str | None = None
    refuses: tuple[int, ...] = ()
    query: tuple[Query, ...] = ()
    gives: tuple[str, ...] = (JSON,)

    @property
    def method(self) -> str:
        """The HTTP method."""
        return self.route.partition(" ")[0]

    @property
    def path(self) -> str:
        """The path, with parameters in braces."""
        return self.route.partition(" ")[2]

    def document(self) -> dict[str, Any]:
        """The operation in OpenAPI; what it may refuse with is a problem document each."""
        schemas = {media: {"schema": {"type": "object" if media == JSON else "string"}} for media in self.gives}
        if ARROW in schemas:
            schemas[ARROW]["schema"]["format"] = "binary"
        problem = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
        refused = {*self.refuses, *((401, 403) if self.roles else ()), *((408, 413, 415) if self.takes else ())}
        operation: dict[str, Any] = {
            "operationId": self.name,
            "summary": self.words,
            "responses": {
                **{str(status): {"description": words, "content": schemas} for status, words in self.answers.items()},
                **{
                    str(status): {"description": "Refused; nothing was changed.", "content": problem}
                    for status in sorted(refused)
                },
            },
        }
        parameters = [_path_parameter(name) for name in re.findall(r"{(\w+)}", self.path)]
        parameters += [query.document() for query in self.query]
        if parameters:
            operation["parameters"] = parameters
        if self.roles:
            operation["security"] = [{"bearer": []}]
            operation["description"] = f"Needs a token for {' or '.join(self.roles)}."
        if self.takes:
            schema = {"type": "object"} if self.takes == JSON else {"type": "string", "format": "binary"}
            operation["requestBody"] = {"required": True, "content": {self.takes: {"schema": schema}}}
        return operation


def _path_parameter(name: str) -> dict[str, Any]:
    words, pattern = _PATH_PARAMETERS[name]
    schema = {"type": "string"} if pattern is None else {"type": "string", "pattern": pattern}
    return {"name": name, "in": "path", "required": True, "description": words, "schema": schema}


_ON_DISK = {201: "It is on disk.", 200: "It was on disk before."}
_CREATE = Operation(
    "createTask",
    "POST /v1/tasks",
    "Serve a task.",
    {201: "It is served now.", 200: "It was served before."},
    (ADMIN,),
    takes=JSON,
    refuses=(400, 503),
)
COUNT = Query("count", "How many.", 1, 1, MOST_REPORTS_AN_UPLOAD)
AFTER = Query("after", "Only later times.", 0, 0, 10**12)
LIMIT = Query("limit", "At most so many.", 1000, 1, 100_000)

COMMON = (
    Operation("health", "GET /healthz", "Is the process alive?", {200: "It is."}, gives=(TEXT,)),
    Operation("readiness", "GET /readyz", "Does it take requests?", {200: "It does.", 503: "Not now."}, gives=(TEXT,)),
    Operation("metrics", "GET /metrics", "For Prometheus.", {200: "Metrics."}, gives=(TEXT,)),
    Operation("openapi", "GET /openapi.json", "This document.", {200: "OpenAPI 3.1."}),
)
SHUFFLER = (
    _CREATE,
    Operation(
        "showTask",
        "GET /v1/tasks/{task_id}",
        "Its routing and how far it is.",
        {200: "The task."},
        (ENROL, READ),
        refuses=(404,),
    ),
    Operation(
        "takeSeats",
        "POST /v1/tasks/{task_id}/seats",
        "A place in one batch of every level, for a while.",
        {201: "Seats."},
        (ENROL,),
        refuses=(400, 404, 409, 429, 503),
        query=(COUNT,),
    ),
    Operation(
        "putReport",
        "PUT /v1/tasks/{task_id}/reports/{report_id}",
        "One report: its seat, 16 bytes, then its ciphertexts. Repeat it unchanged until it is answered.",
        _ON_DISK,
        (ENROL,),
        BINARY,
        (400, 404, 410, 422, 429, 503),
    ),
    Operation(
        "postReports",
        "POST /v1/tasks/{task_id}/reports",
        "Up to 1000 reports: for each its id, its seat, its length in 4 bytes, its ciphertexts.",
        {200: "A status for each."},
        (ENROL,),
        BINARY,
        (400, 404, 503),
    ),
)
ANALYZER = (
    _CREATE,
    Operation(
        "showTask",
        "GET /v1/tasks/{task_id}",
        "Its document and how far it is.",
        {200: "The task."},
        (READ,),
        refuses=(404,),
    ),
    Operation(
        "takeBatch",
        "POST /v1/tasks/{task_id}/batches/{batch_id}",
        "A full batch in random order. Repeat it unchanged until it is answered.",
        _ON_DISK,
        (HOP,),
        BINARY,
        (400, 404, 409, 422, 503),
    ),
    Operation(
        "showEstimate",
        "GET /v1/tasks/{task_id}/estimate",
        "The newest estimate with its bound.",
        {200: "The estimate, null before the first release."},
        (READ,),
        refuses=(404,),
    ),
    Operation(
        "showHistory",
        "GET /v1/tasks/{task_id}/history",
        "Every estimate, oldest first; Arrow if it is accepted.",
        {200: "Releases, oldest first."},
        (READ,),
        refuses=(400, 404),
        query=(AFTER, LIMIT),
        gives=(JSON, ARROW),
    ),
)


def openapi_document(role: str, operations: tuple[Operation, ...]) -> dict[str, Any]:
    """The OpenAPI document of a server with these operations and the common ones."""
    words = ("type", "title", "status", "detail")
    problem = {
        "type": "object",
        "required": list(words),
        "properties": {name: {"type": "integer" if name == "status" else "string"} for name in words},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": f"ShuffleDP {role}", "version": "1"},
        "paths": {each.path: {each.method.lower(): each.document()} for each in (*operations, *COMMON)},
        "components": {
            "schemas": {"Problem": problem},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }
