"""Openers that are killed in the middle of a piece: every piece is counted once, and the total is the same."""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from harness.children import child
from harness.world import OpenerHere, made_report, small_task
from shuffledp.randomness import RandomBits
from shuffledp.service.analyzer.app import analyzer_app
from shuffledp.service.analyzer.opening import Opener
from shuffledp.service.analyzer.remote import RemoteOpener
from shuffledp.service.analyzer.server import AnalyzerServer
from shuffledp.service.client.calls import Calls
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.delivery import Sending
from shuffledp.service.keys import load_private_key, load_tokens, make_keys
from shuffledp.service.serving import Address, uvicorn_server
from shuffledp.service.store import open_analyzer_store

FORK = multiprocessing.get_context("fork")
LEASE_SECONDS = 0.3


class Batch:
    """A batch in pieces of three messages, and what it says."""

    def __init__(self, key: PrivateKey) -> None:
        bits = RandomBits.secure()
        self.task = small_task(key.public, users=24, shufflers=3)
        seats = [self.task.routing.batches_of(position) for position in range(24)]
        self.batch = max(seats[0], key=lambda batch: batch.size)
        mine = [seat for seat in seats if self.batch.batch_id in {batch.batch_id for batch in seat}]
        made = [made_report(self.task, seat, bits=bits) for seat in mine]
        sealed = [one for report in made for one in report.pieces[self.batch.batch_id]]
        # Two of them come again, in other pieces than the first time.
        sealed[-1], sealed[-5] = sealed[0], sealed[4]
        self.pieces = [b"".join(sealed[at : at + 3]) for at in range(0, len(sealed), 3)]

    def deliver(self, server: AnalyzerServer) -> None:
        sending = Sending()
        for number, piece in enumerate(self.pieces):
            sending.add(piece)
            assert server.take_piece(self.task.id, self.batch.batch_id, number, piece)
        assert server.take_manifest(self.task.id, self.batch.batch_id, sending.manifest())

    def total(self, server: AnalyzerServer) -> Any:
        name = self.batch.batch_id
        return server._store.read(lambda records: records.totals(self.task.id, [name])).get(name)


def whole_total(batch: Batch, key: PrivateKey, folder: Path) -> Any:
    """What the batch says if it comes and is opened whole."""
    server = AnalyzerServer(open_analyzer_store(folder / "whole.db"), key=key, opener=OpenerHere(key))
    server.add_task(batch.task.text)
    server.deliver(batch.task.id, batch.batch.batch_id, b"".join(batch.pieces))
    server.read_all()
    total = batch.total(server)
    server.stop()
    assert total is not None and total.dropped >= 2
    return total


class Served:
    """An analyzer on a port, without workers of its own."""

    def __init__(self, folder: Path, workers: Any) -> None:
        self.keys = folder / "keys"
        make_keys(self.keys, bits=RandomBits.secure())
        self.key, self.tokens = load_private_key(self.keys), load_tokens(self.keys)
        self.server = AnalyzerServer(open_analyzer_store(folder / "a.db"), key=self.key, opener=workers(self.key))
        self.server.work.openings.seconds = LEASE_SECONDS
        # Read when the test says so.
        self.server.start = lambda: None  # type: ignore[method-assign]
        address = Address(port=0)
        self._taken = address.taken()
        sockets = self._taken.__enter__()
        self.url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}"
        self._serving = uvicorn_server(analyzer_app(self.server, self.tokens), address)
        self._serving.is_told = True
        self._thread = threading.Thread(target=lambda: self._serving.run(sockets), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._serving.should_exit = True
        self._thread.join(20)
        self._taken.__exit__(None, None, None)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    made = Served(tmp_path, lambda key: OpenerHere(key, 0))
    yield made
    made.stop()


def _open(url: str, token: str, raw: bytes) -> None:
    """One opener, until it is killed; each piece takes it a moment."""
    with httpx.Client(timeout=10) as http:
        calls = Calls(url, token, http, RandomBits.secure())
        opener = RemoteOpener(calls, [PrivateKey(raw)], wait=lambda seconds: time.sleep(0.01))
        real = opener._open

        def slowly(piece: Any) -> Any:
            time.sleep(0.02)
            return real(piece)

        opener._open = slowly  # type: ignore[method-assign]
        while True:
            opener.open_one_or_wait()


def test_openers_killed_at_random_give_the_total_of_the_whole(served: Served, tmp_path: Path) -> None:
    batch, choice = Batch(served.key), random.Random(71)
    expected = whole_total(batch, served.key, tmp_path)
    served.server.add_task(batch.task.text)
    batch.deliver(served.server)
    reading = threading.Thread(target=served.server.read_all)
    reading.start()
    given = (served.url, served.tokens.secrets["open"], served.key.raw)
    running, killed = [FORK.Process(target=_open, args=given, daemon=True) for _ in range(2)], 0
    for process in running:
        process.start()
    deadline = time.monotonic() + 60
    while reading.is_alive() and time.monotonic() < deadline:
        time.sleep(choice.uniform(0.05, 0.15))
        if killed < 6:
            place = choice.randrange(2)
            os.kill(running[place].pid or 0, signal.SIGKILL)
            running[place].join()
            running[place] = FORK.Process(target=_open, args=given, daemon=True)
            running[place].start()
            killed += 1
    for process in running:
        process.kill()
        process.join()
    reading.join(20)
    assert killed >= 3 and batch.total(served.server) == expected


def test_workers_of_the_analyzer_killed_in_the_middle_give_the_total_of_the_whole(tmp_path: Path) -> None:
    key = PrivateKey.generate()
    batch = Batch(key)
    expected = whole_total(batch, key, tmp_path)
    opener = Opener(key, processes=1)
    server = AnalyzerServer(open_analyzer_store(tmp_path / "a.db"), key=key, opener=opener)
    server.add_task(batch.task.text)
    batch.deliver(server)
    start, kills = opener.start, []

    def killing(*given: Any) -> Any:
        future = start(*given)
        if len(kills) < 2:
            kills.append(next(iter(opener._pool._processes)))
            os.kill(kills[-1], signal.SIGKILL)
        return future

    opener.start = killing  # type: ignore[method-assign]
    server.read_all()
    assert len(kills) == 2 and batch.total(server) == expected
    server.stop()


def test_the_command_opens_and_stops_in_time(served: Served, tmp_path: Path) -> None:
    batch = Batch(served.key)
    expected = whole_total(batch, served.key, tmp_path)
    served.server.add_task(batch.task.text)
    batch.deliver(served.server)
    reading = threading.Thread(target=served.server.read_all)
    reading.start()
    command = ["work", "opener", "--analyzer", served.url, "--keys", served.keys, "--processes", "1"]
    command += ["--token-file", served.keys / "open.token"]
    words = [sys.executable, "-m", "shuffledp", *map(str, command)]
    with child(words, stderr=subprocess.PIPE, text=True) as process:
        reading.join(40)
        started = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
        took = time.monotonic() - started
    assert batch.total(served.server) == expected, said
    assert process.returncode == 0 and took < 5 and "pieces opened here were counted" in said, said
