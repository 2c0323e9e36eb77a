"""Who may do what: a bearer token for each role, compared in constant time."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
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

    Attributes:
        secrets: each role's secret, by the role.
        older: secrets that were replaced and are still taken, so that whoever has one can be given the new one in time.

    >>> tokens = Tokens.generate(bits=RandomBits.seeded(1))
    >>> tokens.check("Bearer " + tokens.secrets["read"], READ)
    'read'
    >>> tokens.check("Bearer " + tokens.secrets["read"], HOP)
    Traceback (most recent call last):
        ...
    shuffledp.service.problems.RefusedError: this needs a token for hop: ask the operator for one.
    """

    secrets: Mapping[str, str]
    older: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Tokens(for {', '.join(self.secrets)})"

    @classmethod
    def generate(cls, *, bits: RandomBits) -> Self:
        """New secrets for all roles."""
        return cls({role: bits.unsigned(_BYTES, 8).tobytes().hex() for role in ROLES})

    def renewed(self, *, bits: RandomBits) -> Self:
        """New secrets for all roles; those of now become older ones, which are still taken."""
        older = {role: (secret, *self.older.get(role, ())) for role, secret in self.secrets.items()}
        return type(self)(type(self).generate(bits=bits).secrets, older)

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """The tokens that a JSON object holds: a secret a role, and under "older" lists of replaced ones."""
        again = "make keys again"
        given = dict(document) if isinstance(document, Mapping) else {}
        older = given.pop("older", {})
        if not given or not set(given) <= set(ROLES) or not isinstance(older, Mapping) or not set(older) <= set(ROLES):
            raise DataError("tokens", "something else", f"must be an object with {', '.join(ROLES)}", again)
        if not all(isinstance(some, list) for some in older.values()):
            raise DataError("tokens", "something else", "must have lists of older secrets", again)
        every = [*given.values(), *(secret for some in older.values() for secret in some)]
        if not all(isinstance(secret, str) and len(secret) >= _BYTES for secret in every):
            raise DataError("tokens", "a short secret", f"must have at least {_BYTES} characters each", again)
        if len(set(every)) < len(every):
            raise DataError("tokens", "one secret twice", "must differ for every role", again)
        return cls(given, {role: tuple(some) for role, some in older.items()})

    def check(self, authorization: str | None, *roles: str) -> str:
        """The role whose token an Authorization header holds; refused if it is none of these, or admin, who may all."""
        words = " or ".join(roles)
        scheme, _, given = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not given:
            raise RefusedError(NO_TOKEN, f"send an Authorization header with a bearer token for {words}.")
        # All are compared, whichever matches: the time says nothing.
        sent = given.strip().encode("utf-8", "surrogateescape")
        every = [*self.secrets.items(), *((role, secret) for role, some in self.older.items() for secret in some)]
        matches = {role for role, secret in every if hmac.compare_digest(sent, secret.encode())}
        if found := matches & {*roles, ADMIN}:
            return min(found)
        if matches:
            raise RefusedError(WRONG_ROLE, f"this needs a token for {words}: ask the operator for one.")
        raise RefusedError(NO_TOKEN, "the token is unknown here: check it against the operator's.")
