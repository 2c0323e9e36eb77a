"""What a server answers, declared on its handlers: routes, roles, bodies, refusals; and the OpenAPI document of it."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from shuffledp.service.problems import MEDIA_TYPE
from shuffledp.service.schemas import BODIES, answer_schema, needed

BINARY, JSON, TEXT, HTML = "application/octet-stream", "application/json", "text/plain", "text/html"
ARROW = "application/vnd.apache.arrow.stream"
# Of Oblivious HTTP: a sealed request, a sealed answer, and a gateway's keys.
OHTTP_REQUEST, OHTTP_ANSWER, OHTTP_KEYS = "message/ohttp-req", "message/ohttp-res", "application/ohttp-keys"

# What a body of each type is.
_SCHEMAS = {
    JSON: {"type": "object"},
    TEXT: {"type": "string"},
    HTML: {"type": "string"},
    BINARY: {"type": "string", "format": "binary"},
    **{each: {"type": "string", "format": "binary"} for each in (ARROW, OHTTP_REQUEST, OHTTP_ANSWER, OHTTP_KEYS)},
}
_PROBLEM = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
ON_DISK = {201: "It is on disk.", 200: "It was on disk before."}

# The parameters of paths: what they are, and the pattern that they must have.
_PATH_PARAMETERS = {
    "task_id": ("SHA-256 of the task's document.", None),
    "campaign_id": ("SHA-256 of the campaign's document.", None),
    "piece": ("The piece's number, from 0.", "^[0-9]+$"),
    "lease": ("The lease's id, 16 random bytes in hexadecimal.", "^[0-9a-f]{32}$"),
    "number": ("The model's number, from 0.", "^[0-9]+$"),
    "report_id": ("16 random bytes in hexadecimal, drawn by the client; the same in every retry.", "^[0-9a-f]{32}$"),
    "batch_id": ("Level, first slot and end slot, as in 2.0.15.", r"^[0-9]+\.[0-9]+\.[0-9]+$"),
}

TOKEN, SEAT = "token", "seat"
_ISSUED = {
    "": "",
    TOKEN: " A task that names an issuer takes that issuer's tokens instead, one a seat (RFC 9577).",
    SEAT: " A task that names an issuer asks for none: nobody else knows the seat.",
}
_SECURITY: dict[str, list[dict[str, list[str]]]] = {TOKEN: [{"issued": []}], SEAT: [{}]}


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
        words: what it does.
        route: the HTTP method and the path, with parameters in braces.
        answers: what each status of success means.
        roles: whose tokens are taken; none are asked for if it is empty.
        takes: the media type of its body.
        refuses: the statuses of its own refusals, beside those that follow from the other attributes.
        query: what may be in the query.
        gives: the media types of its answer.
        issued: what a task that names an issuer takes in the place of a role's token: one of that issuer's (`TOKEN`),
            or nothing, as whoever knows a seat has redeemed one (`SEAT`); "" where it makes no difference.
    """

    name: str
    words: str
    route: str
    answers: dict[int, str]
    roles: tuple[str, ...]
    takes: str | None = None
    refuses: tuple[int, ...] = ()
    query: tuple[Query, ...] = ()
    gives: tuple[str, ...] = (JSON,)
    issued: str = ""

    @property
    def method(self) -> str:
        """The HTTP method."""
        return self.route.partition(" ")[0]

    @property
    def path(self) -> str:
        """The path, with parameters in braces."""
        return self.route.partition(" ")[2]

    @property
    def refusals(self) -> list[int]:
        """The statuses of all refusals, in their order: most follow from what is asked for, read and written."""
        due = {
            (400,): self.takes or self.query,
            (401, 403, 429): self.roles,
            (404,): "{task_id}" in self.path or "{campaign_id}" in self.path,
            (408, 413, 415): self.takes,
            (503,): not self.route.startswith("GET "),
        }
        return sorted({*self.refuses, *(status for statuses, is_due in due.items() if is_due for status in statuses)})

    def document(self, role: str) -> dict[str, Any]:
        """The operation in the OpenAPI document of a server; what it may refuse with is a problem document each."""
        refused = {"description": "Refused; nothing was changed.", "content": _PROBLEM}
        content = _content(self.gives, answer_schema(role, self.name))
        described: dict[str, Any] = {
            "operationId": self.name,
            "summary": self.words,
            "responses": {
                # What has not changed has no body.
                **{
                    str(status): {"description": words, **({} if status == 304 else {"content": content})}
                    for status, words in self.answers.items()
                },
                **{str(status): refused for status in self.refusals},
            },
        }
        parameters = [_path_parameter(name) for name in re.findall(r"{(\w+)}", self.path)]
        parameters += [query.document() for query in self.query]
        if parameters:
            described["parameters"] = parameters
        if self.roles:
            described["security"] = [{"bearer": []}, *_SECURITY.get(self.issued, [])]
            described["description"] = f"Needs a token for {' or '.join(self.roles)}.{_ISSUED[self.issued]}"
        if self.takes:
            content = _content((self.takes,), BODIES.get(self.name))
            described["requestBody"] = {"required": True, "content": content}
        return described


def _content(media: Iterable[str], of_json: dict[str, Any] | None) -> dict[str, Any]:
    return {each: {"schema": (of_json if each == JSON else None) or _SCHEMAS[each]} for each in media}


def _path_parameter(name: str) -> dict[str, Any]:
    words, pattern = _PATH_PARAMETERS[name]
    schema = {"type": "string"} if pattern is None else {"type": "string", "pattern": pattern}
    return {"name": name, "in": "path", "required": True, "description": words, "schema": schema}


Declared = TypeVar("Declared", bound=Callable[..., Any])


def operation(route: str, answers: dict[int, str], *roles: str, **more: Any) -> Callable[[Declared], Declared]:
    """Declare a method of a server's endpoints an operation: its name and docstring are the operation's, too.

    Args:
        route: the HTTP method and the path, with parameters in braces.
        answers: what each status of success means.
        roles: whose tokens are taken.
        more: other attributes of `Operation`.
    """

    def declare(handler: Declared) -> Declared:
        first, *others = handler.__name__.split("_")
        name = first + "".join(map(str.capitalize, others))
        vars(handler)["operation"] = Operation(name, handler.__doc__ or "", route, answers, roles, **more)
        return handler

    return declare


def operations_of(endpoints: type) -> dict[str, Operation]:
    """The operations of a class of endpoints, by the names of its methods; its own come before those it inherits."""
    found: dict[str, Operation] = {}
    for name, method in (member for kind in endpoints.__mro__ for member in vars(kind).items()):
        if hasattr(method, "operation"):
            found.setdefault(name, vars(method)["operation"])
    return found


def openapi_document(role: str, operations: Iterable[Operation]) -> dict[str, Any]:
    """The OpenAPI document of a server with these operations."""
    paths: dict[str, dict[str, Any]] = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.method.lower()] = each.document(role)
    return {
        "openapi": "3.1.0",
        "info": {"title": f"ShuffleDP {role}", "version": "1"},
        "paths": paths,
        "components": {
            "schemas": needed([paths]),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "issued": {"type": "http", "scheme": "PrivateToken"},
            },
        },
    }
