"""The paper's running counts as written: Algorithm 2 (binary tree) and Algorithm 3 (k shufflers)."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.composition import Composition
from shuffledp.accounting.curves import smallest_integer
from shuffledp.accounting.laws import Binomial
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.references.continual.horizon import bits_of, check_users, failure_of, gaussian_factor
from shuffledp.schedules.prefixes import PrefixSchedule
from shuffledp.schedules.uniform import uniform_schedule

Accounting = Literal["paper", "simple", "exact"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperCounter:
    """Batches as in a tree of one degree; inside a slot the last estimate stands, as in the paper.

    `accounting` is the paper's constants at (epsilon/k, delta/k), the same split with the exact curve, or exact
    composition: what each of the two improvements is worth.

    Reference: [000] Algorithms 2 and 3; the degree is n^(2/(2k+1)), as in the appendix.

    >>> PaperCounter.k_shufflers(users=100_000, shufflers=2, privacy=Privacy(1, 1e-6)).slots
    10000
    """

    users: int
    shufflers: int
    privacy: Privacy
    degree: int
    slot_users: int
    accounting: Accounting = "paper"

    def __post_init__(self) -> None:
        check_users(self.users)
        if self.shufflers < 1 or self.degree < 2 or self.slot_users < 1:
            raise ParameterError("shufflers", self.shufflers, "must be >= 1, with a degree >= 2", "count more users")

    @classmethod
    def k_shufflers(cls, *, users: int, shufflers: int, **more: Any) -> Self:
        """Algorithm 3: degree n^(2/(2k+1)), and slots that make it last for all users; `more` is for the class."""
        degree = max(2, round(users ** (2 / (2 * shufflers + 1))))
        slot_users = math.ceil((users + 1) / degree**shufflers)
        return cls(users=users, shufflers=shufflers, degree=degree, slot_users=slot_users, **more)

    @classmethod
    def binary_tree(cls, *, users: int, **more: Any) -> Self:
        """Algorithm 2: a binary tree whose smallest batches are pairs, on log2(n) - 1 shufflers."""
        levels = max(1, math.ceil(math.log2(users + 1)) - 1)
        return cls(users=users, shufflers=levels, degree=2, slot_users=2, **more)

    @property
    def slots(self) -> int:
        """Slots of the whole tree."""
        return int(self.degree**self.shufflers)

    @property
    def schedule(self) -> PrefixSchedule:
        """Which batch covers which slots."""
        return uniform_schedule(self.degree, self.shufflers, self.slot_users)

    @property
    def coins(self) -> int:
        """Fair coins of every batch."""
        return _coins(self.accounting, self.shufflers, self.privacy)

    @property
    def standard_error(self) -> float:
        """The standard deviation of the noise in the worst estimate."""
        return math.sqrt(self.coins * self.shufflers * (self.degree - 1)) / 2

    def error_bound(self, confidence: float) -> float:
        """Over the whole horizon, with Gaussian tails, as the paper's sub-Gaussian claim would have it."""
        return self.standard_error * gaussian_factor(self.slots, failure_of(confidence)) + self.slot_users - 1

    def run(self, values: ArrayLike, *, generator: np.random.Generator) -> NDArray[np.float64]:
        """The estimates after 1, 2, ... users."""
        bits = bits_of(values, self.users)
        schedule = self.schedule
        noise = generator.binomial(self.coins, 0.5, schedule.batches) - self.coins / 2
        ends = np.minimum(np.arange(schedule.slots) * self.slot_users, self.users)
        prefixes = np.concatenate(([0], np.cumsum(bits)))[ends] + schedule.prefix_sums(noise)
        return np.asarray(prefixes[np.arange(1, self.users + 1) // self.slot_users])


@lru_cache(maxsize=64)
def _coins(accounting: Accounting, shufflers: int, privacy: Privacy) -> int:
    part = Privacy(privacy.epsilon / shufflers, privacy.delta / shufflers)
    if accounting == "paper":
        return math.ceil(96 * math.log(2 / part.delta) / part.epsilon**2)
    if accounting == "simple":
        return smallest_integer(lambda n: ShiftPair(Binomial(n, 0.5)).delta(part.epsilon) <= part.delta)
    return smallest_integer(
        lambda n: Composition([(ShiftPair(Binomial(n, 0.5)), shufflers)]).delta(privacy.epsilon) <= privacy.delta
    )
