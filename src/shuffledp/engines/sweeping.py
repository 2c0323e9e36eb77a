"""Sweeps: many cells, each a measurement of its own, on an engine, and gone on with after a stop.

A cell is numbers and words that decide what is measured, its seed among them; so what becomes of it does not depend on
which others are asked for, nor on the order. What is done is appended to a file, a line a cell, whole or not at all. A
line is known by its cell and by the code that measured it: other code measures again.
"""

import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from shuffledp.engines.contract import Engine
from shuffledp.errors import DataError, ParameterError
from shuffledp.files import other_version, plain

C = TypeVar("C")

Done = Callable[[int, int], None]
"""Called with how many cells are done, and of how many."""

_SCHEMA = 1
# Cells that are handed out together, for each that runs at once: after so many what is done is written.
_TOGETHER = 4


@lru_cache(maxsize=8)
def code_fingerprint(*files: str) -> str:
    """What the package's source is known by, and these files beside it: another one may measure something else."""
    found = hashlib.sha256()
    package = Path(__file__).parents[1]
    for path in (*sorted(package.rglob("*.py")), *map(Path, files)):
        content = path.read_bytes()
        found.update(f"{path.name} {len(content)}\n".encode())
        found.update(content)
    return found.hexdigest()


def cell_fingerprint(cell: Any, code: str) -> str:
    """What a cell's result is known by: the cell's kind and parameters, and the code.

    >>> cell_fingerprint({"seed": 1, "users": 2}, "") == cell_fingerprint({"users": 2, "seed": 1}, "")
    True
    """
    parameters = asdict(cell) if is_dataclass(cell) and not isinstance(cell, type) else cell
    text = json.dumps([type(cell).__name__, plain(parameters), code], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


class Finished:
    """A file of finished cells: lines that were written whole.

    Args:
        path: the file; None keeps nothing.
        resume: whether cells that are in it already are known; without, a file that is there is refused.

    Raises:
        ParameterError: the file is there, and nobody said that it is to be gone on with.
        DataError: it is no such file.
    """

    def __init__(self, path: Path | None, *, resume: bool) -> None:
        self._path, self._found = path, {}
        if path is None or not path.exists():
            return
        if not resume:
            raise ParameterError("cells", str(path), "must be a new file", "go on with it by --resume, or name another")
        content = path.read_bytes()
        whole = 0
        for line in content.splitlines(keepends=True):
            document = _line(line)
            if document is None:
                break
            self._found[document["cell"]] = document["result"]
            whole += len(line)
        if content and not whole:
            raise DataError("cells", str(path), "must be lines of finished cells", "name another file")
        if whole < len(content):
            # Whoever wrote the last line was stopped in the middle of it.
            with path.open("r+b") as file:
                file.truncate(whole)

    def __contains__(self, fingerprint: str) -> bool:
        return fingerprint in self._found

    def __getitem__(self, fingerprint: str) -> Any:
        return self._found[fingerprint]

    def add(self, results: Mapping[str, Any]) -> None:
        """Append what became of some cells, and have it on the disk."""
        self._found |= results
        if self._path is None:
            return
        lines = b"".join(_written(fingerprint, result) for fingerprint, result in results.items())
        with self._path.open("ab") as file:
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())


def _written(fingerprint: str, result: Any) -> bytes:
    body = json.dumps({"schema": _SCHEMA, "cell": fingerprint, "result": result}, sort_keys=True)
    return f"{zlib.crc32(body.encode()):08x} {body}\n".encode()


def _line(line: bytes) -> dict[str, Any] | None:
    """What a line says; None where it is not whole."""
    check, _, body = line.partition(b" ")
    if not line.endswith(b"\n") or check != f"{zlib.crc32(body[:-1]):08x}".encode():
        return None
    document: dict[str, Any] = json.loads(body)
    if document.get("schema") != _SCHEMA:
        raise other_version("cells.schema", document.get("schema"), _SCHEMA, "name another file")
    return document


@dataclass(frozen=True, slots=True)
class _Measuring:
    """The task of a cell."""

    run: Callable[[Any], Any]

    def __call__(self, numbered: tuple[int, Any]) -> dict[int, Any]:
        number, cell = numbered
        return {number: json.loads(json.dumps(self.run(cell), default=_plain_number))}


def _plain_number(value: Any) -> Any:
    """NumPy's numbers as JSON's; whatever else is no JSON is refused."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise ParameterError("result", type(value).__name__, "must be what JSON can hold", "answer numbers and words")


def _both(several: Iterable[dict[int, Any]]) -> dict[int, Any]:
    return {number: result for each in several for number, result in each.items()}


def sweep(
    engine: Engine,
    cells: Sequence[C],
    run: Callable[[C], Any],
    *,
    finished: Finished | None = None,
    code: str | None = None,
    progress: Done | None = None,
) -> list[Any]:
    """What becomes of every cell, in the cells' order; those that are finished are not run again.

    Args:
        engine: where cells run.
        cells: dataclasses or mappings of numbers and words; the longest first, so that nobody waits for one.
        run: what is done with a cell, a function of a module; it answers what JSON can hold.
        finished: where results are kept; nowhere if left out.
        code: what the code is known by; the package's own source if left out.
        progress: called after every few cells.

    Returns:
        A result for each cell, as JSON has it: the same whether it was run now or before.
    """
    kept = Finished(None, resume=False) if finished is None else finished
    of_code = code_fingerprint() if code is None else code
    names = [cell_fingerprint(cell, of_code) for cell in cells]
    # A cell that is asked for twice is run once.
    missing = [number for number, name in enumerate(names) if name not in kept and names.index(name) == number]
    done, together = len(cells) - len(missing), _TOGETHER * engine.tasks_at_once
    for start in range(0, len(missing), together):
        some = missing[start : start + together]
        found = engine.fold([(number, cells[number]) for number in some], _Measuring(run), _both)
        kept.add({names[number]: found[number] for number in some})
        done += len(some)
        if progress is not None:
            progress(done, len(cells))
    return [kept[name] for name in names]
