"""The test by decoys: where users are uniform too, own messages and decoys together are one throw of balls."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.accounting.laws import Binomial
from shuffledp.accounting.split_coins import BallsPair
from shuffledp.errors import ParameterError
from shuffledp.messages import Batch, Reports
from shuffledp.protocols.distribution_test.base import DECOYS_FAILURE, DistributionTest, Floats
from shuffledp.protocols.distribution_test.cells import Cells
from shuffledp.protocols.distribution_test.groups import LARGEST_PARTS, Groups
from shuffledp.protocols.distribution_test.moments import ScoreMoments, balls_moments, smallest_distance_squared
from shuffledp.protocols.domains.domain import Codes
from shuffledp.protocols.fields import domain, whole_number
from shuffledp.protocols.histogram.blanket import smallest_blanket
from shuffledp.protocols.histogram.decoys import Decoys
from shuffledp.protocols.request import Request
from shuffledp.protocols.tallies import Tally
from shuffledp.randomness import RandomBits
from shuffledp.references.null_laws import collision_scores

_histogram = lru_cache(maxsize=256)(Decoys.plan)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoysTest(DistributionTest):
    """Counts collisions among all messages of a private histogram: users' own bins and uniform decoys.

    The adversary sees the histogram's messages and nothing else; the bin is made on the device, from the user's own
    category and coins, so the histogram's two-bin guarantee is the test's. Given the number N of messages, uniform
    users' are N balls in equal bins: the null law is exact, and the mean of the statistic does not depend on the noise.

    Reference: [004] Theorem 14 with this noise instead of symmetric bits, which need a message a bin.
    """

    method: ClassVar[str] = "decoys"

    histogram: Decoys

    @classmethod
    def for_request(cls, request: Request, **claim: Any) -> Self:
        """The histogram with the fewest decoys."""
        fields = cls.claim_of(request, **claim)
        return cls._counting(_task(fields)[0], fields)

    @classmethod
    def _counting(cls, bins: int, fields: dict[str, Any]) -> Self:
        common = {name: fields[name] for name in ("users", "privacy", "honest_fraction")}
        return cls(**fields, histogram=_histogram(**common, categories=bins))

    def _check_noise(self) -> None:
        super(DecoysTest, self)._check_noise()
        plan = self.histogram
        made_for = (plan.users, plan.privacy, plan.bins, plan.honest_fraction)
        if made_for != (self.users, self.privacy, self.bins, self.honest_fraction):
            raise ParameterError("histogram", made_for, "must be planned for the same users and bins", "plan again")

    @property
    def noise(self) -> dict[str, Any]:
        return {**self.histogram.noise, "bins": self.bins}

    @classmethod
    def from_noise(cls, noise: Mapping[str, Any], **common: Any) -> Self:
        shared = {name: common[name] for name in ("users", "privacy", "honest_fraction")}
        bins = whole_number(noise, "bins")
        return cls(histogram=Decoys.from_noise(noise, **shared, categories=bins), **common)

    @property
    def messages_per_user_mean(self) -> float:
        return self.histogram.messages_per_user_mean

    @property
    def messages_per_user_max(self) -> int:
        return self.histogram.messages_per_user_max

    @property
    def bits_per_message(self) -> int:
        return self.histogram.bits_per_message

    @property
    def alphabet_size(self) -> int:
        return self.bins

    def pair(self, honest: int) -> BallsPair:
        return self.histogram.pair(honest)

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        return self.histogram.delta_terms(epsilon, honest)

    @property
    def dominates_because(self) -> str:
        return (
            "The view is that of a private histogram over the bins, and a user's bin is drawn on its own device from "
            f"its own category. {self.histogram.dominates_because}"
        )

    def _moved_by(self, messages: int) -> float:
        every = self.users * self.messages_per_user_max
        return self.bins * (2 * messages * every + messages**2) / self.worst_moments().signal

    def worst_moments(self) -> ScoreMoments:
        """With as many decoys as there are but with probability DECOYS_FAILURE: more only hide more."""
        return balls_moments(self.users, most_decoys(self.histogram), self.bins)

    def _scores(self, law: Floats, runs: int, seed: int) -> Floats:
        throws, probability = self.users * self.histogram.coins, self.histogram.probability
        return collision_scores(users=self.users, throws=throws, probability=probability, law=law, runs=runs, seed=seed)

    def audited_reports(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        return self.histogram.randomize(values, bits=bits)

    def tally(self, batch: Batch, malformed: int = 0) -> Tally:
        return self.histogram.tally(batch, malformed)

    def _statistic(self, counts: Codes) -> tuple[float, ScoreMoments]:
        seen, messages = counts.astype(np.float64), float(counts.sum())
        total = float(np.square(seen).sum()) - messages - messages * (messages - 1) / self.bins
        return total, balls_moments(self.users, max(0, int(counts.sum()) - self.users), self.bins)

    def summaries(self, reports: Reports, trials: int) -> NDArray[np.int64]:
        return self.histogram.summaries(reports, trials)

    def quieter(self, part: float) -> dict[str, Any]:
        return {"histogram": self.histogram.twin(part)}


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedTest(DecoysTest):
    """The test by decoys over fewer groups of categories, drawn by public coins before there are any data.

    Reference: [004] Lemma 15, with the exact mean and variance of what groups keep of a distance.
    """

    method: ClassVar[str] = "compressed"

    group_count: int = domain("[2, inf)")
    public_seed: int = domain("[0, inf)", default=1)

    @classmethod
    def for_request(cls, request: Request, *, public_seed: int = 1, **claim: Any) -> Self:
        """The number of groups with the smallest predicted miss."""
        fields = cls.claim_of(request, **claim)
        groups = best_groups(fields, public_seed)[0]
        return cls._counting(groups.groups, {**fields, "group_count": groups.groups, "public_seed": public_seed})

    @property
    def groups(self) -> Groups:
        cells = self.categories.size if self.cells is None else self.cells.size
        return Groups(cells=cells, groups=self.group_count, seed=self.public_seed)


def most_decoys(plan: Decoys) -> int:
    """Exceeded with probability at most DECOYS_FAILURE."""
    throws = plan.users * plan.coins
    if plan.probability == 1:
        return throws
    return int(Binomial(throws, plan.probability).window(DECOYS_FAILURE)[1])


def predicted_miss(fields: dict[str, Any], *, grouped: bool) -> float:
    """The miss by about as many decoys as there will be; declared is what the plan itself says."""
    if grouped:
        return best_groups(fields, 1)[1]
    size, least, score = _task(fields)
    return balls_moments(fields["users"], _about_decoys(fields, size), size).miss(score, least)


def _task(fields: dict[str, Any]) -> tuple[int, float, float]:
    """Cells, the least D over them that must be seen, and the proved threshold."""
    cells: Cells | None = DistributionTest.cells_of(fields["against"])
    size = fields["categories"].size if cells is None else cells.size
    kept = 1.0 if cells is None else cells.distance_kept
    score = math.sqrt((1 - fields["false_alarm"]) / fields["false_alarm"])
    return size, smallest_distance_squared(fields["distance"] * kept, size), score


def _about_decoys(fields: dict[str, Any], bins: int) -> int:
    """About as many as power is declared for: six deviations above the mean."""
    mean = smallest_blanket(fields["privacy"]) / float(fields["honest_fraction"]) * bins
    return math.ceil(mean + 6 * math.sqrt(mean))


def best_groups(fields: dict[str, Any], seed: int) -> tuple[Groups, float]:
    """The number of groups with the smallest predicted miss, and that; only power hangs on this choice."""
    size, least, score = _task(fields)

    def predicted(groups: Groups) -> float:
        moments = balls_moments(fields["users"], _about_decoys(fields, groups.groups), groups.groups)
        return groups.miss(moments, score, least / groups.splits * groups.mean_kept)

    sizes = sorted({min(size, round(4 * 2 ** (step / 4))) for step in range(4 * size.bit_length())})
    every = [
        Groups(cells=size, groups=groups, seed=seed)
        for groups in sizes
        if size * (groups // math.gcd(size, groups)) <= LARGEST_PARTS and groups >= 2
    ]
    misses = [predicted(groups) for groups in every]
    best = min(range(len(every)), key=misses.__getitem__)
    return every[best], misses[best]
