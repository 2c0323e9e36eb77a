"""Two bins: the product's curve against the product outcome by outcome, and against composition on a grid."""

import math

import pytest

from shuffledp.accounting.composition import Composition
from shuffledp.accounting.correlated import CorrelatedPair
from shuffledp.accounting.laws import Binomial, DiscreteLaplace, Poisson
from shuffledp.accounting.pairs import DominatingPair, FinitePair, ShiftPair
from shuffledp.accounting.two_bins import ReversedPair, TwoBinsPair

PAIRS: list[DominatingPair] = [
    ShiftPair(Binomial(30, 0.2)),
    ShiftPair(Poisson(9.0)),
    ShiftPair(DiscreteLaplace(math.exp(-0.4))),
    CorrelatedPair(math.exp(-0.4), 6, math.exp(-0.3)),
    CorrelatedPair(math.exp(-0.9), 2, math.exp(-0.9), 0.7),
    FinitePair(p=[0.5, 0.3, 0.2, 0.0, 0.0], q=[0.1, 0.3, 0.4, 0.2, 0.0]),
]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: type(pair).__name__)
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.3])
def test_the_curve_is_the_products(pair: DominatingPair, epsilon: float) -> None:
    two = TwoBinsPair(pair)
    if pair.atoms().log_p.size < 2000:
        plain = two.atoms()
        assert two.delta(epsilon) == pytest.approx(plain.hockey_stick(epsilon), rel=1e-7, abs=1e-9)
        assert two.delta(epsilon) == pytest.approx(plain.reversed().hockey_stick(epsilon), rel=1e-7, abs=1e-9)
    composed = Composition([(pair, 1), (ReversedPair(pair), 1)]).delta(epsilon)
    assert two.delta(epsilon) == pytest.approx(composed, rel=2e-3, abs=1e-9)


def test_a_product_beats_adding_up() -> None:
    pair = ShiftPair(Binomial(80, 0.5))
    assert pair.delta(1.0) <= 1e-6
    assert TwoBinsPair(pair).delta(2.0) < 1e-9, "two bins in one go are far below (2 epsilon, 2 delta)"
