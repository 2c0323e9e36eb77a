"""Every term of delta, by formulas of their own; what is left with fewer honest people; quieter twins."""

import dataclasses
import math
from functools import lru_cache

import numpy as np
import pytest

from harness import carried
from shuffledp.accounting.mixing import mixing_distance_of
from shuffledp.continual.carried.plan import CarriedPlan
from shuffledp.continual.carried.planner import plan_of
from shuffledp.continual.request import CountRequest
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.domains.summed import BITS, OneHot, Vectors

DOMAINS = {"bits": BITS, "categories": OneHot(5), "vectors": Vectors(3, 1.0, 16)}


@lru_cache(maxsize=16)
def small(domain: str = "bits", honest_fraction: float = 1.0, windows: int = 3, users: int = 597) -> CarriedPlan:
    asked = CountRequest(
        users=users,
        shufflers=4,
        privacy=Privacy(1, 1e-4),
        domain=DOMAINS[domain],
        honest_fraction=honest_fraction,
    )
    return plan_of(asked, windows, 20)


def terms(plan: CarriedPlan, fraction: float, epsilon: float = 1.0) -> dict[str, float]:
    return {term.name: term.value for term in plan.delta_terms_at(epsilon, fraction)}


@pytest.mark.parametrize(("domain", "length"), [("bits", 1.0), ("categories", math.sqrt(2)), ("vectors", None)])
@pytest.mark.parametrize("honest_fraction", [1.0, 0.9, 0.5])
def test_delta_is_the_explicit_columns_and_what_shares_show(domain: str, length: float, honest_fraction: float) -> None:
    plan = small(domain, honest_fraction)
    found = terms(plan, honest_fraction)
    assert sum(found.values()) <= plan.privacy.delta and plan.guarantee().holds
    if length is None:
        length = plan._length
        # Two vectors of length 1 are 2 apart, and rounding moves each of three coordinates by a step at most.
        assert 2 / plan.domain.step <= length <= 2 / plan.domain.step + 2 * math.sqrt(3)
    columns = carried.shifts(plan.weights, carried.target(plan.weights))
    assert found["noise"] == pytest.approx(carried.gaussian_curve(1.0, columns.max() * length), rel=1e-5)
    assert found["noise"] >= carried.gaussian_curve(1.0, columns.max() * length)
    assert found["noise"] > 0.8 * plan.privacy.delta
    # All windows, each with what its honest people show in their shares.
    schedule, k, slots = plan.schedule, plan.shufflers_used, plan.weights.slots
    windows = []
    for end in range(1, slots + 1):
        each = np.diff(schedule.users_by(np.arange(max(0, end - k), end + 1)))
        honest = sum(max(1, math.floor(honest_fraction * size + 1e-9)) for size in each.tolist())
        splitting = plan.mechanism(int(each.sum())).splitting
        windows.append((honest, splitting.shares, 1 << splitting.modulus_bits, plan.domain.coordinates))
    assert len(windows) == slots
    shown = mixing_distance_of(windows)
    assert 0 < shown * (1 + math.e) <= found["transport"]
    assert 0 < found["smoothing"] < 1e-20
    assert plan.pair(plan.honest_users).shift == pytest.approx(plan.weights.shift * length)


@pytest.mark.parametrize("part", [0.64, 0.95])
@pytest.mark.parametrize(("domain", "honest_fraction"), [("bits", 1.0), ("categories", 0.5), ("vectors", 1.0)])
def test_a_quieter_twin_cannot_be_made(domain: str, honest_fraction: float, part: float) -> None:
    plan = small(domain, honest_fraction)
    with pytest.raises(ParameterError, match="proves delta"):
        dataclasses.replace(plan, **plan.quieter(part))


def test_heavier_weights_cannot_be_made() -> None:
    plan = small()
    for place in (0, len(plan.weights.knots) // 2, -1):
        heavier = list(plan.weights.weights)
        heavier[place] = math.ceil(heavier[place] * 1.02) + 1
        with pytest.raises(ParameterError, match="proves delta"):
            dataclasses.replace(plan, weights=dataclasses.replace(plan.weights, weights=tuple(heavier)))


@pytest.mark.parametrize(("planned", "left"), [(1.0, 0.9), (1.0, 0.5), (0.9, 0.5), (0.5, 0.2)])
def test_fewer_honest_people_leave_less(planned: float, left: float) -> None:
    """Slots have 20 people, or 19: with floors, the noise of the worst slot is what is left."""
    plan = small(honest_fraction=planned)
    people = set(np.diff(plan.schedule.users_by(np.arange(plan.weights.slots + 1))).tolist())
    assert people == {19, 20}
    part = min(math.floor(left * each + 1e-9) / math.floor(planned * each + 1e-9) for each in people)
    # What is drawn still dominates a filter's noise, a little less of it, and 4 for rounding.
    weights, slots = plan.weights, plan.weights.slots
    kept = part - (1 - part) * 4 / weights.component_variances[0].min()
    drawn = part * carried.covariance(weights.noise_variances, slots)
    rest = drawn - kept * carried.target(weights) - 4 * np.eye(slots)
    assert np.linalg.eigvalsh(rest).min() >= -1e-12 * np.abs(drawn).max()
    shift = weights.shift / math.sqrt(kept)
    found = terms(plan, left)
    assert found["noise"] == pytest.approx(carried.gaussian_curve(1.0, shift), rel=1e-9)
    assert found["smoothing"] >= terms(plan, planned)["smoothing"]
    assert found["transport"] >= (1 + math.e) * plan._distance_with(planned)
    epsilon = plan.epsilon_with(left)
    assert epsilon > 1 >= plan.epsilon_with(planned) > 1 - 1e-6
    if math.isfinite(epsilon):
        at = sum(terms(plan, left, epsilon).values())
        assert at <= plan.privacy.delta * (1 + 1e-9) and at >= carried.gaussian_curve(epsilon, shift)


def test_nobody_left_is_not_smooth_enough() -> None:
    """With one honest person of a hundred in a slot nothing is promised that rests on a sum of many."""
    plan = small()
    assert plan._smoothing_with(1e-9) > 1 and plan._smoothing_with(1.0) < 1e-20
    assert terms(plan, 0.05)["noise"] > terms(plan, 0.5)["noise"]


def test_collusions_are_told() -> None:
    plan = small(windows=4)
    rows = {row.parties: row for row in plan.collusions()}
    silent = [rows[f"analyzer + {each}"] for each in ("a whole slot", "2 slots in a row", "3 slots in a row")]
    assert plan.fatal_silence == 3 and silent[2].epsilon is None
    assert plan.privacy.epsilon < silent[0].epsilon < silent[1].epsilon
    assert 1 < plan.epsilon_with(0.9) == rows["analyzer + 0.1 of every slot"].epsilon < 1.3
    assert "60 false people" in plan.exposed and any(plan.exposed in each for each in plan.warnings)
    assert plan.epsilon_with_silent(3) == math.inf and plan.influence is None and plan.can_be_voided


def test_too_little_own_noise_is_refused() -> None:
    """Sums of people's noises are Gaussian only if each is wide enough."""
    plan = small()
    small_units = dataclasses.replace(
        plan.weights,
        variance=plan.weights.variance / 1e7,
        begins=tuple(tuple(each / 1e7 for each in row) for row in plan.weights.begins),
        weights=(1,) * len(plan.weights.weights),
    )
    assert small_units.noise_variances.min() < 16 * plan.slot_users
    with pytest.raises(ParameterError, match="variance must be larger"):
        dataclasses.replace(plan, weights=small_units)


def test_whatever_is_accepted_is_private_by_explicit_matrices() -> None:
    """Noise and weights as a liar would write them: refused, or the drawn noise hides everybody as promised."""
    plan = small(users=390)
    weights, generator, accepted = plan.weights, np.random.default_rng(1), 0
    for _ in range(150):
        scale = math.exp(generator.normal() * 0.1)
        noise = math.exp(generator.normal() * 0.1 + 0.1)
        change = {
            "variance": weights.variance * noise,
            "begins": tuple(tuple(each * noise * scale for each in row) for row in weights.begins),
            "growth": weights.growth * math.exp(generator.normal() * 0.05),
            "poles": tuple(pole * (1 - abs(generator.normal()) * 0.05) for pole in weights.poles),
            "weights": tuple(max(1, round(each * math.exp(generator.normal() * 0.02))) for each in weights.weights),
        }
        if generator.random() < 0.3:
            change["gains"] = tuple((p, g + int(generator.integers(0, 2))) for p, g in weights.gains)
        try:
            twin = dataclasses.replace(plan, weights=dataclasses.replace(weights, **change))
        except ParameterError:
            continue
        accepted += 1
        drawn = carried.covariance(twin.weights.noise_variances, weights.slots)
        shift = carried.shifts(twin.weights, drawn).max()
        assert carried.gaussian_curve(1.0, shift) <= terms(twin, 1.0)["noise"] <= plan.privacy.delta
    assert 10 < accepted < 140
