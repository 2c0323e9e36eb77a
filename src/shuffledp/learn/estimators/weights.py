"""Weights of people: how much each one's loss counts, never more than a declared maximum.

A person's weight is as private as the rest of the row. It multiplies a gradient that is clipped already, by at most 1
after division by the maximum, so that no gradient gets longer and neighbours may differ in the weight, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import DataError, ParameterError
from shuffledp.learn.estimators.declared import HAIR, Changed, Floats, check_moderate
from shuffledp.learn.optimize import Loss
from shuffledp.learn.optimize.losses import Rows
from shuffledp.learn.optimize.sets import ConvexSet
from shuffledp.learn.spec import refuse_first


@dataclass(frozen=True, kw_only=True)
class WeightedLoss(Loss):
    """Another loss, times a weight in 0..1 that every user has beside the rest of the row.

    >>> from shuffledp.learn.optimize import LogisticLoss
    >>> loss = WeightedLoss(of=LogisticLoss())
    >>> loss.gradients(np.zeros(1), np.ones((2, 1)), np.ones(2), np.array([1.0, 0.5])).tolist()
    [[-0.5], [-0.25]]
    """

    name: ClassVar[str] = "weighted"
    of: Loss

    @property
    def is_linear(self) -> bool:  # type: ignore[override]
        return self.of.is_linear

    @property
    def has_prox(self) -> bool:  # type: ignore[override]
        return self.of.has_prox

    @property
    def ridge(self) -> float:  # type: ignore[override]
        return self.of.ridge

    @property
    def outputs(self) -> int:
        return self.of.outputs

    @property
    def row_bound(self) -> float | None:
        return self.of.row_bound

    def lipschitz(self, domain: ConvexSet) -> float:
        return self.of.lipschitz(domain)

    @property
    def smoothness(self) -> float | None:
        return self.of.smoothness

    def check_rows(self, dimension: int, *rows: ArrayLike) -> Rows:
        """What the other loss checks, and weights in 0..1."""
        *others, weights = rows
        checked = np.asarray(weights, dtype=np.float64)
        refuse_first("weights", checked, ~((checked >= 0) & (checked <= 1)), "must be in 0..1", "divide by the largest")
        return *self.of.check_rows(dimension, *others), checked

    def values(self, theta: Floats, *rows: Floats) -> Floats:
        *others, weights = rows
        return weights * self.of.values(theta, *others)

    def gradients(self, theta: Floats, *rows: Floats) -> Floats:
        *others, weights = rows
        return weights[:, np.newaxis] * self.of.gradients(theta, *others)

    def sent(self, theta: Floats, bound: float, smoothing: float | None, *rows: Floats) -> tuple[Floats, int]:
        """Clipped gradients of the other loss, times weights, which make none longer."""
        *others, weights = rows
        sent, clipped = self.of.sent(theta, bound, smoothing, *others)
        return sent * np.minimum(weights, 1.0)[:, np.newaxis], clipped

    def moments(self, bound: float, *rows: Floats) -> tuple[Floats, int]:
        """Moments of the other loss, times weights: those of the weighted loss's curvature."""
        *others, weights = rows
        sent, clipped = self.of.moments(bound, *others)
        return np.minimum(weights, 1.0)[:, np.newaxis] * sent, clipped

    def document(self) -> dict[str, Any]:
        return {"loss": self.name, "of": self.of.document()}


def scaled_weights(weights: Any, users: int, largest: Any) -> tuple[Floats, Changed]:
    """People's weights as parts of the declared maximum, and which of them had to be cut off.

    Raises:
        DataError: not a finite number >= 0 a person, or zero for all.
        ParameterError: the maximum is no positive number.

    >>> scaled_weights([1, 4, 9], 3, 4.0)
    (array([0.25, 1.  , 1.  ]), array([False, False,  True]))
    """
    most = check_moderate("max_weight", largest, "say how much one person may weigh at most")
    try:
        found = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.full(0, np.nan)
    if found.ndim == 0:
        found = np.full(users, float(found))
    if found.shape != (users,):
        problem = f"must be one number for each of {users} people; sample_weight.shape == {found.shape}"
        raise DataError("sample_weight", f"shape {found.shape}", problem, "pass one a row")
    bad = ~(np.isfinite(found) & (found >= 0))
    refuse_first("sample_weight", found, bad, "must be a finite number >= 0", "0 leaves a person's loss out")
    if not found.any():
        raise DataError("sample_weight", "zero for all", "must weigh somebody: all weights are zero", "leave it out")
    return np.minimum(found / most, 1.0), found / most > HAIR


def weights_of_classes(asked: Any, classes: NDArray[Any]) -> Floats | None:
    """A weight for each class, as declared; None where nobody asked.

    Raises:
        ParameterError: something else than a positive weight for each class, or "balanced", which would read labels.
    """
    if asked is None:
        return None
    if isinstance(asked, str):
        problem = "must be a weight for each class: how common each is cannot be read from people's labels unpaid"
        way_out = 'declare what is known publicly, for instance {"no": 1, "yes": 9}'
        raise ParameterError("class_weight", asked, problem, way_out)
    names = classes.tolist()
    if not isinstance(asked, Mapping) or set(asked) - set(names):
        problem = f"must be weights of {', '.join(map(str, names))}"
        raise ParameterError("class_weight", asked, problem, "pass a dictionary, a class with its weight")
    return np.array([check_moderate("class_weight", asked.get(name, 1.0), "leave a class out for 1") for name in names])
