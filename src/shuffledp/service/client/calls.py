"""Requests to one server: a token, patience with what passes, and errors that say what the server said.

Tried again are broken connections, 408, 429, 5xx and answers that are not the server's (a captive portal's page
acknowledges nothing), with capped exponential backoff and full jitter, no sooner than Retry-After. Redirects are
not followed: they would carry the token elsewhere.
"""

import email.utils
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import httpx

from shuffledp.errors import ParameterError, ShuffleDPError
from shuffledp.randomness import RandomBits
from shuffledp.service.addresses import refuse_plain_http

T = TypeVar("T")

TIMEOUT = httpx.Timeout(30.0, connect=10.0)
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 20.0

_PASSES = {408, 425, 429, 500, 502, 503, 504}
_PREFIX = "urn:shuffledp:problem:"


class UnreachableError(ShuffleDPError):
    """Nothing useful was answered for as long as patience lasted."""


class AnswerError(ShuffleDPError):
    """The server refused a request for good: its status, the kind of problem and its sentence.

    Attributes:
        status: the number of the HTTP answer.
        kind: which problem it is, as in the reference of the wire.
        detail: its sentence.

    >>> print(AnswerError(409, "batch-full", "The task has all its reports."))
    The task has all its reports (409 batch-full).
    """

    def __init__(self, status: int, kind: str, detail: str) -> None:
        self.status = status
        self.kind = kind
        self.detail = detail
        super().__init__(f"{detail.rstrip('.')} ({status} {kind}).")


class NotTheServersError(Exception):
    """A 2xx that the server cannot have sent."""


def check_url(url: str, parameter: str, *, insist_on_tls: bool = True) -> str:
    """A server's address without a slash at its end, or an error that names the parameter."""
    try:
        parsed = httpx.URL(url.strip())
        fits = parsed.scheme in ("http", "https") and bool(parsed.host) and not parsed.query and not parsed.fragment
    except (httpx.InvalidURL, TypeError, AttributeError):
        fits = False
    if not fits or parsed.userinfo:
        raise ParameterError(parameter, url, "must be an address", "for instance https://shuffler.example:8443")
    if insist_on_tls:
        refuse_plain_http(str(parsed), parameter)
    return str(parsed).rstrip("/")


@dataclass(repr=False)
class Calls:
    """One server, as one role sees it."""

    url: str
    token: str | None
    http: httpx.Client
    bits: RandomBits
    patience: float = 60.0
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    relay: str | None = None

    def __post_init__(self) -> None:
        if self.token is not None and (not self.token.isascii() or not self.token.isprintable() or " " in self.token):
            raise ParameterError(
                "token", "something else", "must be one word of ASCII", "pass the token file's content"
            )

    @property
    def whom(self) -> str:
        """The server in words: its address, and the relay's where one carries the requests."""
        return self.url if self.relay is None else f"{self.url} (through the relay {self.relay})"

    def backoff(self) -> "Backoff":
        """A new patience."""
        return Backoff(self, self.clock())

    def once(
        self,
        method: str,
        path: str,
        content: bytes | None = None,
        media: str | None = None,
        tag: str | None = None,
        showing: str | None = None,
    ) -> httpx.Response:
        """One request, one answer, whatever it is; with a tag, 304 where what it tags has not changed.

        `showing` is what Authorization says in the place of the token.
        """
        headers = {"Accept": "application/json"}
        if showing is not None or self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}" if showing is None else showing
        if media is not None:
            headers["Content-Type"] = media
        if tag is not None:
            headers["If-None-Match"] = tag
        # Whatever a server or a proxy set would link one request to another.
        self.http.cookies.clear()
        return self.http.request(method, self.url + path, content=content, headers=headers, follow_redirects=False)

    def ask(
        self,
        method: str,
        path: str,
        read: Callable[[int, Mapping[str, Any]], T],
        *,
        content: bytes | None = None,
        media: str | None = None,
        at_once: tuple[int, ...] = (),
        showing: str | None = None,
    ) -> tuple[T, int]:
        """What `read` makes of the 2xx answer, and the number of tries; AnswerError if refused for good.

        So is what is refused with a status of `at_once`: asking the same again is of no use.
        """
        backoff = self.backoff()
        while True:
            retry_after = None
            try:
                response = self.once(method, path, content, media, showing=showing)
                document = _object(response)
                if response.is_success:
                    if document is None:
                        raise NotTheServersError("no JSON object")
                    return read(response.status_code, document), backoff.tries + 1
                refused = refusal_from(response.status_code, document)
                if not is_passing(refused.status) or refused.status in at_once:
                    raise refused
                why = f"{self.whom} answers: {refused}".rstrip(".")
                retry_after = _retry_after(response)
            except httpx.HTTPError as broken:
                why = f"{self.whom} cannot be reached ({type(broken).__name__}: {broken})"
            except NotTheServersError as strange:
                why = f"{self.whom} does not answer as a server of shuffledp does ({strange})"
            backoff.wait(why, retry_after)

    def json(self, path: str) -> dict[str, Any]:
        """The object at this path."""
        return self.ask("GET", path, lambda _, document: dict(document))[0]


@dataclass
class Backoff:
    """Pauses between tries of calls, until their patience ends."""

    calls: Calls
    started: float
    tries: int = 0

    def wait(self, why: str, retry_after: float | None = None) -> None:
        """Pause, or give up and say why."""
        ceiling = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(self.tries, 16))
        # Full jitter: clients that failed together do not come back together.
        pause = max(ceiling * float(self.calls.bits.words(1)[0]) / 2.0**64, retry_after or 0.0)
        self.tries += 1
        patience = self.calls.patience
        if self.calls.clock() + pause - self.started > patience:
            raise UnreachableError(f"{why}; tried {self.tries} times in {patience:g} s: try again later.")
        self.calls.sleep(pause)


def _object(response: httpx.Response) -> Mapping[str, Any] | None:
    """The JSON object that was answered, or None for anything else."""
    try:
        document = response.json()
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def refusal_from(status: int, document: Any) -> AnswerError:
    """A problem document as an error, or the little that is known without one."""
    problem = document if isinstance(document, dict) else {}
    kind, detail = problem.get("type"), problem.get("detail")
    return AnswerError(
        status,
        kind.removeprefix(_PREFIX) if isinstance(kind, str) and kind.startswith(_PREFIX) else "unknown",
        detail if isinstance(detail, str) and detail else "the server gives no reason",
    )


def is_passing(status: int) -> bool:
    """Whether the same request may be answered otherwise later."""
    return status in _PASSES


def _retry_after(response: httpx.Response) -> float | None:
    text = response.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdecimal():
        return float(text)
    try:
        when = email.utils.parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())
