"""An issuer whose tokens are made at once: its key signs them unblinded, which nobody can see afterwards."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA384

from shuffledp.randomness import RandomBits
from shuffledp.service.admission.private_tokens import Gate, Issuer, Token, TokenKey, token_input

PSS = padding.PSS(padding.MGF1(SHA384()), 48)


@dataclass(frozen=True)
class Mint:
    """An issuer that knows whose token it signs."""

    private: rsa.RSAPrivateKey
    issuer: Issuer

    def token(self, gate: Gate, nonce: bytes | None = None) -> Token:
        """A token for a task."""
        drawn = RandomBits.secure().unsigned(32, 8).tobytes() if nonce is None else nonce
        signed = token_input(drawn, hashlib.sha256(gate.challenge).digest(), gate.issuer.key.id)
        return Token(signed, self.private.sign(signed, PSS, SHA384()))


@pytest.fixture(scope="session")
def new_mint() -> Callable[[], Mint]:
    """Makes issuers, each with a key of its own."""

    def make() -> Mint:
        private = rsa.generate_private_key(65537, 2048)
        return Mint(private, Issuer("issuer.example", TokenKey.of(private.public_key())))

    return make


@pytest.fixture(scope="session")
def mint(new_mint: Callable[[], Mint]) -> Mint:
    """One issuer for all tests that serve one task."""
    return new_mint()
