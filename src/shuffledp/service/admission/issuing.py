"""An issuer: signs one token a person, whoever's it is, without seeing it.

This one knows people by invitations, secrets that somebody has handed out, and is for trials and small groups. In
earnest the issuer is whoever knows the users already: it needs `blind_rsa.blind_sign` and a table like the one here.
"""

import hashlib
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from shuffledp.errors import DataError, ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.service.admission.blind_rsa import blind_sign, blinded_number
from shuffledp.service.admission.private_tokens import Issuer, unpack_request
from shuffledp.service.problems import NOT_INVITED, PASS_SIGNED, RefusedError
from shuffledp.service.store.sqlite.engine import SqliteStore

LABEL = "issuer 1"
LEAST_SECRET = 16
_SCHEMA = """
CREATE TABLE signed (
    person BLOB NOT NULL, request BLOB NOT NULL, PRIMARY KEY (person, request)
) WITHOUT ROWID;
"""


def new_invitations(count: int, *, bits: RandomBits) -> list[str]:
    """So many secrets, one for each person."""
    return [bits.unsigned(LEAST_SECRET, 8).tobytes().hex() for _ in range(count)]


def read_invitations(path: Path) -> list[str]:
    """The invitations of a file, one a line; empty lines and those that begin with # are none.

    Raises:
        ParameterError: it cannot be read.
        DataError: one is too short to be a secret, or is there twice.
    """
    try:
        lines = [line.strip() for line in path.read_text("utf-8").splitlines()]
    except OSError:
        raise ParameterError("invitations", str(path), "must be a file that can be read", "check the path") from None
    except UnicodeDecodeError:
        lines = [""]
    found = [line for line in lines if line and not line.startswith("#")]
    again = "make them with `shuffledp token invite`"
    if not found or any(len(line) < LEAST_SECRET or not line.isascii() or " " in line for line in found):
        problem = f"must have a secret of at least {LEAST_SECRET} letters a line"
        raise DataError("invitations", str(path), problem, again)
    if len(set(found)) < len(found):
        raise DataError("invitations", str(path), "must not have one invitation twice", again)
    return found


@dataclass(frozen=True)
class IssuerDesk:
    """An issuer's rules.

    Attributes:
        issuer: its name and public key.
        key: its private key.
        people: the digests of all invitations.
        each: how many tokens one person gets.
        bits: where the factor comes from that keeps a signature's time from telling anything.
    """

    issuer: Issuer
    key: RSAPrivateKey
    people: frozenset[bytes]
    bits: RandomBits
    each: int = 1

    def person(self, invitation: str) -> bytes:
        """Who has this invitation, as the store knows people.

        Raises:
            RefusedError: nobody (`invitation-unknown`).
        """
        digest = digest_of(invitation)
        if digest not in self.people:
            raise RefusedError(NOT_INVITED, "this invitation is unknown here: check it against the issuer's.")
        return digest

    def admit(self, db: sqlite3.Connection, person: bytes, body: bytes) -> bytes:
        """What is to be signed for a person: remembered in this transaction, once for each of the person's tokens.

        Raises:
            RefusedError: all of the person's tokens are signed, and this is another (`pass-signed`).
            DataError: it is no request to this issuer.
        """
        blinded = unpack_request(self.issuer.key, body)
        # What cannot be signed must not cost the person its token.
        blinded_number(self.issuer.key.rsa, blinded)
        row = (person, hashlib.sha256(blinded).digest())
        known = [each for (each,) in db.execute("SELECT request FROM signed WHERE person = ?", (person,))]
        if row[1] in known:
            return blinded
        if len(known) >= self.each:
            first = "use the token that was fetched then, or ask again with the request of then (the same -o)"
            words = f"another token was signed for this person: {first}."
            raise RefusedError(PASS_SIGNED, words)
        db.execute("INSERT INTO signed VALUES (?, ?)", row)
        return blinded

    def sign(self, blinded: bytes) -> bytes:
        """The TokenResponse to what was admitted: the same whenever it is asked for."""
        return blind_sign(self.key, blinded, bits=self.bits)


def digest_of(invitation: str) -> bytes:
    """What a store has of an invitation."""
    return hashlib.sha256(invitation.encode("utf-8", "surrogateescape")).digest()


def people_of(invitations: Iterable[str]) -> frozenset[bytes]:
    """The digests of invitations."""
    return frozenset(map(digest_of, invitations))


def open_issuer_store(path: Path) -> SqliteStore[sqlite3.Connection]:
    """Which requests were signed for whom: made if it is new, held by one process."""
    return SqliteStore(path, _SCHEMA, label=LABEL)
