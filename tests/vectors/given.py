"""Bytes that are given instead of drawn, and HPKE with an ephemeral key that is given: for vectors only."""

import hashlib
import hmac
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from numpy.typing import NDArray

from shuffledp.randomness import RandomBits

_KEM, _SUITE = b"KEM\x00\x20", b"HPKE\x00\x20\x00\x01\x00\x01"


class GivenBits(RandomBits):
    """Bits that a vector names, in their order."""

    __slots__ = ("given", "used")

    def __init__(self, given: bytes) -> None:
        super().__init__(bytes(32))
        self.given, self.used = given, 0

    def fill(self, out: NDArray[Any]) -> None:
        """Write the next given bytes over an array."""
        view = out.reshape(-1).view(np.uint8)
        assert self.used + view.size <= len(self.given), "a vector needs more bytes"
        view[:] = np.frombuffer(self.given, np.uint8, view.size, self.used)
        self.used += view.size


def given_bytes(name: str, count: int) -> bytes:
    """Bytes for a vector: SHA-256 of its name and 0, 1, ..."""
    blocks = [hashlib.sha256(f"{name} {number}".encode()).digest() for number in range(-(-count // 32))]
    return b"".join(blocks)[:count]


def _expand(secret: bytes, info: bytes, length: int) -> bytes:
    return hmac.digest(secret, info + b"\x01", "sha256")[:length]


def _extract(suite: bytes, salt: bytes, label: bytes, secret: bytes) -> bytes:
    return hmac.digest(salt or bytes(32), b"HPKE-v1" + suite + label + secret, "sha256")


def _labelled(suite: bytes, secret: bytes, label: bytes, info: bytes, length: int) -> bytes:
    return _expand(secret, length.to_bytes(2, "big") + b"HPKE-v1" + suite + label + info, length)


def seal_with(message: bytes, public: bytes, info: bytes, ephemeral: bytes) -> bytes:
    """RFC 9180's base mode in one shot, with the ephemeral private key that is given: section 5 and 6.1 by hand."""
    own = X25519PrivateKey.from_private_bytes(ephemeral)
    sent = own.public_key().public_bytes_raw()
    shared = own.exchange(X25519PublicKey.from_public_bytes(public))
    extracted = _extract(_KEM, b"", b"eae_prk", shared)
    secret = _labelled(_KEM, extracted, b"shared_secret", sent + public, 32)
    context = b"\x00" + _extract(_SUITE, b"", b"psk_id_hash", b"") + _extract(_SUITE, b"", b"info_hash", info)
    prk = _extract(_SUITE, secret, b"secret", b"")
    key = _labelled(_SUITE, prk, b"key", context, 16)
    nonce = _labelled(_SUITE, prk, b"base_nonce", context, 12)
    return sent + AESGCM(key).encrypt(nonce, message, b"")
