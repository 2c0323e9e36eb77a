"""A gateway's public keys as clients get them (RFC 9458, section 3): the media type application/ohttp-keys."""

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shuffledp.errors import DataError, ParameterError
from shuffledp.service.crypto import PublicKey
from shuffledp.service.openapi import OHTTP_KEYS

X25519_HKDF_SHA256, HKDF_SHA256, AES_128_GCM = 0x0020, 0x0001, 0x0001
"""The one suite that is taken, by its numbers in HPKE: key encapsulation, key derivation, encryption."""
_MOST_BYTES = 1 << 16
_KEY_BYTES = 32
_AGAIN = "ask the shuffler's operator for the file again"


@dataclass(frozen=True, slots=True)
class KeyConfig:
    """One key of a gateway, and what it is called in requests.

    Attributes:
        key_id: one byte.
        public: what requests are sealed to.
        symmetric: pairs of numbers of HPKE, key derivation and encryption, that the gateway takes.

    >>> config = KeyConfig.of(PublicKey(bytes(range(32))))
    >>> decode_configs(encode_configs([config])) == (config,)
    True
    """

    key_id: int
    public: PublicKey
    symmetric: tuple[tuple[int, int], ...] = ((HKDF_SHA256, AES_128_GCM),)

    @classmethod
    def of(cls, public: PublicKey) -> "KeyConfig":
        """The configuration of a key of ours: its number follows from the key."""
        return cls(hashlib.sha256(public.raw).digest()[0], public)

    def encoded(self) -> bytes:
        """The configuration alone, without its length."""
        pairs = b"".join(struct.pack(">HH", *pair) for pair in self.symmetric)
        return struct.pack(">BH", self.key_id, X25519_HKDF_SHA256) + self.public.raw + _prefixed(pairs)

    @property
    def header(self) -> bytes:
        """What every request to this key begins with: the key's number and the suite's."""
        return struct.pack(">BHHH", self.key_id, X25519_HKDF_SHA256, HKDF_SHA256, AES_128_GCM)


def encode_configs(configs: Sequence[KeyConfig]) -> bytes:
    """Several, the preferred one first."""
    return b"".join(_prefixed(config.encoded()) for config in configs)


def _prefixed(part: bytes) -> bytes:
    return struct.pack(">H", len(part)) + part


def decode_configs(text: bytes) -> tuple[KeyConfig, ...]:
    """Those of a file that have a suite of ours, in their order.

    A file with one mistake is refused whole: clients that made something of it would differ in what.

    Raises:
        DataError: it cannot be read, or no key in it is for the suite that is taken.
    """
    found, place = [], 0
    if len(text) > _MOST_BYTES:
        raise _wrong(f"{len(text)} bytes")
    while place < len(text):
        config, place = _taken(text, place)
        # Another key encapsulation has keys of another length: what it says is not looked at.
        if len(config) < 3:
            raise _wrong("a cut configuration")
        key_id, kem = struct.unpack_from(">BH", config)
        if kem != X25519_HKDF_SHA256:
            continue
        pairs, end = _taken(config, 3 + _KEY_BYTES)
        if end != len(config) or not pairs or len(pairs) % 4:
            raise _wrong("a configuration of another length")
        symmetric = tuple(struct.iter_unpack(">HH", pairs))
        if (HKDF_SHA256, AES_128_GCM) in symmetric:
            found.append(KeyConfig(key_id, PublicKey(config[3 : 3 + _KEY_BYTES]), symmetric))
    if not found:
        raise DataError("gateway_keys", "none", "must have a key for X25519, HKDF-SHA256 and AES-128-GCM", _AGAIN)
    return tuple(found)


def _taken(text: bytes, place: int) -> tuple[bytes, int]:
    """What is announced by the two bytes at a place, and where it ends."""
    if len(text) < place + 2:
        raise _wrong("a cut length")
    end = place + 2 + int.from_bytes(text[place : place + 2], "big")
    if end > len(text):
        raise _wrong("a cut configuration")
    return text[place + 2 : end], end


def _wrong(what: str) -> DataError:
    return DataError("gateway_keys", what, f"must be of type {OHTTP_KEYS}, whole", _AGAIN)


def load_configs(path: Path) -> tuple[KeyConfig, ...]:
    """The gateway's keys from the file that everybody is given."""
    try:
        return decode_configs(path.read_bytes())
    except OSError:
        way_out = "name the shuffler's gateway.ohttp-keys"
        raise ParameterError("gateway_keys", str(path), "must be a file that can be read", way_out) from None
