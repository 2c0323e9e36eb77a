"""Whatever kind of answer a task has, its release can be shown: as the plan presents it, or as plain numbers."""

from dataclasses import asdict
from typing import Any

import pytest

from shuffledp import Privacy, RandomBits
from shuffledp.dashboard.charts import chart_of
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.service.analyzer.desk import release_of
from shuffledp.service.presenting import in_words, presented
from shuffledp.simulation.environments.synthetic import synthetic_values

# A family, what it must be told, its method, and what is drawn of its answer.
KINDS: list[tuple[str, dict[str, Any], str, str | None]] = [
    ("binary-sum", {}, "coins", None),
    ("histogram", {"categories": ["a", "b"]}, "decoys", "bars"),
    ("ranges", {"domain": "0:15"}, "auto", "line"),
    ("vector-sum", {"dimension": 2, "radius": 1}, "bits", "bars"),
    ("distribution-test", {"categories": 4, "distance": 0.5}, "decoys", None),
    ("grouped-count", {"groups": ["x", "y"]}, "decoys", "bars"),
]


@pytest.mark.parametrize(("family", "told", "method", "drawn"), KINDS, ids=[kind[0] for kind in KINDS])
def test_every_kind_of_answer_can_be_shown(family: str, told: dict[str, Any], method: str, drawn: str | None) -> None:
    plan = PROTOCOLS[family].plan(users=300, privacy=Privacy(4, 1e-3), method=method, **told)
    answer = plan.sample_estimate(plan.check_values(synthetic_values(plan, seed=1)), bits=RandomBits.seeded(1))
    newest = asdict(release_of(answer, 300))
    shown = presented(plan, newest)
    assert shown.facts and all(isinstance(words, str) and words for _, words in shown.facts)
    chart = chart_of(shown)
    assert (None if chart is None else chart["kind"]) == drawn
    if chart is not None:
        assert all(
            low <= value <= high for low, value, high in zip(chart["low"], chart["y"], chart["high"], strict=True)
        )


def test_values_of_any_kind_are_words() -> None:
    assert [in_words(value) for value in (True, "a", 0.5, [1, None], list(range(9)))] == [
        *("True", "a", "0.5", "[1, -]"),
        "[0, 1, 2, 3, 4, 5, ...]",
    ]
