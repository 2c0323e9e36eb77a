"""Intervals that say nothing for a model, and how many people would be needed for narrow ones."""

import math
from dataclasses import replace

import numpy as np

from shuffledp.errors import ParameterError
from shuffledp.learn.evaluation.bands import area_interval, prefix_band
from shuffledp.learn.evaluation.cells import ScoreCells
from shuffledp.learn.evaluation.constants import Constant, constant_answers
from shuffledp.learn.evaluation.metrics import Evaluation, Metric
from shuffledp.learn.evaluation.planned import EvaluationPlan, usual_bins

NARROW = 0.1
"""How wide an interval is that says something: from end to end."""

# More than this part of what there can be says nothing either.
_HALF = 0.5
# Numbers of people are tried in steps of this factor, from so few to so many.
_STEP, _FEWEST_PEOPLE, _MOST_PEOPLE = 1.1, 100, 10**8
# How noise grows with the levels of the grid.
_GROWTH = 1.2


def says_nothing(metric: Metric, whole: float, constant: Constant | None) -> bool:
    """Whether an interval says nothing for the model: most is left open, or a constant answer is as good.

    Args:
        metric: the estimate with its interval.
        whole: how far apart the least and the most are that the metric can be.
        constant: what a constant answer reaches; None where the metric does not say how good a model is.

    >>> chance = constant_answers({"auc": Metric(0.5, 0.0, 1.0)}, classes=2)["auc"]
    >>> says_nothing(Metric(0.57, 0.0, 1.0), 1.0, chance), says_nothing(Metric(0.8, 0.6, 0.97), 1.0, chance)
    (True, False)
    """
    return metric.upper - metric.lower > _HALF * whole or (constant is not None and constant.says_nothing(metric))


def people_needed(name: str, plan: EvaluationPlan, width: float = NARROW) -> int | None:
    """About how many people make a metric's interval as narrow as this, by the noise of a plan for fewer or more.

    It reads nobody's data: intervals are those of people whose scores are spread evenly over the grid and of whom half
    have each label. Noise of counts hardly depends on how many people there are, but on how fine the grid is: it grows
    as the number of its levels to the power of 1.2, as measured from 64 to 2,048 cells (within 5%).

    Args:
        name: the metric's.
        plan: of any number of people, at the privacy that is asked for.
        width: from the lower to the upper end.

    Returns:
        Two digits, rounded up; None where a hundred million are not enough.

    Raises:
        ParameterError: a width that is not positive.

    >>> from shuffledp import Privacy
    >>> plan = EvaluationPlan.plan(users=1000, privacy=Privacy(1, 1e-6))
    >>> few, many = (people_needed("accuracy", plan, width) for width in (0.1, 0.02))
    >>> 100 < few < many < 20_000
    True
    """
    if not width > 0:
        raise ParameterError("width", width, "must be positive", "0.1 is plus and minus 0.05")
    last = math.log(_MOST_PEOPLE, _STEP)
    for step in range(math.ceil(math.log(_FEWEST_PEOPLE, _STEP)), math.ceil(last)):
        users = round(_STEP**step)
        if expected_width(name, plan, users) <= width:
            return _rounded(users)
    return None


def expected_width(name: str, plan: EvaluationPlan, users: int) -> float:
    """How wide the interval of so many people is about, whose scores are spread evenly, half of them of each label."""
    cells = ScoreCells(bins=usual_bins(users), limit=plan.cells.limit)
    grown: float = (math.log2(2 * cells.bins) / math.log2(2 * plan.cells.bins)) ** _GROWTH
    if name == "auc":
        even = np.linspace(0.0, users, 2 * cells.bins + 1)[1:]
        low, high = area_interval(*prefix_band(even, grown * plan.band, users))
        return high - low
    least, most = getattr(cells, plan.weights_of(name))
    noise = plan.mean_noise(name)
    return float((most - least).mean()) + grown * noise / users


def _rounded(users: float) -> int:
    digits = int(10 ** max(0, math.floor(math.log10(max(users, 1))) - 1))
    return math.ceil(users / digits) * digits


def judged(found: Evaluation, plan: EvaluationPlan, *, classes: int = 2) -> Evaluation:
    """An evaluation in which every metric says what it leaves open, and how many people would do if it says nothing.

    What constant answers reach is read from the same noisy counts, so that nothing is spent on it.

    Args:
        found: what the plan read.
        plan: how people were asked.
        classes: how many the model tells apart.
    """
    constants = constant_answers(found.metrics, classes)
    metrics = {}
    for name, metric in found.metrics.items():
        whole = math.log1p(math.exp(plan.cells.limit)) if name == "log_loss" else 1.0
        constant = constants.get(name)
        nothing = says_nothing(metric, whole, constant)
        remark = "" if constant is None else constant.remark(metric)
        if nothing and not remark:
            remark = "says nothing: most of what there can be is left open"
        needed = people_needed(name, plan) if nothing and not (constant and constant.beats(metric)) else None
        metrics[name] = replace(metric, says_nothing=nothing, people_needed=needed, remark=remark)
    return replace(found, metrics=metrics)
