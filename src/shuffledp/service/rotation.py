"""New keys in an old folder, with an overlap: what was made for the older ones is served until they are retired.

A task names the key that it is encrypted to. A rotation writes the new secret half down beside the old one, and then
replaces `analyzer.pub` in one step: before it new tasks are created for the old key, after it for the new one, and at
no moment is a secret half missing that a task may name. Only names are tidied afterwards. An older key is destroyed by
`retire_keys`, which is told by whoever looked into the analyzer's stores which of them are needed.
"""

import contextlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from shuffledp.errors import DataError, ParameterError
from shuffledp.files import destroy_file, locked, settle_name, write_secret
from shuffledp.randomness import RandomBits
from shuffledp.service.crypto import PublicKey
from shuffledp.service.expiry import check_not_expired
from shuffledp.service.key_notes import created_tasks, load_expiries, retired_keys
from shuffledp.service.keys import (
    ANALYZER,
    CREATED,
    MODELS,
    PUBLIC,
    RETIRED,
    TOKENS,
    VERSION,
    PairFiles,
    S,
    is_hops,
    is_overwritten,
    load_public_key,
    load_tokens,
    token_name,
    tokens_text,
)
from shuffledp.service.tokens import Tokens

_KINDS: tuple[PairFiles[Any], ...] = (ANALYZER, MODELS)
_WAIT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Retired:
    """What became of a folder's older keys.

    Attributes:
        destroyed: files that are no more.
        kept: files that something still needs, with what that is.
    """

    destroyed: tuple[str, ...]
    kept: Mapping[str, tuple[str, ...]]


def rotate_keys(folder: Path, *, bits: RandomBits, expires: str | None = None) -> PublicKey:
    """Make a new key pair current, and a new pair for models; the older ones stay until they are retired.

    Args:
        folder: made by `make_keys`, with the analyzer's secret half.
        bits: must be secure.
        expires: the last day of the new key; None for no such day, whatever the older one had.

    Returns:
        The public half that new tasks are encrypted to from now on.

    Raises:
        ParameterError: the folder lacks a half of the current pair, or another process rotates it.
    """
    if not bits.is_secure:
        raise ParameterError("bits", "seeded ones", "must be secure", "pass RandomBits.secure()")
    with alone(folder):
        # Folders from before there were campaigns have no pair for models.
        kinds: list[PairFiles[Any]] = [ANALYZER, *([MODELS] if (folder / MODELS.public).exists() else [])]
        for kind in kinds:
            check_whole(folder, kind)
        for kind in kinds:
            make_current(folder, kind, kind.kind.generate(), expires if kind is ANALYZER else None)
    return load_public_key(folder)


def make_current(folder: Path, kind: PairFiles[S], new: S, last: str | None = None) -> None:
    """Make a new pair the current one of its kind; nobody else changes the folder meanwhile (`alone`).

    Args:
        folder: where the older ones are.
        kind: which files.
        new: the secret half of the new pair.
        last: its last day, if it has one.
    """
    if kind.files(folder):
        _tidy(folder, kind)
    put_file(folder / kind.older(new), kind.secret_text(new))
    # The one step: from here on the new pair is the current one.
    put_file(folder / kind.public, kind.public_text(new, last), mode=0o644)
    _tidy(folder, kind)


def rotate_tokens(folder: Path, *, bits: RandomBits) -> Tokens:
    """New tokens for all roles; the older ones are taken, too, until they are retired.

    Args:
        folder: one with `tokens.json`.
        bits: where secrets come from; must be secure.

    Returns:
        The new tokens, with the older ones.
    """
    if not bits.is_secure:
        raise ParameterError("bits", "seeded ones", "must be secure", "pass RandomBits.secure()")
    with alone(folder):
        known = load_tokens(folder)
        tokens = known.renewed(bits=bits)
        if is_hops(folder):
            # A hop has no batches that others could open: it is given no token for that.
            tokens = Tokens({role: tokens.secrets[role] for role in known.secrets}, tokens.older)
        put_file(folder / TOKENS, tokens_text(tokens))
        # Whoever is handed one of these before it is replaced has an older token, which is taken.
        for role, secret in tokens.secrets.items():
            put_file(folder / token_name(role), secret + "\n")
    return tokens


def retire_tokens(folder: Path) -> int:
    """Forget older tokens: servers that start from now on refuse them.

    Returns:
        How many there were.
    """
    with alone(folder):
        tokens = load_tokens(folder)
        count = sum(map(len, tokens.older.values()))
        if count:
            put_file(folder / TOKENS, tokens_text(Tokens(tokens.secrets)))
    return count


def retire_keys(
    folder: Path,
    needed: Mapping[str, Sequence[str]],
    only: Sequence[str] = (),
    kinds: Sequence[PairFiles[Any]] = _KINDS,
) -> Retired:
    """Destroy older keys, overwritten, deleted, and both forced to disk; none of them if one is still needed.

    Args:
        folder: where they are.
        needed: what still needs a key, by the text of its public half. Whoever says so holds the stores meanwhile.
        only: the names of the files to destroy; all older keys if it is left out.
        kinds: which pairs; those that tasks and campaigns name if it is left out.

    Returns:
        The files that were destroyed; or those that are needed, with what needs them.
    """
    doomed: list[tuple[str, str]] = []
    kept: dict[str, tuple[str, ...]] = {}
    with alone(folder):
        for kind in kinds:
            if not kind.files(folder):
                continue
            check_whole(folder, kind)
            _tidy(folder, kind)
            for key in kind.ring(folder)[1:]:
                file = kind.older(key)
                if only and file not in only:
                    continue
                if key.public.text in needed:
                    kept[file] = tuple(needed[key.public.text])
                doomed.append((file, key.public.text))
        if kept:
            return Retired((), kept)
        if doomed:
            # First, for the words: whoever has the file knows better.
            _remember(folder, [public for _, public in doomed])
        for file, _ in doomed:
            destroy_file(folder / file)
    return Retired(tuple(file for file, _ in doomed), {})


def remember_task(path: Path, task_id: str, key: PublicKey) -> bool:
    """Write down that a task was created for a key, beside the key: it is not retired before an analyzer has the task.

    Args:
        path: what the task was created with: a folder, or a public half's file.
        task_id: the task's or the campaign's id.
        key: the analyzer's public half that it names.

    Returns:
        Whether it was written down: not where there is no secret half, which is all that could be destroyed, or where
        nothing can be written.
    """
    if not path.is_dir() or not ANALYZER.files(path) or is_hops(path):
        return False
    try:
        with alone(path):
            known = {**created_tasks(path), task_id: key.text}
            put_file(path / CREATED, json.dumps({"version": VERSION, "tasks": known}, indent=2) + "\n")
    except ParameterError:
        return False
    return True


def current_public_key(path: Path) -> PublicKey:
    """The key that new tasks are encrypted to, from its folder or file, where it can be known that it is of use.

    Raises:
        DataError: it was destroyed, or the folder has secret halves and none is its.
        ParameterError: it has expired.
    """
    public = load_public_key(path)
    folder = path if path.is_dir() else path.parent
    own = {key.public for key in ANALYZER.ring(folder)} if path.is_dir() and ANALYZER.files(folder) else {public}
    if public not in own:
        gone = retired_keys(folder).get(public.text)
        what = f"names a key that was destroyed on {gone}" if gone else "names a key whose secret half is not beside it"
        way_out = f"put the current {PUBLIC} back: nobody could read what is encrypted to this one"
        raise DataError("keys", public.text, f"must be of use, and {folder / PUBLIC} {what}", way_out)
    check_not_expired(load_expiries(path))
    return public


def whereabouts(folder: Path, key: str) -> str:
    """What is known of a key that a folder does not have, in words."""
    gone = retired_keys(folder).get(key) if folder.is_dir() else None
    return f"was destroyed on {gone}" if gone else f"is unknown in {folder}"


@contextlib.contextmanager
def alone(folder: Path) -> Any:
    """Nobody else changes the folder meanwhile; what a killed process left half done is cleared away first."""
    if not folder.is_dir():
        raise ParameterError("folder", str(folder), "must be a folder of keys", "make one with `shuffledp keys FOLDER`")
    with locked(folder / "keys", timeout=_WAIT_SECONDS, parameter="folder"):
        for file in filter(Path.is_file, folder.glob(".shuffledp-*.part")):
            destroy_file(file)
        for file in folder.glob("*-*.key"):
            if is_overwritten(file):
                file.unlink()
        yield


def check_whole(folder: Path, kind: PairFiles[Any]) -> None:
    """The current pair must be there, both halves: a rotation would lose track of one otherwise."""
    if is_hops(folder) and kind in _KINDS:
        way_out = "make others with `shuffledp keys FOLDER --hop` for the next task, or give --tokens for new tokens"
        raise ParameterError("folder", str(folder), "must be an analyzer's: a hop's key is not rotated", way_out)
    if not (folder / kind.public).exists():
        whose = "analyzer's" if kind in _KINDS else "shuffler's"
        way_out = f"run it where both {kind.private} and {kind.public} are: on the {whose} machine"
        raise ParameterError("folder", str(folder), f"must have {kind.public}", way_out)
    ring, public = kind.ring(folder), json.loads((folder / kind.public).read_bytes())[kind.public_field]
    if ring[0].public.text != public:
        problem = f"must have the secret half of {kind.public}"
        raise DataError("folder", str(folder), problem, f"put the {kind.public} of {kind.private} back")


def _tidy(folder: Path, kind: PairFiles[Any]) -> None:
    """The current key lies under the usual name, older ones under names of their own; each step leaves all there."""
    usual = folder / kind.private
    current = kind.ring(folder)[0]
    if usual.exists():
        found = kind.read(usual)
        if found == current:
            return
        usual.replace(folder / kind.older(found))
        settle_name(usual)
    (folder / kind.older(current)).replace(usual)
    settle_name(usual)


def put_file(file: Path, text: str | bytes, mode: int = 0o600) -> None:
    """A file that is there whole or not at all, with what was there before until then; forced to disk."""
    part = file.parent / f".shuffledp-{secrets.token_hex(8)}.part"
    try:
        write_secret(part, text, mode)
        part.replace(file)
    except OSError as refused:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        why = (refused.strerror or "refused").lower()
        problem = f"must be where files can be written ({why})"
        raise ParameterError("folder", str(file.parent), problem, "nothing that was there is lost: try again") from None
    settle_name(file)


def _remember(folder: Path, gone: list[str]) -> None:
    keys = retired_keys(folder) | dict.fromkeys(gone, datetime.now(UTC).date().isoformat())
    put_file(folder / RETIRED, json.dumps({"version": VERSION, "keys": keys}, indent=2) + "\n")
