"""Web pages that may call a server from a browser: those whose origins its operator names, and no others."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from shuffledp.errors import ParameterError
from shuffledp.service.addresses import is_loopback

# What clients send and read beside what every page may.
_SENT, _READ = ("Authorization", "Content-Type", "If-None-Match"), ("ETag", "Retry-After")
_METHODS = ("GET", "POST", "PUT")
# For so many seconds a browser need not ask again whether it may.
_REMEMBERED = 600


@dataclass(frozen=True)
class Origins:
    """The origins of pages that browsers let through (CORS); cookies are never asked for, and there is no "any".

    A browser asks before it sends a bearer token from a page of another origin. What is sent by anything else than a
    browser is not held back by this: tokens are.

    Attributes:
        named: scheme, host and port of each, as a browser writes them.

    >>> Origins.of(["https://page.example/", "http://localhost:8000"]).named
    ('https://page.example', 'http://localhost:8000')
    """

    named: tuple[str, ...] = ()

    @classmethod
    def of(cls, origins: Iterable[str] | None) -> Self:
        """The origins that somebody typed.

        Args:
            origins: each as in https://page.example, with a port if it has one; None for no page.

        Raises:
            ParameterError: one is no origin, all of them at once, or without TLS on another machine.
        """
        return cls(tuple(dict.fromkeys(_checked(origin) for origin in origins or ())))

    def around(self, app: ASGIApp) -> ASGIApp:
        """The application that also answers what browsers ask on behalf of these pages; as it is if there are none."""
        if not self.named:
            return app
        return CORSMiddleware(
            app,
            allow_origins=self.named,
            allow_methods=_METHODS,
            allow_headers=_SENT,
            expose_headers=_READ,
            allow_credentials=False,
            max_age=_REMEMBERED,
        )


def _checked(origin: str) -> str:
    """An origin as browsers write it."""
    try:
        parts = urlsplit(origin.strip().lower())
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    plain = host is not None and not (parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc)
    if host is None or not plain or parts.scheme not in ("http", "https") or "*" in origin:
        problem = "must be one page's origin, scheme and host"
        raise ParameterError("allow_origin", origin, problem, "for instance https://page.example")
    if parts.scheme == "http" and not is_loopback(host):
        problem = "must be https unless it is this machine"
        raise ParameterError("allow_origin", origin, problem, "serve the page with TLS")
    default = {"http": 80, "https": 443}[parts.scheme]
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + ("" if port in (None, default) else f":{port}")
