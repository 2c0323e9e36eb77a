"""Sealing a request for a gateway, and the answer for whoever asked (RFC 9458, section 4).

HPKE in base mode over X25519, HKDF-SHA256 and AES-128-GCM, a new context for every request. It is `pyhpke`'s, as the
answer's key is a secret that the request's context exports, which `cryptography` does not offer. Whoever carries a
request can neither read nor change it, nor make an answer to it.
"""

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from shuffledp.errors import DataError, ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.oblivious.key_config import KeyConfig
from shuffledp.service.oblivious.padding import ENC_BYTES, HEADER_BYTES, KEY_BYTES, NONCE_BYTES, SECRET_BYTES

if TYPE_CHECKING:
    from pyhpke import CipherSuite, ContextInterface, KEMKeyPair

_REQUEST_LABEL, _RESPONSE_LABEL = b"message/bhttp request\0", b"message/bhttp response"


def check_installed(parameter: str, value: object) -> None:
    """Refuse what needs Oblivious HTTP where its extra is not installed.

    Raises:
        ParameterError: `pyhpke` is missing.
    """
    try:
        import pyhpke  # noqa: F401
    except ImportError:
        way_out = "install it with: pip install 'shuffledp[ohttp]'"
        raise ParameterError(parameter, value, "needs pyhpke", way_out) from None


@cache
def _suite() -> "CipherSuite":
    from pyhpke import AEADId, CipherSuite, KDFId, KEMId

    return CipherSuite.new(KEMId.DHKEM_X25519_HKDF_SHA256, KDFId.HKDF_SHA256, AEADId.AES128_GCM)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Exchange:
    """One request and its answer, as either end holds them.

    Attributes:
        enc: the encapsulated key, 32 bytes: no two requests have the same, unless one is a copy.
    """

    enc: bytes
    _context: "ContextInterface"

    def seal(self, answer: bytes, *, bits: RandomBits) -> bytes:
        """The answer, for whoever sent the request; twice sealed it is sealed under another key.

        Args:
            answer: a binary HTTP message.
            bits: where the nonce comes from.
        """
        nonce = bits.unsigned(SECRET_BYTES, 8).tobytes()
        aead, used = self._derived(nonce)
        return nonce + aead.encrypt(used, answer, None)

    def open(self, sealed: bytes) -> bytes:
        """The answer that the gateway sealed to this request.

        Raises:
            DataError: it is none.
        """
        aead, used = self._derived(sealed[:SECRET_BYTES])
        try:
            return aead.decrypt(used, sealed[SECRET_BYTES:], None)
        except (InvalidTag, ValueError):
            problem = "must be what the gateway sealed to this request"
            raise DataError("answer", f"{len(sealed)} bytes", problem, "ask again") from None

    def _derived(self, nonce: bytes) -> tuple[AESGCM, bytes]:
        secret, salt = self._context.export(_RESPONSE_LABEL, SECRET_BYTES), self.enc + nonce
        key, used = (
            HKDF(algorithm=SHA256(), length=length, salt=salt, info=info).derive(secret)
            for info, length in ((b"key", KEY_BYTES), (b"nonce", NONCE_BYTES))
        )
        return AESGCM(key), used


def seal_request(config: KeyConfig, request: bytes, *, ephemeral: "KEMKeyPair | None" = None) -> tuple[bytes, Exchange]:
    """A request sealed to a gateway's key, always under a key of its own.

    Args:
        config: the gateway's.
        request: a binary HTTP message.
        ephemeral: for test vectors only; drawn if it is left out.

    Returns:
        What to post, and what opens the answer to it.

    Raises:
        DataError: nothing can be sealed to that key.

    >>> key = GatewayKey.of(PrivateKey.generate())
    >>> sealed, asking = seal_request(key.config, b"a request")
    >>> len(sealed) - len(b"a request"), sealed.startswith(key.config.header)
    (55, True)
    >>> opened, answering = key.open(sealed)
    >>> opened, asking.open(answering.seal(b"an answer", bits=RandomBits.secure()))
    (b'a request', b'an answer')
    """
    from pyhpke import KEMKey

    header = config.header
    try:
        public = KEMKey.from_pyca_cryptography_key(X25519PublicKey.from_public_bytes(config.public.raw))
        enc, context = _suite().create_sender_context(public, _REQUEST_LABEL + header, eks=ephemeral)
    except ValueError:
        # A point of small order.
        way_out = "ask the shuffler's operator for the file again"
        raise DataError("gateway_keys", config.public.text, "must have a key that can be sealed to", way_out) from None
    return header + enc + context.seal(request), Exchange(enc, context)


class GatewayKey:
    """A gateway's private key, ready for use.

    Args:
        config: what clients know of it.
        private: its secret half.
    """

    def __init__(self, config: KeyConfig, private: PrivateKey) -> None:
        from pyhpke import KEMKey

        self.config = config
        self._key = KEMKey.from_pyca_cryptography_key(X25519PrivateKey.from_private_bytes(private.raw))
        self._info = _REQUEST_LABEL + config.header

    def __repr__(self) -> str:
        return f"GatewayKey({self.config.key_id} of {self.config.public.text})"

    @classmethod
    def of(cls, private: PrivateKey) -> "GatewayKey":
        """The key with the number that follows from it."""
        return cls(KeyConfig.of(private.public), private)

    def open(self, sealed: bytes) -> tuple[bytes, Exchange] | None:
        """The request, and what seals the answer to it; None for what is not sealed to this key.

        Args:
            sealed: what was posted, with a header that names this key.
        """
        from pyhpke import OpenError

        enc = sealed[HEADER_BYTES : HEADER_BYTES + ENC_BYTES]
        try:
            context = _suite().create_recipient_context(enc, self._key, self._info)
            return context.open(sealed[HEADER_BYTES + ENC_BYTES :]), Exchange(enc, context)
        except (OpenError, ValueError):
            return None
