"""Estimates on an engine: the same bits however rows are cut and whoever works, and the answers that they should be."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from shuffledp import Privacy
from shuffledp.engines import JobKey, LocalEngine, estimating
from shuffledp.engines.estimating import Keyed, estimate_on, stream_rows
from shuffledp.engines.sources import Held
from shuffledp.errors import ParameterError, TooFewReportsError
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.protocols.domains.axes import parse_axes
from shuffledp.protocols.plan import Plan, changed
from shuffledp.simulation.environments.synthetic import synthetic_values

USERS = 700
NUMBERS = {"low": 0.0, "high": 2.0}
DOMAINS: dict[str, dict[str, Any]] = {
    "binary-sum": {},
    "bounded-sum": NUMBERS,
    "vector-sum": {"dimension": 3, "radius": 1.0},
    "histogram": {"categories": 4},
    "ranges": {"domain": parse_axes("0:9", None)},
    "distinct-elements": {"categories": 3},
    "mean": NUMBERS,
    "moments": NUMBERS,
    "weighted-mean": {**NUMBERS, "largest_weight": 3.0},
    "distribution-test": {"categories": 3, "distance": 0.25},
    "repeated-count": {"at_most": 3},
    "repeated-histogram": {"categories": 3, "at_most": 2, "method": "decoys"},
}
SEVERAL = ("binary-sum", "bounded-sum", "vector-sum", "histogram")
DERIVED = ("mean", "moments", "weighted-mean")
METHODS = [
    *[(name, method) for name in SEVERAL for method in PROTOCOLS[name].methods],
    *[(name, None) for name in DOMAINS if name not in (*SEVERAL, *DERIVED)],
    # Their sums take the same road.
    *[pytest.param(name, None, marks=pytest.mark.sweep) for name in DERIVED],
]


def plan_of(name: str, method: str | None = None) -> Plan:
    asked = {**DOMAINS[name], **({} if method is None else {"method": method})}
    if method in ("buckets", "hadamard"):
        asked["categories"] = 1000  # they say less than a name only where there are many
    return PROTOCOLS[name].plan(users=USERS, privacy=Privacy(1, 1e-6), **asked)


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Streams of few rows, and many parts of them."""
    monkeypatch.setattr(estimating, "STREAM_MESSAGES", 1 << 7)
    monkeypatch.setattr(estimating, "_LITTLE", 0)
    yield monkeypatch


def answer(plan: Plan, values: Any, *, fast: bool = False, processes: int = 1, seed: int = 5) -> Any:
    with LocalEngine(processes=processes) as engine:
        return estimate_on(engine, plan, Held(values), key=JobKey.seeded(seed), fast=fast)


def said(estimated: Any) -> str:
    return repr(estimated.answer)


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_how_rows_are_cut_changes_nothing(name: str, method: str | None, many: pytest.MonkeyPatch) -> None:
    plan = plan_of(name, method)
    values = plan.check_values(synthetic_values(plan, seed=1))
    for fast in (False, True):
        assert plan.adds_up
        found = answer(plan, values, fast=fast)
        for tasks in (1, 1000):
            many.setattr(estimating, "_TASKS_EACH", tasks)
            again = answer(plan, values, fast=fast)
            assert (again.parts == 1) == (tasks == 1)
            assert said(again) == said(found)
        estimate = found.answer
        assert estimate.simulated and estimate.dropped == 0
        truth = plan.true_value(values)
        if hasattr(estimate, "value"):
            # Synthetic data and a fixed seed: five standard errors of the noise, which a run without noise would meet
            # as well, and one with noise that is drawn twice, or of too few people, would not.
            apart = np.abs(np.asarray(estimate.value) - np.asarray(truth))
            assert np.all(apart <= 5 * np.max(plan.standard_errors_for(values)) + 1e-9), (estimate.value, truth)
        many.setattr(estimating, "_TASKS_EACH", 8)


def test_processes_change_nothing_and_seeds_do(many: pytest.MonkeyPatch) -> None:
    plan = plan_of("histogram", "decoys")
    values = plan.check_values(synthetic_values(plan, seed=1))
    by_one, by_two = answer(plan, values), answer(plan, values, processes=2)
    assert by_two.tasks == 2 and by_one.tasks == 1
    assert said(by_one) == said(by_two)
    assert said(answer(plan, values, seed=6)) != said(by_one)
    assert not answer_secure(plan, values).simulated


def answer_secure(plan: Plan, values: Any) -> Any:
    with LocalEngine(processes=1) as engine:
        return estimate_on(engine, plan, Held(values), key=JobKey.generate()).answer


def test_no_two_streams_have_the_same_noise(many: pytest.MonkeyPatch) -> None:
    """Everybody has the same value: streams whose randomness was shared would say the same."""
    plan = plan_of("binary-sum", "rr")
    rows = stream_rows(plan)
    values = np.zeros(USERS, dtype=np.int64)
    keyed = Keyed.of(LocalEngine(processes=1), JobKey.seeded(3), plan)
    parts = [
        reports.payloads.tobytes()
        for purpose in ("randomize 0", "randomize 1")
        for start in range(0, USERS - rows, rows)
        for reports, _ in estimating.MessagesOf(plan, plan.mechanism(USERS), keyed, purpose, rows)._made(
            start, values[start : start + rows]
        )
    ]
    assert len(set(parts)) == len(parts) > 8


def search_of(method: str, users: int) -> Any:
    asked = {"length": 16, "top": 2, "alphabet": b"ab", "keep": 4, "method": method}
    return PROTOCOLS["heavy-hitters"].plan(users=users, privacy=Privacy(8, 1e-6), **asked)


@pytest.mark.parametrize("method", ["everybody", "prefixes"])
def test_a_search_uses_no_stream_twice_and_asks_nobody_of_a_group_again(method: str, many: pytest.MonkeyPatch) -> None:
    many.setattr(estimating, "BLOCK_ROWS", 256)
    search = search_of(method, 3000)
    values = search.check_values(np.array(["ab"] * 1500 + ["b"] * 1200 + ["a"] * 300))
    streams: list[tuple[str, int]] = []
    bits, made = estimating.Keyed.bits, estimating.MessagesOf._made
    asked: dict[str, list[Any]] = {}

    def noted(self: Any, purpose: str, row: int) -> Any:
        streams.append((purpose, row))
        return bits(self, purpose, row)

    def counted(self: Any, row: int, chosen: Any) -> Any:
        asked.setdefault(self.purpose, []).append(len(chosen))
        return made(self, row, chosen)

    many.setattr(estimating.Keyed, "bits", noted)
    many.setattr(estimating.MessagesOf, "_made", counted)
    rounds: list[Any] = []
    with LocalEngine(processes=1) as engine:
        found = estimate_on(engine, search, Held(values), key=JobKey.seeded(1), told=rounds.append)
    assert [each.string for each in found.answer.found] == ["ab", "b"]
    noise = [each for each in streams if each[0] != "order"]
    assert len(set(noise)) == len(noise) and len(asked) == len(rounds) > 1
    everybody = search.users if method == "everybody" else None
    sizes = [sum(each) for each in asked.values()]
    assert sizes == [everybody or search.ask(state).users for state in rounds]
    # The same by another cut.
    many.setattr(estimating, "_TASKS_EACH", 1)
    assert repr(answer(search, values, seed=1).answer.found) == repr(found.answer.found)


def test_groups_are_random_and_disjoint(many: pytest.MonkeyPatch) -> None:
    many.setattr(estimating, "BLOCK_ROWS", 64)
    search = search_of("prefixes", 1000)
    rows = np.arange(1000)
    seen: dict[str, list[int]] = {}

    def chosen(self: Any, row: int, values: Any) -> Any:
        seen.setdefault(self.purpose, []).extend(values.tolist())
        return ()

    many.setattr(estimating.MessagesOf, "_made", chosen)
    with LocalEngine(processes=1) as engine:
        run = estimating._Run(engine, search, Held(rows), Keyed.of(engine, JobKey.seeded(2), search), None)
        state, sizes = search.start(), (400, 350, 250)
        for place, users in enumerate(sizes):
            batch = search.learner().ask(state).batches[0]
            mechanism = replace(batch.mechanism, plan=changed(batch.mechanism.plan, users=users))
            run._group(replace(batch, mechanism=mechanism), sum(sizes[:place]), place)
    groups = list(seen.values())
    assert [len(group) for group in groups] == list(sizes)
    assert sorted(row for group in groups for row in group) == rows.tolist()
    # Of 1,000 rows the first 400 have a mean of 199.5; a random 400 one of 499.5, with a deviation of 11.
    assert abs(np.mean(groups[0]) - 499.5) < 60


def test_rows_of_a_stream_are_the_plans(many: pytest.MonkeyPatch) -> None:
    many.setattr(estimating, "STREAM_MESSAGES", 1 << 18)
    for name in ("binary-sum", "histogram", "vector-sum"):
        plan = plan_of(name)
        assert (
            stream_rows(plan) * plan.messages_per_user_mean
            <= 1 << 18
            < 2 * stream_rows(plan) * max(1.0, plan.messages_per_user_mean)
        )


def test_too_few_people_and_plans_that_hold_everybody_are_refused() -> None:
    plan = plan_of("binary-sum", "rr")
    with pytest.raises(TooFewReportsError):
        answer(plan, np.zeros(USERS - 1, dtype=np.int64))
    masked = PROTOCOLS["masked-sum"].plan(users=10, privacy=Privacy(1, 1e-6), high=1)
    with pytest.raises(ParameterError, match="must take people in pieces"):
        answer(masked, np.zeros(10, dtype=np.int64))
    with pytest.raises(ParameterError, match="law that adds up"):
        answer(masked, np.zeros(10, dtype=np.int64), fast=True)
