"""A folder of keys: the analyzer's key pair, or a hop's, and a token for each role. Made once, whole or not at all.

    analyzer.key   the private key: the analyzer's machine only
    analyzer.pub   the public key: goes into every task and campaign
    models.key     what models of campaigns are signed with: the analyzer's machine only
    models.pub     what devices check models with: goes into every campaign
    tokens.json    the secrets of all roles: the servers
    <role>.token   one role's secret by itself: whoever has the role

No party needs the whole folder. The shuffler must not have `analyzer.key`: with it, it could read what it mixes.

Every hop of a cascade has a folder of its own, made by whoever runs that hop, with tokens of its own:

    hop.key        the private key of its layer: this hop's machine only
    hop.pub        the public key: goes into every task and campaign of the cascade
"""

import contextlib
import errno
import json
import os
import secrets
import shutil
import stat
from pathlib import Path
from typing import Any

from shuffledp.errors import DataError, ParameterError
from shuffledp.files import settle_name
from shuffledp.randomness import RandomBits
from shuffledp.service.crypto import PrivateKey, PublicKey, SigningKey, VerifyingKey
from shuffledp.service.tokens import OPEN, ROLES, Tokens

VERSION = 1
PRIVATE, PUBLIC, TOKENS = "analyzer.key", "analyzer.pub", "tokens.json"
SIGNING, VERIFYING = "models.key", "models.pub"
HOP_PRIVATE, HOP_PUBLIC = "hop.key", "hop.pub"
HOP_ROLES = tuple(role for role in ROLES if role != OPEN)
"""The roles that a hop has tokens for: nobody opens its batches for it."""
_PUBLIC_FILES = (PUBLIC, VERIFYING, HOP_PUBLIC)

_MAKE = "make keys with `shuffledp keys FOLDER`"


def token_name(role: str) -> str:
    """The file of one role's token."""
    return f"{role}.token"


def make_keys(folder: Path, *, bits: RandomBits) -> PublicKey:
    """An analyzer's keys in a new folder that only its owner can look into; one that holds anything is refused.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     public = make_keys(Path(place) / "keys", bits=RandomBits.secure())
    ...     load_private_key(Path(place) / "keys").public == public == load_public_key(Path(place) / "keys")
    True
    """
    private, signing = PrivateKey.generate(), SigningKey.generate()
    _make(
        folder,
        {
            PRIVATE: _json({"version": VERSION, "private_key": private.text}),
            PUBLIC: _json({"version": VERSION, "public_key": private.public.text}),
            SIGNING: _json({"version": VERSION, "signing_private_key": signing.text}),
            VERIFYING: _json({"version": VERSION, "signing_key": signing.public.text}),
        },
        bits,
    )
    return private.public


def make_hop_keys(folder: Path, *, bits: RandomBits) -> PublicKey:
    """The keys of one hop of a cascade in a new folder, as `make_keys` makes an analyzer's.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     public = make_hop_keys(Path(place) / "hop", bits=RandomBits.secure())
    ...     load_hop_key(Path(place) / "hop").public == public == load_hop_public_key(Path(place) / "hop" / "hop.pub")
    True
    """
    private = PrivateKey.generate()
    _make(
        folder,
        {
            HOP_PRIVATE: _json({"version": VERSION, "private_key": private.text}),
            HOP_PUBLIC: _json({"version": VERSION, "public_key": private.public.text}),
        },
        bits,
        HOP_ROLES,
    )
    return private.public


def _make(folder: Path, keys: dict[str, str], bits: RandomBits, roles: tuple[str, ...] = ROLES) -> None:
    """Files of keys, and tokens for these roles, in a new folder: all or none."""
    if not bits.is_secure:
        raise ParameterError("bits", "seeded ones", "must be secure", "pass RandomBits.secure()")
    target = Path(os.path.realpath(folder))
    if not target.parent.is_dir():
        problem = "must be in a directory that exists"
        raise ParameterError("folder", str(folder), problem, f"create {target.parent} or name another")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise _not_new(folder)
    drawn = Tokens.generate(bits=bits).secrets
    tokens = Tokens({role: drawn[role] for role in roles})
    contents = {
        **keys,
        TOKENS: _json({"version": VERSION, **tokens.secrets}),
        **{token_name(role): secret + "\n" for role, secret in tokens.secrets.items()},
    }
    # All are made in a hidden folder that takes the name in one step: there is never half a set of keys.
    part = target.parent / f".shuffledp-{secrets.token_hex(8)}.part"
    try:
        part.mkdir(mode=0o700)
        for name, text in contents.items():
            _write(part / name, text, 0o644 if name in _PUBLIC_FILES else 0o600)
        settle_name(part / TOKENS)
        part.replace(target)
    except OSError as refused:
        if refused.errno in (errno.ENOTEMPTY, errno.EEXIST):
            raise _not_new(folder) from refused
        why = (refused.strerror or "refused").lower()
        problem = "must be where files can be written"
        raise ParameterError("folder", str(folder), problem, f"{why}: name another") from refused
    finally:
        shutil.rmtree(part, ignore_errors=True)
    settle_name(target)


def _not_new(folder: Path) -> ParameterError:
    way_out = "name another: keys are never overwritten, as what was encrypted to them could not be read any more"
    return ParameterError("folder", str(folder), "must be new or empty", way_out)


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2) + "\n"


def _write(path: Path, text: str, mode: int) -> None:
    # Created with its mode: at no time can anybody else open it.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), mode)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())


def load_private_key(path: Path) -> PrivateKey:
    """The analyzer's key from its folder or file; refused if anybody but its owner may read it."""
    return PrivateKey.from_text(_field(_file(path, PRIVATE), "private_key"))


def load_public_key(path: Path) -> PublicKey:
    """The key that clients encrypt to, from its folder or file."""
    return PublicKey.from_text(_field(_file(path, PUBLIC), "public_key"))


def is_hops(folder: Path) -> bool:
    """Whether a folder is a hop's, and not an analyzer's."""
    return (folder / HOP_PUBLIC).exists()


def load_hop_key(path: Path) -> PrivateKey:
    """A hop's key from its folder or file; refused if anybody but its owner may read it."""
    return PrivateKey.from_text(_field(_file(path, HOP_PRIVATE), "private_key"))


def load_hop_public_key(path: Path) -> PublicKey:
    """The key of a hop's layer, from its folder or file."""
    return PublicKey.from_text(_field(_file(path, HOP_PUBLIC), "public_key"))


def load_signing_key(path: Path) -> SigningKey:
    """What models are signed with, from its folder or file; refused if anybody but its owner may read it."""
    return SigningKey.from_text(_field(_file(path, SIGNING), "signing_private_key"))


def load_verifying_key(path: Path) -> VerifyingKey:
    """What devices check models with, from its folder or file."""
    return VerifyingKey.from_text(_field(_file(path, VERIFYING), "signing_key"))


def load_tokens(path: Path) -> Tokens:
    """The secrets of all roles from their folder or file; refused if anybody but their owner may read them."""
    document = _document(_file(path, TOKENS))
    return Tokens.from_document({name: value for name, value in document.items() if name != "version"})


def load_token(path: Path) -> str:
    """One role's secret from its file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     _ = make_keys(Path(place) / "keys", bits=RandomBits.secure())
    ...     len(load_token(Path(place) / "keys" / "enrol.token"))
    64
    """
    try:
        token = path.read_text("ascii").strip()
    except OSError:
        raise ParameterError("token_file", str(path), "must be a file that can be read", "check the path") from None
    except UnicodeDecodeError:
        token = ""
    if not token.isprintable() or not 32 <= len(token) <= 4096 or any(sign.isspace() for sign in token):
        # What the file does hold is not shown: it may be another secret.
        raise DataError(
            "token_file", str(path), "must hold one token of at least 32 characters", f"name one of {_names()}"
        )
    return token


def _names() -> str:
    return ", ".join(token_name(role) for role in ROLES)


def check_private(file: Path, parameter: str) -> None:
    """Refuse a secret that others on this machine may read."""
    with contextlib.suppress(OSError):
        mode = stat.S_IMODE(file.stat().st_mode)
        if os.name == "posix" and mode & 0o077:
            problem = f"must be readable by its owner only, not have mode {mode:o}"
            raise DataError(parameter, str(file), problem, f"run: chmod 600 {file}, or make new keys if others read it")


def _file(path: Path, name: str) -> Path:
    """The file of this name, where the path is its folder; refused if it holds a secret that others may read."""
    file = path / name if path.is_dir() else path
    if name not in _PUBLIC_FILES:
        check_private(file, "keys")
    return file


def _field(file: Path, name: str) -> str:
    value = _document(file).get(name)
    if not isinstance(value, str):
        raise DataError("keys", str(file), f"must have a {name}", _MAKE)
    return value


def _document(file: Path) -> dict[str, Any]:
    try:
        document: Any = json.loads(file.read_bytes())
    except FileNotFoundError:
        raise ParameterError("keys", str(file), "must be there", f"check the path, or {_MAKE}") from None
    except OSError as refused:
        why = refused.strerror or "no reason given"
        raise ParameterError("keys", str(file), "must be readable by this process", f"{why.lower()}") from None
    except (ValueError, RecursionError):
        raise DataError("keys", str(file), "must be a JSON document", _MAKE) from None
    version = document.get("version") if isinstance(document, dict) else None
    if version != VERSION:
        raise DataError(
            "keys.version",
            version,
            f"must be {VERSION} in {file.name}",
            f"this version of shuffledp reads no other: {_MAKE}",
        )
    return dict(document)
