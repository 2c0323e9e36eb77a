"""Keys that live outside the database: what was deleted there cannot be read any more once its key is destroyed."""

import os
import re
import time
from pathlib import Path
from typing import Protocol

from shuffledp.errors import DataError, ParameterError
from shuffledp.files import settle_name
from shuffledp.randomness import RandomBits

KEY_BYTES = 32


class BatchKeys(Protocol):
    """Where keys are: a folder, or a service that keeps them."""

    def make(self, name: str) -> bytes:
        """A new key under a new name, durable when this returns."""

    def get(self, name: str) -> bytes | None:
        """The key of this name; None if there is none, or none any more."""

    def destroy(self, names: list[str]) -> None:
        """Make sure that these keys are nowhere; nothing happens to those that are gone already."""

    def names(self, prefix: str, older_than: float) -> list[str]:
        """Keys whose names begin so and that were made so many seconds ago or earlier."""


class KeyFolder:
    """One file a key, which only its owner may read; several processes may share the folder.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     keys = KeyFolder(Path(place) / "keys", bits=RandomBits.secure())
    ...     made = keys.make("ab-1")
    ...     same = keys.get("ab-1") == made
    ...     keys.destroy(["ab-1"])
    ...     same, keys.get("ab-1")
    (True, None)
    """

    def __init__(self, folder: Path, *, bits: RandomBits, must_exist: bool = False) -> None:
        self.folder, self._bits = folder, bits
        try:
            if not must_exist:
                folder.mkdir(mode=0o700, exist_ok=True)
                settle_name(folder)
            mode = folder.stat().st_mode
        except OSError as refused:
            problem = f"must be a folder that can be written ({(refused.strerror or 'refused').lower()})"
            raise ParameterError("batch_keys", str(folder), problem, "name another, or create its parent") from None
        if os.name == "posix" and mode & 0o077:
            problem = f"must be its owner's only, not have mode {mode & 0o777:o}"
            raise DataError("batch_keys", str(folder), problem, f"run: chmod 700 {folder}")

    def make(self, name: str) -> bytes:
        key: bytes = self._bits.unsigned(KEY_BYTES, 8).tobytes()
        file = os.open(self._path(name), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, key)
            os.fsync(file)
        finally:
            os.close(file)
        settle_name(self._path(name))
        return key

    def get(self, name: str) -> bytes | None:
        try:
            key = self._path(name).read_bytes()
        except FileNotFoundError:
            return None
        # Shorter after a crash in the middle of making it: nothing was ever encrypted with it.
        return key if len(key) == KEY_BYTES and any(key) else None

    def destroy(self, names: list[str]) -> None:
        gone = False
        for name in names:
            try:
                file = os.open(self._path(name), os.O_WRONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            try:
                # In place: on a disk that writes elsewhere the page below says what helps.
                os.pwrite(file, bytes(KEY_BYTES), 0)
                os.fsync(file)
            finally:
                os.close(file)
            self._path(name).unlink(missing_ok=True)
            gone = True
        if gone:
            settle_name(self._path(names[0]))

    def names(self, prefix: str, older_than: float) -> list[str]:
        found, newest = [], time.time() - older_than
        for file in self.folder.glob(f"{prefix}*"):
            try:
                if file.stat().st_mtime <= newest:
                    found.append(file.name)
            except FileNotFoundError:
                # Another process has just destroyed it.
                continue
        return found

    def _path(self, name: str) -> Path:
        assert re.fullmatch(r"[0-9a-z-]+", name)
        return self.folder / name
