"""Ciphertexts in files are opened as the live service opens them: one message an id, everybody there, or refused."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from harness.sealed import Sealed, messages_in, write_sealed
from harness.stopped import every_step
from shuffledp.continual.plan import CounterPlan
from shuffledp.engines import JobKey, LocalEngine
from shuffledp.errors import DataError, JobStoppedError, ParameterError, TooFewReportsError
from shuffledp.jobs import opening
from shuffledp.jobs.collecting import collect_reports, sealed_reports
from shuffledp.jobs.manifest import DataManifest
from shuffledp.jobs.opening import open_files
from shuffledp.privacy import Privacy
from shuffledp.randomness import RandomBits
from shuffledp.service.analyzer.opening import open_chunk
from shuffledp.service.crypto import PrivateKey, binding
from shuffledp.service.task import Task
from shuffledp.service.wire import CIPHERTEXT_BYTES, unpack_messages


@pytest.fixture(scope="module")
def sealed() -> Sealed:
    return Sealed.of(60)


@pytest.fixture(scope="module")
def forgiving() -> Sealed:
    """A plan that counts on nine people of ten."""
    return Sealed.of(60, honest_fraction=0.9)


def opened(source: Path, out: Path, sealed: Sealed, **more: Any) -> DataManifest:
    asked = {"task": sealed.task, "keys": (PrivateKey.generate(), sealed.key), "key": JobKey.seeded(1), **more}
    with LocalEngine(processes=1) as engine:
        return open_files(source, out, engine=engine, **asked)


def live(sealed: Sealed, body: bytes) -> Any:
    """What the live analyzer reads of a batch."""
    plain, _ = open_chunk(sealed.key.raw, binding(sealed.task.id, "1.0.1"), body)
    return unpack_messages(plain)


def test_messages_are_those_that_the_service_reads(sealed: Sealed, tmp_path: Path) -> None:
    source = write_sealed(tmp_path / "in", b"".join(sealed.reports[:25]), b"".join(sealed.reports[25:]))
    manifest = opened(source, tmp_path / "out", sealed)
    service = live(sealed, b"".join(sealed.reports))
    assert sorted(messages_in(tmp_path / "out")) == sorted(service.payloads.tolist())
    assert manifest.messages == service.payloads.size and manifest.reports == 60
    counts = {"malformed": 0, "fillers": service.fillers, "copies": 0}
    assert manifest.facts == {"task": sealed.task.id, **counts, "batch": manifest.facts["batch"]}
    assert set(messages_in(tmp_path / "out", "label")) == {0}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


def test_neither_parts_nor_the_order_of_ciphertexts_are_in_the_output(
    sealed: Sealed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [b"".join(sealed.reports[at : at + 20]) for at in (0, 20, 40)]
    first = opened(write_sealed(tmp_path / "one", *files), tmp_path / "out-1", sealed)
    monkeypatch.setattr(opening, "_LEAST_PART", 7)
    assert opened(tmp_path / "one", tmp_path / "out-2", sealed) == first
    # In one bucket all stand in the order of their random ids, whatever the order in which they came.
    again = opened(write_sealed(tmp_path / "two", *files[::-1]), tmp_path / "out-3", sealed)
    assert again.files == first.files and again.facts == first.facts
    # Nor is what stands for the messages another one in more buckets; that of fresh ones is.
    monkeypatch.setattr(opening, "bucket_size", lambda size: size // 5)
    several = opened(tmp_path / "two", tmp_path / "out-4", sealed)
    assert len(several.files) > 3 and several.facts == first.facts
    fresh = sealed_reports(sealed.task, [0] * 60, bits=RandomBits.secure())
    others = opened(write_sealed(tmp_path / "three", b"".join(fresh)), tmp_path / "out-5", sealed)
    assert others.facts["batch"] != first.facts["batch"]


def test_one_message_of_each_id_is_kept_over_all_files(
    sealed: Sealed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was uploaded twice is there twice, in another file, and in another part."""
    monkeypatch.setattr(opening, "_LEAST_PART", 7)
    monkeypatch.setattr(opening, "bucket_size", lambda size: size // 5)
    twice = b"".join(sealed.reports[10:30])
    source = write_sealed(tmp_path / "in", b"".join(sealed.reports), twice, twice)
    manifest = opened(source, tmp_path / "out", sealed)
    assert len(manifest.files) > 3
    assert sorted(messages_in(tmp_path / "out")) == sorted(live(sealed, b"".join(sealed.reports)).payloads.tolist())
    assert manifest.facts["copies"] == 40 * sealed.messages and manifest.facts["malformed"] == 0


def test_what_does_not_open_is_counted(sealed: Sealed, forgiving: Sealed, tmp_path: Path) -> None:
    def spoiled(whose: Sealed, name: str) -> bytes:
        body = bytearray(b"".join(whose.reports))
        for number in (0, 5, 9):
            body[number * CIPHERTEXT_BYTES + 40] ^= 1
        write_sealed(tmp_path / name, bytes(body))
        return bytes(body)

    service = live(forgiving, spoiled(forgiving, "some"))
    manifest = opened(tmp_path / "some", tmp_path / "out", forgiving)
    assert manifest.facts["malformed"] == 3 and manifest.messages + service.fillers == 60 * forgiving.messages - 3
    # Where everybody's noise is counted on, nobody's may be missing.
    spoiled(sealed, "all")
    with pytest.raises(TooFewReportsError, match=r"got 59: 3 messages do not open.* smaller honest_fraction"):
        opened(tmp_path / "all", tmp_path / "none", sealed)


def test_a_part_hands_on_each_message_once(sealed: Sealed, tmp_path: Path) -> None:
    """However often a message or a piece of junk was uploaded, its bucket does not grow."""
    junk = bytes(CIPHERTEXT_BYTES)
    source = write_sealed(tmp_path / "in", sealed.reports[0] * 30 + junk * 30)
    with LocalEngine(processes=1) as engine:
        data = opening.DataSet.at(source, engine)
        secrets = engine.entrust(sealed.key.raw), engine.entrust(bytes(range(16)))
        dealing = opening.OpeningPart(*secrets, opening.binding_of(sealed.task), data.columns, 4)
        (part,) = data.parts(1 << 20)
        dealt = dealing(part)
    assert sum(rows.size // opening.ROW_BYTES for _, rows in dealt) == sealed.messages + 1


def test_a_job_that_goes_on_reads_the_same_column(
    sealed: Sealed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_sealed(tmp_path / "in", b"".join(sealed.reports))
    table = pq.read_table(source / "000.parquet")
    pq.write_table(table.append_column("other", table.column("ciphertext")), source / "000.parquet")
    monkeypatch.setattr(opening, "check_nothing_lost", lambda *_: raised(JobStoppedError("disk", "full", "is", "wait")))
    with pytest.raises(JobStoppedError):
        opened(source, tmp_path / "out", sealed)
    monkeypatch.undo()
    with pytest.raises(ParameterError, match="columns"):
        opened(source, tmp_path / "out", sealed, column="other", resume=True, key=None)
    assert opened(source, tmp_path / "out", sealed, resume=True, key=None).facts["malformed"] == 0


def raised(error: Exception) -> None:
    raise error


def test_people_who_are_too_few_are_refused(sealed: Sealed, forgiving: Sealed, tmp_path: Path) -> None:
    for number, (whose, reports, present) in enumerate(
        (
            (sealed, sealed.reports[:-1], 59),
            # One of ten may lie, and nobody may be missing: the estimate is of everybody.
            (forgiving, forgiving.reports[:-1], 59),
            # One lost, and another twice in its place.
            (sealed, (*sealed.reports[1:], sealed.reports[5]), 59),
            (forgiving, (*forgiving.reports[7:], *forgiving.reports[-7:]), 53),
            # Reports of another task, all different or all the same, are nobody's.
            (sealed, (*sealed.reports[1:], forgiving.reports[0]), 59),
            (sealed, (sealed.reports[0], *forgiving.reports[1:]), 1),
            (sealed, (sealed.reports[0], *forgiving.reports[:1] * 59), 1),
            (forgiving, (*forgiving.reports[7:], *sealed.reports[:7]), 53),
        )
    ):
        source = write_sealed(tmp_path / f"in-{number}", b"".join(reports))
        with pytest.raises(TooFewReportsError, match=f"reports must be 60, got {present}"):
            opened(source, tmp_path / "out", whose)
        assert not (tmp_path / "out").exists() and not list(tmp_path.glob(".out*"))
    # As many as the plan does without.
    source = write_sealed(tmp_path / "in", b"".join((*forgiving.reports[6:], *forgiving.reports[-6:])))
    assert opened(source, tmp_path / "out", forgiving).facts["malformed"] == 6 * forgiving.messages
    source = write_sealed(tmp_path / "junk", b"".join((*forgiving.reports[6:], *sealed.reports[:1] * 6)))
    facts = opened(source, tmp_path / "out-2", forgiving).facts
    assert facts["malformed"] == 6 * forgiving.messages and facts["copies"] == 5 * forgiving.messages


def test_people_who_are_too_many_are_refused(sealed: Sealed, tmp_path: Path) -> None:
    more = sealed_reports(sealed.task, [1], bits=RandomBits.secure())
    source = write_sealed(tmp_path / "in", b"".join((*sealed.reports, *more)))
    with pytest.raises(ParameterError, match="reports must be the plan's 60"):
        opened(source, tmp_path / "out", sealed)


def test_other_keys_tasks_and_lengths_are_refused(sealed: Sealed, tmp_path: Path) -> None:
    source = write_sealed(tmp_path / "in", b"".join(sealed.reports))
    with pytest.raises(ParameterError, match="keys must have the key that the task names"):
        opened(source, tmp_path / "out", sealed, keys=(PrivateKey.generate(),))
    hops = [PrivateKey.generate().public for _ in range(2)]
    cascade = Task.create(sealed.task.plan, sealed.key.public, bits=RandomBits.secure(), hops=hops)
    with pytest.raises(ParameterError, match="names 2 shufflers in turn"):
        opened(source, tmp_path / "out", sealed, task=cascade)
    plan = CounterPlan.plan(users=60, privacy=Privacy(1, 1e-6), shufflers=2)
    counter = Task.create(plan, sealed.key.public, bits=RandomBits.secure(), allow_unbounded=True)
    with pytest.raises(ParameterError, match="has batches that close as people come"):
        opened(source, tmp_path / "out", sealed, task=counter)
    # Of another task nothing opens.
    other = Task.create(sealed.task.plan, sealed.key.public, bits=RandomBits.secure())
    with pytest.raises(TooFewReportsError, match="reports must be 60, got 0"):
        opened(source, tmp_path / "out", sealed, task=other)
    opened(source, tmp_path / "opened", sealed)
    with pytest.raises(DataError, match="in must be ciphertexts of 77 bytes"):
        opened(tmp_path / "opened", tmp_path / "out", sealed)


def test_an_opening_that_is_killed_at_any_step_goes_on(tmp_path: Path) -> None:
    sealed = Sealed.of(40, method="rr")
    (tmp_path / "jobs").mkdir()
    source = write_sealed(tmp_path / "in", b"".join(sealed.reports), sealed.reports[0])
    runs = every_step("open", source, tmp_path / "jobs", task=sealed.task.text, key=sealed.key.text)
    assert len(runs) > 12 and {run["again"] for run in runs} == {"done"}
    assert all(run["manifest"] == runs[-1]["manifest"] for run in runs)
    # Neither key is anywhere in what is left.
    assert not list((tmp_path / "jobs").rglob("key"))


# --- how they get into files ---------------------------------------------------------------------


def test_reports_are_collected_as_they_come(sealed: Sealed, tmp_path: Path) -> None:
    manifest = collect_reports(iter(sealed.reports), tmp_path / "got", file_reports=25)
    assert [file.rows for file in manifest.files] == [each * sealed.messages for each in (25, 25, 10)]
    assert manifest.reports == 60
    assert opened(tmp_path / "got", tmp_path / "out", sealed).facts["malformed"] == 0
    for reports, words in (((b"abc",), "report must be whole ciphertexts"), ((), "reports must be at least one")):
        with pytest.raises(DataError, match=words):
            collect_reports(reports, tmp_path / "none")
    assert not (tmp_path / "none").exists()
    with pytest.raises(ParameterError, match="values must be at most the task's 60, got 61"):
        sealed_reports(sealed.task, [0] * 61, bits=RandomBits.secure())
