"""The test by decoys: where users are uniform too, own messages and decoys together are one throw of balls."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.accounting.laws import Binomial
from shuffledp.errors import ParameterError
from shuffledp.messages import Batch, Reports
from shuffledp.protocols.distribution_test.base import DECOYS_FAILURE, DistributionTest, Floats, TestedClaim
from shuffledp.protocols.distribution_test.moments import Moments, balls_moments
from shuffledp.protocols.histogram.decoys import Decoys
from shuffledp.randomness import RandomBits
from shuffledp.references.null_laws import collision_scores


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoysTest(DistributionTest):
    """Counts collisions among all messages of a private histogram: users' own bins and uniform decoys.

    The adversary sees the histogram's messages and nothing else; the bin is made on the device, from the user's own
    category and coins, so the histogram's two-bin guarantee is the test's. Given the number N of messages, uniform
    users' are N balls in equal bins: the null law is exact, and the mean of the statistic does not depend on the noise.

    Reference: [004] Theorem 14 with this noise instead of symmetric bits, which need a message a bin.
    """

    histogram: Decoys

    def __post_init__(self) -> None:
        super(DecoysTest, self).__post_init__()
        plan = self.histogram
        made_for = (plan.users, plan.privacy, plan.bins, plan.honest_fraction)
        if made_for != (self.users, self.privacy, self.bins, self.honest_fraction):
            raise ParameterError("histogram", made_for, "must be planned for the same users and bins", "plan again")

    @property
    def method(self) -> str:
        return "decoys" if self.groups is None else "compressed"

    @property
    def proved_delta(self) -> float:
        return self.histogram.guarantee().delta

    @property
    def messages_per_user_mean(self) -> float:
        return self.histogram.messages_per_user_mean

    @property
    def messages_per_user_max(self) -> int:
        return self.histogram.messages_per_user_max

    def worst_moments(self) -> Moments:
        """With as many decoys as there are but with probability DECOYS_FAILURE: more only hide more."""
        return balls_moments(self.users, most_decoys(self.histogram), self.bins)

    def _scores(self, law: Floats, runs: int, seed: int) -> Floats:
        return collision_scores(
            users=self.users,
            throws=self.users * self.histogram.coins,
            probability=self.histogram.probability,
            law=law,
            runs=runs,
            seed=seed,
        )

    def randomize(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        return self.histogram.randomize(self.to_bins(values, bits=bits), bits=bits)

    def analyze(self, batch: Batch) -> TestedClaim:
        self.check_reports(batch.reports)
        known = batch.payloads[batch.payloads < self.bins]
        seen = np.bincount(known.astype(np.int64, copy=False), minlength=self.bins).astype(np.float64)
        messages = float(seen.sum())
        total = float(np.square(seen).sum()) - messages - messages * (messages - 1) / self.bins
        moments = balls_moments(self.users, max(0, known.size - self.users), self.bins)
        return self._verdict(total, moments, dropped=len(batch) - known.size)


def most_decoys(plan: Decoys) -> int:
    """Exceeded with probability at most DECOYS_FAILURE."""
    throws = plan.users * plan.coins
    if plan.probability == 1:
        return throws
    return int(Binomial(throws, plan.probability).window(DECOYS_FAILURE)[1])
