"""A cascade of three under load, each hop killed with SIGKILL in turn; then every report is counted."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from faults.test_kill import found, rows
from harness.crowd import Crowd, check, full_batches, wait_until_read
from harness.nursery import servers
from shuffledp.continual.plan import CounterPlan
from shuffledp.privacy import Privacy
from shuffledp.randomness import RandomBits
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.task import Task
from shuffledp.service.tokens import Tokens

TURNS = 3
PARTIES = ("shuffler", "hop 2", "hop 3", "analyzer")


def test_hops_killed_in_turn_lose_nothing_and_count_nothing_twice(tmp_path: Path) -> None:
    bits, choice = RandomBits.secure(), random.Random(11)
    key, hops, tokens = PrivateKey.generate(), [PrivateKey.generate() for _ in range(3)], Tokens.generate(bits=bits)
    plan = CounterPlan.plan(users=600, shufflers=2, privacy=Privacy(8, 0.1), noise="coins")
    task = Task.create(plan, key.public, bits=bits, hops=[hop.public for hop in hops])
    enough, busy = threading.Event(), threading.Event()
    with servers(tmp_path, key, tokens, lease_seconds=1.0, hops=hops) as running, ThreadPoolExecutor(2) as threads:
        running.add_task(task)
        crowds = [Crowd(task, running, seed, busy) for seed in range(2)]
        crowding = [threads.submit(crowd.run, enough) for crowd in crowds]
        for turn in range(TURNS):
            for name in PARTIES:
                busy.clear()
                busy.wait(timeout=1.0)
                time.sleep(choice.uniform(0.0, 0.05))
                running.kill(name)
                time.sleep(choice.uniform(0.0, 0.05))
                running.start(name)
            if turn == TURNS - 1:
                enough.set()
        for each in crowding:
            each.result(timeout=60)
        wait_until_read(running, [task])
        for name in PARTIES:
            running.kill(name)
    # What was sent to each hop came once, and all of it went on.
    for name in ("hop 2", "hop 3"):
        got = {batch_id for (batch_id,) in rows(tmp_path / f"{name}.db", "SELECT batch_id FROM received", task)}
        assert got == set(full_batches(task)), name
    check(tmp_path, task, crowds, found(tmp_path, task))
