"""What a plan says to whoever runs it on more people than memory holds: in pieces, and by its law in sums."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.errors import ParameterError
from shuffledp.messages import Batch
from shuffledp.protocols.described import DescribedPlan
from shuffledp.protocols.tallies import Tally
from shuffledp.randomness import RandomBits

# A message while it is made: itself, its coins and its place.
_MESSAGE_BYTES = 32


class Streaming(DescribedPlan):
    """The part of a plan's contract that is about people who come in pieces."""

    __slots__ = ()

    in_pieces: ClassVar[bool] = False
    """Whether people may come in pieces: each cohort joins one batch, which it fills, and what somebody sends depends
    on nobody else. Where not, everybody's values are held at once."""
    is_mixed: ClassVar[bool] = False
    """Whether people are asked in a random order (`in_order`), so that cohorts are random groups."""
    adds_up: ClassVar[bool] = False
    """Whether `summary` and `sample_from` draw answers from their law, people coming in pieces."""

    @property
    def tally_bytes(self) -> int:
        """How many bytes the largest tally of a batch takes."""
        return 8

    @property
    def user_bytes(self) -> int:
        """How many bytes the messages of one person take while they are made, about."""
        return int(_MESSAGE_BYTES * self.messages_per_user_mean)

    @property
    def held_bytes(self) -> int:
        """How many bytes a run takes that makes everybody's messages and holds them at once, about."""
        return self.users * self.user_bytes

    @property
    def summary_bytes(self) -> int:
        """How many bytes a summary takes."""
        return self.tally_bytes

    def summary(self, values: ArrayLike, *, bits: RandomBits) -> Tally:
        """All that the law of the answer needs to know of some people: whole numbers that add up over all.

        Args:
            values: encoded, an entry or a row a person; of any number of people.
            bits: what people draw for themselves before anything is added up, such as rounding.

        Raises:
            ParameterError: values are outside the domain, or the plan has no such summary.
        """
        raise self._no_sums()

    def sample_from(self, summary: Tally, *, bits: RandomBits) -> Any:
        """An answer drawn from the law of the whole protocol on people of whom this is the merged summary.

        Args:
            summary: of all people of the plan.
            bits: where the noise of all of them together comes from.

        Raises:
            BatchError: they are too few.
        """
        raise self._no_sums()

    def _no_sums(self) -> ParameterError:
        problem = "must have a law that adds up over people"
        return ParameterError("protocol", self.protocol, problem, "hold all values, and ask for sample_estimate")


class LawOfSums(Streaming):
    """A plan whose answer by law depends on people's values by their summary only."""

    __slots__ = ()

    adds_up: ClassVar[bool] = True

    def sample_estimate(self, values: ArrayLike, *, bits: RandomBits) -> Any:
        """An answer drawn from the law of the whole protocol on these values, without messages."""
        return self.sample_from(self.summary(values, bits=bits), bits=bits)


# Messages that are made at once where a law is that of the messages themselves.
_AT_ONCE = 1 << 20


def rows_at_once(plan: Any) -> int:
    """People whose messages are made at once, for a plan whose law is that of the messages themselves."""
    return max(1, int(_AT_ONCE / max(1.0, plan.messages_per_user_mean)))


def tallied(plan: Any, values: Any, *, bits: RandomBits) -> Tally:
    """The tally of the messages of people with these checked values, of which few are held at once."""
    rows = rows_at_once(plan)
    found: list[Tally] = []
    for start in range(0, max(1, len(values)), rows):
        reports = plan.randomize(values[start : start + rows], bits=bits)
        found = [Tally.merge((*found, plan.tally(Batch(reports.payloads, len(reports), reports.labels))))]
    return found[0]


def summed(counts: ArrayLike, people: int) -> Tally:
    """Whole numbers over so many people as a summary."""
    return Tally(np.atleast_1d(np.asarray(counts)), people, 0)
