"""The live service as its users meet it: real processes, real ports, the commands of the how-to page."""

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import pytest

from shuffledp import cli

COMMAND = [sys.executable, "-m", "shuffledp"]


def run(*words: str, code: int = 0) -> str:
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, done.stderr[-2000:] + done.stdout[-2000:]
    return done.stdout


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """A command that ends by itself, in this process: what it writes to standard output."""

    def call(*words: str) -> str:
        with pytest.raises(SystemExit) as ended:
            cli.main(list(words))
        out, err = capsys.readouterr()
        assert not ended.value.code, err[-2000:] + out[-2000:]
        return out

    return call


def two_ports() -> tuple[int, int]:
    """A free port whose successor is free, too."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            try:
                second.bind(("127.0.0.1", port + 1))
            except (OSError, OverflowError):
                continue
            return port, port + 1


@contextmanager
def serving(*words: str, ready: list[int]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([*COMMAND, "serve", *words], stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 60
        for port in ready:
            while True:
                assert process.poll() is None, process.stderr.read() if process.stderr else ""
                try:
                    if httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 200:
                        break
                except httpx.HTTPError:
                    pass
                assert time.monotonic() < deadline
                time.sleep(0.1)
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def test_the_demo_tells_the_whole_story(tmp_path: Path) -> None:
    told = json.loads(run("demo", "--folder", str(tmp_path / "live"), "--users", "300", "--clients", "2", "--json"))
    assert told["reports_acknowledged"] == told["reports_sent"] == told["seats"] == told["users"]
    assert told["batches_void"] == 0 < told["batches_released"]
    assert abs(told["estimate"] - told["truth"]) <= told["bound"]
    assert told["time"] == told["users"] and told["reports_pending"] == 0
    # Noise is carried, as good as a curator's but for a tenth; what that rests on is said.
    assert told["central_bound"] <= told["bound"] <= 1.1 * told["central_bound"]
    assert "false people in a row" in told["rests_on"] and len(told["warnings"]) == 2
    assert Path(told["picture"]).stat().st_size > 10_000
    logs = b"".join(log.read_bytes() for log in Path(told["folder"]).glob("*.log"))
    assert b"Traceback" not in logs and logs


def test_three_commands_of_the_how_to(tmp_path: Path, typed: Callable[..., str]) -> None:
    """Keys, a plan, a task; both servers; a value, a file, an estimate; the doctor. Servers are processes."""
    keys, plan, task = (str(tmp_path / name) for name in ("keys", "plan.json", "task.json"))
    typed("keys", keys)
    typed("plan", "binary-sum", "--users", "40", "--epsilon", "2", "--delta", "1e-3", "--method", "coins", "-o", plan)
    typed("task", "create", "--plan", plan, "--keys", keys, "-o", task)
    shuffler, analyzer = two_ports()
    where = ["--task", task, "--shuffler", f"http://127.0.0.1:{shuffler}", "--token-file", f"{keys}/enrol.token"]
    values = tmp_path / "values.npy"
    np.save(values, np.arange(39) % 3 == 0)
    words = ["all", "--folder", str(tmp_path / "stores"), "--keys", keys, "--task", task, "--port", str(shuffler)]
    with serving(*words, ready=[shuffler, analyzer]):
        run("report", "1", *where)
        run("report", "--file", str(values), *where, "--outbox", str(tmp_path / "outbox.db"))
        read = ["--task", task, "--analyzer", f"http://127.0.0.1:{analyzer}", "--token-file", f"{keys}/read.token"]
        deadline = time.monotonic() + 30
        while (said := json.loads(typed("estimate", *read, "--json")))["estimate"] is None:
            assert time.monotonic() < deadline
        assert abs(said["estimate"] - 14) <= said["bound"] + 20
        typed("doctor", "--keys", keys, "--task", task, "--shuffler", f"http://127.0.0.1:{shuffler}")
        # A full task takes no more reports, and says so.
        run("report", "1", *where, code=2)
        # A second server on one store is told who holds it.
        held = subprocess.run(
            [*COMMAND, "serve", "all", *words[1:-1], str(shuffler + 2)], capture_output=True, text=True, check=False
        )
        assert held.returncode == 2 and "process" in held.stderr
    assert not list(tmp_path.glob("*.part"))
