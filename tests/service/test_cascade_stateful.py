"""Hops at random: requests that are lost, answered in vain or sent twice, and hops that die inside a commit."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from harness.cascade import BITS, Cascade, cut, numbered
from shuffledp import BinarySum, Privacy
from shuffledp.service.shuffler.large import BatchSizes
from shuffledp.service.store.sqlite.incoming import SqliteIncoming
from shuffledp.service.task import Task

USERS, STEPS, RUNS = 4, 24, 8
SMALL = BatchSizes(whole=500, piece=400, dealt=600, bucket=300)


def run_at_random(folder: Path, seed: int) -> Counter[str]:
    """A few tasks through three hops, in random steps; then all is well, and every message was counted once."""
    choice, told = Random(seed), Counter[str]()
    cascade = Cascade(folder, hops=3, sizes=SMALL if seed % 2 else None)
    plan = BinarySum.plan(users=USERS, privacy=Privacy(8, 0.1), method="coins", max_messages=3)
    tasks = [Task.create(plan, cascade.key.public, bits=BITS, hops=cascade.public) for _ in range(3)]
    for number, task in enumerate(tasks):
        cascade.serve(task)
        cascade.report(task, [numbered(task, 100 * number + person) for person in range(USERS)])
    cascade.fate = lambda: choice.choice(("delivered", "delivered", "lost", "answer lost", "twice"))
    for _ in range(STEPS):
        hop = choice.randint(1, 3)
        act: Callable[[], Any] = choice.choice((cascade.servers[hop].seal_full, cascade.servers[hop].send_waiting))
        if choice.random() < 0.4:
            # The hop itself, or the one that it sends to.
            dying = min(3, hop + choice.randint(0, 1))
            statement = choice.randint(1, 12)
            told["dead in the middle"] += cascade.die_during(dying, statement, choice, partial(quiet, act))
        else:
            quiet(act)
        told["steps"] += 1
    cascade.fate = lambda: "delivered"
    cascade.work()
    messages = tasks[0].routing.longest_report_messages
    people = [100 * task + person for task in range(3) for person in range(USERS)]
    wanted = [1000 * person + each for person in people for each in range(messages)]
    found = cascade.payloads
    assert found == sorted(wanted), "a message was lost, or counted twice"
    assert cascade.malformed == 0
    for hop in (1, 2, 3):
        orders = {sent for sent in cascade.sent[hop] if not sent[2].startswith(b'{"version"')}
        rows = Counter(row for _, _, body in orders for row in cut(body, 221 - 48 * hop))
        assert set(rows.values()) == {1}, "a batch left a hop in two orders"
    told["sent again"] = sum(len(bodies) for bodies in cascade.sent.values()) - 9
    cascade.close()
    return told


def test_random_runs_count_every_message_once(tmp_path: Path) -> None:
    told = sum((run_at_random(tmp_path / str(seed), seed) for seed in range(RUNS)), Counter[str]())
    # Enough went wrong.
    assert told["dead in the middle"] >= 10 and told["sent again"] >= 10, told


def test_a_hop_that_forgets_what_it_received_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After its batch has left, a batch that is sent again is taken for a new one, and permuted again."""
    monkeypatch.setattr(SqliteIncoming, "received", lambda *_: None)
    with pytest.raises(Exception, match=r"twice|two orders|UNIQUE"):
        for seed in range(RUNS):
            run_at_random(tmp_path / str(seed), seed)


def quiet(act: Callable[[], Any]) -> None:
    """A dying server's own errors are nobody's business."""
    with suppress(httpx.HTTPError):
        act()
