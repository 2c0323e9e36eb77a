"""Tallies travel between machines: what is none is refused, and adding them up is exact."""

import contextlib
import copy
import json
import pickle
from typing import Any

import numpy as np
import pytest

from shuffledp import BinarySum, Histogram, Privacy, RandomBits
from shuffledp.errors import BatchError, DataError, InfeasibleError, ParameterError
from shuffledp.messages import Batch
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.protocols.tallies import Tally

TARGET = Privacy(1, 1e-6)
PLAN = Histogram.plan(users=200, privacy=TARGET, categories=6, method="decoys")
LEARNER = PLAN.learner()


def _told() -> dict[str, Any]:
    reports = PLAN.randomize(np.arange(200) % 6, bits=RandomBits.seeded(1))
    tally = PLAN.tally(Batch(reports.payloads, 200))
    return json.loads(json.dumps(LEARNER.tell(LEARNER.start(), 200, {1: tally}).document()))


def test_a_state_with_its_tally_comes_back() -> None:
    document = _told()
    assert LEARNER.resume(document).document() == document


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("malformed", value) for value in (-15, float("nan"), 1.5, None, True, "1", 10**400)),
        *(("reports", value) for value in (float("nan"), 200.0, None, -200, "200", [])),
        *(("messages", value) for value in (float("inf"), None, -1, {})),
        *(("unsigned", value) for value in (0, "", None, [])),
        *(("counts", value) for value in ([], None, "x", {}, [1] * 5, [1] * 7, [1.9] * 6, [True] * 6, [None] * 6)),
        *(("counts", value) for value in ([[1] * 6], [[1], [2, 3]], [1, 2, 3, 4, 5, 10**400], 6, [[]])),
        ("unsigned", True),
    ],
)
def test_a_tally_that_was_edited_is_refused_in_a_sentence(name: str, value: Any) -> None:
    document = _told()
    document["tally"][name] = value
    with pytest.raises(ParameterError) as refused:
        LEARNER.resume(document)
    assert str(refused.value).endswith(".") and "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["counts", "unsigned", "reports", "messages", "malformed"])
def test_a_tally_that_lacks_a_field_is_refused(name: str) -> None:
    document = _told()["tally"]
    del document[name]
    with pytest.raises(DataError, match=f"tally.{name} must be"):
        LEARNER.told_from(document)
    with pytest.raises(DataError, match="tally must be an object"):
        LEARNER.told_from([document])


def test_a_tally_of_another_plan_or_of_another_number_of_reports_is_not_told() -> None:
    good = LEARNER.told_from(_told()["tally"])
    assert LEARNER.tell(LEARNER.start(), 200, {1: good}).users == 200
    other = BinarySum.plan(users=200, privacy=TARGET, method="coins").tally(Batch(np.ones(9, np.uint8), 200))
    with pytest.raises(ParameterError, match=r"tally must be int64 of shape \(6,\)"):
        LEARNER.tell(LEARNER.start(), 200, {1: other})
    for reports in (199, 201):
        with pytest.raises((BatchError, ParameterError), match=f"got {reports}"):
            LEARNER.tell(LEARNER.start(), 200, {1: Tally(good.counts, reports, good.messages)})


def test_a_tally_of_shares_comes_back_to_the_last_bit() -> None:
    plan = BinarySum.plan(users=200, privacy=TARGET, method="shares")
    learner = plan.learner()
    reports = plan.randomize(np.arange(200) % 2, bits=RandomBits.seeded(1))
    state = learner.tell(learner.start(), 200, {1: plan.tally(Batch(reports.payloads, 200))})
    again = learner.resume(json.loads(json.dumps(state.document())))
    assert again == state and again.tally.counts.dtype == np.uint64
    broken = copy.deepcopy(state.document())
    broken["tally"]["counts"][0][0] = -1
    with pytest.raises(DataError, match=r"tally\.counts must be lists of whole numbers in 0\.\."):
        learner.resume(broken)


def test_merging_is_exact_and_of_one_kind() -> None:
    large = Tally(np.array([(1 << 63) + 5], dtype=np.uint64), 1, 1)
    one = Tally(np.array([1], dtype=np.uint64), 1, 1)
    assert Tally.merge([one, large]).counts.tolist() == [(1 << 63) + 6]
    signed = Tally(np.array([1]), 1, 1)
    for parts in ([signed, large], [large, signed], [], [signed, Tally(np.array([1, 2]), 1, 1)]):
        with pytest.raises(ParameterError, match="tallies must be of one plan"):
            Tally.merge(parts)


@pytest.mark.parametrize("name", ["histogram", "binary-sum", "bounded-sum"])
def test_what_counts_elsewhere_counts_as_the_plan_does(name: str) -> None:
    """Of every method that a family has: what is sent to other processes makes the same tally."""
    family = PROTOCOLS[name]
    domain = {"histogram": {"categories": 5}, "bounded-sum": {"low": 0, "high": 1}}.get(name, {})
    tried = 0
    for method in family.methods:
        with contextlib.suppress(InfeasibleError):
            plan: Any = family.plan(users=3000, privacy=Privacy(1, 1e-5), method=method, **domain)
            values = plan.check_values(np.zeros(3000, dtype=np.int64))
            reports = plan.randomize(values, bits=RandomBits.seeded(1))
            batch = Batch(reports.payloads, 3000, reports.labels)
            tallies = [plan.tally(batch, 2), pickle.loads(pickle.dumps(plan.mechanism(3000).tallier))(batch, 2)]
            assert tallies[0].document() == tallies[1].document()
            tried += 1
    assert tried >= 2
