"""A distribution test is a plan like any other: saved, simulated, audited, charged and shown."""

import json
from datetime import UTC, datetime

import numpy as np
import pytest

from shuffledp.audit.trials import audit_plan
from shuffledp.errors import DataError, InfeasibleError, ParameterError
from shuffledp.messages import Batch
from shuffledp.privacy import Privacy
from shuffledp.protocols.catalogue import PROTOCOLS, plan_from_document
from shuffledp.protocols.distribution_test import UniformityTest
from shuffledp.protocols.ledger_entries import entry_of
from shuffledp.protocols.tallies import Tally
from shuffledp.randomness import RandomBits
from shuffledp.simulation.run import simulate
from shuffledp.testing.statistics import assert_same_law

TARGET = Privacy(1, 1e-6)
ASKED = {"users": 300, "privacy": TARGET, "categories": ["a", "b", "c", "d", "e", "f"], "distance": 0.4}
CLAIM = [0.25, 0.25, 0.2, 0.1, 0.1, 0.1]
METHODS = ("decoys", "compressed", "rows")


@pytest.mark.parametrize("method", ["auto", *METHODS])
@pytest.mark.parametrize("against", [None, CLAIM])
def test_a_document_makes_the_plan_again_and_a_changed_one_is_refused(method: str, against) -> None:
    plan = UniformityTest.plan(**ASKED, method=method, against=against, false_alarm=0.1, honest_fraction=0.9)
    document = json.loads(json.dumps(plan.document()))
    again = plan_from_document(document)
    assert again == plan and again.fingerprint == plan.fingerprint and again.domain.names() == list("abcdef")
    for key, value in (("false_alarm", 0.2), ("users", 301), ("method", "magic"), ("domain", None)):
        with pytest.raises((DataError, ParameterError)):
            plan_from_document({**document, key: value})
    for key, value in (("distance", "far"), ("false_alarm", None), ("certificate", "magic"), ("categories", 7)):
        with pytest.raises(ParameterError):
            plan_from_document({**document, "domain": {**document["domain"], key: value}})


def test_fingerprints_tell_claims_and_public_coins_apart() -> None:
    asked = [{}, {"false_alarm": 0.1}, {"against": CLAIM}, {"distance": 0.3}, {"certificate": "proved"}]
    asked += [{"method": "rows"}, {"method": "compressed"}, {"method": "compressed", "public_seed": 2}]
    plans = [UniformityTest.plan(**{**ASKED, "method": "decoys", **more}) for more in asked]
    assert len({plan.fingerprint for plan in plans}) == len(asked)


@pytest.mark.parametrize("method", METHODS)
def test_a_simulation_of_messages_has_the_law_that_is_sampled(method: str) -> None:
    plan, values = UniformityTest.plan(**ASKED, method=method, against=CLAIM), np.arange(300) % 6
    found = [
        [simulate(plan, values, bits=RandomBits.seeded(seed), fast=fast).score for seed in range(first, first + 300)]
        for fast, first in ((False, 0), (True, 1000))
    ]
    assert_same_law(*found)
    verdict = simulate(plan, plan.encode(list("abcdef") * 50), bits=RandomBits.secure())
    assert not verdict.simulated and simulate(plan, values, bits=RandomBits.seeded(1)).simulated


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [6, 150])
def test_any_way_to_cut_a_batch_gives_the_same_verdict(method: str, size: int) -> None:
    plan = UniformityTest.plan(**{**ASKED, "categories": size}, method=method)
    reports = plan.randomize(np.arange(300) % size, bits=RandomBits.seeded(1))
    labels = [None] * 3 if reports.labels is None else np.array_split(reports.labels, 3)
    pieces = zip(np.array_split(reports.payloads, 3), (300, 0, 0), labels, strict=True)
    merged = Tally.merge([plan.tally(Batch(*piece)) for piece in pieces])
    assert plan.estimate(merged) == plan.analyze(Batch(reports.payloads, 300, reports.labels))


@pytest.mark.parametrize("method", METHODS)
def test_an_audit_stands_and_refutes_a_twin(method: str) -> None:
    plan = UniformityTest.plan(**{**ASKED, "users": 40, "privacy": Privacy(1, 1e-3)}, method=method)
    assert audit_plan(plan, bits=RandomBits.seeded(1), trials=20_000).verdict == "stands"
    assert audit_plan(plan, bits=RandomBits.seeded(1), trials=20_000, sabotage=0.02).verdict == "refuted"


@pytest.mark.parametrize("method", METHODS)
def test_privacy_is_data(method: str) -> None:
    plan = UniformityTest.plan(**ASKED, method=method, honest_fraction=0.9)
    guarantee = plan.guarantee()
    assert guarantee.delta == plan.document()["delta_proved"] <= TARGET.delta and guarantee.pair.describe().startswith(
        "P"
    )
    everybody, fewer = (plan.epsilon_with(fraction) for fraction in (0.9, 0.5))
    assert everybody <= TARGET.epsilon < fewer
    assert entry_of(plan, datetime(2026, 1, 31, tzinfo=UTC)).fingerprint == plan.fingerprint
    assert plan.layout.users == 300 and len(plan.collusions()) >= 4


@pytest.mark.parametrize("method", METHODS)
def test_a_liar_moves_the_distance_by_no_more_than_is_said(method: str) -> None:
    plan = UniformityTest.plan(**ASKED, method=method)
    reports = plan.randomize(np.zeros(300, dtype=np.int64), bits=RandomBits.seeded(1))
    honest = plan.analyze(Batch(reports.payloads, 300))
    first = int(reports.sizes[0])
    for lie in (0, plan.alphabet_size - 1):
        sent = np.full(plan.messages_per_user_max, lie, dtype=reports.payloads.dtype)
        lied = plan.analyze(Batch(np.concatenate((sent, reports.payloads[first:])), 300))
        assert abs(lied.statistic - honest.statistic) <= plan.influence
    assert not plan.warnings and "at most" in plan.lying_client


def test_what_is_shown() -> None:
    plan = UniformityTest.plan(**ASKED)
    values = np.zeros(300, dtype=np.int64)
    shown = plan.present(simulate(plan, values, bits=RandomBits.seeded(1)), plan.true_value(values))
    assert dict(shown.facts)["verdict"].startswith("not uniform") and shown.figures["rejected"]
    # Everybody in one of six categories: 6 (25/36 + 5/36) = 5.
    assert plan.true_value(values) == pytest.approx(5.0) and plan.true_value(np.arange(300) % 6) == 0
    assert [row.cells[0] for row in plan.compared().rows] == ["this plan (decoys)", "local model, public coins"]


def test_the_family_is_in_the_catalogue_and_keeps_to_limits() -> None:
    assert PROTOCOLS["distribution-test"] is UniformityTest
    assert list(UniformityTest.methods) == list(METHODS)
    with pytest.raises(InfeasibleError, match="max_messages"):
        UniformityTest.plan(**ASKED, max_messages=1)
    with pytest.raises(InfeasibleError, match="constants"):
        UniformityTest.plan(**ASKED, constants="paper")
    with pytest.raises(ParameterError, match="distance"):
        UniformityTest.plan(users=300, privacy=TARGET, categories=6)


@pytest.mark.parametrize(
    ("method", "key", "value"),
    [
        ("decoys", "against", 0),
        ("decoys", "against", "many"),
        ("compressed", "group_count", 4.0),
        ("compressed", "group_count", "4"),
        ("compressed", "public_seed", 1.5),
        ("rows", "distance", [0.4]),
        ("rows", "false_alarm", "rarely"),
        ("rows", "certificate", ["proved"]),
    ],
)
def test_a_document_with_a_value_of_another_kind_is_refused_in_one_sentence(method: str, key: str, value) -> None:
    document = json.loads(json.dumps(UniformityTest.plan(**ASKED, method=method).document()))
    with pytest.raises(ParameterError, match=f"^{key} must .*[.]$"):
        plan_from_document({**document, "domain": {**document["domain"], key: value}})


def test_noise_for_other_bins_is_refused() -> None:
    document = UniformityTest.plan(**ASKED, method="decoys").document()
    for bins in (5, 7, "six", None):
        with pytest.raises(ParameterError):
            plan_from_document({**document, "noise": {**document["noise"], "bins": bins}})
