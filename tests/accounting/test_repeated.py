"""Pairs that a user meets several times cost what their composition does."""

from datetime import UTC, datetime

import pytest

from shuffledp.accounting.composition import Composition
from shuffledp.accounting.gaussian import GaussianPair
from shuffledp.accounting.laws import Binomial
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.accounting.recorded import pair_document
from shuffledp.accounting.repeated import RepeatedPair
from shuffledp.continual.plan import CounterPlan
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.ledger_entries import entry_of


@pytest.mark.parametrize("times", [1, 2, 7])
@pytest.mark.parametrize("pair", [GaussianPair(0.2), ShiftPair(Binomial(300, 0.5))], ids=["gaussian", "coins"])
def test_repeated_is_composed(pair, times: int) -> None:
    repeated, composed = RepeatedPair.of(pair, times), Composition([(pair, times)])
    for epsilon in (0.2, 0.6):
        assert repeated.delta(epsilon) == pytest.approx(composed.delta(epsilon), rel=2e-3, abs=0)
        assert times == 1 or repeated.delta(epsilon) > 1.2 * pair.delta(epsilon)


def test_what_is_repeated_again_counts_all_times() -> None:
    inner = RepeatedPair(ShiftPair(Binomial(400, 0.5)), 2)
    assert pair_document(RepeatedPair(inner, 3))["times"] == 6
    with pytest.raises(ParameterError, match="times"):
        RepeatedPair(inner.pair, 0)


def test_pure_noises_are_pure_together_and_fit_into_a_ledger_at_any_delta() -> None:
    plan = CounterPlan.plan(users=2000, shufflers=2, privacy=Privacy(1, 1e-12), noise="laplace")
    entry = entry_of(plan, datetime(2026, 1, 31, tzinfo=UTC))
    assert entry.claim == plan.privacy and entry.pair.delta(1.0) == 0
