"""Distribution tests: whether users' categories follow a claimed law, with errors declared before there are data."""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

from shuffledp.accounting.dropouts import check_honest_fraction, honest_users
from shuffledp.accounting.shuffled_rows import ShuffledRowsCurve, smallest_spurious
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.distribution_test.base import (
    ENOUGH_POWER,
    Certificate,
    DistributionTest,
    TestedClaim,
    check_claim_numbers,
)
from shuffledp.protocols.distribution_test.cells import Cells, check_claim
from shuffledp.protocols.distribution_test.decoys import DecoysTest
from shuffledp.protocols.distribution_test.groups import LARGEST_PARTS, Groups
from shuffledp.protocols.distribution_test.moments import balls_moments, rows_moments, smallest_distance_squared
from shuffledp.protocols.distribution_test.rows import RowsTest
from shuffledp.protocols.distribution_test.sizes import guessed_users, users_needed
from shuffledp.protocols.domains.categories import AnyCategories, as_categories
from shuffledp.protocols.histogram.blanket import smallest_blanket
from shuffledp.protocols.histogram.decoys import Decoys
from shuffledp.protocols.request import check_users

__all__ = ["DistributionTest", "TestedClaim", "UniformityTest"]

METHODS = ("decoys", "compressed", "rows")
_cells = lru_cache(maxsize=16)(Cells.of)
_histogram = lru_cache(maxsize=256)(Decoys.plan)
_spurious = lru_cache(maxsize=1024)(smallest_spurious)
# Candidates for how often a row keeps its own bit; 2/3 is best where noise dominates.
KEPT = (0.5, 0.6, 2 / 3, 0.75, 0.85)


class UniformityTest:
    """Tests whether users are uniform over the categories, or follow a given distribution, with nobody trusted.

    `decoys` counts collisions of a private histogram, `compressed` the same over groups drawn by public coins,
    `rows` sends one row of bits a user. auto takes the one of the first two that declares the smaller miss.

    >>> plan = UniformityTest.plan(users=1600, privacy=Privacy(1, 1e-6), categories=100, distance=0.25)
    >>> plan.method, plan.declared_false_alarm, plan.declared_miss < 1 / 3
    ('decoys', 0.05, True)
    """

    protocol = "distribution-test"
    methods = METHODS

    @classmethod
    def plan(
        cls,
        *,
        users: int,
        privacy: Privacy,
        categories: AnyCategories,
        distance: float,
        against: Sequence[float] | None = None,
        method: str = "auto",
        false_alarm: float = 0.05,
        honest_fraction: float = 1.0,
        certificate: Certificate = "simulated",
        public_seed: int = 1,
    ) -> DistributionTest:
        """The plan of the named method, or of the one that declares the smallest miss."""
        if method not in ("auto", *METHODS):
            raise ParameterError("method", method, f"must be auto, {' or '.join(METHODS)}", "auto picks the best")
        check_users(users)
        common = _common(
            users=users,
            privacy=privacy,
            categories=as_categories(categories),
            distance=distance,
            against=against,
            false_alarm=false_alarm,
            honest_fraction=honest_fraction,
            certificate=certificate,
        )
        if method == "rows":
            return _by_rows(common)
        if method == "decoys":
            return _by_decoys(common)
        groups = _best_groups(common, public_seed)[0]
        # Groups of one cell each are no groups.
        if method == "auto" and groups.groups == groups.cells:
            return _by_decoys(common)
        grouped = _by_decoys(common, groups)
        if method == "compressed":
            return grouped
        try:
            plain = _by_decoys(common)
        except InfeasibleError:
            return grouped
        return min(plain, grouped, key=lambda test: test.declared_miss)

    @classmethod
    def users_needed(
        cls,
        *,
        privacy: Privacy,
        categories: AnyCategories,
        distance: float,
        against: Sequence[float] | None = None,
        method: str = "auto",
        false_alarm: float = 1 / 3,
        miss: float = ENOUGH_POWER,
        honest_fraction: float = 1.0,
    ) -> int:
        """The fewest users for these two errors, both proved by inequalities, for every law so far away."""
        if not 0 < miss < 1:
            raise ParameterError("miss", miss, "must lie strictly between 0 and 1", "1/3 is usual")
        asked: dict[str, Any] = {
            "privacy": privacy,
            "categories": as_categories(categories),
            "distance": distance,
            "against": against,
            "false_alarm": false_alarm,
            "honest_fraction": honest_fraction,
            "certificate": "proved",
        }
        # Refuses what cannot be asked, before anything is searched.
        common = _common(users=2, **asked)
        names = ("decoys", "compressed") if method == "auto" else (method,)
        guesses = {name: guessed_users(_predicted(common, grouped=name == "compressed"), miss) for name in names}
        best = min(guesses, key=guesses.__getitem__)

        def plan(users: int) -> DistributionTest:
            return cls.plan(users=users, method=best, **asked)

        return users_needed(plan, miss, guesses[best])


def _common(*, against: Sequence[float] | None, **asked: Any) -> dict[str, Any]:
    """The fields that all methods share."""
    check_honest_fraction(asked["honest_fraction"])
    check_claim_numbers(asked["categories"].size, asked["distance"], asked["false_alarm"])
    return {**asked, "cells": None if against is None else _cells(check_claim(against, asked["categories"].size))}


def _by_decoys(common: dict[str, Any], groups: Groups | None = None) -> DecoysTest:
    bins = groups.groups if groups is not None else _cells_of(common)
    histogram = _histogram(
        users=common["users"],
        privacy=common["privacy"],
        categories=bins,
        honest_fraction=common["honest_fraction"],
    )
    return DecoysTest(**common, groups=groups, histogram=histogram)


def _by_rows(common: dict[str, Any]) -> RowsTest:
    """Among a few probabilities to keep the own bit, that with the largest signal for its noise."""
    honest, bins = honest_users(common["users"], common["honest_fraction"]), _cells_of(common)
    # Rows that are private alone, for crowds too small for anything else.
    alone = _kept_alone(common["privacy"].epsilon)
    found = {alone: 1 - alone}
    for kept in KEPT:
        with suppress(InfeasibleError):
            found[kept] = _spurious(common["privacy"], honest, kept)

    def strength(kept: float) -> float:
        moments = rows_moments(common["users"], kept, found[kept], bins)
        return moments.signal / moments.deviation

    best = max(found, key=strength)
    return RowsTest(**common, kept=best, spurious=found[best])


def _kept_alone(epsilon: float) -> float:
    """How often bits may be right in rows that are private without a crowd, rounded down."""
    kept = 1 / (1 + math.exp(-epsilon / 2 * (1 - 1e-11)))
    while ShuffledRowsCurve(kept, 1 - kept, 1).delta(epsilon) > 0:
        kept = math.nextafter(kept, 0.5)
    return kept


def _cells_of(common: dict[str, Any]) -> int:
    return int(common["categories"].size if common["cells"] is None else common["cells"].size)


def _predicted(common: dict[str, Any], *, grouped: bool) -> Callable[[int], float]:
    """The miss of so many users by about as many decoys; declared is what the plan itself says."""

    def miss(users: int) -> float:
        if grouped:
            return _best_groups({**common, "users": users}, 1)[1]
        size, least, score = _task(common)
        return balls_moments(users, _decoys(common, size), size).miss(score, least)

    return miss


def _task(common: dict[str, Any]) -> tuple[int, float, float]:
    """Cells, the least D over them that must be seen, and the proved threshold."""
    size = _cells_of(common)
    kept = 1.0 if common["cells"] is None else common["cells"].distance_kept
    score = math.sqrt((1 - common["false_alarm"]) / common["false_alarm"])
    return size, smallest_distance_squared(common["distance"] * kept, size), score


def _decoys(common: dict[str, Any], bins: int) -> int:
    """About as many as power is declared for: six deviations above the mean."""
    mean = smallest_blanket(common["privacy"]) / float(common["honest_fraction"]) * bins
    return math.ceil(mean + 6 * math.sqrt(mean))


def _best_groups(common: dict[str, Any], seed: int) -> tuple[Groups, float]:
    """The number of groups with the smallest predicted miss, and that; only power hangs on this choice."""
    size, least, score = _task(common)

    def predicted(groups: Groups) -> float:
        moments = balls_moments(common["users"], _decoys(common, groups.groups), groups.groups)
        return groups.miss(moments, score, least / groups.splits * groups.mean_kept)

    sizes = sorted({min(size, round(4 * 2 ** (step / 4))) for step in range(4 * size.bit_length())})
    every = [
        Groups(cells=size, groups=groups, seed=seed)
        for groups in sizes
        if size * (groups // math.gcd(size, groups)) <= LARGEST_PARTS and groups >= 2
    ]
    misses = [predicted(groups) for groups in every]
    best = min(range(len(every)), key=misses.__getitem__)
    return every[best], misses[best]
