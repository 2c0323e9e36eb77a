"""One report a person for all metrics: counts of all ranges of the cells, planned without data."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np

from shuffledp.errors import ParameterError
from shuffledp.estimates import VectorEstimate
from shuffledp.learn.evaluation.bands import area, area_interval, prefix_band, rising
from shuffledp.learn.evaluation.cells import Floats, ScoreCells, ScoreKind
from shuffledp.learn.evaluation.metrics import CalibrationGroup, Evaluation, Metric
from shuffledp.privacy import Privacy
from shuffledp.protocols.error_bounds import CONFIDENCE
from shuffledp.protocols.ranges import Ranges
from shuffledp.protocols.ranges.base import RangesPlan
from shuffledp.protocols.ranges.bounds import every_sum_bound, one_sum_bound
from shuffledp.protocols.request import check_users

# The band of all prefixes carries area, curve and groups; each other metric has a part of its own.
_FAILURE = 1 - CONFIDENCE
_BAND, _EACH = 0.5 * _FAILURE, 0.1 * _FAILURE
# Which weights of the cells each mean has.
_MEANS = {
    "probabilities": {
        "accuracy": "right",
        "positive_rate": "positive",
        "log_loss": "log_loss",
        "brier": "brier",
        "mean_prediction": "predicted",
    },
    "scores": {"accuracy": "right", "positive_rate": "positive"},
    "confidence": {"accuracy": "positive", "mean_confidence": "predicted"},
}
# A group has at least so many people for each that the band is wide.
_PEOPLE_A_BOUND, _MOST_GROUPS = 24, 10


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationPlan:
    """Metrics of a classifier of two labels from one plan of `Ranges`, which every verb of the command line takes.

    The adversary sees what it sees of the ranges' counts; metrics are post-processing of them.

    Attributes:
        cells: the public grid of scores and labels.
        ranges: the plan of the counts: a person's value is the code of its cell.
        scores: what they are: logits of predicted "probabilities" of label 1, any "scores", or logits of the
            "confidence" in one of several classes, where label 1 is a prediction that is right.

    >>> plan = EvaluationPlan.plan(users=10_000, privacy=Privacy(1, 1e-6))
    >>> plan.cells.bins, plan.ranges.size, round(plan.band, 1) < 100
    (256, 512, True)
    """

    cells: ScoreCells
    ranges: RangesPlan
    scores: ScoreKind = "probabilities"

    def __post_init__(self) -> None:
        if self.ranges.size != 2 * self.cells.bins:
            raise ParameterError("ranges", self.ranges.size, f"must have {2 * self.cells.bins} cells", "use plan")

    @classmethod
    def plan(
        cls,
        *,
        users: int,
        privacy: Privacy,
        bins: int | None = None,
        limit: float = 8.0,
        scores: ScoreKind = "probabilities",
        honest_fraction: float = 1.0,
    ) -> Self:
        """The plan for so many people who were kept out.

        Args:
            users: how many people report.
            privacy: what holds for each of them, over all metrics together.
            bins: into how many intervals scores are cut; by the number of people if left out. More make less error by
                binning, which is in the intervals, and a little more by noise.
            limit: logits beyond it count as it where a loss is taken.
            scores: what they are: "probabilities", "scores" or "confidence".
            honest_fraction: the people who are counted on to add their noise.

        Raises:
            ParameterError: a value outside its range.
            InfeasibleError: no noise satisfies this privacy with so few people.
        """
        check_users(users)
        if bins is None:
            bins = usual_bins(users)
        cells = ScoreCells(bins=bins, limit=limit)
        ranges = Ranges.plan(users=users, privacy=privacy, domain=2 * bins, honest_fraction=honest_fraction)
        return cls(cells=cells, ranges=ranges, scores=scores)

    @property
    def users(self) -> int:
        """How many people report."""
        return self.ranges.users

    @property
    def band(self) -> float:
        """No prefix of the cells is further off, but for half of the failure probability."""
        return _band(self)

    def weights_of(self, name: str) -> str:
        """Which weights of the cells a mean has: the name of a pair of arrays of `ScoreCells`.

        Raises:
            ParameterError: there is no such mean.
        """
        if name not in _MEANS[self.scores]:
            raise ParameterError("metric", name, f"must be one of {', '.join(_MEANS[self.scores])}", "choose one")
        return _MEANS[self.scores][name]

    def mean_noise(self, name: str) -> float:
        """How wide the noise alone makes the interval of the sum that a mean is, from end to end."""
        return math.fsum(_noise(self, self.weights_of(name), end).bound for end in (0, 1))

    def read(self, estimate: VectorEstimate, *, warnings: tuple[str, ...] = ()) -> Evaluation:
        """All metrics, from an estimate of the counts in all cells.

        Args:
            estimate: what the plan of the ranges said.
            warnings: what speaks against the figures.
        """
        bound = self.band + estimate.dropped * self.ranges.errors.reach
        low, high = prefix_band(np.cumsum(estimate.value), bound, self.users)
        fitted = rising(np.cumsum(estimate.value), self.users)
        metrics = {name: self._mean(weights, estimate) for name, weights in _MEANS[self.scores].items()}
        if self.scores != "confidence":
            metrics = {"auc": _within(area(fitted), *area_interval(low, high)), **metrics}
        groups = () if self.scores == "scores" else self._calibration(low, high, fitted, bound)
        return Evaluation(
            users=self.users,
            privacy=self.ranges.privacy,
            metrics=metrics,
            calibration=groups,
            roc=None if self.scores == "confidence" else self._curve(fitted),
            confidence=CONFIDENCE,
            bins=self.cells.bins,
            messages_per_user=self.ranges.messages_per_user_max,
            fingerprint=self.ranges.fingerprint,
            simulated=estimate.simulated,
            warnings=warnings,
        )

    def _mean(self, name: str, estimate: VectorEstimate) -> Metric:
        """The mean of what people add: each end by the weights of that end, and by the noise of their sum."""
        least, most = getattr(self.cells, name)
        below, above = (_noise(self, name, end) for end in (0, 1))
        lower = float(least @ estimate.value) - below.bound - estimate.dropped * below.reach
        upper = float(most @ estimate.value) + above.bound + estimate.dropped * above.reach
        smallest, largest = float(least.min()), float(most.max())
        ends = [min(largest, max(smallest, end / self.users)) for end in (lower, upper)]
        return _within(float((least + most) @ estimate.value) / (2 * self.users), *ends)

    def _calibration(self, low: Floats, high: Floats, fitted: Floats, bound: float) -> tuple[CalibrationGroup, ...]:
        """Groups of about as many people each, by the noisy counts: whichever they are, the band holds for them."""
        bins, ends, middles = self.cells.bins, self.cells.chances, np.add(*self.cells.predicted)[: self.cells.bins] / 2
        wanted = int(min(_MOST_GROUPS, max(1, self.users // (_PEOPLE_A_BOUND * max(bound, 1e-9)))))
        below = fitted[: bins + 1] + fitted[bins:] - fitted[bins]
        cuts = np.searchsorted(below, self.users * np.arange(1, wanted) / wanted)
        cuts = np.unique(np.concatenate([[0], cuts, [bins]]))
        found = []
        for first, last in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            people = float(below[last] - below[first])
            sides = []
            for shift in (0, bins):
                least = max(0.0, low[shift + last] - high[shift + first])
                most = max(0.0, high[shift + last] - low[shift + first])
                sides.append((least, float(fitted[shift + last] - fitted[shift + first]), most))
            (no_least, no, no_most), (yes_least, yes, yes_most) = sides
            rate = _within(_part(yes, no), _part(yes_least, no_most) or 0.0, _part(yes_most, no_least, nobody=1.0))
            inside = np.diff(below)[first:last]
            predicted = (
                float(middles[first:last] @ inside) / people if people > 0 else float(middles[first:last].mean())
            )
            group = {"low": float(ends[first]), "high": float(ends[last]), "people": people}
            found.append(CalibrationGroup(**group, predicted=predicted, rate=rate))
        return tuple(found)

    def _curve(self, fitted: Floats) -> tuple[Floats, Floats]:
        """False and true positive rates where the threshold is the end of each interval, from the highest down."""
        bins = self.cells.bins
        sides = fitted[bins] - fitted[: bins + 1], fitted[-1] - fitted[bins:]
        false, true = (side[::-1] / side[0] if side[0] > 0 else np.linspace(0, 1, bins + 1) for side in sides)
        return np.asarray(false), np.asarray(true)

    def document(self) -> dict[str, Any]:
        """The plan of the counts as JSON: metrics are computed from them."""
        return {**self.ranges.document(), "bins": self.cells.bins, "limit": self.cells.limit}


def usual_bins(users: int) -> int:
    """Into how many intervals scores of so many people are cut: 32 of few, 2,048 of many."""
    return 1 << min(11, max(5, round(math.log2(users / 40))))


class _Noise(NamedTuple):
    """What a weighted sum of the counts is not off by more than, and how far one lost message moves it."""

    bound: float
    reach: float


@lru_cache(maxsize=64)
def _band(plan: EvaluationPlan) -> float:
    return every_sum_bound(*plan.ranges.squares[0].prefixes(), failure=_BAND)


@lru_cache(maxsize=256)
def _noise(plan: EvaluationPlan, name: str, end: int) -> _Noise:
    """The noise of the sum with the weights of this metric's end: half of its failure probability on either side."""
    levels = plan.ranges.level_weights([getattr(plan.cells, name)[end]])
    return _Noise(one_sum_bound(levels, _EACH), max(float(np.ptp(level.weights)) for level in levels))


def _within(value: float | None, lower: float, upper: float) -> Metric:
    """The estimate brought into its interval; the middle where there is none."""
    middle = (lower + upper) / 2 if value is None else min(upper, max(lower, value))
    return Metric(float(middle), float(lower), float(upper))


def _part(yes: float, no: float, nobody: float | None = None) -> Any:
    return yes / (yes + no) if yes + no > 0 else nobody
