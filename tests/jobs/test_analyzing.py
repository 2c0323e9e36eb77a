"""Messages in files are counted to the last bit as in memory, however they are cut; too few people are refused."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.messages import write_ciphertexts
from harness.sealed import Sealed, write_sealed
from shuffledp.accounting.ledger import Entry, Ledger
from shuffledp.engines import LocalEngine
from shuffledp.errors import BatchError, InfeasibleError, ParameterError, TooFewReportsError
from shuffledp.jobs import analyzing, tallying
from shuffledp.jobs.analyzing import Analyzed, analyze_files, name_of
from shuffledp.jobs.charging import charge_data
from shuffledp.jobs.collecting import sealed_reports
from shuffledp.jobs.opening import open_files
from shuffledp.jobs.shuffling import shuffle_files
from shuffledp.messages import Batch, Reports
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.protocols.ledger_entries import entry_of
from shuffledp.protocols.plan import Plan
from shuffledp.randomness import RandomBits
from shuffledp.service.charging import entry_of_served
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.task import Task

PRIVACY = Privacy(1, 1e-6)
NOW = datetime.now(UTC)


def written(folder: Path, reports: Reports, pieces: int = 3) -> Path:
    """The messages of reports in some files."""
    folder.mkdir(parents=True)
    columns = {"payload": reports.payloads}
    if reports.labels is not None:
        columns["label"] = reports.labels
    for number, rows in enumerate(np.array_split(np.arange(reports.payloads.size), pieces)):
        table = pa.table({name: column[rows] for name, column in columns.items()})
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=101)
    return folder


def analyzed(source: Path, plan: Plan, **more: Any) -> Analyzed:
    with LocalEngine(processes=1) as engine:
        return analyze_files(source, plan, engine=engine, **more)


@pytest.fixture(scope="module")
def counted() -> tuple[Any, Reports]:
    plan = PROTOCOLS["histogram"].plan(users=200, privacy=PRIVACY, method="decoys", categories=7)
    return plan, plan.randomize(np.arange(200) % 7, bits=RandomBits.seeded(2))


@pytest.fixture(scope="module")
def labelled() -> tuple[Any, Reports]:
    plan = PROTOCOLS["vector-sum"].plan(users=200, privacy=PRIVACY, dimension=3, radius=1.0)
    values = plan.check_values(np.tile([0.5, -0.25, 0.0], (200, 1)))
    return plan, plan.randomize(values, bits=RandomBits.seeded(2))


@pytest.mark.parametrize("kind", ["counted", "labelled"])
def test_the_estimate_is_that_of_the_batch_in_memory(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    plan, reports = request.getfixturevalue(kind)
    assert (reports.labels is not None) == plan.is_labelled
    whole = plan.analyze(Batch(reports.payloads, 200, reports.labels))
    source = written(tmp_path / "in", reports)
    for rows, part in ((1 << 17, 32 << 20), (13, 500)):
        monkeypatch.setattr(tallying, "TALLIED_ROWS", rows)
        monkeypatch.setattr(analyzing, "_PART_BYTES", part)
        found = analyzed(source, plan, reports=200)
        assert found.release.estimate == np.asarray(whole.value).tolist() and found.release.bound == whole.bound
        assert found.tally.messages == reports.payloads.size and found.tally.reports == 200
        assert found.release.standard_error == whole.standard_error and found.release.dropped == whole.dropped


def test_the_law_does_not_change_in_a_shuffle(counted: tuple[Any, Reports], tmp_path: Path) -> None:
    plan, reports = counted
    source = written(tmp_path / "in", reports)
    with LocalEngine(processes=1) as engine:
        shuffle_files(source, tmp_path / "mixed", engine=engine, reports=200)
    assert analyzed(tmp_path / "mixed", plan).release == analyzed(source, plan, reports=200).release


def test_messages_that_are_none_of_the_plan_are_dropped(counted: tuple[Any, Reports], tmp_path: Path) -> None:
    plan, reports = counted
    payloads = reports.payloads.copy()
    payloads[:5] = 250
    found = analyzed(written(tmp_path / "in", Reports(payloads, reports.sizes)), plan, reports=200)
    assert found.release.dropped == plan.analyze(Batch(payloads, 200)).dropped >= 5 and found.tally.malformed == 5


def test_people_who_are_too_few_or_unknown_are_refused(counted: tuple[Any, Reports], tmp_path: Path) -> None:
    plan, reports = counted
    source = written(tmp_path / "in", reports)
    with pytest.raises(TooFewReportsError, match="reports must be 200, got 199"):
        analyzed(source, plan, reports=199)
    with pytest.raises(ParameterError, match="reports must be the plan's 200, got 201"):
        analyzed(source, plan, reports=201)
    with pytest.raises(ParameterError, match="reports must be given, as no manifest says how many"):
        analyzed(source, plan)
    small = BinarySum.plan(users=200, privacy=PRIVACY, method="rr")
    more = written(tmp_path / "more", Reports(np.zeros(201, dtype=np.uint8), np.ones(201, dtype=np.int64)))
    with pytest.raises(ParameterError, match="messages must be at most 1 of each of 200 people, got 201"):
        analyzed(more, small, reports=200)


def test_messages_that_are_too_few_are_refused(tmp_path: Path) -> None:
    """Where everybody sends so many, fewer are those of fewer people, whatever is said of reports."""
    for honest_fraction, fewest in ((1.0, 200), (0.9, 180)):
        plan: Any = BinarySum.plan(users=200, privacy=PRIVACY, method="coins", honest_fraction=honest_fraction)
        sent = int(plan.messages_per_user_max)
        for messages in (3, fewest * sent - 1, fewest * sent):
            reports = Reports(np.arange(messages, dtype=np.uint64) % 2, np.ones(messages, dtype=np.int64))
            source = written(tmp_path / f"{honest_fraction}-{messages}", reports)
            if messages == fewest * sent:
                assert analyzed(source, plan, reports=200).release.time == 200
                continue
            with pytest.raises(TooFewReportsError, match=f"got {messages // sent}: messages are {messages:,} of"):
                analyzed(source, plan, reports=200)


@pytest.mark.parametrize("method", ["zsum", "poisson-bits"])
def test_messages_that_are_too_few_by_chance_are_refused(method: str, tmp_path: Path) -> None:
    """Where everybody sends as many as it happens to, half of the people do not pass for all; all of them do."""
    plan: Any = BinarySum.plan(users=3000, privacy=PRIVACY, method=method)
    sent = plan.randomize(np.zeros(3000, dtype=np.int64), bits=RandomBits.seeded(4))
    whole = written(tmp_path / "whole", sent)
    assert analyzed(whole, plan, reports=3000).release.time == 3000
    people = int(sent.sizes[:1500].sum())
    few = Reports(sent.payloads[:people], sent.sizes[:1500])
    with pytest.raises(
        TooFewReportsError, match=f"messages are {people:,}, and 3,000 people send [0-9,]+ at least; ask"
    ):
        analyzed(written(tmp_path / "few", few), plan, reports=3000)


def test_the_least_messages_are_those_of_some_value() -> None:
    for method in ("coins", "zsum", "poisson-bits", "correlated"):
        plan: Any = BinarySum.plan(users=200, privacy=PRIVACY, method=method)
        means = [plan.mean_messages(np.full(200, value)) for value in (0, 1)]
        assert min(means) == plan.least_mean_messages and max(means) == plan.messages_per_user_mean
    people: Any = PROTOCOLS["binary-sum"].plan(users=200, privacy=PRIVACY, at_most=3)
    assert people.least_mean_messages == people.messages_per_user_max


def test_plans_that_send_as_many_as_at_most_always_do(
    counted: tuple[Any, Reports], labelled: tuple[Any, Reports]
) -> None:
    """What a plan says on average is what tells whether messages are missing."""
    for method in ("coins", "rr", "shares", "pure", "zsum", "poisson-bits", "correlated"):
        plan: Any = BinarySum.plan(users=200, privacy=PRIVACY, method=method)
        sizes = plan.randomize(np.arange(200) % 2, bits=RandomBits.seeded(3)).sizes
        is_fixed = plan.messages_per_user_mean == plan.messages_per_user_max
        assert is_fixed == (set(sizes.tolist()) == {plan.messages_per_user_max}), method
    assert set(labelled[1].sizes.tolist()) == {labelled[0].messages_per_user_max}
    assert len(set(counted[1].sizes.tolist())) > 1
    assert counted[0].messages_per_user_mean < counted[0].messages_per_user_max


def test_what_is_not_opened_or_of_another_task_is_refused(
    counted: tuple[Any, Reports], labelled: tuple[Any, Reports], tmp_path: Path
) -> None:
    plan, reports = counted
    with pytest.raises(ParameterError, match=r"must be opened messages, and are ciphertexts.* run batch open first"):
        analyzed(write_ciphertexts(tmp_path / "sealed", (5,)), plan, reports=200)
    source = written(tmp_path / "in", reports)
    with pytest.raises(ParameterError, match="must have a column label, as the plan's messages do"):
        analyzed(source, labelled[0], reports=200)
    with LocalEngine(processes=1) as engine:
        data = analyzing.DataSet.at(source, engine, reports=200)
    analyzing.DataManifest(data.manifest.rows, data.manifest.files, 200, {"task": "one"}).save(source)
    assert analyzed(source, plan, task_id="one").release.time == 200
    with pytest.raises(ParameterError, match="task must be that of the messages, one, got another"):
        analyzed(source, plan, task_id="another")


def test_a_spoiled_batch_says_nothing(tmp_path: Path) -> None:
    """Shares: one that is lost makes the sum a number that nobody could have."""
    plan: Any = PROTOCOLS["bounded-sum"].plan(users=200, privacy=PRIVACY, method="shares", low=0, high=1)
    reports = plan.randomize(plan.check_values(np.full(200, 0.5)), bits=RandomBits.seeded(2))
    payloads = reports.payloads.copy()
    payloads[0] += np.uint64(1 << 40)
    source = written(tmp_path / "in", Reports(payloads, reports.sizes, reports.labels))
    with pytest.raises(BatchError):
        analyzed(source, plan, reports=200)


def test_a_budget_is_charged_once_before_anything_is_counted(
    counted: tuple[Any, Reports], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, reports = counted
    source, ledger = written(tmp_path / "in", reports), tmp_path / "panel.json"
    Ledger.open(ledger, "panel", Privacy(1.5, 1e-5))

    def charged(asked: Entry, folder: Path = source) -> list[str]:
        analyzed(folder, plan, reports=200, charge=lambda messages: charge_data(ledger, asked, messages))
        return [entry.description for entry in Ledger.load(ledger).account.entries]

    first = entry_of(plan, NOW)
    assert [words.partition(" ")[0] for words in charged(first)] == ["messages"] and len(charged(first)) == 1
    # Other messages of the same plan are another question, and so is a task.
    others = written(tmp_path / "others", reports, pieces=2)
    task = Task.create(plan, PrivateKey.generate().public, bits=RandomBits.secure(), allow_unbounded=True)
    monkeypatch.setattr(analyzing, "TallyingPart", None)
    for asked, folder in ((entry_of(plan, NOW), others), (entry_of_served(task), source)):
        with pytest.raises(InfeasibleError, match="budget"):
            charged(asked, folder)


def test_other_messages_of_a_task_are_charged_again(tmp_path: Path) -> None:
    """People who are asked twice pay twice; the same messages in another order, or opened again, are paid already."""
    sealed, ledger = Sealed.of(40, method="rr"), tmp_path / "panel.json"
    Ledger.open(ledger, "panel", Privacy(100, 1e-3))
    # Everybody says the same in both, up to noise: counts may be equal, and are two answers all the same.
    fresh = sealed_reports(sealed.task, np.arange(40) % 3 == 0, bits=RandomBits.secure())
    with LocalEngine(processes=1) as engine:
        for number, reports in enumerate((sealed.reports, sealed.reports[::-1], fresh)):
            source = write_sealed(tmp_path / f"in-{number}", b"".join(reports))
            open_files(source, tmp_path / f"{number}", task=sealed.task, keys=(sealed.key,), engine=engine)
        shuffle_files(tmp_path / "0", tmp_path / "mixed", engine=engine)
    now = list[bool]()
    for name in ("0", "1", "mixed", "2", "2"):
        found = analyzed(
            tmp_path / name,
            sealed.task.plan,
            task_id=sealed.task.id,
            charge=lambda messages: now.append(charge_data(ledger, entry_of_served(sealed.task), messages)),
        )
        assert found.release.time == 40
        # What an opened data set says of itself is not lost in a shuffle.
        with pytest.raises(ParameterError, match="task must be that of the messages"):
            analyzed(tmp_path / name, sealed.task.plan, task_id="another")
    assert now == [True, False, False, True, False]
    assert all(sealed.task.id[:12] in entry.description for entry in Ledger.load(ledger).account.entries)


def test_another_plan_or_column_is_charged_again(tmp_path: Path) -> None:
    """A cheap question does not pay for a dear one about the same files."""
    ledger = tmp_path / "panel.json"
    Ledger.open(ledger, "panel", Privacy(100, 1e-3))
    cheap, dear = (BinarySum.plan(users=200, privacy=Privacy(each, 1e-6), method="coins") for each in (0.5, 2))
    assert cheap.messages_per_user_max > dear.messages_per_user_max
    assert [charge_data(ledger, entry_of(plan, NOW), "ab" * 32) for plan in (cheap, dear, cheap, dear)] == [
        True,
        True,
        False,
        False,
    ]
    folder = tmp_path / "in"
    folder.mkdir()
    pq.write_table(pa.table({"payload": [1, 0], "other": [0, 1]}), folder / "0.parquet")
    with LocalEngine(processes=1) as engine:
        names = {name_of(analyzing.DataSet.at(folder, engine, column=column)) for column in (None, "payload", "other")}
    assert len(names) == 2


def test_of_two_who_charge_at_once_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, both = tmp_path / "panel.json", threading.Barrier(2)
    Ledger.open(ledger, "panel", Privacy(100, 1e-3))
    plan, load = BinarySum.plan(users=200, privacy=PRIVACY, method="rr"), Ledger.load

    def load_together(path: Path) -> Ledger:
        found = load(path)
        both.wait(timeout=30)
        return found

    monkeypatch.setattr(Ledger, "load", load_together)
    with ThreadPoolExecutor(2) as pool:
        charging = [pool.submit(charge_data, ledger, entry_of(plan, NOW), "ab" * 32) for _ in range(2)]
        assert sorted(each.result(timeout=60) for each in charging) == [False, True]
    assert len(load(ledger).account.entries) == 1
