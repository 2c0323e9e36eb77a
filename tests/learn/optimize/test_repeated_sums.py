"""The composition of a cohort's rounds: against the accountant's brute force, and twins that must fail."""

import math
from dataclasses import replace

import pytest

from shuffledp import Privacy
from shuffledp.accounting.composition import Composition
from shuffledp.accounting.differences import Skellam
from shuffledp.accounting.gaussian import GaussianPair, gaussian_standard_deviation
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.learn.optimize import L2Ball, LogisticLoss, Problem, plan
from shuffledp.learn.optimize.repeated_sums import RepeatedSum, plan_sum
from shuffledp.protocols.vector_sum import VectorSum
from shuffledp.protocols.vector_sum.shares import VectorShares


def _problem(dimension: int, epsilon: float = 1.0, **limits: object) -> Problem:
    ball = L2Ball(dimension=dimension, radius=1)
    return Problem.of(LogisticLoss(), ball, users=500, privacy=Privacy(epsilon, 1e-6), **limits)


@pytest.mark.parametrize(("rounds", "epsilon"), [(2, 1.0), (7, 0.5), (30, 4.0)])
def test_rounds_compose_as_the_accountant_says(rounds: int, epsilon: float) -> None:
    vector_sum = plan_sum(_problem(3, epsilon), 500, rounds)
    assert vector_sum is not None
    whole, once = RepeatedSum(vector_sum, rounds), vector_sum.pair(500)
    assert isinstance(once, GaussianPair)
    brute = Composition([(once, rounds)]).delta(epsilon)
    closed = whole.pair(500).delta(epsilon)
    assert closed <= brute * (1 + 1e-6)
    assert brute <= closed * 1.02
    assert 0.9e-6 <= whole.delta(epsilon, 500) <= 1e-6
    # Not a split of epsilon and delta: as good as Gaussian noise of the same target.
    gaussian = 2 * gaussian_standard_deviation(Privacy(epsilon, 1e-6)) * math.sqrt(rounds)
    assert vector_sum.standard_error <= 1.02 * gaussian


def test_what_is_not_noise_adds_up_over_rounds() -> None:
    vector_sum = plan_sum(_problem(3), 500, 7)
    assert vector_sum is not None
    once = {term.name: term.value for term in vector_sum.delta_terms(1.0, 500)}
    often = {term.name: term.value for term in RepeatedSum(vector_sum, 7).delta_terms(1.0, 500)}
    assert set(once) == set(often) and once["transport"] > 0 and once["cut-off"] > 0
    for name in set(once) - {"noise"}:
        assert often[name] == pytest.approx(7 * once[name], abs=0)


def test_rounds_of_single_numbers_by_bits_are_all_charged() -> None:
    """One round has an exact pair, which is no Gaussian one; several are composed by the Gaussian pair all the same."""
    line = VectorSum.plan(users=100, privacy=Privacy(1, 1e-6), dimension=1, radius=1, method="bits")
    whole = RepeatedSum(line, 5)
    exact = Composition([(line.pair(100), 5)]).delta(1.0)
    assert 100 * line.privacy.delta < exact <= whole.delta(1.0, 100) <= 1.2 * exact
    assert {"noise", "cut-off"} <= {term.name for term in whole.delta_terms(1.0, 100)}


def test_exact_noise_in_one_dimension_and_a_twin_with_less() -> None:
    rounds = 5
    vector_sum = plan_sum(_problem(1), 500, rounds)
    assert isinstance(vector_sum, VectorShares)
    shift = round(vector_sum.rounded_difference.length)

    def exact(variance: float) -> float:
        return Composition([(ShiftPair(Skellam(variance), shift), rounds)]).delta(1.0)

    proved = RepeatedSum(vector_sum, rounds).delta(1.0, 500)
    assert exact(vector_sum.variance) <= proved <= 1e-6
    assert exact(0.8**2 * vector_sum.variance) > 1e-6


def test_a_solver_with_less_noise_is_refused() -> None:
    solver = plan(_problem(2, rounds=6), solver="gd")
    (stage,) = solver.stages
    vector_sum = stage.plan
    assert isinstance(vector_sum, VectorShares)
    with pytest.raises(InfeasibleError):
        replace(vector_sum, variance=0.8**2 * vector_sum.variance)
    # The same noise under a claim of its own that it keeps, for one round: all rounds do not.
    weaker = replace(
        vector_sum,
        variance=0.8**2 * vector_sum.variance,
        privacy=Privacy(2 * vector_sum.privacy.epsilon, vector_sum.privacy.delta),
    )
    with pytest.raises(ParameterError, match="delta"):
        replace(solver, stages=(replace(stage, plan=weaker),))
    # As many rounds more as the noise would have to hide.
    with pytest.raises(ParameterError, match="delta"):
        replace(solver, stages=(replace(stage, rounds=stage.rounds + 1),))


def test_fewer_honest_users_leave_less() -> None:
    problem = _problem(2, honest_fraction=0.5, rounds=4)
    careful = plan(problem, solver="gd")
    trusting = plan(replace(problem, honest_fraction=1.0), solver="gd")
    assert careful.guarantee().holds
    assert careful.guarantee(honest_fraction=0.5).holds
    assert not careful.guarantee(honest_fraction=0.4).holds
    assert not trusting.guarantee(honest_fraction=0.9).holds
    ratio = careful.stages[0].plan.standard_error / trusting.stages[0].plan.standard_error  # type: ignore[union-attr]
    assert ratio == pytest.approx(math.sqrt(2), rel=0.05)
