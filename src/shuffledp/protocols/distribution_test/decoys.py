"""The test by decoys: where users are uniform too, own messages and decoys together are one throw of balls."""

import math
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np

from shuffledp.accounting.laws import Binomial
from shuffledp.protocols.distribution_test.base import DECOYS_FAILURE, DistributionTest
from shuffledp.protocols.distribution_test.claim import Claim
from shuffledp.protocols.distribution_test.groups import LARGEST_PARTS, Groups
from shuffledp.protocols.distribution_test.moments import ScoreMoments, balls_moments
from shuffledp.protocols.domains.categories import as_categories
from shuffledp.protocols.domains.domain import Codes, Floats
from shuffledp.protocols.fields import domain, forwarded, noise, only_exact
from shuffledp.protocols.histogram.blanket import LARGEST_COINS, BlanketPlan, smallest_blanket
from shuffledp.protocols.histogram.decoys import Decoys
from shuffledp.protocols.plan import unchecked
from shuffledp.protocols.request import Request
from shuffledp.references.null_laws import collision_scores

_coins_for = lru_cache(maxsize=256)(Decoys.coins_for)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoysTest(DistributionTest):
    """Counts collisions among all messages of a private histogram: users' own bins and uniform decoys.

    The adversary sees the histogram's messages and nothing else; the bin is made on the device, from the user's own
    category and coins, so the histogram's two-bin guarantee is the test's. Given the number N of messages, uniform
    users' are N balls in equal bins: the null law is exact, and the mean of the statistic does not depend on the noise.

    Reference: [004] Theorem 14 with this noise instead of symmetric bits, which need a message a bin.
    """

    method: ClassVar[str] = "decoys"

    law: ClassVar[str] = Decoys.law
    also_saved: ClassVar[tuple[str, ...]] = ("bins",)

    coins: int = noise(f"[1, {LARGEST_COINS}]")
    probability: float = noise("(0, 1]")

    @classmethod
    def for_request(cls, request: Request, *, public_seed: int | None = None, **claim: Any) -> Self:
        """The fewest decoys that hide which of two bins a user is in, whatever the public coins of other methods."""
        return cls._counting(Claim(**claim).size, request, claim)

    @classmethod
    def _counting(cls, bins: int, request: Request, fields: dict[str, Any]) -> Self:
        only_exact(request.constants)
        coins, probability = _coins_for(request.privacy, request.honest, 1 / bins)
        return cls(**request.common, **fields, coins=coins, probability=probability)

    @property
    def histogram(self) -> Decoys:
        """The private histogram of the bins; that its noise is enough is asked of the test."""
        shared = {field.name: getattr(self, field.name) for field in fields(BlanketPlan) if field.name != "categories"}
        return unchecked(Decoys, **shared, categories=as_categories(self.bins))

    messages_per_user_mean = forwarded("histogram.messages_per_user_mean")
    messages_per_user_max = forwarded("histogram.messages_per_user_max")
    bits_per_message = forwarded("histogram.bits_per_message")
    alphabet_size = forwarded("histogram.alphabet_size")
    pair = forwarded("histogram.pair")
    delta_terms = forwarded("histogram.delta_terms")
    tally = forwarded("histogram.tally")
    summaries = forwarded("histogram.summaries")
    quieter = forwarded("histogram.quieter")
    audited_reports = forwarded("histogram.randomize")

    @property
    def dominates_because(self) -> str:
        return (
            "The view is that of a private histogram over the bins, and a user's bin is drawn on its own device from "
            f"its own category. {self.histogram.dominates_because}"
        )

    def _moved_by(self, messages: int) -> float:
        every = self.users * self.messages_per_user_max
        return float(self.bins * (2 * messages * every + messages**2) / self.worst_moments().signal)

    def worst_moments(self) -> ScoreMoments:
        """With as many decoys as there are but with probability DECOYS_FAILURE: more only hide more."""
        return balls_moments(self.users, most_decoys(self.histogram), self.bins)

    def _scores(self, law: Floats, runs: int, seed: int) -> Floats:
        throws, probability = self.users * self.histogram.coins, self.histogram.probability
        return collision_scores(users=self.users, throws=throws, probability=probability, law=law, runs=runs, seed=seed)

    def _statistic(self, counts: Codes) -> tuple[float, ScoreMoments]:
        seen, messages = counts.astype(np.float64), float(counts.sum())
        total = float(np.square(seen).sum()) - messages - messages * (messages - 1) / self.bins
        return total, balls_moments(self.users, max(0, int(counts.sum()) - self.users), self.bins)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedTest(DecoysTest):
    """The test by decoys over fewer groups of categories, drawn by public coins before there are any data.

    Reference: [004] Lemma 15, with the exact mean and variance of what groups keep of a distance.
    """

    method: ClassVar[str] = "compressed"

    group_count: int = domain("[2, inf)")
    public_seed: int = domain("[0, inf)", default=1)

    @classmethod
    def for_request(cls, request: Request, *, public_seed: int | None = None, **claim: Any) -> Self:
        """The number of groups with the smallest predicted miss; the public coins are drawn before there are data."""
        seed = 1 if public_seed is None else public_seed
        count = best_groups(request, Claim(**claim), seed)[0].groups
        return cls._counting(count, request, {**claim, "group_count": count, "public_seed": seed})

    @property
    def groups(self) -> Groups:
        return Groups(cells=self.tested.size, groups=self.group_count, seed=self.public_seed)


def most_decoys(plan: Decoys) -> int:
    """Exceeded with probability at most DECOYS_FAILURE."""
    throws = plan.users * plan.coins
    if plan.probability == 1:
        return throws
    return int(Binomial(throws, plan.probability).window(DECOYS_FAILURE)[1])


def predicted_miss(request: Request, claim: Claim, *, grouped: bool) -> float:
    """The miss by about as many decoys as there will be; declared is what the plan itself says."""
    if grouped:
        return best_groups(request, claim, 1)[1]
    return _about_moments(request, claim.size).miss(claim.proved_threshold, claim.distance_squared())


def _about_moments(request: Request, bins: int) -> ScoreMoments:
    """With about as many decoys as power is declared for: six deviations above the mean."""
    mean = smallest_blanket(request.privacy) / float(request.honest_fraction) * bins
    return balls_moments(request.users, math.ceil(mean + 6 * math.sqrt(mean)), bins)


def best_groups(request: Request, claim: Claim, seed: int) -> tuple[Groups, float]:
    """The number of groups with the smallest predicted miss, and that; only power hangs on this choice."""
    size, least, score = claim.size, claim.distance_squared(), claim.proved_threshold

    sizes = sorted({min(size, round(4 * 2 ** (step / 4))) for step in range(4 * size.bit_length())})
    every = [
        Groups(cells=size, groups=groups, seed=seed)
        for groups in sizes
        if size * (groups // math.gcd(size, groups)) <= LARGEST_PARTS and groups >= 2
    ]
    misses = [groups.miss(_about_moments(request, groups.groups), score, least) for groups in every]
    best = min(range(len(every)), key=misses.__getitem__)
    return every[best], misses[best]
