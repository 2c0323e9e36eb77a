"""The HTTP authentication scheme PrivateToken (RFC 9577): the challenge of a 401, and the token that answers it."""

import re

from shuffledp.errors import DataError
from shuffledp.service.admission.private_tokens import Gate, Token, from_base64url, in_base64url
from shuffledp.service.problems import NO_PASS, RefusedError

SCHEME = "PrivateToken"
_TOKEN = re.compile(r'(?:^|[\s,])token\s*=\s*"?([A-Za-z0-9_\-]+=*)"?\s*(?:,|$)')


def asking(gate: Gate) -> str:
    """What WWW-Authenticate says: the task's challenge and the key that its token must be of."""
    challenge, key = in_base64url(gate.challenge), gate.issuer.key.text
    return f'{SCHEME} challenge="{challenge}", token-key="{key}"'


def showing(token: bytes) -> str:
    """What Authorization says: a token.

    >>> showing(b"token")
    'PrivateToken token="dG9rZW4="'
    """
    return f'{SCHEME} token="{in_base64url(token)}"'


def redeemable(authorization: str | None, gate: Gate) -> Token:
    """The token that an Authorization header holds, of the task's issuer and for the task.

    Raises:
        RefusedError: there is none, or it is another's (`pass-needed`), with the challenge for one that would do.
    """
    scheme, _, rest = (authorization or "").partition(" ")
    found = _TOKEN.search(rest) if scheme.lower() == SCHEME.lower() else None
    if found is None:
        words = "this task takes tokens of its issuer only, one a person: send Authorization: PrivateToken token=...;"
        raise _refused(gate, f"{words} `shuffledp token fetch` gets one.")
    try:
        token = Token.from_bytes(from_base64url(found[1]))
    except DataError as bad:
        raise _refused(gate, str(bad)) from None
    if not gate.admits(token):
        raise _refused(gate, "the token is of another issuer's key or for another task: fetch one for this task.")
    return token


def _refused(gate: Gate, words: str) -> RefusedError:
    return RefusedError(NO_PASS, words, challenge=asking(gate))
