"""What all binary sums share: values in {0, 1}, the same references, bounds on the error."""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.answer_tails import answers_bound
from shuffledp.accounting.curves import smallest_integer
from shuffledp.accounting.laws import IntegerLaw
from shuffledp.errors import BrokenBatchError, DataError, InfeasibleError, ParameterError
from shuffledp.messages import Batch, Reports
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum.paper import paper_standard_error
from shuffledp.protocols.counted import counted_in_runs
from shuffledp.protocols.domains.domain import column_of, refuse_first
from shuffledp.protocols.domains.summed import BITS
from shuffledp.protocols.error_bounds import CONFIDENCE, with_errors
from shuffledp.protocols.fields import noise
from shuffledp.protocols.rounds import ExactRound, RoundPlan
from shuffledp.protocols.streaming import LawOfSums, summed
from shuffledp.protocols.tallies import Tally, nothing_came
from shuffledp.randomness import RandomBits
from shuffledp.references.curator import CuratorDiscreteLaplace
from shuffledp.references.local import LocalRandomizedResponse

SMALLEST_DELTA = 1e-20
# Noise messages that a user may have to draw, on average.
LARGEST_MEAN = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BinarySumPlan(RoundPlan):
    """A count of users whose value is 1."""

    protocol: ClassVar[str] = "binary-sum"
    file_command: ClassVar[str] = "sum"
    has_one_pair: ClassVar[bool] = False
    """Whether batches of all sizes show the same pair."""
    title = "A private count"
    unit = " users"
    domain = BITS

    def reference(self) -> dict[str, float | None]:
        return {
            "paper_standard_error": paper_standard_error(self.users, self.privacy),
            "central_standard_error": CuratorDiscreteLaplace(privacy=self.privacy).standard_error,
            "local_standard_error": LocalRandomizedResponse(users=self.users, privacy=self.privacy).standard_error,
        }

    def check_values(self, values: ArrayLike) -> NDArray[np.uint8]:
        """The values as 0s and 1s in bytes."""
        array = column_of(values)
        if array.dtype.kind == "f" and np.isnan(array).any():
            row = int(np.flatnonzero(np.isnan(array))[0])
            raise DataError("values", f"NaN in row {row + 1}", "must be 0 or 1", "drop or fill missing values first")
        if array.dtype.kind not in "buif":
            problem = "must be booleans or numbers"
            raise DataError("values", f"dtype {array.dtype}", problem, "convert them, e.g. x.astype(int)")
        bad = (array != 0) & (array != 1)
        refuse_first(
            array,
            bad,
            "must be 0 or 1",
            "a binary sum counts ones; recode the column, or add limits to sum numbers (--low A --high B)",
        )
        return array.astype(np.uint8)

    @property
    def spread(self) -> float:
        """The squared ranges of what each user's bit adds to the estimate, added up: for Hoeffding's bound."""
        return float(self.users)

    @property
    def added_noise(self) -> IntegerLaw | None:
        """The law of what is added to the count whatever the data; None where noise is in the bits themselves."""
        return None

    def sample_sums(self, ones: NDArray[np.int64], batches: int, *, bits: RandomBits) -> NDArray[np.float64]:
        """What the estimates of so many batches add up to, where so many of all their bits are 1: without messages."""
        raise ParameterError("method", self.method, "must have sums with a simple law", "take shares, coins or rr")

    def true_value(self, values: ArrayLike) -> float:
        return float(np.sum(self.check_values(values), dtype=np.int64))

    @property
    def question(self) -> str:
        return f"count the ones among {self.users:,} users"

    @property
    def neighbours(self) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]:
        zero, one = np.array([0], dtype=np.uint8), np.array([1], dtype=np.uint8)
        return zero, one, zero


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedBits(LawOfSums, BinarySumPlan):
    """A binary sum whose messages are bits: all that a batch says is how many are 1 and how many are 0."""

    bits_per_message = 1
    sends_own: ClassVar[bool] = True
    """Whether every user sends a message or more, whatever its bit: fewer messages than users were lost for certain."""

    @property
    def expected(self) -> int | None:
        """Messages of a whole batch; None where their number is random."""
        return None

    @abstractmethod
    def _from_counts(self, ones: int, zeros: int) -> float:
        """The estimate from a batch with so many ones and zeros."""

    @abstractmethod
    def _sample(self, total: int, bits: RandomBits) -> float:
        """The estimate where so many users have a 1, drawn from its law without making messages."""

    def tally(self, batch: Batch, malformed: int = 0) -> Tally:
        """How many messages are 0, and how many are 1."""
        seen = np.array([np.count_nonzero(batch.payloads == bit) for bit in (0, 1)], dtype=np.int64)
        return Tally(seen, batch.reports, len(batch), malformed)

    def estimate(self, tally: Tally, *, simulated: bool = False) -> Any:
        self.check_reports(tally.reports)
        zeros, ones = tally.counts.tolist()
        if self.sends_own and not ones + zeros:
            raise nothing_came(self.users)
        dropped = self._dropped(tally, ones, zeros)
        return with_errors(self, self._from_counts(ones, zeros), dropped=dropped, simulated=simulated)

    def _dropped(self, tally: Tally, ones: int, zeros: int) -> int:
        """How many messages of a whole batch were neither 1 nor 0; all that were expected and are not.

        A lost or malformed message could have been a 1 or a 0: each widens the bound.
        """
        if self.expected is None:
            missing = self.users - ones - zeros if self.sends_own else 0
            return max(tally.messages + tally.malformed - ones - zeros, missing)
        if tally.messages > self.expected:
            raise BrokenBatchError(
                f"messages must be {self.expected}, got {tally.messages}: "
                "somebody sent more than the plan; a second try costs its privacy again."
            )
        # A liar's filler that counts may hide a lost message: what could not be read is missing in any case.
        return max(self.expected - ones - zeros, tally.malformed)

    def summary(self, values: ArrayLike, *, bits: RandomBits) -> Tally:
        array = self.check_values(values)
        return summed(array.sum(dtype=np.int64), array.size)

    def sample_from(self, summary: Tally, *, bits: RandomBits) -> Any:
        self.check_reports(summary.reports)
        return with_errors(self, self._sample(int(summary.counts[0]), bits), simulated=not bits.is_secure)

    def summaries(self, reports: Reports, trials: int) -> NDArray[np.int64]:
        """The numbers of ones and of other messages, which is all that a permuted multiset of bits shows."""
        ones = counted_in_runs(reports.payloads == 1, reports, trials)
        return np.stack((ones, reports.sizes.reshape(trials, -1).sum(axis=1) - ones), axis=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomAnswers(ExactRound, CountedBits):
    """Every user answers at random with `random_probability`: what is read is divided by the part that is not."""

    random_probability: float = noise("(0, 1)")

    @property
    @abstractmethod
    def _variance(self) -> float:
        """The variance of the number of ones: every user's answer has the same, whatever its bit."""

    @property
    @abstractmethod
    def _answers(self) -> tuple[float, ...]:
        """The law of a random answer's ones, from 0 on."""

    @property
    def message_influence(self) -> float:
        return 1 / (1 - self.random_probability)

    @property
    def standard_error(self) -> float:
        return math.sqrt(self._variance) / (1 - self.random_probability)

    @property
    def error_bound(self) -> float:
        bound = answers_bound(self.users, self.random_probability, self._answers, 1 - CONFIDENCE)
        return bound / (1 - self.random_probability)


def check_delta(privacy: Privacy) -> None:
    """Refuse a delta below what windows and tables leave out."""
    if privacy.delta < SMALLEST_DELTA:
        raise InfeasibleError(
            "delta", privacy.delta, f"must be >= {SMALLEST_DELTA:g} for this method", "choose a larger delta, or coins"
        )


def check_drawn(mean: float) -> None:
    """Refuse noise messages of one user that are too many to be drawn, by their mean."""
    if mean > LARGEST_MEAN:
        raise InfeasibleError(
            "messages",
            f"{mean:.3g} on average",
            f"would be more than {LARGEST_MEAN} a user",
            "take more users, a larger epsilon or delta, or the method coins or shares",
        )


def smallest_cap(tail: Callable[[int], float], limit: float) -> int:
    """The smallest number of messages that a draw passes with at most this probability."""
    return smallest_integer(lambda cap: tail(cap) <= limit, 0)
