"""A user's own messages leave in random order: a message's place must not say if it is a value, a coin or a filler.

Messages are numbered before they are mixed and sealed in the clear, so that the order can be read. The bits are seeded
and only call themselves secure, so that a run repeats; every check has a false-alarm rate of 1e-9.
"""

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from harness.world import report_of
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.randomness import RandomBits
from shuffledp.service.client import making
from shuffledp.service.task import Task
from shuffledp.service.wire import CIPHERTEXT_BYTES, MESSAGE_BYTES
from shuffledp.testing.statistics import assert_law

ORDERS = {order: number for number, order in enumerate(permutations(range(4)))}
FALSE_ALARM = 1e-9
EPSILON_OF_FEW = 0.34


def numbered(payloads: Any, labels: Any, total: int, *, bits: RandomBits) -> list[bytes]:
    """Messages that say their number, those that count first."""
    return [number.to_bytes(4) + bytes(MESSAGE_BYTES - 4) for number in range(total)]


def numbers_in(body: bytes) -> list[int]:
    return [int.from_bytes(body[at + 32 : at + 36]) for at in range(0, len(body), CIPHERTEXT_BYTES)]


@pytest.fixture(autouse=True)
def readable(in_the_clear: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every message can be recognized in a report."""
    monkeypatch.setattr(making, "pack_messages", numbered)


@pytest.fixture
def bits() -> RandomBits:
    """Seeded, and in disguise: clients take none that protect nobody."""
    made = RandomBits.seeded(41)
    made._secure = True
    return made


def few_messages(make_task: Callable[..., Task]) -> Task:
    """A value and three coins from each user."""
    task = make_task(BinarySum.plan(users=200, privacy=Privacy(EPSILON_OF_FEW, 1e-6), method="coins"))
    assert task.plan.messages_per_user_max == 4
    return task


def many_messages(make_task: Callable[..., Task]) -> Task:
    """More than a thousand messages from each user."""
    task = make_task(BinarySum.plan(users=20, privacy=Privacy(0.04, 1e-6), method="coins"))
    assert 1100 < task.plan.messages_per_user_max < 5000
    return task


def own_orders(task: Task, made: list[bytes], of_user: Callable[[int], set[int]]) -> np.ndarray:
    """Each user's order of its own messages, which are those that `of_user` names; all others' stay with others."""
    orders = []
    for user, body in enumerate(made):
        numbers = numbers_in(body)
        assert set(numbers) == of_user(user)
        orders.append(np.argsort(np.argsort(numbers)))
    return np.array(orders)


def reports_together(task: Task, bits: RandomBits) -> np.ndarray:
    """The orders of all users, whose reports are made in one call."""
    values = np.arange(task.plan.users) % 2
    seats = [task.routing.batches_of(position) for position in range(task.plan.users)]
    messages = seats[0][0].messages
    made = making.make_reports(task, values, seats, bits=bits)
    # Every message counts, so that a user's own are numbered side by side.
    assert (task.plan.randomize(values, bits=RandomBits.seeded(1)).sizes == messages).all()
    return own_orders(task, made, lambda user: set(range(user * messages, (user + 1) * messages)))


def reports_alone(task: Task, bits: RandomBits) -> np.ndarray:
    """The orders of all users, each of whom makes a report alone."""
    seat = task.routing.batches_of(0)
    made = [report_of(task, user % 2, seat, bits=bits) for user in range(task.plan.users)]
    return own_orders(task, made, lambda user: set(range(seat[0].messages)))


@pytest.mark.parametrize("make", [reports_together, reports_alone])
def test_all_orders_of_few_messages_are_equally_likely(
    make: Callable[..., np.ndarray], make_task: Callable[..., Task], bits: RandomBits
) -> None:
    task = few_messages(make_task)
    orders = np.concatenate([make(task, bits) for _ in range(30)])
    seen = [ORDERS[tuple(order)] for order in orders.tolist()]
    assert_law(seen, 0, np.full(24, 1 / 24), false_alarm=FALSE_ALARM)


@pytest.mark.parametrize("make", [reports_together, reports_alone])
def test_orders_of_many_messages_are_uniform_and_differ_from_user_to_user(
    make: Callable[..., np.ndarray],
    make_task: Callable[..., Task],
    bits: RandomBits,
    assert_uniform_orders: Callable[..., None],
) -> None:
    orders = np.concatenate([make(many_messages(make_task), bits) for _ in range(3)])
    assert_uniform_orders(orders, false_alarm=FALSE_ALARM)


@pytest.mark.parametrize("together", [True, False])
def test_fillers_are_mixed_with_messages_that_count(
    together: bool, make_task: Callable[..., Task], bits: RandomBits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the number of messages is random, a filler is in each place equally often, and so is the first message."""
    task = make_task(BinarySum.plan(users=2000, privacy=Privacy(2, 1e-3), method="poisson-bits"))
    seat, users = task.routing.batches_of(0), 2000
    messages = seat[0].messages
    assert messages >= 3

    def flagged(payloads: Any, labels: Any, total: int, *, bits: RandomBits) -> list[bytes]:
        return [int(number < payloads.size).to_bytes(4) + bytes(MESSAGE_BYTES - 4) for number in range(total)]

    monkeypatch.setattr(making, "pack_messages", flagged)
    if together:
        seats = [task.routing.batches_of(position) for position in range(users)]
        made = making.make_reports(task, np.ones(users, dtype=np.int64), seats, bits=bits)
    else:
        made = [report_of(task, 1, seat, bits=bits) for _ in range(users)]
    counts = np.array([numbers_in(body) for body in made])
    places = np.nonzero(counts)[1]
    assert counts.sum(axis=1).min() > 0 and counts.mean() < 1
    assert_law(places, 0, np.full(messages, 1 / messages), false_alarm=FALSE_ALARM)


@pytest.mark.parametrize("together", [True, False])
def test_a_value_is_rounded_once_for_all_batches(
    together: bool, make_task: Callable[..., Task], bits: RandomBits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of a user's batches get the same steps: two roundings of one value would say more about it than one."""
    task = make_task("running sum")
    position = next(p for p in range(task.plan.users) if len(task.routing.batches_of(p)) > 1)
    seat, users = task.routing.batches_of(position), 50
    given: list[list[int]] = []
    mechanism = type(task.plan).mechanism

    def watched(plan: Any, size: int) -> Any:
        inner = mechanism(plan, size)

        class Watched:
            def randomize(self, steps: np.ndarray, seat: int, *, bits: RandomBits) -> Any:
                given.append(np.asarray(steps).ravel().tolist())
                return inner.randomize(steps, seat, bits=bits)

        return Watched()

    monkeypatch.setattr(type(task.plan), "mechanism", watched)
    seen = set()
    for _ in range(users):
        given.clear()
        if together:
            making.make_reports(task, np.array([0.5]), [seat], bits=bits)
        else:
            report_of(task, 0.5, seat, bits=bits)
        assert len(given) == len(seat) and all(steps == given[0] for steps in given)
        seen.add(tuple(given[0]))
    # The value lies between two steps: both come, so that equal steps are no accident.
    assert len(seen) == 2
