"""What is to be minimized, for whom, and under which limits: all that a solver is planned from."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Self

from shuffledp.accounting.dropouts import check_honest_fraction, honest_users
from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.learn.optimize.losses import Loss
from shuffledp.learn.optimize.sets import ConvexSet
from shuffledp.learn.spec import check_declared, not_negative, positive
from shuffledp.privacy import Privacy
from shuffledp.protocols.request import check_users

# The noise of a plan passes the Gaussian of its target by at most about this part.
ROOM = 1.01


@dataclass(frozen=True, kw_only=True)
class Problem:
    """So many users with a convex loss over a set: never their data.

    Attributes:
        users: how many people there are.
        domain: where models lie.
        lipschitz: no gradient of the part of the loss that depends on data is longer; longer ones are clipped.
        smoothness: that part's gradients change by at most this much per distance; None if they jump.
        strong_convexity: that part's strong convexity.
        ridge: the strong convexity of the part that depends on nobody.
        has_prox: whether the loss has a proximal map.
        linear: whether the loss is a function of linear scores of the features.
        outputs: how many linear scores, where it is.
        row_bound: no row of features is longer, where it is and where that is known; longer ones are shortened.
        privacy: what every user is promised; None where nothing is private.
        honest_fraction: the users of every cohort who are counted on to add their noise.
        rounds: how many rounds are allowed.
        visits: how often one user may be asked; None is in every round.
        method: the method of the vector sums; "auto" takes the best.
        max_messages: how many messages a user may send in one round.

    >>> from shuffledp.learn.optimize import L2Ball, LogisticLoss
    >>> problem = Problem.of(LogisticLoss(), L2Ball(dimension=5, radius=2), users=10_000, privacy=Privacy(1, 1e-6))
    >>> problem.lipschitz, problem.smoothness, problem.smallest_batch
    (1.0, 0.25, 20)
    """

    users: int
    domain: ConvexSet
    lipschitz: float = positive("say how long a gradient can be")
    smoothness: float | None = positive("leave it out if gradients jump", default=None)
    strong_convexity: float = not_negative(default=0.0)
    ridge: float = not_negative(default=0.0)
    has_prox: bool = False
    linear: bool = False
    privacy: Privacy | None
    honest_fraction: float = 1.0
    rounds: int = 1000
    visits: int | None = None
    method: str = "auto"
    max_messages: int | None = None
    loss: Mapping[str, Any] | None = field(default=None, compare=False)
    """The loss's document, for devices: what a solver plans depends on its constants only."""
    outputs: int = 1
    row_bound: float | None = positive("leave it out if rows may be of any length", default=None)

    def __post_init__(self) -> None:
        check_users(self.users)
        check_honest_fraction(self.honest_fraction)
        check_declared(self)
        for name, value in (("rounds", self.rounds), ("visits", self.visits)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise ParameterError(name, value, "must be a whole number >= 1", "1000 suits most")
        if not self.domain.reach > 0:
            raise ParameterError("domain", self.domain.document(), "must be more than a point", "widen it")
        if self.privacy is not None and self.users < self.smallest_batch:
            raise InfeasibleError(
                "users",
                self.users,
                f"is too few for one batch: at this epsilon and delta its noise would be longer than any gradient; "
                f"{self.smallest_batch:,} would do",
                f"find {self.smallest_batch:,} users to begin with (to learn much takes more), or choose a larger "
                "epsilon or fewer parameters",
            )

    @classmethod
    def of(cls, loss: Loss, domain: ConvexSet, *, users: int, privacy: Privacy | None, **limits: Any) -> Self:
        """The problem of a loss over a set.

        Args:
            loss: its constants are asked, never its data.
            domain: where models lie.
            users: how many people there are.
            privacy: what every user is promised; None where nothing is private.
            **limits: rounds, visits, honest_fraction, method and max_messages.

        Raises:
            InfeasibleError: the users are too few for one batch at this privacy.
            ParameterError: the loss is not convex, or what it claims is refuted.
        """
        if not loss.is_convex:
            raise ParameterError("loss", loss.name, "must be convex for a bound on its error", "take GradientRounds")
        loss.refute(domain)
        return cls(
            users=users,
            domain=domain,
            lipschitz=loss.lipschitz(domain),
            smoothness=loss.smoothness,
            strong_convexity=loss.strong_convexity,
            ridge=loss.ridge,
            has_prox=loss.has_prox,
            linear=loss.is_linear,
            outputs=loss.outputs,
            row_bound=loss.row_bound,
            privacy=privacy,
            loss=loss.document(),
            **limits,
        )

    @property
    def dimension(self) -> int:
        """Numbers of a model."""
        return self.domain.dimension

    @property
    def curvature(self) -> float:
        """The strong convexity of the whole loss: a ridge that leaves intercepts alone adds none."""
        return self.strong_convexity + (self.ridge if self.domain.is_penalized else 0.0)

    @property
    def visits_allowed(self) -> int:
        """Rounds that one user may be in."""
        return self.rounds if self.visits is None else min(self.visits, self.rounds)

    @cached_property
    def unit_noise(self) -> float:
        """About the length of one round's noise in a sum of gradients: sqrt(dimension) times its standard deviation.

        For planning only: step sizes and bounds come from the exact variance of the plan that is chosen.
        """
        if self.privacy is None:
            return 0.0
        surplus = self.users / honest_users(self.users, self.honest_fraction)
        deviation = gaussian_standard_deviation(self.privacy, 2 * self.lipschitz)
        return ROOM * deviation * math.sqrt(self.dimension * surplus)

    @property
    def smallest_batch(self) -> int:
        """Users whose mean gradient's noise is no longer than a gradient can be."""
        return max(1, math.ceil(self.unit_noise / self.lipschitz))

    def document(self) -> dict[str, Any]:
        """The problem as JSON: the constants that solvers are planned from."""
        found = {name.name: getattr(self, name.name) for name in fields(self) if name.compare}
        # Left out where there is one score, as in documents from before there could be more.
        if self.outputs == 1:
            del found["outputs"]
        # Only a plan of moments depends on it, which a stage's document names.
        del found["row_bound"]
        privacy = found.pop("privacy")
        claim = (None, None) if privacy is None else (privacy.epsilon, privacy.delta)
        return {**found, "domain": self.domain.document(), "epsilon": claim[0], "delta": claim[1]}
