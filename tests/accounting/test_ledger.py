"""The ledger: exact composition, nothing written on refusal, no update lost, nothing believed of a bad file."""

import json
import math
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.children import child
from shuffledp.accounting.composition import Composition
from shuffledp.accounting.differences import PolyaDifference, Skellam
from shuffledp.accounting.laws import Binomial, DiscreteLaplace, Poisson
from shuffledp.accounting.ledger import Account, Entry, Ledger, _checksum, entry_document
from shuffledp.accounting.pairs import DominatingPair, FinitePair, ShiftPair
from shuffledp.accounting.recorded import pair_document, pair_from_document
from shuffledp.accounting.spending import Spending, grouped, what_is_left
from shuffledp.accounting.worst_case import ClaimPair, EitherOrder
from shuffledp.errors import DataError, InfeasibleError, ParameterError
from shuffledp.files import locked
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.protocols.ledger_entries import entry_of

NOON = "2026-01-31T12:00:00Z"
BUDGET = Privacy(1, 1e-6)


def entry(pair: DominatingPair, claim: Privacy = BUDGET, extra: float = 0.0) -> Entry:
    return Entry(
        time=NOON, fingerprint="ab" * 32, users=10, description="how many", claim=claim, pair=pair, extra_delta=extra
    )


def claim(epsilon: float, delta: float) -> Entry:
    return entry(ClaimPair(Privacy(epsilon, delta)), Privacy(epsilon, delta))


# --- what is composed ---------------------------------------------------------------------------


def product(pairs: list[tuple[np.ndarray, np.ndarray]]) -> FinitePair:
    p, q = np.ones(1), np.ones(1)
    for one_p, one_q in pairs:
        p, q = np.outer(p, one_p).ravel(), np.outer(q, one_q).ravel()
    return FinitePair(p, q)


def masses(pair: DominatingPair) -> tuple[np.ndarray, np.ndarray]:
    atoms = pair.atoms()
    return np.exp(atoms.log_p), np.exp(atoms.log_q)


@pytest.mark.parametrize("noise", [Binomial(6, 0.2), Binomial(5, 0.5), Binomial(9, 0.8)])
def test_either_order_is_the_larger_direction_at_every_epsilon(noise: Binomial) -> None:
    pair = ShiftPair(noise)
    either = EitherOrder(pair).atoms()
    assert np.exp(either.log_p).sum() == pytest.approx(1, abs=1e-12)
    assert np.exp(either.log_q).sum() == pytest.approx(1, abs=1e-12)
    for epsilon in np.linspace(-4, 4, 201):
        # ShiftPair's own curves are for log-concave noise and any real epsilon.
        larger = max(pair.forward(epsilon), pair.reverse(epsilon))
        assert either.hockey_stick(epsilon) == pytest.approx(larger, rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_either_order_of_any_pair(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.ones(7)), rng.dirichlet(np.ones(7))
    p[seed % 7] *= seed % 2
    pair = FinitePair(p / p.sum(), q)
    either = EitherOrder(pair).atoms()
    assert np.exp(either.log_p).sum() == pytest.approx(1, abs=1e-9)
    for epsilon in np.linspace(-3, 5, 161):
        assert either.hockey_stick(epsilon) == pytest.approx(
            max(pair.forward(epsilon), pair.reverse(epsilon)), rel=1e-8, abs=1e-9
        )


@pytest.mark.parametrize("seed", range(6))
def test_composition_covers_every_mixture_of_orders(seed: int) -> None:
    """Brute force over all signs: a person's answers may rise in one question and fall in the next."""
    rng = np.random.default_rng(seed)
    pairs = [ShiftPair(Binomial(int(rng.integers(4, 9)), float(rng.uniform(0.1, 0.5)))) for _ in range(3)]
    spending = Spending([entry(pair, Privacy(3, 0.999)) for pair in pairs])
    for epsilon in (0.3, 1.0, 2.5):
        ours = spending.delta(epsilon)
        for signs in range(8):
            ordered = [masses(pair)[:: -1 if signs >> i & 1 else 1] for i, pair in enumerate(pairs)]
            assert ours >= product(ordered).forward(epsilon) * (1 - 1e-9)


def test_one_direction_composed_by_itself_would_not_cover_a_mixture() -> None:
    """The wrong twin: pairs of opposite skew, whose forward directions are not both the worse one."""
    low, high = ShiftPair(Poisson(6.0)), ShiftPair(Binomial(9, 0.9))
    one_way = Composition([(low, 1), (high, 1)]).delta(1.0)
    p, q = masses(high)
    mixed = product([masses(low), (q, p)]).delta(1.0)
    assert mixed > 1.01 * one_way
    assert Spending([entry(low, Privacy(9, 0.99)), entry(high, Privacy(9, 0.99))]).delta(1.0) >= mixed * (1 - 1e-9)


def test_fair_coins_compose_as_composition_does() -> None:
    pair = ShiftPair(Binomial(400, 0.5))
    for times in (2, 3, 7):
        ours = Spending([entry(pair)] * times).epsilon(1e-6)
        assert ours == pytest.approx(Composition([(pair, times)]).epsilon(1e-6), rel=1e-9)


def test_rare_coins_cost_little_more_in_either_order() -> None:
    pair = BinarySum.plan(users=10_000, privacy=Privacy(0.3, 1e-7), method="coins").guarantee().pair
    one_way = Composition([(pair, 5)]).epsilon(1e-6)
    assert one_way <= Spending([entry(pair)] * 5).epsilon(1e-6) <= 1.001 * one_way


def test_a_claim_composes_as_kairouz_oh_and_viswanath_say() -> None:
    """Their Theorem 3, k-fold: 1 - (1-delta)^k (1 - delta_i) at (k - 2i) epsilon."""
    epsilon, delta, k = 0.3, 1e-4, 6
    spending = Spending([claim(epsilon, delta)] * k)
    for i in range(1, k // 2 + 1):
        inner = (
            sum(math.comb(k, j) * (math.exp((k - j) * epsilon) - math.exp((k - 2 * i + j) * epsilon)) for j in range(i))
            / (1 + math.exp(epsilon)) ** k
        )
        exact = 1 - (1 - delta) ** k * (1 - inner)
        assert spending.delta((k - 2 * i) * epsilon) == pytest.approx(exact, rel=1e-6)


def test_identical_pairs_are_grouped() -> None:
    a, b = ShiftPair(Binomial(50, 0.5)), ShiftPair(Binomial(50, 0.25))
    groups = grouped([a, b, ShiftPair(Binomial(50, 0.5)), ClaimPair(BUDGET), ClaimPair(BUDGET)])
    assert [times for _, times in groups] == [2, 1, 2]


def test_a_pair_without_a_written_form_is_kept_as_its_claim() -> None:
    kept = entry(FinitePair([0.5, 0.5], [0.5, 0.5]), extra=1e-7)
    assert isinstance(kept.pair, ClaimPair) and kept.pair.claim == BUDGET and kept.extra_delta == 0


def test_extra_deltas_add_up() -> None:
    pair = ShiftPair(Binomial(400, 0.5))
    bare, more = Spending([entry(pair)] * 2), Spending([entry(pair, extra=3e-7)] * 2)
    assert more.delta(1.0) == pytest.approx(bare.delta(1.0) + 6e-7, rel=1e-12)
    assert more.epsilon(1e-6) == pytest.approx(bare.epsilon(4e-7), rel=1e-9)
    assert Spending([entry(pair, extra=6e-7)] * 2).epsilon(1e-6) == math.inf


def test_distance_adds_up_at_each_questions_own_epsilon() -> None:
    """Point 3 of the module, by brute force: views near a pure pair, composed twice."""
    rng = np.random.default_rng(1)
    epsilon = 0.7
    lie = 1 / (1 + math.exp(epsilon))
    ideal = np.array([1 - lie, lie, 0.0]), np.array([lie, 1 - lie, 0.0])
    for _ in range(50):
        d = 0.01
        views = []
        for law in ideal:
            moved = rng.dirichlet(np.ones(3)) * d
            taken = rng.dirichlet(np.ones(2)) * d
            views.append(law - np.array([*taken, 0.0]) + moved)
        distance = max(np.abs(view - law).sum() / 2 for view, law in zip(views, ideal, strict=True))
        extra = (1 + math.exp(epsilon)) * distance
        both, clean = product([(views[0], views[1])] * 2), product([ideal] * 2)
        for total in np.linspace(0, 3, 31):
            assert both.delta(total) <= clean.delta(total) + 2 * extra + 1e-8


# --- the budget exactly ---------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["coins", "shares"])
@pytest.mark.parametrize("users", [60, 10_000])
def test_a_plan_for_exactly_the_budget_is_accepted_once(tmp_path: Path, method: str, users: int) -> None:
    ledger = Ledger.open(tmp_path / "ledger.json", "panel", BUDGET)
    asked = entry_of(BinarySum.plan(users=users, privacy=BUDGET, method=method), datetime.now(UTC))
    assert not isinstance(asked.pair, ClaimPair)
    ledger.spend(asked)
    assert ledger.left().epsilon_spent <= 1 and ledger.left().delta_spent <= 1e-6
    with pytest.raises(InfeasibleError, match="budget"):
        ledger.spend(asked)


@pytest.mark.parametrize("method", ["coins", "shares"])
def test_quarters_of_the_budget_are_accepted_four_times_at_least(tmp_path: Path, method: str) -> None:
    ledger = Ledger.open(tmp_path / "ledger.json", "panel", BUDGET)
    plan = BinarySum.plan(users=1000, privacy=Privacy(1 / 4, 2.5e-7), method=method)
    for _ in range(4):
        ledger.spend(entry_of(plan, datetime.now(UTC)))
    assert len(ledger.account.entries) == 4


def test_decimals_add_up_as_they_are_written() -> None:
    assert 0.1 + 0.1 + 0.1 > 0.3
    assert Spending([claim(0.1, 1e-7)] * 3).fits(Privacy(0.3, 3e-7))
    assert not Spending([claim(0.1, 1e-7)] * 4).fits(Privacy(0.3, 4e-7))


def test_neither_epsilons_nor_deltas_alone_make_a_question_fit() -> None:
    assert not Spending([claim(0.1, 6e-7)] * 2).fits(Privacy(0.3, 1e-6))
    assert not Spending([claim(0.2, 1e-7)] * 2).fits(Privacy(0.3, 1e-6))
    assert Spending([claim(0.1, 5e-7)] * 2).fits(Privacy(0.3, 1e-6))


def test_an_account_keeps_what_it_has() -> None:
    account = Account(population="panel", budget=BUDGET)
    asked = [claim(0.2, 1e-7), claim(0.3, 2e-7), claim(0.1, 1e-7)]
    for question in asked:
        account = account.with_entry(question)
    assert list(account.entries) == asked and account.version == 4
    with pytest.raises(InfeasibleError):
        account.with_entry(claim(0.9, 5e-7))


def test_an_entry_claims_no_less_than_its_pair_costs() -> None:
    with pytest.raises(ParameterError, match="delta"):
        entry(ShiftPair(Binomial(300, 0.5)), Privacy(0.2, 1e-6))


def test_exactly_k_questions_fit(tmp_path: Path) -> None:
    pair, k = ShiftPair(Binomial(1200, 0.5)), 5
    budget = Privacy(Composition([(pair, k)]).epsilon(1e-6) * (1 + 1e-9), 1e-6)
    assert Composition([(pair, k + 1)]).epsilon(1e-6) > 1.05 * budget.epsilon
    asked = entry(pair, Privacy(0.5, 1e-6))
    ledger = Ledger.open(tmp_path / "ledger.json", "panel", budget)
    for _ in range(k):
        ledger.spend(asked)
    before = ledger.path.read_bytes()
    with pytest.raises(InfeasibleError, match=r"left is a question|nothing is left"):
        ledger.spend(asked)
    assert ledger.path.read_bytes() == before and len(ledger.account.entries) == k
    # Sums of the claims would have stopped after one.
    assert ledger.account.version == 1 + k


@pytest.mark.parametrize(
    "entries",
    [[], [entry(ShiftPair(Binomial(300, 0.5)))], [claim(0.2, 1e-7), entry(ShiftPair(Binomial(4000, 0.03)))]],
)
def test_what_is_left_fits_and_a_little_more_does_not(tmp_path: Path, entries: list[Entry]) -> None:
    ledger = Ledger.open(tmp_path / "ledger.json", "panel", BUDGET)
    for asked in entries:
        ledger.spend(asked)
    question = ledger.left().question
    assert question is not None
    with pytest.raises(InfeasibleError):
        ledger.spend(claim(question.epsilon + 0.02, question.delta))
    ledger.spend(entry_of(BinarySum.plan(users=500, privacy=question), datetime.now(UTC)))


def test_nothing_is_left_of_a_spent_budget() -> None:
    left = what_is_left([claim(1, 1e-6)], BUDGET)
    assert (left.epsilon, left.question) == (0, None) and left.in_words() == "nothing is left"


# Three different questions: one of coins, one with delta outside its pair, one bare claim.
THREE = (
    entry(ShiftPair(Binomial(300, 0.5)), Privacy(0.6, 5e-7)),
    entry(ShiftPair(Binomial(250, 0.5)), Privacy(0.7, 5e-7), extra=1.5e-7),
    claim(0.15, 5e-8),
)


def composed(entries: tuple[Entry, ...]) -> tuple[float, float]:
    """Epsilon and delta of all entries at BUDGET, from the one composition of their pairs, each once."""
    whole = Composition([(EitherOrder(asked.pair), 1) for asked in entries])
    extra = sum(asked.extra_delta for asked in entries)
    return whole.epsilon(BUDGET.delta - extra), whole.delta(BUDGET.epsilon) + extra


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)], ids=str)
def test_what_is_left_counts_every_entry_once(order: tuple[int, ...]) -> None:
    entries = tuple(THREE[place] for place in order)
    epsilon, delta = composed(entries)
    left = what_is_left(entries, BUDGET)
    assert left.epsilon_spent == pytest.approx(epsilon, rel=1e-9)
    assert left.delta_spent == pytest.approx(delta, rel=1e-9)
    assert left.epsilon == BUDGET.epsilon - left.epsilon_spent


def test_an_entry_more_or_less_would_be_seen() -> None:
    """What the test before compares would be another number, without any one entry or with one of them twice."""

    def delta(entries: tuple[Entry, ...]) -> float:
        pairs = Composition([(EitherOrder(asked.pair), 1) for asked in entries])
        return pairs.delta(BUDGET.epsilon) + sum(asked.extra_delta for asked in entries)

    for place in range(3):
        for others in (THREE[:place] + THREE[place + 1 :], (*THREE, THREE[place])):
            assert abs(delta(others) / delta(THREE) - 1) > 1e-3


def test_the_question_that_is_left_fits_beside_all_entries() -> None:
    """And one that is a step larger does not: by a composition that the ledger has no part in."""
    question = what_is_left(THREE, BUDGET).question
    assert question is not None

    def delta_with(epsilon: float) -> float:
        return composed((*THREE, claim(epsilon, question.delta)))[1]

    assert delta_with(question.epsilon) <= BUDGET.delta < delta_with(question.epsilon + 1.5 / 128)
    _, spent_already = composed(THREE)
    assert question.delta == pytest.approx((BUDGET.delta - spent_already) / 2, rel=0.01)


def test_an_account_and_its_document_say_what_is_spent() -> None:
    account = Account(population="panel", budget=BUDGET, entries=THREE, version=4)
    written, left = account.document()["spent"], account.left()
    assert written["questions"] == 3 and written["extra_delta"] == pytest.approx(1.5e-7, rel=1e-12)
    epsilon, delta = composed(THREE)
    assert written["epsilon"] == left.epsilon_spent == pytest.approx(epsilon, rel=1e-9)
    assert written["delta"] == left.delta_spent == pytest.approx(delta, rel=1e-9)


# --- the file -------------------------------------------------------------------------------------


def test_a_ledger_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    ledger = Ledger.open(path, "Panel ε", Privacy(3, 1e-5))
    laws = [Binomial(400, 0.5), Poisson(200.0), DiscreteLaplace(0.9), PolyaDifference(2.0, 0.9), Skellam(300.0)]
    for law in laws:
        ledger.spend(entry(ShiftPair(law), extra=1e-8))
    ledger.spend(claim(0.1, 1e-7))
    again = Ledger.load(path)
    assert again.account.document() == ledger.account.document() == json.loads(path.read_text())
    assert again.account.version == 7 and again.account.population == "Panel ε"
    assert json.loads(path.read_text())["entries"][0]["pair"] == {
        "law": "binomial", "trials": 400, "p": 0.5, "shift": 1
    }  # fmt: skip


@pytest.mark.parametrize("pair", [ShiftPair(Skellam(2.5), 3), ShiftPair(PolyaDifference(0.5, 0.3)), ClaimPair(BUDGET)])
def test_pairs_as_json(pair: DominatingPair) -> None:
    document = pair_document(pair)
    assert pair_document(pair_from_document(json.loads(json.dumps(document)))) == document


@pytest.mark.parametrize("asked", [*THREE, entry(ShiftPair(Skellam(90.0), 2), Privacy(3, 1e-3), extra=1e-4)])
def test_entries_come_back_from_their_documents(asked: Entry) -> None:
    account = Account(population="panel", budget=BUDGET, entries=(asked,), version=2)
    [again] = Account.from_document(account.document()).entries
    assert entry_document(again) == entry_document(asked) and again.extra_delta == asked.extra_delta
    assert again.pair.delta(0.3) == asked.pair.delta(0.3)


def test_a_pair_with_a_curve_of_its_own_is_not_written_down_as_another() -> None:
    class Costlier(ShiftPair):
        def delta(self, epsilon: float) -> float:
            return min(1.0, 2 * super().delta(epsilon))

    assert pair_document(Costlier(Binomial(300, 0.5))) is None
    assert isinstance(entry(Costlier(Binomial(300, 0.5))).pair, ClaimPair)


def test_a_closed_ledger_refuses(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "ledger.json", "panel", BUDGET)
    ledger.spend(claim(0.1, 1e-7))
    stale = Ledger.load(ledger.path)
    ledger.close()
    before = ledger.path.read_bytes()
    for change in (lambda: ledger.spend(claim(0.1, 1e-7)), lambda: stale.spend(claim(0.1, 1e-7)), ledger.close):
        with pytest.raises(ParameterError, match="closed"):
            change()
    assert ledger.path.read_bytes() == before
    assert Ledger.load(ledger.path).left().question is None


def test_a_budget_is_granted_once(tmp_path: Path) -> None:
    Ledger.open(tmp_path / "ledger.json", "panel", BUDGET)
    with pytest.raises(ParameterError, match="new file"):
        Ledger.open(tmp_path / "ledger.json", "panel", BUDGET)
    with pytest.raises(ParameterError, match="directory"):
        Ledger.open(tmp_path / "nowhere" / "ledger.json", "panel", BUDGET)
    with pytest.raises(ParameterError, match="population"):
        Ledger.open(tmp_path / "other.json", " ", BUDGET)


def test_another_ledger_under_the_same_name_is_noticed(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "ledger.json", "panel", BUDGET)
    ledger.path.unlink()
    Ledger.open(ledger.path, "others", BUDGET)
    with pytest.raises(DataError, match="must still be the budget of panel"):
        ledger.spend(claim(0.1, 1e-7))


TAMPERED: list[tuple[str, Any, str]] = [
    ("schema", 2, "ledger.schema must be 1, got 2"),
    ("schema", None, "ledger.schema"),
    ("version", 0, "ledger.version"),
    ("version", True, "ledger.version"),
    ("population", "", "ledger.population"),
    ("epsilon", -1, "ledger.epsilon must be > 0"),
    ("epsilon", 10**400, "number below"),
    ("delta", -1e-6, "ledger.delta must lie"),
    ("delta", "much", "ledger.delta must be a number"),
    ("state", "ajar", "ledger.state"),
    ("entries", {}, "ledger.entries"),
    ("entries", [], "ledger.checksum"),
    ("epsilon", 5, "ledger.checksum"),
    ("checksum", "0", "ledger.checksum"),
    ("more", 1, "ledger.more must not be there"),
    ("entries.0", 7, r"entries\[0\] must be an object"),
    ("entries.0.delta", -1e-6, r"entries\[0\].delta must lie"),
    ("entries.0.delta", 1e-9, r"entries\[0\].delta must be at least the pair's own"),
    ("entries.0.extra_delta", -1e-6, r"entries\[0\].extra_delta"),
    ("entries.0.extra_delta", 1e-3, r"entries\[0\].extra_delta"),
    ("entries.0.extra_delta", "0", r"entries\[0\].extra_delta"),
    ("entries.0.epsilon", None, r"entries\[0\].epsilon"),
    ("entries.0.time", "noon", r"entries\[0\].time"),
    ("entries.0.time", "2026-01-31T12:00:00+01:00", r"entries\[0\].time"),
    ("entries.0.fingerprint", "short", r"entries\[0\].fingerprint"),
    ("entries.0.users", 0, r"entries\[0\].users"),
    ("entries.0.description", None, r"entries\[0\].description"),
    ("entries.0.pair", None, r"entries\[0\].pair must be an object"),
    ("entries.0.pair.law", "magic", r"pair.law must be one of"),
    ("entries.0.pair.law", [], r"pair.law must be one of"),
    ("entries.0.pair.trials", 1.5, r"pair.trials must be a whole number"),
    ("entries.0.pair.trials", 10**30, r"pair.trials must be at most"),
    ("entries.0.pair.trials", 0, r"pair.trials must be >= 1"),
    ("entries.0.pair.p", 2.0, r"pair.p must lie"),
    ("entries.0.pair.p", math.nan, r"pair.p"),
    ("entries.0.pair.shift", 0, r"pair.shift must be >= 1"),
    ("entries.0.pair.more", 0, r"nothing else"),
]


@pytest.mark.parametrize(("key", "value", "said"), TAMPERED, ids=lambda value: str(value)[:30])
def test_a_tampered_file_is_refused_with_a_sentence(tmp_path: Path, key: str, value: Any, said: str) -> None:
    ledger = Ledger.open(tmp_path / "ledger.json", "panel", BUDGET)
    ledger.spend(entry(ShiftPair(Binomial(100, 0.5))))
    document = json.loads(ledger.path.read_text())
    *way, last = key.split(".")
    inner = document
    for step in way:
        inner = inner[int(step) if step.isdigit() else step]
    inner[int(last) if last.isdigit() else last] = value
    ledger.path.write_text(json.dumps(document))
    for use in (lambda: Ledger.load(ledger.path), lambda: ledger.spend(claim(0.1, 1e-7)), ledger.close):
        with pytest.raises(DataError, match=said) as refused:
            use()
        assert str(refused.value).endswith(".") and str(refused.value).startswith("ledger")


@pytest.mark.parametrize("key", sorted({"version", "population", "epsilon", "delta", "state", "entries", "checksum"}))
def test_a_missing_key_is_named(tmp_path: Path, key: str) -> None:
    document = Account(population="panel", budget=BUDGET).document()
    del document[key]
    (tmp_path / "ledger.json").write_text(json.dumps(document))
    with pytest.raises(DataError, match=f"ledger.{key} must be there"):
        Ledger.load(tmp_path / "ledger.json")


def test_a_missing_key_of_an_entry_is_named() -> None:
    document = Account(population="panel", budget=BUDGET, entries=(claim(0.1, 1e-7),), version=2).document()
    del document["entries"][0]["pair"]
    document["checksum"] = _checksum({key: value for key, value in document.items() if key != "checksum"})
    with pytest.raises(DataError, match=r"ledger.entries\[0\].pair must be there"):
        Account.from_document(document)


@pytest.mark.parametrize(("content", "said"), [("", "JSON"), ("[1]", "object"), ("{", "JSON"), ("[" * 10**5, "JSON")])
def test_what_is_no_ledger_is_refused(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "ledger.json"
    path.write_text(content)
    with pytest.raises(DataError, match=said):
        Ledger.load(path)
    with pytest.raises(ParameterError, match="exists"):
        Ledger.load(tmp_path / "missing.json")
    with pytest.raises(ParameterError, match="folder"):
        Ledger.load(tmp_path)


# --- several processes ----------------------------------------------------------------------------


SPEND = """
import sys
from shuffledp.accounting.ledger import Entry, Ledger
from shuffledp.errors import InfeasibleError
from shuffledp.privacy import Privacy
question = Entry.of_claim(time="2026-01-31T12:00:00Z", fingerprint="0" * 64, users=1, description="",
                          claim=Privacy(0.1, 1e-7))
print("ready", flush=True)
sys.stdin.readline()
ledger, accepted = Ledger.load(sys.argv[1]), 0
for _ in range(2):
    try:
        ledger.spend(question)
        accepted += 1
    except InfeasibleError:
        pass
print(accepted)
"""


def test_eight_processes_lose_no_update_and_pass_no_budget(tmp_path: Path) -> None:
    """Sixteen questions, of which delta allows ten and not one more, however epsilon is composed."""
    path = tmp_path / "ledger.json"
    Ledger.open(path, "panel", BUDGET)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SPEND, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(8)
    ]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    accepted = sum(int(process.communicate(timeout=120)[0]) for process in processes)
    account = Ledger.load(path).account
    assert accepted == len(account.entries) == account.version - 1 == 10
    assert sorted(file.name for file in tmp_path.iterdir()) == ["ledger.json", "ledger.json.lock"]


HOLD = """
import sys, time
from pathlib import Path
from shuffledp.files import locked
with locked(Path(sys.argv[1]), timeout=1):
    print("held", flush=True)
    time.sleep(60)
"""


def test_whoever_waits_too_long_is_told_who_holds_the_lock(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "ledger.json", "panel", BUDGET, timeout=0.2)
    with child([sys.executable, "-c", HOLD, str(ledger.path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        started = time.monotonic()
        with pytest.raises(ParameterError, match=f"process {holder.pid} has held it for all of 0.2 s"):
            ledger.spend(claim(0.1, 1e-7))
        assert time.monotonic() - started < 5
        holder.kill()
    # The system gives the lock of a dead process back.
    ledger.spend(claim(0.1, 1e-7))


def test_nobody_spends_while_another_holds_the_lock(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "ledger.json", "panel", BUDGET, timeout=0.0)
    with locked(ledger.path, timeout=0.0, parameter="ledger"):
        for change in (lambda: ledger.spend(claim(0.1, 1e-7)), ledger.close):
            with pytest.raises(ParameterError, match="must be free"):
                change()
    ledger.spend(claim(0.1, 1e-7))
    assert len(Ledger.load(ledger.path).account.entries) == 1


def test_a_lock_file_that_its_holder_removes_is_not_locked_by_two(tmp_path: Path) -> None:
    """Whoever waited for it locks another file of that name, which others find locked."""
    path, held, done = tmp_path / "some.db", threading.Event(), threading.Event()

    def wait() -> None:
        with locked(path, timeout=10.0):
            held.set()
            done.wait(10)

    waiting = threading.Thread(target=wait)
    try:
        with locked(path, timeout=0.0):
            waiting.start()
            assert not held.wait(0.1)
            (tmp_path / "some.db.lock").unlink()
        assert held.wait(10)
        with pytest.raises(ParameterError, match="must be free"), locked(path, timeout=0.0):
            pass
    finally:
        done.set()
        waiting.join(10)


def test_links_share_one_lock(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "ledger.json", "panel", BUDGET)
    link = tmp_path / "link.json"
    link.symlink_to(ledger.path)
    with locked(link, timeout=0), pytest.raises(ParameterError, match="must be free"):
        Ledger.load(ledger.path, timeout=0.05).spend(claim(0.1, 1e-7))
    Ledger.load(link).spend(claim(0.1, 1e-7))
    assert link.is_symlink() and len(Ledger.load(ledger.path).account.entries) == 1


KILLED = """
import os, signal, sys
from pathlib import Path
from shuffledp.accounting.ledger import Entry, Ledger
from shuffledp.privacy import Privacy
ledger = Ledger.load(sys.argv[1])
die = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[2] == "fsync":
    os.fsync = die
else:
    Path.replace = die
ledger.spend(Entry.of_claim(time="2026-01-31T12:00:00Z", fingerprint="0" * 64, users=1, description="",
                            claim=Privacy(0.1, 1e-7)))
"""


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_a_killed_writer_leaves_the_old_file(tmp_path: Path, moment: str) -> None:
    ledger = Ledger.open(tmp_path / "ledger.json", "panel", BUDGET)
    ledger.spend(claim(0.1, 1e-7))
    before = ledger.path.read_bytes()
    killed = subprocess.run([sys.executable, "-c", KILLED, str(ledger.path), moment], check=False)
    assert killed.returncode == -9 and ledger.path.read_bytes() == before
    ledger.spend(claim(0.1, 1e-7))
    assert Ledger.load(ledger.path).account.version == 3


def test_a_failure_to_reach_the_disk_spends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger.open(tmp_path / "ledger.json", "panel", BUDGET)
    before = ledger.path.read_bytes()

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="Input/output"):
        patched.setattr(os, "fsync", fail)
        ledger.spend(claim(0.1, 1e-7))
    assert ledger.path.read_bytes() == before and ledger.account.version == 1


# --- from plans -----------------------------------------------------------------------------------


def test_entries_of_plans() -> None:
    now = datetime(2026, 1, 31, 12, tzinfo=UTC)
    coins = entry_of(BinarySum.plan(users=1000, privacy=BUDGET, method="coins"), now)
    shares = BinarySum.plan(users=1000, privacy=BUDGET, method="shares")
    assert coins.extra_delta == 0 and coins.time == "2026-01-31T12:00:00+00:00" and coins.users == 1000
    assert entry_of(shares, now).extra_delta == shares.guarantee().delta > 0
    assert entry_of(shares, now).fingerprint == shares.fingerprint
    with pytest.raises(ParameterError, match="time zone"):
        entry_of(shares, now.replace(tzinfo=None))


def test_a_claim_is_no_better_than_the_pair_behind_it() -> None:
    coins = entry_of(BinarySum.plan(users=1000, privacy=Privacy(0.5, 1e-7), method="coins"), datetime.now(UTC))
    by_pair, by_claim = (Spending([one] * 3).epsilon(1e-6) for one in (coins, coins.claim_only()))
    assert by_pair < 0.7 * by_claim
    assert replace(coins, extra_delta=1e-8).claim_only().extra_delta == 0
