"""Losses of linear models: a function of the score <features, theta> and the target."""

from abc import abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from shuffledp.accounting.rounding import TOLERANCE
from shuffledp.errors import DataError, ParameterError
from shuffledp.learn.optimize.losses import Floats, Loss, Rows
from shuffledp.learn.optimize.moments import packed
from shuffledp.learn.optimize.sets import ConvexSet
from shuffledp.learn.spec import check_declared, in_row, not_negative, positive, refuse_first

_SMALL_SQUARE = 1e-280
# How far targets of synthetic rows are from their scores, in parts of the targets' range.
_USUAL_ERROR = 0.2


@dataclass(frozen=True, kw_only=True)
class LinearLoss(Loss):
    """Users' data are features, rows no longer than `feature_bound`, and one target each.

    A gradient is slope times features, so its length is known from the features', and so is its envelope's:
    the slope at the score that the proximal map moves to.

    Attributes:
        feature_bound: no row of features is longer.
        ridge: times half the squared length of the model, added to everybody's loss.
    """

    is_linear: ClassVar[bool] = True
    curvature: ClassVar[float | None]
    """How much the slope grows with the score at most; None where it jumps."""
    feature_bound: float = positive("say how long a row of features can be", default=1.0)
    ridge: float = not_negative(default=0.0)

    def __post_init__(self) -> None:
        check_declared(self)

    @property
    def smoothness(self) -> float | None:
        return None if self.curvature is None else self.curvature * self.feature_bound**2

    @property
    def row_bound(self) -> float:
        return self.feature_bound

    @abstractmethod
    def score_values(self, scores: Floats, targets: Floats) -> Floats:
        """Losses at these scores."""

    @abstractmethod
    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        """Derivatives at these scores."""

    def envelope_slopes(self, scores: Floats, targets: Floats, widths: Floats) -> Floats:
        """The s that solve s = slope(score - width s): an envelope's derivatives, width = |features|^2 / smoothing."""
        raise ParameterError("loss", self.name, "must have a proximal map here", "take a solver without smoothing")

    def constant_loss(self, targets: Floats) -> float:
        scores = np.linspace(-6.0, 6.0, 241)[:, np.newaxis]
        return float(self.score_values(scores, targets).mean(axis=1).min())

    def check_rows(self, dimension: int, *rows: ArrayLike) -> Rows:
        """Features and targets, all finite."""
        if len(rows) != 2:
            raise DataError("data", f"{len(rows)} arrays", "must be features and targets", "pass both")
        features, targets = check_features(dimension, *super().check_rows(dimension, *rows))
        self._check_targets(targets)
        return features, targets

    def _check_targets(self, targets: Floats) -> None:
        """Refuse targets that the loss does not know."""

    def values(self, theta: Floats, *rows: Floats) -> Floats:
        features, targets = rows
        return self.score_values(features @ theta, targets)

    def gradients(self, theta: Floats, *rows: Floats) -> Floats:
        features, targets = rows
        return self.slopes(features @ theta, targets)[:, np.newaxis] * features

    def sent(self, theta: Floats, bound: float, smoothing: float | None, *rows: Floats) -> tuple[Floats, int]:
        features, targets = rows
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.einsum("ij,ij->i", features, features)
            scores = features @ theta
            if smoothing is None:
                slopes = self.slopes(scores, targets)
            else:
                slopes = self.envelope_slopes(scores, targets, squares / smoothing)
            lengths = _lengths(features, squares)
            sent_lengths = np.abs(slopes) * lengths
        for name, numbers in (("features", lengths), ("scores", scores), ("slopes", slopes)):
            bad = ~np.isfinite(numbers)
            refuse_first(name, numbers, bad, "must be finite", "scale the features first")
        long = sent_lengths > bound
        clipped = int(np.count_nonzero(long))
        if clipped:
            # A hair shorter than the bound, so that rounding cannot put it beyond.
            shorter = np.sign(slopes) * (bound * (1 - TOLERANCE / 4)) / np.where(long, lengths, 1.0)
            slopes = np.where(long, shorter, slopes)
        return slopes[:, np.newaxis] * features, clipped

    def moments(self, bound: float, *rows: Floats) -> tuple[Floats, int]:
        return packed(rows[0], lengths_of(rows[0]), bound)

    def document(self) -> dict[str, Any]:
        return {"loss": self.name, **asdict(self)}


def check_features(width: int, features: Floats, targets: Floats) -> tuple[Floats, Floats]:
    """A finite matrix with so many columns and a finite target a row, or an error that names the first bad row."""
    if features.ndim != 2 or features.shape[1] != width or targets.ndim != 1:
        shapes = f"shapes {features.shape} and {targets.shape}"
        wanted = f"must be a matrix of {width} columns and a column"
        raise DataError("data", shapes, wanted, "pass a row and a target a user")
    with np.errstate(over="ignore", invalid="ignore"):
        totals = features @ np.ones(width)
    for name, numbers, array in (("features", totals, features), ("targets", targets, targets)):
        for row in np.flatnonzero(~np.isfinite(numbers)).tolist():
            if not np.isfinite(array[row]).all():
                wrong = array[row] if array.ndim == 1 else array[row][~np.isfinite(array[row])][0]
                raise DataError(name, in_row(row, wrong), "must be finite", "leave that user out")
    return features, targets


def lengths_of(rows: Floats) -> Floats:
    """Every row's length, however large or small its numbers are.

    >>> (lengths_of(np.array([[3.0, 4.0], [3e-200, 4e-200], [3e200, 4e200]])) / [1, 1e-200, 1e200]).round(9).tolist()
    [5.0, 5.0, 5.0]
    """
    with np.errstate(over="ignore"):
        return _lengths(rows, np.einsum("ij,ij->i", rows, rows))


def _lengths(rows: Floats, squares: Floats) -> Floats:
    """Roots of the squares; where those are too large or lose digits, rows are divided by their largest first."""
    lengths = np.sqrt(squares)
    odd = np.flatnonzero(~((squares > _SMALL_SQUARE) & (squares < 1 / _SMALL_SQUARE)))
    if odd.size:
        largest = np.abs(rows[odd]).max(axis=1, initial=0.0)
        shape = rows[odd] / np.where(largest > 0, largest, 1.0)[:, np.newaxis]
        lengths[odd] = largest * np.sqrt(np.einsum("ij,ij->i", shape, shape))
    return lengths


class _Labelled(LinearLoss):
    """Targets are -1 or 1."""

    def _check_targets(self, targets: Floats) -> None:
        refuse_first("targets", targets, np.abs(targets) != 1, "must be -1 or 1", "map the two classes")

    def lipschitz(self, domain: ConvexSet) -> float:
        return float(self.feature_bound)

    def imagined_targets(self, scores: Floats, chances: Floats, rare: float) -> Floats:
        return np.where(chances < special.expit(scores - rare), 1.0, -1.0)


@dataclass(frozen=True, kw_only=True)
class LogisticLoss(_Labelled):
    """log(1 + e^(-target score)), targets -1 or 1.

    >>> LogisticLoss().slopes(np.zeros(1), np.ones(1)).tolist()
    [-0.5]
    """

    name: ClassVar[str] = "logistic"
    curvature: ClassVar[float | None] = 0.25
    has_prox = False

    def score_values(self, scores: Floats, targets: Floats) -> Floats:
        return np.logaddexp(0.0, -targets * scores)

    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        return np.asarray(-targets * special.expit(-targets * scores))


@dataclass(frozen=True, kw_only=True)
class HingeLoss(_Labelled):
    """max(0, 1 - target score), targets -1 or 1: convex, but not smooth.

    >>> HingeLoss().envelope_slopes(np.array([0.5]), np.ones(1), np.ones(1)).tolist()
    [-0.5]
    """

    name: ClassVar[str] = "hinge"
    curvature: ClassVar[float | None] = None
    has_prox = True

    def score_values(self, scores: Floats, targets: Floats) -> Floats:
        return np.maximum(0.0, 1 - targets * scores)

    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        return np.where(targets * scores < 1, -targets, 0.0)

    def envelope_slopes(self, scores: Floats, targets: Floats, widths: Floats) -> Floats:
        return np.asarray(-targets * np.clip((1 - targets * scores) / np.maximum(widths, 1e-300), 0.0, 1.0))


class _Residual(LinearLoss):
    """A function of score - target whose slope grows by at most 1."""

    curvature: ClassVar[float | None] = 1
    has_prox = True

    @property
    def _largest(self) -> float:
        """No target is larger in size."""
        return 1.0

    def imagined_targets(self, scores: Floats, chances: Floats, rare: float) -> Floats:
        large = self._largest
        return np.asarray(np.clip(scores + _USUAL_ERROR * large * special.ndtri(chances), -large, large))


@dataclass(frozen=True, kw_only=True)
class SquaredLoss(_Residual):
    """(score - target)^2 / 2, targets in -target_bound..target_bound.

    Attributes:
        target_bound: no target is larger in size.

    >>> SquaredLoss().slopes(np.array([0.5]), np.ones(1)).tolist()
    [-0.5]
    """

    name: ClassVar[str] = "squared"
    target_bound: float = positive("say how large a target can be", default=1.0)

    @property
    def _largest(self) -> float:
        return self.target_bound

    def _check_targets(self, targets: Floats) -> None:
        large = np.abs(targets) > self.target_bound * (1 + 1e-12)
        wanted = f"must be at most {self.target_bound:g} in size"
        refuse_first("targets", targets, large, wanted, "clip it, or declare a larger bound")

    def lipschitz(self, domain: ConvexSet) -> float:
        return self.feature_bound * (self.feature_bound * domain.largest_norm + self.target_bound)

    def score_values(self, scores: Floats, targets: Floats) -> Floats:
        return np.asarray((scores - targets) ** 2 / 2)

    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        return np.asarray(scores - targets)

    def envelope_slopes(self, scores: Floats, targets: Floats, widths: Floats) -> Floats:
        return np.asarray((scores - targets) / (1 + widths))


@dataclass(frozen=True, kw_only=True)
class HuberLoss(_Residual):
    """Squared up to `threshold` from the target, straight beyond.

    Attributes:
        threshold: how far from the target the loss is squared.

    >>> HuberLoss(threshold=0.25).slopes(np.array([0.5, 0.9]), np.ones(2)).round(6).tolist()
    [-0.25, -0.1]
    """

    name: ClassVar[str] = "huber"
    threshold: float = positive("say from where on the loss is straight", default=1.0)

    def lipschitz(self, domain: ConvexSet) -> float:
        return self.feature_bound * self.threshold

    def score_values(self, scores: Floats, targets: Floats) -> Floats:
        off = np.abs(scores - targets)
        return np.where(off <= self.threshold, off**2 / 2, self.threshold * (off - self.threshold / 2))

    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        return np.asarray(np.clip(scores - targets, -self.threshold, self.threshold))

    def envelope_slopes(self, scores: Floats, targets: Floats, widths: Floats) -> Floats:
        return np.asarray(np.clip((scores - targets) / (1 + widths), -self.threshold, self.threshold))
