"""Pairs that a user meets several times cost what their composition does."""

from datetime import UTC, datetime

import pytest

from shuffledp.accounting.composition import Composition
from shuffledp.accounting.differences import PolyaDifference, Skellam
from shuffledp.accounting.gaussian import GaussianPair
from shuffledp.accounting.laws import Binomial, DiscreteLaplace, IntegerLaw, Poisson
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.accounting.recorded import pair_document, pair_from_document
from shuffledp.accounting.repeated import RepeatedPair
from shuffledp.accounting.spending import Entry, Spending, grouped
from shuffledp.accounting.two_bins import ReversedPair
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


def test_asymmetric_noise_met_twice_in_one_question_costs_what_two_questions_do() -> None:
    # A value may rise in one batch and fall in the next, as answers may from one question to the next.
    rare = ShiftPair(Binomial(4000, 0.01))
    two_questions, forwards = Composition(grouped([rare, rare])), Composition([(rare, 2)])
    for epsilon in (0.4, 0.8, 1.2):
        assert RepeatedPair(rare, 2).delta(epsilon) == two_questions.delta(epsilon)
        assert RepeatedPair(rare, 2).delta(epsilon) > forwards.delta(epsilon) * (1 + 1e-4)
        assert Composition([(rare, 1), (ReversedPair(rare), 1)]).delta(epsilon) <= two_questions.delta(epsilon)


@pytest.mark.parametrize(
    "law",
    [
        Binomial(90, 0.5),
        Binomial(90, 0.2),
        Poisson(30.0),
        DiscreteLaplace(0.7),
        PolyaDifference(0.4, 0.8),
        Skellam(9.0),
    ],
    ids=str,
)
def test_a_law_is_symmetric_exactly_where_both_directions_of_its_shift_agree(law: IntegerLaw) -> None:
    pair = ShiftPair(law, 2)
    agree = all(pair.forward(epsilon) == pytest.approx(pair.reverse(epsilon), rel=1e-6) for epsilon in (0.1, 0.3, 0.6))
    assert agree == law.is_symmetric


@pytest.mark.parametrize(
    "document",
    [
        {"law": "binomial", "trials": 1 << 52, "p": 0.5, "shift": 1, "times": 1 << 20},
        {"law": "poisson", "rate": 1e15, "shift": 1},
        {"law": "binomial", "trials": 100, "p": 0.5, "shift": 1 << 40},
        {"law": "discrete-laplace", "p": 1 - 1e-12, "shift": 1},
    ],
)
def test_a_recorded_pair_that_would_take_hours_to_compose_is_charged_by_its_claim(document: dict[str, object]) -> None:
    claim = Privacy(1, 1e-6)
    entry = Entry(
        time="2026-01-31T12:00:00Z",
        fingerprint="0" * 64,
        users=100,
        description="how many",
        claim=claim,
        pair=pair_from_document(document),
    )
    assert pair_document(entry.pair) == {"law": "claim", "epsilon": 1.0, "delta": 1e-6}
    assert Spending([entry, entry]).epsilon(3e-6) <= 2
