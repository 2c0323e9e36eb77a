"""What is left of a batch's messages: whole numbers that add up, however the batch was cut into pieces."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import BrokenBatchError, DataError, ParameterError
from shuffledp.messages import Batch
from shuffledp.protocols.states import RESTORE, is_whole

_NUMBERS = ("reports", "messages", "malformed")


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
        """One tally of all pieces.

        Raises:
            ParameterError: there is none, or they are of different plans, which have another shape or signs.
        """
        parts = list(tallies)
        if len({(part.counts.shape, part.counts.dtype.kind) for part in parts}) != 1:
            raise ParameterError("tallies", len(parts), "must be of one plan, and at least one", "tally every piece")
        # Integers of one kind: nothing goes through floats, which hold whole numbers up to 2^53 only.
        counts = parts[0].counts.copy()
        for part in parts[1:]:
            counts += part.counts
        return cls(counts, *(sum(getattr(part, name) for part in parts) for name in _NUMBERS))

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
    def from_document(cls, document: Any) -> Self:
        """The tally that a JSON document describes; whether it is one of a certain plan, the plan says.

        Args:
            document: what `document` wrote, perhaps on another machine.

        Raises:
            DataError: a field is missing or is no whole number, or one that no count can be.
        """
        if not isinstance(document, Mapping):
            raise DataError("tally", type(document).__name__, "must be an object", RESTORE)
        for name in _NUMBERS:
            number: Any = document.get(name)
            if not is_whole(number) or not 0 <= number < 1 << 63:
                raise DataError(f"tally.{name}", number, "must be a whole number >= 0", RESTORE)
        unsigned = document.get("unsigned")
        if not isinstance(unsigned, bool):
            raise DataError("tally.unsigned", unsigned, "must be true or false", RESTORE)
        counts = _counts(document.get("counts"), np.uint64 if unsigned else np.int64)
        return cls(counts, *(int(document[name]) for name in _NUMBERS))


class Tallier(Protocol):
    """What makes a tally of messages: of a plan, or of as little as is needed to count for it in another process."""

    def __call__(self, batch: Batch, malformed: int = 0) -> Tally:
        """What is left of the messages of a batch, or of a piece of one; `malformed` ones could not be read."""
        ...


def nothing_came(users: int) -> BrokenBatchError:
    """The refusal of a batch in which no message can be read: what is left would be noise's mean alone."""
    return BrokenBatchError(
        f"messages of {users} users must be at least one that can be read, got none: they were lost or altered on the "
        "way; the batch is void."
    )


def _counts(given: Any, kind: type[np.integer[Any]]) -> NDArray[Any]:
    """Lists of whole numbers as an array of this kind, exactly."""
    limits = np.iinfo(kind)
    counts = np.array(given if isinstance(given, list) else [], dtype=object)
    # Lists of different lengths stay lists in the array.
    bad = next((each for each in counts.flat if type(each) is not int or not limits.min <= each <= limits.max), None)
    if not counts.size or bad is not None:
        problem = f"must be lists of whole numbers in {limits.min}..{limits.max}"
        raise DataError("tally.counts", type(given).__name__ if bad is None else bad, problem, RESTORE)
    return counts.astype(kind)
