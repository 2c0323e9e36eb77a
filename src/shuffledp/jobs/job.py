"""A job that writes a data set: it appears whole or not at all, and goes on after a crash with the same key.

Beside OUT, in the same folder, while the job runs and after a crash:

    .OUT.job/job.json   what was asked, of which data
    .OUT.job/key        the job's key, from the operating system, for its owner only
    .OUT.job/out/       the finished files; manifest.json last
    .OUT.job/spills/    what an engine keeps for a while, encrypted under a key that is in memory alone

The job ends in three steps: the manifest is written, the key is overwritten and removed, `out` takes the name OUT. The
output and the key are never both there. A run that was stopped before the second step goes on with `resume`: the key
draws the same bits, so that files that were finished stay as they are. After it only the name is left to be given.
"""

import errno
import json
import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shuffledp.engines.keyed import JobKey
from shuffledp.errors import DataError, JobStoppedError, ParameterError, ShuffleDPError, WorkLostError
from shuffledp.files import (
    destroy_file,
    is_of_the_system,
    locked,
    other_version,
    read_json,
    settle_name,
    write_secret,
)
from shuffledp.jobs.manifest import MANIFEST, DataManifest

SCHEMA = 1
REQUEST = "job.json"
SIMULATED = "simulated"
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@dataclass(frozen=True)
class Job:
    """One job that is under way, held by this process.

    Attributes:
        out: where the data set will be.
        work: the folder beside it in which the job works.
        key: what all its randomness comes from.
        can_resume: whether it goes on with `resume` where it was stopped.
    """

    out: Path
    work: Path
    key: JobKey
    can_resume: bool = True

    @property
    def folder(self) -> Path:
        """Where finished files go until all are there."""
        return self.work / "out"

    @property
    def spills(self) -> Path:
        """Where an engine may write for a while."""
        return self.work / "spills"

    @property
    def _go_on(self) -> str:
        return "go on with --resume" if self.can_resume else "run it again"

    def commit(self, manifest: DataManifest) -> None:
        """All files are there: destroy the key, then publish them under the job's name, in one step.

        What a repeatable key has mixed says so in its manifest, as the fact `simulated`: it hides nobody.
        """
        if not self.key.is_secure:
            manifest = replace(manifest, facts={**manifest.facts, SIMULATED: True})
        manifest.save(self.folder)
        settle_name(self.folder / MANIFEST)
        wrong = _unlike(self.folder, manifest)
        for name in wrong:
            (self.folder / name).unlink(missing_ok=True)
        if wrong:
            problem = "must stay as it was written, and another process has changed it"
            raise JobStoppedError("file", wrong[0], problem, f"nothing was released: {self._go_on}")
        _destroy_key(self.work)
        _publish(self.work, self.out)


def work_folder(out: Path) -> Path:
    """Where the job of this name works."""
    return out.with_name(f".{out.name}.job")


@contextmanager
def job_at(
    out: Path, asked: Mapping[str, Any], *, resume: bool, key: JobKey | None = None, can_resume: bool = True
) -> Iterator[Job]:
    """Begin a job, or go on with one that was stopped, as long as the block lasts.

    A block that ends with a refusal of what was asked leaves nothing; one that is killed, interrupted or has no room
    leaves what is needed to go on.

    Args:
        out: where the data set will be: a new name.
        asked: what the job is and of which data, as JSON; a job that is resumed must have been asked the same.
        resume: whether one was stopped, and is to go on.
        key: the job's key; a new one from the operating system if it is left out.
        can_resume: whether such a job can go on; one that cannot leaves nothing unless it is killed.

    Raises:
        ParameterError: the name is not new, another process is at it, or there is nothing to go on with.
    """
    target = Path(os.path.realpath(out))
    work = work_folder(target)
    with _alone(target):
        _check_new(target, work, resume=resume, can_resume=can_resume)
        own = _resumed(work, asked) if resume else _begun(target, work, asked, key)
        job = Job(target, work, own, can_resume)
        try:
            shutil.rmtree(job.spills, ignore_errors=True)
            job.spills.mkdir(mode=0o700)
            # A process that was killed leaves what it had not finished.
            _keep_only(job.folder, {path.name for path in job.folder.glob("[!.]*.parquet")})
            yield job
        except BaseException as stopped:
            shutil.rmtree(job.spills, ignore_errors=True)
            if not can_resume:
                _tidy(work)
            if is_no_room(stopped):
                raise _no_room(out, f"nothing was released: free some, then {job._go_on}") from stopped
            if isinstance(stopped, OSError) and is_of_the_system(stopped):
                # A file that is gone or forbidden, a disk that does not answer: somebody can mend it.
                where, why = stopped.filename or out, stopped.strerror or str(stopped)
                problem, way_out = f"must be usable ({why})", f"nothing was released: mend that, then {job._go_on}"
                raise JobStoppedError("file", str(where), problem, way_out) from stopped
            if isinstance(stopped, ShuffleDPError) and not isinstance(stopped, JobStoppedError | WorkLostError):
                # What was asked is refused: there is nothing to go on with.
                _tidy(work)
            raise


def published_before(out: Path, asked: Mapping[str, Any]) -> DataManifest | None:
    """What a job has published, or has still to give its name, that was killed when its key was destroyed already.

    Args:
        out: where the data set is, or will be when this returns.
        asked: what the job is and of which data, as for `job_at`.

    Returns:
        The manifest of what is there; None where a job has still to be done, or there is none.

    Raises:
        ParameterError: it was asked something else.
    """
    target = Path(os.path.realpath(out))
    work = work_folder(target)
    if not (work / REQUEST).exists():
        return None
    with _alone(target):
        is_named = _is_published(target, work)
        if not is_named and (target.exists() or _key_in(work) or not (work / "out" / MANIFEST).exists()):
            return None
        other = _differs(work, asked)
        if is_named:
            # A version that gave the name first may have left the key.
            _tidy(work)
        if other is not None:
            problem = f"must be of the same job, and its {other} was another"
            raise ParameterError("resume", str(target), problem, "ask the same of the same data, or name another")
        if not is_named:
            wrong = _unlike(work / "out", DataManifest.load(work / "out"))
            if wrong:
                again = f"remove {work} and begin again"
                raise DataError("file", str(work / "out" / wrong[0]), "must be what its manifest says", again)
            _publish(work, target)
    return DataManifest.load(target)


def _publish(work: Path, target: Path) -> None:
    """The last step."""
    (work / "out").replace(target)
    settle_name(target)
    _tidy(work)


def _keep_only(folder: Path, names: Collection[str]) -> None:
    """Remove everything else from a folder."""
    for path in folder.iterdir():
        if path.name in names:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _unlike(folder: Path, manifest: DataManifest) -> list[str]:
    """The files that are not there as the manifest says; what is not in it at all is removed."""
    sizes = {file.name: file.size for file in manifest.files}
    _keep_only(folder, {*sizes, MANIFEST})
    found = {path.name: path.stat().st_size for path in folder.iterdir()}
    return [name for name, size in sizes.items() if found.get(name) != size]


def _is_published(target: Path, work: Path) -> bool:
    """Whether the job of this folder has ended, and only what it worked with is left."""
    return (target / MANIFEST).exists() and not (work / "out").exists()


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    """One job at a time for an output."""
    name = target.with_name(f".{target.name}.running")
    with locked(name, timeout=0.0, parameter="out"):
        try:
            yield
        finally:
            with suppress(OSError):
                name.with_name(f"{name.name}.lock").unlink()


def is_no_room(error: BaseException | None) -> bool:
    """Whether an error says that a disk is full, or comes of one that does."""
    while error is not None and not (isinstance(error, OSError) and error.errno in _NO_ROOM):
        error = error.__cause__
    return error is not None


def _check_new(target: Path, work: Path, *, resume: bool, can_resume: bool) -> None:
    if target.exists():
        if _is_published(target, work):
            # A crash after the last step: what was published stands.
            _tidy(work)
            problem = "is finished: running it again would show the same people's messages a second time"
            raise ParameterError("out", str(target), problem, "use what is there, or name another")
        is_stopped = can_resume and (work / REQUEST).exists()
        way_out = "move what is there away, then go on with --resume" if is_stopped else "name another"
        raise ParameterError("out", str(target), "must be a new name", way_out)
    if resume and not (work / REQUEST).exists():
        raise ParameterError("resume", str(target), "must be of a job that was stopped", "leave --resume out")
    if not resume and (work / REQUEST).exists():
        problem = "is the name of a job that was stopped"
        first = "go on with --resume" if can_resume else "name another"
        raise ParameterError("out", str(target), problem, f"{first}, or remove {work} and begin again")


def _begun(target: Path, work: Path, asked: Mapping[str, Any], key: JobKey | None) -> JobKey:
    """A new job's folder, with its key: it has begun when what was asked is written down."""
    made = JobKey.generate() if key is None else key
    try:
        # Of a job that was killed before it began.
        _tidy(work)
        work.mkdir(mode=0o700)
        (work / "out").mkdir()
        write_secret(work / "key", made.raw, 0o600)
        marked = {} if made.is_secure else {SIMULATED: True}
        write_secret(work / "job.part", json.dumps({"schema": SCHEMA, **asked, **marked}, sort_keys=True), 0o600)
        (work / "job.part").replace(work / REQUEST)
        settle_name(work / REQUEST)
        settle_name(work)
    except OSError as refused:
        with suppress(OSError):
            _tidy(work)
        if is_no_room(refused):
            raise _no_room(target, "nothing was written: free some, then run it again") from refused
        problem = "must be in a directory that can be written"
        raise ParameterError("out", str(target), problem, f"not {target.parent}: name another") from refused
    return made


def _no_room(out: Path, way_out: str) -> JobStoppedError:
    return JobStoppedError("out", str(out), "must be on a disk with room for it", way_out)


def _resumed(work: Path, asked: Mapping[str, Any]) -> JobKey:
    """The key of a job that was stopped, if it was asked the same of the same data."""
    again = f"remove {work} and begin again"
    if (schema := _known(work).get("schema")) != SCHEMA:
        raise other_version("job.schema", schema, SCHEMA, again)
    other = _differs(work, asked)
    if other is not None:
        problem = f"must be of the same job, and its {other} was another"
        raise JobStoppedError("resume", str(work), problem, f"ask the same of the same data, or {again}")
    raw = _key_in(work)
    if not raw:
        raise DataError("resume", str(work), "must have its key", again)
    return JobKey(raw, is_secure=not _known(work).get(SIMULATED, False))


def _differs(work: Path, asked: Mapping[str, Any]) -> str | None:
    """The first thing that was asked otherwise; None if nothing was."""
    known = {name: value for name, value in _known(work).items() if name != SIMULATED}
    wanted = json.loads(json.dumps({"schema": SCHEMA, **asked}))
    return next((name for name in {**wanted, **known} if known.get(name) != wanted.get(name)), None)


def _known(work: Path) -> dict[str, Any]:
    """What a job was asked, as it wrote it down."""
    again = f"remove {work} and begin again"
    return dict(read_json(work / REQUEST, "resume", if_missing=again, if_broken=again))


def _key_in(work: Path) -> bytes:
    """The job's key; nothing where it was destroyed, or overwritten at least."""
    raw = (work / "key").read_bytes() if (work / "key").exists() else b""
    return raw if any(raw) else b""


def _destroy_key(work: Path) -> None:
    if (work / "key").exists():
        destroy_file(work / "key")


def _tidy(work: Path) -> None:
    """Destroy the key, then remove whatever else is left of the job."""
    _destroy_key(work)
    shutil.rmtree(work, ignore_errors=True)
