"""Counts, predicted by the exponential of a line: Poisson regression."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import ParameterError
from shuffledp.learn.estimators.declared import HAIR, Changed, Floats, check_moderate
from shuffledp.learn.estimators.regression import ShuffleRegressor
from shuffledp.learn.optimize import Loss, PoissonLoss
from shuffledp.learn.spec import refuse_first


@dataclass(kw_only=True, eq=False, repr=False)
class ShufflePoissonRegressor(ShuffleRegressor):
    """Poisson regression in the shuffle model: counts or rates whose logarithm is linear in the features.

    `max_target` must be declared: larger targets are cut off to it. Targets below 0 are refused. The loss goes on along
    its tangent where a mean would be larger than `max_target`.

    Attributes:
        max_target: larger targets are cut off to it; must be declared.

    >>> X = np.arange(1, 50_001)[:, np.newaxis] * np.sqrt([2, 3]) % 2 - 1
    >>> y = np.floor(np.exp(X @ [0.8, -0.5]) + np.arange(50_000) * np.sqrt(5) % 1)
    >>> model = ShufflePoissonRegressor(feature_bounds=(-1, 1), max_target=8, gradient_bound=3, random_state=1)
    >>> model = model.fit(X, y)
    >>> bool(np.abs(model.coef_ - [0.8, -0.5]).max() < 0.2), bool((model.predict(X) > 0).all())
    (True, True)
    """

    radius: float = 3.0
    max_target: float | None = None

    def _loss(self) -> Loss:
        return PoissonLoss(target_bound=self._largest, ridge=self.alpha)

    @property
    def _largest(self) -> float:
        if self.max_target is None:
            problem = "must say how large a count may be: it cannot be read from people's data, nor guessed"
            raise ParameterError("max_target", None, problem, "pass a number, 10 for instance")
        return check_moderate("max_target", self.max_target, "for instance 10")

    def _declare_targets(self) -> None:
        self.max_target_ = self._largest

    def _set_model(self, coefficients: Floats, intercepts: Floats) -> None:
        self.coef_, self.intercept_ = coefficients[0], intercepts[0]

    def _scaled_targets(self, y: NDArray[Any]) -> tuple[Floats, Changed]:
        counts = np.asarray(y, dtype=np.float64)
        refuse_first("y", counts, counts < 0, "must be a count >= 0", "take a regression of numbers")
        return np.minimum(counts, self.max_target_), counts > self.max_target_ * HAIR

    def predict(self, X: ArrayLike) -> Floats:  # noqa: N803
        """The predicted mean count of every row.

        Args:
            X: a row of features a person.

        Returns:
            One positive number for each row.
        """
        return np.asarray(np.exp(self._scores(X)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def _declaration(self) -> dict[str, Any]:
        return {**super()._declaration(), "max_target": self._largest}
