"""A cascade of three under load, each hop killed with SIGKILL in turn; then every report is counted."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from faults.test_kill import found, rows
from harness.crowd import LONGEST, Crowd, check, full_batches, wait_until_read
from harness.nursery import servers
from shuffledp.continual.plan import CounterPlan
from shuffledp.privacy import Privacy
from shuffledp.randomness import RandomBits
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.task import Task
from shuffledp.service.tokens import Tokens

PARTIES = ("shuffler", "hop 2", "hop 3", "analyzer")


def test_hops_killed_in_turn_lose_nothing_and_count_nothing_twice(tmp_path: Path) -> None:
    assert survived(tmp_path, users=600, turns=3) == 600


def survived(folder: Path, *, users: int, turns: int) -> int:
    """Kill every hop and the analyzer so often while people report; answers how many reports were counted once."""
    bits, choice = RandomBits.secure(), random.Random(11)
    key, hops, tokens = PrivateKey.generate(), [PrivateKey.generate() for _ in range(3)], Tokens.generate(bits=bits)
    plan = CounterPlan.plan(users=users, shufflers=2, privacy=Privacy(8, 0.1), noise="coins")
    task = Task.create(plan, key.public, bits=bits, hops=[hop.public for hop in hops])
    enough, busy = threading.Event(), threading.Event()
    with servers(folder, key, tokens, lease_seconds=1.0, hops=hops) as running, ThreadPoolExecutor(2) as threads:
        running.add_task(task)
        deadline = time.monotonic() + LONGEST * max(1, turns // 3)
        crowds = [Crowd(task, running, seed, busy, deadline=deadline) for seed in range(2)]
        crowding = [threads.submit(crowd.run, enough) for crowd in crowds]
        for turn in range(turns):
            for name in PARTIES:
                busy.clear()
                busy.wait(timeout=1.0)
                time.sleep(choice.uniform(0.0, 0.05))
                running.kill(name)
                time.sleep(choice.uniform(0.0, 0.05))
                running.start(name)
            if turn == turns - 1:
                enough.set()
        for each in crowding:
            each.result(timeout=LONGEST * turns)
        wait_until_read(running, [task])
        for name in PARTIES:
            running.kill(name)
    # What was sent to each hop came once, and all of it went on.
    for name in ("hop 2", "hop 3"):
        got = {batch_id for (batch_id,) in rows(folder / f"{name}.db", "SELECT batch_id FROM received", task)}
        assert got == set(full_batches(task)), name
    check(folder, task, crowds, found(folder, task))
    return task.routing.users
