"""Worker processes that are killed, and servers that are killed under them."""

import os
import signal
import subprocess
import sys
import time
from contextlib import closing

from shuffledp.service.analyzer.opening import Opener
from shuffledp.service.crypto import PrivateKey, binding
from shuffledp.service.wire import MESSAGE_BYTES

_SERVER = """
import sys, time
from shuffledp.service.analyzer.opening import Opener
from shuffledp.service.crypto import PrivateKey
if __name__ == "__main__":
    opener = Opener(PrivateKey.generate(), processes=1)
    opener.open(bytes(77), "t", "1.0.1")
    print(*opener._pool._processes, flush=True)
    time.sleep(60)
"""


def batch(key: PrivateKey, count: int) -> bytes:
    messages = [number.to_bytes(16) + bytes([1]) + bytes(MESSAGE_BYTES - 17) for number in range(count)]
    return b"".join(key.public.seal(messages, binding("t", "1.0.1")))


def test_workers_that_were_killed_are_replaced() -> None:
    key = PrivateKey.generate()
    body = batch(key, 50)
    with closing(Opener(key, processes=1)) as opener:
        for _ in range(2):
            assert opener.open(body, "t", "1.0.1").payloads.size == 50
            for pid in list(opener._pool._processes):
                os.kill(pid, signal.SIGKILL)
        assert opener.open(body, "t", "1.0.1").payloads.size == 50


def test_a_killed_server_leaves_no_worker_with_the_key_behind() -> None:
    with subprocess.Popen([sys.executable, "-c", _SERVER], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        workers = [int(pid) for pid in server.stdout.readline().split()]
        assert workers and all(is_there(pid) for pid in workers)
        server.kill()
    deadline = time.monotonic() + 10
    while any(is_there(pid) for pid in workers):
        assert time.monotonic() < deadline, "workers outlive their server"
        time.sleep(0.05)


def is_there(pid: int) -> bool:
    """Whether a process runs: one that has ended and waits to be noticed does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
