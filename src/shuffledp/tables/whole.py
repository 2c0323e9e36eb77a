"""Files that are written whole or not at all."""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from shuffledp.errors import ParameterError

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def _check_target(target: Path, asked: Path) -> None:
    if not target.parent.is_dir():
        raise ParameterError(
            "out", str(asked), "must be in a directory that exists", f"create {target.parent} or name another"
        )
    # os.replace would put a plain file in the place of /dev/null itself.
    if target.exists() and not target.is_file():
        raise ParameterError("out", str(asked), "must be a plain file or a new name", "name a file")


def _create_beside(target: Path, asked: Path) -> tuple[int, Path]:
    # The part's name owes nothing to the target's, which may already be as long as the system allows.
    part = target.parent / f".shuffledp-{secrets.token_hex(8)}.part"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        # Not tempfile: it creates with 0600, where 0666 lets the umask decide as for any other file.
        return os.open(part, flags, 0o666), part
    except OSError as refused:
        problem = "must be in a directory that can be written"
        raise ParameterError("out", str(asked), problem, f"not {target.parent}: name another") from refused


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a binary file that appears under its name only when the block ends without an exception.

    The bytes go to a hidden file in the same directory, are forced to disk and then take the name in one
    step. An exception removes the hidden file and leaves what was there before; a killed process can leave
    the hidden `.shuffledp-*.part` behind, never half a target. A replaced file keeps its permissions, and
    a link stays a link to the file it names.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_file(Path(folder) / "plan.json") as file:
    ...         _ = file.write(b"{}")
    ...     (Path(folder) / "plan.json").read_text()
    '{}'
    """
    target = Path(os.path.realpath(path))
    _check_target(target, path)
    descriptor, part = _create_beside(target, path)
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
            raise ParameterError("out", str(path), problem, "free some or name another disk") from stopped
        raise


def write_text_whole(path: Path, text: str) -> None:
    r"""Write UTF-8 text to a file, whole or not at all; line ends are kept as they are.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_text_whole(Path(folder) / "note.txt", "ε = 1\n")
    ...     (Path(folder) / "note.txt").read_bytes()
    b'\xce\xb5 = 1\n'
    """
    with whole_file(path) as file:
        file.write(text.encode("utf-8"))
