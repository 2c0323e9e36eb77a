"""A folder of keys: the analyzer's key pair, or a hop's, and a token for each role. Made once, whole or not at all.

    analyzer.key         the private key: the analyzer's machine only
    analyzer.pub         the public key: goes into every task and campaign
    models.key           what models of campaigns are signed with: the analyzer's machine only
    models.pub           what devices check models with: goes into every campaign
    tokens.json          the secrets of all roles: the servers
    <role>.token         one role's secret by itself: whoever has the role

Of a folder whose keys were rotated (`shuffledp.service.rotation`) also

    analyzer-<name>.key  an older private key: tasks that were created for it still need it
    models-<name>.key    an older signing key: of campaigns that were created with it
    retired.json         older keys that were destroyed, and when

and of one that tasks were created with

    created.json         their ids, and which key each names: until an analyzer has a task, nothing else knows of it

No party needs the whole folder. The shuffler must not have `analyzer.key`: with it, it could read what it mixes.

Every hop of a cascade has a folder of its own, made by whoever runs that hop, with tokens of its own:

    hop.key        the private key of its layer: this hop's machine only
    hop.pub        the public key: goes into every task and campaign of the cascade

So has whoever says who may take part in one task or campaign (`shuffledp.service.admission`):

    issuer.key     the private key of its tokens: the issuer's machine only
    issuer.pub     name and public key: goes into that task or campaign

Of a shuffler that is a gateway for relays (`shuffledp.service.oblivious`) its folder, whichever it is, also has

    gateway.key         the private key of what relays bring: the shuffler's machine only
    gateway.pub         which key is the current one
    gateway.ohttp-keys  what clients seal requests to: everybody, and everybody the same
"""

import contextlib
import errno
import json
import os
import secrets
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from shuffledp.errors import DataError, ParameterError
from shuffledp.files import other_version, settle_name, write_secret
from shuffledp.randomness import RandomBits
from shuffledp.service.crypto import PrivateKey, PublicKey, SigningKey, VerifyingKey
from shuffledp.service.tokens import OPEN, ROLES, Tokens

VERSION = 1
# Of a tokens.json that has older tokens, too: earlier programs must not take it for one without.
WITH_OLDER = 2
# Of a public half that has a last day: earlier programs must not take it for one without.
WITH_EXPIRY = 2
PRIVATE, PUBLIC, TOKENS = "analyzer.key", "analyzer.pub", "tokens.json"
SIGNING, VERIFYING = "models.key", "models.pub"
RETIRED, CREATED = "retired.json", "created.json"
HOP_PRIVATE, HOP_PUBLIC = "hop.key", "hop.pub"
GATEWAY_PRIVATE, GATEWAY_PUBLIC, GATEWAY_CONFIGS = "gateway.key", "gateway.pub", "gateway.ohttp-keys"
HOP_ROLES = tuple(role for role in ROLES if role != OPEN)
"""The roles that a hop has tokens for: nobody opens its batches for it."""
ISSUER_PRIVATE, ISSUER_PUBLIC = "issuer.key", "issuer.pub"
_PUBLIC_FILES = (PUBLIC, VERIFYING, HOP_PUBLIC, ISSUER_PUBLIC)

S = TypeVar("S", PrivateKey, SigningKey)


@dataclass(frozen=True)
class PairFiles(Generic[S]):
    """Where a kind of key pair lies in a folder: one that is current, and older ones.

    Attributes:
        kind: the secret half.
        private: the current secret half's file.
        public: the current public half's file.
        secret_field: what the secret is called in its file.
        public_field: what the public half is called in its file.
    """

    kind: type[S]
    private: str
    public: str
    secret_field: str
    public_field: str

    def older(self, key: S) -> str:
        """The file of a key that is not the current one: the name is a part of its public half."""
        return f"{Path(self.private).stem}-{key.public.raw[:6].hex()}.key"

    def files(self, folder: Path) -> list[Path]:
        """The files of all secret halves that a folder has, the current one's usual place first."""
        found = [folder / self.private, *sorted(folder.glob(f"{Path(self.private).stem}-*.key"))]
        return [file for file in found if file.exists() and not is_overwritten(file)]

    def secret_text(self, key: S) -> str:
        """The file of a secret half."""
        return _json({"version": VERSION, self.secret_field: key.text})

    def public_text(self, key: S, expires: str | None = None) -> str:
        """The file of a public half, with its last day if it has one."""
        more = {} if expires is None else {"expires": expires}
        return _json({"version": WITH_EXPIRY if more else VERSION, self.public_field: key.public.text, **more})

    def read(self, file: Path) -> S:
        """A secret half from its file; refused if anybody but its owner may read it."""
        check_private(file, "keys")
        return self.kind.from_text(_field(file, self.secret_field))

    def ring(self, path: Path) -> tuple[S, ...]:
        """All secret halves of a folder, the current one first; of a file the one that it holds.

        Which one is current the public half says, where it is there: `rotate_keys` replaces it in one step, and
        whatever names the other files have at that moment, nothing is missing.
        """
        if not path.is_dir():
            return (self.read(path),)
        for last in (False, False, True):
            try:
                return self._ring(path, must_fit=not last)
            except _MovedError:
                # Files are being renamed by a rotation: all of them are there, under other names.
                continue
        raise AssertionError

    def _ring(self, folder: Path, *, must_fit: bool) -> tuple[S, ...]:
        files = self.files(folder) or [folder / self.private]
        current = _public(folder / self.public, self.public_field) if (folder / self.public).exists() else None
        try:
            found: list[S] = list({key.raw: key for key in map(self.read, files)}.values())
        except ParameterError:
            if must_fit and not all(file.exists() for file in files):
                raise _MovedError from None
            raise
        if must_fit and current not in (None, *(key.public.text for key in found)):
            raise _MovedError
        return tuple(sorted(found, key=lambda key: key.public.text != current))


class _MovedError(Exception):
    """Files of a folder were not all where they had been a moment ago."""


ANALYZER = PairFiles(PrivateKey, PRIVATE, PUBLIC, "private_key", "public_key")
HOPS = PairFiles(PrivateKey, HOP_PRIVATE, HOP_PUBLIC, "private_key", "public_key")
GATEWAY = PairFiles(PrivateKey, GATEWAY_PRIVATE, GATEWAY_PUBLIC, "private_key", "public_key")
MODELS = PairFiles(SigningKey, SIGNING, VERIFYING, "signing_private_key", "signing_key")


def is_overwritten(file: Path) -> bool:
    """Whether a key's file was overwritten with zeros, and only its name is left of it."""
    with contextlib.suppress(OSError):
        content = file.read_bytes()
        return not any(content)
    return False


_MAKE = "make keys with `shuffledp keys FOLDER`"


def token_name(role: str) -> str:
    """The file of one role's token."""
    return f"{role}.token"


def make_keys(folder: Path, *, bits: RandomBits, expires: str | None = None) -> PublicKey:
    """An analyzer's keys in a new folder that only its owner can look into; one that holds anything is refused.

    Args:
        folder: where.
        bits: where tokens come from; must be secure.
        expires: the last day on which tasks are created for the key, and reports sealed to it; None for no such day.

    Returns:
        The public key that devices seal messages to.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     public = make_keys(Path(place) / "keys", bits=RandomBits.secure())
    ...     load_private_key(Path(place) / "keys").public == public == load_public_key(Path(place) / "keys")
    True
    """
    private, signing = PrivateKey.generate(), SigningKey.generate()
    make_folder(
        folder,
        {
            PRIVATE: ANALYZER.secret_text(private),
            PUBLIC: ANALYZER.public_text(private, expires),
            SIGNING: MODELS.secret_text(signing),
            VERIFYING: MODELS.public_text(signing),
        },
        bits,
    )
    return private.public


def make_hop_keys(folder: Path, *, bits: RandomBits, expires: str | None = None) -> PublicKey:
    """The keys of one hop of a cascade in a new folder, as `make_keys` makes an analyzer's.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     public = make_hop_keys(Path(place) / "hop", bits=RandomBits.secure())
    ...     load_hop_key(Path(place) / "hop").public == public == load_hop_public_key(Path(place) / "hop" / "hop.pub")
    True
    """
    private = PrivateKey.generate()
    files = {HOP_PRIVATE: HOPS.secret_text(private), HOP_PUBLIC: HOPS.public_text(private, expires)}
    make_folder(folder, files, bits, HOP_ROLES)
    return private.public


def make_folder(folder: Path, keys: dict[str, str], bits: RandomBits, roles: tuple[str, ...] = ROLES) -> None:
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
        **({TOKENS: tokens_text(tokens)} if roles else {}),
        **{token_name(role): secret + "\n" for role, secret in tokens.secrets.items()},
    }
    # All are made in a hidden folder that takes the name in one step: there is never half a set of keys.
    part = target.parent / f".shuffledp-{secrets.token_hex(8)}.part"
    try:
        part.mkdir(mode=0o700)
        for name, text in contents.items():
            write_secret(part / name, text, 0o644 if name in _PUBLIC_FILES else 0o600)
        settle_name(part / next(iter(contents)))
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


def tokens_text(tokens: Tokens) -> str:
    """The file of all roles' secrets."""
    older = {"older": {role: list(some) for role, some in tokens.older.items()}} if tokens.older else {}
    return _json({"version": WITH_OLDER if older else VERSION, **tokens.secrets, **older})


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2) + "\n"


def load_private_key(path: Path) -> PrivateKey:
    """The analyzer's current key from its folder or file; refused if anybody but its owner may read it.

    Args:
        path: the folder that `make_keys` made, or the file in it.

    Returns:
        The newest key, which opens messages of new tasks.
    """
    return ANALYZER.ring(path)[0]


def load_public_key(path: Path) -> PublicKey:
    """The key that clients encrypt to, from its folder or file."""
    return PublicKey.from_text(_public(key_file(path, PUBLIC), "public_key"))


def is_hops(folder: Path) -> bool:
    """Whether a folder is a hop's, and not an analyzer's."""
    return (folder / HOP_PUBLIC).exists()


def load_hop_key(path: Path) -> PrivateKey:
    """A hop's key from its folder or file; refused if anybody but its owner may read it."""
    return PrivateKey.from_text(_field(key_file(path, HOP_PRIVATE), "private_key"))


def load_hop_public_key(path: Path) -> PublicKey:
    """The key of a hop's layer, from its folder or file."""
    return PublicKey.from_text(_public(key_file(path, HOP_PUBLIC), "public_key"))


def load_signing_key(path: Path) -> SigningKey:
    """What models of new campaigns are signed with, from its folder or file; refused if others may read it.

    Args:
        path: the folder that `make_keys` made, or the file in it.

    Returns:
        The newest key.
    """
    return MODELS.ring(path)[0]


def load_verifying_key(path: Path) -> VerifyingKey:
    """What devices check models with, from its folder or file."""
    return VerifyingKey.from_text(_field(key_file(path, VERIFYING), "signing_key"))


def load_tokens(path: Path) -> Tokens:
    """The secrets of all roles from their folder or file; refused if anybody but their owner may read them.

    Args:
        path: the folder that `make_keys` made, or the file in it.

    Returns:
        The secrets, by their roles.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     _ = make_keys(Path(place) / "keys", bits=RandomBits.secure())
    ...     sorted(load_tokens(Path(place) / "keys").secrets)
    ['admin', 'enrol', 'hop', 'open', 'read']
    """
    document = key_document(key_file(path, TOKENS), VERSION, WITH_OLDER)
    return Tokens.from_document({name: value for name, value in document.items() if name != "version"})


def load_token(path: Path) -> str:
    """One role's secret from its file.

    Args:
        path: the file of one token.

    Returns:
        The secret.

    Raises:
        ParameterError: a file that cannot be read.
        DataError: a file that holds no token.

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


def key_file(path: Path, name: str) -> Path:
    """The file of this name, where the path is its folder; refused if it holds a secret that others may read."""
    file = path / name if path.is_dir() else path
    if name not in _PUBLIC_FILES:
        check_private(file, "keys")
    return file


def _public(file: Path, name: str) -> str:
    return _field(file, name, VERSION, WITH_EXPIRY)


def _field(file: Path, name: str, *versions: int) -> str:
    value = key_document(file, *versions).get(name)
    if not isinstance(value, str):
        raise DataError("keys", str(file), f"must have a {name}", _MAKE)
    return value


def _instead(file: Path) -> str:
    """What to look at where a folder does not have this file: it may be of another role."""
    is_asked_of_a_hop = file.name in (HOP_PRIVATE, HOP_PUBLIC)
    if is_asked_of_a_hop and (file.parent / PUBLIC).exists():
        return "name a hop's folder, as this one is an analyzer's"
    if not is_asked_of_a_hop and is_hops(file.parent):
        return "name the analyzer's folder, as this one is a hop's"
    return "check the path"


def key_document(file: Path, *versions: int) -> dict[str, Any]:
    """A file of a folder of keys, of one of these versions, or of the first."""
    try:
        document: Any = json.loads(file.read_bytes())
    except FileNotFoundError:
        raise ParameterError("keys", str(file), "must be there", f"{_instead(file)}, or {_MAKE}") from None
    except OSError as refused:
        why = refused.strerror or "no reason given"
        raise ParameterError("keys", str(file), "must be readable by this process", f"{why.lower()}") from None
    except (ValueError, RecursionError):
        raise DataError("keys", str(file), "must be a JSON document", _MAKE) from None
    version = document.get("version") if isinstance(document, dict) else None
    known = versions or (VERSION,)
    if version not in known:
        # New keys are no way out: what was encrypted to these could not be read any more.
        raise other_version("keys.version", version, f"{' or '.join(map(str, known))} in {file.name}")
    return dict(document)
