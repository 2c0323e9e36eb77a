"""Pan-private AC-SA: one trusted analyzer reads users one by one, and its memory may be seized once, at any time.

A cohort's running sum begins with noise and gets as much again at its end. Whoever seizes the memory after a user was
read has that user's gradient behind the first noise, and all later output is made from what was seized; whoever
seizes it before has the first noise, and the second protects the user. So one noise's pair is all that is seen of a
user.

Reference: [001] Algorithm 6, Theorem C.3, with integer noise and exact accounting.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.differences import Skellam
from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.accounting.pairs import DominatingPair
from shuffledp.accounting.rounding import rounded_difference
from shuffledp.continual.views import UserView
from shuffledp.errors import InfeasibleError, ParameterError, TooFewReportsError
from shuffledp.estimates import VectorEstimate
from shuffledp.learn.optimize.agd import Agd
from shuffledp.learn.optimize.losses import Floats, Loss, gradient_of
from shuffledp.learn.optimize.problem import Problem
from shuffledp.learn.optimize.smoothing import SmoothedAgd
from shuffledp.learn.optimize.solver import GradientCohort, OptimizerState, Solver
from shuffledp.learn.optimize.stages import GradientSum
from shuffledp.privacy import Privacy
from shuffledp.protocols.domains.summed import Vectors
from shuffledp.protocols.error_bounds import CONFIDENCE, noise_and_rounding_bound
from shuffledp.protocols.learner import OpenBatch
from shuffledp.protocols.states import fingerprint_of
from shuffledp.protocols.sums.noise import SkellamNoise
from shuffledp.protocols.vector_sum.base import ROUNDING_PART
from shuffledp.randomness import RandomBits
from shuffledp.sampling.laws import poisson, poisson_parts, sample_skellam

Whole = NDArray[np.int64]

# Rounding may add this part to a neighbours' distance and to the noise; wider noise takes long to account for.
_ROUNDING_COST, _WIDEST_NOISE = 0.003, 1e5


@dataclass(frozen=True, slots=True, kw_only=True)
class PanPrivateSum:
    """A running sum of vectors no longer than `radius`, with Skellam noise of this variance before and after.

    >>> total = PanPrivateSum.plan(users=3, privacy=Privacy(1, 1e-6), dimension=2, radius=1)
    >>> bits = RandomBits.seeded(1)
    >>> held = total.begin(bits=bits)
    >>> for vector in ([0.6, 0.8], [1.0, 0.0], [0.0, -1.0]):
    ...     held = total.read(held, [vector], bits=bits)
    >>> round(total.standard_error, 1), total.guarantee_delta <= 1e-6
    (12.0, True)
    """

    users: int
    privacy: Privacy
    dimension: int
    radius: float
    grid: int
    variance: float

    @classmethod
    def plan(cls, *, users: int, privacy: Privacy, dimension: int, radius: float) -> Self:
        """The least noise on a grid that is fine enough."""
        deviation, grid = gaussian_standard_deviation(privacy), 1
        while _cost(grid, dimension, users, deviation, privacy) > _ROUNDING_COST:
            finer = math.ceil(grid * 1.1)
            if 2 * finer * deviation > _WIDEST_NOISE:
                break
            grid = finer
        # What tables cut off is far below a thousandth of any delta that is allowed; the rest is for noise.
        target = Privacy(privacy.epsilon, privacy.delta * (1 - 1e-3))
        noise = UserView.of(Vectors(dimension, radius, grid), 1, target).calibrate("skellam", target)
        variance = noise.law().variance
        return cls(users=users, privacy=privacy, dimension=dimension, radius=radius, grid=grid, variance=variance)

    def __post_init__(self) -> None:
        if self.guarantee_delta > self.privacy.delta:
            limits = f"must reach delta {self.privacy.delta:g} but gives {self.guarantee_delta:.3g}"
            raise InfeasibleError("variance", self.variance, limits, "add noise")

    @property
    def domain(self) -> Vectors:
        """How vectors become whole numbers."""
        return Vectors(self.dimension, self.radius, self.grid)

    @property
    def step(self) -> float:
        """One step of the grid."""
        return self.domain.step

    @property
    def standard_error(self) -> float:
        """Of every coordinate: both noises and rounding."""
        return self.step * math.sqrt(2 * self.variance + self.users / 4)

    @property
    def messages_per_user_max(self) -> int:
        """A user shows its data to the analyzer and sends no messages."""
        return 0

    @property
    def batches(self) -> tuple[OpenBatch, ...]:
        """Nothing is shuffled."""
        return ()

    def sampled(self, *, bits: RandomBits, ahead: int = 1) -> "PanPrivateRun":
        """The sums themselves, one after another."""
        return PanPrivateRun(self, bits)

    @property
    def _view(self) -> UserView:
        return UserView.of(self.domain, 1, self.privacy)

    def pair(self, honest: int) -> DominatingPair:
        """One noise, and a neighbour's shift."""
        return self._view.pair(SkellamNoise(self.variance))

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        """Every summand of delta of what one intrusion and the model show."""
        half = Fraction(self.variance) / 2
        parts = poisson_parts(half)
        distance = 4 * self.dimension * parts * poisson(half / parts).distance
        sampling = (1 + math.exp(epsilon)) * distance
        words = "(1 + e^epsilon) times what the tables of both noises cut off and round"
        terms = self._view.delta_terms(SkellamNoise(self.variance), epsilon)
        return (*terms, DeltaTerm("sampling", sampling, words))

    @property
    def guarantee_delta(self) -> float:
        """All of delta at the target's epsilon."""
        return sum(term.value for term in self.delta_terms(self.privacy.epsilon, self.users))

    @property
    def fingerprint(self) -> str:
        """Of what decides it."""
        numbers = (self.dimension, self.radius, self.grid, self.variance)
        return fingerprint_of(["pan-private-sum", self.users, self.privacy.epsilon, self.privacy.delta, *numbers])

    def _noise(self, bits: RandomBits) -> Whole:
        return sample_skellam(Fraction(self.variance), self.dimension, bits=bits)

    def begin(self, *, bits: RandomBits) -> Whole:
        """The first noise."""
        return self._noise(bits)

    def read(self, held: Whole, vectors: ArrayLike, *, bits: RandomBits) -> Whole:
        """The running sum with some users' vectors, rounded at random."""
        steps = self.domain.to_steps(self.domain.check_values(vectors), bits=bits).reshape(-1, self.dimension)
        return np.asarray(held + steps.sum(axis=0))

    def close(self, held: Whole, *, bits: RandomBits) -> VectorEstimate:
        """The estimate behind both noises."""
        return VectorEstimate(
            value=np.asarray(self.step * (held + self._noise(bits)), dtype=np.float64),
            standard_error=self.standard_error,
            bound=self.step * _bound_in_steps(self),
            confidence=CONFIDENCE,
            simulated=not bits.is_secure,
        )


class PanPrivateRun:
    """Sums of users' vectors, one after another: each begins with noise and gets as much again at its end."""

    def __init__(self, total: PanPrivateSum, bits: RandomBits) -> None:
        self._total, self._bits = total, bits
        self._held: Whole | None = None

    def add(self, block: Floats, *, is_clipped: bool = False) -> None:
        """Some users' vectors, a row each."""
        held = self._total.begin(bits=self._bits) if self._held is None else self._held
        self._held = self._total.read(held, block, bits=self._bits)

    def estimate(self) -> VectorEstimate:
        """The estimate over all vectors since the last one."""
        held, self._held = self._held, None
        return self._total.close(self._total.begin(bits=self._bits) if held is None else held, bits=self._bits)


@lru_cache(maxsize=64)
def _bound_in_steps(total: PanPrivateSum) -> float:
    return noise_and_rounding_bound(Skellam(2 * total.variance), total.users, total.dimension)


def _cost(grid: int, dimension: int, users: int, deviation: float, privacy: Privacy) -> float:
    length = rounded_difference(2.0 * grid, dimension, ROUNDING_PART * privacy.delta).length
    return max(length / (2 * grid) - 1, users / (16 * (2 * grid * deviation) ** 2))


class _PanPrivate(Agd):
    """What is different with pan-private sums: the plan, and two noises in place of one."""

    model: ClassVar[str] = "pan-private"
    reference: ClassVar[str] = "[001] Theorem C.3"

    def plan_noise(self, problem: Problem, users: int, rounds: int) -> GradientSum | None:
        if problem.privacy is None:
            return None
        size, length = problem.dimension, problem.lipschitz
        return PanPrivateSum.plan(users=users, privacy=problem.privacy, dimension=size, radius=length)

    def expected_noise(self, problem: Problem) -> float:
        return math.sqrt(2) * problem.unit_noise


class PanPrivateAgd(_PanPrivate):
    """P_AGD with pan-private sums."""

    name: ClassVar[str] = "pan-private-agd"


class PanPrivateSmoothedAgd(_PanPrivate, SmoothedAgd):
    """P_AGD on envelopes with pan-private sums."""

    name: ClassVar[str] = "pan-private-smoothed-agd"


@dataclass(frozen=True, slots=True)
class PanPrivateMemory:
    """All that an intruder finds: the solver's state, the running sum in steps, and how many users it has read."""

    state: OptimizerState
    held: tuple[int, ...]
    read: int


class PanPrivateLearner:
    """Reads users one by one, or a few at a time, and forgets them; `seize` is what an intruder sees.

    Random bits are no part of the memory: they are passed in, and whoever passes them must not keep them, since an
    intruder who also had them would know the second noise before it is drawn.

    >>> from shuffledp.learn.optimize import L2Ball, LogisticLoss, Problem, plan
    >>> loss, ball = LogisticLoss(), L2Ball(dimension=2, radius=2)
    >>> problem = Problem.of(loss, ball, users=2000, privacy=Privacy(1, 1e-6), rounds=4)
    >>> learner = PanPrivateLearner(plan(problem, solver="pan-private-agd"), loss, bits=RandomBits.secure())
    >>> for _ in range(5):
    ...     learner.read([[0.6, 0.8]], [1.0], bits=RandomBits.secure())
    >>> learner.seize().read
    5
    """

    def __init__(self, solver: Solver, loss: Loss, *, bits: RandomBits) -> None:
        if solver.model != "pan-private":
            raise ParameterError("solver", solver.name, "must be pan-private", "plan pan-private-agd")
        self._solver, self._loss = solver, loss
        self._memory = PanPrivateMemory(solver.start(), (), 0)
        self._open(solver.start(), bits)

    def _open(self, state: OptimizerState, bits: RandomBits) -> None:
        cohort = self._solver.ask(state)
        held = () if cohort is None else tuple(_total_of(cohort).begin(bits=bits).tolist())
        self._memory = PanPrivateMemory(state, held, 0)

    @property
    def missing(self) -> int:
        """Users that the open cohort still waits for; 0 when the model is done."""
        cohort = self._solver.ask(self._memory.state)
        return 0 if cohort is None else cohort.users - self._memory.read

    def read(self, *rows: ArrayLike, bits: RandomBits) -> None:
        """Some users' data, at most as many as the open cohort waits for."""
        cohort, memory = self._solver.ask(self._memory.state), self._memory
        checked = self._loss.check_rows(self._solver.problem.dimension, *rows)
        if cohort is None or len(checked[0]) > self.missing:
            raise ParameterError("rows", len(checked[0]), f"must be at most {self.missing}", "read fewer at a time")
        total = _total_of(cohort)
        sent, _ = gradient_of(self._loss, cohort.step.parameters, *checked)
        held = total.read(np.array(memory.held, dtype=np.int64), sent, bits=bits)
        if len(checked[0]) < self.missing:
            self._memory = PanPrivateMemory(memory.state, tuple(held.tolist()), memory.read + len(checked[0]))
        else:
            closed = {1: total.close(held, bits=bits)}
            self._open(self._solver.tell(memory.state, cohort.users, closed), bits)

    def seize(self) -> PanPrivateMemory:
        """All of the memory."""
        return self._memory

    def result(self) -> NDArray[np.float64]:
        """The model, once all cohorts were read."""
        if self.missing:
            cohort = self._solver.ask(self._memory.state)
            raise TooFewReportsError(self._solver.users, (0 if cohort is None else cohort.first) + self._memory.read)
        return self._solver.estimate(self._memory.state)


def _total_of(cohort: GradientCohort) -> PanPrivateSum:
    """The sum of a pan-private solver's cohort."""
    return cast(PanPrivateSum, cohort.plan)
