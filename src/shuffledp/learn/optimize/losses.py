"""Losses of one user's data, for all users at once: value, gradient and, where it is needed, the proximal map.

A loss has a part that depends on data, which is clipped and gets noise, and a `ridge`, ridge/2 |theta|^2, which depends
on nobody: the analyzer adds its gradient itself, so it costs no privacy.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import DataError, ParameterError
from shuffledp.learn.optimize.sets import ConvexSet
from shuffledp.learn.spec import check_declared, not_negative, positive
from shuffledp.protocols.domains.ball import Ball

Floats = NDArray[np.float64]
Rows = tuple[Floats, ...]
"""Users' data: one or more arrays whose first axis is the users."""


class Loss(ABC):
    """A convex loss. `lipschitz`, `smoothness` and `strong_convexity` are of the part that depends on data."""

    name: ClassVar[str]
    is_linear: ClassVar[bool] = False
    """Whether it is a function of linear scores, <features, theta> or one score a row of a matrix theta."""
    has_prox: bool
    ridge: float

    @abstractmethod
    def lipschitz(self, domain: ConvexSet) -> float:
        """No user's gradient on the domain is longer: longer ones are clipped to this."""

    @property
    @abstractmethod
    def smoothness(self) -> float | None:
        """Gradients change by at most this much per distance; None where they jump."""

    @property
    def strong_convexity(self) -> float:
        """Of the part that depends on data."""
        return 0.0

    @property
    def outputs(self) -> int:
        """How many linear scores it is a function of, where it is linear."""
        return 1

    def imagined_targets(self, scores: Floats, chances: Floats, rare: float) -> Floats | None:
        """Targets of synthetic rows with these scores, for rehearsals; None where the loss is not rehearsed.

        Args:
            scores: what a linear model says of every row; with several outputs a column each.
            chances: uniform in (0, 1), a number a row.
            rare: how much less likely the second class is than the first, as a score.
        """
        return None

    def constant_loss(self, targets: Floats) -> float:
        """The least mean loss of these targets if the same is said of everybody; of losses that are rehearsed."""
        raise ParameterError("loss", self.name, "must know its targets here", "rank solvers by their bounds")

    @abstractmethod
    def values(self, theta: Floats, *rows: Floats) -> Floats:
        """Every user's loss, without the ridge."""

    @abstractmethod
    def gradients(self, theta: Floats, *rows: Floats) -> Floats:
        """Every user's gradient, a row a user, without the ridge."""

    def prox(self, theta: Floats, smoothing: float, *rows: Floats) -> Floats:
        """Every user's minimizer of loss(z) + smoothing/2 |z - theta|^2, a row a user."""
        raise ParameterError("loss", self.name, "must have a proximal map here", "give one, or take another solver")

    def check_rows(self, dimension: int, *rows: ArrayLike) -> Rows:
        """Users' data as arrays of one length, or an error that names the first bad row."""
        arrays = tuple(np.asarray(row) for row in rows)
        if not arrays or any(array.ndim == 0 or len(array) != len(arrays[0]) for array in arrays) or not len(arrays[0]):
            shapes = ", ".join(str(array.shape) for array in arrays)
            raise DataError("data", f"shapes {shapes}", "must be arrays with an entry a user", "pass one a user")
        for array in arrays:
            if array.dtype.kind not in "buif":
                raise DataError("data", f"dtype {array.dtype}", "must be numbers", "convert them, e.g. x.astype(float)")
        return tuple(array.astype(np.float64, copy=False) for array in arrays)

    def objective(self, theta: Floats, *rows: Floats) -> float:
        """The mean loss of these users, ridge included."""
        return float(self.values(theta, *rows).mean()) + self.ridge / 2 * float(theta @ theta)

    def sent(self, theta: Floats, bound: float, smoothing: float | None, *rows: Floats) -> tuple[Floats, int]:
        """What users send: their gradients, or their envelopes', none longer than the bound, and how many were."""
        if smoothing is None:
            gradients = self.gradients(theta, *rows)
        else:
            gradients = smoothing * (theta - self.prox(theta, smoothing, *rows))
        return Ball(theta.size, bound).clip_values(gradients)

    def document(self) -> dict[str, Any]:
        """The loss as JSON: its name and its parameters."""
        return {"loss": self.name, "ridge": self.ridge}


def gradient_of(loss: Loss, parameters: Mapping[str, Any], *rows: Floats) -> tuple[Floats, int]:
    """What users send in the device step "gradient", a row a user, and how many of them had to be clipped.

    Args:
        loss: the loss that the step names.
        parameters: `point` where gradients are taken, `clip` for their longest length, and `smoothing` of the envelopes
            whose gradients are sent instead, or None.
        *rows: users' checked data.
    """
    point = np.asarray(parameters["point"], dtype=np.float64)
    return loss.sent(point, parameters["clip"], parameters["smoothing"], *rows)


@dataclass(frozen=True, kw_only=True)
class CustomLoss(Loss):
    """Any convex loss: values(theta, *rows), gradients(theta, *rows) and, where needed, prox(theta, smoothing, *rows).

    Whoever gives it answers for its constants; gradients beyond `bound` are clipped and counted, so privacy does not
    depend on them.

    >>> mean = CustomLoss(
    ...     value=lambda theta, x: ((theta - x) ** 2).sum(axis=1) / 2,
    ...     gradient=lambda theta, x: theta - x,
    ...     bound=2.0, smooth=1.0, strongly=1.0,
    ... )
    >>> mean.gradients(np.zeros(1), np.array([[0.5], [-0.5]])).tolist()
    [[-0.5], [0.5]]
    """

    name: ClassVar[str] = "custom"

    value: Callable[..., Floats]
    gradient: Callable[..., Floats]
    bound: float = positive("say how long a gradient can be")
    smooth: float | None = positive("leave it out if gradients jump", default=None)
    strongly: float = not_negative(default=0.0)
    proximal: Callable[..., Floats] | None = None
    ridge: float = not_negative(default=0.0)

    def __post_init__(self) -> None:
        check_declared(self)

    @property
    def has_prox(self) -> bool:  # type: ignore[override]
        return self.proximal is not None

    def lipschitz(self, domain: ConvexSet) -> float:
        return float(self.bound)

    @property
    def smoothness(self) -> float | None:
        return self.smooth

    @property
    def strong_convexity(self) -> float:
        return self.strongly

    def values(self, theta: Floats, *rows: Floats) -> Floats:
        return np.asarray(self.value(theta, *rows), dtype=np.float64)

    def gradients(self, theta: Floats, *rows: Floats) -> Floats:
        return np.asarray(self.gradient(theta, *rows), dtype=np.float64)

    def prox(self, theta: Floats, smoothing: float, *rows: Floats) -> Floats:
        if self.proximal is None:
            return super().prox(theta, smoothing, *rows)
        return np.asarray(self.proximal(theta, smoothing, *rows), dtype=np.float64)
