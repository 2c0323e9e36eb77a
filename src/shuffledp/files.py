"""Files that are written whole or not at all, and locks that processes hold on them."""

import errno
import json
import math
import os
import secrets
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from shuffledp.errors import DataError, ParameterError

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_OF_THE_SYSTEM = _NO_ROOM | {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EIO, errno.ESTALE),
    *(errno.EMFILE, errno.ENFILE, errno.ENODEV, errno.ENXIO),
}
_BETWEEN_TRIES = 0.01


def _check_target(target: Path, asked: Path, parameter: str) -> None:
    if not target.parent.is_dir():
        raise ParameterError(
            parameter, str(asked), "must be in a directory that exists", f"create {target.parent} or name another"
        )
    # os.replace would put a plain file in the place of /dev/null itself.
    if target.exists() and not target.is_file():
        raise ParameterError(parameter, str(asked), "must be a plain file or a new name", "name a file")


def create_part(folder: Path) -> tuple[int, Path]:
    """A new hidden file for what is not whole yet, open for writing: no other process on any machine has its name."""
    # The part's name owes nothing to the target's, which may already be as long as the system allows.
    part = folder / f".shuffledp-{secrets.token_hex(8)}.part"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    # Not tempfile: it creates with 0600, where 0666 lets the umask decide as for any other file.
    return os.open(part, flags, 0o666), part


def _create_beside(target: Path, asked: Path, parameter: str) -> tuple[int, Path]:
    try:
        return create_part(target.parent)
    except OSError as refused:
        problem = "must be in a directory that can be written"
        raise ParameterError(parameter, str(asked), problem, f"not {target.parent}: name another") from refused


def is_of_the_system(error: OSError) -> bool:
    """Whether a disk or its owner says so in the middle of the work: no room, no permission, gone, broken.

    Others, such as a file that was closed already, are mistakes of a program.
    """
    return error.errno in _OF_THE_SYSTEM


def is_there(path: Path) -> bool:
    """Whether there is such a file; a name that no file can have is one that is not there."""
    try:
        return path.is_file()
    except OSError:
        return False


def read_json(path: Path, parameter: str, *, if_missing: str, if_broken: str) -> Any:
    """What a JSON file says.

    Args:
        path: the file.
        parameter: what the path came from.
        if_missing: the way out where there is no such file.
        if_broken: the way out where the file is no JSON document.

    Raises:
        ParameterError: there is no such file.
        DataError: it is no JSON document.
    """
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        raise ParameterError(parameter, str(path), "must be a file that exists", if_missing) from None
    except IsADirectoryError:
        raise ParameterError(parameter, str(path), "must be a file, not a folder", "name the file in it") from None
    except (ValueError, RecursionError):
        raise DataError(parameter, str(path), "must be a JSON document", if_broken) from None


def plain(value: Any) -> Any:
    """The value as strict JSON allows it: no NaN or Infinity, numbers as numbers, the rest as text."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return plain(value.document()) if hasattr(value, "document") else str(value)


_KINDS = {
    "a ledger": {"population", "entries"},
    "a campaign": {"suite", "learner", "seatings"},
    "a task": {"suite", "plan"},
    "a plan": {"protocol", "noise", "users"},
}


def kind_of_document(document: Any) -> str | None:
    """Which of this package's documents this one looks like, for whoever expected another; None for none.

    >>> kind_of_document({"population": "panel", "entries": []}), kind_of_document([1])
    ('a ledger', None)
    """
    keys = set(document) if isinstance(document, dict) else set()
    return next((kind for kind, needed in _KINDS.items() if needed <= keys), None)


def other_version(parameter: str, found: Any, known: Any, otherwise: str = "") -> DataError:
    """The refusal of a file that another version has written, and which this one would only guess at.

    Args:
        parameter: what carries the version, such as `plan.schema`.
        found: the version that it names.
        known: the version, or versions in words, that this program reads.
        otherwise: what else can be done, in words after "or"; nothing where only that version helps.

    >>> raise other_version("plan.schema", 2, 1, "plan again")
    Traceback (most recent call last):
        ...
    shuffledp.errors.DataError: plan.schema must be 1, got 2: use the shuffledp that wrote it or a newer one, ...
    """
    way_out = "use the shuffledp that wrote it or a newer one"
    if otherwise:
        # What names no version at all is no file of another one.
        is_version = isinstance(found, int) and not isinstance(found, bool)
        way_out = f"{way_out}, or {otherwise}" if is_version else otherwise
    # A text may be as long as whoever wrote it liked.
    shown = found if isinstance(found, int | float | None) else str(found)[:40]
    return DataError(parameter, shown, f"must be {known}", way_out)


@contextmanager
def whole_file(path: Path, *, parameter: str = "out") -> Iterator[BinaryIO]:
    """Open a binary file that appears under its name only when the block ends without an exception.

    The bytes go to a hidden file in the same directory, are forced to disk and then take the name in one
    step. An exception removes the hidden file and leaves what was there before; a killed process can leave
    the hidden `.shuffledp-*.part` behind, never half a target. A replaced file keeps its permissions, and
    a link stays a link to the file it names. Errors name the `parameter` that the path came from.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_file(Path(folder) / "plan.json") as file:
    ...         _ = file.write(b"{}")
    ...     (Path(folder) / "plan.json").read_text()
    '{}'
    """
    target = Path(os.path.realpath(path))
    _check_target(target, path, parameter)
    descriptor, part = _create_beside(target, path, parameter)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            part.chmod(stat.S_IMODE(target.stat().st_mode))
        part.replace(target)
    except BaseException as stopped:
        part.unlink(missing_ok=True)
        if isinstance(stopped, OSError) and stopped.errno in _NO_ROOM:
            problem = "must be on a disk with room for it"
            raise ParameterError(parameter, str(path), problem, "free some or name another disk") from stopped
        raise


def settle_name(path: Path) -> None:
    """Force a file's new name to disk: without it a power cut may bring the old file back."""
    folder = os.open(Path(os.path.realpath(path)).parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    except OSError as refused:
        # Some file systems keep no directory to force; they answer that there is nothing to do.
        if refused.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(folder)


def write_secret(path: Path, text: str | bytes, mode: int) -> None:
    """A new file, forced to disk, created with its mode: at no time can anybody else open it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), mode)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(text.encode() if isinstance(text, str) else text)
        file.flush()
        os.fsync(file.fileno())


def destroy_file(file: Path) -> None:
    """Overwrite, force to disk, delete, force to disk: a crash leaves a key, or zeros that nobody takes for one."""
    descriptor = os.open(file, os.O_WRONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        os.pwrite(descriptor, bytes(os.fstat(descriptor).st_size), 0)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    file.unlink()
    settle_name(file)


@contextmanager
def locked(path: Path, *, timeout: float, parameter: str = "out") -> Iterator[None]:
    """Hold the exclusive lock of a file, `<path>.lock`, or say who holds it after `timeout` seconds.

    The lock is advisory (flock), is given up by the system when its holder dies, and is one for all names
    of a file that are links to it. Whoever holds it may remove the lock file: others see that theirs is another one.
    """
    # Not at the top: tables import this module too, on systems that have no flock.
    import fcntl

    target = Path(os.path.realpath(path))
    _check_target(target, path, parameter)
    lock = target.with_name(target.name + ".lock")
    descriptor = _open_lock(lock, path, parameter)
    try:
        deadline = time.monotonic() + timeout
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_at(lock, descriptor):
                    break
                # Its holder has removed it: whoever comes now locks another file.
                os.close(descriptor)
                descriptor = _open_lock(lock, path, parameter)
                continue
            if time.monotonic() >= deadline:
                holder = os.pread(descriptor, 64, 0).decode("ascii", "replace").strip() or "unknown"
                raise ParameterError(
                    parameter,
                    str(path),
                    f"must be free, and process {holder} has held it for all of {timeout:g} s",
                    "wait for that process or end it",
                )
            time.sleep(_BETWEEN_TRIES)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        try:
            yield
        finally:
            # By name, not by closing: a process forked meanwhile has a copy of the descriptor.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def _open_lock(lock: Path, path: Path, parameter: str) -> int:
    try:
        return os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as refused:
        problem = "must be in a directory that can be written"
        raise ParameterError(parameter, str(path), problem, f"{lock} cannot be: name another") from refused


def _is_at(lock: Path, descriptor: int) -> bool:
    """Whether an open file is still the one of this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), lock.stat())
    except FileNotFoundError:
        return False


def holder(path: Path) -> str:
    """Who holds the lock of this file (see `locked`), in words.

    It is asked for a moment, shared, so that it is never taken away from anybody.
    """
    import fcntl

    lock = Path(path.resolve()).with_name(path.resolve().name + ".lock")
    try:
        with lock.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                fcntl.flock(file, fcntl.LOCK_UN)
            except BlockingIOError:
                return f"by process {file.read(64).decode('ascii', 'replace').strip() or 'unknown'}"
    except OSError:
        return "by nobody: it has no lock file that can be read"
    return "by nobody"
