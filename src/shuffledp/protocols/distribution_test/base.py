"""What all distribution tests share: a claim, a threshold from the exact null law, and declared errors."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.errors import DataError, ParameterError
from shuffledp.messages import Reports
from shuffledp.protocols.counted import first_codes
from shuffledp.protocols.distribution_test.cells import as_claim
from shuffledp.protocols.distribution_test.claim import Certificate, Claim
from shuffledp.protocols.distribution_test.groups import Groups
from shuffledp.protocols.distribution_test.local import local_users_needed
from shuffledp.protocols.distribution_test.moments import ScoreMoments
from shuffledp.protocols.distribution_test.verdict import TestedClaim
from shuffledp.protocols.domains.categories import as_categories
from shuffledp.protocols.domains.domain import Categories, Codes, Floats
from shuffledp.protocols.error_bounds import CONFIDENCE, remembered
from shuffledp.protocols.fields import AGAIN, domain, forwarded
from shuffledp.protocols.presentation import ALONE, APART, TRUST, Listing, Presentation, View, listed
from shuffledp.protocols.rounds import RoundPlan
from shuffledp.protocols.streaming import LawOfSums, tallied
from shuffledp.protocols.tallies import Tally, nothing_came
from shuffledp.randomness import RandomBits
from shuffledp.references.null_laws import certified_quantile, grouped_law, runs_for

QUANTILE_FAILURE = 1e-6
"""The probability that a simulated threshold is too low; a proved one cannot be."""
DECOYS_FAILURE = 1e-9
"""The probability that there are more decoys than power is declared for."""
_SEED = 1
_claim = lru_cache(maxsize=64)(Claim)


@lru_cache(maxsize=64)
def _null_scores(test: "DistributionTest") -> Floats:
    scores = np.sort(test._scores(np.full(test.bins, 1 / test.bins), runs_for(test.bins), _SEED))
    scores.setflags(write=False)
    return scores


@dataclass(frozen=True, slots=True, kw_only=True)
class DistributionTest(LawOfSums, RoundPlan):
    """Whether the users' categories follow a claimed law, uniform or given, or one far from it.

    Everything is decided, and every error declared, before there are any data. `false_alarm` bounds the probability to
    reject a true claim; `declared_miss` that to accept users `distance` or more away in total variation.

    Attributes:
        categories: all that a user may have.
        distance: the total variation distance that must be seen.
        against: the claimed probabilities; uniform ones if it is None.
        false_alarm: the probability with which a true claim is rejected at most.
        certificate: whether the threshold is simulated from the null law, or proved by inequalities alone.
    """

    protocol: ClassVar[str] = "distribution-test"
    title: ClassVar[str] = "A private test of a distribution"
    file_command: ClassVar[str] = "test-uniform"
    theory_page: ClassVar[str] = "docs/theory/distribution-tests.md"

    categories: Categories = domain(read=as_categories, write=Categories.document)
    distance: float = domain()
    against: tuple[float, ...] | None = domain(read=as_claim, default=None)
    false_alarm: float = domain(default=0.05)
    certificate: Certificate = domain(default="simulated")

    def _check_noise(self) -> None:
        super(DistributionTest, self)._check_noise()
        if self.users < 2:
            raise ParameterError("users", self.users, "must be >= 2", "one user says nothing about a distribution")
        Claim(**self._asked)  # refuses what cannot be asked

    @property
    def _asked(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(Claim)}

    @property
    def tested(self) -> Claim:
        """What is asked, without what is sent."""
        return _claim(**self._asked)

    domain = forwarded("categories")

    @property
    def groups(self) -> Groups | None:
        """Groups of cells drawn by public coins; None where cells are counted themselves."""
        return None

    @property
    def bins(self) -> int:
        """How many bins are counted: groups of cells of categories."""
        return self.tested.size if self.groups is None else self.groups.groups

    @property
    def claim(self) -> str:
        """What is tested, in a word or two."""
        return "uniform" if self.against is None else "the given distribution"

    @property
    def question(self) -> str:
        return f"test whether {self.users:,} users are {self.claim} over {self.categories.size:,} categories"

    @property
    def options(self) -> str:
        claim = "" if self.against is None else " --against FILE"
        return f"{self.domain.options} --distance {self.distance!r} --false-alarm {self.false_alarm!r}{claim}"

    def facts(self) -> list[tuple[str, str]]:
        sends, _, noise, liar = RoundPlan.facts(self)
        return [
            sends,
            ("false alarm", f"{self.declared_false_alarm:.3g} at most"),
            ("miss", f"{self.declared_miss:.3g} at most, at total variation {self.distance:g} or more"),
            noise,
            liar,
        ]

    @abstractmethod
    def worst_moments(self) -> ScoreMoments:
        """Mean and variance of the statistic that power is declared for."""

    @abstractmethod
    def _scores(self, law: Floats, runs: int, seed: int) -> Floats:
        """Simulated scores of users with this law over the bins."""

    @property
    def standard_error(self) -> float:
        """The standard error of the chi-square distance where the claim is true."""
        moments = self.worst_moments()
        return self.bins * moments.deviation / moments.signal

    @property
    def error_bound(self) -> float:
        """Chebyshev's inequality for the chi-square distance, whatever the users' law over the bins."""
        moments = self.worst_moments()
        return self.bins * math.sqrt(moments.variance(1.0) / (1 - CONFIDENCE)) / moments.signal

    def reference(self) -> dict[str, float | None]:
        """How many users the local model needs for the same errors; None where this plan declares no power itself."""
        needed = None
        if self.declared_miss < 1:
            asked = {"bins": self.categories.size, "distance": self.distance, "false_alarm": self.false_alarm}
            epsilon, miss = self.privacy.epsilon, self.declared_miss
            needed = local_users_needed(epsilon=epsilon, miss=miss, public_coins=True, **asked)  # type: ignore[arg-type]
        return {"local_users": needed}

    def compared(self) -> Listing:
        """Users that a test with the same declared errors needs with and without a shuffler."""
        local = self.reference()["local_users"]
        rows = [
            (f"this plan ({self.method})", f"{self.users:,}", APART),
            ("local model, public coins", "-" if local is None else f"{local:,.0f}", ALONE),
        ]
        return listed("Users for the same errors", ("who", "users", "whom one trusts"), rows, caption=TRUST)

    @remembered
    def threshold(self) -> float:
        """The claim is rejected above this score, in deviations of the true claim."""
        proved = self.tested.proved_threshold
        if self.certificate == "proved":
            return proved
        # Not below 0, where more decoys would lower the bar: power is declared for the most of them.
        return max(0.0, min(proved, certified_quantile(_null_scores(self), self.false_alarm, QUANTILE_FAILURE)))

    @property
    def declared_false_alarm(self) -> float:
        """The probability to reject a true claim, at most."""
        return min(1.0, self.false_alarm + self.users * self.tested.rounding)

    @property
    def declared_miss(self) -> float:
        """The probability to accept users who are `distance` or more away from the claim, at most. Proved."""
        # A claim that was rounded to grains is this much nearer, at worst.
        least = self.tested.distance_squared(self.tested.rounding)
        moments = self.worst_moments()
        if self.groups is None:
            return min(1.0, moments.miss(self.threshold, least) + DECOYS_FAILURE)
        return min(1.0, self.groups.miss(moments, self.threshold, least) + DECOYS_FAILURE)

    def simulated_miss(self, *, runs: int = 1000, seed: int = 2) -> float:
        """The part of simulated runs that accept a law which is hard to see: pairs of bins, one up and one down.

        With groups there are twenty runs with each of many partitions, other than the plan's: power is over public
        coins too.
        """
        law = self.tested.hard_law()
        if self.groups is None:
            return float(np.mean(self._scores(law, runs, seed) <= self.threshold))
        drawn = [
            self._scores(grouped_law(law, self.groups.splits, self.groups.groups, each), 20, each)
            for each in range(seed, seed + max(1, runs // 20))
        ]
        return float(np.mean(np.concatenate(drawn) <= self.threshold))

    def true_value(self, values: ArrayLike) -> float:
        """The chi-square distance from uniform of these users' law over the bins that are counted."""
        codes = self.check_values(values)
        law = self.tested.law(np.bincount(codes, minlength=self.categories.size) / codes.size)
        if self.groups is not None:
            law = self.groups.law(law)
        return float(self.bins * np.square(law - 1 / self.bins).sum())

    def to_bins(self, values: ArrayLike, *, bits: RandomBits) -> Codes:
        """Each user's bin, by its own exact coins: uniform if the claim is true."""
        codes = self.tested.assign(self.check_values(values), bits=bits)
        return codes if self.groups is None else self.groups.assign(codes, bits=bits)

    def randomize(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        return self.audited_reports(self.to_bins(values, bits=bits), bits=bits)

    @abstractmethod
    def audited_reports(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        """The reports of users who are in these bins."""

    @abstractmethod
    def _statistic(self, counts: Codes) -> tuple[float, ScoreMoments]:
        """The statistic, with mean 0 where the claim is true, and its moments."""

    def estimate(self, tally: Tally, *, simulated: bool = False) -> TestedClaim:
        self.check_reports(tally.reports)
        if not tally.messages:
            raise nothing_came(self.users)
        total, moments = self._statistic(tally.counts)
        score, null = total / moments.deviation, _null_scores(self)
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
            # Every user sends a message of its own: fewer messages than users were lost for certain.
            dropped=max(tally.malformed, self.users - tally.messages),
            simulated=simulated,
        )

    def summary(self, values: ArrayLike, *, bits: RandomBits) -> Tally:
        """The tally of the messages, unpermuted: their order does not matter, so the law is the same."""
        return tallied(self, self.check_values(values), bits=bits)

    def sample_from(self, summary: Tally, *, bits: RandomBits) -> TestedClaim:
        return self.estimate(summary, simulated=not bits.is_secure)

    def present(self, estimate: Any, truth: Any = None, view: View | None = None) -> Presentation:
        found: Presentation = estimate.presented(truth)
        return found

    @property
    def message_influence(self) -> float:
        """One message more or less in a bin that may hold all others moves the statistic by twice their number."""
        return self._moved_by(1)

    @property
    def influence(self) -> float:
        return self._moved_by(self.messages_per_user_max)

    @abstractmethod
    def _moved_by(self, messages: int) -> float:
        """How far so many messages can move the chi-square distance, at most."""

    @property
    def lying_client(self) -> str:
        return f"moves the chi-square distance by at most {self.influence:.3g}, and less where bins are not all alike"

    neighbours = property(first_codes)

    def document(self) -> dict[str, Any]:
        """The plan as JSON: every figure, what makes it again, and a fingerprint."""
        return {
            "schema": 1,
            "protocol": self.protocol,
            "method": self.method,
            "users": self.users,
            "epsilon": self.privacy.epsilon,
            "delta": self.privacy.delta,
            "delta_proved": self.guarantee().delta,
            "honest_fraction": self.honest_fraction,
            "categories": self.categories.size,
            "distance": self.distance,
            "bins": self.bins,
            "distance_kept": self.tested.distance_kept,
            "public_seed": None if self.groups is None else self.groups.seed,
            "certificate": self.certificate,
            "threshold": self.threshold,
            "false_alarm": self.declared_false_alarm,
            "miss": self.declared_miss,
            "messages_per_user_mean": self.messages_per_user_mean,
            "messages_per_user_max": self.messages_per_user_max,
            "constants": self.constants,
            "domain": self.domain_document,
            "noise": self.noise,
            "fingerprint": self.fingerprint,
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        said = document.get("domain")
        if not isinstance(said, Mapping):
            raise DataError("plan.domain", said, "must be an object", AGAIN)
        return super(DistributionTest, cls).from_document({**document, **said})
