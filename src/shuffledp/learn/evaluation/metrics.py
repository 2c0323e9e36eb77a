"""An evaluation: every metric with its interval, calibration in groups, and the ROC curve."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.privacy import Privacy

Floats = NDArray[np.float64]

_RATES = ("false_positive_rate", "true_positive_rate")
CAVEATS = (
    "The intervals are about these people, not about a population that they may have been drawn from.",
    "They hold for people who were kept out: a model looks better on people it learned from, who would also pay twice.",
)


@dataclass(frozen=True, slots=True)
class Metric:
    """An estimate and the ends of an interval that holds the true one, with noise and binning accounted for.

    Attributes:
        value: the estimate.
        lower: the true one is not smaller, with the evaluation's confidence.
        upper: the true one is not larger.
        says_nothing: whether the interval says nothing for the model: it leaves everything open, or what a constant
            answer reaches is as good.
        people_needed: about how many people an interval of 0.1 would need; None where it is not asked, or not known.
        remark: one sentence on what the interval leaves open, beside what a constant answer reaches; empty if nothing.

    >>> str(Metric(0.75, 0.7, 0.8))
    '0.750 (0.700 to 0.800)'
    >>> str(Metric(0.57, 0.0, 1.0, says_nothing=True, people_needed=9000))
    '0.570 (0.000 to 1.000: says nothing; within 0.05 from about 9,000 people on)'
    """

    value: float
    lower: float
    upper: float
    says_nothing: bool = False
    people_needed: int | None = None
    remark: str = ""

    def __str__(self) -> str:
        said = f": {self.verdict}" if self.verdict else ""
        return f"{self.value:.3f} ({self.lower:.3f} to {self.upper:.3f}{said})"

    @property
    def verdict(self) -> str:
        """What the interval leaves open, and how many people would be needed where it says nothing; else empty."""
        said = self.remark or ("says nothing" if self.says_nothing else "")
        needed = "" if self.people_needed is None else f"; within 0.05 from about {self.people_needed:,} people on"
        return f"{said}{needed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationGroup:
    """People whose predicted probabilities lie between `low` and `high`, about how many, and their rate of label 1.

    Attributes:
        low: no prediction of the group is smaller.
        high: no prediction of the group is larger.
        people: about how many are in it, noise included.
        predicted: the group's mean prediction.
        rate: the part of them with label 1, with its interval.
    """

    low: float
    high: float
    people: float
    predicted: float
    rate: Metric


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluation:
    """What is known of a model's quality on people who were kept out.

    Attributes:
        users: how many people reported.
        privacy: what holds for each of them, over all metrics together.
        metrics: by name, auc, accuracy, positive_rate and, where scores are probabilities, log_loss, brier and
            mean_prediction; of several classes accuracy and mean_confidence. All intervals, those of the groups as
            well, hold at once with `confidence`.
        calibration: groups by predicted probability; none where scores are not probabilities.
        roc: the false and the true positive rates at the ends of all intervals, as estimated; None of several classes.
        confidence: how likely all intervals hold together, at least.
        bins: into how many intervals scores were cut; there are twice as many cells.
        messages_per_user: how many messages a person sends at most.
        fingerprint: the plan's.
        simulated: whether the noise can be repeated, so that it protects nobody.
        warnings: what speaks against the figures.
    """

    users: int
    privacy: Privacy
    metrics: Mapping[str, Metric]
    calibration: tuple[CalibrationGroup, ...]
    roc: tuple[Floats, Floats] | None
    confidence: float
    bins: int
    messages_per_user: int
    fingerprint: str
    simulated: bool = False
    warnings: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Metric:
        return self.metrics[name]

    def __str__(self) -> str:
        each = ", ".join(f"{name} {metric}" for name, metric in self.metrics.items())
        seeded = "; a simulation: seeded bits protect nobody" if self.simulated else ""
        return f"{each}; all at once with {self.confidence:.0%} confidence, {self.privacy}{seeded}"

    def document(self) -> dict[str, Any]:
        """The evaluation as JSON."""
        return {
            "schema": 1,
            "users": self.users,
            "epsilon": self.privacy.epsilon,
            "delta": self.privacy.delta,
            "metrics": {name: asdict(metric) for name, metric in self.metrics.items()},
            "confidence": self.confidence,
            "calibration": [asdict(group) for group in self.calibration],
            "roc": self.roc and {name: rates.tolist() for name, rates in zip(_RATES, self.roc, strict=True)},
            "bins": self.bins,
            "messages_per_user": self.messages_per_user,
            "fingerprint": self.fingerprint,
            "simulated": self.simulated,
            "warnings": list(self.warnings),
            "caveats": list(CAVEATS),
        }
