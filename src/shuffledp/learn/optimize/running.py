"""A solver on users' data in memory: ask and tell, with estimates by law, without noise, or by whoever makes them.

`shuffledp.simulation.optimize` makes every message; nothing else of a run is different there.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import BrokenBatchError, ParameterError
from shuffledp.estimates import VectorEstimate
from shuffledp.learn.optimize.linear_losses import LinearLoss
from shuffledp.learn.optimize.losses import Loss, Rows, gradient_of, moments_of
from shuffledp.learn.optimize.pan_private_sum import PanPrivateRun
from shuffledp.learn.optimize.softmax import SoftmaxLoss
from shuffledp.learn.optimize.solver import GradientCohort
from shuffledp.learn.optimize.stages import GradientSum
from shuffledp.protocols.vector_sum.base import SampledSums
from shuffledp.randomness import RandomBits

Floats = NDArray[np.float64]
Analyzed = Callable[[Any, Floats, RandomBits], VectorEstimate]
"""What becomes of a cohort's vectors under a plan."""

# Numbers at a time: they stay in the cache.
_AT_A_TIME = 1 << 18
# Sums whose noise is drawn at a time.
_AHEAD = 64


class Stands(Protocol):
    """A state that counts rounds."""

    @property
    def round(self) -> int:
        """Rounds done."""


S = TypeVar("S", bound=Stands)


class AsksForGradients(Protocol[S]):
    """Whoever asks cohorts for gradients and is told their sums: a `Solver`, or `GradientRounds`."""

    @property
    def users(self) -> int:
        """Users who are asked at all."""

    @property
    def rounds(self) -> int:
        """How many rounds there are."""

    @property
    def dimension(self) -> int:
        """Numbers of a model."""

    def start(self) -> S:
        """The state before anybody came."""

    def ask(self, state: S) -> GradientCohort | None:
        """The next cohort; None when all rounds are done."""

    def tell(self, state: S, users: int, closed: dict[int, Any]) -> S:
        """The state after a cohort."""

    def estimate(self, state: S) -> Floats:
        """The model so far."""


@dataclass(frozen=True, slots=True, eq=False)
class OptimizerRun:
    """The model, the state to go on from, and how many of all gradients had to be clipped."""

    theta: Floats
    state: Any
    clipped: int
    gradients: int
    simulated: bool


class GivesSums(Protocol):
    """Whoever answers a solver's questions: over rows in memory, or wherever they are."""

    people: int
    clipped: int
    gradients: int

    @property
    def is_simulated(self) -> bool:
        """Whether nobody is protected."""

    def of(self, cohort: GradientCohort) -> VectorEstimate | Floats:
        """The estimate of a cohort's sum."""


def run_solver(
    solver: AsksForGradients[S],
    sums: GivesSums,
    *,
    state: S | None = None,
    rounds: int | None = None,
    watch: Callable[[S], None] | None = None,
) -> OptimizerRun:
    """Ask and tell until all rounds are done, or so many of them; `watch` is shown the state after every round.

    >>> from shuffledp import Privacy
    >>> from shuffledp.learn.optimize import L2Ball, LogisticLoss, Problem, plan
    >>> loss = LogisticLoss()
    >>> rows = loss.check_rows(2, np.tile([[0.6, 0.8], [-0.6, -0.8]], (5000, 1)), np.tile([1.0, -1.0], 5000))
    >>> problem = Problem.of(loss, L2Ball(dimension=2, radius=2), users=10_000, privacy=Privacy(1, 1e-6))
    >>> run = run_solver(plan(problem, solver="agd"), CohortSums(loss, rows, bits=RandomBits.seeded(1)))
    >>> loss.objective(run.theta, *rows) < 0.3
    True
    """
    if sums.people < solver.users:
        raise ParameterError("data", sums.people, f"must have {solver.users} users", "plan for the users there are")
    now = solver.start() if state is None else state
    last = solver.rounds if rounds is None else min(solver.rounds, now.round + rounds)
    while now.round < last and (cohort := solver.ask(now)) is not None:
        try:
            told: VectorEstimate | Floats | None = sums.of(cohort)
        except BrokenBatchError:
            told = None
        now = solver.tell(now, cohort.users, {1: told})
        if watch is not None:
            watch(now)
    return OptimizerRun(solver.estimate(now), now, sums.clipped, sums.gradients, sums.is_simulated)


class CohortSums:
    """Cohorts' sums of clipped gradients over checked rows; user i of the solver is row i, or row `order[i]`.

    Estimates are drawn from their law, or come from `analyzed`; with `exact` there is neither noise nor rounding.
    """

    def __init__(
        self,
        loss: Loss,
        rows: Rows,
        *,
        bits: RandomBits,
        order: NDArray[np.intp] | None = None,
        exact: bool = False,
        analyzed: Analyzed | None = None,
    ) -> None:
        self._loss, self._rows, self._order, self.bits = loss, rows, order, bits
        self._exact, self._analyzed = exact, analyzed
        # Only where no subclass has its own idea of what is sent: else every length is looked at again.
        self._is_clipped = type(loss).sent in (Loss.sent, LinearLoss.sent, SoftmaxLoss.sent)
        if order is not None:
            _check_order(order, len(rows[0]))
        self.people = len(rows[0]) if order is None else len(order)
        self._sampled: tuple[GradientSum, SampledSums | PanPrivateRun] | None = None
        self.clipped, self.gradients = 0, 0

    @property
    def is_simulated(self) -> bool:
        """Whether nobody is protected: bits that can be repeated, or no noise at all."""
        return self._exact or not self.bits.is_secure

    def of(self, cohort: GradientCohort) -> VectorEstimate | Floats:
        """The estimate of a cohort's sum, or the sum itself where there is no noise."""
        plan = cohort.plan
        if plan is None or self._exact:
            total = np.zeros(cohort.width)
            for sent in self._blocks(cohort):
                total += sent.sum(axis=0)
            return total
        if self._analyzed is not None and plan.messages_per_user_max:
            return self._analyzed(plan, np.concatenate(list(self._blocks(cohort))), self.bits)
        if self._sampled is None or self._sampled[0] is not plan:
            ahead = 1 if cohort.asks_moments else max(1, min(_AHEAD, _AT_A_TIME // cohort.width))
            self._sampled = (plan, plan.sampled(bits=self.bits, ahead=ahead))
        sampled = self._sampled[1]
        for sent in self._blocks(cohort):
            is_clipped = self._is_clipped and not cohort.asks_moments and cohort.clip <= plan.radius
            sampled.add(sent, is_clipped=is_clipped)
        return sampled.estimate()

    def _blocks(self, cohort: GradientCohort) -> Iterator[Floats]:
        size = max(1, _AT_A_TIME // cohort.width)
        end = cohort.first + cohort.users
        for start in range(cohort.first, end, size):
            part = slice(start, min(start + size, end))
            chosen = part if self._order is None else self._order[part]
            block = tuple(array[chosen] for array in self._rows)
            if cohort.asks_moments:
                yield moments_of(self._loss, cohort.step.parameters, *block)[0]
                continue
            sent, clipped = gradient_of(self._loss, cohort.step.parameters, *block)
            self.clipped += clipped
            self.gradients += len(sent)
            yield sent


def _check_order(order: NDArray[np.intp], people: int) -> None:
    """Every user once: one who is in two cohorts would be asked twice."""
    indices = np.asarray(order)
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise ParameterError(
            "order", f"dtype {indices.dtype}", "must be whole numbers", "pass a permutation of the rows"
        )
    if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < people:
        raise ParameterError("order", "a row that is not there", f"must lie in 0..{people - 1}", "pass a permutation")
    if np.unique(indices).size < indices.size:
        raise ParameterError("order", "a row twice", "must name every row once at most", "pass a permutation")
