"""A column of words: each different text once, and which of them every row has."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import DataError
from shuffledp.tables.opening import (
    blaming_csv,
    blaming_parquet,
    by_format,
    choose_column,
    missing,
    no_rows,
    npy_column,
    open_csv,
    parquet_column,
    read_csv_schema,
    wrong_kind,
)

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

    asked = column
    cells, column = by_format(
        path,
        npy=lambda: _npy_cells(path, asked),
        parquet=lambda: _parquet_cells(path, asked),
        csv=lambda: _csv_cells(path, asked),
    )
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


def _csv_cells(path: Path, column: str | None) -> tuple[Any, str | None]:
    import pyarrow as pa

    names, _ = read_csv_schema(path)
    name = choose_column(names, column, path)
    # Empty is missing; NA, null and the like are names as good as any.
    convert = {"include_columns": [name], "column_types": {name: pa.large_string()}}
    nulls = {"null_values": [""], "strings_can_be_null": True}
    with blaming_csv(path, names):
        # In a file of one column a blank line is a value left out; in a wider one it is no row at all.
        reader = open_csv(path, skip_blank=len(names) > 1, **convert, **nulls)
        return _joined(batch.column(0) for batch in reader), name


def _parquet_cells(path: Path, column: str | None) -> tuple[Any, str | None]:
    import pyarrow as pa
    from pyarrow import types

    file, name, kind = parquet_column(path, column)
    kind = kind.value_type if types.is_dictionary(kind) else kind
    tests = (types.is_string, types.is_large_string, types.is_integer, types.is_boolean, types.is_temporal)
    if not (any(test(kind) for test in tests) or types.is_null(kind)):
        raise wrong_words(name, path, str(kind))
    with blaming_parquet(path):
        batches = file.iter_batches(columns=[name])
        return _joined(batch.column(0).cast(kind).cast(pa.large_string()) for batch in batches), name


def _npy_cells(path: Path, column: str | None) -> tuple[Any, str | None]:
    import pyarrow as pa

    values, column = npy_column(path, column)
    if values.dtype.kind not in "biuUM":
        raise wrong_words(column, path, str(values.dtype))
    return pa.array(np.asarray(values).astype(np.str_)).cast(pa.large_string()), column


def _joined(pieces: Iterator[Any]) -> Any:
    import pyarrow as pa

    return pa.chunked_array(list(pieces), type=pa.large_string()).combine_chunks()


def wrong_words(column: str | None, path: Path, kind: str) -> DataError:
    """Blame a column that holds no names.

    >>> print(wrong_words("length", Path("people.parquet"), "double"))
    column length of people.parquet must hold names, whole numbers or dates, got double: choose another column.
    """
    blamed = wrong_kind(column, path, kind)
    problem = blamed.problem.replace("integers, floats or booleans", "names, whole numbers or dates")
    return DataError("column", blamed.value, problem, "choose another column")
