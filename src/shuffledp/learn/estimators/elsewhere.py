"""People whose rows are not in memory: what an estimator asks of whoever holds them, and what it keeps of a fit."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shuffledp.learn.estimators.clipping import ClipCounts
from shuffledp.learn.estimators.declared import Floats
from shuffledp.learn.estimators.preparation import Preparation
from shuffledp.learn.estimators.running import FittingRun
from shuffledp.learn.fit_spending import FitSpending
from shuffledp.learn.optimize import Loss, Solver
from shuffledp.learn.optimize.running import GivesSums

Maker = Callable[[Any], tuple[Floats, Floats, NDArray[np.bool_]]]
"""Makes prepared rows, scaled targets, and for each question whose were clipped, of people as they came."""


class Dealt(Protocol):
    """People in a random order, ready to be asked."""

    @property
    def clipped(self) -> Mapping[str, int]:
        """How many had something clipped, for each question; read without noise."""

    def flags(self, users: int) -> Mapping[str, NDArray[np.bool_]]:
        """Whose values were clipped among the first so many of them, for each question."""

    def sums(self, loss: Loss, behind: int) -> GivesSums:
        """Sums of gradients of all but the first so many."""


class PeopleElsewhere(Protocol):
    """Everybody who may be asked."""

    @property
    def users(self) -> int:
        """How many there are."""

    @property
    def names(self) -> Sequence[str]:
        """The names of their features."""

    def dealt(
        self,
        solver: Solver,
        prepared: Preparation,
        make: Callable[[Preparation], Maker],
        questions: tuple[str, ...],
    ) -> AbstractContextManager[Dealt]:
        """Prepare everybody, and put them in a random order for as long as the block lasts."""


@dataclass(frozen=True, slots=True, eq=False)
class PreparedPeople:
    """Prepares some people's features and targets as an estimator declares them."""

    prepared: Preparation
    declared: Any
    questions: tuple[str, ...]

    def __call__(self, people: tuple[Any, NDArray[Any]]) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        features, targets = people
        rows, changed = self.prepared.rows(features)
        scaled, cut = self.declared._scaled_targets(targets)
        whose = {"rows": changed, "targets": cut}
        return rows, scaled, np.column_stack([whose[name] for name in self.questions])


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """A fit that is over.

    Attributes:
        preparation: what was done with rows.
        counts: who was asked what was clipped.
        solver: what asked everybody else.
        spending: what it cost.
        run: the model, and how it came about.
        clipped: of how many people something was clipped, by name; read without noise.
        users: how many people there were.
        went_on: whether it began with another model.
    """

    preparation: Preparation
    counts: ClipCounts
    solver: Solver
    spending: FitSpending
    run: FittingRun
    clipped: Mapping[str, int]
    users: int
    went_on: bool = False
