"""One question, one line: a column in, a private answer out, which carries the plan that it was made by.

Every function plans (the best method for so many people and this privacy), lets everybody's report be randomized,
shuffled and read in this process, and returns the estimate. That is for data which are here already and for trying
things out: in a deployment the reports come from people's own devices, by a plan that no liar among them can spoil
(`live=True` where it is planned; the best one for data that are here, such as `shares`, can be spoiled).

>>> import shuffledp
>>> estimate = shuffledp.count([1] * 300 + [0] * 700, epsilon=1, delta=1e-6)
>>> abs(float(estimate) - 300) < 30, estimate.plan.users
(True, 1000)
"""

from shuffledp.answers.distributions import heavy_hitters, histogram, quantiles, running_count
from shuffledp.answers.groups import difference
from shuffledp.answers.numbers import count, mean, total, variance

__all__ = [
    "count",
    "difference",
    "heavy_hitters",
    "histogram",
    "mean",
    "quantiles",
    "running_count",
    "total",
    "variance",
]
