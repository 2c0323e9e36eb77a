"""Histogram by the Count-Min template: opting in, on hashed categories, several times over."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np

from shuffledp.accounting.laws import Binomial
from shuffledp.accounting.repeated import RepeatedPair
from shuffledp.accounting.visible_coins import OptInPair
from shuffledp.messages import Reports
from shuffledp.privacy import Privacy
from shuffledp.protocols.cut import check_messages, delta_of_coins, worst_mean_square
from shuffledp.protocols.domains.categories import AnyCategories, as_categories
from shuffledp.protocols.domains.domain import Codes, Floats
from shuffledp.protocols.error_bounds import CONFIDENCE
from shuffledp.protocols.fields import noise, only_exact
from shuffledp.protocols.histogram.bounds import binomial_above
from shuffledp.protocols.histogram.hashed_rows import (
    Draft,
    HashedRowsPlan,
    columns_for,
    fewest_messages,
    smallest_near,
)
from shuffledp.protocols.histogram.opt_in import (
    cut_bound,
    cut_counts,
    cut_mean_squares,
    opt_in_reports,
    opting_law,
    smallest_opt_in,
)
from shuffledp.protocols.request import Request
from shuffledp.randomness import RandomBits
from shuffledp.sampling.coins import binomial, fair_coin_sums


@lru_cache(maxsize=64)
def _pair(honest: int, probability: float, rows: int) -> RepeatedPair:
    return RepeatedPair(OptInPair(honest, probability), rows)


@lru_cache(maxsize=64)
def _smallest_opt_in(honest: int, privacy: Privacy, rows: int) -> float:
    """The smallest probability of opting in that is enough in so many rows at once."""
    what = f"to hide a user's move in {rows} rows"
    delta = delta_of_coins(lambda probability: _pair(honest, probability, rows), privacy, honest, 1.0, what)
    # Losses add up like variances: so many times as many coins, or a little less.
    return min(1.0, smallest_near(delta, privacy.delta, min(1.0, rows * smallest_opt_in(honest, privacy))))


@lru_cache(maxsize=64)
def _largest_error(users: int, probability: float, rows: int) -> float:
    """The root mean square of the largest of all rows' errors in one column, at most, whatever the counts.

    With B tails among N coins an error is at most D = max(B, N - B), which grows with N. In steps of x, E[max D^2] is
    at most the sum of (next x^2 - x^2) P[max D > x].
    """
    _, numbers, weights, outside = opting_law(users, probability)
    steps = np.unique(np.linspace(0, numbers[-1], 500).astype(np.int64)).astype(np.float64)
    one = [
        float(weights @ np.where(x < numbers / 2, 1.0, 2 * binomial_above(np.full(numbers.size, x), numbers, 0.5)))
        for x in steps[:-1]
    ]
    largest = -np.expm1(rows * np.log1p(-np.minimum(np.array(one) + outside, 1 - 1e-16)))
    # Beyond the window at most all users have opted in.
    return math.sqrt(float(np.diff(steps**2) @ largest) + rows * outside * float(users) ** 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountMin(HashedRowsPlan):
    """In each of `rows` rounds at once, a user's category is hashed into `columns` and counted by opting in.

    The adversary sees, in every row, how many opted in and how many messages name each column. A category's answer is
    the smallest of its cells'. For domains far larger than the number of users: others need no hashing.

    Reference: [004] Theorems 30 and 31, composed exactly instead of with (epsilon/T, delta/T).

    >>> plan = CountMin.plan(users=3000, privacy=Privacy(4, 1e-4), categories=10**6)
    >>> plan.rows, plan.collision_probability <= 0.01
    (9, True)
    """

    method: ClassVar[str] = "count-min"
    trades_messages: ClassVar[bool] = True
    law: ClassVar[str] = "fair-coins"
    dominates_because: ClassVar[str] = (
        "The hash functions are public and each row is a round of opting in with coins of its own: in every row "
        "the user's message moves from one column to another, or stays."
    )

    probability: float = noise("(0, 1]")

    @classmethod
    def for_request(cls, request: Request, *, categories: AnyCategories, hash_seed: int = 0) -> Self:
        """The number of rows with about the fewest messages; the survey names no constant."""
        only_exact(request.constants)
        domain, honest = as_categories(categories), request.honest
        once = smallest_opt_in(honest, request.privacy)

        def draft(rows: int) -> Draft:
            columns = columns_for(request.users, domain.size, rows)
            # Not everybody opting in is enough in so many rows.
            probability = rows * once if rows * once <= 1 else math.inf
            return Draft(rows, columns, rows * (1 + probability * (1 + columns / 2)), rows * (columns + 2))

        best = fewest_messages(draft, request.max_messages)
        probability = _smallest_opt_in(honest, request.privacy, best.rows)
        check_messages(best.mean, best.most)
        shape: dict[str, Any] = {"rows": best.rows, "columns": best.columns, "hash_seed": hash_seed}
        return cls(**request.common, categories=domain, **shape, probability=probability)

    @property
    def opted_mean(self) -> float:
        """Users that opt in, in one row, on average."""
        return self.users * self.probability

    @property
    def _cell_error(self) -> float:
        taken = Binomial(self.users, self.probability / 2)
        return math.sqrt(worst_mean_square(taken, lambda: cut_mean_squares(self.users, self.probability)))

    @property
    def standard_error(self) -> float:
        """The root mean square error at most, where a category is alone in some row."""
        every_row = math.sqrt(self.rows) * self._cell_error
        return min(every_row, _largest_error(self.users, self.probability, self.rows))

    def _l_inf_error(self) -> float:
        # Cells that nobody is in are answered exactly; no row has more others than there are users or categories.
        noisy = min(self.users, self.bins, self.columns)
        allowed = (1 - CONFIDENCE - self.collision_probability) / self.rows
        return cut_bound(self.users, self.probability, noisy, allowed) if allowed > 0 else float(self.users)

    @property
    def messages_per_user_mean(self) -> float:
        return self.rows * (1 + self.probability * (1 + self.columns / 2))

    @property
    def messages_per_user_max(self) -> int:
        return self.rows * (self.columns + 2)

    @property
    def letters(self) -> int:  # type: ignore[override]
        return self.columns + 1

    @property
    def influence(self) -> float:
        return self.messages_per_user_max + self.opted_mean

    @property
    def lying_client(self) -> str:
        return (
            f"moves a bin by its messages, at most {self.messages_per_user_max}; by saying often that it opts in it "
            "moves the cut of a whole row"
        )

    def pair(self, honest: int) -> RepeatedPair:
        return _pair(honest, self.probability, self.rows)

    @property
    def curve(self) -> str:  # type: ignore[override]
        return f"two bins in each of {self.rows} rows, composed"

    def _in_one_row(self, cells: Codes, bits: RandomBits) -> Reports:
        return opt_in_reports(cells, self.columns, self.probability, bits=bits)

    def _table(self, seen: Codes) -> Floats:
        return cut_counts(seen[:-1], int(seen[-1]))

    def _noisy_row(self, seen: Codes, row: int, bits: RandomBits) -> Codes:
        seen = seen.copy()
        opted = int(binomial(self.users, self.probability, 1, bits=bits)[0])
        # Columns that no category is hashed to are never looked up.
        used = np.unique(self.hashes.cells(np.arange(self.bins), row)) if self.bins < self.columns else ...
        seen[used] += fair_coin_sums(opted, seen[used].size, bits=bits)
        return np.append(seen, opted)
