"""Histogram by a private Count-Min sketch: hashed categories under decoys, several times over."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

from shuffledp.accounting.repeated import RepeatedPair
from shuffledp.accounting.visible_coins import GridBallsPair
from shuffledp.messages import Reports
from shuffledp.privacy import Privacy
from shuffledp.protocols.cut import check_messages
from shuffledp.protocols.domains.categories import AnyCategories, as_categories
from shuffledp.protocols.domains.domain import Codes, Floats
from shuffledp.protocols.error_bounds import CONFIDENCE
from shuffledp.protocols.fields import noise
from shuffledp.protocols.histogram.blanket import LARGEST_COINS, smallest_blanket
from shuffledp.protocols.histogram.bounds import balls_bound
from shuffledp.protocols.histogram.decoys import decoy_reports, with_decoys, without_decoys
from shuffledp.protocols.histogram.hashed_rows import (
    COLLISIONS,
    Draft,
    HashedRowsPlan,
    columns_for,
    fewest_messages,
    smallest_near,
)
from shuffledp.protocols.request import Request
from shuffledp.randomness import RandomBits

# Ghazi, Golowich, Kumar, Pagh, Velingker 2021: noise in a cell, times epsilon^2 / (k^2 ln(2k/delta)) for k counters
# that change.
_PAPER_FACTOR = 90


@lru_cache(maxsize=64)
def _pair(balls: int, hit: float, rows: int) -> RepeatedPair:
    return RepeatedPair(GridBallsPair(balls, hit), rows)


@lru_cache(maxsize=64)
def _coins_for(honest: int, privacy: Privacy, rows: int, columns: int) -> tuple[int, float]:
    """The fewest coins in a row, and their smallest probability, that hide a user's move in all rows."""
    # Losses add up like variances: so many times as many balls, or a little less.
    guess = rows * smallest_blanket(privacy) * columns / honest

    def delta(mean: float) -> float:
        coins = max(1, math.ceil(mean))
        return _pair(honest * coins, mean / coins / columns, rows).delta(privacy.epsilon)

    mean = smallest_near(delta, privacy.delta, guess)
    return max(1, math.ceil(mean)), mean / max(1, math.ceil(mean))


def paper_sketch(users: int, bins: int, privacy: Privacy) -> tuple[int, int, float]:
    """The paper's own rows, columns and noise in each cell, for the two counters a row that a replacement changes.

    >>> rows, columns, noise = paper_sketch(10**5, 1000, Privacy(1, 1e-6))
    >>> rows, columns, round(noise / 1e6, 1)
    (18, 200000, 2.1)
    """
    rows = math.ceil(math.log2(2 * bins / COLLISIONS))
    changed = 2 * rows
    noise = _PAPER_FACTOR * changed**2 * math.log(2 * changed / privacy.delta) / privacy.epsilon**2
    return rows, 2 * users, noise


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch(HashedRowsPlan):
    """In each of `rows` rows a user sends its category's column and, at random, up to `coins` drawn uniformly.

    The adversary sees how many messages name each column of each row. A category's answer is the smallest of its cells,
    each less its share of the row's decoys, whose number is seen. For domains far larger than the number of users.

    Reference: Ghazi, Golowich, Kumar, Pagh, Velingker 2021, private Count-Min; [004] Table 5, [36]. Decoys in place of
    a coin for every cell: the same noise, and the adversary learns no more than how many they are.

    >>> plan = Sketch.plan(users=3000, privacy=Privacy(4, 1e-4), categories=10**6)
    >>> plan.rows, plan.collision_probability <= 0.01
    (9, True)
    """

    method: ClassVar[str] = "sketch"
    trades_messages: ClassVar[bool] = True
    law: ClassVar[str] = "blanket"
    drawn: ClassVar[str] = "coins and decoys are drawn exactly"
    dominates_because: ClassVar[str] = (
        "The hash functions are public and each row has decoys of its own: in every row the user's message moves "
        "from one column to another, or stays, among balls thrown uniformly."
    )

    coins: int = noise(f"[1, {LARGEST_COINS}]")
    probability: float = noise("(0, 1]")

    @classmethod
    def for_request(cls, request: Request, *, categories: AnyCategories, hash_seed: int = 0) -> Self:
        """The number of rows with about the fewest messages."""
        users, privacy, honest, domain = request.users, request.privacy, request.honest, as_categories(categories)
        if request.constants == "paper":
            rows, columns, noise = paper_sketch(users, domain.size, privacy)
            mean = noise * columns / honest
            coins, probability = math.ceil(mean), mean / math.ceil(mean)
        else:
            blanket = smallest_blanket(privacy)

            def draft(rows: int) -> Draft:
                columns = columns_for(users, domain.size, rows)
                decoys = rows * blanket * columns / honest
                return Draft(rows, columns, rows * (1 + decoys), rows * (1 + max(1, math.ceil(decoys))))

            best = fewest_messages(draft, request.max_messages)
            rows, columns = best.rows, best.columns
            coins, probability = _coins_for(honest, privacy, rows, columns)
        check_messages(rows * (1 + coins * probability), rows * (1 + coins))
        shape: dict[str, Any] = {"rows": rows, "columns": columns, "hash_seed": hash_seed}
        return cls(**request.common, categories=domain, **shape, coins=coins, probability=probability)

    @property
    def cell_mean(self) -> float:
        """Decoys of all users in one cell, on average."""
        return self.users * self.coins * self.probability / self.columns

    @property
    def _cell_error(self) -> float:
        return math.sqrt(self.cell_mean * (1 - 1 / self.columns))

    @property
    def paper_standard_error(self) -> float | None:
        rows, _, noise = paper_sketch(self.users, self.bins, self.privacy)
        return math.sqrt(rows * noise * self.users / self.honest_users)

    def _l_inf_error(self) -> float:
        allowed = 1 - CONFIDENCE - self.collision_probability
        if allowed <= 0:
            return float(self.users)
        # No cell may say too little; too much only matters in the one row where a category is alone.
        return balls_bound(
            self.users * self.coins,
            self.probability,
            self.columns,
            above=min(self.bins, self.rows * self.columns),
            below=self.rows * min(self.bins, self.columns),
            allowed=allowed,
        )

    @property
    def messages_per_user_mean(self) -> float:
        return self.rows * (1 + self.coins * self.probability)

    @property
    def messages_per_user_max(self) -> int:
        return self.rows * (1 + self.coins)

    @property
    def lying_client(self) -> str:
        return (
            f"moves a bin by at most {self.messages_per_user_max}, its messages, if all of them go to the row that "
            "decides"
        )

    def pair(self, honest: int) -> RepeatedPair:
        return _pair(honest * self.coins, self.probability / self.columns, self.rows)

    @property
    def curve(self) -> str:  # type: ignore[override]
        return f"two bins of balls in {self.rows} rows, composed"

    def _in_one_row(self, cells: Codes, bits: RandomBits) -> Reports:
        return decoy_reports(cells, self.columns, self.coins, self.probability, bits=bits)

    def _table(self, seen: Codes) -> Floats:
        return without_decoys(seen, self.users)

    def _noisy_row(self, seen: Codes, row: int, bits: RandomBits) -> Codes:
        return with_decoys(seen, self.users * self.coins, self.probability, bits=bits)
