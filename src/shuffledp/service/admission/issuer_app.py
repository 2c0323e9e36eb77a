"""The issuer over HTTP (RFC 9578): a directory with its key, and signatures for whoever is invited."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from shuffledp.service.admission.issuing import IssuerDesk
from shuffledp.service.admission.private_tokens import (
    REQUEST_BYTES,
    REQUEST_PATH,
    REQUEST_TYPE,
    RESPONSE_TYPE,
    TOKEN_TYPE,
)
from shuffledp.service.http import read_body, told
from shuffledp.service.origins import Origins
from shuffledp.service.problems import NOT_INVITED, WRONG_TYPE, RefusedError
from shuffledp.service.store.contract import Store

DIRECTORY_PATH = "/.well-known/private-token-issuer-directory"
_DIRECTORY_TYPE = "application/private-token-issuer-directory"


@dataclass
class IssuerServer:
    """An issuer on its store.

    Attributes:
        desk: its rules.
        store: which requests were signed; closed by `stop`.
    """

    desk: IssuerDesk
    store: Store[sqlite3.Connection]

    def issue(self, invitation: str, body: bytes) -> bytes:
        """The TokenResponse to a TokenRequest; that it was given is on disk before.

        Raises:
            RefusedError: nobody has this invitation, or its tokens are signed.
            DataError: it is no request to this issuer.
        """
        person = self.desk.person(invitation)
        return self.desk.sign(self.store.write(lambda db: self.desk.admit(db, person, body)))

    def stop(self) -> None:
        """Let go of the store."""
        self.store.close()

    @property
    def cautions(self) -> list[str]:
        """What whoever starts it should know."""
        return ["this issuer knows people by their invitations: it is for trials and small groups"]

    def leaves(self) -> str:
        """What it leaves on disk, in words."""
        return "the issuer leaves a list of the requests that it signed, which nobody can match to tokens"


def issuer_app(server: IssuerServer, origins: Origins | None = None) -> Starlette:
    """The application that serves this issuer, to pages of these origins as well."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(server.stop)

    async def issue(request: Request) -> Response:
        scheme, _, invitation = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not invitation.strip():
            raise RefusedError(NOT_INVITED, "send an Authorization header with your invitation as a bearer token.")
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != REQUEST_TYPE:
            raise RefusedError(WRONG_TYPE, f"the body must be {REQUEST_TYPE}: set Content-Type.")
        body = await read_body(request, REQUEST_BYTES)
        answer = await asyncio.to_thread(server.issue, invitation.strip(), body)
        return Response(answer, media_type=RESPONSE_TYPE)

    async def answered(request: Request) -> Response:
        return await told(issue, request, f"POST {REQUEST_PATH}")

    async def directory(request: Request) -> Response:
        keys = [{"token-type": TOKEN_TYPE, "token-key": server.desk.issuer.key.text}]
        document = {"issuer-request-uri": REQUEST_PATH, "token-keys": keys}
        return JSONResponse(document, media_type=_DIRECTORY_TYPE)

    async def health(request: Request) -> Response:
        return PlainTextResponse("ok\n")

    routes = [
        Route(REQUEST_PATH, answered, methods=["POST"]),
        Route(DIRECTORY_PATH, directory),
        Route("/healthz", health),
    ]
    app = _Issuing(routes=routes, lifespan=lifespan)
    app.state.server = server
    app.among(origins or Origins())
    return app


class _Issuing(Starlette):
    """An application that pages of some origins may call."""

    def among(self, origins: Origins) -> None:
        """Let pages of these origins in."""
        self._answer = origins.around(super().__call__)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._answer(scope, receive, send)
