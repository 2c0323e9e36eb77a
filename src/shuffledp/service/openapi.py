"""The OpenAPI documents of both servers; tests hold them to the routes."""

from typing import Any

from shuffledp.service.problems import MEDIA_TYPE

ARROW = "application/vnd.apache.arrow.stream"
_BINARY, _JSON = "application/octet-stream", "application/json"

_TASK = {
    "name": "task_id",
    "in": "path",
    "required": True,
    "description": "SHA-256 of the task's document.",
    "schema": {"type": "string"},
}
_REPORT = {
    "name": "report_id",
    "in": "path",
    "required": True,
    "description": "16 random bytes in hexadecimal, drawn by the client; the same in every retry.",
    "schema": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
}
_BATCH = {
    "name": "batch_id",
    "in": "path",
    "required": True,
    "description": "Level, first slot and end slot, as in 2.0.15.",
    "schema": {"type": "string", "pattern": r"^[0-9]+\.[0-9]+\.[0-9]+$"},
}


def _query(name: str, words: str, least: int, most: int) -> dict[str, Any]:
    schema = {"type": "integer", "minimum": least, "maximum": most}
    return {"name": name, "in": "query", "required": False, "description": words, "schema": schema}


def _answer(words: str, media: str = _JSON) -> dict[str, Any]:
    schema = {"type": "object"} if media == _JSON else {"type": "string"}
    return {"description": words, "content": {media: {"schema": schema}}}


def _operation(
    name: str,
    words: str,
    answers: dict[int, dict[str, Any]],
    *,
    role: str | None = None,
    parameters: tuple[dict[str, Any], ...] = (),
    takes: str | None = None,
    refuses: tuple[int, ...] = (),
) -> dict[str, Any]:
    """One operation; what it may refuse with is a problem document each."""
    refused = {*refuses, *((401, 403) if role else ()), *((408, 413, 415) if takes else ())}
    responses = {str(status): answer for status, answer in answers.items()}
    responses |= {
        str(status): {
            "description": "Refused; nothing was changed.",
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in sorted(refused)
    }
    operation: dict[str, Any] = {"operationId": name, "summary": words, "responses": responses}
    if parameters:
        operation["parameters"] = list(parameters)
    if role:
        operation["security"] = [{"bearer": []}]
        operation["description"] = f"Needs a token for {role}."
    if takes:
        schema = {"type": "object"} if takes == _JSON else {"type": "string", "format": "binary"}
        operation["requestBody"] = {"required": True, "content": {takes: {"schema": schema}}}
    return operation


def _document(title: str, paths: dict[str, Any]) -> dict[str, Any]:
    common = {
        "/healthz": {"get": _operation("health", "Is the process alive?", {200: _answer("It is.", "text/plain")})},
        "/readyz": {
            "get": _operation(
                "readiness",
                "Does it take requests?",
                {200: _answer("It does.", "text/plain"), 503: _answer("Not now.", "text/plain")},
            )
        },
        "/metrics": {"get": _operation("metrics", "For Prometheus.", {200: _answer("Metrics.", "text/plain")})},
        "/openapi.json": {"get": _operation("openapi", "This document.", {200: _answer("OpenAPI 3.1.")})},
    }
    problem = {
        "type": "object",
        "required": ["type", "title", "status", "detail"],
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
        },
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": "1"},
        "paths": paths | common,
        "components": {
            "schemas": {"Problem": problem},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


_CREATED = {201: _answer("It is served now."), 200: _answer("It was served before.")}


def shuffler_openapi() -> dict[str, Any]:
    """What a shuffler answers."""
    create = _operation("createTask", "Serve a task.", _CREATED, role="admin", takes=_JSON, refuses=(400, 503))
    show = _operation(
        "showTask",
        "Its routing and how far it is.",
        {200: _answer("The task.")},
        role="enrol or read",
        parameters=(_TASK,),
        refuses=(404,),
    )
    seats = _operation(
        "takeSeats",
        "A place in one batch of every level, for a while.",
        {201: _answer("Seats.")},
        role="enrol",
        parameters=(_TASK, _query("count", "How many.", 1, 1000)),
        refuses=(400, 404, 409, 429, 503),
    )
    report = _operation(
        "putReport",
        "One report: its seat, 16 bytes, then its ciphertexts. Repeat it unchanged until it is answered.",
        {201: _answer("It is on disk."), 200: _answer("It was on disk before.")},
        role="enrol",
        parameters=(_TASK, _REPORT),
        takes=_BINARY,
        refuses=(400, 404, 410, 422, 429, 503),
    )
    reports = _operation(
        "postReports",
        "Up to 1000 reports: for each its id, its seat, its length in 4 bytes, its ciphertexts.",
        {200: _answer("A status for each.")},
        role="enrol",
        parameters=(_TASK,),
        takes=_BINARY,
        refuses=(400, 404, 503),
    )
    return _document(
        "ShuffleDP shuffler",
        {
            "/v1/tasks": {"post": create},
            "/v1/tasks/{task_id}": {"get": show},
            "/v1/tasks/{task_id}/seats": {"post": seats},
            "/v1/tasks/{task_id}/reports/{report_id}": {"put": report},
            "/v1/tasks/{task_id}/reports": {"post": reports},
        },
    )


def analyzer_openapi() -> dict[str, Any]:
    """What an analyzer answers."""
    create = _operation("createTask", "Serve a task.", _CREATED, role="admin", takes=_JSON, refuses=(400, 503))
    show = _operation(
        "showTask",
        "Its document and how far it is.",
        {200: _answer("The task.")},
        role="read",
        parameters=(_TASK,),
        refuses=(404,),
    )
    batch = _operation(
        "takeBatch",
        "A full batch in random order. Repeat it unchanged until it is answered.",
        {201: _answer("It is on disk."), 200: _answer("It was on disk before.")},
        role="hop",
        parameters=(_TASK, _BATCH),
        takes=_BINARY,
        refuses=(400, 404, 409, 422, 503),
    )
    estimate = _operation(
        "showEstimate",
        "The newest estimate with its bound.",
        {200: _answer("The estimate, null before the first release.")},
        role="read",
        parameters=(_TASK,),
        refuses=(404,),
    )
    history = {
        200: {
            "description": "Releases, oldest first.",
            "content": {
                _JSON: {"schema": {"type": "object"}},
                ARROW: {"schema": {"type": "string", "format": "binary"}},
            },
        }
    }
    releases = _operation(
        "showHistory",
        "Every estimate, oldest first; Arrow if it is accepted.",
        history,
        role="read",
        parameters=(
            _TASK,
            _query("after", "Only later times.", 0, 10**12),
            _query("limit", "At most so many.", 1, 100_000),
        ),
        refuses=(400, 404),
    )
    return _document(
        "ShuffleDP analyzer",
        {
            "/v1/tasks": {"post": create},
            "/v1/tasks/{task_id}": {"get": show},
            "/v1/tasks/{task_id}/batches/{batch_id}": {"post": batch},
            "/v1/tasks/{task_id}/estimate": {"get": estimate},
            "/v1/tasks/{task_id}/history": {"get": releases},
        },
    )
