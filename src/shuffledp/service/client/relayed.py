"""Requests through a relay (RFC 9458): sealed for the shuffler's gateway, all of one length, answered sealed.

It is a transport: whatever is sent over it is sealed, carried by the relay, and opened again, and the rules for what is
tried again stay those of `calls`. Tried again is the same request, sealed anew. What the relay or the gateway says in
the clear decides nothing but how long to wait and when to give up: a relay cannot acknowledge a report, nor refuse one
so that it would be randomized again.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from shuffledp.errors import DataError, ParameterError
from shuffledp.service.client.calls import TIMEOUT, check_url, is_passing
from shuffledp.service.oblivious.binary_http import InnerRequest, InnerResponse
from shuffledp.service.oblivious.encapsulation import check_installed, seal_request
from shuffledp.service.oblivious.key_config import KeyConfig, load_configs
from shuffledp.service.oblivious.padding import HEAD_BYTES
from shuffledp.service.openapi import OHTTP_ANSWER, OHTTP_REQUEST
from shuffledp.service.problems import GATEWAY_KEY, MEDIA_TYPE, NOT_SEALED

_FIELDS = ("accept", "authorization", "content-type")
_MOST_ANSWERED = 4 << 20
# Whatever the status was: the relay is asked again later.
_LATER = 503


@dataclass(frozen=True, slots=True)
class Relay:
    """A relay, and the keys of the gateway behind it.

    Attributes:
        url: where sealed requests are posted; https unless it is this machine.
        keys: the gateway's, from the file that everybody is given; the first is used.
    """

    url: str
    keys: tuple[KeyConfig, ...]

    def __post_init__(self) -> None:
        check_installed("relay", self.url)
        object.__setattr__(self, "url", check_url(self.url, "relay"))
        if not self.keys:
            raise ParameterError("gateway_keys", "none", "must be given with a relay", "pass those of the file")

    @classmethod
    def of(cls, url: str, gateway_keys: Path) -> "Relay":
        """A relay with the gateway's keys from their file.

        Args:
            url: the relay's address.
            gateway_keys: the shuffler's `gateway.ohttp-keys`, as everybody is given it: never fetched through the
                relay, and never for one person alone.

        Raises:
            ParameterError: no address, no file of keys, or the extra is not installed.
        """
        return cls(url, load_configs(gateway_keys))


class RelayTransport(httpx.BaseTransport):
    """Seals requests, has a relay carry them, and opens the answers.

    Args:
        relay: who carries them.
        length: how long every request is before it is sealed.
        http: what reaches the relay; one of its own, which is closed with it, if it is None.
    """

    def __init__(self, relay: Relay, length: int, http: httpx.Client | None = None) -> None:
        self._relay, self._length = relay, length
        self._owns_http = http is None
        self._http = httpx.Client(timeout=TIMEOUT) if http is None else http

    def close(self) -> None:
        """Let go of the connection to the relay, if it is its own."""
        if self._owns_http:
            self._http.close()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """The answer to a request, as if it had gone to the shuffler directly.

        Raises:
            httpx.HTTPError: the relay cannot be reached, or its answer is not sealed to this request.
        """
        sealed, exchange = seal_request(self._relay.keys[0], self._encoded(request))
        status, headers, content = self._carried(sealed)
        if status == 200 and headers.get("content-type", "").partition(";")[0].strip() == OHTTP_ANSWER:
            try:
                answer = InnerResponse.decoded(exchange.open(content))
            except DataError:
                words = f"{self._relay.url} gives an answer that is not sealed to this request"
                raise httpx.RemoteProtocolError(words, request=request) from None
            return httpx.Response(answer.status, headers=list(answer.fields), content=answer.content, request=request)
        if status < 400:
            words = f"{self._relay.url} answers {status}, which no relay does"
            raise httpx.RemoteProtocolError(words, request=request)
        return self._in_the_clear(status, headers, content, request)

    def _encoded(self, request: httpx.Request) -> bytes:
        fields = tuple((name, request.headers[name]) for name in _FIELDS if name in request.headers)
        inner = InnerRequest(
            method=request.method,
            scheme=request.url.scheme,
            authority=request.url.netloc.decode("ascii"),
            path=request.url.raw_path.decode("ascii"),
            fields=fields,
            content=request.read(),
        )
        try:
            return inner.encoded(self._length)
        except DataError:
            problem = f"and the shuffler's address must fit into {HEAD_BYTES} bytes: requests of a task have one length"
            raise ParameterError("token", "a longer one", problem, "make tokens with `shuffledp keys`") from None

    def _carried(self, sealed: bytes) -> tuple[int, httpx.Headers, bytes]:
        """What the relay answers; it is sent nothing but the media type."""
        posted = httpx.Request(
            "POST",
            self._relay.url,
            headers={"Content-Type": OHTTP_REQUEST},
            content=sealed,
            extensions={"timeout": TIMEOUT.as_dict()},
        )
        # Whatever a relay set would link one request to another.
        self._http.cookies.clear()
        answer = self._http.send(posted, stream=True, follow_redirects=False)
        try:
            if answer.headers.get("content-encoding", "identity") != "identity":
                # What is packed may be a million times as long, and nobody has asked for that.
                raise httpx.RemoteProtocolError(f"{self._relay.url} packs what it answers", request=posted)
            content = b""
            for part in answer.iter_bytes():
                content += part
                if len(content) > _MOST_ANSWERED:
                    words = f"{self._relay.url} answers with more than {_MOST_ANSWERED} bytes"
                    raise httpx.RemoteProtocolError(words, request=posted)
        finally:
            answer.close()
        return answer.status_code, answer.headers, content

    def _in_the_clear(
        self, status: int, headers: httpx.Headers, content: bytes, request: httpx.Request
    ) -> httpx.Response:
        """A refusal by the relay, or by a gateway that could not open the request, in words of our own."""
        passed = {"Retry-After": headers["retry-after"]} if "retry-after" in headers else {}
        # Only whether it is about the key is read: the rest is anybody's word.
        of_key = status == NOT_SEALED.status or (GATEWAY_KEY.uri or "").encode() in content
        if of_key:
            kind = GATEWAY_KEY.name
            detail = "the gateway has no such key: get its current keys, which come with the application"
        else:
            kind, detail = "relay", _unsealed(self._relay.url, status)
        problem: dict[str, Any] = {"type": f"urn:shuffledp:problem:{kind}", "status": status, "detail": detail}
        given = _LATER if is_passing(status) else status
        return httpx.Response(given, headers={**passed, "Content-Type": MEDIA_TYPE}, json=problem, request=request)


def _unsealed(relay: str, status: int) -> str:
    """Why no gateway's answer came back, as far as a status says it, and what to look at."""
    if is_passing(status):
        return f"the relay answers {status}, so that it, or the gateway behind it, may be away"
    look = "check that it is a relay, and that its gateway has keys (`shuffledp keys gateway`) and was started since"
    return f"{relay} answers {status} in place of a gateway: {look}"
