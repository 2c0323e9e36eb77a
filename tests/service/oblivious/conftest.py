"""A shuffler that is a gateway, and clients whose requests go through a relay that a test can be."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from shuffledp.randomness import RandomBits
from shuffledp.service.client import Client, Relay
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.oblivious.binary_http import InnerRequest, InnerResponse
from shuffledp.service.oblivious.encapsulation import GatewayKey, seal_request
from shuffledp.service.oblivious.gateway import Gateway, Once
from shuffledp.service.openapi import OHTTP_REQUEST
from shuffledp.service.shuffler.app import shuffler_app

GATEWAY_URL = "http://localhost/.well-known/ohttp-gateway"
SHUFFLER_URL = "https://shuffler.example"


@dataclass
class Hidden:
    """A service whose shuffler is a gateway.

    Attributes:
        service: both servers.
        keys: the gateway's, the current one first.
    """

    service: Any
    keys: tuple[GatewayKey, ...]

    def relay(self) -> Relay:
        """The gateway itself, as if a relay's address led there."""
        return Relay(GATEWAY_URL, (self.keys[0].config,))

    def wire(self) -> Any:
        """What a relay sees: every request, byte by byte, and every answer."""
        return self.service.wire("shuffler")

    def client(self, task: Any, wire: Any, **more: Any) -> Client:
        """A client of a task, over a wire."""
        token = {"token": self.service.tokens.secrets["enrol"]}
        given = {**token, "http": wire.client, "relay": self.relay(), "patience": 0.0, **more}
        return Client(task, SHUFFLER_URL, **given)

    def post(self, sealed: bytes, **more: Any) -> httpx.Response:
        """What the gateway answers to these bytes."""
        headers = {"Content-Type": OHTTP_REQUEST, **more}
        return self.service.at("shuffler").post("/.well-known/ohttp-gateway", content=sealed, headers=headers)

    def ask(self, request: InnerRequest | bytes) -> InnerResponse:
        """What is answered to a request inside, which need be none."""
        plain = request if isinstance(request, bytes) else request.encoded()
        sealed, exchange = seal_request(self.keys[0].config, plain)
        answer = self.post(sealed)
        assert answer.status_code == 200 and answer.headers["content-type"] == "message/ohttp-res", answer.text
        return InnerResponse.decoded(exchange.open(answer.content))


@pytest.fixture
def make_hidden(make_service: Callable[..., Any]) -> Callable[..., Hidden]:
    """Both servers, the shuffler a gateway with so many keys."""

    def make(keys: int = 1, once: Once | None = None, limits: Any = None, **more: Any) -> Hidden:
        service = make_service(**more)
        ring: dict[int, GatewayKey] = {}
        while len(ring) < keys:
            key = GatewayKey.of(PrivateKey.generate())
            ring.setdefault(key.config.key_id, key)
        gateway = Gateway(tuple(ring.values()), bits=RandomBits.secure(), once=once)
        service.apps["shuffler"] = shuffler_app(service.shuffler, service.tokens, limits, gateway=gateway)
        return Hidden(service, tuple(ring.values()))

    return make
