"""What all binary sums share: values in {0, 1}, the same references, bounds on the error."""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.curves import smallest_integer, smallest_real
from shuffledp.accounting.laws import IntegerLaw
from shuffledp.errors import BrokenBatchError, DataError, InfeasibleError, ParameterError
from shuffledp.estimates import Estimate
from shuffledp.messages import Batch, Reports
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum.paper import paper_standard_error
from shuffledp.protocols.domains.domain import column_of, refuse_first
from shuffledp.protocols.domains.summed import BITS, Bits
from shuffledp.protocols.rounds import RoundPlan
from shuffledp.protocols.tallies import Tally
from shuffledp.randomness import RandomBits
from shuffledp.references.curator import CuratorDiscreteLaplace
from shuffledp.references.local import LocalRandomizedResponse

CONFIDENCE = 0.95
SMALLEST_DELTA = 1e-20


@lru_cache(maxsize=256)
def _error_bound(plan: "BinarySumPlan") -> float:
    return plan.error_bound


@dataclass(frozen=True, slots=True, kw_only=True)
class BinarySumPlan(RoundPlan):
    """A count of users whose value is 1."""

    protocol: ClassVar[str] = "binary-sum"
    has_one_pair: ClassVar[bool] = False
    """Whether batches of all sizes show the same pair."""

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
        if array.dtype.kind not in "bui":
            problem = "must be booleans or whole numbers"
            raise DataError("values", f"dtype {array.dtype}", problem, "convert them, e.g. x.astype(int)")
        bad = (array != 0) & (array != 1)
        refuse_first(array, bad, "must be 0 or 1", "a binary sum counts ones; recode the column")
        return array.astype(np.uint8)

    @property
    def domain(self) -> Bits:
        return BITS

    @property
    def unit(self) -> str:
        return " users"

    @property
    def bits_per_message(self) -> int:
        return 1

    def tally(self, batch: Batch, malformed: int = 0) -> Tally:
        """How many messages are 0, and how many are 1."""
        seen = np.array([np.count_nonzero(batch.payloads == bit) for bit in (0, 1)], dtype=np.int64)
        return Tally(seen, batch.reports, len(batch), malformed)

    def _read_bits(self, tally: Tally, expected: int | None = None) -> tuple[int, int, int]:
        """Ones and zeros of a whole batch, and how many messages were neither; all that were `expected` and are not.

        A lost or malformed message could have been a 1 or a 0: each widens the bound.
        """
        self.check_reports(tally.reports)
        zeros, ones = tally.counts.tolist()
        if expected is None:
            return ones, zeros, tally.messages + tally.malformed - ones - zeros
        if tally.messages > expected:
            raise BrokenBatchError(
                f"messages must be {expected}, got {tally.messages}: "
                "somebody sent more than the plan; a second try costs its privacy again."
            )
        # A liar's filler that counts may hide a lost message: what could not be read is missing in any case.
        return ones, zeros, max(expected - ones - zeros, tally.malformed)

    @abstractmethod
    def estimate(self, tally: Tally, *, simulated: bool = False) -> Estimate: ...

    @abstractmethod
    def sample_estimate(self, values: ArrayLike, *, bits: RandomBits) -> Estimate: ...

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
    def title(self) -> str:
        return "A private count"

    @property
    def neighbours(self) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]:
        zero, one = np.array([0], dtype=np.uint8), np.array([1], dtype=np.uint8)
        return zero, one, zero

    def summaries(self, reports: Reports, trials: int) -> NDArray[np.int64]:
        """What the adversary can use of each of `trials` equal runs: a row of numbers a run.

        The numbers of ones and of other messages, which is all that a permuted multiset of bits shows.
        """
        starts = np.concatenate(([0], np.cumsum(reports.sizes.reshape(trials, -1).sum(axis=1))))
        ones_before = np.concatenate(([0], np.cumsum(reports.payloads == 1, dtype=np.int64)))
        ones = np.diff(ones_before[starts])
        return np.stack((ones, np.diff(starts) - ones), axis=1)

    def _total(self, values: ArrayLike) -> int:
        """The true sum of a whole batch's values."""
        array = self.check_values(values)
        self.check_reports(array.size)
        return int(array.sum(dtype=np.int64))

    def _estimate(self, value: float, *, dropped: int = 0, simulated: bool = False) -> Estimate:
        return Estimate(
            value=value,
            standard_error=self.standard_error,
            bound=_error_bound(self) + dropped * self.message_influence,
            confidence=CONFIDENCE,
            dropped=dropped,
            simulated=simulated,
        )


def bennett_bound(variance: float, largest: float) -> float:
    """A bound that holds with CONFIDENCE for sums of independent centred terms of at most `largest`.

    Bennett's inequality: P[|X| > t] <= 2 exp(-v/m^2 h(m t/v)), h(u) = (1+u) log(1+u) - u.
    """

    def unlikely(t: float) -> bool:
        u = largest * t / variance
        return 2 * math.exp(-variance / largest**2 * ((1 + u) * math.log1p(u) - u)) <= 1 - CONFIDENCE

    return smallest_real(unlikely, 0.0, math.sqrt(variance), relative=1e-6)


def check_delta(privacy: Privacy) -> None:
    """Refuse a delta below what windows and tables leave out."""
    if privacy.delta < SMALLEST_DELTA:
        raise InfeasibleError(
            "delta", privacy.delta, f"must be >= {SMALLEST_DELTA:g} for this method", "choose a larger delta, or coins"
        )


def smallest_cap(tail: Callable[[int], float], limit: float) -> int:
    """The smallest number of messages that a draw passes with at most this probability."""
    return smallest_integer(lambda cap: tail(cap) <= limit, 0)
