"""Everything that 0.1.0 produced is produced again, to the last bit.

Groups of cases are compared one after another, so that cases of a family share what the package caches. Floats are
compared exactly: in every process, and with any number of BLAS threads, they come out the same on one kind of machine.
With other vector instructions (AVX2 instead of AVX-512) NumPy's exp and log differ in the last bit, a calibrated
variance by 1e-11 of it, and so fingerprints by all they have: no tolerance helps, and records are not compared there.
See `write.py` for when golden records may be replaced.
"""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from shuffledp import ShuffleDPError, load_plan
from shuffledp.continual.plan import CounterPlan
from shuffledp.learn.estimators.models import LinearModel
from shuffledp.learn.optimize import METHODS
from shuffledp.protocols.catalogue import PROTOCOLS, plan_from_document
from shuffledp.references.bandits.catalogue import POLICIES
from shuffledp.service.task import Task

from . import store
from .cases import GROUPS, Case
from .records import ledger_numbers, record_of, task_numbers
from .states import STATE_KINDS, machine_of

_CASES = {case.name: case for cases in GROUPS.values() for case in cases}
_PLANS = ("binary-sum", "bounded-sum", "vector-sum", "histogram", "ranges", "distinct-elements", "counters")
_SHOWN = 20

_GOLDEN_MACHINE = json.loads(store.MACHINE.read_text("utf-8"))
on_golden_machine = pytest.mark.skipif(
    store.machine() != _GOLDEN_MACHINE,
    reason=f"golden records were written with {_GOLDEN_MACHINE}, this is {store.machine()}: last bits differ",
)


@cache
def _now(name: str) -> tuple[store.Record, store.Record]:
    """A case's record, computed once for all tests: what must stay, and what known faults make."""
    case = _CASES[name]
    return store.split(case, record_of(case))


def _refuse(problems: Iterator[str]) -> None:
    found = list(problems)
    shown = [*found[:_SHOWN], *([f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else [])]
    assert not found, "not as golden:\n" + "\n".join(shown)


def _compared(golden: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    for name in sorted(golden.keys() | now.keys()):
        if name not in now or name not in golden:
            yield f"{name}: {'is no case any more' if name not in now else 'has no golden record'}"
            continue
        for difference in store.differences(golden[name], now[name]):
            yield f"{name}: {difference}"


@pytest.mark.parametrize("group", GROUPS)
@on_golden_machine
def test_records_are_the_golden_ones(group: str) -> None:
    _refuse(_compared(store.read(group), {case.name: _now(case.name)[0] for case in GROUPS[group]}))


@on_golden_machine
def test_known_faults_are_as_they_were() -> None:
    """Faults of 0.1.0: whoever repairs one writes this file again, and says so."""
    faulty = {name: _now(name)[1] for name, case in _CASES.items() if store.faulty_keys(case)}
    _refuse(_compared(store.read(store.KNOWN_FAULTS_NAME), {name: found for name, found in faulty.items() if found}))


@pytest.mark.parametrize("group", _PLANS)
@on_golden_machine
def test_golden_plans_load_again(group: str, tmp_path: Path) -> None:
    _refuse(_loaded(group, tmp_path / "plan.json"))


def _loaded(group: str, file: Path) -> Iterator[str]:
    faulty = store.read(store.KNOWN_FAULTS_NAME)
    for name, record in store.read(group).items():
        has_faults = any(key == "document" or key.startswith("document.") for key in faulty.get(name, {}))
        if "document" not in record or has_faults:
            continue
        document = record["document"]
        file.write_text(json.dumps(document), "utf-8")
        try:
            again = load_plan(file).document()
        except ShuffleDPError as refusal:
            yield f"{name}: does not load again, {refusal}"
            continue
        for difference in store.differences(document, store.plain(again)):
            yield f"{name}: loaded again, document.{difference}"


@on_golden_machine
def test_counters_of_0_1_0_load_with_their_fingerprints() -> None:
    """They left the last slot open and did not say so; what was derived since is all that they lack."""
    _refuse(_old_counters())


def _old_counters() -> Iterator[str]:
    faulty = store.read(store.KNOWN_FAULTS_NAME)
    for name, record in store.read("counters_of_0_1_0").items():
        if any(key == "document" or key.startswith("document.") for key in faulty.get(name, {})):
            continue
        document = record["document"]
        try:
            again = plan_from_document(document)
        except ShuffleDPError as refusal:
            yield f"{name}: does not load again, {refusal}"
            continue
        now = {key: value for key, value in again.document().items() if key not in CounterPlan.later_numbers}
        for difference in store.differences(document, store.plain(now)):
            yield f"{name}: loaded again, document.{difference}"
        if again.counts_everybody or again.uncounted != again.users % again.slot_users:
            yield f"{name}: its last slot was open"


@on_golden_machine
def test_tasks_of_0_1_0_are_read_as_they_were_written() -> None:
    _refuse(_tasks("tasks_of_0_1_0"))


@on_golden_machine
def test_golden_tasks_are_read_as_they_were_written() -> None:
    _refuse(_tasks("tasks"))


def _tasks(group: str) -> Iterator[str]:
    for name, record in store.read(group).items():
        if "text" in record:
            try:
                task = Task.from_text(record["text"])
            except ShuffleDPError as refusal:
                yield f"{name}: does not load again, {refusal}"
                continue
            for difference in store.differences(record, task_numbers(task)):
                yield f"{name}: {difference}"


@pytest.mark.parametrize("kind", STATE_KINDS)
@on_golden_machine
def test_golden_states_go_on_as_they_did(kind: str) -> None:
    _refuse(_continued([case for case in GROUPS["states"] if case.kind == kind]))


def _continued(cases: list[Case]) -> Iterator[str]:
    golden = store.read("states")
    for case in cases:
        if "steps" not in golden[case.name]:
            continue
        machine = machine_of(case)
        for step, before, after in golden[case.name]["steps"]:
            state = machine.load(before)
            for difference in store.differences(before, store.plain(state.document())):
                yield f"{case.name}: step {step} loaded again, {difference}"
            for difference in store.differences(after, store.plain(machine.step(state, step).document())):
                yield f"{case.name}: after step {step}, {difference}"


def test_golden_models_load_again() -> None:
    document = store.read("states")["model/ridge"]["document"]
    _refuse(store.differences(document, store.plain(LinearModel.from_document(document).document())))


@on_golden_machine
def test_golden_ledgers_say_what_they_said(tmp_path: Path) -> None:
    _refuse(_ledgers(tmp_path / "ledger.json"))


def _ledgers(file: Path) -> Iterator[str]:
    for name, record in store.read("ledgers").items():
        if "text" in record:
            file.write_text(record["text"], "utf-8")
            now = ledger_numbers(file)
            for difference in store.differences({key: record[key] for key in now}, now):
                yield f"{name}: {difference}"


# --- the table -----------------------------------------------------------------------------------


# Families that 0.1.0 had as such; running sums, statistics and others are in groups of their own.
FAMILIES = ("binary-sum", "bounded-sum", "vector-sum", "histogram", "ranges", "distinct-elements")


@pytest.mark.parametrize("protocol", FAMILIES)
def test_every_method_has_cases_that_succeed_with_estimates(protocol: str) -> None:
    records, faults = store.read(protocol), store.read(store.KNOWN_FAULTS_NAME)
    for method in PROTOCOLS[protocol].methods:
        own = [record for name, record in records.items() if name.startswith(f"{protocol}/{method}/")]
        assert own, f"{protocol} by {method} has no golden case"
        assert any("messages" in record.get("estimates", {}) for record in own), f"{protocol}/{method}: no estimates"
        assert any("collusions" in record for record in own), f"{protocol}/{method}: no collusions"
    assert any(name.startswith(f"{protocol}/auto/") for name in (*records, *faults))


def test_every_solver_and_linear_policy_has_a_state() -> None:
    names = {case.ask.get("solver") or case.ask.get("policy") for case in GROUPS["states"]}
    assert set(METHODS) <= names, f"no state of the solvers {sorted(set(METHODS) - names)}"
    assert set(POLICIES) <= names, f"no state of the policies {sorted(set(POLICIES) - names)}"


def test_names_of_cases_are_unique_and_files_have_no_paths() -> None:
    names = [case.name for cases in GROUPS.values() for case in cases]
    assert len(set(names)) == len(names)
    for file in store.FOLDER.glob("*.json"):
        assert str(Path.home()) not in (text := file.read_text("utf-8")) and "/tmp/" not in text
