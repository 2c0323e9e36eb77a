"""A command in a process of its own: what it prints, its wall time, and the CPU time and memory of all its processes.

Processes are looked at twenty times a second: memory that several share is counted once, and of a process that ended
the CPU time is known up to the last look.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

_LOOKED = 0.05
_TICKS = os.sysconf("SC_CLK_TCK")


def tree_of(process: int) -> list[int]:
    """A process and all that it started."""
    found, left = [], [process]
    while left:
        found.append(left.pop())
        try:
            for task in Path(f"/proc/{found[-1]}/task").iterdir():
                left.extend(int(word) for word in (task / "children").read_text().split())
        except OSError:
            continue
    return found


def resident(process: int) -> int:
    """Bytes of a process that are in memory, its part of those that others share."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0


def seconds_of(process: int) -> float:
    """The CPU time of a process, without that of those it started."""
    try:
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(words[11]) + int(words[12])) / _TICKS


def ran(words: list[str], limit: float = 1e9) -> dict[str, Any]:
    """What `shuffledp` prints as JSON under `answer`, with `cpu`, `wall`, `code`, and `peak` in bytes.

    Args:
        words: of the command line, with --json.
        limit: seconds after which it is ended, and the answer is an error.
    """
    command = [sys.executable, "-m", "shuffledp", *words]
    quiet = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryFile() as out:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, env=quiet)
        most, first = 0, 0.0
        each: dict[int, float] = {}
        while process.poll() is None:
            tree = tree_of(process.pid)
            most = max(most, sum(map(resident, tree)))
            each.update((one, found) for one in tree if (found := seconds_of(one)) > each.get(one, 0.0))
            if time.perf_counter() - started > limit:
                process.terminate()
            time.sleep(_LOOKED)
        wall = time.perf_counter() - started
        first = each.get(process.pid, 0.0)
        out.seek(0)
        printed = out.read()
    late = {"error": {"message": f"took more than {limit:.0f} s"}}
    answer = json.loads(printed) if printed.startswith(b"{") else late
    cpu = sum(each.values())
    return {"answer": answer, "cpu": cpu, "first": first, "wall": wall, "peak": most, "code": process.returncode}
