"""Servers as processes: uvicorn on loopback, or on another address with TLS."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette

from shuffledp.errors import ParameterError
from shuffledp.service.addresses import is_loopback

LOOPBACK = "127.0.0.1"
_MOST_CONNECTIONS = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a server listens, and with which certificate."""

    host: str = LOOPBACK
    port: int
    tls_cert: Path | None = None
    tls_key: Path | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ParameterError("port", self.port, "must lie in 0..65535", "8001 is a common choice")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ParameterError("tls_cert", self.tls_cert, "and tls_key go together", "give both or none")
        if self.tls_cert is None and not is_loopback(self.host):
            raise ParameterError(
                "host", self.host, "must be this machine itself without TLS", "give --tls-cert and --tls-key"
            )

    @property
    def url(self) -> str:
        """How clients reach it."""
        return f"{'http' if self.tls_cert is None else 'https'}://{self.host}:{self.port}"


def uvicorn_server(app: Starlette, address: Address, **more: Any) -> uvicorn.Server:
    """A server that writes no addresses to any log."""
    config = uvicorn.Config(
        app,
        host=address.host,
        port=address.port,
        access_log=False,
        # Its own configuration would reset every other logger of the process; see `log_to_stderr`.
        log_config=None,
        server_header=False,
        ssl_certfile=address.tls_cert,
        ssl_keyfile=address.tls_key,
        # Nothing that a proxy says about where a request came from is looked at.
        proxy_headers=False,
        # A body of 64 MB from each of many connections would be all the memory there is.
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=10,
        **more,
    )
    return uvicorn.Server(config)
