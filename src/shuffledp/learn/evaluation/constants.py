"""What a constant answer reaches on the same people, by the rate of the classes that the same counts estimate."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from shuffledp.learn.evaluation.metrics import Metric

# A model is near perfection if it loses less than this part of what the best constant answer does.
_NEARLY_NOTHING = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """What the best constant answer reaches in one metric: no less than `least` and no more than `most`.

    Attributes:
        least: what it reaches at least, by the interval of the rate of the classes.
        most: what it reaches at most.
        answer: what is answered, as words of a sentence.
        loses: whether the metric is a loss, so that less is better.

    >>> guess = Constant(least=0.6, most=0.65, answer="always answering the more frequent class")
    >>> guess.remark(Metric(0.66, 0.64, 0.68))
    'says nothing: it may be no better than always answering the more frequent class, 0.600 to 0.650'
    """

    least: float
    most: float
    answer: str
    loses: bool = False

    def beats(self, metric: Metric) -> bool:
        """Whether all of a model's interval is worse than what the constant answer reaches."""
        return metric.lower > self.most if self.loses else metric.upper < self.least

    def may_do_as_well(self, metric: Metric) -> bool:
        """Whether the intervals do not show that the model is better than the constant answer."""
        return metric.upper >= self.least if self.loses else metric.lower <= self.most

    def says_nothing(self, metric: Metric) -> bool:
        """Whether the interval says nothing for the model.

        A loss is also small where people are easily guessed, so that of one it takes more: that the constant answer
        is better, or that an interval which holds it goes on to near perfection.
        """
        if not self.loses:
            return self.may_do_as_well(metric)
        return self.beats(metric) or (self.may_do_as_well(metric) and metric.lower <= _NEARLY_NOTHING * self.least)

    def remark(self, metric: Metric) -> str:
        """One sentence about the model beside the constant answer; empty where the model is better."""
        reached = f"{self.least:.3f}" + ("" if self.most == self.least else f" to {self.most:.3f}")
        if self.beats(metric):
            return f"worse than {self.answer}, {reached}"
        if not self.may_do_as_well(metric):
            return ""
        if self.loses and self.says_nothing(metric):
            return f"says nothing: from near perfection to worse than {self.answer}, {reached}"
        nothing = "says nothing: " if self.says_nothing(metric) else ""
        return f"{nothing}it may be no better than {self.answer}, {reached}"


def constant_answers(metrics: Mapping[str, Metric], classes: int) -> dict[str, Constant]:
    """What constant answers reach in the metrics that say how good a model is.

    Args:
        metrics: an evaluation's; the interval of `positive_rate` bounds the accuracy of the more frequent class, and
            the losses of a prediction that is everybody's rate. Without one the classes are taken to be as even as
            can be.
        classes: how many there are.

    >>> rate = Metric(0.2, 0.1, 0.3)
    >>> found = constant_answers({"accuracy": rate, "brier": rate, "positive_rate": rate}, classes=2)
    >>> [(name, round(each.least, 2), round(each.most, 2)) for name, each in found.items()]
    [('accuracy', 0.7, 0.9), ('brier', 0.09, 0.21)]
    """
    rate = metrics.get("positive_rate")
    if rate is None:
        evenly = 1 / classes
        found = {
            "accuracy": Constant(least=evenly, most=evenly, answer="one constant answer at its worst"),
            "log_loss": _loss([math.log(classes)], "even odds"),
        }
    else:
        rarer = min(rate.lower, 1 - rate.upper), min(rate.upper, 1 - rate.lower, 0.5)
        frequent = "always answering the more frequent class"
        found = {
            "accuracy": Constant(least=1 - rarer[1], most=1 - rarer[0], answer=frequent),
            "log_loss": _loss([_entropy(part) for part in rarer], "predicting everybody's rate"),
            "brier": _loss([part * (1 - part) for part in rarer], "predicting everybody's rate"),
        }
    found["auc"] = Constant(least=0.5, most=0.5, answer="chance")
    return {name: constant for name, constant in found.items() if name in metrics}


def _loss(reached: list[float], answer: str) -> Constant:
    return Constant(least=reached[0], most=reached[-1], answer=answer, loses=True)


def _entropy(part: float) -> float:
    """The log loss of predicting a rate for everybody, in nats."""
    return -sum(each * math.log(each) for each in (part, 1 - part) if each > 0)
