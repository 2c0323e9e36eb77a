"""What other processes, killed or still alive, leave among a job's files is not published, and nothing torn is."""

import errno
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from harness.messages import numbers_in, write_ciphertexts
from shuffledp.engines import JobKey, LocalEngine
from shuffledp.errors import JobStoppedError, ParameterError
from shuffledp.jobs import collecting, shuffling, writing
from shuffledp.jobs import job as jobs
from shuffledp.jobs.collecting import collect_reports
from shuffledp.jobs.job import work_folder
from shuffledp.jobs.manifest import DataManifest
from shuffledp.jobs.rows import CiphertextRows
from shuffledp.jobs.shuffling import shuffle_files
from shuffledp.service.wire import CIPHERTEXT_BYTES

PART = "part-000000.parquet"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_ciphertexts(tmp_path / "in", (300, 211))


def shuffled(source: Path, out: Path, **more: object) -> DataManifest:
    with LocalEngine(processes=1) as engine:
        return shuffle_files(source, out, engine=engine, **more).manifest


def test_half_a_file_of_a_killed_process_is_not_published(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, seen = work_folder(tmp_path / "out") / "out", []

    def killed(folder: Path, *_: object) -> None:
        for name in (f".{PART}.27206", ".shuffledp-0123.part", "manifest.json"):
            (folder / name).write_bytes(b"half")
        (folder / "folder").mkdir()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(shuffling, "write_part", killed)
        with pytest.raises(KeyboardInterrupt):
            shuffled(source, tmp_path / "out")
    assert len(list(left.iterdir())) == 4

    def late(folder: Path, name: str, *rest: object) -> object:
        seen.extend(folder.iterdir())
        # Of a task that was given up, and still runs somewhere.
        (folder / f".{name}.9").write_bytes(b"half")
        return writing.write_part(folder, name, *rest)

    monkeypatch.setattr(shuffling, "write_part", late)
    shuffled(source, tmp_path / "out", resume=True)
    assert not seen
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["manifest.json", PART]
    assert sorted(numbers_in(tmp_path / "out")) == list(range(511))


@pytest.mark.parametrize("harm", ["cut short", "removed"])
def test_a_file_that_changes_before_the_last_step_is_not_published(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    commit = jobs.Job.commit

    def harmed(job: jobs.Job, manifest: DataManifest) -> None:
        (job.folder / PART).unlink() if harm == "removed" else os.truncate(job.folder / PART, 100)
        commit(job, manifest)

    with monkeypatch.context() as patched:
        patched.setattr(jobs.Job, "commit", harmed)
        with pytest.raises(JobStoppedError, match=r"must stay as it was written.*nothing was released.*--resume"):
            shuffled(source, tmp_path / "out", key=JobKey.seeded(3))
    assert not (tmp_path / "out").exists()
    again = shuffled(source, tmp_path / "out", resume=True)
    assert again == shuffled(source, tmp_path / "same", key=JobKey.seeded(3))


def test_a_job_without_its_key_is_named_only_if_it_is_whole(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(jobs, "_publish", killed)
        with pytest.raises(KeyboardInterrupt):
            shuffled(source, tmp_path / "out")
    os.truncate(work_folder(tmp_path / "out") / "out" / PART, 100)
    with pytest.raises(ParameterError, match=r"must be what its manifest says.*begin again"):
        shuffled(source, tmp_path / "out", resume=True)
    assert not (tmp_path / "out").exists()


def test_two_attempts_at_a_file_never_write_into_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second attempt, of a process of the same number on another machine, comes while the first has not ended."""
    rows, forced, seen = CiphertextRows(9), os.fsync, []
    one = np.arange(90, dtype=np.uint8).reshape(10, 9)

    def force(descriptor: int) -> None:
        forced(descriptor)
        if not seen:
            seen.append(sorted(path.name for path in tmp_path.iterdir()))
            seen.append(writing.write_part(tmp_path, PART, rows, one))

    monkeypatch.setattr("os.fsync", force)
    assert writing.write_part(tmp_path, PART, rows, one) == seen[1] == writing.written_before(tmp_path, PART)
    assert len(seen[0]) == 1 and [path.name for path in tmp_path.iterdir()] == [PART]


def test_what_a_seed_has_mixed_says_so(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    shuffled(source, tmp_path / "out")
    assert "simulated" not in DataManifest.load(tmp_path / "out").facts
    with monkeypatch.context() as patched:
        patched.setattr(shuffling, "write_part", stopped)
        with pytest.raises(KeyboardInterrupt):
            shuffled(source, tmp_path / "seeded", key=JobKey.seeded(3))
    # Also where it goes on.
    shuffled(source, tmp_path / "seeded", resume=True)
    assert DataManifest.load(tmp_path / "seeded").facts == {"simulated": True}


def test_collecting_that_was_stopped_says_how_to_begin_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    work, reports = work_folder(tmp_path / "got"), [bytes(CIPHERTEXT_BYTES)]
    with monkeypatch.context() as patched:
        patched.setattr(collecting, "write_part", stopped)
        with pytest.raises(JobStoppedError, match=r"nothing was released: free some, then run it again\.$"):
            collect_reports(reports, tmp_path / "got")
    assert not list(tmp_path.iterdir())
    # Only a process that is killed leaves its folder.
    work.mkdir()
    (work / jobs.REQUEST).write_text('{"schema": 1, "job": "collect"}')
    with pytest.raises(ParameterError, match=r"a job that was stopped.*: name another, or remove .*got.job and begin"):
        collect_reports(reports, tmp_path / "got")
    shutil.rmtree(work)
    assert collect_reports(reports, tmp_path / "got").messages == 1
