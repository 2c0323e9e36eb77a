"""Running sums of every domain and noise are plans like any other: saved, simulated, audited and charged."""

import json
import math
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from shuffledp import load_plan, simulate
from shuffledp.accounting.gaussian import GaussianPair
from shuffledp.accounting.ledger import Ledger
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.accounting.recorded import pair_document
from shuffledp.accounting.repeated import RepeatedPair
from shuffledp.accounting.spending import Spending
from shuffledp.accounting.worst_case import ClaimPair
from shuffledp.audit.trials import audit_plan
from shuffledp.continual.carried.planner import plan_carried
from shuffledp.continual.plan import CounterPlan
from shuffledp.errors import ShuffleDPError
from shuffledp.privacy import Privacy
from shuffledp.protocols.domains.summed import BITS, OneHot, Reals, Vectors
from shuffledp.protocols.ledger_entries import entry_of
from shuffledp.randomness import RandomBits

EASY = Privacy(2, 1e-3)
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
CASES = {
    "bits laplace": (BITS, "laplace"),
    "bits skellam": (BITS, "skellam"),
    "bits coins": (BITS, "coins"),
    "reals laplace": (Reals(8), "laplace"),
    "reals skellam": (Reals(8), "skellam"),
    "reals coins": (Reals(3), "coins"),
    "vectors skellam": (Vectors(2, 1.0, 8), "skellam"),
    "vectors coins": (Vectors(2, 1.0, 8), "coins"),
    "categories laplace": (OneHot(3), "laplace"),
    "categories skellam": (OneHot.of(["a", "b", "c"]), "skellam"),
    "categories coins": (OneHot(3), "coins"),
}


def plan_of(case: str, **asked) -> CounterPlan:
    domain, noise = CASES[case]
    given = {"users": 300, "shufflers": 2, "privacy": EASY, "noise": noise, "domain": domain} | asked
    return CounterPlan.plan(**given)


@pytest.mark.parametrize("case", CASES)
def test_it_is_saved_and_simulated(case: str, tmp_path) -> None:
    plan = plan_of(case, honest_fraction=0.9)
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan.document()), "utf-8")
    assert load_plan(file) == plan
    values = plan.domain.synthesize(plan.users, np.random.default_rng(1))
    for fast in (True, False):
        estimate = simulate(plan, values, bits=RandomBits.seeded(1), fast=fast)
        assert np.all(np.abs(np.asarray(estimate.value) - plan.true_value(values)) <= plan.error_bound)


# Who is honest changes the noise, whatever the domain: of each noise one case.
FEWER_HONEST = {"bits laplace", "vectors skellam", "categories coins"}


@pytest.mark.parametrize(
    ("case", "honest_fraction"),
    [
        *((case, 1.0) for case in CASES),
        *((case, 0.8) if case in FEWER_HONEST else pytest.param(case, 0.8, marks=pytest.mark.sweep) for case in CASES),
    ],
)
def test_the_audit_lets_it_stand_and_catches_a_quieter_one(case: str, honest_fraction: float) -> None:
    # Where noise is pure, delta only weakens what trials prove.
    privacy, trials = (Privacy(1, 1e-6), 300_000) if "laplace" in case else (Privacy(1, 0.02), 60_000)
    plan = plan_of(case, shufflers=1, privacy=privacy, users=20_000, honest_fraction=honest_fraction)
    asked = {"bits": RandomBits.seeded(1), "trials": trials}
    assert audit_plan(plan, **asked).verdict == "stands"
    assert audit_plan(plan, sabotage=0.5, **asked).verdict == "refuted"


def test_the_audit_adds_up_all_of_a_users_batches() -> None:
    """Noise for half of the batches is caught, though each batch by itself looks private enough."""
    plan = plan_of("bits coins", shufflers=4, privacy=Privacy(1, 0.02), users=3000)
    assert plan.shufflers_used >= 2
    asked = {"bits": RandomBits.seeded(1), "trials": 60_000}
    assert audit_plan(plan, **asked).verdict == "stands"
    assert audit_plan(plan, sabotage=0.5, **asked).verdict == "refuted"


@pytest.mark.parametrize("case", CASES)
def test_the_ledger_charges_all_batches(case: str, tmp_path) -> None:
    plan = plan_of(case)
    entry = entry_of(plan, NOW)
    spent = Spending([entry])
    assert spent.delta(EASY.epsilon) <= EASY.delta
    # What is charged dominates what the plan says of itself.
    terms = plan.guarantee().terms
    noise = next(term.value for term in terms if term.name == "noise")
    assert spent.delta(EASY.epsilon) >= noise * (1 - 1e-9)
    budget = Privacy(4 * EASY.epsilon, 0.1)
    file = tmp_path / "ledger.json"
    ledger = Ledger.open(file, "a panel", budget)
    ledger.spend(entry)
    again = Ledger.load(file)
    (kept,) = again.account.entries
    assert pair_document(kept.pair) == pair_document(entry.pair) and kept.extra_delta == entry.extra_delta
    assert Spending(again.account.entries).delta(EASY.epsilon) == spent.delta(EASY.epsilon)


@pytest.mark.parametrize("noise", ["laplace", "coins", "skellam"])
def test_four_counters_do_not_fit_into_the_budget_of_one(noise: str, tmp_path) -> None:
    plan = CounterPlan.plan(users=3000, shufflers=4, privacy=Privacy(1, 1e-6), noise=noise)
    assert plan.shufflers_used > 1
    ledger = Ledger.open(tmp_path / "ledger.json", "a panel", Privacy(1, 1e-6))
    ledger.spend(entry_of(plan, NOW))
    with pytest.raises(ShuffleDPError):
        ledger.spend(entry_of(plan, NOW))
    # The pair of one batch, which was charged once, would let four pass.
    alone = plan.view.pair(plan.batch_noise)
    assert plan.charged_pair.delta(0.9) > alone.delta(0.9)
    if isinstance(alone, ShiftPair):
        assert isinstance(plan.charged_pair, RepeatedPair)
        assert plan.charged_pair.times == plan.shufflers_used


def test_carried_noise_is_charged_as_the_gaussian_mechanism_it_is(tmp_path) -> None:
    """By its pair, not by its claim alone: four of them cost about twice one, as Gaussian mechanisms do."""
    privacy = Privacy(1, 1e-6)
    plan = plan_carried(users=3000, shufflers=3, privacy=privacy)
    entry = entry_of(plan, NOW)
    assert entry.pair == plan.pair(plan.honest_users) == GaussianPair(plan.weights.shift)
    assert entry.extra_delta == plan.guarantee().delta <= privacy.delta
    ledger = Ledger.open(tmp_path / "ledger.json", "a panel", privacy)
    ledger.spend(entry)
    with pytest.raises(ShuffleDPError):
        ledger.spend(entry)
    # Whoever looks at all four sees no less than their Gaussian pairs show together, and not much more.
    four, together = Spending([entry] * 4), GaussianPair(2 * plan.weights.shift)
    assert together.delta(2.5) <= four.delta(2.5) <= together.delta(2.5) * 1.1 + 8 * (1 + math.exp(2.5)) * privacy.delta
    by_claim = replace(entry, pair=ClaimPair(privacy), extra_delta=0.0)
    assert four.delta(2.5) < 1e-3 < Spending([by_claim] * 4).delta(2.5)
