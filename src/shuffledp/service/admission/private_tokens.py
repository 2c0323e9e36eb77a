"""Privacy Pass tokens of type 2, blind RSA with 2048 bits: what travels between client, issuer and shuffler.

    TokenChallenge   type, 2 bytes | issuer's name | redemption context, 32 bytes | origin's names   (RFC 9577, 2.1)
    Token            type, 2 bytes | nonce, 32 bytes | challenge's SHA-256 | key's id | signature    (RFC 9577, 2.2)
    TokenRequest     type, 2 bytes | last byte of the key's id | blinded message, 256 bytes          (RFC 9578, 6.1)
    TokenResponse    blinded signature, 256 bytes                                                    (RFC 9578, 6.2)

A variable field has its length before it, in 2 bytes, the redemption context's in 1. The key's id is the SHA-256 of its
SubjectPublicKeyInfo with the object identifier of RSASSA-PSS. The redemption context is the task's id and the origin's
names are empty, so that everybody who takes part in a task has the same challenge, wherever its shuffler stands.
"""

import base64
import binascii
import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key

from shuffledp.errors import DataError
from shuffledp.service.admission.blind_rsa import has_signed

TOKEN_TYPE = 2
REQUEST_TYPE, RESPONSE_TYPE = "application/private-token-request", "application/private-token-response"
REQUEST_PATH = "/token-request"
"""Where the issuer here takes requests; another's directory says where it does."""
KEY_BITS, EXPONENT = 2048, 65537
SIGNATURE_BYTES = KEY_BITS // 8
NONCE_BYTES = 32
_SIGNED = struct.Struct(f">H{NONCE_BYTES}s32s32s")
_REQUEST = struct.Struct(f">HB{SIGNATURE_BYTES}s")
TOKEN_BYTES = _SIGNED.size + SIGNATURE_BYTES
REQUEST_BYTES = _REQUEST.size
# Of an RSA key of 2048 bits with exponent 65537: object identifier RSASSA-PSS, SHA-384, MGF1 with SHA-384, salt 48.
_SPKI_BEGINS = bytes.fromhex(
    "30820152303d06092a864886f70d01010a3030a00d300b0609608648016503040202a11a301806092a864886f70d010108"
    "300b0609608648016503040202a2030201300382010f00"
)
_SPKI_BYTES = 342
_MOST_NAME_BYTES = 253
_AGAIN = "take it from the issuer's file issuer.pub"


def in_base64url(data: bytes) -> str:
    """As text, padded."""
    return base64.urlsafe_b64encode(data).decode("ascii")


def from_base64url(text: str) -> bytes:
    """What a text says; with padding or without, nothing where it is no base64url."""
    try:
        return base64.b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return b""


@dataclass(frozen=True)
class TokenKey:
    """What tokens are checked with: an issuer's public key, made for one task.

    Attributes:
        spki: its SubjectPublicKeyInfo, DER, with the object identifier of RSASSA-PSS.
    """

    spki: bytes

    @classmethod
    def of(cls, key: RSAPublicKey) -> Self:
        """The key in the encoding of RFC 9578."""
        if key.key_size != KEY_BITS or key.public_numbers().e != EXPONENT:
            problem = f"must be of RSA with {KEY_BITS} bits and exponent {EXPONENT}"
            raise DataError("issuer.token_key", f"a key of {key.key_size} bits", problem, "make another")
        return cls(_SPKI_BEGINS + key.public_bytes(Encoding.DER, PublicFormat.PKCS1))

    @classmethod
    def from_text(cls, text: Any) -> Self:
        """The key that a document names in base64url.

        Raises:
            DataError: it is no RSA key of 2048 bits in that one encoding: another would have another id.
        """
        spki = from_base64url(text) if isinstance(text, str) else b""
        fits = len(spki) == _SPKI_BYTES and spki.startswith(_SPKI_BEGINS) and in_base64url(spki) == text
        try:
            key = load_der_public_key(spki) if fits else None
            fits = isinstance(key, RSAPublicKey) and cls.of(key).spki == spki
        except (ValueError, DataError):
            fits = False
        if not fits:
            problem = f"must be an RSASSA-PSS key of {KEY_BITS} bits (SHA-384, salt 48) in base64url"
            raise DataError("issuer.token_key", "something else", problem, _AGAIN)
        return cls(spki)

    @property
    def text(self) -> str:
        """The key in base64url."""
        return in_base64url(self.spki)

    @cached_property
    def id(self) -> bytes:
        """The token key id of RFC 9578."""
        return hashlib.sha256(self.spki).digest()

    @cached_property
    def rsa(self) -> RSAPublicKey:
        """The key itself."""
        key = load_der_public_key(self.spki)
        assert isinstance(key, RSAPublicKey), "a token key is RSA"
        return key


@dataclass(frozen=True)
class Issuer:
    """Who says who may take part in a task: a name, and the key that its tokens are checked with.

    Attributes:
        name: the issuer's host name; it is in every challenge, and nobody is called by it.
        key: made for one task: a blind issuer cannot see which task a token is for.
    """

    name: str
    key: TokenKey

    def __post_init__(self) -> None:
        letters = self.name.isascii() and self.name.isprintable() and " " not in self.name and "," not in self.name
        if not letters or not 1 <= len(self.name) <= _MOST_NAME_BYTES:
            problem = f"must be a host name of 1 to {_MOST_NAME_BYTES} letters"
            raise DataError("issuer.name", self.name, problem, "for instance issuer.example")

    def document(self) -> dict[str, Any]:
        """The issuer as JSON."""
        return {"token_type": TOKEN_TYPE, "name": self.name, "token_key": self.key.text}

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """The issuer that a JSON document describes.

        Raises:
            DataError: it is of another type, or lacks something.
        """
        found = dict(document) if isinstance(document, Mapping) else {}
        if set(found) != {"token_type", "name", "token_key"} or not isinstance(found["name"], str):
            raise DataError("issuer", type(document).__name__, "must have token_type, name and token_key", _AGAIN)
        if found["token_type"] != TOKEN_TYPE or isinstance(found["token_type"], bool):
            problem = f"must be {TOKEN_TYPE}, blind RSA"
            raise DataError("issuer.token_type", found["token_type"], problem, "ask for an issuer of that type")
        return cls(found["name"], TokenKey.from_text(found["token_key"]))

    def challenge(self, task_id: str) -> bytes:
        """What every client of a task has its token made for (TokenChallenge).

        Args:
            task_id: of the task, or of the campaign: 64 hexadecimal digits.
        """
        return challenge(self.name, bytes.fromhex(task_id))


def challenge(issuer_name: str, context: bytes, origin_info: str = "") -> bytes:
    """A TokenChallenge.

    Args:
        issuer_name: the issuer's host name.
        context: the redemption context, 32 bytes or none.
        origin_info: names of origins, with commas; none for any.
    """
    name, origins = issuer_name.encode(), origin_info.encode()
    head = struct.pack(">HH", TOKEN_TYPE, len(name)) + name
    return head + bytes([len(context)]) + context + struct.pack(">H", len(origins)) + origins


def token_input(nonce: bytes, challenge_digest: bytes, key_id: bytes) -> bytes:
    """What an issuer signs, blindly (AuthenticatorInput)."""
    return _SIGNED.pack(TOKEN_TYPE, nonce, challenge_digest, key_id)


@dataclass(frozen=True, repr=False)
class Token:
    """A token as its client sends it.

    Attributes:
        signed: all of it but the signature.
        signature: the issuer's.
    """

    signed: bytes
    signature: bytes

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """A token of type 2.

        Raises:
            DataError: it is of another length or type.
        """
        if len(data) != TOKEN_BYTES or data[:2] != TOKEN_TYPE.to_bytes(2, "big"):
            problem = f"must be a token of type {TOKEN_TYPE}, {TOKEN_BYTES} bytes"
            raise DataError("token", f"{len(data)} bytes", problem, "send it as the issuer's client made it")
        return cls(data[: _SIGNED.size], data[_SIGNED.size :])

    @property
    def data(self) -> bytes:
        """The token as it is sent."""
        return self.signed + self.signature

    @property
    def name(self) -> str:
        """What a shuffler remembers of it: a digest of the nonce and of the task and key that it is for.

        Two tokens with one nonce are one: a nonce is 32 random bytes, and whoever repeats one pays twice for one seat.
        """
        return hashlib.sha256(self.signed).hexdigest()


@dataclass(frozen=True)
class Gate:
    """Who is let in to a task: whoever has a token of its issuer, for its challenge.

    Attributes:
        issuer: whose tokens.
        task_id: of the task, or of the campaign.
    """

    issuer: Issuer
    task_id: str

    @cached_property
    def challenge(self) -> bytes:
        """The task's TokenChallenge."""
        return self.issuer.challenge(self.task_id)

    @cached_property
    def _ends(self) -> bytes:
        return hashlib.sha256(self.challenge).digest() + self.issuer.key.id

    def admits(self, token: Token) -> bool:
        """Whether a token is of the issuer's key and for this task; how often it was used is another question."""
        is_ours = token.signed[2 + NONCE_BYTES :] == self._ends
        return is_ours and has_signed(self.issuer.key.rsa, token.signed, token.signature)


def pack_request(key: TokenKey, blinded: bytes) -> bytes:
    """A TokenRequest."""
    return _REQUEST.pack(TOKEN_TYPE, key.id[-1], blinded)


def unpack_request(key: TokenKey, data: bytes) -> bytes:
    """The blinded message of a TokenRequest to this key.

    Raises:
        DataError: it has another length, is of another type, or is for another key.
    """
    if len(data) != REQUEST_BYTES:
        raise DataError("body", f"{len(data)} bytes", f"must be {REQUEST_BYTES}", "send a TokenRequest of type 2")
    kind, truncated, blinded = _REQUEST.unpack(data)
    if kind != TOKEN_TYPE or truncated != key.id[-1]:
        problem = f"must be {TOKEN_TYPE}, with this issuer's key"
        raise DataError("token_type", kind, problem, "fetch the key from the issuer's directory")
    return bytes(blinded)
