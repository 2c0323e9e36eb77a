"""The public grid of scores and labels, and what each metric weighs its cells with: at least, and at most."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import DataError, ParameterError
from shuffledp.learn.spec import check_declared, number, whole

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Weights = tuple[Floats, Floats]
"""What a person in each cell adds to a metric at least, and at most."""
ScoreKind = Literal["probabilities", "scores", "confidence"]
"""Logits of predicted probabilities of label 1; any scores; logits of the confidence in one of several classes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreCells:
    """Cells for a score, as a logit, and a label: those of label 0 first, each label's by rising scores.

    In this order the people with a small score and label 0 are a prefix of the cells, and those with a large score and
    label 1 a suffix: whoever knows all prefixes knows both distributions of scores.

    Attributes:
        bins: how many intervals the scores are cut into, an even number: 0, where the prediction changes, is an end.
        limit: logits beyond it, on either side, count as it where a loss is taken.

    >>> cells = ScoreCells(bins=4, limit=2.0)
    >>> cells.codes(np.array([-5.0, 0.0, 0.5, 9.0]), np.array([0, 0, 1, 1])).tolist()
    [0, 1, 6, 7]
    """

    bins: int = whole(2, 1 << 14, "a power of two such as 128 suits most")
    limit: float = number(0.5, 30.0, "8 keeps probabilities of 0.0003 to 0.9997 apart", default=8.0)

    def __post_init__(self) -> None:
        check_declared(self)
        if self.bins % 2:
            raise ParameterError("bins", self.bins, "must be even, so that the threshold is an end", "add one")

    @property
    def edges(self) -> Floats:
        """The ends of the intervals, as logits."""
        half = np.linspace(0.0, self.limit, self.bins // 2 + 1)
        return np.concatenate([-half[:0:-1], half])

    @property
    def chances(self) -> Floats:
        """The ends as probabilities; the outermost intervals go on to 0 and 1."""
        ends = 1 / (1 + np.exp(-self.edges))
        ends[0], ends[-1] = 0.0, 1.0
        return ends

    def codes(self, logits: Floats, labels: Codes) -> Codes:
        """Every person's cell; a score at an end belongs to the interval below it.

        Raises:
            DataError: a score that is no number.
        """
        for row in np.flatnonzero(np.isnan(logits))[:1].tolist():
            raise DataError("scores", f"nan in row {row + 1}", "must be numbers", "leave that person out")
        return np.asarray(np.searchsorted(self.edges[1:-1], logits, side="left") + self.bins * labels, dtype=np.int64)

    @property
    def right(self) -> Weights:
        """Whether the prediction, label 1 above 0, is right: the same all over a cell."""
        upper = np.arange(self.bins) >= self.bins // 2
        each = np.concatenate([~upper, upper]).astype(np.float64)
        return each, each

    @property
    def positive(self) -> Weights:
        """Whether the label is 1."""
        each = np.repeat([0.0, 1.0], self.bins)
        return each, each

    @property
    def predicted(self) -> Weights:
        """The predicted probability of label 1."""
        ends = self.chances
        return np.tile(ends[:-1], 2), np.tile(ends[1:], 2)

    @property
    def brier(self) -> Weights:
        """The squared distance of the predicted probability from the label."""
        ends = self.chances
        return (
            np.concatenate([ends[:-1] ** 2, (1 - ends[1:]) ** 2]),
            np.concatenate([ends[1:] ** 2, (1 - ends[:-1]) ** 2]),
        )

    @property
    def log_loss(self) -> Weights:
        """Minus the logarithm of the label's predicted probability, with logits kept within the limit."""
        rising = np.logaddexp(0.0, self.edges)
        falling = rising[::-1]
        return np.concatenate([rising[:-1], falling[1:]]), np.concatenate([rising[1:], falling[:-1]])
