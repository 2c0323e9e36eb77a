"""Pairs that a user meets several times cost what their composition does."""

import pytest

from shuffledp.accounting.composition import Composition
from shuffledp.accounting.gaussian import GaussianPair
from shuffledp.accounting.laws import Binomial
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.accounting.repeated import RepeatedPair


@pytest.mark.parametrize("times", [1, 2, 7])
@pytest.mark.parametrize("pair", [GaussianPair(0.2), ShiftPair(Binomial(300, 0.5))], ids=["gaussian", "coins"])
def test_repeated_is_composed(pair, times: int) -> None:
    repeated, composed = RepeatedPair.of(pair, times), Composition([(pair, times)])
    for epsilon in (0.2, 0.6):
        assert repeated.delta(epsilon) == pytest.approx(composed.delta(epsilon), rel=2e-3, abs=0)
        assert times == 1 or repeated.delta(epsilon) > 1.2 * pair.delta(epsilon)
