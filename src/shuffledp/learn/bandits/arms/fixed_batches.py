"""SDP-AE: arm elimination in batches of one size."""

import math
from dataclasses import dataclass
from typing import ClassVar

from shuffledp.errors import ParameterError
from shuffledp.learn.bandits.arms.doubling_batches import check_batch
from shuffledp.learn.bandits.arms.elimination import EliminationStage, PrivateElimination
from shuffledp.learn.bandits.arms.paper import paper_sigma, paper_width
from shuffledp.learn.bandits.arms.widths import ArmError, difference_quantile

MOST_PHASES = 250_000
"""With the paper's constants, which compare arms after every one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedBatches(PrivateElimination):
    """Every arm that is left gets a batch of `batch` users in each phase.

    Left out, `batch` is the variance of a batch's noise, as in the paper: then noise costs about as much as chance
    in the rewards. Arms are compared after every phase at first, then each time their users grew by an eighth:
    fewer comparisons are fewer chances to be wrong (the paper's constants compare after every phase).

    Reference: [003] Theorem 3.1.

    Attributes:
        batch: how many users a batch has; the variance of a batch's noise if left out.

    >>> from shuffledp.privacy import Privacy
    >>> policy = FixedBatches(arms=3, horizon=100_000, privacy=Privacy(1, 1e-6), batch=100)
    >>> [stage.batches for stage in policy.stages][:20]
    [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2]
    """

    policy: ClassVar[str] = "fixed-batches"

    batch: int | None = None

    def __post_init__(self) -> None:
        PrivateElimination.__post_init__(self)
        object.__setattr__(self, "batch", check_batch("batch", self.batch, self.arms, self.horizon))
        check_batch("batch", self.batch_users, self.arms, self.horizon)
        phases = self.horizon // (2 * self.batch_users)
        if self.constants == "paper" and phases > MOST_PHASES:
            problem = f"makes {phases:,} phases, and the paper compares after each: {MOST_PHASES:,} are the most"
            raise ParameterError("batch", self.batch_users, problem, "take larger batches or exact constants")

    @property
    def batch_users(self) -> int:
        """Users of a batch."""
        if self.batch is not None:
            return self.batch
        if self.constants == "paper":
            return math.ceil(paper_sigma(self.privacy) ** 2)
        # Of 1000 users, as the noise hardly depends on them.
        return max(1, math.ceil(self.batch_plan(1000).standard_error ** 2))

    def _sizes(self) -> dict[str, int]:
        return {"batch": self.batch_users}

    def plan_stages(self) -> tuple[EliminationStage, ...]:
        users = self.batch_users
        most = max(1, self.horizon // (2 * users))
        if self.constants == "paper":
            return tuple(
                EliminationStage(users, 1, paper_width(self.privacy, self.horizon, phase, phase * users))
                for phase in range(1, most + 1)
            )
        looks = comparisons(most)
        failure = self.failure_probability / ((self.arms - 1) * len(looks))
        stages = []
        for before, phase in zip([0, *looks], looks, strict=False):
            error = ArmError(0.0).plus_batches(self.batch_plan(users), phase)
            width = difference_quantile(error, failure) / (phase * users)
            stages.append(EliminationStage(users, phase - before, width))
        return tuple(stages)


def comparisons(most: int) -> list[int]:
    """After how many phases arms are compared: each by an eighth more than the one before.

    >>> comparisons(30)
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 27, 30]
    """
    phases = [1]
    while (following := phases[-1] + max(1, phases[-1] // 8)) <= most:
        phases.append(following)
    return phases
