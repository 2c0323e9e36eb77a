"""One intrusion at any time, and the model: the joint law of both, by brute force."""

import math
from dataclasses import replace

import numpy as np
import pytest

from shuffledp import Privacy
from shuffledp.accounting.differences import Skellam
from shuffledp.errors import InfeasibleError, ParameterError, TooFewReportsError
from shuffledp.learn.optimize import L2Ball, LogisticLoss, PanPrivateLearner, Problem, plan
from shuffledp.learn.optimize.pan_private import PanPrivateSum
from shuffledp.randomness import RandomBits
from shuffledp.testing.statistics import assert_deviation, assert_mean

PRIVACY = Privacy(1.0, 1e-3)


def _masses(variance: float, reach: int) -> np.ndarray:
    return np.exp(Skellam(variance).log_pmf(np.arange(-reach, reach + 1, dtype=np.float64)))


def _delta(variances: tuple[float, float], steps: list[int], replaced: int, intrusion: int, epsilon: float) -> float:
    """Of (running sum after `intrusion` users, sum behind both noises) between `steps` and one user's sign changed."""
    other = [-step if user == replaced else step for user, step in enumerate(steps)]
    reach = math.ceil(14 * math.sqrt(max(variances))) + 4 * sum(map(abs, steps))
    first, second = (_masses(variance, reach) for variance in variances)

    def joint(values: list[int]) -> np.ndarray:
        before, after = sum(values[:intrusion]), sum(values[intrusion:])
        # What is released is what is held, plus the rest, plus the second noise: a column is that difference.
        return np.roll(first, before)[:, None] * np.roll(second, after)[None, :]

    one, two = joint(steps), joint(other)
    return float(
        max(
            np.maximum(one - math.exp(epsilon) * two, 0).sum(),
            np.maximum(two - math.exp(epsilon) * one, 0).sum(),
        )
    )


@pytest.mark.parametrize("intrusion", range(4))
def test_memory_and_model_together_are_private(intrusion: int) -> None:
    total = PanPrivateSum.plan(users=3, privacy=PRIVACY, dimension=1, radius=1)
    steps = [total.grid, -total.grid, total.grid]
    proved = total.guarantee_delta
    assert proved <= PRIVACY.delta
    for replaced in range(3):
        exact = _delta((total.variance,) * 2, steps, replaced, intrusion, 1.0)
        assert exact <= total.pair(3).delta(1.0) * (1 + 1e-9) <= proved
        # A twin with a fifth less noise breaks the promise, wherever the intruder looks.
        assert _delta((0.8**2 * total.variance,) * 2, steps, replaced, intrusion, 1.0) > PRIVACY.delta


def test_without_either_noise_somebody_is_exposed() -> None:
    total = PanPrivateSum.plan(users=3, privacy=PRIVACY, dimension=1, radius=1)
    steps, hardly = [total.grid, -total.grid, total.grid], 0.01
    # Seized between the first user and the second: the first noise hides the one, the second the other.
    assert _delta((total.variance, hardly), steps, 0, 1, 1.0) <= PRIVACY.delta
    assert _delta((total.variance, hardly), steps, 1, 1, 1.0) > 0.9
    assert _delta((hardly, total.variance), steps, 0, 1, 1.0) > 0.9
    assert _delta((hardly, total.variance), steps, 1, 1, 1.0) <= PRIVACY.delta
    with pytest.raises(InfeasibleError):
        replace(total, variance=0.8**2 * total.variance)


def test_estimates_have_both_noises() -> None:
    total = PanPrivateSum.plan(users=20, privacy=Privacy(1, 1e-6), dimension=50, radius=1)
    bits, vectors = RandomBits.seeded(2), np.full((20, 50), 0.1)
    estimates = np.concatenate(
        [total.close(total.read(total.begin(bits=bits), vectors, bits=bits), bits=bits).value for _ in range(200)]
    )
    assert_mean(estimates, 2.0, total.standard_error)
    noise = total.step * math.sqrt(2 * total.variance + 20 * 0.25)
    assert_deviation(estimates, noise)
    assert total.standard_error == pytest.approx(noise)


def test_a_learner_reads_one_by_one_and_forgets() -> None:
    loss, ball = LogisticLoss(), L2Ball(dimension=2, radius=2)
    problem = Problem.of(loss, ball, users=300, privacy=Privacy(8, 1e-3), rounds=3)
    solver = plan(problem, solver="pan-private-agd")
    learner = PanPrivateLearner(solver, loss, bits=RandomBits.seeded(3))
    cohort = solver.stages[0].users
    features, bits = np.tile([[0.6, 0.8]], (300, 1)), RandomBits.seeded(4)
    for user in range(solver.users):
        memory = learner.seize()
        assert (memory.state.round, memory.read) == divmod(user, cohort)
        # Nothing but the round, two points and a sum.
        assert len(memory.held) == len(memory.state.point) == len(memory.state.average) == 2
        with pytest.raises(TooFewReportsError) as early:
            learner.result()
        assert (early.value.needed, early.value.present) == (solver.users, user)
        learner.read(features[user : user + 1], [1.0], bits=bits)
    assert learner.missing == 0
    assert learner.result() @ features[0] > 0.3
    with pytest.raises(ParameterError, match="at most 0"):
        learner.read(features[:1], [1.0], bits=bits)
    with pytest.raises(ParameterError, match="pan-private"):
        PanPrivateLearner(plan(problem, solver="agd"), loss, bits=bits)
