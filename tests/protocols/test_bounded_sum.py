"""Bounded sums: figures, exact twins, rounding, refusals."""

import dataclasses
import math

import numpy as np
import pytest

from shuffledp.accounting.laws import Binomial
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.audit.trials import audit_plan
from shuffledp.errors import BrokenBatchError, InfeasibleError, ParameterError
from shuffledp.messages import Batch
from shuffledp.privacy import Privacy
from shuffledp.protocols.bounded_sum import BoundedSum
from shuffledp.protocols.bounded_sum.bits import coins_for
from shuffledp.protocols.plan import changed
from shuffledp.randomness import RandomBits
from shuffledp.simulation.run import simulate
from shuffledp.testing.protocols import check_protocol
from shuffledp.testing.statistics import assert_mean

PRIVACY = Privacy(1, 1e-6)
LOOSE = Privacy(1, 1e-3)
UNIT = {"low": 0, "high": 1}
BAD = [[float("nan")] * 60, [7.0] * 60, [[0.0]] * 60, ["a"] * 60, [], [float("inf")] * 60]


def half_steps(plan) -> np.ndarray:
    """Values between two steps of the grid, where rounding has its largest variance."""
    return plan.low + plan.step * (0.5 + np.arange(plan.users) % plan.grid)


@pytest.mark.parametrize("method", BoundedSum.methods)
@pytest.mark.parametrize("honest_fraction", [1.0, 0.5])
def test_bounded_sums_keep_their_promises(method: str, honest_fraction: float) -> None:
    plan = BoundedSum.plan(users=60, privacy=PRIVACY, low=-3, high=5, method=method, honest_fraction=honest_fraction)
    check_protocol(plan, half_steps(plan), BAD, runs=3000)


def test_the_figures_of_the_design() -> None:
    shares = BoundedSum.plan(users=10_000, privacy=PRIVACY, **UNIT, method="shares")
    assert shares.standard_error <= 1.5 and shares.messages_per_user_max <= 12 and shares.bits_per_message <= 64
    bits = BoundedSum.plan(users=10_000, privacy=PRIVACY, **UNIT, method="bits")
    assert bits.standard_error <= 1.1 * 4.226 and bits.probability == 0.5
    reference = bits.reference()
    assert reference["central_standard_error"] == pytest.approx(4.225, abs=1e-3)
    assert 25 < reference["paper_standard_error"] < 27 and reference["local_standard_error"] == pytest.approx(
        108.2, abs=0.1
    )


@pytest.mark.parametrize("users", [1, 7, 1000])
def test_the_error_scales_with_the_range_and_not_with_its_place(users: int) -> None:
    plans = [
        BoundedSum.plan(users=users, privacy=PRIVACY, low=low, high=high, method=method)
        for method in BoundedSum.methods
        for low, high in ((0, 1), (1000, 1001), (-7, 3))
    ]
    for near, far, wide in (plans[:3], plans[3:]):
        assert far.standard_error == near.standard_error
        assert wide.standard_error == pytest.approx(10 * near.standard_error)


@pytest.mark.parametrize("method", BoundedSum.methods)
def test_a_twin_with_a_fifth_less_noise_cannot_be_made(method: str) -> None:
    plan = BoundedSum.plan(users=80, privacy=PRIVACY, **UNIT, method=method)
    quieter = plan.twin(0.8)
    assert quieter.guarantee().delta > plan.privacy.delta
    with pytest.raises(InfeasibleError, match="noise"):
        dataclasses.replace(quieter)


@pytest.mark.parametrize(("users", "grid"), [(3, 1), (3, 4), (8, 2)])
def test_the_claim_against_brute_force_over_all_values(users: int, grid: int) -> None:
    """Every pair of one user's rounded laws, convolved with the noise: exact hockey sticks below the claim."""
    coins = coins_for(grid, users, LOOSE)
    noise = np.exp(Binomial(users * coins, 0.5).log_pmf(np.arange(users * coins + 1.0)))
    claimed = ShiftPair(Binomial(users * coins, 0.5), grid).delta(LOOSE.epsilon)
    values = np.linspace(0, grid, 4 * grid + 1)
    worst = 0.0
    laws = []
    for value in values:
        law = np.zeros(grid + 1)
        law[math.floor(value)] += 1 - value % 1
        law[min(grid, math.floor(value) + 1)] += value % 1
        laws.append(np.convolve(law, noise))
    for p in laws:
        for q in laws:
            worst = max(worst, float(np.maximum(p - math.exp(LOOSE.epsilon) * q, 0).sum()))
    assert worst <= claimed <= LOOSE.delta
    assert worst >= 0.98 * claimed, "the ends of the range are the worst neighbours"


@pytest.mark.parametrize("method", BoundedSum.methods)
def test_honest_plans_stand_and_half_the_noise_is_refuted(method: str) -> None:
    plan = BoundedSum.plan(users=8, privacy=LOOSE, low=0, high=1, method=method)
    honest = audit_plan(plan, bits=RandomBits.seeded(1), trials=200_000)
    assert honest.verdict == "stands" and honest.epsilon_lower_bound <= honest.epsilon_exact
    assert audit_plan(plan, bits=RandomBits.seeded(2), trials=200_000, sabotage=0.5).verdict == "refuted"


def test_a_third_of_the_users_is_enough_to_say_something() -> None:
    for method in BoundedSum.methods:
        plan = BoundedSum.plan(users=1000, privacy=PRIVACY, **UNIT, method=method)
        left = [plan.epsilon_with(fraction) for fraction in (1, 0.9, 0.5, 1 / 3)]
        assert left == sorted(left) and left[0] <= 1
        if method == "bits":
            assert all(epsilon < 1 / fraction for epsilon, fraction in zip(left[1:], (0.9, 0.5, 1 / 3), strict=True))
        robust = BoundedSum.plan(users=1000, privacy=PRIVACY, **UNIT, method=method, honest_fraction=1 / 3)
        assert robust.epsilon_with(1 / 3) <= 1


def test_the_paper_on_request_wastes_what_the_design_says() -> None:
    paper = BoundedSum.plan(users=10_000, privacy=PRIVACY, **UNIT, method="bits", constants="paper")
    assert paper.standard_error == pytest.approx(paper.reference()["paper_standard_error"])
    assert paper.guarantee().delta < 1e-30
    with pytest.raises(InfeasibleError, match="constants"):
        BoundedSum.plan(users=100, privacy=PRIVACY, **UNIT, method="shares", constants="paper")


def test_a_limit_on_messages_is_kept_and_paid_for() -> None:
    free = BoundedSum.plan(users=10_000, privacy=PRIVACY, **UNIT, method="bits")
    few = BoundedSum.plan(users=10_000, privacy=PRIVACY, **UNIT, method="bits", max_messages=12)
    assert few.messages_per_user_max <= 12 and few.standard_error > free.standard_error
    assert BoundedSum.plan(users=10_000, privacy=PRIVACY, **UNIT, max_messages=10).method == "bits"
    with pytest.raises(InfeasibleError, match="max_messages"):
        BoundedSum.plan(users=10, privacy=PRIVACY, **UNIT, method="bits", max_messages=5)


def test_clipping_is_counted() -> None:
    plan = BoundedSum.plan(users=4, privacy=PRIVACY, **UNIT)
    estimate = simulate(plan, [0.5, 2.0, -1.0, 0.25], bits=RandomBits.seeded(1), clip=True)
    assert estimate.clipped == 2 and "2 values clipped" in str(estimate)
    with pytest.raises(ParameterError, match=r"must lie in .* got 2 in row 2: clip"):
        simulate(plan, [0.5, 2.0, -1.0, 0.25], bits=RandomBits.seeded(1))
    with pytest.raises(ParameterError, match="nan in row 3"):
        simulate(plan, [0.5, 2.0, float("nan"), 0.25], bits=RandomBits.seeded(1), clip=True)


def test_the_ends_of_the_range_are_sent_exactly() -> None:
    """No rounding at the ends, whatever floats make of the range."""
    for low, high in ((0.1, 0.3), (-1e-9, 1e9), (1e15, 1e15 + 2)):
        plan = BoundedSum.plan(users=2000, privacy=Privacy(8, 1e-3), low=low, high=high, method="bits")
        for value in (low, high):
            payloads = plan.randomize(np.full(2000, value), bits=RandomBits.seeded(1)).payloads.reshape(2000, -1)
            assert payloads[:, : plan.grid].all() == (value == high) and payloads[:, : plan.grid].any() == (
                value == high
            )


def test_rounding_is_unbiased_for_odd_ranges() -> None:
    plan = BoundedSum.plan(users=50, privacy=Privacy(20, 1e-3), low=0.1, high=0.7, method="shares")
    values = np.random.default_rng(1).uniform(0.1, 0.7, 50)
    errors = [plan.sample_estimate(values, bits=bits).value - values.sum() for bits in RandomBits.seeded(1).spawn(4000)]
    assert_mean(errors, 0.0, plan.standard_error)


@pytest.mark.parametrize("change", ["lost", "altered", "doubled"])
def test_a_bad_share_voids_the_batch(change: str) -> None:
    plan = BoundedSum.plan(users=50, privacy=PRIVACY, **UNIT, method="shares")
    payloads = plan.randomize(np.full(50, 0.5), bits=RandomBits.seeded(1)).payloads.copy()
    if change == "altered":
        payloads[17] ^= np.uint64(1 << 45)
    payloads = {"lost": payloads[1:], "altered": payloads, "doubled": np.concatenate((payloads, payloads[:1]))}[change]
    with pytest.raises(BrokenBatchError, match="void"):
        plan.analyze(Batch(payloads, 50))


def test_lost_bits_widen_the_bound() -> None:
    plan = BoundedSum.plan(users=50, privacy=PRIVACY, **UNIT, method="bits")
    payloads = plan.randomize(np.full(50, 0.5), bits=RandomBits.seeded(1)).payloads
    whole, less = plan.analyze(Batch(payloads, 50)), plan.analyze(Batch(payloads[3:], 50))
    assert less.dropped == 3 and less.bound == pytest.approx(whole.bound + 3 * plan.step)
    with pytest.raises(BrokenBatchError):
        plan.analyze(Batch(np.concatenate((payloads, payloads)), 50))


@pytest.mark.parametrize(
    ("change", "parameter"),
    [
        ({"low": 1}, "high"),
        ({"low": None}, "low"),
        ({"high": float("inf")}, "high"),
        ({"low": -1e308, "high": 1e308}, "low"),
        ({"low": 0, "high": 5e-324}, "high"),
        ({"users": 0}, "users"),
        ({"method": "gaussian"}, "method"),
        ({"max_messages": 0}, "max_messages"),
        ({"privacy": Privacy(1e-9, 1e-6), "users": 10**12, "method": "shares"}, ""),
    ],
)
def test_bad_parameters_are_named(change, parameter: str) -> None:
    asked = {"users": 100, "privacy": PRIVACY, "low": 0, "high": 1} | change
    with pytest.raises(ParameterError) as refused:
        BoundedSum.plan(**asked)
    assert parameter in refused.value.parameter


def test_the_bound_has_room_for_rounding_on_a_coarse_grid() -> None:
    """Values between two steps of a grid of one: rounding is all of the error."""
    plan = BoundedSum.plan(users=4000, privacy=Privacy(8, 1e-2), low=0, high=1, method="shares")
    coarse = changed(plan, grid=1, ratio=math.exp(-8))
    assert coarse.noise_law.standard_deviation < 1
    values = np.full(4000, 0.5)
    errors = [coarse.sample_estimate(values, bits=bits).value - 2000 for bits in RandomBits.seeded(6).spawn(400)]
    assert float(np.std(errors)) > 25
    # The bound may fail in 5% of runs; of 400 runs, but for a probability of 1e-9, in no more than 13%.
    assert (np.abs(errors) > coarse.error_bound).mean() <= 0.13
