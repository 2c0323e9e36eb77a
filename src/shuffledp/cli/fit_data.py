"""What `shuffledp fit` learns from: a file's columns, rows to train on and rows to measure on."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shuffledp.cli.options import bits_of
from shuffledp.cli.output import is_same_file
from shuffledp.errors import DataError, ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shuffledp.tables.reading import Reading

    Rows = tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class FitData:
    """Named features; without rows held out the model is measured on those it learned from."""

    names: list[str]
    training: "Rows"
    measured: "Rows"
    held_out: int

    @property
    def users(self) -> int:
        """How many people are learned from."""
        return len(self.training[1])


def read_fit_data(
    file: Path,
    target: str,
    features: str | None,
    holdout: float,
    seed: int | None,
    *,
    labels: bool,
    words: Collection[str] = (),
    reading: "Reading | None" = None,
) -> FitData:
    """The file's rows, all finite; which are held out is drawn at random.

    Args:
        file: CSV, Parquet or .npy, a row a person.
        target: the column to predict.
        features: the columns to learn from, A,B; all others if None.
        holdout: the part of rows that is kept out.
        seed: for a repeatable draw; None draws securely.
        labels: whether targets that are whole numbers are labels.
        words: columns that are read as text; the target may be one.
        reading: how the file is read.
    """
    import numpy as np

    from shuffledp.sampling.permutation import uniform_permutation
    from shuffledp.tables.complaints import CONVERT

    if not 0 <= holdout < 1:
        raise ParameterError("holdout", holdout, "must be in [0, 1)", "0.1 keeps out one row in ten")
    names = named_columns(file, target, features, reading=reading)
    for name in words:
        if name not in [*names, target]:
            raise DataError("categories", name, "must be a column to learn from", f"there are {', '.join(names[:10])}")
    try:
        matrix = read_rows(file, [*names, target], words, reading=reading, parameter="column")
    except DataError as wrong:
        if wrong.way_out != CONVERT:
            raise
        way_out = "say what it may be, --categories COLUMN=A,B, or leave it out, --features A,B"
        raise DataError(wrong.parameter, wrong.value, wrong.problem, way_out) from None
    values = targets_of(matrix[:, -1], is_text=target in words, labels=labels)
    matrix = np.asarray(matrix[:, :-1], dtype=np.float64) if set(words) <= {target} else matrix[:, :-1]
    held = round(holdout * len(matrix))
    if held == len(matrix):
        raise ParameterError("holdout", holdout, f"must leave some of {held} rows to learn from", "keep out fewer")
    order = uniform_permutation(len(matrix), bits=bits_of(seed).spawn(1)[0]) if held else np.arange(len(matrix))
    last, first = np.sort(order[:held]), np.sort(order[held:])
    training = (matrix[first], values[first])
    return FitData(names, training, (matrix[last], values[last]) if held else training, held)


def targets_of(values: Any, *, is_text: bool, labels: bool) -> Any:
    """Targets of a file as a model takes them: text, whole numbers that are labels, or numbers.

    Args:
        values: as they were read.
        is_text: whether they are text.
        labels: whether whole numbers are labels.
    """
    import numpy as np

    if is_text:
        return values.astype(str)
    if labels and (values == np.round(values.astype(np.float64))).all() and np.abs(values).max() < 1 << 53:
        return values.astype(np.int64)
    return values.astype(np.float64)


def named_columns(file: Path, target: str, features: str | None, *, reading: "Reading | None") -> list[str]:
    """The columns to learn from; a target or a column that is not there is refused."""
    from shuffledp.tables.names import column_names

    return _named(column_names(file, reading=reading), target, features, file)


def read_rows(
    file: Path, names: Sequence[str], words: Collection[str], *, reading: "Reading | None", parameter: str
) -> "NDArray[Any]":
    """Columns of a file by name, of a .npy by number: finite numbers, or text for those of `words`, then as objects.

    Raises:
        DataError: under the name `parameter`, a number is missing or not finite.
    """
    import numpy as np

    from shuffledp.tables.matrices import read_matrix
    from shuffledp.tables.names import column_names
    from shuffledp.tables.texts import read_texts

    numbers = [name for name in names if name not in words]
    matrix = np.empty((0, 0))
    if numbers and file.name.lower().endswith(".npy"):
        there = column_names(file, reading=reading)
        matrix = read_matrix(file, reading=reading)[:, [there.index(name) for name in numbers]]
    elif numbers:
        matrix = read_matrix(file, numbers, reading=reading)
    bad = np.argwhere(~np.isfinite(matrix))
    if bad.size:
        row, place = bad[0].tolist()
        got = f"{matrix[row, place]} in row {row + 1}"
        raise DataError(parameter, got, f"{numbers[place]} of {file.name} must be finite", "leave that row out")
    if len(numbers) == len(names):
        return matrix
    columns = []
    for name in names:
        if name in words:
            texts = read_texts(file, name, reading=reading)
            columns.append(np.asarray(texts.distinct, dtype=object)[texts.where])
        else:
            columns.append(matrix[:, numbers.index(name)].astype(object))
    return np.column_stack(columns)


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


def parse_classes(text: str) -> list[float] | list[int] | list[str]:
    """Two labels or more: all numbers, whole ones as such, or all words.

    >>> parse_classes("0,1"), parse_classes("0.5,1"), parse_classes("no,maybe,yes")
    ([0, 1], [0.5, 1.0], ['maybe', 'no', 'yes'])
    """
    from shuffledp.cli.domains import numbers_in
    from shuffledp.protocols.domains.categories import split_names
    from shuffledp.tables.spelling import is_number

    names, labels = split_names(text, "classes"), sorted(set(numbers_in(text)))
    different = len(labels or set(names))
    is_mixed = not labels and any(is_number(name) for name in names)
    if is_mixed or different < max(2, len(names)) or not all(abs(label) < 1 << 53 for label in labels):
        wanted = "must be two or more different labels, all numbers or all words"
        raise ParameterError("classes", text, wanted, "for instance 0,1 or no,yes")
    if not labels:
        return sorted(names)
    return [int(label) for label in labels] if all(label.is_integer() for label in labels) else labels


def parse_categories(text: str) -> dict[str, list[str]]:
    """Public lists of what columns may be: column=a,b,c, and further columns after another comma.

    >>> parse_categories("city=Oslo,Rome,size=s,m,l")
    {'city': ['Oslo', 'Rome'], 'size': ['s', 'm', 'l']}
    """
    from shuffledp.protocols.domains.categories import split_names

    way_out = "write for instance city=Oslo,Rome,size=s,m,l"
    found: dict[str, list[str]] = {}
    for part in split_names(text, "categories"):
        name, equals, level = part.partition("=")
        if equals and name and level and name not in found:
            found[name] = [level]
        elif equals or not found:
            raise ParameterError("categories", part, "must be COLUMN=A,B,C, each column once", way_out)
        else:
            found[next(reversed(found))].append(part)
    return found


def declared_targets(text: str | None, model_class: Any) -> dict[str, Any]:
    """What an estimator of numbers is told about them: their bounds, or how large a count may be.

    Raises:
        ParameterError: nothing was said, or a count's range does not begin at 0.
    """
    if text is None:
        problem = "must say what the target may be: it cannot be read from people's rows unpaid"
        raise ParameterError("target_bounds", None, problem, "add --target-bounds -1:1, for instance")
    low, high = parse_bounds(text, (), "target_bounds")
    if not hasattr(model_class, "max_target"):
        return {"target_bounds": [low, high]}
    if low != 0:
        raise ParameterError("target_bounds", text, "must begin at 0 for counts", "write 0:HIGH")
    return {"max_target": high}


def words_of(target: str, classes: Any, categories: Mapping[str, Any] | None) -> set[str]:
    """Columns that are read as text: those of categories, and labels that are words."""
    labels = {target} if classes and isinstance(classes[0], str) else set()
    return {*labels, *(categories or {})}


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
