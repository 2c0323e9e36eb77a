"""VB-SDP-AE: arm elimination in batches that double, whose noise does not grow with them."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar

from shuffledp.errors import ParameterError
from shuffledp.learn.bandits.arms.elimination import Elimination, EliminationStage, PrivateElimination
from shuffledp.learn.bandits.arms.paper import paper_width
from shuffledp.learn.bandits.arms.widths import ArmError, difference_quantile
from shuffledp.learn.spec import check_whole, number
from shuffledp.protocols.request import LARGEST_USERS


def growing(default: float) -> Any:
    """A field for how much larger each batch is than the one before."""
    return number(1.05, 16, "batches double in the paper", default=default)


@dataclass(frozen=True, slots=True, kw_only=True)
class DoublingBatches(PrivateElimination):
    """Every arm that is left gets a batch, in each phase `growth` times as large: twice as large in the paper.

    `first_batch` is the size of the first; left out, the smallest power of two after which an arm can be dropped at all
    (2 with the paper's constants). Slower growth drops arms sooner and adds up more noise; with exact
    noise 1.25 was better than 2 wherever we measured. The adversary sees one permuted batch with the user's reward.

    Reference: [003] Theorem 3.3.

    Attributes:
        first_batch: how many users the first batch has; the smallest after which an arm can be dropped if left out.
        growth: how many times as large every further batch is.

    >>> from shuffledp.privacy import Privacy
    >>> policy = DoublingBatches(arms=3, horizon=100_000, privacy=Privacy(1, 1e-6))
    >>> [stage.batch_users for stage in policy.stages][:4], round(policy.stages[3].width, 3)
    ([32, 64, 128, 256], 0.179)
    >>> cohort = policy.ask(policy.start())
    >>> cohort.arm, cohort.users, cohort.plan.method
    (0, 32, 'shares')
    """

    policy: ClassVar[str] = "doubling-batches"

    first_batch: int | None = None
    growth: float = growing(2.0)

    def __post_init__(self) -> None:
        PrivateElimination.__post_init__(self)
        object.__setattr__(self, "first_batch", check_batch("first_batch", self.first_batch, self.arms, self.horizon))

    def _sizes(self) -> dict[str, int]:
        return {"first_batch": self.stages[0].batch_users}

    def plan_stages(self) -> tuple[EliminationStage, ...]:
        def with_batch(error: ArmError, users: int) -> ArmError:
            return error.plus_batches(self.batch_plan(users))

        if self.constants != "paper":
            return grown_stages(self, self.growth, self.first_batch, with_batch)
        sizes = batch_sizes(self.horizon, self.first_batch or 2, self.growth)
        return tuple(
            EliminationStage(users, 1, paper_width(self.privacy, self.horizon, phase, seen))
            for phase, (users, seen) in enumerate(zip(sizes, accumulate(sizes), strict=True), 1)
        )


def check_batch(name: str, batch: int | None, arms: int, horizon: int) -> int | None:
    """Refuse a batch that not every arm can have."""
    if batch is None:
        return None
    batch = check_whole(name, batch, 1, LARGEST_USERS, "leave it out for a good one")
    if batch * arms > horizon:
        most = f"must be at most {horizon // arms}, for {arms} arms and {horizon:,} users"
        raise ParameterError(name, batch, most, "take smaller batches, fewer arms or more users")
    return batch


def grown_stages(
    policy: Elimination, growth: float, first: int | None, with_batch: Callable[[ArmError, int], ArmError]
) -> tuple[EliminationStage, ...]:
    """Stages of one batch an arm, each batch `growth` times as large as the last.

    Args:
        policy: whose arms, users and failure are counted on.
        growth: how much larger each batch is.
        first: users of the first; left out, the smallest power of two after which an arm can be dropped at all.
        with_batch: an arm's error with a batch of so many users more.
    """

    def failure(first: int) -> float:
        """The failure of one comparison of the best arm with another: there are arms - 1 of them after each phase."""
        comparisons = (policy.arms - 1) * len(batch_sizes(policy.horizon, first, growth))
        return policy.failure_probability / comparisons

    def first_width(first: int) -> float:
        return difference_quantile(with_batch(ArmError(0.0), first), failure(first)) / first

    smallest = first or 1
    while first is None and first_width(smallest) > 1 and 4 * smallest * policy.arms <= policy.horizon:
        smallest *= 2
    stages, error, seen = [], ArmError(0.0), 0
    for users in batch_sizes(policy.horizon, smallest, growth):
        error = with_batch(error, users)
        seen += users
        stages.append(EliminationStage(users, 1, difference_quantile(error, failure(smallest)) / seen))
    return tuple(stages)


def batch_sizes(horizon: int, first: int, growth: float) -> list[int]:
    """The sizes of an arm's batches in all phases that two arms can have; at least one.

    >>> batch_sizes(1000, 64, 2), batch_sizes(1000, 64, 1.25), batch_sizes(10, 64, 2)
    ([64, 128, 256], [64, 80, 100, 125], [64])
    """
    sizes, exact = [first], first * growth
    while 2 * (sum(sizes) + int(exact)) <= horizon:
        sizes.append(int(exact))
        exact *= growth
    return sizes
