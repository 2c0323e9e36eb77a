"""A shuffler that is killed while people redeem tokens and report, and people who are killed, too: heard once each."""

import random
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import httpx
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA384

from harness.crowd import wait_until_read
from harness.nursery import kill_and_restart, servers
from shuffledp import BinarySum, Privacy
from shuffledp.randomness import RandomBits
from shuffledp.service.admission.private_tokens import Issuer, TokenKey
from shuffledp.service.admission.requesting import PendingToken
from shuffledp.service.client import Client
from shuffledp.service.client.client import ReportError
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.task import Task
from shuffledp.service.tokens import Tokens

PEOPLE, KILLS = 60, 6
SECURE = RandomBits.secure()


class KilledError(Exception):
    """A device that ended at this moment: whatever it had not written down is gone."""


class Dying(httpx.HTTPTransport):
    """A device's connection, which may end with the device before a request or before its answer is read."""

    def __init__(self, choice: random.Random, busy: threading.Event) -> None:
        super().__init__()
        self.choice, self.busy = choice, busy

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self.choice.random() < 0.15:
            raise KilledError
        self.busy.set()
        answer = super().handle_request(request)
        answer.read()
        if self.choice.random() < 0.15:
            raise KilledError
        return answer


def test_killed_on_both_sides_everybody_is_heard_once(tmp_path: Path) -> None:
    """Without an outbox: what a killed device knows afterwards is its token, and the shuffler does the rest."""
    private, key = rsa.generate_private_key(65537, 2048), PrivateKey.generate()
    issuer = Issuer("issuer.example", TokenKey.of(private.public_key()))
    plan = BinarySum.plan(users=PEOPLE, privacy=Privacy(2, 1e-3), method="coins")
    task = Task.create(plan, key.public, bits=SECURE, issuer=issuer)
    roles, busy = Tokens.generate(bits=SECURE), threading.Event()
    pss = padding.PSS(padding.MGF1(SHA384()), 48)

    def person(number: int) -> int:
        """Tries until the shuffler says that this token was heard, or has just heard it; how often it was new."""
        signed = PendingToken.draw(task.gate, bits=SECURE)._signed(task.gate)
        token, choice, new = signed + private.sign(signed, pss, SHA384()), random.Random(number), 0
        for _ in range(60):
            with httpx.Client(transport=Dying(choice, busy)) as http:
                try:
                    with Client(task, running.url("shuffler"), [token], http=http, patience=20) as client:
                        new += client.report(number % 2).new
                except KilledError:
                    continue
                except ReportError as stopped:
                    assert stopped.cause.kind == "pass-spent", stopped
                return new
        raise AssertionError("somebody was killed sixty times in a row")

    with servers(tmp_path, key, roles, lease_seconds=20.0) as running, ThreadPoolExecutor(4) as threads:
        running.add_task(task)
        trying = [threads.submit(person, number) for number in range(PEOPLE)]
        killed = kill_and_restart(running, busy, random.Random(3), KILLS)
        heard = [each.result(timeout=120) for each in trying]
        wait_until_read(running, [task])
        for role in ("shuffler", "analyzer"):
            running.kill(role)
    assert killed["shuffler"] >= 2
    # Some were acknowledged, and of others the acknowledgement was lost; nobody was heard twice, and all once.
    assert 0 < sum(heard) < PEOPLE and max(heard) == 1
    with closing(sqlite3.connect(tmp_path / "shuffler.db")) as store:
        assert store.execute("SELECT reports, next_position FROM tasks").fetchall() == [(PEOPLE, PEOPLE)]
        assert store.execute("SELECT seats, COUNT(*) FROM redeemed").fetchall() == [(3, PEOPLE)]
        assert store.execute("SELECT (SELECT COUNT(*) FROM held), (SELECT COUNT(*) FROM redeeming)").fetchone() == (
            0,
            0,
        )
