"""Whose rows a file's are, where a person may have several."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shuffledp.errors import ParameterError

if TYPE_CHECKING:
    from shuffledp.protocols.domains.domain import Domain
    from shuffledp.protocols.people.rows import KeptRows
    from shuffledp.randomness import RandomBits
    from shuffledp.tables.reading import Reading


@dataclass(frozen=True)
class Rows:
    """The rows of a file that count, and whose they are."""

    kept: "KeptRows"

    @classmethod
    def of(
        cls,
        file: Path,
        column: str | None,
        at_most: int | None,
        bits: "RandomBits | None" = None,
        reading: "Reading | None" = None,
    ) -> "Rows | None":
        """The rows by the column that says whose they are; None where every row is a person's only one.

        Args:
            file: CSV, Parquet or .npy.
            column: the column that says whose a row is.
            at_most: how many rows of one person count.
            bits: where the choice among a person's rows comes from; the operating system's if left out.
            reading: how the file is read; a row that is nobody's is refused whatever it says of missing values.

        Raises:
            ParameterError: a person may have several rows and no column says whose they are, or the other way round.
        """
        if column is None and at_most is None:
            return None
        if column is None:
            problem = "must name the column that says whose a row is, as at most so many of each person count"
            raise ParameterError("user", None, problem, "add --user COLUMN")
        if at_most is None:
            problem = "must say how many rows of one person count"
            raise ParameterError("at_most", None, problem, f"add --at-most 5 beside --user {column}, or leave both out")
        from shuffledp.protocols.people.rows import kept_rows
        from shuffledp.randomness import RandomBits
        from shuffledp.tables.texts import read_texts

        chosen = RandomBits.secure() if bits is None else bits
        whose = read_texts(file, column, reading=None if reading is None else reading.refusing())
        return cls(kept_rows(whose.where, at_most, bits=chosen))

    @property
    def people(self) -> int:
        """How many different people the file has: as many as report."""
        return self.kept.people

    def gathered(self, domain: "Domain", checked: Any) -> Any:
        """What each person contributes, from a checked value a row."""
        return self.kept.gathered(domain, checked)
