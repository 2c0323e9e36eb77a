"""Messages that are lost where their number is random: what is certain is counted, and nothing is no answer."""

from typing import Any

import numpy as np
import pytest

from shuffledp import BinarySum, Histogram, Privacy, RandomBits, Ranges, UniformityTest
from shuffledp.errors import BrokenBatchError
from shuffledp.messages import Batch

TARGET, USERS = Privacy(1, 1e-6), 200
SIZES = {"buckets": 500, "hadamard": 500}


def _histogram(method: str) -> Any:
    return Histogram.plan(users=USERS, privacy=TARGET, categories=SIZES.get(method, 6), method=method)


PLANS = {
    **{
        f"histogram/{method}": (_histogram, method, 1) for method in ("decoys", "buckets", "hadamard", "opt-in", "zsum")
    },
    **{f"histogram/{method}": (_histogram, method, 1) for method in ("correlated", "fake-users")},
    "binary-sum/poisson-bits": (lambda m: BinarySum.plan(users=USERS, privacy=TARGET, method=m), "poisson-bits", 1),
    "ranges/tree": (lambda m: Ranges.plan(users=USERS, privacy=TARGET, domain=16, method=m), "tree", None),
}
CERTAIN = [name for name in PLANS if "fake-users" not in name]


def _sent(name: str) -> tuple[Any, Batch, int]:
    make, method, own = PLANS[name]
    plan = make(method)
    values = np.arange(USERS) % 2
    reports = plan.randomize(values, bits=RandomBits.seeded(1))
    return plan, Batch(reports.payloads, USERS, reports.labels), len(plan.levels) if own is None else own


@pytest.mark.parametrize("name", CERTAIN)
def test_fewer_messages_than_users_are_counted_and_widen_the_bound(name: str) -> None:
    plan, batch, own = _sent(name)
    whole = plan.analyze(batch)
    assert whole.dropped == 0
    labels = None if batch.labels is None else batch.labels[:150]
    answer = plan.analyze(Batch(batch.payloads[:150], USERS, labels))
    # Opt-in's own messages are not all that it sends: of 150 messages some are others.
    assert answer.dropped >= own * USERS - 150
    assert answer.bound >= whole.bound + answer.dropped * plan.message_influence * (1 - 1e-12)
    # What could not be read at all is among what is missing.
    told = plan.estimate(plan.tally(Batch(batch.payloads[:150], USERS, labels), malformed=7))
    assert told.dropped >= answer.dropped
    assert plan.estimate(plan.tally(batch, malformed=7)).dropped == 7


@pytest.mark.parametrize("name", PLANS)
def test_an_empty_batch_is_no_answer(name: str) -> None:
    plan, batch, _ = _sent(name)
    labels = None if batch.labels is None else batch.labels[:0]
    with pytest.raises(BrokenBatchError, match="messages of 200 users must be at least one that can be read, got none"):
        plan.analyze(Batch(batch.payloads[:0], USERS, labels))


def test_a_level_of_ranges_that_is_missing_does_not_hide_behind_another() -> None:
    plan, batch, _ = _sent("ranges/tree")
    first = plan.level_sizes[0]
    left = batch.payloads[batch.payloads >= first]
    assert len(left) > USERS and plan.analyze(Batch(left, USERS)).dropped == USERS


def test_a_test_counts_what_is_missing() -> None:
    plan = UniformityTest.plan(users=2000, privacy=TARGET, categories=4, distance=0.7)
    reports = plan.randomize(np.arange(2000) % 4, bits=RandomBits.seeded(1))
    kept = Batch(reports.payloads[:1500], 2000, None if reports.labels is None else reports.labels[:1500])
    assert plan.analyze(kept).dropped == 500
    with pytest.raises(BrokenBatchError, match="got none"):
        plan.analyze(Batch(reports.payloads[:0], 2000, None if reports.labels is None else reports.labels[:0]))
