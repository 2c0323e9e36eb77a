"""The bounds on the worst bin against exact laws, count by count."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy import stats

from shuffledp.accounting.laws import Binomial
from shuffledp.protocols import cut
from shuffledp.protocols.error_bounds import CONFIDENCE
from shuffledp.protocols.histogram import bounds, collision_bounds, opt_in
from shuffledp.protocols.histogram.collision_bounds import flipped_bound, thrown_bound


def _outside(values: np.ndarray, masses: np.ndarray, a: float) -> float:
    return float(masses[np.abs(values) > a + 1e-9].sum())


def _thrown_failure(a, throws, probability, hit, users, collision, count) -> float:
    failure = 0.0
    y = np.arange(users - count + 1)
    y_masses = stats.binom(users - count, collision).pmf(y)
    weights = stats.binom(throws, probability).pmf(np.arange(throws + 1))
    for thrown in np.flatnonzero(weights > 1e-12):
        x = np.arange(thrown + 1)
        values = np.add.outer(x - thrown * hit, y - (users - count) * collision)
        masses = np.outer(stats.binom(thrown, hit).pmf(x), y_masses)
        failure += weights[thrown] * _outside(values, masses, a)
    return failure


@pytest.mark.parametrize(
    ("throws", "probability", "hit", "users", "collision"), [(30, 0.6, 0.25, 12, 0.2), (40, 1.0, 0.1, 20, 0.09)]
)
@pytest.mark.parametrize("bins", [5, 200])
def test_thrown_messages_and_collisions(throws, probability, hit, users, collision, bins) -> None:
    bound = thrown_bound(throws, probability, hit, users, collision, 0.05 / bins)
    failures = [_thrown_failure(bound, throws, probability, hit, users, collision, c) for c in range(users + 1)]
    assert max(failures) <= (1 - CONFIDENCE) / bins
    shorter = [_thrown_failure(bound - 2, throws, probability, hit, users, collision, c) for c in range(users + 1)]
    assert max(shorter) > (1 - CONFIDENCE) / bins, "the bound is two people too long"


def _flipped_failure(a: float, cells: int, flip: float, count: int) -> float:
    up, down = np.arange(cells - count + 1), np.arange(count + 1)
    values = np.subtract.outer(up, down) - (cells - 2 * count) * flip
    masses = np.outer(stats.binom(cells - count, flip).pmf(up), stats.binom(count, flip).pmf(down))
    return _outside(values, masses, a)


@pytest.mark.parametrize(("users", "fakes", "flip"), [(30, 1, 0.05), (25, 2, 0.3)])
@pytest.mark.parametrize("bins", [5, 200])
def test_flipped_columns(users: int, fakes: int, flip: float, bins: int) -> None:
    cells = users * (fakes + 1)
    bound = flipped_bound(cells, flip, users, bins)
    assert max(_flipped_failure(bound, cells, flip, c) for c in range(users + 1)) <= (1 - CONFIDENCE) / bins
    assert max(_flipped_failure(bound - 2, cells, flip, c) for c in range(users + 1)) > (1 - CONFIDENCE) / bins


@pytest.mark.parametrize(("users", "fakes", "flip"), [(30, 1, 0.05), (25, 2, 0.3), (200, 1, 0.1), (200, 0, 0.1)])
@pytest.mark.parametrize("allowed", [0.01, 1e-12])
def test_moments_bound_flipped_columns(users: int, fakes: int, flip: float, allowed: float) -> None:
    cells = users * (fakes + 1)
    bound = collision_bounds._flipped_chernoff_bound(cells, flip, users, allowed)
    assert max(_flipped_failure(bound, cells, flip, c) for c in range(users + 1)) <= allowed
    # A third above the shortest one and two people, or less.
    assert _flipped_failure(bound / 1.34 - 2, cells, flip, 0) > allowed


def test_moments_of_a_fifth_less_noise_bound_too_little() -> None:
    bound, twin = (collision_bounds._flipped_chernoff_bound(4000, flip, 2000, 1e-15) for flip in (0.1, 0.08))
    assert _flipped_failure(bound, 4000, 0.1, 0) <= 1e-15 < _flipped_failure(twin, 4000, 0.1, 0)


def test_very_many_flipped_columns_are_bounded_by_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    shorter = flipped_bound(4000, 0.01, 2000, 50)
    monkeypatch.setattr(collision_bounds, "_MOST_TERMS_FLIPPED", 0)
    assert shorter <= flipped_bound(4000, 0.01, 2000, 50) <= 1.25 * shorter


@pytest.mark.parametrize(("trials", "p"), [(10_000, 0.3), (3000, 0.9)])
def test_groups_weighed_by_tails_hold_all_that_masses_do(
    trials: int, p: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    values, weights, outside = bounds.on_window(trials, p, 1e-9)
    shorter = bounds.balls_bound(trials, p, 10)
    monkeypatch.setattr(bounds, "_MOST_MASSES", 0)
    starts, ends, each, left_out = bounds.in_groups(trials, p, 1e-9, 7)
    assert (starts[0], ends[-1]) == (values[0], values[-1]) and (starts[1:] == ends[:-1] + 1).all()
    exact = np.add.reduceat(weights, (starts - values[0]).astype(int))
    assert (exact * (1 - 1e-12) <= each).all() and each.sum() <= 1 + 1e-8 and left_out == outside
    assert shorter * (1 - 1e-4) <= bounds.balls_bound(trials, p, 10) <= 1.01 * shorter


@pytest.mark.parametrize(("users", "probability"), [(2000, 0.3), (400, 0.8)])
def test_numbers_that_opt_in_are_bounded_in_groups(
    users: int, probability: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_by_one = opt_in.cut_bound(users, probability, 20, 0.05)
    monkeypatch.setattr(opt_in, "_MANY", 0)
    monkeypatch.setattr(opt_in, "_GROUPS", 16)
    assert one_by_one <= opt_in.cut_bound(users, probability, 20, 0.05) <= 1.05 * one_by_one


@pytest.mark.parametrize("probability", [0.02, 0.1, 0.5])
def test_the_worst_count_of_all_is_bounded_in_groups(probability: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts that noise may cut to 0: silences, and the tails of those who opt in, against tables of every count."""
    silences, tails = Binomial(20_000, probability), Binomial(20_000, probability / 2)
    tables = {
        silences: cut.mean_squares_by_silence(20_000, probability),
        tails: opt_in.cut_mean_squares(20_000, probability),
    }
    for law, table in tables.items():
        assert cut.worst_mean_square(law, lambda table=table: table) == table.max()
    monkeypatch.setattr(cut, "_LONGEST_TABLE", 0)
    for law, table in tables.items():
        found = cut.worst_mean_square(law, lambda: pytest.fail("no table is made"))
        assert table.max() <= found <= 1.2 * table.max()
    # In few groups each counts as its worst.
    monkeypatch.setattr(cut, "_GROUPS", 5)
    for law, table in tables.items():
        assert table.max() <= cut.worst_mean_square(law, lambda: pytest.fail("no table is made"))


@pytest.mark.parametrize(
    "asked",
    [
        (6000, 0.836, 1 / 14, 3000, 0.0713, 3e-6),
        (10_000, 0.427, 0.01, 430, 0.01, 5e-5),
        (300, 1.0, 0.05, 50, 0.05, 1e-3),
    ],
)
def test_a_tail_is_computed_once_for_all_counts(asked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same tails stand in every count's sum, and are what a search of frequent strings takes its time for."""
    computed: Counter[Any] = Counter()
    tail = bounds._binomial_tail

    def counted(j: Any, trials: Any, p: float, incomplete: Any, beyond: Any) -> Any:
        computed.update(
            (*each, incomplete) for each in zip(np.ravel(j).tolist(), np.ravel(trials).tolist(), strict=True)
        )
        return tail(j, trials, p, incomplete, beyond)

    monkeypatch.setattr(bounds, "_binomial_tail", counted)
    thrown_bound(*asked)
    assert computed and max(computed.values()) == 1


@pytest.mark.parametrize(("tail", "law"), [(bounds.binomial_above, "sf"), (bounds.binomial_below, "cdf")])
def test_shared_tails_are_the_tails_themselves(tail: Any, law: str) -> None:
    trials = np.array([0.0, 3.0, 40.0])
    shared = bounds.SharedTails(tail, trials, 0.3)
    for limits in ([0.5, -2.0, 3.0], [7.25, 7.0], [-11.5, 50.0]):
        at = np.tile(limits, (3, 1))
        found = shared(at)
        assert np.array_equal(found, tail(at, np.broadcast_to(trials[:, np.newaxis], at.shape), 0.3))
        places = np.floor(at) if law == "sf" else np.ceil(at) - 1
        assert np.allclose(found, getattr(stats.binom(trials[:, np.newaxis], 0.3), law)(places), atol=1e-12)
