"""What one core and one disk do for the service: CPU seconds a report and a message, fsyncs, bytes.

Seconds are of CPU wherever that can be: the machine may have other work. With --page the figures are kept in
benchmarks/measured, and the tables of docs/howto/size-a-deployment.md are written from them.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import platform
import sys
import tempfile
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from report import report, shown
from sizing_page import MEASURED, Sizing, fitted, write_page

from service import (
    CONNECTIONS,
    LEASE_SECONDS,
    UPLOAD,
    UPLOADING,
    check,
    disk,
    reports_for,
    request,
    send_all,
    serve_shuffler,
    served,
    singles,
)
from shuffledp import RandomBits
from shuffledp.service.crypto import PrivateKey, binding, open_all
from shuffledp.service.routing import Routing
from shuffledp.service.shuffler.desk import ShufflerDesk
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.store import open_shuffler_store
from shuffledp.service.store.contract import BatchPart
from shuffledp.service.store.group_commit import _MOST_TOGETHER
from shuffledp.service.tokens import Tokens
from shuffledp.service.wire import CIPHERTEXT_BYTES, SentReport, new_id, pack_messages, pack_upload

FEW, MANY = 1, 26
# Of the analyzer in the page's tables: a large machine.
CORES = 64


def routing_of(users: int, messages: int) -> Routing:
    """One batch of all users, that does not fill while reports are accepted."""
    return Routing(users=users, budget=1, shufflers=1, slot_users=users, every_slot=False, messages={users: messages})


def cpu_seconds(pid: int) -> float:
    """What a process has used of all cores, with all its threads."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def accepting(folder: Path, count: int, messages: int) -> tuple[float, float]:
    """A server's CPU seconds a report: one that comes by itself, and one in an upload."""
    tokens = Tokens.generate(bits=RandomBits.secure())
    text = json.dumps({"routing": routing_of(10 * count, messages).document()})
    before = {each.pid for each in multiprocessing.active_children()}
    with served(serve_shuffler, folder, text, tokens, None) as port:
        [server] = {each.pid for each in multiprocessing.active_children()} - before
        task_id = hashlib.sha256(text.encode()).hexdigest()
        alone = singles(reports_for(port, task_id, tokens, count), task_id, tokens)
        others = reports_for(port, task_id, tokens, 4 * count // UPLOAD * UPLOAD)
        path, secret = f"/v1/tasks/{task_id}/reports", tokens.secrets["enrol"]
        together = [
            request("POST", path, pack_upload(others[at : at + UPLOAD]), secret) for at in range(0, len(others), UPLOAD)
        ]
        found = []
        for requests, each, connections in ((alone, 1, CONNECTIONS), (together, UPLOAD, UPLOADING)):
            started = cpu_seconds(server)
            load = send_all(port, requests, connections)
            found.append((cpu_seconds(server) - started) / (len(requests) * each))
            check([load], each)
    return found[0], found[1]


def store_alone(folder: Path, count: int, messages: int) -> tuple[float, float]:
    """CPU seconds a report of desk and store alone, in commits of many; and bytes written for one that arrives."""
    routing, task_id, bits = routing_of(10 * count, messages), "ab" * 32, RandomBits.secure()
    desk = ShufflerDesk(routings={task_id: routing}, bits=bits, lease_seconds=LEASE_SECONDS)
    with closing(open_shuffler_store(folder / f"alone-{messages}.db")) as store:

        def seats(records) -> list:
            records.add_task(task_id, json.dumps(routing.document()))
            return [desk.take_seat(records, task_id) for _ in range(count)]

        reports = [
            SentReport(new_id(bits=bits), seat.seat, os.urandom(routing.report_bytes(position)))
            for position, seat in enumerate(store.write(seats))
        ]
        store.forget_deleted()
        written, started = _written(), time.process_time()
        for start in range(0, count, 4 * UPLOAD):
            part = reports[start : start + 4 * UPLOAD]
            store.write(lambda records, part=part: desk.accept(records, task_id, part))
        seconds = time.process_time() - started
        store.forget_deleted()
        arrived = sum(len(each.body) for each in reports)
        return seconds / count, (_written() - written) / arrived


def _written() -> int:
    """Bytes that this process has given to disks."""
    lines = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(lines["write_bytes"])


def sealing(folder: Path, users: int) -> tuple[float, float]:
    """CPU seconds a message from its full batch to the next hop, which takes it at once; and bytes written for each."""
    messages, some = 2, 25
    routing, step = routing_of(users, messages), messages * CIPHERTEXT_BYTES
    batch, body = routing.batches_of(0)[0], os.urandom(users * messages * CIPHERTEXT_BYTES)
    server = ShufflerServer(open_shuffler_store(folder / "sealing.db"), post=lambda path, sent: 201)
    task_id, _ = server.add_task(json.dumps({"routing": routing.document()}))

    def fill(records) -> None:
        ids = [f"{seat:032x}" for seat in range(users)]
        places = range(0, users, some)
        parts = [BatchPart(batch.batch_id, at, some, users, body[at * step : (at + some) * step]) for at in places]
        records.keep(task_id, ids, ids, parts)

    server._store.write(fill)
    server._store.forget_deleted()
    written, started = _written(), time.process_time()
    server.seal_full()
    server.send_waiting()
    seconds = time.process_time() - started
    written = _written() - written
    sent = server.counts(task_id)["batches_sent"]
    server.stop()
    if sent != 1:
        raise SystemExit("the batch was not sent")
    return seconds / (users * messages), written / len(body)


def encryption(messages: int) -> tuple[float, float]:
    """CPU seconds of a message on a device, and at the analyzer."""
    key, bits, info = PrivateKey.generate(), RandomBits.secure(), binding("t", "1.0.1")
    packed = pack_messages(bits.unsigned(0, 8), None, messages, bits=bits)
    started = time.thread_time()
    sealed = key.public.seal(packed, info)
    device = (time.thread_time() - started) / messages
    started = time.thread_time()
    open_all(key.raw, sealed, info)
    return device, (time.thread_time() - started) / messages


def measured(folder: Path, count: int) -> dict:
    """All figures, as they are kept."""
    few, many = accepting(folder, count, FEW), accepting(folder, count, MANY)
    alone = {messages: store_alone(folder, count, messages) for messages in (FEW, MANY)}
    seal_seconds, seal_written = sealing(folder, 10 * count)
    device, opening = encryption(2 * count)
    fsync, bandwidth = (row["value"] for row in disk(folder))
    sizing = {
        "put": fitted(FEW, few[0], MANY, many[0]),
        "upload": fitted(FEW, few[1], MANY, many[1]),
        "store": fitted(FEW, alone[FEW][0], MANY, alone[MANY][0]),
        "sealing": seal_seconds,
        "device": device,
        "opening": opening,
        "message_bytes": CIPHERTEXT_BYTES,
        "written": alone[MANY][1] + seal_written,
        "fsync": fsync / 1e3,
        "bandwidth": bandwidth * 1e6,
        "together": _MOST_TOGETHER,
    }
    words = next(
        (line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), ":"
    )
    return {
        "schema": 1,
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{words.partition(':')[2].strip() or platform.machine()}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}, SQLite",
        "cores": CORES,
        "sizing": sizing,
    }


def main() -> int:
    """Measure, show, and write the page if that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer reports")
    parser.add_argument("--page", action="store_true", help="keep the figures, and write the page's tables from them")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        found = measured(Path(name), 500 if given.quick else 4000)
    sizing = Sizing.of(found)
    rows = [
        shown(f"{name}: microseconds", 1e6 * seconds, f"and {1e6 * each:.3g} a message")
        for name, (seconds, each) in (("PUT", sizing.put), ("POST of 100", sizing.upload), ("store", sizing.store))
    ]
    rows += [
        shown(f"{name}: microseconds a message", 1e6 * seconds, "of CPU")
        for name, seconds in (("sealing", sizing.sealing), ("device", sizing.device), ("opening", sizing.opening))
    ]
    rows.append(shown("bytes written for one that arrives", sizing.written, f"fsync {1e3 * sizing.fsync:.3g} ms"))
    if given.page:
        MEASURED.parent.mkdir(exist_ok=True)
        MEASURED.write_text(json.dumps(found, indent=2) + "\n")
        write_page()
    return report("Sizing", rows)


if __name__ == "__main__":
    sys.exit(main())
