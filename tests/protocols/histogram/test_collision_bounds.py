"""The bounds on the worst bin against exact laws, count by count."""

import numpy as np
import pytest
from scipy import stats

from shuffledp.protocols.error_bounds import CONFIDENCE
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
