"""Worker processes that are killed, and servers that are killed under them."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing

import pytest

from harness.children import child
from shuffledp.service.analyzer.opening import Opener
from shuffledp.service.crypto import PrivateKey, binding
from shuffledp.service.wire import MESSAGE_BYTES
from shuffledp.service.workers import ClosedError

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
    with child([sys.executable, "-c", _SERVER], stdout=subprocess.PIPE, text=True) as server:
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


def test_the_key_is_handed_over_once_and_not_with_every_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """What travels to the workers with a part is the binding and the ciphertexts."""
    key = PrivateKey.generate()
    sent: list[bytes] = []
    with closing(Opener(key, processes=1)) as opener:
        submit = opener._pool.submit
        monkeypatch.setattr(opener._pool, "submit", lambda *work: sent.append(pickle.dumps(work)) or submit(*work))
        assert opener.open(batch(key, 3), "t", "1.0.1").payloads.size == 3
    assert sent and not any(key.raw in each for each in sent)


def test_a_batch_that_is_being_opened_is_left_when_it_closes() -> None:
    opener = Opener(PrivateKey.generate(), processes=1)
    failed: list[BaseException] = []

    def work() -> None:
        try:
            opener.open(bytes(77 * 200_000), "t", "1.0.1")
        except BaseException as ended:
            failed.append(ended)

    opening = threading.Thread(target=work)
    opening.start()
    time.sleep(0.5)
    begun = time.monotonic()
    opener.close()
    opening.join(10)
    assert isinstance(failed[0], ClosedError) and time.monotonic() - begun < 5
