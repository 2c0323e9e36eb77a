"""An issuer's keys: a pair for one task or campaign, in a folder of its own."""

import json
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
)

from shuffledp.errors import DataError
from shuffledp.randomness import RandomBits
from shuffledp.service.admission.private_tokens import (
    EXPONENT,
    KEY_BITS,
    Issuer,
    TokenKey,
    from_base64url,
    in_base64url,
)
from shuffledp.service.keys import (
    ISSUER_PRIVATE,
    ISSUER_PUBLIC,
    VERSION,
    check_private,
    key_document,
    make_folder,
)

_SECRET = "token_private_key"


def make_issuer_keys(folder: Path, name: str, *, bits: RandomBits) -> Issuer:
    """The keys of a new issuer in a new folder that only its owner can look into.

    Args:
        folder: a new one.
        name: the issuer's host name.
        bits: must be secure.

    Raises:
        ParameterError: the folder is not new, or the name is none.
    """
    private = generate_private_key(EXPONENT, KEY_BITS)
    issuer = Issuer(name, TokenKey.of(private.public_key()))
    secret = in_base64url(private.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()))
    files = {
        ISSUER_PRIVATE: json.dumps({"version": VERSION, _SECRET: secret}, indent=2) + "\n",
        ISSUER_PUBLIC: json.dumps({"version": VERSION, "issuer": issuer.document()}, indent=2) + "\n",
    }
    make_folder(folder, files, bits, ())
    return issuer


def load_issuer(path: Path) -> Issuer:
    """Name and public key of an issuer, from its folder or its file issuer.pub."""
    return Issuer.from_document(key_document(path / ISSUER_PUBLIC if path.is_dir() else path).get("issuer"))


def load_issuer_key(folder: Path) -> RSAPrivateKey:
    """What an issuer signs with; refused if anybody but its owner may read it, or if it is not the public half's."""
    file = folder / ISSUER_PRIVATE
    check_private(file, "keys")
    secret = key_document(file).get(_SECRET)
    try:
        found = load_der_private_key(from_base64url(str(secret)), None)
    except (ValueError, TypeError):
        found = None
    if not isinstance(found, RSAPrivateKey) or TokenKey.of(found.public_key()) != load_issuer(folder).key:
        problem = f"must be the private half of {ISSUER_PUBLIC}"
        raise DataError("keys", str(file), problem, "make keys with `shuffledp keys make FOLDER --issuer NAME`")
    return found
