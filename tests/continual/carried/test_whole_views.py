"""Everything that small plans ever show, enumerated: exact laws of all running sums against the Gaussian curve.

The law of (Y_0, ..., Y_(T-1)) is computed on a torus that holds all of it but for 1e-9, by multiplying characteristic
functions. What is claimed is the curve of a Gaussian mechanism with the filter's column as its shift, plus smoothing.
Wrong twins with as much noise, or nearly, are refuted by the very same comparison.
"""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from harness import carried
from shuffledp.accounting.gaussian import GaussianPair
from shuffledp.accounting.smoothing import smoothing_error
from shuffledp.continual.carried.horizon import begun
from shuffledp.continual.carried.smoothing import smoothing_delta
from shuffledp.continual.carried.weights import CarriedWeights

EPSILONS = (0.0, 0.5, 1.0, 2.0)
# The torus cuts tails off.
CUT = 1e-9


def made(gains, poles, weights, variance) -> CarriedWeights:
    slots = len(weights)
    return begun(
        CarriedWeights(
            slots=slots,
            gains=gains,
            poles=poles,
            knots=tuple(range(slots)),
            weights=weights,
            variance=variance,
            growth=0.5,
            offset=1.0,
            is_begun=False,
        )
    )


# Gains, poles, weights, variance, and the torus.
CASES = {
    "2 slots, k 2": (((1, 1),), (), (2, 3), 100.0, 180),
    "2 slots, k 2, steep": (((1, 5),), (), (1, 1), 400.0, 360),
    "3 slots, k 2": (((1, 2),), (), (1, 1, 2), 30.0, 108),
    "2 slots, k 3": (((1, 1), (1, 3)), (0.6,), (1, 1), 60.0, 150),
    "2 slots, k 3, wide": (((1, 0), (1, 2)), (0.3,), (3, 2), 200.0, 260),
    "3 slots, k 3": (((1, 0), (1, 2)), (0.4,), (1, 1, 2), 30.0, 110),
    "3 slots, k 3, slow": (((1, 1), (1, 3)), (0.7,), (1, 1, 1), 40.0, 136),
}


def columns(weights: CarriedWeights) -> np.ndarray:
    """The shift that is claimed for a step of each slot."""
    lengths = weights.filter.column_lengths(weights.slot_variances)
    return lengths * weights.slot_weights * weights.first_tap


def smoothing(weights: CarriedWeights, epsilon: float) -> float:
    """As in the proof: the noises that are summed out, then the rounding of every running sum."""
    noises, least = weights.windows - 1, weights.noise_variances.min(axis=1)
    steepest = sum(1 / each for each in least[1:]) + 4.0**noises / 3 / least[0]
    part = smoothing_error(1 / math.sqrt(steepest), weights.slots * noises) + smoothing_error(2.0, weights.slots)
    return smoothing_delta(math.exp(epsilon), part)


def ratios(weights: CarriedWeights, law: np.ndarray, steps: int = 1) -> np.ndarray:
    """The exact curve over the claimed one, for a user of each slot and every epsilon."""
    moved, shifts = steps * carried.signal(weights), steps * columns(weights)
    return np.array(
        [
            [
                carried.hockey_stick(law, moved[:, slot].round(), epsilon)
                / (carried.gaussian_curve(epsilon, shifts[slot]) + smoothing(weights, epsilon) + CUT)
                for epsilon in EPSILONS
            ]
            for slot in range(weights.slots)
        ]
    )


def law_of(weights: CarriedWeights, size: int, rows: np.ndarray | None = None) -> np.ndarray:
    rows = weights.noise_variances if rows is None else rows
    return carried.torus_law(size, weights.slots, carried.running_parts(rows, weights.slots))


@pytest.fixture(scope="module", params=CASES)
def case(request) -> tuple[CarriedWeights, int, np.ndarray]:
    *given, size = CASES[request.param]
    weights = made(*given)
    spread = math.sqrt(np.diag(carried.covariance(weights.noise_variances, weights.slots)).max())
    assert size > 12.8 * spread, "the torus must hold the law"
    return weights, size, law_of(weights, size)


def test_no_view_shows_more_than_the_gaussian_curve(case) -> None:
    weights, _, law = case
    assert abs(law.sum() - 1) < 1e-12 and law.min() > -1e-17
    assert smoothing(weights, 2.0) < 1e-9
    found = ratios(weights, law)
    assert found.max() <= 1 + 1e-9
    # And the claim is not far above: most of what is lost is the 4 that rounding takes.
    assert found.max() > 0.9
    assert ratios(weights, law, steps=2).max() <= 1 + 1e-9
    # The plan's pair is that of the worst column.
    for epsilon in EPSILONS:
        worst = carried.gaussian_curve(epsilon, columns(weights).max())
        assert worst <= GaussianPair(weights.shift).delta(epsilon) <= worst * (1 + 1e-4) + 1e-12


def test_a_fifth_less_noise_is_refuted(case) -> None:
    weights, size, _ = case
    assert ratios(weights, law_of(weights, size, 0.64 * weights.noise_variances)).max() > 1.08


def test_four_slots() -> None:
    """On a torus of five and a half deviations to either side: what is seen modulo 44 is a part of the view."""
    weights = made(((1, 1),), (), (1, 1, 1, 1), 11.0)
    assert 0.9 < ratios(weights, law_of(weights, 44)).max() <= 1 + 1e-9
    assert ratios(weights, law_of(weights, 44, 0.64 * weights.noise_variances)).max() > 1.1


def test_what_the_first_slots_begin_with_is_needed() -> None:
    """k = 3 without `begins`: the first running sum has less noise than the filter's."""
    *given, size = CASES["2 slots, k 3, wide"]
    weights = made(*given)
    bare = weights.noise_variances.copy()
    bare[0, 0] -= weights.begins[0][0]
    found = ratios(weights, law_of(weights, size, bare))
    assert found[0].max() > 1.1 and ratios(weights, law_of(weights, size))[0].max() <= 1


# --- several people a slot -------------------------------------------------------------------


@pytest.mark.parametrize(("people", "silent"), [(2, 0), (4, 2)])
def test_people_draw_their_parts_and_the_silent_are_planned_for(people: int, silent: int) -> None:
    """Each of `people` draws one part in so many as are honest; the law is that of one draw, and as private."""
    weights = made(((1, 2),), (), (1, 2), 160.0)
    honest = people - silent
    parts = [
        (pattern, variance / honest)
        for pattern, variance in carried.running_parts(weights.noise_variances, 2)
        for _ in range(honest)
    ]
    law, one = carried.torus_law(280, 2, parts), law_of(weights, 280)
    assert np.abs(law - one).max() <= 1e-16
    assert ratios(weights, law).max() <= 1 + 1e-9
    # One more who is silent, beyond what was planned for, is told apart.
    few = [part for place, part in enumerate(parts) if place % honest]
    assert ratios(weights, carried.torus_law(280, 2, few)).max() > 1.2


# --- wrong twins -----------------------------------------------------------------------------


def test_whole_patterns_without_dither_are_refuted() -> None:
    """One noise a slot with a whole pattern, 2 - q for the pole 1/2, and even a little more of it: parity tells."""
    weights = made(((1, 0), (1, 2)), (0.5,), (1, 1), 100.0)
    first, second = carried.variances(weights)
    law = carried.torus_law(240, 2, [((2, -1), first / 3), ((0, 2), second / 3)])
    moved = carried.signal(weights)[:, 0].round()
    assert carried.hockey_stick(law, moved, 2.0) > 0.99
    assert ratios(weights, law).max() > 10
    assert ratios(weights, law_of(weights, 240)).max() <= 1


def independent(weights: CarriedWeights) -> list[tuple[Sequence[int], float]]:
    """Every window's share of a user drawn by itself, with the variance that it has."""
    found: list[tuple[Sequence[int], float]] = []
    for number, row in enumerate(weights.noise_variances, 1):
        for slot in range(weights.slots):
            for age in range(min(number + 1, weights.slots - slot)):
                running = [int(slot + age <= each) for each in range(weights.slots)]
                found.append((running, math.comb(number, age) ** 2 * float(row[slot])))
    return found


@pytest.mark.parametrize(("name", "size"), [("2 slots, k 2, steep", 500), ("2 slots, k 3", 260)])
def test_shares_drawn_window_by_window_are_refuted(name: str, size: int) -> None:
    weights = made(*CASES[name][:-1])
    assert ratios(weights, carried.torus_law(size, 2, independent(weights))).max() > 1.1


def rounded_by_itself(weights: CarriedWeights, size: int, at_random: bool) -> np.ndarray:
    """Y_0 = w_0 and Y_1 = w_1 + w_0 + [-(1 + pole) w_0], rounded: whole w with the filter's variances, k = 3."""
    [pole] = weights.poles
    reach = size // 2 - 1
    places = np.arange(-reach, reach + 1)
    first, second = (np.exp(-(places**2) / (2 * each)) for each in carried.variances(weights))
    later = np.roll(np.pad(second / second.sum(), (0, size - places.size)), -reach)
    law = np.zeros((size, size))
    for place, mass in zip(places.tolist(), (first / first.sum()).tolist(), strict=True):
        share = -(1 + pole) * place
        part = share - math.floor(share) if at_random else float(round(share) > math.floor(share))
        for up, likely in ((0, 1 - part), (1, part)):
            law[place % size] += mass * likely * np.roll(later, place + math.floor(share) + up)
    return law


def test_shares_rounded_by_themselves_are_refuted() -> None:
    """A real pattern whose shares are rounded one by one: to the nearest, and at random."""
    for gains, pole, variance in ((((1, 0), (1, 2)), 0.4, 30.0), (((1, 0), (1, 1)), 0.3, 20.0)):
        weights = made(gains, (pole,), (1, 1), variance)
        assert ratios(weights, rounded_by_itself(weights, 110, False)).max() > 1.2
    weights = made(((1, 1), (1, 2)), (0.45,), (1, 1), 60.0)
    assert ratios(weights, rounded_by_itself(weights, 160, True)).max() > 1 + 3e-5
