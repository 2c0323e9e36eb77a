"""Large batches: peak memory of every process, and CPU a million messages, for permuting, delivering and opening.

Shuffler and analyzer run in processes of their own, with HTTP between them. What is permuted and delivered is as long
as ciphertexts are, and every message is another; but it is not encrypted: the analyzer of that part cuts the message
out of each instead of opening it, which says nothing about the speed of opening, and everything else is as always:
tallies, ids, the search for copies. All of these batches go in pieces, also those that would travel whole. Opening is
measured apart, on real ciphertexts that are all different.
"""

import argparse
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from report import FOLDER, figure, report

from shuffledp import BinarySum, Privacy, RandomBits
from shuffledp.service.analyzer.app import analyzer_app
from shuffledp.service.analyzer.opening import Opener
from shuffledp.service.analyzer.remote import RemoteOpener
from shuffledp.service.analyzer.server import AnalyzerServer
from shuffledp.service.client.calls import Calls
from shuffledp.service.crypto import PrivateKey, PublicKey, binding
from shuffledp.service.delivery import LARGEST_PIECE_BYTES, Sending
from shuffledp.service.serving import Address, uvicorn_server
from shuffledp.service.shuffler.large import BatchSizes
from shuffledp.service.shuffler.sending import post_to
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.store import open_analyzer_store, open_shuffler_store
from shuffledp.service.store.contract import BatchPart
from shuffledp.service.task import Task
from shuffledp.service.tokens import Tokens
from shuffledp.service.wire import CIPHERTEXT_BYTES, MESSAGE_BYTES, OVERHEAD_BYTES, pack_messages

SPAWN = multiprocessing.get_context("spawn")
BATCH, AT_ONCE = "1.0.1", 1000
MOST_MB = 500


# --- what is measured ------------------------------------------------------------------------


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def peak_mb() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def cpu() -> float:
    return time.process_time()


def measured(work: Callable[[], Any]) -> dict[str, float]:
    forget_peak()
    started, begun = cpu(), time.perf_counter()
    work()
    return {"cpu": cpu() - started, "seconds": time.perf_counter() - begun, "peak_mb": peak_mb()}


# --- processes -------------------------------------------------------------------------------


def shuffler(pipe: Any, store: str, text: str, url: str, token: str, users: int, messages: int) -> None:
    """Fills one batch as reports would, then seals and sends it when it is told."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = ShufflerServer(open_shuffler_store(store), post=post_to(url, token), sizes=BatchSizes(whole=0))
    task_id, _ = server.add_task(text)
    bits, length = RandomBits.secure(), messages * CIPHERTEXT_BYTES

    def part(first: int) -> None:
        some = min(AT_ONCE, users - first)
        names = [each.tobytes().hex() for each in bits.unsigned((some, 16), 8)]
        rows = np.zeros((some * messages, CIPHERTEXT_BYTES), dtype=np.uint8)
        # Nothing before the message, then its id, that it counts, and a payload of 0.
        rows[:, 32:48] = bits.unsigned((some * messages, 16), 8)
        rows[:, 48] = 1
        kept = [BatchPart(BATCH, first, some, users, rows.tobytes())]
        assert len(kept[0].body) == some * length
        server._store.write(lambda records: records.keep(task_id, names, names, kept))

    def fill() -> None:
        for first in range(0, users, AT_ONCE):
            part(first)

    def send() -> None:
        assert server.send_waiting()

    pipe.send(measured(fill))
    pipe.recv()
    pipe.send(measured(lambda: server.seal_full()))
    pipe.recv()
    pipe.send(measured(send))
    pipe.recv()
    server.stop()


class InTheClear:
    """Cuts messages out of what is as long as ciphertexts."""

    at_once = 2

    def start(self, body: bytes, task_id: str, batch_id: str) -> "Future[tuple[bytes, int]]":
        rows = np.frombuffer(body, dtype=np.uint8).reshape(-1, CIPHERTEXT_BYTES)
        opened: Future[tuple[bytes, int]] = Future()
        opened.set_result((rows[:, 32 : 32 + MESSAGE_BYTES].tobytes(), 0))
        return opened

    def close(self) -> None:
        pass


def analyzer(pipe: Any, store: str, text: str, key: bytes, secrets: dict[str, str], port: int, clear: bool) -> None:
    """Serves until it is told to read, reads, and says what that took."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    private = PrivateKey(key)
    opener: Any = InTheClear() if clear else Opener(private, processes=1)
    server = AnalyzerServer(open_analyzer_store(store), key=private, opener=opener)
    server.add_task(text)
    # Read when it is told, not by the chore.
    server.start = lambda: None  # type: ignore[method-assign]
    app = analyzer_app(server, Tokens(secrets))
    serving = uvicorn_server(app, Address(port=port))
    serving.is_told = True
    thread = threading.Thread(target=serving.run, daemon=True)
    thread.start()
    forget_peak()
    started = cpu()
    pipe.send("serving")
    pipe.recv()
    pipe.send({"cpu": cpu() - started, "peak_mb": peak_mb()})
    pipe.recv()
    pipe.send(measured(server.read_all))
    pipe.recv()
    [task_id] = server.tasks
    pipe.send(server.history(task_id, 0, 10))
    workers = [] if clear else [_peak_of(pid) for pid in opener._pool._processes]
    pipe.send(workers)
    serving.should_exit = True
    thread.join()


def _peak_of(pid: int) -> float:
    return int(Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1].split()[0]) / 1024


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def started(target: Callable[..., None], *given: Any) -> tuple[Any, Any]:
    ours, theirs = SPAWN.Pipe()
    process = SPAWN.Process(target=target, args=(theirs, *given))
    process.start()
    return process, ours


# --- permuting and delivering ----------------------------------------------------------------


def task_of(messages: int, key: PublicKey) -> tuple[Task, int, int]:
    """A count by shares of so many messages in all, nine or so a user."""
    privacy = Privacy(1, 1e-6)
    each = BinarySum.plan(users=messages // 9, privacy=privacy, method="shares").messages_per_user_max
    plan = BinarySum.plan(users=messages // each, privacy=privacy, method="shares")
    task = Task.create(plan, key, bits=RandomBits.secure(), allow_unbounded=True)
    return task, plan.users, plan.messages_per_user_max


def through(folder: Path, messages: int) -> dict[str, dict[str, float]]:
    """One batch from a shuffler's store to a released estimate."""
    key, tokens = PrivateKey.generate(), Tokens.generate(bits=RandomBits.secure())
    task, users, each = task_of(messages, key.public)
    port = free_port()
    place = folder / str(messages)
    place.mkdir()
    given = (str(place / "analyzer.db"), task.text, key.raw, dict(tokens.secrets), port, True)
    back, there = started(analyzer, *given)
    assert there.recv() == "serving"
    url = f"http://127.0.0.1:{port}"
    while True:
        try:
            httpx.get(f"{url}/healthz")
            break
        except httpx.HTTPError:
            time.sleep(0.1)
    front, here = started(shuffler, str(place / "shuffler.db"), task.text, url, tokens.secrets["hop"], users, each)
    found = {"fill": here.recv()}
    for name in ("permute", "send"):
        here.send(None)
        found[name] = here.recv()
    there.send(None)
    found["receive"] = there.recv()
    there.send(None)
    found["read"] = there.recv()
    there.send(None)
    history = there.recv()
    assert len(history) == 1 and history[0]["dropped"] == 0, history
    here.send(None)
    there.recv()
    for process in (front, back):
        process.join(30)
    count = users * each
    for each_part in found.values():
        each_part["cpu_a_million"] = each_part["cpu"] / count * 1e6
    shutil.rmtree(place)
    said = ", ".join(f"{name} {part['cpu_a_million']:.2f} s, {part['peak_mb']:.0f} MB" for name, part in found.items())
    print(f"  {count:,} messages ({count * CIPHERTEXT_BYTES / 1e6:.0f} MB): CPU a million and peak: {said}", flush=True)
    return found


# --- opening ---------------------------------------------------------------------------------


def sealed(given: tuple[bytes, bytes, int]) -> bytes:
    public, info, count = given
    packed = pack_messages(np.zeros(count, dtype=np.uint64), None, count, bits=RandomBits.secure())
    return b"".join(PublicKey(public).seal(packed, info))


def remote(pipe: Any, url: str, token: str, key: bytes) -> None:
    """An opener elsewhere, until it is told."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with httpx.Client(timeout=60) as http:
        opener = RemoteOpener(Calls(url, token, http, RandomBits.secure()), [PrivateKey(key)])
        forget_peak()
        begun, counted = cpu(), 0
        pipe.send("ready")
        while not pipe.poll():
            counted += opener.open_one_or_wait()
        pipe.send({"cpu": cpu() - begun, "peak_mb": peak_mb(), "pieces": counted})


def opening(folder: Path, messages: int) -> list[dict[str, Any]]:
    """Real ciphertexts, all different, opened by one local worker and one elsewhere."""
    key, tokens = PrivateKey.generate(), Tokens.generate(bits=RandomBits.secure())
    task, users, each = task_of(messages, key.public)
    count, info = users * each, binding(task.id, BATCH)
    with ProcessPoolExecutor(os.cpu_count() or 1, mp_context=SPAWN) as pool:
        step = LARGEST_PIECE_BYTES // CIPHERTEXT_BYTES
        parts = [(key.public.raw, info, min(step, count - at)) for at in range(0, count, step)]
        pieces = list(pool.map(sealed, parts))
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    given = (str(folder / "opening.db"), task.text, key.raw, dict(tokens.secrets), port, False)
    back, there = started(analyzer, *given)
    assert there.recv() == "serving"
    away, elsewhere = started(remote, url, tokens.secrets["open"], key.raw)
    assert elsewhere.recv() == "ready"
    post = post_to(url, tokens.secrets["hop"])
    time.sleep(1.0)
    sending = Sending()
    for number, piece in enumerate(pieces):
        sending.add(piece)
        assert post(f"/v1/tasks/{task.id}/batches/{BATCH}/pieces/{number}", piece) == 201
    manifest = sending.manifest().text.encode()
    assert post(f"/v1/tasks/{task.id}/batches/{BATCH}/manifest", manifest, "application/json") == 201
    there.send(None)
    there.recv()
    there.send(None)
    read = there.recv()
    there.send(None)
    [release] = there.recv()
    [worker] = there.recv()
    elsewhere.send(None)
    helped = elsewhere.recv()
    for process in (back, away):
        process.join(30)
    share = helped["pieces"] * step
    print(
        f"  opening {count:,} real ciphertexts: analyzer {read['peak_mb']:.0f} MB, worker {worker:.0f} MB, opener "
        f"elsewhere {helped['peak_mb']:.0f} MB for {helped['pieces']} of {len(pieces)} pieces",
        flush=True,
    )
    assert release["dropped"] == 0 and OVERHEAD_BYTES == CIPHERTEXT_BYTES - MESSAGE_BYTES
    rows = [
        figure("analyzer while opening: peak MB", read["peak_mb"], "<=", MOST_MB, f"{count:,} real ciphertexts"),
        figure("a worker of the analyzer: peak MB", worker, "<=", MOST_MB, "pieces of a megabyte"),
        figure("an opener elsewhere: peak MB", helped["peak_mb"], "<=", MOST_MB, "pieces of a megabyte"),
    ]
    if share:
        seconds = helped["cpu"] / min(share, count) * 1e6
        rows.append(figure("an opener elsewhere: CPU s a million", seconds, "<=", 130, f"{helped['pieces']} pieces"))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="up to 100,000 messages")
    parser.add_argument("--sizes", type=int, nargs="*", help="messages in the batches that are permuted and delivered")
    given = parser.parse_args()
    sizes = given.sizes or ([20_000, 100_000] if given.quick else [100_000, 1_000_000, 10_000_000])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as name:
        folder = Path(name)
        found = {size: through(folder, size) for size in sizes}
        rows = opening(folder, 20_000 if given.quick else 100_000)
    largest, second = found[max(sizes)], found[sorted(sizes)[-2]] if len(sizes) > 1 else None
    for part, words in (
        ("permute", "shuffler, permuting"),
        ("send", "shuffler, sending"),
        ("receive", "analyzer, receiving"),
        ("read", "analyzer, reading in the clear"),
    ):
        rows.append(figure(f"{words}: peak MB", largest[part]["peak_mb"], "<=", MOST_MB, f"{max(sizes):,} messages"))
        if second is not None:
            ratio = largest[part]["cpu_a_million"] / second[part]["cpu_a_million"]
            words = f"{words}: CPU a million, {max(sizes):,} over {sorted(sizes)[-2]:,} messages"
            rows.append(figure(words, ratio, "<=", 1.5, f"{largest[part]['cpu_a_million']:.2f} s a million"))
    return report("Large batches", rows)


if __name__ == "__main__":
    sys.exit(main())
