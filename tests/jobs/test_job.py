"""Jobs are killed at every step, run out of disk, are interrupted and asked twice: whole or not at all, never twice."""

import errno
import os
from pathlib import Path

import pytest

from harness.messages import numbers_in, write_ciphertexts
from harness.stopped import every_step
from shuffledp.engines import JobKey, LocalEngine
from shuffledp.errors import JobStoppedError, ParameterError, WorkLostError
from shuffledp.jobs import job as jobs
from shuffledp.jobs import shuffling, writing
from shuffledp.jobs.job import job_at, published_before, work_folder
from shuffledp.jobs.shuffling import shuffle_files


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_ciphertexts(tmp_path / "in", (300, 211), group=100)


def shuffled(source: Path, out: Path, *, resume: bool = False, seed: int | None = None, **more: object) -> bytes:
    with LocalEngine(processes=1) as engine:
        key = None if seed is None else JobKey.seeded(seed)
        return shuffle_files(source, out, engine=engine, resume=resume, key=key, **more).manifest.fingerprint


def test_a_job_that_is_killed_at_any_step_goes_on(source: Path, tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    runs = every_step("shuffle", source, tmp_path / "jobs")
    # Key, request and folder; three files; the manifest, its folder and the new name; the key's end, twice.
    assert len(runs) > 12 and [run["ended"] for run in runs] == ["killed"] * (len(runs) - 1) + ["done"]
    assert {run["again"] for run in runs} == {"done"}
    # Bit for bit what a run without a kill has published.
    assert all(run["manifest"] == runs[-1]["manifest"] for run in runs)
    assert sorted(numbers_in(tmp_path / "jobs" / "out-5")) == list(range(511))
    # Both sides of the one step in which the output appears.
    assert {run["was_there"] for run in runs} == {True, False}
    # Never both the output and the key: with the input they would undo the permutation.
    assert {run["had_key"] for run in runs} == {True, False}
    assert not any(run["was_there"] and run["had_key"] for run in runs)
    # No key, no work and no half file is left.
    assert not {name for run in runs for name in run["left"] if not name.startswith("out-")}


def test_bits_of_the_attempt_lose_messages_and_double_others(source: Path, tmp_path: Path) -> None:
    """A twin whose retry draws anew."""
    (tmp_path / "jobs").mkdir()
    runs = every_step("shuffle", source, tmp_path / "jobs", twin="a key for every attempt", first=7, last=9)
    spoiled = 0
    for run in runs:
        if run["manifest"] is not None:
            spoiled += sorted(numbers_in(tmp_path / "jobs" / f"out-{run['step']}")) != list(range(511))
    # Unless the count itself is wrong, which is refused, some are there twice and others not at all.
    assert len(runs) == 3 and spoiled + sum(run["again"] == "refused" for run in runs) == 3


def test_the_key_is_the_owners_and_gone_in_the_end(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, raw = [], JobKey.seeded(5).raw
    commit = jobs.Job.commit

    def look(job: jobs.Job, manifest: object) -> None:
        seen.append((job.work / "key").stat().st_mode & 0o777)
        seen.append(job.work.stat().st_mode & 0o777)
        files = [path for path in job.work.rglob("*") if path.is_file() and path.name != "key"]
        assert all(raw not in path.read_bytes() and raw.hex().encode() not in path.read_bytes() for path in files)
        commit(job, manifest)

    overwritten = []
    pwrite = os.pwrite
    monkeypatch.setattr(
        os, "pwrite", lambda file, content, at: overwritten.append(content) or pwrite(file, content, at)
    )
    monkeypatch.setattr(jobs.Job, "commit", look)
    shuffled(source, tmp_path / "out", seed=5)
    assert seen == [0o600, 0o700] and bytes(32) in overwritten
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


def test_a_finished_job_is_not_run_again(source: Path, tmp_path: Path) -> None:
    before = shuffled(source, tmp_path / "out")
    for resume in (False, True):
        with pytest.raises(ParameterError, match="out is finished: running it again would show"):
            shuffled(source, tmp_path / "out", resume=resume)
    (tmp_path / "other").mkdir()
    with pytest.raises(ParameterError, match="out must be a new name"):
        shuffled(source, tmp_path / "other")
    with pytest.raises(ParameterError, match="resume must be of a job that was stopped"):
        shuffled(source, tmp_path / "new", resume=True)
    with pytest.raises(ParameterError, match="must be in a directory that exists"):
        shuffled(source, tmp_path / "none" / "new")
    # What was published can be shuffled again by another job, as a second shuffler's.
    assert shuffled(tmp_path / "out", tmp_path / "again") != before


def test_two_jobs_for_one_output_are_refused(source: Path, tmp_path: Path) -> None:
    with job_at(tmp_path / "out", {"job": "one"}, resume=False):
        with pytest.raises(ParameterError, match=f"out must be free, and process {os.getpid()} has held it"):
            shuffled(source, tmp_path / "out")
        assert work_folder(tmp_path / "out").exists()


@pytest.mark.parametrize("place", ["a file", "a spill", "the manifest"])
def test_a_full_disk_releases_nothing_and_can_be_resumed(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    owner, name = {
        "a file": (writing, "settle_name"),
        "a spill": (shuffling, "dealt_to"),
        "the manifest": (jobs.DataManifest, "document"),
    }[place]
    with monkeypatch.context() as patched:
        patched.setattr(owner, name, full)
        with pytest.raises(JobStoppedError, match=r"disk with room for it.*nothing was released.*--resume"):
            shuffled(source, tmp_path / "out", seed=1)
    assert not (tmp_path / "out").exists()
    with pytest.raises(ParameterError, match=r"out is the name of a job that was stopped.*go on with --resume"):
        shuffled(source, tmp_path / "out")
    assert shuffled(source, tmp_path / "out", resume=True) == shuffled(source, tmp_path / "same", seed=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out", "same"]


@pytest.mark.parametrize(
    ("refused", "said"),
    [
        (
            PermissionError(errno.EACCES, "Permission denied", "in/0"),
            r"\(Permission denied\), got in/0",
        ),
        (FileNotFoundError(errno.ENOENT, "No such file", "in/1.parquet"), r"\(No such file\), got in/1.parquet"),
        (OSError(errno.EIO, "Input/output error"), r"\(Input/output error\), got .*out"),
    ],
)
def test_what_the_system_refuses_is_a_sentence_and_can_be_resumed(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: OSError, said: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise refused

    with monkeypatch.context() as patched:
        patched.setattr(shuffling, "write_part", refuse)
        with pytest.raises(JobStoppedError, match=rf"file must be usable {said}: nothing was released.*--resume"):
            shuffled(source, tmp_path / "out", seed=1)
    assert not (tmp_path / "out").exists()
    assert shuffled(source, tmp_path / "out", resume=True) == shuffled(source, tmp_path / "same", seed=1)


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), WorkLostError("gone")])
def test_what_is_stopped_leaves_nothing_half(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: BaseException
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise stop

    with monkeypatch.context() as patched:
        patched.setattr(shuffling, "write_part", stopped)
        with pytest.raises(type(stop)):
            shuffled(source, tmp_path / "out")
    assert not (tmp_path / "out").exists() and not list(work_folder(tmp_path / "out").glob("spills/*"))
    shuffled(source, tmp_path / "out", resume=True)
    assert sorted(numbers_in(tmp_path / "out")) == list(range(511))


def test_only_the_same_job_is_resumed(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(shuffling, "write_part", lambda *_: os.fsync(1 << 20))
        with pytest.raises(OSError, match="Bad file"):
            shuffled(source, tmp_path / "out", reports=5)
    with pytest.raises(JobStoppedError, match="must be of the same job, and its reports was another"):
        shuffled(source, tmp_path / "out", resume=True)
    write_ciphertexts(tmp_path / "in", (300, 212), group=100)
    with pytest.raises(JobStoppedError, match="must be of the same job, and its data was another"):
        shuffled(source, tmp_path / "out", resume=True, reports=5)
    write_ciphertexts(tmp_path / "in", (300, 211), group=100)
    (work_folder(tmp_path / "out") / "key").write_bytes(bytes(32))
    with pytest.raises(ParameterError, match="must have its key"):
        shuffled(source, tmp_path / "out", resume=True, reports=5)


def test_a_job_without_its_key_only_gets_its_name(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(jobs, "_publish", killed)
        with pytest.raises(KeyboardInterrupt):
            shuffled(source, tmp_path / "out", reports=5)
    assert not (work_folder(tmp_path / "out") / "key").exists()
    with pytest.raises(ParameterError, match="must be of the same job, and its reports was another"):
        shuffled(source, tmp_path / "out", resume=True, reports=6)
    assert not (tmp_path / "out").exists()
    monkeypatch.setattr(shuffling, "write_part", killed)
    shuffled(source, tmp_path / "out", resume=True, reports=5)
    assert sorted(numbers_in(tmp_path / "out")) == list(range(511))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


def test_what_another_has_published_is_no_answer(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that was stopped stays as it is where its name was taken meanwhile; one that ended knows what it was."""
    work = work_folder(tmp_path / "out")
    with monkeypatch.context() as patched:
        patched.setattr(shuffling, "write_part", lambda *_: os.fsync(1 << 20))
        with pytest.raises(OSError, match="Bad file"):
            shuffled(source, tmp_path / "out")
    shuffled(source, tmp_path / "other")
    (tmp_path / "other").rename(tmp_path / "out")
    for resume in (True, False):
        with pytest.raises(ParameterError, match=r"must be a new name.*move what is there away, then go on"):
            shuffled(source, tmp_path / "out", resume=resume)
    assert any((work / "key").read_bytes())
    (tmp_path / "out").rename(tmp_path / "other")
    shuffled(source, tmp_path / "out", resume=True)
    # As a version that gave the name first has left it.
    for asked in ({"job": "one"}, {"job": "two"}):
        work.mkdir()
        (work / "key").write_bytes(b"k" * 32)
        (work / jobs.REQUEST).write_text('{"schema": 1, "job": "one"}')
        if asked["job"] == "one":
            assert published_before(tmp_path / "out", asked) is not None
        else:
            with pytest.raises(ParameterError, match="must be of the same job, and its job was another"):
                published_before(tmp_path / "out", asked)
        assert not work.exists()
