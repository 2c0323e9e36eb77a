"""Sealing and sending when something is in the way: no memory, no room, no answer, a log that still tells."""

from collections import Counter
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import httpx
import pytest

from harness.world import World, accept_reports, batch_rows, ciphertexts, made_report, small_task
from shuffledp.service.problems import NO_ROOM, RefusedError
from shuffledp.service.shuffler import desk as shuffler_desk
from shuffledp.service.store.sqlite import shuffler as sqlite_shuffler
from shuffledp.service.task import Task
from shuffledp.service.wire import CIPHERTEXT_BYTES, SentReport


@pytest.fixture
def world(tmp_path: Path):
    made = World(tmp_path / "world")
    yield made
    made.close()


@pytest.fixture
def task(world: World) -> Task:
    made = small_task(world.key.public, users=60)
    world.add_task(made)
    return made


def reports(world: World, task: Task, count: int) -> list[SentReport]:
    return [
        SentReport(world.new_id(), seat.seat, made_report(task, seat.batches, bits=world.bits).body)
        for seat in world.shuffler.take_seats(task.id, count).result(timeout=10)
    ]


def accept(world: World, task: Task, sent: list[SentReport]) -> list[Any]:
    return accept_reports(world.shuffler, task.id, sent).result(timeout=10)


@pytest.mark.parametrize("statement", ["BEGIN", "INSERT INTO arrivals", "COMMIT"])
def test_no_memory_refuses_and_the_store_goes_on(
    world: World, task: Task, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent, execute = reports(world, task, 2), world.writers["shuffler"].execute

    def no_memory(words: str, *given: Any) -> Any:
        if words.startswith(statement):
            raise MemoryError
        return execute(words, *given)

    monkeypatch.setattr(world.writers["shuffler"], "execute", no_memory)
    with pytest.raises(RefusedError, match="MemoryError") as refused:
        accept(world, task, sent[:1])
    assert refused.value.kind.status == 503
    monkeypatch.undo()
    assert [answer.new for answer in accept(world, task, sent)] == [True, True]


def test_no_memory_to_empty_the_log_is_an_error_of_the_caller(
    world: World, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute = world.writers["shuffler"].execute

    def no_memory(words: str, *given: Any) -> Any:
        if "wal_checkpoint" in words:
            raise MemoryError
        return execute(words, *given)

    monkeypatch.setattr(world.writers["shuffler"], "execute", no_memory)
    with pytest.raises(MemoryError):
        world.stores["shuffler"].forget()
    monkeypatch.undo()
    assert len(accept(world, task, reports(world, task, 1))) == 1


def test_who_gives_up_does_not_take_the_others_answers(world: World, task: Task) -> None:
    sent, asked = reports(world, task, 3), []

    def submit(db: Any) -> None:
        asked.extend(accept_reports(world.shuffler, task.id, [report]) for report in sent)
        assert asked[0].cancel()

    world.stores["shuffler"].write(submit)
    assert [future.result(timeout=10)[0].new for future in asked[1:]] == [True, True]
    assert accept(world, task, sent[:1])[0].new is False


def test_an_upload_that_cannot_be_submitted_does_not_block_the_next(
    world: World, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = reports(world, task, 2)

    def no_memory(work: Any) -> Future[Any]:
        raise MemoryError

    for name in ("submit", "submit_here"):
        monkeypatch.setattr(world.stores["shuffler"], name, no_memory)
    with pytest.raises(MemoryError):
        accept_reports(world.shuffler, task.id, sent[:1])
    monkeypatch.undo()
    assert [answer.new for answer in accept(world, task, sent)] == [True, True]


def test_a_batch_that_cannot_be_sealed_does_not_hold_up_the_others(
    world: World, task: Task, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    accept(world, task, reports(world, task, 24))
    full = world.stores["shuffler"].read(lambda records: records.full_batches())
    permuted, broken = shuffler_desk.permuted, []

    def no_memory(parts: list[bytes], **more: Any) -> bytes:
        if not broken:
            broken.append(True)
            raise MemoryError
        return permuted(parts, **more)

    monkeypatch.setattr(shuffler_desk, "permuted", no_memory)
    assert world.shuffler.seal_full() is False
    # The log says what kind of failure it was: a traceback would show lines of code, and what an error quotes.
    assert "Traceback" not in capfd.readouterr().err
    assert world.shuffler.counts(task.id)["batches_waiting"] == len(full) - 1 > 0
    assert world.shuffler.seal_full() is True
    assert world.shuffler.counts(task.id)["batches_waiting"] == len(full)


def test_full_batches_count_as_waiting_before_they_are_sealed(world: World, task: Task) -> None:
    def waiting() -> int:
        return world.stores["shuffler"].read(lambda records: records.waiting_bytes())

    assert waiting() == 0
    accept(world, task, reports(world, task, 24))
    before = waiting()
    assert before > 0
    world.shuffler.seal_full()
    assert waiting() == before


@pytest.mark.parametrize("small", [False, True])
def test_when_a_batch_leaves_nothing_on_disk_tells_how_it_came(
    world: World, task: Task, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a report's messages side by side nor, beside its pieces, any message of the batch."""
    if small:
        monkeypatch.setattr(shuffler_desk, "PIECE_BYTES", 5 * CIPHERTEXT_BYTES)
        monkeypatch.setattr(sqlite_shuffler, "MOST_BYTES", 1)
    sent = reports(world, task, 60)
    for report in sent:
        accept(world, task, [report])
    pairs = [report.body[start : start + 2 * CIPHERTEXT_BYTES] for report in sent for start in _starts(task, report)]
    seen = []

    def post(path: str, body: bytes) -> int:
        files = [file.read_bytes() for file in world.stores["shuffler"].path.parent.iterdir()]
        in_order = {pair for pair in pairs if pair in body}
        left = [pair for pair in pairs if pair[:CIPHERTEXT_BYTES] in body and any(pair in file for file in files)]
        assert set(left) <= in_order, f"{len(left)} reports' messages are together on disk when their batch leaves"
        copies = [sum(file.count(one[8:40]) for file in files) for one in ciphertexts(body)]
        assert max(copies) == 1, "a message that leaves is on disk twice"
        seen.append(path)
        return world.network.post(path, body)

    world.shuffler._post = post
    world.shuffler.seal_full()
    assert world.shuffler.send_waiting() and len(seen) > 10


def _starts(task: Task, report: SentReport) -> list[int]:
    """Where the first two messages of each batch are in a report."""
    position = int(report.seat[:12], 16)
    starts, start = [], 0
    for batch in task.routing.batches_of(position):
        assert batch.messages >= 2
        starts.append(start)
        start += batch.messages * CIPHERTEXT_BYTES
    return starts


def test_the_log_is_emptied_though_sending_fails(world: World, task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be what fills the disk."""
    accept(world, task, reports(world, task, 24))
    log = Path(f"{world.stores['shuffler'].path}-wal")

    def no_room(records: Any, task_id: str, batch_id: str) -> None:
        raise RefusedError(NO_ROOM, "the disk is full")

    monkeypatch.setattr(sqlite_shuffler.SqliteShufflerRecords, "purge", no_room)
    with pytest.raises(RefusedError):
        world.shuffler._seal_and_send()
    assert log.stat().st_size == 0


def test_an_almost_full_disk_takes_nothing_new_and_goes_on_sending(
    world: World, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = reports(world, task, 24)
    accept(world, task, sent[:20])
    monkeypatch.setattr("shuffledp.service.store.sqlite.engine._RESERVE_BYTES", 1 << 60)
    monkeypatch.setattr("shuffledp.service.store.sqlite.engine._RESERVE_PART", 1)
    assert {answer.kind.status for answer in accept(world, task, sent[20:])} == {503}
    assert {answer.new for answer in accept(world, task, sent[:20])} == {False}
    with pytest.raises(RefusedError, match="almost full"):
        world.shuffler.take_seats(task.id, 1).result(timeout=10)
    world.shuffler.seal_full()
    assert world.shuffler.send_waiting() and world.shuffler.counts(task.id)["batches_sent"] > 0
    monkeypatch.undo()
    assert {answer.new for answer in accept(world, task, sent[20:])} == {True}


def test_a_draft_that_a_kill_left_is_thrown_away(world: World, task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shuffler_desk, "PIECE_BYTES", 5 * CIPHERTEXT_BYTES)
    monkeypatch.setattr(sqlite_shuffler, "MOST_BYTES", 1)
    accept(world, task, reports(world, task, 24))
    store, seal = world.stores["shuffler"], shuffler_desk.ShufflerDesk.seal

    def dies(*_: Any) -> bool:
        raise httpx.ReadError("as good as a kill")

    monkeypatch.setattr(shuffler_desk.ShufflerDesk, "seal", dies)
    assert world.shuffler.seal_full() is False
    draft = batch_rows(store, "pieces")
    assert draft and world.shuffler.counts(task.id)["batches_waiting"] == 0
    assert world.shuffler.send_waiting() and world.network.sent == []
    monkeypatch.setattr(shuffler_desk.ShufflerDesk, "seal", seal)
    assert world.shuffler.seal_full() is True and world.shuffler.send_waiting()
    sent = Counter(one for _, _, body in world.network.sent for one in ciphertexts(body))
    assert set(sent.values()) == {1}
    assert batch_rows(store, "pieces") == []
