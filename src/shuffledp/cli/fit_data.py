"""What `shuffledp fit` learns from: a file's columns, rows to train on and rows to measure on."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shuffledp.cli.options import bits_of
from shuffledp.cli.output import is_same_file
from shuffledp.errors import DataError, ParameterError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shuffledp.tables.reading import Reading

    Rows = tuple[NDArray[np.float64], NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class FitData:
    """Named features; without rows held out the model is measured on those it learned from."""

    names: list[str]
    training: "Rows"
    measured: "Rows"
    held_out: int


def read_fit_data(
    file: Path,
    target: str,
    features: str | None,
    holdout: float,
    seed: int | None,
    *,
    labels: bool,
    reading: "Reading | None" = None,
) -> FitData:
    """The file's rows, all finite; which are held out is drawn at random."""
    import numpy as np

    from shuffledp.sampling.permutation import uniform_permutation
    from shuffledp.tables.matrices import read_matrix
    from shuffledp.tables.names import column_names

    if not 0 <= holdout < 1:
        raise ParameterError("holdout", holdout, "must be in [0, 1)", "0.1 keeps out one row in ten")
    there = column_names(file, reading=reading)
    names = _named(there, target, features, file)
    wanted = [*names, target]
    if file.name.lower().endswith(".npy"):
        matrix = read_matrix(file, reading=reading)[:, [there.index(name) for name in wanted]]
    else:
        matrix = read_matrix(file, wanted, reading=reading)
    bad = np.argwhere(~np.isfinite(matrix))
    if bad.size:
        row, place = bad[0].tolist()
        got = f"{matrix[row, place]} in row {row + 1}"
        raise DataError("column", got, f"{wanted[place]} of {file.name} must be finite", "leave that row out")
    values: Any = matrix[:, -1]
    if labels and (values == np.round(values)).all() and np.abs(values).max() < 1 << 53:
        values = values.astype(np.int64)
    held = round(holdout * len(matrix))
    if held == len(matrix):
        raise ParameterError("holdout", holdout, f"must leave some of {held} rows to learn from", "keep out fewer")
    order = uniform_permutation(len(matrix), bits=bits_of(seed).spawn(1)[0]) if held else np.arange(len(matrix))
    last, first = np.sort(order[:held]), np.sort(order[held:])
    training = (matrix[first, :-1], values[first])
    return FitData(names, training, (matrix[last, :-1], values[last]) if held else training, held)


def _named(there: Sequence[str], target: str, features: str | None, file: Path) -> list[str]:
    from shuffledp.protocols.domains.categories import split_names

    listed = ", ".join(there[:10]) + (f" and {len(there) - 10} more" if len(there) > 10 else "")
    if target not in there:
        raise DataError("target", target, f"must be a column of {file.name}", f"it has {listed}")
    names = [name for name in there if name != target] if features is None else [*split_names(features, "features")]
    for name in names:
        if name not in there or name == target:
            raise DataError("features", name, f"must be a column of {file.name} beside the target", f"it has {listed}")
    if not names or len(set(names)) < len(names):
        raise DataError("features", ",".join(names) or "none", "must name some columns, each once", f"of {listed}")
    return names


def parse_bounds(text: str, names: Sequence[str], parameter: str) -> list[Any]:
    """One pair for all, or one for each of these features: in their order, or by name.

    >>> parse_bounds("0:1", ("a", "b"), "bounds"), parse_bounds("b=0:1,a=-2:2", ("a", "b"), "bounds")
    ([0.0, 1.0], [[-2.0, 2.0], [0.0, 1.0]])
    """
    way_out = "write for instance 0:1, or age=0:100,income=0:1e6"
    named: dict[str, list[float]] = {}
    for place, part in enumerate(text.split(",")):
        name, equals, numbers = part.rpartition("=")
        try:
            low, high = (float(number) for number in numbers.split(":"))
        except ValueError:
            raise ParameterError(parameter, part, "must be LOW:HIGH", way_out) from None
        if not equals and "," not in text:
            return [low, high]
        key = name if equals else (names[place] if place < len(names) else part)
        if key not in names or key in named:
            raise ParameterError(parameter, part, f"must be of one of {', '.join(names)}, each once", way_out)
        named[key] = [low, high]
    missing = [name for name in names if name not in named]
    if missing:
        raise ParameterError(parameter, text, f"must say what {missing[0]} may be", way_out)
    return [named[name] for name in names]


def parse_classes(text: str) -> list[float] | list[int]:
    """Two numbers, whole ones as such: labels of a file are numbers.

    >>> parse_classes("0,1"), parse_classes("0.5,1")
    ([0, 1], [0.5, 1.0])
    """
    from shuffledp.cli.domains import numbers_in

    labels = sorted(set(numbers_in(text)))
    if len(labels) != 2 or not all(abs(label) < 1 << 53 for label in labels):
        raise ParameterError("classes", text, "must be two different numbers A,B", "for instance 0,1")
    return [int(label) for label in labels] if all(label.is_integer() for label in labels) else labels


def check_files_differ(**files: Path | None) -> None:
    """Refuse to write over what is read, or one thing over another, by whatever names."""
    named = [(name, path) for name, path in files.items() if path is not None]
    for place, (name, path) in enumerate(named):
        for other, taken in named[:place]:
            if path.resolve() == taken.resolve() or is_same_file(path, taken):
                raise ParameterError(name, str(path), f"must be another file than {other}", "name another")


def check_target_path(parameter: str, path: Path) -> None:
    """Refuse a file in a directory that is not there, before any work is done."""
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise ParameterError(
            parameter, str(path), "must be a file in a directory that exists", "create it, or name another"
        )
