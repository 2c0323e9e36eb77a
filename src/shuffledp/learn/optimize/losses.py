"""Losses of one user's data, for all users at once: value, gradient and, where it is needed, the proximal map.

A loss has a part that depends on data, which is clipped and gets noise, and a `ridge`, ridge/2 |theta|^2, which depends
on nobody: the analyzer adds its gradient itself, so it costs no privacy.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import DataError, ParameterError
from shuffledp.learn.optimize.sets import ConvexSet
from shuffledp.protocols.domains.ball import Ball

Floats = NDArray[np.float64]
Rows = tuple[Floats, ...]
"""Users' data: one or more arrays whose first axis is the users."""


class Loss(ABC):
    """A loss of one user's data; `lipschitz`, `smoothness` and `strong_convexity` are of the part that is data's."""

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
        """The strong convexity of the part that depends on data."""
        return 0.0

    @property
    def is_convex(self) -> bool:
        """Whether values are convex: solvers with proved bounds need it."""
        return True

    @property
    def outputs(self) -> int:
        """How many linear scores it is a function of, where it is linear."""
        return 1

    @property
    def row_bound(self) -> float | None:
        """No row of features is longer, where it is linear; None where that is not known."""
        return None

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

    def refute(self, domain: ConvexSet) -> None:  # noqa: B027
        """Try to refute what the loss claims before anything is planned; for those of this package its tests do."""

    def objective(self, theta: Floats, *rows: Floats) -> float:
        """The mean loss of these users, ridge included."""
        return float(self.values(theta, *rows).mean()) + self.ridge / 2 * float(theta @ theta)

    def sent(self, theta: Floats, bound: float, smoothing: float | None, *rows: Floats) -> tuple[Floats, int]:
        """What users send: their gradients, or their envelopes', none longer than the bound, and how many were.

        One that is no number is sent as 0 and counted: a run must not end because of one person's row.
        """
        gradients = self.unclipped(theta, smoothing, *rows)
        odd = np.flatnonzero(~np.isfinite(gradients).all(axis=1))
        if odd.size:
            gradients = gradients.copy()
            gradients[odd] = 0.0
        sent, clipped = Ball(theta.size, bound).clip_values(gradients)
        return sent, clipped + odd.size

    def moments(self, bound: float, *rows: Floats) -> tuple[Floats, int]:
        """Every user's products of features, as `packed` makes them, none longer than the bound, and how many were."""
        raise ParameterError("loss", self.name, "must be of a linear model here", "take another solver")

    def unclipped(self, theta: Floats, smoothing: float | None, *rows: Floats) -> Floats:
        """Users' gradients, or their envelopes', as long as they are: what `sent` clips."""
        if smoothing is None:
            return self.gradients(theta, *rows)
        return smoothing * (theta - self.prox(theta, smoothing, *rows))

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


def moments_of(loss: Loss, parameters: Mapping[str, Any], *rows: Floats) -> tuple[Floats, int]:
    """What users send in the device step "moments", a row a user, and how many of them had to be clipped.

    Args:
        loss: the loss that the step names.
        parameters: `clip` for their longest length.
        *rows: users' checked data.
    """
    return loss.moments(parameters["clip"], *rows)
