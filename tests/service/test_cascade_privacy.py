"""What two hops see has nothing in common: no bytes and no order; and twins that do share are caught.

Everything that a hop is sent, has on disk at any step, and writes to its log is recorded; the test holds all keys, and
so knows which message at one hop is which at another.
"""

import itertools
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.cascade import BITS, Cascade, cut, numbered
from harness.world import PeelerHere, known_ids
from shuffledp import BinarySum, Privacy
from shuffledp.accounting.dropouts import honest_users
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.service.coalitions import (
    ALL,
    ANALYZER,
    BOTH,
    COUNTS,
    KINDS,
    PERMUTED,
    WHO,
    hop_name,
    learned,
    looking,
    parties_of,
    replacing,
    replacing_some,
    telling,
)
from shuffledp.service.crypto import binding
from shuffledp.service.shuffler import desk as shuffler_desk
from shuffledp.service.shuffler.layers import Bound, Chunk, Layer, Peeled
from shuffledp.service.task import Task

USERS, WINDOW = 60, 12
FALSE_ALARM = 1e-9


class Recorded:
    """A cascade of three in which all that a hop sees is kept, after every step of any hop."""

    def __init__(self, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
        self.cascade = Cascade(folder, hops=3)
        plan = BinarySum.plan(users=USERS, privacy=Privacy(8, 0.1), method="coins", max_messages=3)
        self.task = Task.create(plan, self.cascade.key.public, bits=BITS, hops=self.cascade.public)
        self.cascade.serve(self.task)
        self.files: dict[int, set[bytes]] = {hop: set() for hop in (1, 2, 3)}
        self.logs: dict[int, bytes] = {}
        self.reports = self.cascade.report(self.task, [numbered(self.task, person) for person in range(USERS)])
        self._look()
        for hop in (1, 2, 3):
            caplog.clear()
            with caplog.at_level(logging.DEBUG):
                assert self.cascade.servers[hop].seal_full()
                self._look()
                assert self.cascade.servers[hop].send_waiting()
            self._look()
            self.logs[hop] = "\n".join(
                f"{each.message} {each.__dict__.get('facts')}" for each in caplog.records
            ).encode()

    def _look(self) -> None:
        for hop in (1, 2, 3):
            path = Path(self.cascade.path(hop))
            self.files[hop] |= {path.with_name(path.name + end).read_bytes() for end in ("", "-wal")}

    def arrived(self, hop: int) -> list[bytes]:
        """The messages that come to a hop, in their order."""
        body = b"".join(self.reports) if hop == 1 else self.cascade.sent[hop - 1][0][2]
        return cut(body, self.task.routing.at_hop(hop).ciphertext_bytes)

    def names(self, hop: int) -> list[bytes]:
        """What each message that comes to a hop is in the end, by its own random id, in the order of arrival."""
        rows = self.arrived(hop)
        for number in range(hop, 4):
            key = self.cascade.keys[number - 1] if number < 4 else self.cascade.key
            bound = (self.task.id, "1.0.1", number if number < 4 else 0)
            [(inside, bad)] = PeelerHere(key).open([b"".join(rows)], bound, len(rows[0]))
            assert bad == []
            rows = cut(inside, len(rows[0]) - 48)
        return [row[:16] for row in rows]

    def seen(self, hop: int) -> bytes:
        """All bytes that a hop ever had of messages: sent to it, on its disk, in its log; and what it sent."""
        sent = [body for _, _, body in self.cascade.sent[hop]]
        return b"\0".join([b"".join(self.arrived(hop)), *sent, *self.files[hop], self.logs[hop]])


def shared_windows(recorded: Recorded, one: int, other: int) -> set[bytes]:
    """Strings of bytes of what came to one hop that a later hop ever saw."""
    theirs = recorded.seen(other)
    windows = {row[at : at + WINDOW] for row in recorded.arrived(one) for at in range(0, len(row) - WINDOW, WINDOW)}
    there = {theirs[at : at + WINDOW] for at in range(len(theirs) - WINDOW + 1)}
    return windows & there


def order_is_kept(recorded: Recorded, one: int, other: int) -> bool:
    """Whether the order in which messages come to two hops is correlated, or a person's messages are side by side.

    Ranks of a uniform permutation have a correlation of variance 1 / (n - 1); 6.2 of these are passed with
    probability below the false alarm. Neighbours that stay neighbours are about 2 of n.
    """
    first, second = recorded.names(one), recorded.names(other)
    assert sorted(first) == sorted(second) and len(set(first)) == len(first)
    place = {name: rank for rank, name in enumerate(second)}
    ranks = np.array([place[name] for name in first])
    correlation = float(np.corrcoef(np.arange(len(ranks)), ranks)[0, 1])
    neighbours = int(np.count_nonzero(np.abs(np.diff(ranks)) == 1))
    return abs(correlation) * (len(ranks) - 1) ** 0.5 > 6.2 or neighbours > len(ranks) // 6


@pytest.fixture
def record(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], Recorded]]:
    made: list[Recorded] = []

    def one() -> Recorded:
        made.append(Recorded(tmp_path / "cascade", caplog))
        return made[-1]

    yield one
    for each in made:
        each.cascade.close()


def test_no_two_hops_see_a_common_string_or_order(record: Callable[[], Recorded]) -> None:
    recorded = record()
    for one, other in itertools.combinations((1, 2, 3), 2):
        assert shared_windows(recorded, one, other) == set(), (one, other)
        assert not order_is_kept(recorded, one, other), (one, other)
    # Ids of reports are the first hop's own, and no hop writes anything about a message down.
    ids = known_ids(recorded.cascade.servers[1]._store)  # type: ignore[arg-type]
    assert len(ids) == USERS
    assert not [name for name in ids for hop in (2, 3) if name in recorded.seen(hop)]
    assert all(b"batch sealed" in log and len(log) < 2000 for log in recorded.logs.values())


def test_a_hop_that_does_not_permute_is_caught(record: Callable[[], Recorded], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shuffler_desk, "permuted", lambda parts, **_: b"".join(parts))
    recorded = record()
    assert shared_windows(recorded, 1, 2) == set()
    assert order_is_kept(recorded, 1, 2) and order_is_kept(recorded, 1, 3)


def test_an_id_that_is_kept_through_is_caught(record: Callable[[], Recorded], monkeypatch: pytest.MonkeyPatch) -> None:
    """A hop that lets what it cannot open through as it came: whoever sent it finds it again."""
    peel = Layer.peel

    def lets_through(self: Layer, body: bytes, *given: Any, **more: Any) -> Peeled:
        peeled = peel(self, body, *given, **more)
        length = given[2]
        rows, inside = cut(body, length), cut(peeled.body, length - 48)
        return replace(peeled, body=b"".join(row[:16] + each[16:] for row, each in zip(rows, inside, strict=True)))

    with pytest.MonkeyPatch.context() as wrong:
        wrong.setattr(Layer, "peel", lets_through)
        recorded = record()
    assert shared_windows(recorded, 1, 2) and shared_windows(recorded, 1, 3)


# --- what any of the parties learn together -------------------------------------------------------


class Following(PeelerHere):
    """Takes a layer off, and remembers what became of each message: all that a hop that looks can know."""

    def __init__(self, key: Any, links: dict[bytes, bytes]) -> None:
        super().__init__(key)
        object.__setattr__(self, "links", links)

    def open(self, chunks: Any, bound: Bound, length: int) -> list[Chunk]:
        opened = super().open(chunks, bound, length)
        for chunk, (inside, _) in zip(chunks, opened, strict=True):
            self.links.update(zip(cut(chunk, length), cut(inside, length - 48), strict=True))  # type: ignore[attr-defined]
        return opened


def test_the_table_says_what_parties_with_real_keys_can_link(tmp_path: Path) -> None:
    """Every set of parties is given what its members really have; whether it can follow a message is tried out."""
    cascade = Cascade(tmp_path / "cascade", hops=3)
    links: dict[int, dict[bytes, bytes]] = {hop: {} for hop in (1, 2, 3)}
    for hop, server in cascade.servers.items():
        layer = server.desk.layer
        assert layer is not None
        own = Layer(hop, layer.key, Following(cascade.keys[hop - 1], links[hop]))
        object.__setattr__(server.desk, "layer", own)
    plan = BinarySum.plan(users=8, privacy=Privacy(8, 0.1), method="coins", max_messages=3)
    task = cascade.serve(Task.create(plan, cascade.key.public, bits=BITS, hops=cascade.public))
    reports = cascade.report(task, [numbered(task, person) for person in range(8)])
    cascade.work()
    cascade.close()
    victim = cut(reports[3], 221)[0]
    for count in range(1, 6):
        for some in itertools.combinations(parties_of(3), count):
            parties = frozenset(some)
            # Whoever sees reports come knows whose the first bytes are; hops of the set follow what they opened.
            found: bytes | None = victim if parties & {"network", "hop 1"} else None
            for hop in (1, 2, 3):
                own = links[hop] if hop_name(hop) in parties else {}
                found = own.get(found) if found is not None else None
            reads = found is not None and ANALYZER in parties
            if reads:
                assert cascade.key.open(found, binding(task.id, "1.0.1"))[16:17] == b"\1"  # type: ignore[arg-type,index]
            assert (learned(parties, 3) == ALL) == reads, some


@pytest.mark.parametrize("hops", [2, 3])
def test_more_parties_never_learn_less_and_one_honest_hop_is_enough(hops: int) -> None:
    sets = [frozenset(some) for count in range(1, hops + 3) for some in itertools.combinations(parties_of(hops), count)]
    order = {
        COUNTS: {COUNTS},
        WHO: {COUNTS, WHO},
        PERMUTED: {COUNTS, PERMUTED},
        BOTH: set(KINDS) - {ALL},
        ALL: set(KINDS),
    }
    for small, large in itertools.product(sets, sets):
        if small <= large:
            assert learned(small, hops) in order[learned(large, hops)], (small, large)
    for some in sets:
        has_honest_hop = not some.issuperset(hop_name(number) for number in range(1, hops + 1))
        assert (learned(some, hops) != ALL) == (has_honest_hop or ANALYZER not in some)


@pytest.mark.parametrize("protocol", ["binary-sum", "counter"])
def test_figures_are_the_accountants(protocol: str) -> None:
    privacy = Privacy(1, 1e-4)
    asked = {"shufflers": 2, "method": "coins"} if protocol == "counter" else {"method": "coins"}
    plan = PROTOCOLS[protocol].plan(users=400, privacy=privacy, honest_fraction=0.9, **asked)
    rows = looking(plan, 2)
    assert len([row for row in rows if not row.users]) == 2**4 - 1
    for row in rows:
        if row.learns in (COUNTS, WHO):
            assert row.epsilon == 0 and ANALYZER not in row.parties
        elif row.learns == ALL:
            assert (row.epsilon, row.delta) == (plan.local_epsilon, plan.local_delta)
        elif row.users == 0:
            assert row.epsilon == privacy.epsilon
        else:
            left = plan.epsilon_with(plan.honest_fraction - row.users)
            assert row.epsilon == (pytest.approx(max(left, 1.0)) if np.isfinite(left) else None)
    assert len(list(telling(rows))) < 10
    json.dumps([row.document() for row in rows], allow_nan=False)


def test_replaced_messages_leave_fewer_honest_people() -> None:
    plan = BinarySum.plan(users=400, privacy=Privacy(1, 1e-4), method="coins", honest_fraction=0.9)
    rows = replacing_some(plan)
    assert [row.honest_fraction for row in rows] == sorted((row.honest_fraction for row in rows), reverse=True)
    epsilons = [row.epsilon if row.epsilon is not None else np.inf for row in rows]
    assert epsilons == sorted(epsilons) and epsilons[0] == 1.0
    one = replacing(plan, 40)
    assert one.honest_fraction == (honest_users(400, 0.9) - 40) / 400 == 0.8
    assert one.epsilon == pytest.approx(max(1.0, plan.epsilon_with(0.8)))
    assert one.messages == 400 * plan.messages_per_user_max
    # All but one: nothing but what that person's own messages satisfy.
    last = rows[-1]
    assert last.replaced == honest_users(400, 0.9) - 1 and last.epsilon is plan.local_epsilon is None
