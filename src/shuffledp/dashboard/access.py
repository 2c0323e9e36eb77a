"""Who may look: whoever has the token for read, kept in a cookie as a proof of it; on this machine itself everybody."""

import hashlib
import hmac
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.requests import Request
from starlette.responses import Response

from shuffledp.randomness import RandomBits
from shuffledp.service.addresses import is_loopback
from shuffledp.service.http import read_body
from shuffledp.service.problems import BAD_REQUEST, NO_TOKEN, WRONG_ROLE, RefusedError
from shuffledp.service.serving import Address
from shuffledp.service.tokens import ADMIN, READ, Tokens
from shuffledp.service.wire import new_id

SESSION, FORM = "shuffledp-session", "shuffledp-form"
"""Names of cookies: the proof that a token was shown, and the secret that a form must repeat."""
SESSION_SECONDS = 12 * 3600
_LARGEST_FORM = 4096
_CONTEXT = b"shuffledp dashboard session v1\n"
_FORM_TYPE = "application/x-www-form-urlencoded"


@dataclass(frozen=True)
class Access:
    """What a request must show.

    A session is the time at which it ends, and a code of it under the token for read: the token itself is in no
    cookie, and another token ends all sessions.

    Attributes:
        tokens: the analyzer's.
        is_open: whether everybody may look, because only this machine itself can; the Host must then be this machine's
            own name, or any page of the web could look through a visitor's browser.
        is_secure: whether browsers come by TLS, so that cookies must never go without.
        clock: the seconds since the epoch.
    """

    tokens: Tokens
    is_open: bool
    is_secure: bool = True
    clock: Callable[[], float] = time.time

    @classmethod
    def at(cls, tokens: Tokens, address: Address, *, always: bool = False) -> "Access":
        """The access to a server that listens at this address.

        Args:
            tokens: the analyzer's.
            address: where it listens. Behind a proxy, the machine's own address is everybody's.
            always: whether a token is asked for on this machine itself, too.
        """
        is_local = is_loopback(address.host) and not address.behind_proxy and address.uds is None
        return cls(tokens, is_open=is_local and not always, is_secure=not is_local or address.tls_cert is not None)

    def check(self, request: Request) -> None:
        """Refuse whoever may not look.

        Raises:
            RefusedError: no token was shown, or one for another role, or the Host is not this machine.
        """
        sent = request.headers.get("authorization")
        if sent is not None:
            self.tokens.check(sent, READ)
        elif self.is_open:
            if not is_loopback(_host_name(request)):
                raise RefusedError(WRONG_ROLE, "this page is for this machine only: open it by 127.0.0.1 or localhost.")
            # Another site's page may lead here, but it cannot let a visitor's browser ask for one plan after another.
            if _is_cross_site(request):
                raise RefusedError(WRONG_ROLE, "another site asks for this: open the page itself.")
        elif not self._is_session(request.cookies.get(SESSION, "")):
            raise RefusedError(NO_TOKEN, "log in with the token for read.")

    def is_logged_in(self, request: Request) -> bool:
        """Whether there is a session to end."""
        return self._is_session(request.cookies.get(SESSION, ""))

    # --- sessions ----------------------------------------------------------------------------

    def _code(self, ends: str) -> str:
        # Whoever can log in has one of these; a folder need not have a token for every role.
        secret = next((self.tokens.secrets[role] for role in (READ, ADMIN) if role in self.tokens.secrets), None)
        if secret is None:
            raise RefusedError(NO_TOKEN, "nobody can log in here: the folder of keys has no token for read.")
        return hmac.new(secret.encode(), _CONTEXT + ends.encode("utf-8", "replace"), hashlib.sha256).hexdigest()

    def _is_session(self, cookie: str) -> bool:
        ends, _, code = cookie.partition(".")
        if not code:
            return False
        is_ours = hmac.compare_digest(code.encode("utf-8", "surrogateescape"), self._code(ends).encode())
        return is_ours and int(ends) > self.clock()

    def begin(self, response: Response) -> None:
        """Let whoever gets this response look for some hours."""
        ends = str(int(self.clock()) + SESSION_SECONDS)
        self._set(response, SESSION, f"{ends}.{self._code(ends)}", SESSION_SECONDS)

    def end(self, response: Response) -> None:
        """Take the session away from whoever gets this response."""
        self._set(response, SESSION, "", 0)

    def _set(self, response: Response, name: str, value: str, seconds: int) -> None:
        response.set_cookie(
            name, value, max_age=seconds, path="/", secure=self.is_secure, httponly=True, samesite="strict"
        )

    # --- forms -------------------------------------------------------------------------------

    def form_secret(self, request: Request) -> str:
        """What a form of the next page must repeat: the browser's own, or a new one."""
        known = request.cookies.get(FORM, "")
        return known if len(known) == 32 and known.isalnum() else new_id(bits=RandomBits.secure())

    def keep_form_secret(self, response: Response, secret: str) -> None:
        """Let the browser keep what its forms must repeat."""
        self._set(response, FORM, secret, SESSION_SECONDS)

    async def form(self, request: Request) -> dict[str, str]:
        """A form that a page of ours has sent.

        Raises:
            RefusedError: another site's page has sent it, or it does not repeat the browser's secret.
        """
        if _is_foreign(request):
            raise RefusedError(WRONG_ROLE, "the form came from another site: fill in the one of this page.")
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM_TYPE:
            raise RefusedError(BAD_REQUEST, f"a form is {_FORM_TYPE}: fill in the one of this page.")
        body = await read_body(request, _LARGEST_FORM)
        found: dict[str, Any] = parse_qs(body.decode("utf-8", "replace"))
        fields = {name: values[0] for name, values in found.items()}
        known = request.cookies.get(FORM, "")
        if not known or not hmac.compare_digest(fields.get("form", "").encode(), known.encode()):
            raise RefusedError(WRONG_ROLE, "the form is not this browser's, or too old: load the page again.")
        return fields

    def log_in(self, token: str) -> None:
        """Refuse a token that is not the one for read, or for admin, who may all; compared in constant time."""
        self.tokens.check(f"Bearer {token.strip()}", READ)


def _is_foreign(request: Request) -> bool:
    """Whether another site's page has sent this: browsers say so, old ones by its origin, which a proxy may blur."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        return site not in ("same-origin", "none")
    return origin is not None and origin.partition("://")[2] != request.headers.get("host", "")


def _is_cross_site(request: Request) -> bool:
    """Whether a part of another site's page asks, and no person who followed a link."""
    headers = request.headers
    return headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") != "navigate"


def _host_name(request: Request) -> str:
    """The name that the request's Host names, without its port."""
    try:
        return urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    except ValueError:
        return ""
