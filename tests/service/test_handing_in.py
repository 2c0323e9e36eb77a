"""Uploads on their way to the store: none is forgotten, whatever loops and threads bring them and whatever fails."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import httpx
import pytest

from harness.world import SlowDisk, report_of, small_task
from shuffledp.service.openapi import BINARY
from shuffledp.service.problems import WRONG_HOP, RefusedError
from shuffledp.service.shuffler.desk import Accepted
from shuffledp.service.shuffler.uploads import Outcome, Upload, Uploads
from shuffledp.service.wire import SentReport, new_id

LONG = 30.0


class Records:
    def full_batches(self) -> list[Any]:
        return []

    def has_backlog(self) -> bool:
        return False


class Store:
    """Runs what it is given when it is let go, and remembers who asked for it."""

    def __init__(self) -> None:
        self.is_asked, self.may_go_on = threading.Event(), threading.Event()
        self.roads: list[str] = []

    def submit_here(self, work: Any) -> "Future[Any]":
        self.roads.append("here")
        self.is_asked.set()
        assert self.may_go_on.wait(LONG)
        future: Future[Any] = Future()
        future.set_result(work(Records()))
        return future

    def submit(self, work: Any) -> "Future[Any]":
        done = self.submit_here(work)
        self.roads[-1] = "queue"
        return done


class Told(list[Outcome]):
    """What was told to one upload."""

    def upload(self, *lengths: int) -> Upload:
        return "task", [SentReport("ab" * 16, "cd" * 16, bytes(length)) for length in lengths], self.append


def uploads_to(store: Any, accept: Callable[..., Any] | None = None) -> Uploads:
    answers = accept or (lambda records, task_id, reports: [Accepted(new=True)] * len(reports))
    return Uploads(store, answers, lambda count, fills: None)


def test_whoever_joins_anothers_commit_learns_when_that_is_done() -> None:
    """A loop that looked at another commit, or at none, would not hand in what has arrived since."""
    store, told = Store(), [Told() for _ in range(2)]
    uploads = uploads_to(store)
    first = threading.Thread(target=uploads.accept_all, args=([told[0].upload(1)],))
    first.start()
    assert store.is_asked.wait(LONG)
    joined = uploads.accept_all([told[1].upload(1, 1)])
    assert not joined.is_done and not any(told)
    store.may_go_on.set()
    first.join(LONG)
    assert joined.is_done and [len(each[0]) for each in told] == [1, 2]
    after = Told()
    assert uploads.accept_all([after.upload(1)]).is_done and len(after) == 1


@pytest.mark.parametrize("fails", [False, True])
def test_whoever_is_told_finds_the_commit_done(fails: bool) -> None:
    """By then it may hand in what has arrived since: nothing else wakes it up."""
    store, seen = Store(), []

    def accept(records: Any, task_id: str, reports: list[SentReport]) -> list[Accepted]:
        return [Accepted(new=True)] * len(reports)

    def submit_here(work: Any) -> "Future[Any]":
        later.append((work, Future()))
        return later[-1][1]

    later: list[tuple[Any, Future[Any]]] = []
    store.submit_here = submit_here  # type: ignore[method-assign]
    accepting = uploads_to(store, accept).accept_all([("task", [], lambda answers: seen.append(accepting.is_done))])
    [(work, future)] = later
    if fails:
        future.set_exception(ValueError("no"))
    else:
        future.set_result(work(Records()))
    assert seen == [True]


@pytest.mark.parametrize("failed", [ValueError("no"), KeyboardInterrupt()])
def test_an_upload_whose_statements_are_broken_off_is_told(failed: BaseException) -> None:
    store, told = Store(), Told()
    store.may_go_on.set()

    def broken(*given: Any) -> Any:
        raise failed

    with pytest.raises(type(failed)):
        uploads_to(store, broken).accept_all([told.upload(1)])
    assert told == [failed]


def test_a_task_that_takes_no_reports_refuses_only_its_own() -> None:
    """They share a commit by chance; a sentence about another task would tell a client what is not so."""

    def accept(records: Any, task_id: str, reports: list[SentReport]) -> list[Accepted]:
        if task_id == "a later hop's":
            raise RefusedError(WRONG_HOP, "report to hop 1.")
        return [Accepted(new=True)] * len(reports)

    store, told = Store(), [Told() for _ in range(3)]
    store.may_go_on.set()
    given = [each.upload(1, 1) for each in told]
    given[1] = ("a later hop's", *given[1][1:])
    uploads_to(store, accept).accept_all(given)
    kinds = [[getattr(answer, "kind", answer) for answer in each[0]] for each in told]
    assert kinds == [[Accepted(new=True)] * 2, [WRONG_HOP] * 2, [Accepted(new=True)] * 2]


def test_work_that_runs_again_answers_all_once() -> None:
    """A store whose connection was lost before the commit runs it again."""

    class Again(Store):
        def submit_here(self, work: Any) -> "Future[Any]":
            work(Records())
            return super().submit_here(work)

    store, told = Again(), [Told(), Told()]
    store.may_go_on.set()
    assert uploads_to(store).accept_all([each.upload(1) for each in told]).is_done
    assert told == [[[Accepted(new=True)]]] * 2


def test_many_bytes_are_not_accepted_by_the_loop() -> None:
    store = Store()
    store.may_go_on.set()
    uploads = uploads_to(store)
    for sizes in ([100] * 500, [100] * 501, [1 << 20] * 2, [1 << 20, 1 << 20, 1]):
        uploads.accept_all([Told().upload(*sizes)])
    assert store.roads == ["here", "queue", "here", "queue"]


def test_no_report_is_kept_for_the_sake_of_knowing_that_it_was_accepted() -> None:
    class Body(bytes):
        pass

    store, told, body = Store(), Told(), Body(b"ciphertexts")
    store.may_go_on.set()
    gone = weakref.ref(told)
    accepting = uploads_to(store).accept_all([("task", [SentReport("ab" * 16, "cd" * 16, body)], told.append)])
    del told
    gc.collect()
    assert accepting.is_done and gone() is None


def test_a_loop_that_was_closed_holds_up_no_other(make_service: Any) -> None:
    """Its reports are on their way to the disk when it goes; whoever comes then, on another loop, is answered."""
    service = make_service()
    task = service.add(small_task(service.key.public))
    seats = service.shuffler.take_seats(task.id, 2).result(LONG)
    store = service.shuffler._store
    disk = SlowDisk(store._writer)
    store._writer = disk

    async def put(number: int) -> int:
        body = bytes.fromhex(seats[number].seat) + report_of(task, 1, seats[number].batches, bits=service.bits)
        headers = {"Authorization": f"Bearer {service.tokens.secrets['enrol']}", "Content-Type": BINARY}
        transport = httpx.ASGITransport(service.shuffler_app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            path = f"/v1/tasks/{task.id}/reports/{new_id(bits=service.bits)}"
            return (await client.put(path, content=body, headers=headers)).status_code

    async def until_at_disk() -> None:
        given_up = asyncio.ensure_future(put(0))
        while not disk.is_reached.is_set():
            await asyncio.sleep(0.001)
        given_up.cancel()

    async def on_another() -> int:
        answer = asyncio.ensure_future(put(1))
        # Time for it to arrive while the first is still under way.
        await asyncio.sleep(0.05)
        disk.may_end.set()
        return await asyncio.wait_for(answer, 5.0)

    asyncio.run(until_at_disk())
    try:
        assert asyncio.run(on_another()) == 201
    finally:
        disk.may_end.set()
    assert service.shuffler.counts(task.id)["reports"] == 2
