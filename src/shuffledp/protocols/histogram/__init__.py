"""Histograms: how many users have each category, by several methods."""

from typing import Any

from shuffledp.privacy import Privacy
from shuffledp.protocols.base import Constants
from shuffledp.protocols.choosing import Choice, choose
from shuffledp.protocols.histogram.base import HistogramPlan
from shuffledp.protocols.histogram.categories import AnyCategories, as_categories
from shuffledp.protocols.histogram.correlated import HistogramCorrelated
from shuffledp.protocols.histogram.count_min import CountMin
from shuffledp.protocols.histogram.decoys import Decoys
from shuffledp.protocols.histogram.opt_in import OptIn
from shuffledp.protocols.histogram.sketch import Sketch
from shuffledp.protocols.histogram.zsum import HistogramZSum

Method = type[HistogramPlan]
METHODS: dict[str, Any] = {
    method.method: method for method in (Decoys, HistogramCorrelated, HistogramZSum, OptIn, CountMin, Sketch)
}


class Histogram:
    """Counts the users in each category, with nobody trusted.

    >>> plan = Histogram.plan(users=100_000, privacy=Privacy(1, 1e-6), categories=1000, max_messages=4)
    >>> plan.error_bound <= 1.5 * plan.reference()["central_l_inf_error"]
    True
    """

    protocol = "histogram"
    methods = METHODS
    asks_for: tuple[str, ...] = ("categories",)

    @classmethod
    def plan(
        cls,
        *,
        users: int,
        privacy: Privacy,
        categories: AnyCategories,
        method: str = "auto",
        honest_fraction: float = 1.0,
        max_messages: int | None = None,
        constants: Constants = "exact",
    ) -> HistogramPlan:
        """The plan of the named method, or of the best one for these limits."""
        return cls.choose(
            users=users,
            privacy=privacy,
            categories=categories,
            method=method,
            honest_fraction=honest_fraction,
            max_messages=max_messages,
            constants=constants,
        ).plan

    @classmethod
    def choose(
        cls,
        *,
        users: int,
        privacy: Privacy,
        categories: AnyCategories,
        method: str = "auto",
        honest_fraction: float = 1.0,
        max_messages: int | None = None,
        constants: Constants = "exact",
    ) -> Choice[HistogramPlan]:
        """The smallest error of the worst bin among the methods that keep to the limits, and why."""
        asked = {
            "users": users,
            "privacy": privacy,
            "categories": as_categories(categories),
            "honest_fraction": honest_fraction,
            "constants": constants,
            "max_messages": max_messages,
        }
        return choose(METHODS, method, max_messages, asked, error=_worst_bin, error_name="error of the worst bin")


def _worst_bin(plan: HistogramPlan) -> float:
    return plan.error_bound
