"""What both servers' HTTP sides share: problems, roles, bodies of limited size, and the endpoints of every server."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Container
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, Generic, TypeVar

from prometheus_client import generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shuffledp.errors import ParameterError
from shuffledp.service.limits import Limits
from shuffledp.service.openapi import JSON, TEXT, Operation, Query, openapi_document, operation, operations_of
from shuffledp.service.origins import Origins
from shuffledp.service.problems import (
    BAD_REQUEST,
    BROKEN,
    MEDIA_TYPE,
    METHOD_NOT_ALLOWED,
    NOT_FOUND,
    TOO_LARGE,
    TOO_SLOW,
    WRONG_TYPE,
    RefusedError,
)
from shuffledp.service.server import TaskServer
from shuffledp.service.telemetry import LOG, Metrics
from shuffledp.service.tokens import ADMIN, HOP, Tokens

S = TypeVar("S", bound=TaskServer[Any, Any, Any])
Handler = Callable[[Request], Awaitable[Response]]

# Whoever sends slower than this holds one of few connections: so long for a beginning, and then so many bytes a second.
BODY_SECONDS = 60.0
_LEAST_BYTES_A_SECOND = 16 << 10

_LARGEST_TASK = 1 << 20
_ROLE = "shuffledp.role"
_BEFORE_THE_BODY = (401, 403, 408, 413, 415)


def problem(refused: RefusedError) -> Response:
    """A refusal as an answer."""
    headers = {} if refused.retry_after is None else {"Retry-After": str(refused.retry_after)}
    if refused.kind.status == 401:
        headers["WWW-Authenticate"] = refused.challenge or "Bearer"
    if refused.kind.status in _BEFORE_THE_BODY:
        # What is left of the body is not waited for.
        headers["Connection"] = "close"
    return JSONResponse(refused.document(), refused.kind.status, headers, media_type=MEDIA_TYPE)


def role_of(request: Request) -> str | None:
    """The role whose token a request was let in with; None where none was asked for."""
    role: str | None = request.scope.get(_ROLE)
    return role


async def read_body(request: Request, most: int) -> bytes:
    """The body, refused as soon as it is longer than that, or slower than anybody's network."""
    announced = request.headers.get("content-length")
    if announced is not None and (not announced.isdecimal() or len(announced) > 15 or int(announced) > most):
        raise _too_large(most)
    parts, length = [], 0
    end = asyncio.get_running_loop().time() + BODY_SECONDS
    try:
        async with asyncio.timeout_at(end) as deadline:
            async for part in request.stream():
                length += len(part)
                if length > most:
                    raise _too_large(most)
                parts.append(part)
                deadline.reschedule(end + length / _LEAST_BYTES_A_SECOND)
    except TimeoutError:
        words = f"{BODY_SECONDS:g} seconds and a second for every {_LEAST_BYTES_A_SECOND} bytes were not enough"
        raise RefusedError(TOO_SLOW, f"{words}: send less at a time.") from None
    return b"".join(parts)


def _too_large(most: int) -> RefusedError:
    return RefusedError(TOO_LARGE, f"the body must have at most {most} bytes: send less at a time.")


def text_of(body: bytes) -> str:
    """A body as text."""
    try:
        return body.decode("utf-8").strip()
    except UnicodeDecodeError:
        raise RefusedError(BAD_REQUEST, "a task is text in UTF-8: send its file.") from None


def whole_query(request: Request, query: Query) -> int:
    """A whole number from the query, or what it is where it is left out."""
    given = request.query_params.get(query.name)
    if given is None:
        return query.default
    if not (given.isascii() and given.isdecimal()) or len(given) > 15 or not query.least <= int(given) <= query.most:
        words = f"{query.name} must be a whole number in {query.least}..{query.most}: leave it out for {query.default}."
        raise RefusedError(BAD_REQUEST, words)
    return int(given)


def whole_in_path(request: Request, name: str) -> int:
    """A whole number from the path."""
    given = request.path_params[name]
    if not (given.isascii() and given.isdecimal()) or len(given) > 15:
        raise RefusedError(BAD_REQUEST, f"{name} must be a whole number: see /openapi.json.")
    return int(given)


async def told(handler: Handler, request: Request, route: str) -> Response:
    """What a handler answers to a request, or why it does not: every refusal is a problem document."""
    try:
        return await handler(request)
    except RefusedError as refused:
        return problem(refused)
    except ParameterError as bad:
        return problem(RefusedError(BAD_REQUEST, str(bad)))
    except ClientDisconnect:
        return problem(RefusedError(BAD_REQUEST, "the body broke off: send it whole."))
    except Exception:
        LOG.exception("failed", extra={"facts": {"route": route}})
        return problem(RefusedError(BROKEN, "this is a bug: the server's log says where."))


Admit = Callable[[Request, Operation, Tokens], Awaitable[str]]
"""Whose budget a request is spent from; refuses whoever may not make it."""


def _guarded(
    operation: Operation, handler: Handler, admit: Admit, tokens: Tokens, metrics: Metrics, limits: Limits
) -> Handler:
    """The handler behind its checks; every refusal is a problem document."""
    route = operation.route
    seconds = metrics.seconds.labels(route)
    counted = cache(lambda status: metrics.requests.labels(route, str(status)))

    async def answer(request: Request) -> Response:
        started = time.perf_counter()
        response = await told(_checked, request, route)
        seconds.observe(time.perf_counter() - started)
        counted(response.status_code).inc()
        return response

    async def _checked(request: Request) -> Response:
        if not operation.roles:
            return await _admitted(request)
        role = await admit(request, operation, tokens)
        with limits.spent(role):
            request.scope[_ROLE] = role
            return await _admitted(request)

    async def _admitted(request: Request) -> Response:
        if operation.takes is not None:
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != operation.takes:
                raise RefusedError(WRONG_TYPE, f"the body must be {operation.takes}: set Content-Type.")
        return await handler(request)

    return answer


async def _other(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 405:
        answer = problem(RefusedError(METHOD_NOT_ALLOWED, "see /openapi.json for what is."))
        # RFC 9110 asks for it.
        answer.headers["Allow"] = (getattr(error, "headers", None) or {}).get("Allow", "")
        return answer
    if status == 404:
        detail = "nothing here has that name: is it the right server? /openapi.json says what there is."
        return problem(RefusedError(NOT_FOUND, detail))
    return problem(RefusedError(BAD_REQUEST if status < 500 else BROKEN, "the request cannot be answered."))


class Endpoints(Generic[S]):
    """What every server answers; a server's own class of endpoints adds its operations.

    Args:
        server: starts and stops with the application.
    """

    def __init__(self, server: S) -> None:
        self.server = server
        document = openapi_document(server.metrics.role, operations_of(type(self)).values())
        self._openapi = json.dumps(document, separators=(",", ":")).encode()

    async def admit(self, request: Request, operation: Operation, tokens: Tokens) -> str:
        """The role whose token a request has; refused if the operation is not for that role."""
        return tokens.check(request.headers.get("authorization"), *operation.roles)

    @operation("POST /v1/tasks", {201: "It is served now.", 200: "It was served before."}, ADMIN, takes=JSON)
    async def create_task(self, request: Request) -> Response:
        """Serve a task."""
        body = await read_body(request, _LARGEST_TASK)
        task_id, new = await asyncio.to_thread(self.server.add_task, text_of(body))
        return JSONResponse({"task_id": task_id}, 201 if new else 200)

    @operation("GET /v1/hop", {200: "Its place."}, HOP)
    async def show_hop(self, request: Request) -> Response:
        """Where batches have come to: a shuffler, with the number of its hop if it is one of a cascade, or the end."""
        return JSONResponse({"role": self.server.metrics.role, "hop": self.server.hop})

    @operation("GET /healthz", {200: "It is."}, gives=(TEXT,))
    async def health(self, request: Request) -> Response:
        """Is the process alive?"""  # noqa: D400
        return PlainTextResponse("ok\n")

    @operation("GET /readyz", {200: "It does.", 503: "Not now."}, gives=(TEXT,))
    async def readiness(self, request: Request) -> Response:
        """Does it take requests?"""  # noqa: D400
        return PlainTextResponse("ready\n")

    @operation("GET /metrics", {200: "Metrics."}, gives=(TEXT,))
    async def metrics(self, request: Request) -> Response:
        """For Prometheus."""
        figures = generate_latest(self.server.metrics.registry)
        return Response(figures, media_type="text/plain; version=0.0.4; charset=utf-8")

    @operation("GET /openapi.json", {200: "OpenAPI 3.1."})
    async def openapi(self, request: Request) -> Response:
        """This document."""  # noqa: D404
        return Response(self._openapi, media_type=JSON)


def build_app(
    endpoints: Endpoints[Any], tokens: Tokens, limits: Limits | None = None, origins: Origins | None = None
) -> "DirectApp":
    """The application that answers what these endpoints declare, to whoever has a token for it, within its limits.

    Pages in a browser are let through if their origins are named.
    """
    server = endpoints.server

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        server.start()
        yield
        await asyncio.to_thread(server.stop)

    guarded = [
        (each, _guarded(each, getattr(endpoints, name), endpoints.admit, tokens, server.metrics, limits or Limits()))
        for name, each in operations_of(type(endpoints)).items()
    ]
    # One route a path, so that another method on it is 405 and not 404.
    routes = [Route(each.path, handler, methods=[each.method]) for each, handler in guarded]
    app = DirectApp(routes=routes, exception_handlers={HTTPException: _other, Exception: _other}, lifespan=lifespan)
    # A redirect would repeat the Host that the request names, and is in no document.
    app.router.redirect_slashes = False
    app.state.server = server
    app.endpoints = {}
    app.answered = (origins or Origins()).around(app.answer)
    for each, handler in guarded:
        names = each.path.split("/")
        app.endpoints.setdefault((each.method, len(names)), []).append((names, handler))
    return app


class DirectApp(Starlette):
    """Requests for an endpoint go straight to its handler, which lets no exception out; Starlette does the rest.

    Its layers of exception handlers and its router take longer than a report takes to be accepted.
    """

    endpoints: dict[tuple[str, int], list[tuple[list[str], Handler]]]
    """By method and number of the path's parts: the parts' names, and the handler."""
    answered: ASGIApp
    """As `answer`, for pages in browsers, too."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self.answered(scope, receive, send)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whichever page it is from."""
        found = self._find(scope) if scope["type"] == "http" and not scope.get("root_path") else None
        if found is None:
            await super().__call__(scope, receive, send)
            return
        handler, scope["path_params"] = found
        scope["app"] = self
        response = await handler(Request(scope, receive, send))
        await response(scope, receive, send)

    async def ask(self, scope: Scope, body: bytes, only: Container[str]) -> Response | None:
        """What an endpoint answers to a request that came by another way than a connection of its own.

        Args:
            scope: of the request.
            body: its content.
            only: the routes that may be asked for so, each a method and a path with parameters in braces.

        Returns:
            The answer; None if the request is for none of these.
        """
        found = self._find(scope, only)
        if found is None:
            return None

        async def receive() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        handler, scope["path_params"] = found
        scope["app"] = self
        return await handler(Request(scope, receive))

    def _find(self, scope: Scope, only: Container[str] | None = None) -> tuple[Handler, dict[str, str]] | None:
        parts = scope["path"].split("/")
        for names, handler in self.endpoints.get((scope["method"], len(parts)), ()):
            pairs = list(zip(names, parts, strict=True))
            if only is not None and f"{scope['method']} {'/'.join(names)}" not in only:
                continue
            if all(part if name.startswith("{") else name == part for name, part in pairs):
                return handler, {name[1:-1]: part for name, part in pairs if name.startswith("{")}
        return None
