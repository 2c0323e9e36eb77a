"""Counts: the loss of a log-linear Poisson model."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shuffledp.learn.optimize.linear_losses import LinearLoss
from shuffledp.learn.optimize.losses import Floats
from shuffledp.learn.optimize.sets import ConvexSet
from shuffledp.learn.spec import check_declared, positive, refuse_first


@dataclass(frozen=True, kw_only=True)
class PoissonLoss(LinearLoss):
    """e^score - target score, targets (counts or rates) in 0..target_bound; e^score is the predicted mean.

    An exponential has neither a slope nor a curvature that one could declare. So beyond the score at which the mean is
    `largest_mean` the loss goes on along its tangent: it is convex everywhere, its gradients and their changes are
    bounded whatever the domain, and models whose means stay below are charged exactly the Poisson loss.

    Attributes:
        target_bound: no target is larger.
        largest_mean: the loss is straight where the mean would be larger; the target's bound if left out.
        feature_bound: no row of features is longer.
        ridge: the strong convexity of the part that depends on nobody.

    >>> loss = PoissonLoss(target_bound=10)
    >>> loss.slopes(np.array([0.0, 1.0, 5.0]), np.array([3.0, 3.0, 3.0])).round(3).tolist()
    [-2.0, -0.282, 7.0]
    """

    name: ClassVar[str] = "poisson"
    curvature: ClassVar[float | None] = None
    has_prox = False
    target_bound: float = positive("say how large a count can be")
    largest_mean: float | None = positive("leave it out to take the target's bound", default=None)

    def __post_init__(self) -> None:
        check_declared(self)
        if self.largest_mean is None:
            object.__setattr__(self, "largest_mean", float(self.target_bound))

    @property
    def _largest_mean(self) -> float:
        return float(self.target_bound if self.largest_mean is None else self.largest_mean)

    @property
    def smoothness(self) -> float:
        return self._largest_mean * self.feature_bound**2

    def lipschitz(self, domain: ConvexSet) -> float:
        """feature_bound times the steepest slope over scores that the domain allows: of no count, or of the most."""
        reach = self.feature_bound * domain.largest_norm
        largest = self._largest_mean if reach >= math.log(self._largest_mean) else math.exp(reach)
        smallest = min(math.exp(-reach), self._largest_mean)
        return self.feature_bound * max(largest, self.target_bound - smallest)

    def _check_targets(self, targets: Floats) -> None:
        bad = (targets < 0) | (targets > self.target_bound * (1 + 1e-12))
        wanted = f"must be a count in 0..{self.target_bound:g}"
        refuse_first("targets", targets, bad, wanted, "clip it, or declare a larger bound")

    def score_values(self, scores: Floats, targets: Floats) -> Floats:
        last = math.log(self._largest_mean)
        means = np.exp(np.minimum(scores, last))
        return np.asarray(means * (1 + np.maximum(scores - last, 0.0)) - targets * scores)

    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        return np.asarray(np.exp(np.minimum(scores, math.log(self._largest_mean))) - targets)
