"""Encryption to the analyzer and to hops: HPKE (RFC 9180), X25519-HKDF-SHA256 and AES-128-GCM, one for every message.

The task, the hop, the level and the batch are bound into every ciphertext: one that is replayed into another
batch does not open. One encapsulation for several messages would link them, so each message has its own.
"""

import base64
import binascii
from dataclasses import dataclass
from typing import ClassVar, Self

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from shuffledp.errors import DataError
from shuffledp.service.wire import CIPHERTEXT_BYTES, OVERHEAD_BYTES, VERSION

_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM)
SUITE_NAME = "X25519-HKDF-SHA256/AES-128-GCM"


def binding(task_id: str, batch_id: str, hop: int = 0) -> bytes:
    """The HPKE info of a batch's messages: version, task, hop, level and batch; hop 0 is the analyzer."""
    return f"shuffledp v{VERSION} task {task_id} hop {hop} batch {batch_id}".encode()


@dataclass(frozen=True, repr=False)
class Key:
    """A key of 32 bytes, and its text in files: base64url.

    Attributes:
        raw: its 32 bytes.
    """

    name: ClassVar[str]
    raw: bytes

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The key that a file has."""
        try:
            raw = base64.b64decode(text, altchars=b"-_", validate=True)
        except (binascii.Error, ValueError, TypeError):
            raw = b""
        if len(raw) != 32:
            way_out = "make keys with `shuffledp keys`"
            raise DataError(cls.name, "something else", "must be 32 bytes in base64url", way_out)
        return cls(raw)

    @property
    def text(self) -> str:
        """The key in base64url."""
        return base64.urlsafe_b64encode(self.raw).decode("ascii")


@dataclass(frozen=True)
class PublicKey(Key):
    """What clients encrypt to.

    >>> key = PrivateKey.generate()
    >>> sealed = key.public.seal([bytes(29)], binding("t", "1.0.1"))
    >>> len(sealed[0]), key.open(sealed[0], binding("t", "1.0.1")) == bytes(29), key.open(sealed[0], b"other")
    (77, True, None)
    """

    name: ClassVar[str] = "public_key"

    def seal(self, messages: list[bytes], info: bytes) -> list[bytes]:
        """A ciphertext for each message, all of one length."""
        key = X25519PublicKey.from_public_bytes(self.raw)
        return [_SUITE.encrypt(message, key, info) for message in messages]


@dataclass(frozen=True, repr=False)
class PrivateKey(Key):
    """What the analyzer opens messages with; its text is a secret.

    >>> key = PrivateKey.generate()
    >>> PrivateKey.from_text(key.text).public == key.public
    True
    """

    name: ClassVar[str] = "private_key"

    def __repr__(self) -> str:
        return f"PrivateKey(of {self.public.text})"

    @classmethod
    def generate(cls) -> Self:
        """A new key."""
        return cls(X25519PrivateKey.generate().private_bytes_raw())

    @property
    def public(self) -> PublicKey:
        """The key to give away."""
        return PublicKey(X25519PrivateKey.from_private_bytes(self.raw).public_key().public_bytes_raw())

    def open(self, ciphertext: bytes, info: bytes) -> bytes | None:
        """The message, or None for what is no ciphertext to this key in this batch."""
        return open_all(self.raw, [ciphertext], info)[0]


@dataclass(frozen=True)
class VerifyingKey(Key):
    """What devices check models with (Ed25519).

    >>> key = SigningKey.generate()
    >>> signature = key.sign(b"a model")
    >>> key.public.has_signed(b"a model", signature), key.public.has_signed(b"another", signature)
    (True, False)
    """

    name: ClassVar[str] = "signing_key"

    def has_signed(self, message: bytes, signature: bytes) -> bool:
        """Whether this signature is of these bytes, by the key's owner."""
        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True


@dataclass(frozen=True, repr=False)
class SigningKey(Key):
    """What an analyzer signs models with; its text is a secret.

    >>> key = SigningKey.generate()
    >>> key.public.has_signed(b"model", key.sign(b"model")), key.public.has_signed(b"other", key.sign(b"model"))
    (True, False)
    """

    name: ClassVar[str] = "signing_private_key"

    def __repr__(self) -> str:
        return f"SigningKey(of {self.public.text})"

    @classmethod
    def generate(cls) -> Self:
        """A new key."""
        return cls(Ed25519PrivateKey.generate().private_bytes_raw())

    @property
    def public(self) -> VerifyingKey:
        """The key to give away."""
        return VerifyingKey(Ed25519PrivateKey.from_private_bytes(self.raw).public_key().public_bytes_raw())

    def sign(self, message: bytes) -> bytes:
        """The signature of these bytes."""
        return Ed25519PrivateKey.from_private_bytes(self.raw).sign(message)


def open_all(
    private_raw: bytes, ciphertexts: list[bytes], info: bytes, length: int = CIPHERTEXT_BYTES
) -> list[bytes | None]:
    """Each ciphertext's message, or None; takes raw bytes, so that worker processes can be handed the work.

    Args:
        private_raw: the key.
        ciphertexts: what was sealed for it.
        info: what they are bound to.
        length: how long each must be; what is inside is shorter by the overhead of one layer.
    """
    key = X25519PrivateKey.from_private_bytes(private_raw)
    opened: list[bytes | None] = []
    for ciphertext in ciphertexts:
        try:
            message = _SUITE.decrypt(ciphertext, key, info) if len(ciphertext) == length else b""
        except (InvalidTag, ValueError):
            message = b""
        opened.append(message if len(message) == length - OVERHEAD_BYTES else None)
    return opened
