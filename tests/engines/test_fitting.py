"""Fits on an engine: one random order of everybody, and rounds whose sums are the same whoever adds them up."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.fitting import TableRows, as_they_are
from shuffledp import Privacy
from shuffledp.engines import JobKey, LocalEngine, fitting
from shuffledp.engines.fitting import DealtPeople
from shuffledp.errors import ParameterError
from shuffledp.learn.optimize import L2Ball, LogisticLoss, Problem, plan
from shuffledp.learn.optimize.running import run_solver
from shuffledp.testing.statistics import assert_deviation, assert_law, assert_mean

USERS = 3000
LOSS = LogisticLoss()
FEATURES = np.arange(1, USERS + 1)[:, np.newaxis] * np.sqrt([2, 3]) % 1.4 - 0.7
TABLE = np.column_stack((FEATURES, np.where(FEATURES @ [1, -1] > 0, 1.0, -1.0)))


@pytest.fixture(autouse=True)
def small_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "_BUCKET_BYTES", 1 << 14)


@pytest.fixture(scope="module")
def solver() -> Any:
    problem = Problem.of(
        LOSS, L2Ball(dimension=2, radius=2), users=USERS - 100, privacy=Privacy(2, 1e-4), visits=3, rounds=6
    )
    return plan(problem, solver="agd")


def dealt(engine: LocalEngine, source: TableRows, seed: int = 1, **asked: Any) -> DealtPeople:
    how = {"fingerprint": "00" * 32, "width": 2, "questions": ("rows",)} | asked
    return DealtPeople(engine, source, as_they_are, key=JobKey.seeded(seed), **how)


def model(engine: LocalEngine, solver: Any, source: TableRows) -> Any:
    people = dealt(engine, source)
    try:
        return run_solver(solver, people.sums(LOSS, 100)).theta
    finally:
        people.close()


def test_parts_processes_and_kills_change_no_bit(solver: Any, tmp_path: Path) -> None:
    by_one = model(LocalEngine(processes=1, folder=tmp_path), solver, TableRows(TABLE))
    assert LOSS.objective(by_one, TABLE[:, :2], TABLE[:, 2]) < 0.65
    mark, spills = tmp_path / "killed", tmp_path / "spills"
    spills.mkdir()
    with LocalEngine(processes=2, memory=340 << 20, folder=spills) as engine:
        by_two = model(engine, solver, TableRows(TABLE, mark=mark, pieces=256))
    assert mark.exists()
    assert by_two.tobytes() == by_one.tobytes()
    assert not list(spills.iterdir())


def test_everybody_is_in_the_order_once_and_anywhere() -> None:
    engine, found = LocalEngine(processes=1), []
    table = np.column_stack((np.zeros((64, 2)), np.arange(64) == 5)).astype(float)
    for seed in range(250):
        people = dealt(engine, TableRows(table, pieces=16), seed)
        flags = people.flags(64)["rows"]
        people.close()
        assert flags.size == 64 and flags.sum() == 1 == people.clipped["rows"]
        found.append(int(flags.argmax()))
    assert_law(found, 0, np.full(64, 1 / 64))


def test_a_rounds_sum_has_the_error_that_its_plan_says(solver: Any) -> None:
    engine, state = LocalEngine(processes=1), solver.start()
    cohort = solver.ask(state)
    exact, told = None, []
    for seed in range(100):
        people = dealt(engine, TableRows(np.tile(TABLE[:1], (USERS, 1))), seed)
        sums = people.sums(LOSS, 100)
        told.append(sums.of(cohort).value[0])
        people.close()
        assert sums.gradients == cohort.users and sums.is_simulated
        exact = cohort.users * LOSS.sent(cohort.point, cohort.clip, None, TABLE[:1, :2], TABLE[:1, 2])[0][0, 0]
    error = float(cohort.plan.standard_error)
    assert_mean(np.array(told) - exact, 0.0, error)
    assert_deviation(np.array(told) - exact, error)
    with pytest.raises(AssertionError):
        assert_deviation(3 * (np.array(told) - exact), error)


def test_whoever_is_asked_what_was_clipped_is_asked_nothing_else(solver: Any) -> None:
    engine, cohort = LocalEngine(processes=1), solver.ask(solver.start())
    people = dealt(engine, TableRows(TABLE))
    first, every = people.sums(LOSS, 0), people.sums(LOSS, 100)
    # The same round of the same people would have the same noise.
    assert first.of(cohort).value.tolist() != every.of(cohort).value.tolist()
    people.close()


def test_no_two_uses_share_a_stream(solver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    own = JobKey.bits

    def recorded(key: JobKey, *about: Any) -> Any:
        asked.append(about)
        return own(key, *about)

    monkeypatch.setattr(JobKey, "bits", recorded)
    model(LocalEngine(processes=1), solver, TableRows(TABLE))
    # The order inside a bucket is the same in every round; whatever is drawn of people's values is not.
    drawn = [each for each in asked if each[0] != "fit, order"]
    assert len(drawn) == len(set(drawn)) > solver.rounds


def test_too_little_memory_is_refused_with_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "_BUCKET_BYTES", 1 << 22)
    with pytest.raises(ParameterError, match=r"rows of 2 numbers need [\d,]+, .*allow \d+ MB more with --memory"):
        dealt(LocalEngine(processes=2, memory=360 << 20), TableRows(TABLE))
