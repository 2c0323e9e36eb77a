"""Weights and noise of every slot against explicit matrices: covariances, columns, prefixes, taps."""

import dataclasses
import math

import numpy as np
import pytest

from harness import carried
from shuffledp.accounting import running_filters
from shuffledp.accounting.filter_designs import design_for
from shuffledp.continual.carried import components, filtering
from shuffledp.continual.carried.horizon import Horizon, begun
from shuffledp.continual.carried.planner import plan_carried
from shuffledp.continual.carried.weights import CarriedWeights
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy

GAINS = ((1, 1), (1, 4), (2, 15), (1, 40))
# By turns with the zeros, on one side of them, and near one another.
POLES = {
    2: ((),),
    3: ((0.6,), (0.1,), (0.95,)),
    4: ((0.6, 0.85), (0.2, 0.25), (0.02, 0.97)),
    5: ((0.6, 0.85, 0.93), (0.05, 0.4, 0.45)),
}
SLOTS = (4, 17, 60)
SHAPES = ((0.5, 3.0), (2.0, 60.0))


def made(windows: int, slots: int, poles: tuple[float, ...], growth: float, offset: float, **more) -> CarriedWeights:
    knots = tuple(sorted({0, slots // 3, slots - 1}))
    given = {
        "gains": GAINS[: windows - 1],
        "knots": knots,
        "weights": tuple(3 + 5 * place for place in range(len(knots))),
        "variance": 9e5,
    } | more
    return begun(CarriedWeights(slots=slots, poles=poles, growth=growth, offset=offset, is_begun=False, **given))


GRID = {
    f"{windows}-{slots}-{poles}-{growth}": (windows, slots, poles, growth, offset)
    for windows, every in POLES.items()
    for poles in every
    for slots in SLOTS
    for growth, offset in SHAPES
}
PLANNED = {"planned-2": (300, 2), "planned-3": (600, 3), "planned-4": (900, 4), "planned-5": (900, 5)}


@pytest.fixture(scope="module", params=[*GRID, *PLANNED])
def weights(request) -> CarriedWeights:
    if request.param in GRID:
        return made(*GRID[request.param])
    users, shufflers = PLANNED[request.param]
    design = design_for(shufflers, users // 15)
    return Horizon(design, users // 15).weights(0.2355, 64)


def test_slots_are_as_the_definitions_say(weights: CarriedWeights) -> None:
    assert weights.slot_weights.tolist() == carried.slot_weights(weights)
    np.testing.assert_allclose(weights.slot_variances, carried.variances(weights), rtol=1e-12)
    # kappa(D) in powers of D, and in powers of q.
    by_difference, by_delay = np.ones(1), np.ones(1)
    for p, g in weights.gains:
        by_difference, by_delay = np.convolve(by_difference, [p, g]), np.convolve(by_delay, [p + g, -g])
    assert list(weights.kappa) == by_difference.astype(int).tolist()
    assert weights.taps.tolist() == by_delay.astype(int).tolist()
    assert weights.first_tap == weights.taps[0]
    for number, pattern in enumerate(weights.patterns):
        ones = np.ones(1)
        for _ in range(number):
            ones = np.convolve(ones, [1, -1])
        assert pattern.tolist() == [*ones.astype(int).tolist(), *[0] * (weights.windows - ones.size)]


def test_components_have_exactly_the_filters_covariance(weights: CarriedWeights) -> None:
    target = carried.target(weights)
    found = carried.covariance(weights.component_variances, weights.slots)
    corner = len(weights.poles)
    found[:corner, :corner] += weights.missing_at_first
    assert np.abs(found - target).max() <= 1e-9 * weights.variance
    assert weights.component_variances.min() > 0


def test_what_is_drawn_dominates_the_filter_and_four(weights: CarriedWeights) -> None:
    """The proof takes a Gaussian of the filter's covariance away, and what is left must round: 4 I or more."""
    target, drawn = carried.target(weights), carried.covariance(weights.noise_variances, weights.slots)
    rounding = 1e-13 * np.abs(target).max()
    assert np.linalg.eigvalsh(drawn - target).min() >= 4 - rounding
    corner = len(weights.poles)
    if corner:
        inside = (drawn - target)[:corner, :corner] - 4 * np.eye(corner)
        assert np.abs(inside - weights.begin_surplus).max() <= 10 * rounding
    beyond = (drawn - target)[corner:] - 4 * np.eye(weights.slots)[corner:]
    assert np.abs(beyond).max() <= 10 * rounding


def test_the_shift_is_the_longest_column(weights: CarriedWeights) -> None:
    columns = carried.shifts(weights, carried.target(weights))
    assert columns.max() < weights.shift < columns.max() * (1 + 1.1e-7)
    own = weights.filter.column_lengths(weights.slot_variances) * weights.first_tap
    np.testing.assert_allclose(own * weights.slot_weights, columns, rtol=1e-9)
    # Everything that is drawn hides a user at least as well.
    drawn = carried.shifts(weights, carried.covariance(weights.noise_variances, weights.slots))
    assert (drawn <= columns).all() and drawn.max() < weights.shift


def test_prefixes_vary_as_explicit_matrices_say(weights: CarriedWeights) -> None:
    response = carried.errors(weights)
    drawn = carried.covariance(weights.noise_variances, weights.slots)
    truth = np.einsum("ts,su,tu->t", response, drawn, response, optimize=True)
    without = np.einsum("ts,su,tu->t", response, drawn - 4 * np.eye(weights.slots), response, optimize=True)
    rounded = 4 * (response**2).sum(axis=1)
    assert (rounded <= weights.rounding_part * without * (1 + 1e-9)).all()
    assert (weights.prefix_variances >= truth).all()
    np.testing.assert_allclose(weights.prefix_variances, without * (1 + weights.rounding_part), rtol=1.5e-7)


def test_estimates_are_the_sums_without_noise(weights: CarriedWeights) -> None:
    """Decoding undoes weighing: windows of a stream without noise give its prefix sums."""
    values = np.arange(weights.slots) % 5 - 1.0
    windows = carried.difference(weights.slots) @ carried.signal(weights) @ values
    np.testing.assert_allclose(weights.decoded(windows), np.cumsum(values), atol=1e-7)
    corner = len(weights.poles)
    np.testing.assert_allclose(weights.first_responses().T, carried.errors(weights)[:, :corner], atol=1e-12)


def test_long_horizons_keep_their_digits() -> None:
    """Where recursions run over a thousand slots, k = 4."""
    weights = plan_carried(users=14_000, shufflers=4, privacy=Privacy(1, 1e-6)).weights
    assert weights.slots > 800 and weights.windows == 4
    columns = carried.shifts(weights, carried.target(weights))
    assert columns.max() < weights.shift < columns.max() * (1 + 1.1e-7)
    response = carried.errors(weights)
    drawn = carried.covariance(weights.noise_variances, weights.slots)
    truth = np.einsum("ts,ts->t", response @ drawn, response)
    assert (weights.prefix_variances >= truth).all()
    np.testing.assert_allclose(weights.prefix_variances, truth, rtol=1e-4)


# --- what is refused -------------------------------------------------------------------------


def test_fewer_slots_than_poles_are_refused() -> None:
    """The missing noise would not fit into the square that `begins` fills: the twin is less private than it says."""
    with pytest.raises(ParameterError, match="slots"):
        made(4, 1, (0.6, 0.9), 0.5, 1.0, knots=(0,), weights=(1,))
    enough = made(4, 2, (0.6, 0.9), 0.5, 1.0, knots=(0, 1), weights=(1, 1))
    drawn = carried.covariance(enough.noise_variances, 2)
    assert np.linalg.eigvalsh(drawn - carried.target(enough)).min() >= 4 - 1e-6


@pytest.mark.parametrize("gap", [1e-5, 3e-7, 3.9e-9, 5.8e-11, 1e-12])
def test_poles_that_nearly_meet_are_refused_or_right(gap: float) -> None:
    for base in (0.3, 0.7, 0.9):
        try:
            weights = made(4, 40, (base, base + gap), 0.5, 10.0)
            shift = weights.shift
        except ParameterError:
            continue
        columns = carried.shifts(weights, carried.target(weights))
        assert columns.max() < shift < columns.max() * (1 + 1.1e-7)


@pytest.mark.parametrize("windows", [3, 4, 5])
def test_less_to_begin_with_is_refused(windows: int) -> None:
    weights = made(windows, 17, POLES[windows][0], 0.5, 3.0)
    for part in (0.64, 0.0):
        less = tuple(tuple(part * each for each in row) for row in weights.begins)
        with pytest.raises(ParameterError, match="enough to begin with"):
            dataclasses.replace(weights, begins=less)
    later = [list(row) for row in weights.begins]
    later[-1][-1] += 1.0
    if windows > 3:
        with pytest.raises(ParameterError, match="end with the first slots"):
            dataclasses.replace(weights, begins=tuple(map(tuple, later)))
    with pytest.raises(ParameterError, match="begins"):
        dataclasses.replace(weights, begins=weights.begins[1:])


@pytest.mark.parametrize(
    "change",
    [
        {"slots": 0},
        {"slots": 1 << 30},
        {"gains": ((1, -1), (1, 4))},
        {"gains": ((0, 1), (1, 4))},
        {"gains": ((1.0, 1), (1, 4))},
        {"gains": ((1, 1), (1, 1))},
        {"gains": ((1, 1),)},
        {"poles": (1.0,)},
        {"poles": (-0.1,)},
        {"poles": (math.nan,)},
        {"poles": (0.5, 0.5)},
        {"knots": (0, 5)},
        {"knots": (1, 5, 16)},
        {"knots": (0, 9, 5, 16)},
        {"weights": (3, 0, 13)},
        {"weights": (3, 8, 1 << 60)},
        {"weights": (3, 8.0, 13)},
        {"variance": 0.0},
        {"variance": math.nan},
        {"variance": 900},
        {"growth": -1.0},
        {"growth": math.inf},
        {"offset": 0.0},
        {"offset": "x"},
    ],
)
def test_wrong_numbers_are_one_sentence(change: dict) -> None:
    weights = made(3, 17, (0.6,), 0.5, 3.0)
    with pytest.raises(ParameterError) as refused:
        assert not math.isfinite(dataclasses.replace(weights, **change).shift)
    assert str(refused.value).endswith(".") and "\n" not in str(refused.value)


def test_of_many_slots_only_variances_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan's memory is one table of all slots, as it says; without, everything is the same."""
    kept = plan_carried(users=3000, shufflers=3, privacy=Privacy(1, 1e-6))
    monkeypatch.setattr(filtering, "KEPT_WHOLE", 10)
    monkeypatch.setattr(components, "KEPT_WHOLE", 10)
    computed = plan_carried(users=3000, shufflers=3, privacy=Privacy(1, 1e-6))
    assert computed.fingerprint == kept.fingerprint and computed.error_bound == kept.error_bound
    for name in ("slot_weights", "slot_variances", "noise_variances", "prefix_variances"):
        np.testing.assert_array_equal(getattr(computed.weights, name), getattr(kept.weights, name))
    tables = [each for each in vars(computed.weights).values() if getattr(each, "size", 0) >= computed.weights.slots]
    assert sum(each.nbytes for each in tables) == computed.table_bytes
    assert computed.weights.heaviest == computed.weights.slot_weights.max()
    assert [computed.weights.slot_weight(slot) for slot in (0, 7)] == kept.weights.slot_weights[[0, 7]].tolist()


def test_stretches_of_slots_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of a long horizon are made in stretches: as if it were one."""

    def tables() -> list[np.ndarray]:
        one = made(5, 60, (0.6, 0.85, 0.93), 0.5, 3.0)
        limits = np.array(one.noise_limits)
        np.testing.assert_array_equal(limits, [one.noise_variances.min(axis=1), one.noise_variances.max(axis=1)])
        return [one.slot_weights, one.slot_variances, one.prefix_variances, one.first_responses(2), limits]

    whole = tables()
    monkeypatch.setattr(running_filters, "_BLOCK", 7)
    for one, other in zip(whole, tables(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-15, atol=0)
