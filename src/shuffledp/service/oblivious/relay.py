"""A small relay for trials (RFC 9458): posts sealed requests to one gateway and hands its answers back.

It sees addresses, times and lengths, and writes none of them down: it logs nothing and keeps nothing. It forwards the
media type and the content, and no other field either way. A deployment has a relay of somebody else: whoever runs both
relay and shuffler knows addresses again.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from shuffledp.errors import ParameterError
from shuffledp.service.addresses import refuse_plain_http
from shuffledp.service.http import problem, read_body
from shuffledp.service.oblivious.padding import LARGEST_CARRIED, REQUEST_OVERHEAD
from shuffledp.service.openapi import OHTTP_ANSWER, OHTTP_REQUEST
from shuffledp.service.origins import Origins
from shuffledp.service.problems import (
    BAD_REQUEST,
    GATEWAY_AWAY,
    GATEWAY_SLOW,
    MEDIA_TYPE,
    WRONG_TYPE,
    ProblemKind,
    RefusedError,
)

WELL_KNOWN = "/.well-known/ohttp-gateway"
ANSWER_SECONDS = 30.0
_LARGEST_ANSWER = 4 << 20
_GIVEN = (OHTTP_ANSWER, MEDIA_TYPE)
_CONNECTIONS = httpx.Limits(max_connections=256, max_keepalive_connections=64)


class Nothing:
    """What a relay leaves when it stops."""

    def leaves(self) -> str:
        """In words."""
        return "a relay keeps nothing"


def gateway_url(url: str) -> str:
    """Where a gateway is: its own address, or the usual place on a shuffler.

    Raises:
        ParameterError: it is no address, or not https on another machine.

    >>> gateway_url("https://shuffler.example:8443"), gateway_url("https://gateway.example/ohttp")
    ('https://shuffler.example:8443/.well-known/ohttp-gateway', 'https://gateway.example/ohttp')
    """
    try:
        parsed = httpx.URL(url.strip())
        fits = parsed.scheme in ("http", "https") and bool(parsed.host)
    except (httpx.InvalidURL, TypeError):
        fits = False
    if not fits or parsed.userinfo or parsed.query or parsed.fragment:
        way_out = "for instance https://shuffler.example:8443"
        raise ParameterError("gateway", url, "must be a gateway's or a shuffler's address", way_out)
    refuse_plain_http(str(parsed), "gateway")
    return str(parsed if parsed.path != "/" else parsed.copy_with(path=WELL_KNOWN))


def relay_app(
    gateway: str, *, origins: Origins | None = None, most: int = LARGEST_CARRIED, transport: Any = None
) -> Starlette:
    """The application of a relay to one gateway.

    Args:
        gateway: where it is (`gateway_url`).
        origins: pages that browsers may call the relay from.
        most: no request may be longer, in bytes.
        transport: what reaches the gateway; sockets if it is None.
    """
    relay = _Relay(gateway, most, transport or httpx.AsyncHTTPTransport(limits=_CONNECTIONS))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await relay.transport.aclose()

    app = Starlette(routes=[Route("/", relay.carry, methods=["POST"])], lifespan=lifespan)
    app.router.redirect_slashes = False
    app.state.server = Nothing()
    whole: Any = (origins or Origins()).around(app)
    if whole is not app:
        whole.state = app.state
    return whole  # type: ignore[no-any-return]


class _Relay:
    def __init__(self, gateway: str, most: int, transport: httpx.AsyncBaseTransport) -> None:
        self.gateway, self.most, self.transport = gateway, most, transport

    async def carry(self, request: Request) -> Response:
        """One request to the gateway, and its answer; sent once, as only the client may send it again."""
        try:
            if request.headers.get("content-type", "").strip().lower() != OHTTP_REQUEST:
                raise RefusedError(WRONG_TYPE, f"a relay carries {OHTTP_REQUEST} and nothing else: set Content-Type.")
            sealed = await read_body(request, self.most)
            if len(sealed) < REQUEST_OVERHEAD:
                raise RefusedError(BAD_REQUEST, f"a sealed request has at least {REQUEST_OVERHEAD} bytes.")
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._posted(sealed)
        except RefusedError as refused:
            return problem(refused)
        except ClientDisconnect:
            return problem(RefusedError(BAD_REQUEST, "the body broke off: send it whole."))
        except (TimeoutError, httpx.TimeoutException):
            return problem(_later(GATEWAY_SLOW, "the gateway did not answer in time"))
        except (httpx.HTTPError, OSError):
            return problem(_later(GATEWAY_AWAY, "the gateway cannot be reached"))

    async def _posted(self, sealed: bytes) -> Response:
        timeout = httpx.Timeout(ANSWER_SECONDS).as_dict()
        headers = {"Content-Type": OHTTP_REQUEST}
        asked = httpx.Request("POST", self.gateway, headers=headers, content=sealed, extensions={"timeout": timeout})
        answer = await self.transport.handle_async_request(asked)
        try:
            content = b""
            async for part in answer.aiter_raw():
                content += part
                if len(content) > _LARGEST_ANSWER:
                    raise _later(GATEWAY_AWAY, "the gateway answers with too much")
        finally:
            await answer.aclose()
        media = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media not in _GIVEN or (media == OHTTP_ANSWER) is not (answer.status_code == 200):
            raise _later(GATEWAY_AWAY, "what answers there is no gateway")
        later = {name: answer.headers[name] for name in ("retry-after",) if name in answer.headers}
        return Response(content, answer.status_code, media_type=media, headers={**later, "Cache-Control": "no-store"})


def _later(kind: ProblemKind, words: str) -> RefusedError:
    return RefusedError(kind, f"{words}: seal the request anew, and try again later.")
