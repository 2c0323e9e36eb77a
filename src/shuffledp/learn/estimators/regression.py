"""Numbers, predicted by a line: ridge regression and Huber's, which outliers move less."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.learn.estimators.base import ShuffleLinearModel
from shuffledp.learn.estimators.data import checked_data
from shuffledp.learn.estimators.declared import Floats, check_moderate
from shuffledp.learn.estimators.targets import DeclaredTargets
from shuffledp.learn.optimize import HuberLoss, LinearLoss, SquaredLoss

# The base says in words what to install, so it comes first.
from sklearn.base import RegressorMixin  # isort: skip


@dataclass(kw_only=True, eq=False, repr=False)
class ShuffleLinearRegressor(RegressorMixin, ShuffleLinearModel):
    """A number by a score; `target_bounds` (low, high) are declared, and targets beyond are cut off."""

    radius: float = 2.0
    target_bounds: ArrayLike = (-1.0, 1.0)

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:  # noqa: N803
        """Learn from rows of features and a number each.

        Args:
            X: a row of features a person.
            y: each person's number; beyond `target_bounds` it is cut off and counted.

        Returns:
            The estimator itself, fitted.

        Raises:
            DataError: data that cannot be learned from.
            InfeasibleError: too few people for the privacy asked for.
        """
        with self._all_or_nothing():
            features, targets = checked_data(self, X, y, y_numeric=True, ensure_min_samples=2)
            self.targets_ = DeclaredTargets.of(self.target_bounds)
            coefficients, intercept = self._fit(features, *self._scaled_targets(targets))
            self.coef_ = coefficients * self.targets_.half
            self.intercept_ = intercept * self.targets_.half + self.targets_.centre
        return self

    def _scaled_targets(self, y: NDArray[Any]) -> tuple[Floats, int]:
        return self.targets_.scaled(np.asarray(y, dtype=np.float64))

    def predict(self, X: ArrayLike) -> Floats:  # noqa: N803
        """The predicted number of every row.

        Args:
            X: a row of features a person.

        Returns:
            One number for each row.
        """
        return self._scores(X)

    def _declaration(self) -> dict[str, Any]:
        bounds = np.asarray(self.target_bounds, dtype=np.float64).tolist()
        return {**super()._declaration(), "target_bounds": bounds}


@dataclass(kw_only=True, eq=False, repr=False)
class ShuffleRidge(ShuffleLinearRegressor):
    """Ridge regression in the shuffle model: squared loss and `alpha`, strongly convex.

    `gradient_bound` is 1, which no gradient passes where the model is 0: longer ones, of predictions that are off by
    more than half the targets' range, are clipped and counted, and `bound_` is None. With None it is 1 + `radius`.

    >>> X = np.arange(1, 50_001)[:, np.newaxis] * np.sqrt([2]) % 10
    >>> y = 3 * X[:, 0] + 5
    >>> model = ShuffleRidge(feature_bounds=(0, 10), target_bounds=(0, 40), random_state=1).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    alpha: float = 1e-3
    gradient_bound: float | None = 1.0

    def _loss(self) -> LinearLoss:
        return SquaredLoss(ridge=self.alpha)


@dataclass(kw_only=True, eq=False, repr=False)
class ShuffleHuberRegressor(ShuffleLinearRegressor):
    """Huber's regression in the shuffle model: squared up to `threshold`, straight beyond.

    The threshold is a part of half the targets' range. No gradient is longer, so that noise shrinks with it.

    >>> X = np.arange(1, 50_001)[:, np.newaxis] * np.sqrt([2, 3]) % 2 - 1
    >>> y = X @ [0.5, -0.25] + np.where(np.arange(50_000) % 50, 0, 5)
    >>> model = ShuffleHuberRegressor(feature_bounds=(-1, 1), random_state=1).fit(X, y)
    >>> bool(np.abs(model.coef_ - [0.5, -0.25]).max() < 0.05)
    True
    """

    threshold: float = 0.25

    def _loss(self) -> LinearLoss:
        check_moderate("threshold", self.threshold, "0.25 is a quarter of half the targets' range")
        return HuberLoss(ridge=self.alpha, threshold=self.threshold)
