"""What all distribution tests share: a claim, a threshold from the exact null law, and declared errors."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import DataError, InfeasibleError, ParameterError, TooFewReportsError
from shuffledp.messages import Batch, Reports
from shuffledp.privacy import Privacy
from shuffledp.protocols.distribution_test.cells import Cells
from shuffledp.protocols.distribution_test.groups import Groups
from shuffledp.protocols.distribution_test.moments import Moments, smallest_distance_squared
from shuffledp.protocols.domains.categories import Integers
from shuffledp.protocols.domains.domain import Categories, Codes
from shuffledp.protocols.request import check_users
from shuffledp.randomness import RandomBits
from shuffledp.references.null_laws import certified_quantile, grouped_law, hard_departure, hard_law, runs_for

Floats = NDArray[np.float64]
Certificate = Literal["simulated", "proved"]
QUANTILE_FAILURE = 1e-6
"""The probability that a simulated threshold is too low; a proved one cannot be."""
DECOYS_FAILURE = 1e-9
"""The probability that there are more decoys than power is declared for."""
ENOUGH_POWER = 1 / 3
_SEED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TestedClaim:
    """The answer: whether the users' law departs from the claim, and what that is worth."""

    __test__: ClassVar[bool] = False

    statistic: float
    """An unbiased estimate of the chi-square distance from uniform, over the bins that were counted."""
    score: float
    threshold: float
    p_value: float
    rejected: bool
    false_alarm: float
    miss: float
    distance: float
    claim: str
    dropped: int = 0
    simulated: bool = False

    @property
    def words(self) -> str:
        """The verdict in a sentence.

        >>> errors = {"false_alarm": 0.05, "miss": 0.2, "distance": 0.25}
        >>> TestedClaim(
        ...     statistic=1, score=9, threshold=2, p_value=0.001, rejected=True, claim="uniform", **errors
        ... ).words
        'not uniform: the score 9.00 is above 2.00, exceeded with probability at most 0.05 if it were'
        """
        if self.rejected:
            return (
                f"not {self.claim}: the score {self.score:.2f} is above {self.threshold:.2f}, exceeded with "
                f"probability at most {self.false_alarm:.3g} if it were"
            )
        if self.miss <= ENOUGH_POWER:
            return (
                f"no departure from {self.claim} seen: one of {self.distance:g} or more in total variation would have "
                f"been missed with probability at most {self.miss:.3g}"
            )
        return (
            f"undecided: no departure from {self.claim} seen, but one of {self.distance:g} in total variation may be "
            "missed by so few users"
        )


def check_claim_numbers(size: int, distance: float, false_alarm: float) -> None:
    """Refuse a distance that no law has, and a probability that is none."""
    farthest = 1 - 1 / size
    if isinstance(distance, bool) or not 0 < distance <= farthest:
        raise ParameterError(
            "distance", distance, f"must lie in (0, {farthest:.6g}]", "0.25 is a total variation distance"
        )
    if not 0 < false_alarm < 1:
        raise ParameterError("false_alarm", false_alarm, "must lie strictly between 0 and 1", "0.05 is usual")


@lru_cache(maxsize=64)
def _null_scores(test: "DistributionTest") -> Floats:
    scores = np.sort(test._scores(np.full(test.bins, 1 / test.bins), runs_for(test.bins), _SEED))
    scores.setflags(write=False)
    return scores


@lru_cache(maxsize=256)
def _threshold(test: "DistributionTest") -> float:
    proved = math.sqrt((1 - test.false_alarm) / test.false_alarm)
    if test.certificate == "proved":
        return proved
    # Not below 0, where more decoys would lower the bar: power is declared for the most of them.
    return max(0.0, min(proved, certified_quantile(_null_scores(test), test.false_alarm, QUANTILE_FAILURE)))


@dataclass(frozen=True, slots=True, kw_only=True)
class DistributionTest(ABC):
    """Whether the users' categories follow a claimed law, uniform or given, or one far from it.

    A frozen plan: everything is decided, and every error declared, before there are any data. `false_alarm` bounds the
    probability to reject a true claim; `declared_miss` that to accept users `distance` or more away in total variation.
    """

    theory_page: ClassVar[str] = "docs/theory/distribution-tests.md"

    users: int
    privacy: Privacy
    categories: Categories
    distance: float
    false_alarm: float = 0.05
    honest_fraction: float = 1.0
    certificate: Certificate = "simulated"
    cells: Cells | None = None
    groups: Groups | None = None

    def __post_init__(self) -> None:
        check_users(self.users)
        if self.users < 2:
            raise ParameterError("users", self.users, "must be >= 2", "one user says nothing about a distribution")
        check_claim_numbers(self.categories.size, self.distance, self.false_alarm)
        if self.certificate not in ("simulated", "proved"):
            raise ParameterError("certificate", self.certificate, "must be simulated or proved", "simulated is sharper")
        proved = self.proved_delta
        if proved > self.privacy.delta:
            raise InfeasibleError(
                "noise",
                f"{proved:.3g}",
                f"must reach delta {self.privacy.delta:g} at epsilon {self.privacy.epsilon:g}",
                "make the plan again",
            )

    # --- numbers -----------------------------------------------------------------------------

    @property
    @abstractmethod
    def method(self) -> str:
        """How users' bins are counted."""

    @property
    def bins(self) -> int:
        """How many bins are counted: groups of cells of categories."""
        if self.groups is not None:
            return self.groups.groups
        return self.categories.size if self.cells is None else self.cells.size

    @property
    def claim(self) -> str:
        """What is tested, in a word or two."""
        return "uniform" if self.cells is None else "the given distribution"

    @property
    @abstractmethod
    def proved_delta(self) -> float:
        """What the accountant proves at the plan's epsilon, whatever the values of all users."""

    @property
    @abstractmethod
    def messages_per_user_mean(self) -> float:
        """Messages a user sends on average."""

    @property
    @abstractmethod
    def messages_per_user_max(self) -> int:
        """Messages a user sends at most."""

    @abstractmethod
    def worst_moments(self) -> Moments:
        """Those that power is declared for."""

    @abstractmethod
    def _scores(self, law: Floats, runs: int, seed: int) -> Floats:
        """Simulated scores of users with this law over the bins."""

    @property
    def threshold(self) -> float:
        """The claim is rejected above this score, in deviations of the true claim."""
        return _threshold(self)

    @property
    def declared_false_alarm(self) -> float:
        """The probability to reject a true claim, at most."""
        rounding = 0.0 if self.cells is None else self.users * self.cells.rounding
        return min(1.0, self.false_alarm + rounding)

    @property
    def distance_squared(self) -> float:
        """The least D over the cells that a distant law has; over groups it is random."""
        if self.cells is None:
            return smallest_distance_squared(self.distance, self.categories.size)
        # A claim that was rounded to grains is this much nearer, at worst.
        distance = max(0.0, self.distance * self.cells.distance_kept - self.cells.rounding)
        return smallest_distance_squared(distance, self.cells.size)

    @property
    def declared_miss(self) -> float:
        """The probability to accept users who are `distance` or more away from the claim, at most. Proved."""
        moments, threshold, least = self.worst_moments(), self.threshold, self.distance_squared
        if self.groups is None:
            return min(1.0, moments.miss(threshold, least) + DECOYS_FAILURE)
        grouped = least / self.groups.splits * self.groups.mean_kept
        return min(1.0, self.groups.miss(moments, threshold, grouped) + DECOYS_FAILURE)

    def simulated_miss(self, *, runs: int = 1000, seed: int = 2) -> float:
        """The part of simulated runs that accept a law which is hard to see: pairs of bins, one up and one down.

        With groups there are twenty runs with each of many partitions, other than the plan's: power is over public
        coins too.
        """
        law = hard_law(self.distance, self.categories.size)
        if self.cells is not None:
            law = self.cells.law(hard_departure(self.cells.claim, self.distance).tolist())
        if self.groups is None:
            return float(np.mean(self._scores(law, runs, seed) <= self.threshold))
        drawn = [
            self._scores(grouped_law(law, self.groups.splits, self.groups.groups, each), 20, each)
            for each in range(seed, seed + max(1, runs // 20))
        ]
        return float(np.mean(np.concatenate(drawn) <= self.threshold))

    # --- the two sides -----------------------------------------------------------------------

    def check_values(self, values: ArrayLike) -> Codes:
        """The codes of the users' categories."""
        array = np.asarray(values)
        if array.dtype.kind not in "bui":
            raise DataError(
                "values",
                f"dtype {array.dtype}",
                "must be codes of categories",
                "encode them: plan.categories.encode(x)",
            )
        return Integers(0, self.categories.size - 1).encode(array)

    def to_bins(self, values: ArrayLike, *, bits: RandomBits) -> Codes:
        """Each user's bin, by its own exact coins: uniform if the claim is true."""
        codes = self.check_values(values)
        if self.cells is not None:
            codes = self.cells.assign(codes, bits=bits)
        return codes if self.groups is None else self.groups.assign(codes, bits=bits)

    @abstractmethod
    def randomize(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        """The clients' side: a report for each value."""

    @abstractmethod
    def analyze(self, batch: Batch) -> TestedClaim:
        """The server's side: the verdict from a permuted batch."""

    def check_reports(self, reports: int) -> None:
        """Refuse a batch of another size than the plan's."""
        if reports < self.users:
            raise TooFewReportsError(self.users, reports)
        if reports > self.users:
            raise ParameterError("reports", reports, f"must be the plan's {self.users}", "plan for more users")

    def _verdict(self, total: float, moments: Moments, *, dropped: int) -> TestedClaim:
        score = total / moments.deviation
        null = _null_scores(self)
        # As extreme as one of R + 1 draws, the data's own among them: valid on average over the null's simulations.
        extreme = null.size - int(np.searchsorted(null, score, side="left"))
        return TestedClaim(
            statistic=self.bins * total / moments.signal,
            score=score,
            threshold=self.threshold,
            p_value=(1 + extreme) / (1 + null.size),
            rejected=score > self.threshold,
            false_alarm=self.declared_false_alarm,
            miss=self.declared_miss,
            distance=self.distance,
            claim=self.claim,
            dropped=dropped,
        )

    def document(self) -> dict[str, Any]:
        """The plan in figures."""
        return {
            "schema": 1,
            "protocol": "distribution-test",
            "method": self.method,
            "users": self.users,
            "epsilon": self.privacy.epsilon,
            "delta": self.privacy.delta,
            "delta_proved": self.proved_delta,
            "honest_fraction": self.honest_fraction,
            "categories": self.categories.size,
            "distance": self.distance,
            "bins": self.bins,
            "distance_kept": 1.0 if self.cells is None else self.cells.distance_kept,
            "public_seed": None if self.groups is None else self.groups.seed,
            "certificate": self.certificate,
            "threshold": self.threshold,
            "false_alarm": self.declared_false_alarm,
            "miss": self.declared_miss,
            "messages_per_user_mean": self.messages_per_user_mean,
            "messages_per_user_max": self.messages_per_user_max,
        }
