"""Who may do what: a bearer token for each role, compared in constant time."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from shuffledp.errors import DataError
from shuffledp.randomness import RandomBits
from shuffledp.service.problems import NO_TOKEN, WRONG_ROLE, RefusedError

ENROL, HOP, READ, ADMIN, OPEN = "enrol", "hop", "read", "admin", "open"
# Folders from before there were openers elsewhere have none for open.
ROLES = (ENROL, HOP, READ, ADMIN, OPEN)
_BYTES = 32


@dataclass(frozen=True, repr=False)
class Tokens:
    """One secret a role: enrol for clients, hop between servers, read for estimates, admin for new tasks, open
    for whoever opens pieces of batches elsewhere.

    >>> tokens = Tokens.generate(bits=RandomBits.seeded(1))
    >>> tokens.check("Bearer " + tokens.secrets["read"], READ)
    'read'
    >>> tokens.check("Bearer " + tokens.secrets["read"], HOP)
    Traceback (most recent call last):
        ...
    shuffledp.service.problems.RefusedError: this needs a token for hop: ask the operator for one.
    """

    secrets: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Tokens(for {', '.join(self.secrets)})"

    @classmethod
    def generate(cls, *, bits: RandomBits) -> Self:
        """New secrets for all roles."""
        return cls({role: bits.unsigned(_BYTES, 8).tobytes().hex() for role in ROLES})

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """The tokens that a JSON object holds."""
        if not isinstance(document, Mapping) or not set(document) <= set(ROLES) or not document:
            raise DataError("tokens", "something else", f"must be an object with {', '.join(ROLES)}", "make keys again")
        if not all(isinstance(secret, str) and len(secret) >= _BYTES for secret in document.values()):
            raise DataError(
                "tokens", "a short secret", f"must have at least {_BYTES} characters each", "make keys again"
            )
        if len(set(document.values())) < len(document):
            raise DataError("tokens", "one secret twice", "must differ for every role", "make keys again")
        return cls(dict(document))

    def check(self, authorization: str | None, *roles: str) -> str:
        """The role whose token an Authorization header holds; refused if it is none of these, or admin, who may all."""
        words = " or ".join(roles)
        scheme, _, given = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not given:
            raise RefusedError(NO_TOKEN, f"send an Authorization header with a bearer token for {words}.")
        # All are compared, whichever matches: the time says nothing.
        sent = given.strip().encode("utf-8", "surrogateescape")
        matches = {role for role, secret in self.secrets.items() if hmac.compare_digest(sent, secret.encode())}
        if found := matches & {*roles, ADMIN}:
            return min(found)
        if matches:
            raise RefusedError(WRONG_ROLE, f"this needs a token for {words}: ask the operator for one.")
        raise RefusedError(NO_TOKEN, "the token is unknown here: check it against the operator's.")
