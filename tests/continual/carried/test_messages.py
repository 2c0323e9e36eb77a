"""What a user adds to each of its windows, read off the code itself, and the windows' sizes."""

import dataclasses
from functools import lru_cache

import numpy as np
import pytest

from harness import carried
from shuffledp.accounting.dropouts import honest_users
from shuffledp.continual.carried import messages
from shuffledp.continual.carried.bound import horizon_noise_bound
from shuffledp.continual.carried.plan import CarriedPlan
from shuffledp.continual.carried.planner import plan_of
from shuffledp.continual.request import CountRequest
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.domains.summed import OneHot
from shuffledp.randomness import RandomBits


@lru_cache(maxsize=16)
def small(windows: int, users: int = 150, size: int = 10, honest_fraction: float = 1.0, **more) -> CarriedPlan:
    asked = CountRequest(users=users, shufflers=8, privacy=Privacy(4, 1e-2), honest_fraction=honest_fraction, **more)
    return plan_of(asked, windows, size)


class Sampler:
    """In place of noise: what the code asks for is written down, and only the wanted draw is 1."""

    def __init__(self, wanted: int | None) -> None:
        self.wanted, self.asked = wanted, []

    def __call__(self, variances, shape=None, *, bits):
        self.asked.append(np.array(variances))
        return np.full(np.shape(variances), int(len(self.asked) - 1 == self.wanted), dtype=np.int64)


def placed(plan: CarriedPlan, steps: np.ndarray, wanted: int | None, monkeypatch) -> tuple[np.ndarray, list]:
    """A person in each slot: what each adds to every running sum (a column a person), and the variances asked for."""
    slots, sampler = plan.weights.slots, Sampler(wanted)
    monkeypatch.setattr(messages, "sample_discrete_gaussian", sampler)
    rows = plan._contributions(steps, np.arange(slots), RandomBits.seeded(1))
    windows = np.zeros((slots, slots))
    for slot, row in enumerate(rows.tolist()):
        for age, number in enumerate(row[: slots - slot]):
            windows[slot + age, slot] = number
    return np.cumsum(windows, axis=0), sampler.asked


@pytest.mark.parametrize("windows", [2, 3, 4, 5])
def test_windows_take_the_taps_and_the_patterns(windows: int, monkeypatch) -> None:
    plan = small(windows)
    slots, weights = plan.weights.slots, plan.weights
    nothing, ones = np.zeros(slots, dtype=np.int64), np.ones(slots, dtype=np.int64)
    found, asked = placed(plan, ones, None, monkeypatch)
    np.testing.assert_allclose(found, carried.signal(weights), rtol=1e-12)
    assert len(asked) == windows - 1
    pattern = np.eye(slots)
    for number in range(windows - 1):
        found, asked = placed(plan, nothing, number, monkeypatch)
        assert (found == pattern).all()
        pattern = pattern @ carried.difference(slots)
        # Everybody of a slot together has the noise that is counted on, rounded up by a digit at most.
        people = np.diff(plan.schedule.users_by(np.arange(slots + 1)))
        together = people * asked[number]
        assert (together >= weights.noise_variances[number]).all()
        np.testing.assert_allclose(together, weights.noise_variances[number], rtol=1e-15)


@pytest.mark.parametrize("fraction", [0.9, 0.5])
def test_the_honest_alone_draw_what_is_counted_on(fraction: float, monkeypatch) -> None:
    plan = small(3, honest_fraction=fraction, users=145)
    slots, weights = plan.weights.slots, plan.weights
    assert 0 < plan._short < slots
    _, asked = placed(plan, np.zeros(slots, dtype=np.int64), None, monkeypatch)
    people = np.diff(plan.schedule.users_by(np.arange(slots + 1)))
    honest = np.array([honest_users(int(each), fraction) for each in people])
    assert (honest < people).all()
    for row, variances in zip(asked, weights.noise_variances, strict=True):
        assert (honest * row >= variances).all() and (honest * row <= variances * (1 + 1e-15)).all()
    surplus = people / honest
    np.testing.assert_allclose(plan.surplus_by_slot, surplus, rtol=1e-12)
    assert plan.surplus == surplus.max()
    # The bound counts on everybody's noise, though privacy counts on the honest only.
    assert plan.proved_noise_bound == pytest.approx(
        horizon_noise_bound(weights, surplus.max() * weights.prefix_variances, 0.05)
    )


@pytest.mark.parametrize("more", [1, 3])
def test_more_windows_than_needed_spread_the_noise(more: int, monkeypatch) -> None:
    """Each running sum's noise comes in equal parts from the slots up to its own, and adds up to the same."""
    plan = small(3)
    plan = dataclasses.replace(plan, shufflers_used=3 + more)
    slots, weights = plan.weights.slots, plan.weights
    nothing = np.zeros(slots, dtype=np.int64)
    people = np.diff(plan.schedule.users_by(np.arange(slots + 1)))
    together = np.zeros((slots, slots))
    for draw in range(2 * (more + 1)):
        late, number = divmod(draw, 2)
        found, asked = placed(plan, nothing, draw, monkeypatch)
        expected = np.linalg.matrix_power(carried.difference(slots), number) @ np.eye(slots, k=-late)
        assert (found == expected).all()
        together += found * (people * asked[draw]) @ found.T
    np.testing.assert_allclose(together, carried.covariance(weights.noise_variances, slots), rtol=1e-12, atol=1e-6)


def test_coordinates_are_independent_numbers(monkeypatch) -> None:
    plan = small(3, users=300, size=12, domain=OneHot(3))
    sampler = Sampler(None)
    monkeypatch.setattr(messages, "sample_discrete_gaussian", sampler)
    slots = np.array([0, 3, 3])
    steps = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    found = plan._contributions(steps, slots, RandomBits.seeded(1))
    weighed = plan.weights.slot_weights[slots][:, np.newaxis] * steps
    assert (found == plan.weights.taps[np.newaxis, :, np.newaxis] * weighed[:, np.newaxis, :]).all()
    assert [each.shape for each in sampler.asked] == [(3, 3), (3, 3)]


def test_draws_are_the_samplers_and_differ_from_user_to_user() -> None:
    plan = small(3)
    found = plan.prepare(np.zeros(150), bits=RandomBits.seeded(1), positions=np.arange(150))
    assert found.shape == (150, 3) and len({tuple(row) for row in found.tolist()}) == 150
    # (1 - q)^i adds up to 0 over a user's windows: with the value 0 nothing is left.
    assert (found.sum(axis=1) == 0).all()
    with pytest.raises(ParameterError, match="positions"):
        plan.prepare(np.zeros(150), bits=RandomBits.seeded(1))


@pytest.mark.parametrize(("users", "size"), [(150, 10), (145, 10), (101, 10), (139, 14)])
def test_every_window_is_of_a_known_kind(users: int, size: int) -> None:
    plan = small(3, users=users, size=size)
    schedule, counted = plan.schedule, {}
    for end in range(1, plan.weights.slots + 1):
        people = schedule.batch_users(max(0, end - 3), end)
        batch = plan.mechanism(people)
        assert batch.users == people == sum(batch.slot_sizes) and len(batch.slot_sizes) == min(3, end)
        each = np.diff(schedule.users_by(np.arange(max(0, end - 3), end + 1)))
        assert batch.slot_sizes == tuple(each.tolist())
        honest = plan._honest_of((len(each), int((each < plan.slot_users).sum())), plan.honest_fraction)
        counted[honest] = counted.get(honest, 0) + 1
    assert counted == plan._honest_windows(plan.honest_fraction)
    with pytest.raises(ParameterError, match="users"):
        plan.mechanism(1)
    sent = sum(
        plan.mechanism(schedule.batch_users(max(0, e - 3), e)).messages_max * schedule.batch_users(max(0, e - 3), e)
        for e in range(1, plan.weights.slots + 1)
    )
    assert plan.messages_per_user_mean == pytest.approx(sent / users)
    sizes = [schedule.batch_users(max(0, e - 3), e) for e in range(1, plan.weights.slots + 1)]
    most = max(
        sum(plan.mechanism(size).messages_max for size in sizes[slot : slot + 3]) for slot in range(plan.weights.slots)
    )
    assert plan.messages_per_user_max == most


def test_sums_of_honest_windows_are_plausible() -> None:
    """The widest sum of values, and noise of seven deviations of everybody's."""
    plan = small(3, honest_fraction=0.5)
    lowest, highest = plan._plausible
    slots, weights = plan.weights.slots, plan.weights
    window = carried.difference(slots)
    noise = plan.surplus * np.diag(window @ carried.covariance(weights.noise_variances, slots) @ window.T).max()
    taps = window @ carried.signal(weights) * plan.slot_users
    assert lowest <= np.minimum(taps, 0).sum(axis=1).min() - 7 * np.sqrt(noise)
    assert highest >= np.maximum(taps, 0).sum(axis=1).max() + 7 * np.sqrt(noise)
    assert (highest - lowest).bit_length() + 8 <= plan._modulus_bits <= 64
