"""Several classes at once: a score a class, one gradient a user, and so one epsilon for all classes."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.accounting.rounding import TOLERANCE
from shuffledp.errors import DataError
from shuffledp.learn.optimize.linear_losses import check_features, lengths_of
from shuffledp.learn.optimize.losses import Floats, Loss, Rows
from shuffledp.learn.optimize.moments import packed
from shuffledp.learn.optimize.sets import ConvexSet
from shuffledp.learn.spec import check_declared, not_negative, positive, refuse_first, whole

LARGEST_CLASSES = 1 << 16


@dataclass(frozen=True, kw_only=True)
class SoftmaxLoss(Loss):
    """log(sum over classes of e^score) - score of the user's class; targets are classes 0..classes-1.

    A model is a matrix with a row of weights a class, flattened row by row (`theta.reshape(classes, -1)`). A user's
    gradient is an outer product, (probabilities - indicator of the class) x features, so that its length is the product
    of two lengths; it is clipped as a whole, never class by class.

    Attributes:
        classes: how many classes there are.
        feature_bound: no row of features is longer.
        ridge: the strong convexity of the part that depends on nobody.

    >>> loss = SoftmaxLoss(classes=3)
    >>> rows = loss.check_rows(6, [[0.6, 0.8]], [2])
    >>> loss.gradients(np.zeros(6), *rows).round(3).tolist()
    [[0.2, 0.267, 0.2, 0.267, -0.4, -0.533]]
    """

    name: ClassVar[str] = "softmax"
    is_linear: ClassVar[bool] = True
    has_prox = False
    classes: int = whole(2, LARGEST_CLASSES, "count the classes")
    feature_bound: float = positive("say how long a row of features can be", default=1.0)
    ridge: float = not_negative(default=0.0)

    def __post_init__(self) -> None:
        check_declared(self)

    @property
    def outputs(self) -> int:
        """A score a class."""
        return self.classes

    @property
    def row_bound(self) -> float:
        return self.feature_bound

    def lipschitz(self, domain: ConvexSet) -> float:
        """sqrt(2) feature_bound: approached where another class than the user's is certain, never reached."""
        return float(np.sqrt(2.0) * self.feature_bound)

    @property
    def smoothness(self) -> float:
        """feature_bound^2 / 2: no variance of scores under probabilities is above half their squared length."""
        return self.feature_bound**2 / 2

    def check_rows(self, dimension: int, *rows: ArrayLike) -> Rows:
        """Features and classes, all finite; `dimension` counts the numbers of a model, classes times features."""
        if dimension % self.classes:
            wanted = f"must be a multiple of the {self.classes} classes"
            raise DataError("dimension", dimension, wanted, "a model has a row of weights a class")
        if len(rows) != 2:
            raise DataError("data", f"{len(rows)} arrays", "must be features and classes", "pass both")
        features, targets = check_features(dimension // self.classes, *super().check_rows(dimension, *rows))
        unknown = (targets != np.floor(targets)) | (targets < 0) | (targets >= self.classes)
        refuse_first("targets", targets, unknown, f"must be a class in 0..{self.classes - 1}", "number the classes")
        return features, targets

    def scores(self, theta: Floats, features: Floats) -> Floats:
        """A score a user and class."""
        return np.asarray(features @ theta.reshape(self.classes, -1).T)

    def probabilities(self, theta: Floats, features: Floats) -> Floats:
        """How likely each class is, a row a user."""
        scores = self.scores(theta, features)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def values(self, theta: Floats, *rows: Floats) -> Floats:
        features, targets = rows
        scores = self.scores(theta, features)
        largest = scores.max(axis=1)
        total = np.log(np.exp(scores - largest[:, np.newaxis]).sum(axis=1))
        return np.asarray(largest - scores[np.arange(len(scores)), targets.astype(np.intp)] + total)

    def gradients(self, theta: Floats, *rows: Floats) -> Floats:
        features, targets = rows
        return _outer(_residuals(self.scores(theta, features), targets), features)

    def sent(self, theta: Floats, bound: float, smoothing: float | None, *rows: Floats) -> tuple[Floats, int]:
        if smoothing is not None:
            self.prox(theta, smoothing, *rows)
        features, targets = rows
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self.scores(theta, features)
            lengths = lengths_of(features)
        for name, numbers in (("features", lengths), ("scores", scores.sum(axis=1))):
            refuse_first(name, numbers, ~np.isfinite(numbers), "must be finite", "scale the features first")
        residuals = _residuals(scores, targets)
        sides = lengths_of(residuals)
        with np.errstate(over="ignore"):
            long = sides * lengths > bound
        clipped = int(np.count_nonzero(long))
        if clipped:
            # A hair shorter than the bound, so that rounding cannot put it beyond.
            shape = residuals[long] / sides[long, np.newaxis]
            residuals[long] = shape * (bound * (1 - TOLERANCE / 4) / lengths[long, np.newaxis])
        return _outer(residuals, features), clipped

    def moments(self, bound: float, *rows: Floats) -> tuple[Floats, int]:
        return packed(rows[0], lengths_of(rows[0]), bound)

    def imagined_targets(self, scores: Floats, chances: Floats, rare: float) -> Floats:
        first = np.where(np.arange(self.classes) == 0, rare, 0.0)
        weights = np.exp(scores + first - scores.max(axis=1, keepdims=True))
        up_to = np.cumsum(weights, axis=1) / weights.sum(axis=1, keepdims=True)
        passed = (up_to < chances[:, np.newaxis]).sum(axis=1)
        return np.asarray(np.minimum(passed, self.classes - 1), dtype=np.float64)

    def constant_loss(self, targets: Floats) -> float:
        shares = np.bincount(targets.astype(np.intp), minlength=self.classes) / len(targets)
        there = shares[shares > 0]
        return float(-(there * np.log(there)).sum())

    def document(self) -> dict[str, Any]:
        return {"loss": self.name, **asdict(self)}


def _residuals(scores: Floats, targets: Floats) -> Floats:
    """Probabilities minus the indicator of the user's class, whose entry is minus the sum of the others, exactly."""
    own = np.arange(len(scores)), targets.astype(np.intp)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    total = weights.sum(axis=1)
    weights[own] = 0.0
    weights[own] = -weights.sum(axis=1)
    weights /= total[:, np.newaxis]
    return np.asarray(weights)


def _outer(residuals: Floats, features: Floats) -> Floats:
    """One outer product a user, flattened."""
    return (residuals[:, :, np.newaxis] * features[:, np.newaxis, :]).reshape(len(features), -1)
