"""A column of words: each different text once, and which of them every row has."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import DataError
from shuffledp.tables.opening import OpenTable, choose_column, is_npy, missing, no_rows, npy_column, wrong_kind

LONGEST_TEXT = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """A column of words, one a row: `distinct[where[row]]`, with the distinct ones in the order of their first rows."""

    distinct: NDArray[np.str_]
    where: NDArray[np.int64]

    def __len__(self) -> int:
        return int(self.where.size)


def read_texts(path: Path, column: str | None = None, *, blank: str | None = None) -> Texts:
    r"""Read one column of a CSV, Parquet or .npy file as text, exactly as it is written.

    A row without a value is refused by its number, or counts as `blank` if that is given.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "people.csv"
    ...     _ = file.write_text("colour,age\nred,1\nNA,2\nred,3\n")
    ...     texts = read_texts(file, "colour")
    >>> texts.distinct.tolist(), texts.where.tolist()
    (['red', 'NA'], [0, 1, 0])
    """
    import pyarrow as pa
    from pyarrow import compute

    cells, column = _npy_cells(path, column) if is_npy(path) else _table_cells(path, column)
    if not len(cells):
        raise no_rows(path)
    if cells.null_count:
        if blank is None:
            row = int(compute.is_null(cells).to_numpy(zero_copy_only=False).argmax()) + 1
            raise missing(column, path, row)
        cells = cells.fill_null(blank)
    encoded = cells.dictionary_encode()
    words = encoded.dictionary.to_pylist()
    where = encoded.indices.cast(pa.int64()).to_numpy(zero_copy_only=False)
    for place, word in enumerate(words):
        if len(word) > LONGEST_TEXT:
            row = int((where == place).argmax()) + 1
            problem = f"{column or 'values'} of {path.name} must hold at most {LONGEST_TEXT} characters"
            raise DataError("column", f"{len(word)} in row {row}", problem, "choose a column of names")
    return Texts(np.array(words, dtype=np.str_), where)


def _table_cells(path: Path, column: str | None) -> tuple[Any, str | None]:
    import pyarrow as pa
    from pyarrow import types

    table = OpenTable.open(path)
    name = choose_column(table.names, column, path)
    kind = pa.large_string() if table.parquet is None else table.kinds[name]
    kind = kind.value_type if types.is_dictionary(kind) else kind
    tests = (types.is_string, types.is_large_string, types.is_integer, types.is_boolean, types.is_temporal)
    if not (any(test(kind) for test in tests) or types.is_null(kind)):
        raise wrong_kind(name, path, str(kind), names=True)
    # Empty is missing; NA, null and the like are names as good as any.
    batches = table.batches([name], column_types={name: kind}, null_values=[""], strings_can_be_null=True)
    with table.blaming():
        pieces = [batch.column(0).cast(kind).cast(pa.large_string()) for batch in batches]
        return pa.chunked_array(pieces, type=pa.large_string()).combine_chunks(), name


def _npy_cells(path: Path, column: str | None) -> tuple[Any, str | None]:
    import pyarrow as pa

    values, column = npy_column(path, column)
    if values.dtype.kind not in "biuUM":
        raise wrong_kind(column, path, str(values.dtype), names=True)
    return pa.array(np.asarray(values).astype(np.str_)).cast(pa.large_string()), column
