"""Keys and tokens of nobody: SHA-256 of a sentence that says so, so that whoever finds one knows where it is from."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from shuffledp.service.admission import issuer_keys
from shuffledp.service.crypto import PrivateKey, SigningKey
from shuffledp.service.tokens import ROLES, Tokens

_RFC_9578 = Path(__file__).parents[1] / "service" / "admission" / "rfc9578.json"


def test_bytes(name: str) -> bytes:
    """32 bytes for tests."""
    return hashlib.sha256(f"ShuffleDP: a test key, {name}, that protects nobody".encode()).digest()


def test_token(role: str, generation: int) -> str:
    """A secret that says what it is."""
    return f"test-token-that-admits-nobody-{role}-{generation}"


def published_issuer_key() -> rsa.RSAPrivateKey:
    """The private key that RFC 9578 prints in its appendix."""
    pem = bytes.fromhex(json.loads(_RFC_9578.read_text("utf-8"))["vectors"][0]["skS"])
    key = load_pem_private_key(pem, None)
    assert isinstance(key, rsa.RSAPrivateKey)
    return key


@contextmanager
def keys_of_nobody() -> Iterator[None]:
    """As long as this lasts, keys that are made are test keys, one after another."""
    made: dict[str, int] = {}

    def number(kind: str) -> int:
        made[kind] = made.get(kind, 0) + 1
        return made[kind]

    def generated(kind: type[Any]) -> Any:
        return lambda: kind(test_bytes(f"{kind.__name__} {number(kind.__name__)}"))

    def tokens(*, bits: Any) -> Tokens:
        generation = number("tokens")
        return Tokens({role: test_token(role, generation) for role in ROLES})

    with ExitStack() as stack:
        for kind in (PrivateKey, SigningKey):
            stack.enter_context(patch.object(kind, "generate", generated(kind)))
        stack.enter_context(patch.object(Tokens, "generate", tokens))
        stack.enter_context(
            patch.object(issuer_keys, "generate_private_key", lambda exponent, size: published_issuer_key())
        )
        yield
