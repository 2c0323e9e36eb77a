"""A person's side of issuance: a token is drawn, blinded and kept; the issuer signs it; it is unblinded and checked.

What was drawn is written down before the issuer is asked: it signs one blinded message a person, so whoever lost the
factor would have no token and could not ask for another.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import httpx

from shuffledp.errors import DataError, RandomnessError
from shuffledp.randomness import RandomBits
from shuffledp.service.admission.blind_rsa import SALT_BYTES, below, blind, unblind
from shuffledp.service.admission.private_tokens import (
    NONCE_BYTES,
    REQUEST_PATH,
    REQUEST_TYPE,
    RESPONSE_TYPE,
    SIGNATURE_BYTES,
    Gate,
    Token,
    pack_request,
    token_input,
)
from shuffledp.service.client.calls import Calls, refusal_from

_LENGTHS = {"nonce": NONCE_BYTES, "salt": SALT_BYTES, "factor": SIGNATURE_BYTES}


@dataclass(frozen=True, repr=False)
class PendingToken:
    """A token that is not signed yet; all three are secrets of the person's device.

    Attributes:
        nonce: what makes the token this one.
        salt: of the signature.
        factor: what hides the token from its issuer, in as many bytes as the issuer's modulus has.
    """

    nonce: bytes
    salt: bytes
    factor: bytes

    @classmethod
    def draw(cls, gate: Gate, *, bits: RandomBits) -> Self:
        """A new one.

        Raises:
            RandomnessError: the bits are seeded.
        """
        if not bits.is_secure:
            raise RandomnessError("A token is drawn from secure bits only: of seeded ones anybody knows whose it is.")
        nonce, salt = (bits.unsigned(length, 8).tobytes() for length in (NONCE_BYTES, SALT_BYTES))
        factor = below(gate.issuer.key.rsa.public_numbers().n, bits=bits)
        return cls(nonce, salt, factor.to_bytes(SIGNATURE_BYTES, "big"))

    def _signed(self, gate: Gate) -> bytes:
        return token_input(self.nonce, hashlib.sha256(gate.challenge).digest(), gate.issuer.key.id)

    def request(self, gate: Gate) -> bytes:
        """The TokenRequest to a task's issuer: the same bytes every time."""
        key = gate.issuer.key
        return pack_request(key, blind(key.rsa, self._signed(gate), self.salt, int.from_bytes(self.factor, "big")))

    def token(self, gate: Gate, answer: bytes) -> Token:
        """The token, from the issuer's TokenResponse.

        Raises:
            DataError: the task's issuer did not sign it.
        """
        signed = self._signed(gate)
        return Token(signed, unblind(gate.issuer.key.rsa, signed, answer, int.from_bytes(self.factor, "big")))

    def document(self) -> dict[str, str]:
        """As JSON, for a file that only its owner can read."""
        return {name: getattr(self, name).hex() for name in _LENGTHS}

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """What a JSON document says.

        Raises:
            DataError: it lacks something.
        """
        try:
            found = {name: bytes.fromhex(document[name]) for name in _LENGTHS}
            fits = isinstance(document, Mapping) and all(len(found[name]) == _LENGTHS[name] for name in _LENGTHS)
        except (LookupError, TypeError, ValueError):
            fits = False
        if not fits:
            way_out = "delete the file, and ask the issuer's operator for a new invitation"
            raise DataError("pending", "something else", "must be tokens that wait for their issuer", way_out)
        return cls(**found)


def fetch_token(calls: Calls, gate: Gate, pending: PendingToken) -> Token:
    """Have an issuer sign a token, asking again with the same bytes while it cannot be reached.

    Args:
        calls: the issuer, with the person's invitation as its token.
        gate: the task's.
        pending: what is to be signed, written down by the caller before.

    Raises:
        AnswerError: the issuer refuses.
        UnreachableError: it does not answer as long as patience lasts.
        DataError: it signs with another key than the task names.
    """
    backoff = calls.backoff()
    while True:
        try:
            response = calls.once("POST", REQUEST_PATH, pending.request(gate), REQUEST_TYPE)
        except httpx.HTTPError as broken:
            why = f"{calls.url} cannot be reached ({type(broken).__name__}: {broken})"
        else:
            kind = response.headers.get("content-type", "").partition(";")[0]
            if response.is_success and kind == RESPONSE_TYPE:
                return pending.token(gate, response.content)
            if not response.is_success:
                refused = refusal_from(response.status_code, _object(response))
                if response.status_code < 500 and response.status_code not in (408, 425, 429):
                    raise refused
                why = f"{calls.url} answers {refused}".rstrip(".")
            else:
                why = f"{calls.url} does not answer as an issuer does"
        backoff.wait(why)


def _object(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return None
