"""Numbers, predicted by a line: ridge regression and Huber's, which outliers move less."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.learn.estimators.base import is_poor_for_few
from shuffledp.learn.estimators.data import checked_data
from shuffledp.learn.estimators.declared import Changed, Floats, check_moderate
from shuffledp.learn.estimators.online import OnlineModel
from shuffledp.learn.estimators.targets import DeclaredTargets
from shuffledp.learn.optimize import HuberLoss, Loss, SquaredLoss

# The base says in words what to install, so it comes first.
from sklearn.base import RegressorMixin  # isort: skip


@dataclass(kw_only=True, eq=False, repr=False)
class ShuffleRegressor(RegressorMixin, OnlineModel):
    """A number by a score."""

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:  # noqa: N803
        """Learn from rows of features and a number each.

        Args:
            X: a row of features a person: an array, a data frame, or sparse rows.
            y: each person's number; beyond what is declared it is cut off and counted.
            sample_weight: how much each person's loss counts, at most `max_weight`; as private as the row.

        Returns:
            The estimator itself, fitted.

        Raises:
            DataError: data that cannot be learned from.
            ParameterError: something that must be declared was not.
            InfeasibleError: too few people for the privacy asked for.
        """
        return self._begin(lambda: self._learn(X, y, sample_weight))

    def partial_fit(
        self,
        X: ArrayLike,  # noqa: N803
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Go on learning from new people: none of them may have been in a call before.

        Args:
            X: a row of features for each new person.
            y: each person's number.
            sample_weight: how much each person's loss counts, at most `max_weight`.

        Returns:
            The estimator itself: the mean of all calls' models, weighted by people. Each call begins at the one before.

        Raises:
            DataError: data that cannot be learned from.
            InfeasibleError: too few new people for the privacy asked for.
        """
        return self._go_on(lambda: self._learn(X, y, sample_weight))

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> None:  # noqa: N803
        begun = self._has_begun
        people, numbers = checked_data(self, X, y, y_numeric=True, ensure_min_samples=2, reset=not begun)
        if not begun:
            self._declare_targets()
        self._fit_targets(people, numbers, sample_weight)

    def _declare(self) -> None:
        self._declare_targets()

    @abstractmethod
    def _declare_targets(self) -> None:
        """Keep what was declared of targets."""

    @property
    def _questions(self) -> tuple[str, ...]:
        return ("rows", "targets")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = is_poor_for_few(self.epsilon)
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class ShuffleLinearRegressor(ShuffleRegressor):
    """A number by a score; `target_bounds` (low, high) must be declared, and targets beyond are cut off.

    Attributes:
        target_bounds: (low, high); targets beyond are cut off and counted.
    """

    radius: float = 2.0
    target_bounds: ArrayLike | None = None

    def _declare_targets(self) -> None:
        self.targets_ = DeclaredTargets.of(self.target_bounds)

    def _set_model(self, coefficients: Floats, intercepts: Floats) -> None:
        self.coef_ = coefficients[0] * self.targets_.half
        self.intercept_ = intercepts[0] * self.targets_.half + self.targets_.centre

    def _scaled_targets(self, y: NDArray[Any]) -> tuple[Floats, Changed]:
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
    """Ridge regression in the shuffle model: squared loss and `alpha`, strongly convex but for the intercept.

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

    def _loss(self) -> Loss:
        return SquaredLoss(ridge=self.alpha)


@dataclass(kw_only=True, eq=False, repr=False)
class ShuffleHuberRegressor(ShuffleLinearRegressor):
    """Huber's regression in the shuffle model: squared up to `threshold`, straight beyond.

    The threshold is a part of half the targets' range. No gradient is longer, so that noise shrinks with it.

    Attributes:
        threshold: from where on the loss is straight, as a part of half the targets' range.

    >>> X = np.arange(1, 50_001)[:, np.newaxis] * np.sqrt([2, 3]) % 2 - 1
    >>> y = X @ [0.5, -0.25] + np.where(np.arange(50_000) % 50, 0, 5)
    >>> model = ShuffleHuberRegressor(feature_bounds=(-1, 1), target_bounds=(-1, 1), random_state=1).fit(X, y)
    >>> bool(np.abs(model.coef_ - [0.5, -0.25]).max() < 0.05)
    True
    """

    threshold: float = 0.25

    def _loss(self) -> Loss:
        check_moderate("threshold", self.threshold, "0.25 is a quarter of half the targets' range")
        return HuberLoss(ridge=self.alpha, threshold=self.threshold)
