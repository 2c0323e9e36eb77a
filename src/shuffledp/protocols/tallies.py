"""What is left of a batch's messages: whole numbers that add up, however the batch was cut into pieces."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Counts or sums over the messages of a batch, or of a piece of one.

    Whole numbers only, unsigned ones modulo 2^64: whoever counted which piece, and in which order pieces are merged,
    the result is the same to the last bit.

    >>> halves = [Tally(np.array([3, 1]), 4, 4), Tally(np.array([0, 2]), 1, 2, malformed=1)]
    >>> whole = Tally.merge(halves)
    >>> whole.counts.tolist(), whole.reports, whole.messages, whole.malformed
    ([3, 3], 5, 6, 1)
    """

    counts: NDArray[Any]
    reports: int
    """Reports that the messages came in; of a batch in pieces, one piece says it and the others say 0."""
    messages: int
    """Messages that were read, good ones and others."""
    malformed: int = 0
    """Messages that could not be read at all: they did not decrypt, or were no message."""

    @classmethod
    def merge(cls, tallies: "Iterable[Tally]") -> Self:
        """One tally of all pieces."""
        parts = list(tallies)
        if not parts or len({part.counts.shape for part in parts}) != 1:
            raise ParameterError("tallies", len(parts), "must be of one plan, and at least one", "tally every piece")
        return cls(
            np.sum([part.counts for part in parts], axis=0, dtype=parts[0].counts.dtype),
            *(sum(getattr(part, name) for part in parts) for name in ("reports", "messages", "malformed")),
        )

    def document(self) -> dict[str, Any]:
        """The tally as JSON."""
        return {
            "counts": self.counts.tolist(),
            "unsigned": self.counts.dtype.kind == "u",
            "reports": self.reports,
            "messages": self.messages,
            "malformed": self.malformed,
        }

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Self:
        """The tally that a JSON document describes."""
        counts = np.array(document["counts"], dtype=np.uint64 if document["unsigned"] else np.int64)
        return cls(counts, document["reports"], document["messages"], document["malformed"])
