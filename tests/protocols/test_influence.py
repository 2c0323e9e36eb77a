"""What one client that lies can do, by trying it: every method counts it in the same way."""

from typing import Any

import numpy as np
import pytest

from shuffledp import BinarySum, BoundedSum, Histogram, Privacy, RandomBits, Ranges, VectorSum
from shuffledp.errors import InfeasibleError
from shuffledp.messages import Batch, Reports

TARGET = Privacy(1, 1e-6)
_LETTERS, _HONEST = 12, 12
# By how many categories a method has something to do.
_SIZES = {"buckets": 300, "hadamard": 300, "count-min": 300, "sketch": 300, "fake-users": 300}


def _plan(name: str) -> Any:
    family, method = name.split("/")
    users = 2000 if method == "rr" else 1200 if family in ("vector-sum", "bounded-sum") else 300
    common: dict[str, Any] = {"users": users, "privacy": TARGET, "method": method}
    if family == "binary-sum":
        return BinarySum.plan(**common)
    if family == "bounded-sum":
        return BoundedSum.plan(**common, low=0, high=1)
    if family == "vector-sum":
        return VectorSum.plan(**common, dimension=3, radius=1)
    if family == "ranges":
        return Ranges.plan(**common, domain=16)
    return Histogram.plan(**common, categories=_SIZES.get(method, 4))


METHODS = [
    *(f"binary-sum/{method}" for method in BinarySum.methods),
    *(f"histogram/{method}" for method in Histogram.methods),
    *("bounded-sum/bits", "vector-sum/bits", "ranges/tree"),
]
# Where some report reaches the figure, and it is no bound alone.
REACHED = [f"binary-sum/{method}" for method in ("coins", "rr", "poisson-bits", "correlated", "pure")]
REACHED += ["histogram/decoys", "histogram/correlated", "bounded-sum/bits"]


def _reports_of_a_liar(plan: Any, values: Any, bits: RandomBits) -> list[Reports]:
    """As many messages as are taken from one, all the same; none; and honest reports of several values."""
    most = plan.messages_per_user_max
    labelled = plan.randomize(values[:1], bits=bits).labels
    found = []
    for letter in range(min(plan.alphabet_size, _LETTERS)):
        same = np.full(most, letter, dtype=np.uint64)
        found.append(Reports(same, np.array([most]), None if labelled is None else np.zeros(most, labelled.dtype)))
    return [*found, *(plan.randomize(values[row : row + 1], bits=bits) for row in range(_HONEST))]


@pytest.mark.parametrize("name", METHODS)
def test_no_report_of_one_client_moves_a_number_further_than_its_influence(name: str) -> None:
    try:
        plan = _plan(name)
    except InfeasibleError as refused:
        pytest.skip(str(refused))
    if plan.influence is None:
        assert plan.can_be_spoiled
        return
    bits = RandomBits.seeded(1)
    values = plan.check_values(plan.domain.synthesize(plan.users, np.random.default_rng(1)))
    others = plan.randomize(values[1:], bits=bits)
    answers = []
    for lie in _reports_of_a_liar(plan, values, bits):
        labels = None if others.labels is None else np.concatenate((others.labels, lie.labels))
        payloads = np.concatenate((others.payloads.astype(np.uint64), lie.payloads.astype(np.uint64)))
        answer = np.atleast_1d(plan.analyze(Batch(payloads, plan.users, labels)).value)
        answers.append(np.cumsum(answer) if name.startswith("ranges") else answer)
    moved = float(np.ptp(np.stack(answers), axis=0).max())
    # Where a cut is is random: it is as far off as the answer may be.
    allowed = plan.influence + (0.0 if plan.is_unbiased else plan.error_bound)
    assert moved <= allowed * (1 + 1e-9), (moved, plan.influence)
    if name in REACHED:
        assert moved == pytest.approx(plan.influence, rel=1e-9)
