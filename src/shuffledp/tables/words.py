"""A column of words: each different text once, and which of them every row has."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import DataError
from shuffledp.tables.missing import Missing

LONGEST_TEXT = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """A column of words, one a row: `distinct[where[row]]`, with the distinct ones in the order of their first rows."""

    distinct: NDArray[np.str_]
    where: NDArray[np.int64]

    def __len__(self) -> int:
        return int(self.where.size)

    @classmethod
    def of(cls, words: Iterable[str]) -> Self:
        """A text a row.

        >>> Texts.of(["b", "a", "b"]).where.tolist()
        [0, 1, 0]
        """
        rows = words.tolist() if isinstance(words, np.ndarray) else list(words)
        places = {word: place for place, word in enumerate(dict.fromkeys(rows))}
        where = np.fromiter(map(places.__getitem__, rows), dtype=np.int64, count=len(rows))
        return cls(np.array(list(places), dtype=np.str_), where)

    def complete(self, missing: Missing, other: str | None, column: str | None, table: str) -> "Texts":
        """These texts with a word for everybody: an empty one is none.

        Args:
            missing: what people without one report.
            other: the category that takes them if the policy says so.
            column: the column's name, for a refusal.
            table: the table's name, for a refusal.
        """
        empty = np.flatnonzero(self.distinct == "")
        blank = self.where < 0
        if empty.size:
            blank |= self.where == empty[0]
        if not blank.any():
            return self
        own = missing.of_column(column)
        word = own.word(other)
        if word is None:
            raise own.refusal(blank, column, table, words=True)
        rows = np.where(blank, len(self.distinct), self.where)
        # Words keep the order of their first rows, and the public one may be there already.
        names = np.append(self.distinct, word) if self.distinct.size else np.array([word])
        _, first = np.unique(rows, return_index=True)
        order = rows[np.sort(first)]
        places = {str(name): place for place, name in enumerate(dict.fromkeys(names[order].tolist()))}
        new = np.zeros(len(names), dtype=np.int64)
        new[order] = [places[str(name)] for name in names[order]]
        return Texts(np.array(list(places), dtype=np.str_), new[rows])

    def check_lengths(self, column: str | None, table: str) -> None:
        """Refuse a column that holds more than names."""
        long = np.flatnonzero(np.char.str_len(self.distinct) > LONGEST_TEXT) if self.distinct.size else ()
        for place in long[:1]:
            row = int((self.where == place).argmax()) + 1
            problem = f"{column or 'values'} of {table} must hold at most {LONGEST_TEXT} characters"
            found = f"{len(self.distinct[place])} in row {row}"
            raise DataError("column", found, problem, "choose a column of names")
