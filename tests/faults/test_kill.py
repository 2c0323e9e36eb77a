"""Real servers under load, killed with SIGKILL again and again; then every report is counted (`harness.crowd`)."""

import random
import sqlite3
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.crowd import Crowd, Found, check, wait_until_read
from harness.nursery import ROLES, kill_and_restart, servers
from shuffledp.continual.plan import CounterPlan
from shuffledp.privacy import Privacy
from shuffledp.randomness import RandomBits
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.task import Task
from shuffledp.service.tokens import Tokens

KILLS = 30


@dataclass(frozen=True)
class Survived:
    """What happened while servers were killed, after every report was looked for."""

    killed: Counter[str]
    """Kills by server."""
    before_the_end: int
    """How many reports were answered when the last kill came, and how often each answer was given in all."""
    statuses: Counter[int]


def test_killed_servers_lose_nothing_and_count_nothing_twice(tmp_path: Path) -> None:
    after = survived(tmp_path, users=4000, kills=KILLS)
    assert after.killed["shuffler"] >= 10 and after.killed["analyzer"] >= 10
    # The kills met the load: it went on after the last of them, and some reports were sent again and known.
    assert after.before_the_end < after.statuses.total()
    assert after.statuses[201] > 1000 and after.statuses[200] > 0, after.statuses


def survived(folder: Path, *, users: int, kills: int) -> Survived:
    """Two tasks of so many users each while servers are killed; fails unless all reports are counted, once each."""
    bits, choice = RandomBits.secure(), random.Random(7)
    key, tokens = PrivateKey.generate(), Tokens.generate(bits=bits)
    plan = CounterPlan.plan(users=users, shufflers=2, privacy=Privacy(8, 0.1), noise="coins")
    tasks = [Task.create(plan, key.public, bits=bits) for _ in range(2)]
    enough, busy = threading.Event(), threading.Event()
    with servers(folder, key, tokens, lease_seconds=1.0) as running, ThreadPoolExecutor(4) as threads:
        for task in tasks:
            running.add_task(task)
        crowds = [Crowd(task, running, seed, busy) for seed, task in enumerate(tasks * 2)]
        crowding = [threads.submit(crowd.run, enough) for crowd in crowds]
        killed = kill_and_restart(running, busy, choice, kills)
        before_the_end = sum(len(crowd.answers) for crowd in crowds)
        enough.set()
        for each in crowding:
            each.result(timeout=60)
        wait_until_read(running, tasks)
        for role in ROLES:
            running.kill(role)
    for task in tasks:
        check(folder, task, [crowd for crowd in crowds if crowd.task is task], found(folder, task))
    statuses = Counter(status for crowd in crowds for status in crowd.answers.values())
    return Survived(killed, before_the_end, statuses)


def found(folder: Path, task: Task) -> Found:
    kept = {row[0].hex() for row in rows(folder / "shuffler.db", "SELECT report_id FROM accepted", task)}
    totals = rows(folder / "analyzer.db", "SELECT batch_id, total, dropped, void, body FROM batches", task)
    releases = rows(folder / "analyzer.db", "SELECT time FROM releases", task)
    return Found(lambda asked: kept & set(asked), len(kept), totals, releases)


def rows(path: Path, query: str, task: Task) -> list[Any]:
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return connection.execute(f"{query} WHERE task_id = ?", (task.id,)).fetchall()
    finally:
        connection.close()
