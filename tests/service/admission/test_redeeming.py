"""Tokens at a shuffler's desk, on each kind of store: one report a token, whatever runs out, crashes or comes twice."""

import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from shuffledp.randomness import RandomBits
from shuffledp.service.problems import PASS_SPENT, RefusedError
from shuffledp.service.rounds import RoundsRouting, round_id
from shuffledp.service.routing import Routing
from shuffledp.service.shuffler.desk import Accepted, ShufflerDesk
from shuffledp.service.shuffler.ending import end_task
from shuffledp.service.shuffler.own_hop import OwnHop
from shuffledp.service.store import open_shuffler_store
from shuffledp.service.store.redeeming import MOST_SEATS
from shuffledp.service.wire import SentReport, new_id, position_of

SECURE = RandomBits.secure()
TASK = "ab" * 32
LEASE = 60.0
USERS = 12


def routing_for(mint, users=USERS):
    shape = {"users": users, "budget": 1, "shufflers": 1, "slot_users": users, "every_slot": False}
    return Routing(**shape, messages={users: 1}, issuer=mint.issuer)


@dataclass
class Shop:
    """A desk on a store of its own, with a clock that is set by hand."""

    address: str
    routings: dict
    now: float = 1000.0
    store: object = field(init=False)

    def __post_init__(self):
        self.desk = ShufflerDesk(self.routings, SECURE, clock=lambda: self.now, lease_seconds=LEASE)
        self.open()

    def open(self):
        self.store = open_shuffler_store(self.address)
        for task_id, routing in self.routings.items():
            text = OwnHop(None).kept(routing)
            self.store.write(lambda records, task_id=task_id, text=text: records.add_task(task_id, text))

    def close(self):
        self.store.close()

    def seat(self, token, task_id=TASK):
        return self.store.write(lambda records: self.desk.take_seat(records, task_id, None, token)).seat

    def report(self, seat, task_id=TASK, report_id=None):
        body = bytes(self.routings[task_id].report_bytes(position_of(seat)))
        sent = SentReport(report_id or new_id(bits=SECURE), seat, body)
        [answer] = self.store.write(lambda records: self.desk.accept(records, task_id, [sent]))
        return answer

    def known(self, token, task_id=TASK):
        return self.store.write(lambda records: records.redeemed(task_id.partition(".")[0], token, task_id))


def new_token():
    return new_id(bits=SECURE) * 2


@pytest.fixture
def shop(store_address, mint):
    with closing(Shop(store_address("shuffler"), {TASK: routing_for(mint)})) as made:
        yield made


def test_the_same_token_has_the_same_seat_until_its_lease_ends(shop):
    token, other = new_token(), new_token()
    lost = shop.seat(other)
    shop.now += 1
    first = shop.seat(token)
    assert first != lost
    shop.now += LEASE - 1
    # A client that was killed, and asks again; the lease is not prolonged by that.
    again = shop.store.write(lambda records: shop.desk.take_seat(records, TASK, None, token))
    assert (again.seat, again.lease_seconds) == (first, 1.0)
    shop.close()
    shop.open()
    assert shop.seat(token) == first
    shop.now += 1
    # Somebody else's lease ended before, so that place comes first; this token's own old seat must go all the same.
    second = shop.seat(token)
    assert second not in (first, lost)
    # The old seat was given up for good before, and is not heard even if the clock is set back.
    shop.now -= LEASE
    assert shop.report(first).kind.name == "seat-gone"
    assert shop.report(second).new


def test_three_seats_at_most(shop):
    token, seats = new_token(), []
    for _ in range(MOST_SEATS):
        seats.append(shop.seat(token))
        shop.now += LEASE
    assert len(set(seats)) == MOST_SEATS == 3
    for _ in range(3):
        with pytest.raises(RefusedError, match="gets no other seat") as refused:
            shop.seat(token)
        assert refused.value.kind == PASS_SPENT
    assert {shop.report(seat).kind.name for seat in seats} == {"seat-gone"}
    # Its places are other people's.
    assert {position_of(shop.seat(new_token())) for _ in range(USERS)} == set(range(USERS))


def test_a_token_that_has_reported_gets_no_seat(shop):
    token = new_token()
    seat = shop.seat(token)
    report_id = new_id(bits=SECURE)
    assert shop.report(seat, report_id=report_id).new
    for _ in range(2):
        with pytest.raises(RefusedError, match="gets no other seat"):
            shop.seat(token)
        shop.now += 10 * LEASE
        shop.close()
        shop.open()
    # A retry whose answer was lost is known, and another report of that seat is not.
    assert shop.report(seat, report_id=report_id) == Accepted(new=False)
    assert shop.report(seat).kind.name == "seat-gone"
    known = shop.known(token)
    assert (known.seats, known.task_id, known.seat) == (MOST_SEATS, None, None)


def test_a_refused_seat_costs_nothing(shop):
    token = new_token()
    people = [new_token() for _ in range(USERS)]
    seats = [shop.seat(each) for each in people]
    for _ in range(2 * MOST_SEATS):
        with pytest.raises(RefusedError, match="seats are taken"):
            shop.seat(token)
    assert shop.known(token).seats == 0
    shop.now += LEASE
    # Somebody's lease ran out: the place goes to whoever asks, and its token may come back for another.
    taken = shop.seat(token)
    loser = next(each for each, seat in zip(people, seats, strict=True) if position_of(seat) == position_of(taken))
    assert shop.seat(loser) not in (taken, *seats)


def test_a_task_with_an_issuer_gives_no_seat_without_a_token(shop, mint):
    shop.routings["cd" * 32] = replace(routing_for(mint), issuer=None)
    for task, token in ((TASK, None), ("cd" * 32, new_token())):
        with pytest.raises(RefusedError, match="see the task's document") as refused:
            shop.store.write(lambda records, task=task, token=token: shop.desk.take_seat(records, task, None, token))
        assert refused.value.kind.status == 401


def rounds_of(mint):
    campaign = RoundsRouting(3, (routing_for(mint),))
    rounds = [round_id(TASK, number, 0) for number in range(2)]
    return rounds, {TASK: campaign, **dict.fromkeys(rounds, campaign.layouts[0])}


def test_a_token_is_a_campaigns_and_not_a_rounds(store_address, mint):
    (first, second), routings = rounds_of(mint)
    with closing(Shop(store_address("shuffler"), routings)) as shop:
        moved, reported = new_token(), new_token()
        old = shop.seat(moved, first)
        new = shop.seat(moved, second)
        assert new != old
        assert shop.report(old, first).kind.name == "seat-gone"
        assert shop.seat(moved, second) == new
        assert shop.report(shop.seat(reported, first), first).new
        with pytest.raises(RefusedError, match="gets no other seat"):
            shop.seat(reported, second)
        assert shop.known(moved, second).seats == 2


def test_what_is_known_of_tokens_goes_with_their_task(shop):
    tokens = [new_token() for _ in range(USERS)]
    for token in tokens[:-1]:
        assert shop.report(shop.seat(token)).new
    shop.seat(tokens[-1])
    end_task(shop.store, TASK, drop=True)
    assert all(shop.known(token).seats == 0 for token in tokens)
    assert shop.known(tokens[-1]).seat is None


@dataclass
class Crashing:
    """Records of which one call, counted from now, fails: whatever was done in the transaction is undone."""

    records: object
    left: int

    def __getattr__(self, name):
        found = getattr(self.records, name)

        def call(*given):
            self.left -= 1
            if self.left < 0:
                raise CrashError
            return found(*given)

        return call


class CrashError(Exception):
    """A process that was killed at this step."""


@pytest.mark.parametrize("seed", range(3))
def test_one_report_a_token_whatever_happens(store_address, mint, seed):
    """Random requests, retries, late reports, clocks that jump both ways, and a crash at any step of any transaction.

    The model is the promise itself: what every client was told, and how often each token was heard.
    """
    rng = np.random.default_rng(seed)
    (first, second), routings = rounds_of(mint)
    with closing(Shop(store_address("shuffler"), routings)) as shop:
        tokens = [new_token() for _ in range(8)]
        told = defaultdict(list)
        heard = defaultdict(int)
        owner, reports = {}, {}

        def crashing(work):
            steps = int(rng.integers(0, 14)) if rng.random() < 0.3 else 1000
            return shop.store.write(lambda records: work(Crashing(records, steps)))

        for _ in range(150):
            token, where = tokens[rng.integers(len(tokens))], (first, second)[rng.integers(2)]
            with suppress(CrashError):
                match int(rng.integers(10)):
                    case 0 | 1 | 2 | 3:
                        try:
                            given = crashing(lambda r, t=token, w=where: shop.desk.take_seat(r, w, None, t))
                        except RefusedError as refused:
                            assert heard[token] or len(set(told[token])) == MOST_SEATS or refused.kind != PASS_SPENT
                            continue
                        assert not heard[token], "a token that was heard has a seat"
                        assert owner.setdefault(given.seat, token) == token, "two tokens have one seat"
                        told[token].append((where, given.seat))
                        assert len(set(told[token])) <= MOST_SEATS
                        assert given.lease_seconds > 0
                    case 4 | 5 | 6 | 7:
                        if not told[token]:
                            continue
                        # Mostly the newest seat, with the same bytes again if they were sent before.
                        place = -1 if rng.random() < 0.7 else int(rng.integers(len(told[token])))
                        task_id, seat = told[token][place]
                        body = bytes(routings[task_id].report_bytes(position_of(seat)))
                        sent = reports.setdefault(seat, SentReport(new_id(bits=SECURE), seat, body))
                        [answer] = crashing(lambda r, t=task_id, s=sent: shop.desk.accept(r, t, [s]))
                        heard[token] += isinstance(answer, Accepted) and answer.new
                        assert heard[token] <= 1, "a token was heard twice"
                        if isinstance(answer, Accepted):
                            assert heard[token] == 1
                    case 8:
                        shop.now += float(rng.choice([1.0, LEASE / 2, LEASE, -LEASE / 2, -LEASE]))
                    case _:
                        shop.close()
                        shop.open()
        counted = [shop.store.read(lambda records, w=w: records.counts(w).reports) for w in (first, second)]
        assert sum(counted) == sum(heard.values()) > 0
        assert max(len(set(seats)) for seats in told.values()) == MOST_SEATS


def test_two_processes_give_one_token_one_seat(postgresql, tmp_path, mint):
    """At the same moment, in one round or in two, at two shufflers on one database: at most one report is kept."""
    (first, second), routings = rounds_of(mint)
    address = postgresql.address(tmp_path / "batch keys", postgresql.new_schema())
    with closing(Shop(address, routings)) as one, closing(Shop(address, routings)) as other:
        start = threading.Barrier(2)

        def ask(shop, token, task_id):
            start.wait(timeout=30)
            return shop.seat(token, task_id)

        def ask_and_report(shop, token, task_id):
            start.wait(timeout=30)
            answer = shop.report(shop.seat(token, task_id), task_id)
            return isinstance(answer, Accepted) and answer.new

        with ThreadPoolExecutor(2) as threads:
            for _ in range(5):
                token = new_token()
                asked = [threads.submit(ask, shop, token, first) for shop in (one, other)]
                assert len({each.result(timeout=60) for each in asked}) == 1
                assert one.known(token, first).seats == 1
            for _ in range(5):
                token = new_token()
                places = ((one, first), (other, second))
                asked = [threads.submit(ask_and_report, shop, token, place) for shop, place in places]
                kept = 0
                for each in asked:
                    with suppress(RefusedError):
                        kept += each.result(timeout=60)
                assert kept <= 1
                assert one.known(token, first).seats in (2, MOST_SEATS)


def test_another_process_reports_between_the_two(postgresql, tmp_path, mint):
    """A seat in another round is looked at again when that round is locked: its report may just have been kept."""
    (first, second), routings = rounds_of(mint)
    address = postgresql.address(tmp_path / "batch keys", postgresql.new_schema())
    with closing(Shop(address, routings)) as one, closing(Shop(address, routings)) as other:
        token = new_token()
        seat = one.seat(token, first)
        kept = []

        def take(records):
            locking = records._lock

            def lock(task_id):
                if task_id == first and not kept:
                    kept.append(other.report(seat, first))
                return locking(task_id)

            records._lock = lock
            return one.desk.take_seat(records, second, None, token)

        with pytest.raises(RefusedError, match="gets no other seat"):
            one.store.write(take)
        assert kept[0].new


def test_a_file_of_the_version_before_goes_on(tmp_path, mint):
    """It has no tables for tokens: they are made when a server opens it, beside the tasks that it has."""
    path = str(tmp_path / "shuffler.db")
    with closing(Shop(path, {TASK: routing_for(mint)})) as shop:
        for table in ("redeeming", "redeemed", "held"):
            shop.store.write(lambda records, table=table: records.db.execute(f"DROP TABLE {table}"))
        shop.close()
        shop.open()
        assert shop.report(shop.seat(new_token())).new
