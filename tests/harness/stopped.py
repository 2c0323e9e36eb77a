"""Jobs that are killed at every step that they make durable, then resumed: `python -m harness.stopped`.

It is sent a JSON object: which job of `JOBS`, where its data are, an empty folder, and perhaps a twin. For each step it
answers a line: the step, whether the kill came, and what the job has published in the end. A process that has imported
everything forks each run, so that a kill ends one run and nothing else.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow.parquet  # noqa: F401 - before any fork, so that none has to import it

from harness.children import child
from shuffledp.engines import JobKey, LocalEngine
from shuffledp.errors import ShuffleDPError
from shuffledp.jobs import job as jobs
from shuffledp.jobs import opening, shuffling
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.task import Task

_PATIENCE = 120.0


def shuffle(order: dict[str, Any], out: Path, *, resume: bool) -> None:
    """The shuffle of a data set in three buckets."""
    with LocalEngine(processes=1) as engine, patch.object(shuffling, "bucket_size", lambda size: size // 3 + 1):
        key = None if resume else JobKey.seeded(1)
        shuffling.shuffle_files(Path(order["data"]), out, engine=engine, resume=resume, key=key)


def opened(order: dict[str, Any], out: Path, *, resume: bool) -> None:
    """The opening of a task's ciphertexts, in three buckets."""
    with LocalEngine(processes=1) as engine, patch.object(opening, "bucket_size", lambda size: size // 3 + 1):
        key = None if resume else JobKey.seeded(1)
        asked = {"task": _task(order["task"]), "keys": (PrivateKey.from_text(order["key"]),)}
        opening.open_files(Path(order["data"]), out, **asked, engine=engine, resume=resume, key=key)


@cache
def _task(text: str) -> Task:
    """Read once: a plan takes longer to check than a job."""
    task = Task.from_text(text)
    assert task.plan.users == task.routing.users
    return task


JOBS: dict[str, Callable[..., None]] = {"shuffle": shuffle, "open": opened}


def every_step(job: str, data: Path, folder: Path, **more: Any) -> list[dict[str, Any]]:
    """What becomes of a job that is killed at its first durable step and resumed, at its second, and so on."""
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    order = json.dumps({"job": job, "data": str(data), "folder": str(folder), **more})
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with child([sys.executable, "-m", "harness.stopped"], env=paths, **pipes) as process:
        out, _ = process.communicate(order, timeout=_PATIENCE)
        assert process.returncode == 0, out
    return [json.loads(line) for line in out.splitlines()]


def _forked(work: Callable[[], None]) -> str:
    """Run something in a process of its own: how it ended."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except ShuffleDPError as refused:
            print(refused, file=sys.stderr, flush=True)
            os._exit(2)
        except BaseException as broken:
            print(repr(broken), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    return "killed" if os.WIFSIGNALED(status) else {0: "done", 2: "refused"}.get(os.WEXITSTATUS(status), "broken")


def _killed_at(step: int, work: Callable[[], None]) -> Callable[[], None]:
    left, forced = step, os.fsync

    def force(descriptor: int) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        forced(descriptor)

    def run() -> None:
        with patch("os.fsync", force):
            work()

    return run


def _main() -> None:
    order = json.loads(sys.stdin.read())
    work = JOBS[order["job"]]
    if order.get("twin") == "a key for every attempt":
        jobs._resumed = lambda *_: JobKey.generate()
    if "task" in order:
        _task(order["task"])
    step, ended = order.get("first", 1) - 1, ""
    while step < order.get("last", 1 << 30) and ended != "done":
        step += 1
        out = Path(order["folder"]) / f"out-{step}"
        ended = _forked(_killed_at(step, lambda out=out: work(order, out, resume=False)))
        stopped, was_there = ended == "killed", out.exists()
        key = out.with_name(f".{out.name}.job") / "key"
        has_key = key.exists() and any(key.read_bytes())
        left = (out.with_name(f".{out.name}.job") / jobs.REQUEST).exists()
        again = _forked(lambda out=out, left=left: work(order, out, resume=left)) if stopped else ended
        names = [path.name for path in out.parent.iterdir() if path != out]
        manifest = out / "manifest.json"
        found = {"step": step, "ended": ended, "again": again, "left": names}
        found |= {"was_there": was_there, "had_key": has_key}
        found["manifest"] = json.loads(manifest.read_bytes()) if manifest.exists() else None
        print(json.dumps(found), flush=True)
        shutil.rmtree(out.with_name(f".{out.name}.job"), ignore_errors=True)


if __name__ == "__main__":
    _main()
