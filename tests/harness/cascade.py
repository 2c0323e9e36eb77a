"""A cascade in one process without threads of chores: each step is the test's, and all that travels is kept."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import httpx
import numpy as np

from harness.world import Kill, OpenerHere, PeelerHere, accept_reports, watch
from shuffledp.randomness import RandomBits
from shuffledp.service.analyzer.server import AnalyzerServer
from shuffledp.service.crypto import PrivateKey, SigningKey
from shuffledp.service.delivery import Manifest
from shuffledp.service.onion import wrap
from shuffledp.service.openapi import BINARY
from shuffledp.service.problems import RefusedError
from shuffledp.service.routing import SeatInBatch
from shuffledp.service.shuffler.large import BatchSizes
from shuffledp.service.shuffler.layers import Layer
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.store import open_analyzer_store, open_shuffler_store
from shuffledp.service.task import RoundTask, Task
from shuffledp.service.wire import SentReport, Unpacked, new_id, pack_messages

BITS = RandomBits.secure()

Making = Callable[[tuple[SeatInBatch, ...]], bytes]
"""What somebody sends from a seat in these batches."""

Delivered = tuple[str, str, bytes]
"""Task, batch and bytes of one request between two hops."""


@dataclass(frozen=True)
class Writing(OpenerHere):
    """Opens in this process, and keeps what it found."""

    found: list[Unpacked] = field(default_factory=list)

    def open(self, body: bytes, task_id: str, batch_id: str) -> Unpacked:
        """All messages of a batch."""
        self.found.append(super().open(body, task_id, batch_id))
        return self.found[-1]

    def start(self, body: bytes, task_id: str, batch_id: str) -> "Future[tuple[bytes, int]]":
        """A piece's messages, opened at once."""
        self.open(body, task_id, batch_id)
        return super().start(body, task_id, batch_id)


@dataclass
class Cascade:
    """Hops on stores of their own, and an analyzer; `sent[n]` is what hop n has sent on."""

    folder: Path
    hops: int = 3
    sizes: BatchSizes | None = None
    address: Callable[[str], str] | None = None
    make_hop: Callable[..., ShufflerServer] = ShufflerServer
    fate: Callable[[], str] = lambda: "delivered"
    """Of each request between hops: delivered, lost, answer lost, or twice."""

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.keys = [PrivateKey.generate() for _ in range(self.hops)]
        self.key, self.signing = PrivateKey.generate(), SigningKey.generate()
        self.dead: set[int] = set()
        self.images: dict[int, Path] = {}
        self.lives = 0
        self.sent: dict[int, list[Delivered]] = {number: [] for number in range(1, self.hops + 1)}
        self.opener = Writing(self.key)
        store = open_analyzer_store(str(self.folder / "analyzer.db"))
        self.analyzer = AnalyzerServer(store, key=self.key, opener=self.opener, signing=self.signing)
        self.servers: dict[int, ShufflerServer] = {}
        for number in range(1, self.hops + 1):
            self.start(number)

    @property
    def public(self) -> list[Any]:
        """The hops' public keys, first hop first."""
        return [key.public for key in self.keys]

    def path(self, number: int) -> str:
        """Where a hop's store is."""
        name = f"hop-{number}"
        if number in self.images:
            return str(self.images[number] / f"{name}.db")
        return str(self.folder / f"{name}.db") if self.address is None else self.address(name)

    def start(self, number: int, key: PrivateKey | None = None, hop: int | None = None) -> ShufflerServer:
        """A hop on its store, with its own key and number unless others are given; a single one is a plain shuffler."""
        own = key or self.keys[number - 1]
        layer = None if self.hops == 1 else Layer(hop or number, own.public, PeelerHere(own))
        held = open_shuffler_store(self.path(number))
        try:
            made = self.make_hop(held, post=lambda *sent: self._post(number, *sent), layer=layer, sizes=self.sizes)
        except BaseException:
            held.close()
            raise
        self.servers[number] = made
        return made

    def _post(self, number: int, path: str, body: bytes, media: str = BINARY) -> int:
        parts = path.split("/")
        if number in self.dead:
            raise httpx.ConnectError("the sender is dead")
        self.sent[number].append((parts[3], parts[5], body))
        fate = "lost" if number + 1 in self.dead else self.fate()
        if fate == "lost":
            raise httpx.ConnectError("lost")
        try:
            new = [self._taken(number, parts, body) for _ in range(2 if fate == "twice" else 1)]
        except RefusedError as refused:
            return refused.kind.status
        if fate == "answer lost" or self.dead:
            raise httpx.ReadTimeout("answer lost")
        return 201 if new[-1] else 200

    def _taken(self, number: int, parts: list[str], body: bytes) -> bool:
        """What the server after this hop answers to a request."""
        task_id, batch_id = parts[3], parts[5]
        following: Any = self.analyzer if number == self.hops else self.servers[number + 1]
        if len(parts) == 6:
            return bool(following.deliver(task_id, batch_id, body))
        if parts[6] == "pieces":
            return bool(following.take_piece(task_id, batch_id, int(parts[7]), body))
        return bool(following.take_manifest(task_id, batch_id, Manifest.from_text(body.decode())))

    def die_during(self, number: int, statement: int, choice: Random, act: Callable[[], Any]) -> bool:
        """Let a hop die at this statement of its writer, or after the act; a new one starts from what is on its disk.

        Answers whether it was in the middle of something.
        """
        store: Any = self.servers[number]._store
        self.lives += 1
        image = self.folder / f"image {self.lives}"
        watched = watch(store)
        kill = Kill(Path(self.path(number)), image, statement, choice, lambda: self.dead.add(number))
        watched.kill = kill
        act()
        in_the_middle, watched.kill = kill.happened, None
        store.write(lambda records: kill.now())
        self.servers[number].stop()
        self.dead.discard(number)
        self.images[number] = image
        self.start(number)
        return in_the_middle

    def serve(self, task: Any) -> Any:
        """Serve a task or a campaign everywhere."""
        self.analyzer.add_task(task.text)
        for server in self.servers.values():
            server.add_task(task.text)
        return task

    def report(self, task: Task | RoundTask, makes: Sequence[Making]) -> list[bytes]:
        """Everybody takes a seat at hop 1 and sends what is made for it, in one upload; answers what was sent."""
        seats = self.servers[1].take_seats(task.id, len(makes)).result(timeout=10)
        bodies = [make(seat.batches) for make, seat in zip(makes, seats, strict=True)]
        sent = [SentReport(new_id(bits=BITS), seat.seat, body) for seat, body in zip(seats, bodies, strict=True)]
        answers = accept_reports(self.servers[1], task.id, sent).result(timeout=10)
        assert not [answer for answer in answers if isinstance(answer, RefusedError)], answers
        return bodies

    def pass_on(self, number: int) -> bool:
        """Let a hop seal what is full and send it on; answers whether all was taken."""
        self.servers[number].seal_full()
        return self.servers[number].send_waiting()

    def work(self) -> None:
        """Let all hops do their chores in turn, and the analyzer read what came out."""
        for number in self.servers:
            assert self.pass_on(number)
        self.analyzer.read_all()

    @property
    def payloads(self) -> list[int]:
        """All that the analyzer has counted, sorted."""
        return sorted(payload for each in self.opener.found for payload in each.payloads.tolist())

    @property
    def malformed(self) -> int:
        """How many messages the analyzer found to be none."""
        return sum(each.malformed for each in self.opener.found)

    def close(self) -> None:
        """Let go of all stores."""
        for server in (*self.servers.values(), self.analyzer):
            server.stop()


def numbered(task: Task | RoundTask, number: int) -> Making:
    """What a person sends whose every message is a number of its own: the person's, and the message's."""

    def make(batches: tuple[SeatInBatch, ...]) -> bytes:
        parts, message = [], 0
        for batch in batches:
            payloads = np.arange(message, message + batch.messages, dtype=np.uint64) + 1000 * number
            message += batch.messages
            packed = pack_messages(payloads, None, batch.messages, bits=BITS)
            parts += wrap(packed, task.public_key, task.hops, task.id, batch.batch_id)
        return b"".join(parts)

    return make


def cut(body: bytes, length: int) -> list[bytes]:
    """A body's ciphertexts, in their order."""
    return [body[at : at + length] for at in range(0, len(body), length)]
