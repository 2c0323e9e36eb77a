"""The pair of two flipped columns against the whole view of tiny crowds, whatever the others hold."""

import itertools
import math

import numpy as np
import pytest

from shuffledp.accounting.curves import smallest_real
from shuffledp.accounting.flipped_rows import FlippedRowsPair

EPSILONS = [-2.0, -0.5, 0.0, 0.4, 1.0, 2.5]


def _view(users: tuple[int, ...], bins: int, fakes: int, flip: float) -> np.ndarray:
    """The joint law of all columns' sums: the whole view, as messages carry nothing but a column."""
    view = np.ones(1)
    for column in range(bins):
        law = np.ones(1)
        for x in users:
            law = np.convolve(law, [flip, 1 - flip] if x == column else [1 - flip, flip])
        for _ in range(len(users) * fakes):
            law = np.convolve(law, [1 - flip, flip])
        view = np.multiply.outer(view, law)
    return view.ravel()


@pytest.mark.parametrize(
    ("honest", "fakes", "bins", "flip"), [(1, 2, 3, 0.2), (2, 1, 3, 0.1), (3, 1, 2, 0.3), (2, 2, 3, 0.4)]
)
def test_dominates_whatever_the_others_hold(honest: int, fakes: int, bins: int, flip: float) -> None:
    pair = FlippedRowsPair(honest * fakes, flip)
    for epsilon in EPSILONS:
        worst = 0.0
        for others in itertools.combinations_with_replacement(range(bins), honest - 1):
            for x, y in itertools.permutations(range(bins), 2):
                p, q = (_view((each, *others), bins, fakes, flip) for each in (x, y))
                worst = max(worst, float(np.maximum(p - math.exp(epsilon) * q, 0).sum()))
        assert worst <= pair.delta(epsilon) * (1 + 1e-9)
        if honest == 1:  # nobody else's row: nothing is given away
            assert pair.delta(epsilon) == pytest.approx(worst, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(("rows", "flip"), [(1, 0.4), (40, 0.1), (2000, 0.01)])
def test_tails_and_atoms_agree(rows: int, flip: float) -> None:
    pair = FlippedRowsPair(rows, flip)
    for epsilon in EPSILONS:
        assert pair.forward(epsilon) == pytest.approx(pair.atoms().hockey_stick(epsilon), rel=1e-7, abs=1e-15)


def test_the_figures_computed_before() -> None:
    """Flips, n = 10,000, one fake row: exactly 0.00421 for a deviation of 9.23; the paper's 0.0494 gives 1.6e-57."""
    flip = smallest_real(lambda f: FlippedRowsPair(10_000, f).delta(1.0) <= 1e-6, 0.0, 0.001, relative=1e-9)
    assert flip == pytest.approx(0.00421, abs=5e-6)
    assert math.sqrt(20_000 * flip * (1 - flip)) / (1 - 2 * flip) == pytest.approx(9.23, abs=0.005)
    assert FlippedRowsPair(10_000, 0.0494).delta(1.0) < 1e-25  # below what its window leaves out nothing is said
