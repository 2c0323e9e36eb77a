"""People of a known law who say yes or no: a small world for logistic regression."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class YesOrNo:
    """Two numbers, uniform on the unit disc, decide how likely a yes is; a row is these and a constant, of length <= 1.

    Attributes:
        truth: the logarithm of the odds of a yes is this times the row.

    >>> world = YesOrNo()
    >>> rows, labels = world.people(1000, np.random.default_rng(1))
    >>> rows.shape, sorted(set(labels.tolist())), bool((np.linalg.norm(rows, axis=1) <= 1).all())
    ((1000, 3), [-1.0, 1.0], True)
    >>> world.losses(np.array([[0.0, 0.0, 0.0], world.truth])).round(3).tolist()
    [0.693, 0.362]
    """

    truth: tuple[float, float, float] = (6.0, -4.0, 1.0)

    @property
    def dimension(self) -> int:
        """Numbers of a row."""
        return len(self.truth)

    def people(self, count: int, generator: np.random.Generator | None = None) -> tuple[Floats, Floats]:
        """Rows, and labels that are 1 for yes and -1 for no; others at every call without a generator."""
        generator = np.random.default_rng() if generator is None else generator
        rows = _rows(2 * math.pi * generator.random(count), np.sqrt(generator.random(count)))
        return rows, np.where(generator.random(count) < self.chances(rows), 1.0, -1.0)

    def chances(self, rows: Floats) -> Floats:
        """The probability of a yes, for every row."""
        return np.asarray(1 / (1 + np.exp(-rows @ np.array(self.truth))))

    def losses(self, models: Floats) -> Floats:
        """The expected logistic loss of each model, a row each, over all people there could be."""
        rows, scores = _EVERYBODY, models @ _EVERYBODY.T
        # log(1 + exp(-score)) for a yes, and a score more for a no.
        return np.asarray((np.logaddexp(0, -scores) + (1 - self.chances(rows)) * scores).mean(axis=1))

    def accuracy(self, model: Floats) -> float:
        """The share of all people there could be whom a model says right."""
        chances = self.chances(_EVERYBODY)
        return float(np.where(_EVERYBODY @ model > 0, chances, 1 - chances).mean())


def _rows(angles: Floats, radii: Floats) -> Floats:
    rows = np.stack((radii * np.cos(angles), radii * np.sin(angles), np.ones(len(angles))), axis=1) * math.sqrt(0.5)
    # No longer than 1, but for rounding.
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0))


def _everybody(angles: int = 96, radii: int = 48) -> Floats:
    """Rows that stand for equal parts of the disc."""
    around, out = np.meshgrid((np.arange(angles) + 0.5) / angles, (np.arange(radii) + 0.5) / radii)
    return _rows(2 * math.pi * around.ravel(), np.sqrt(out.ravel()))


_EVERYBODY = _everybody()
