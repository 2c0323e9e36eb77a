"""What `shuffledp fit` learns from where rows are many: a file in pieces, prepared and asked by tasks of an engine."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shuffledp.cli.engine_options import EngineAsked, in_words
from shuffledp.cli.fit_data import named_columns, read_rows, targets_of
from shuffledp.engines.sources import Source, Stretch
from shuffledp.errors import ParameterError
from shuffledp.files import is_there
from shuffledp.tables.pieces import Cut, PieceReader, cut

if TYPE_CHECKING:
    from shuffledp.tables.reading import Reading

HELD = 1 << 23
"""So many numbers of a file are read whole, and learned from in memory."""

# Numbers that are read at a time.
_CELLS = 1 << 17
# What a number of a file takes while a fit in memory reads, checks and prepares it, in bytes.
_CELL_BYTES = 40


@dataclass(frozen=True, eq=False)
class FitSource(Source):
    """A file's rows for a fit: blocks are features and targets as they came.

    Attributes:
        cut: the file's pieces.
        reading: how the file is read.
        names: of features.
        target: the column to predict.
        words: columns that are text.
        labels: whether targets that are whole numbers are labels.
    """

    cut: Cut
    reading: "Reading"
    names: Sequence[str]
    target: str
    words: frozenset[str]
    labels: bool

    @property
    def rows(self) -> int:
        return self.cut.rows

    @property
    def unit(self) -> int:
        return self.cut.each

    @property
    def row_bytes(self) -> int:
        text = 100 * len(self.words)
        return _CELL_BYTES * (len(self.names) + 1) + text

    def part(self, first: int, last: int) -> "FitPart":
        return FitPart(self, first, last)


@dataclass(frozen=True, eq=False)
class FitPart(Stretch):
    """Pieces of the file that one task reads: whole ones."""

    source: FitSource
    first: int
    last: int

    def blocks(self, rows: int) -> Iterator[tuple[int, Any]]:
        import numpy as np

        source = self.source
        source.cut.check_unchanged()
        reader = PieceReader(source.cut, source.reading, {})
        for piece in range(self.first // source.unit, -(-self.last // source.unit)):
            try:
                matrix = read_rows(
                    source.cut.path,
                    [*source.names, source.target],
                    source.words,
                    reading=reader.reading(piece),
                    parameter="column",
                )
            except ParameterError as refused:
                raise reader.blamed(piece, refused) from None
            targets = targets_of(matrix[:, -1], is_text=source.target in source.words, labels=source.labels)
            numbers = set(source.words) <= {source.target}
            features = np.asarray(matrix[:, :-1], dtype=np.float64) if numbers else matrix[:, :-1]
            yield source.cut.rows_of(piece)[0], (features, targets)
        source.cut.check_unchanged()


@dataclass(frozen=True, eq=False)
class FilePeople:
    """Everybody in a file, for `fit_elsewhere`.

    Attributes:
        source: their rows.
        engine: where they are prepared and asked.
        seed: makes a run repeatable, so that it protects nobody.
    """

    source: FitSource
    engine: EngineAsked
    seed: int | None

    @property
    def users(self) -> int:
        """How many there are."""
        return self.source.rows

    @property
    def names(self) -> Sequence[str]:
        """The names of their features."""
        return self.source.names

    # Like `FitData`: nobody is kept out, as nothing is measured on people's rows.
    held_out = 0

    @contextmanager
    def dealt(self, solver: Any, prepared: Any, make: Any, questions: tuple[str, ...]) -> Iterator[Any]:
        """Prepare everybody, and put them in a random order for as long as the block lasts."""
        from shuffledp.engines import JobKey
        from shuffledp.engines.fitting import DealtPeople

        key = JobKey.generate() if self.seed is None else JobKey.seeded(self.seed)
        with self.engine.open() as engine:
            found = DealtPeople(
                engine,
                self.source,
                make(prepared),
                key=key,
                fingerprint=solver.fingerprint,
                width=prepared.dimension,
                questions=questions,
            )
            try:
                yield found
            finally:
                found.close()


def people_in_pieces(
    file: Path,
    target: str,
    features: str | None,
    seed: int | None,
    engine: EngineAsked,
    *,
    labels: bool,
    words: Collection[str],
    reading: "Reading",
    with_truth: bool,
) -> FilePeople | None:
    """The people of a file that is too large to be read whole; None where it is not, or cannot be cut.

    Args:
        file: CSV, Parquet or .npy, a row a person.
        target: the column to predict.
        features: the columns to learn from, A,B; all others if None.
        seed: for a repeatable run.
        engine: where they are asked.
        labels: whether targets that are whole numbers are labels.
        words: columns that are read as text.
        reading: how the file is read.
        with_truth: whether the model is measured on people's rows, which are then all in memory.

    Raises:
        ParameterError: all rows are needed at once, and do not fit into the memory that was allowed.
    """
    if not is_there(file) or (file.suffix.lower() != ".parquet" and file.stat().st_size <= HELD):
        return None
    names = named_columns(file, target, features, reading=reading)
    rows = max(1, _CELLS // (len(names) + 1))
    found = cut(file, reading, 1 << (rows.bit_length() - 1))
    cells = 0 if found is None else found.rows * (len(names) + 1)
    if found is None or cells <= HELD:
        return None
    if with_truth:
        needs = cells * _CELL_BYTES
        if needs > engine.memory:
            problem = f"must hold all rows beside --with-truth, about {in_words(needs)}"
            raise ParameterError("memory", in_words(engine.memory), problem, "leave --with-truth out, or allow more")
        return None
    return FilePeople(FitSource(found, reading, names, target, frozenset(words), labels), engine, seed)
