"""Requests that were inside an encapsulation, answered by the same application as those that come directly.

Only some routes can be reached so, and of a request's fields only those pass that their handlers read: whatever else is
there (Host, X-Forwarded-For, a second Authorization) reaches nobody. Nothing is known of the connection.
"""

from collections.abc import Container

from starlette.responses import Response

from shuffledp.service.http import DirectApp
from shuffledp.service.oblivious.binary_http import InnerRequest, InnerResponse
from shuffledp.service.problems import BAD_REQUEST, NOT_FOUND, RefusedError

_PASSED = ("accept", "authorization", "content-type")
_GIVEN = ("content-type", "retry-after", "www-authenticate")


async def answer_inside(app: DirectApp, request: InnerRequest, only: Container[str]) -> InnerResponse:
    """What the application answers.

    Args:
        app: has the routes.
        request: what was inside.
        only: the routes that may be asked for so.

    Raises:
        RefusedError: it is for another route, or expects what cannot be given.
    """
    names = [name for name, _ in request.fields]
    if "expect" in names:
        raise RefusedError(BAD_REQUEST, "an Expect field cannot be met inside an encapsulation: leave it out.")
    passed = [(name, value) for name, value in request.fields if name in _PASSED]
    if len(dict(passed)) < len(passed):
        raise RefusedError(BAD_REQUEST, f"{', '.join(_PASSED)} may be given once each: send one.")
    path, _, query = request.path.partition("?")
    headers = [*passed, ("content-length", str(len(request.content)))]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "https",
        "path": path,
        "raw_path": path.encode("ascii"),
        "query_string": query.encode("ascii"),
        "root_path": "",
        "headers": [(name.encode("ascii"), value.encode("latin-1")) for name, value in headers],
        "client": None,
        "server": None,
    }
    answer = await app.ask(scope, request.content, only)
    if answer is None:
        raise RefusedError(NOT_FOUND, "a relay brings requests for seats, reports and the task: ask directly.")
    return response_inside(answer)


def response_inside(answer: Response) -> InnerResponse:
    """An answer as it is sealed: status, content, and the few fields that clients read."""
    fields = tuple((name, value) for name, value in answer.headers.items() if name in _GIVEN)
    return InnerResponse(status=answer.status_code, fields=fields, content=bytes(answer.body))
