"""Tasks that end: what is kept of them goes, that they were stays known, and the doctor finds what should be gone."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from harness.postgresql import Server
from shuffledp import cli
from shuffledp.cli.doctor_checks import Checks
from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.service.analyzer import ending as analyzer_ending
from shuffledp.service.analyzer.needing import needed_keys
from shuffledp.service.client.calls import Calls
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.delivery import Sending
from shuffledp.service.ended import Ended
from shuffledp.service.openapi import BINARY, JSON
from shuffledp.service.problems import TASK_ENDED, TASK_UNKNOWN, RefusedError
from shuffledp.service.shuffler import ending as shuffler_ending
from shuffledp.service.shuffler.large import BatchSizes
from shuffledp.service.shuffler.sending import post_to
from shuffledp.service.store import look_for_remains, open_alone
from shuffledp.service.store.postgresql.vault import Vault
from shuffledp.service.store.sqlite import engine
from shuffledp.service.store.sqlite.analyzer import SqliteAnalyzerRecords
from shuffledp.service.store.sqlite.remains import free_pages
from shuffledp.service.store.sqlite.shuffler import GONE, SqliteShufflerRecords
from shuffledp.service.task import Task
from shuffledp.service.tokens import Tokens
from shuffledp.service.wire import CIPHERTEXT_BYTES, pack_upload

USERS = 20

Address = Callable[[str], str]
MakeTask = Callable[..., Task]


@pytest.fixture
def serve(service_of: Any, tmp_path: Path, key: PrivateKey, tokens: Tokens, store_address: Address) -> Any:
    """Both servers on the stores of this test, as often as one likes, one after the other."""
    return lambda **more: service_of(tmp_path, key, tokens, address=store_address, **more)


@pytest.fixture
def plain(service_of: Any, tmp_path: Path, key: PrivateKey, tokens: Tokens) -> Any:
    """Both servers on files."""
    return lambda: service_of(tmp_path, key, tokens)


@pytest.fixture
def filled(serve: Any, make_task: MakeTask) -> tuple[Task, list[Any]]:
    """A task that everybody reported to and that was read, and what was sent; no server runs."""
    service = serve()
    task = service.add(make_task("binary coins"))
    sent = service.send(task, [1] * USERS)
    service.work()
    service.stop()
    return task, sent


def alone(address: str, act: Callable[[Any], Any]) -> Any:
    """What this does to a store that nobody else holds."""
    _, store = open_alone(address)
    with closing(store):
        return act(store)


def purge_shuffler(address: str) -> Any:
    return alone(address, shuffler_ending.purge)


def test_what_is_over_is_purged_and_never_served_again(
    serve: Any, filled: tuple[Task, list[Any]], store_address: Address
) -> None:
    task, sent = filled
    [purged] = purge_shuffler(store_address("shuffler"))
    assert purged.task_id == task.id and purged.what == {"reports' ids": USERS}
    assert purge_shuffler(store_address("shuffler")) == []
    service = serve()
    client = service.at("shuffler", "enrol")
    # A device whose answer was lost must not be told that its report never came: it would randomize again.
    for answer in (
        client.post(f"/v1/tasks/{task.id}/seats?count=1"),
        client.post(f"/v1/tasks/{task.id}/reports", content=pack_upload(sent[:1]), headers={"Content-Type": BINARY}),
        client.get(f"/v1/tasks/{task.id}"),
    ):
        assert answer.status_code == 404 and answer.json()["type"].endswith(":task-ended"), answer.text
    with pytest.raises(ParameterError, match="must not have ended here: its people would be asked twice"):
        service.shuffler.add_task(task.text)
    service.stop()
    assert look_for_remains(store_address("shuffler")).found == ()


def test_answers_outlive_what_batches_said(serve: Any, filled: tuple[Task, list[Any]], store_address: Address) -> None:
    task, _ = filled
    address = store_address("analyzer")
    [purged] = alone(address, lambda store: analyzer_ending.purge(store, answers=False))
    assert purged.what == {"batches' totals": 1}
    service = serve()
    read = service.at("analyzer", "read")
    assert read.get(f"/v1/tasks/{task.id}/estimate").json()["estimate"] is not None
    batch = f"/v1/tasks/{task.id}/batches/{task.routing.batches_of(0)[0].batch_id}"
    body = bytes(task.routing.batch_bytes(USERS))
    answer = service.at("analyzer", "hop").post(batch, content=body, headers={"Content-Type": BINARY})
    assert answer.status_code == 409 and answer.json()["type"].endswith(":batch-differs"), answer.text
    service.stop()
    [purged] = alone(address, lambda store: analyzer_ending.purge(store, answers=True))
    assert purged.what == {"batches' totals": 0, "answers": 1}
    assert alone(address, lambda store: analyzer_ending.purge(store, answers=True)) == []
    service = serve()
    assert service.at("analyzer", "read").get(f"/v1/tasks/{task.id}/estimate").status_code == 404
    with pytest.raises(ParameterError, match="must not have ended here"):
        service.analyzer.add_task(task.text)
    service.stop()


def test_an_ended_task_takes_no_batch_in_pieces_either(
    serve: Any, filled: tuple[Task, list[Any]], store_address: Address
) -> None:
    """Its batch, sent again with other bytes, would be read a second time: what it said is forgotten."""
    task, sent = filled
    alone(store_address("analyzer"), lambda store: analyzer_ending.purge(store, answers=False))
    service = serve()
    hop = service.at("analyzer", "hop")
    batch = f"/v1/tasks/{task.id}/batches/{task.routing.batches_of(0)[0].batch_id}"
    whole, sending = b"".join(report.body for report in sent), Sending()
    sending.add(whole)
    # Pieces are not needed, and not kept; the manifest says whether it is the batch that was taken.
    piece = hop.post(f"{batch}/pieces/0", content=whole, headers={"Content-Type": BINARY})
    assert piece.status_code == 200 and piece.json() == {"new": False}
    answer = hop.post(f"{batch}/manifest", content=sending.manifest().text, headers={"Content-Type": JSON})
    assert answer.status_code == 409 and answer.json()["type"].endswith(":batch-differs"), answer.text
    assert service.analyzer.read_all() == 0
    service.stop()


@pytest.mark.parametrize("answers", [False, True])
@pytest.mark.parametrize("whole", [True, False])
def test_a_batch_whose_acknowledgement_was_lost_leaves_though_its_task_has_ended(
    serve: Any, make_task: MakeTask, store_address: Address, answers: bool, whole: bool
) -> None:
    """It was read, and the analyzer was purged before the shuffler could send it again."""
    sizes = BatchSizes() if whole else BatchSizes(whole=0, piece=4 * CIPHERTEXT_BYTES)
    service = serve(sizes=sizes)
    task = service.add(make_task("binary coins"))
    service.send(task, [1] * USERS)
    service.shuffler.seal_full()

    def loses(path: str, body: bytes, media: str = BINARY) -> int:
        service._post(path, body, media)
        return 500 if whole or path.endswith("/manifest") else 200

    service.shuffler._post = loses
    assert not service.shuffler.send_waiting() and service.analyzer.read_all() == 1
    service.stop()
    [purged] = alone(store_address("analyzer"), lambda store: analyzer_ending.purge(store, answers=answers))
    assert purged.what["batches' totals"] == 1
    service = serve(sizes=sizes)
    assert service.shuffler.counts(task.id)["batches_waiting"] == 1
    assert service.shuffler.send_waiting() and service.shuffler.counts(task.id)["batches_waiting"] == 0
    assert service.analyzer.read_all() == 0 and service.analyzer.progress(task.id).batches_received == 0
    service.stop()
    for role in ("shuffler", "analyzer"):
        assert look_for_remains(store_address(role)).found == ()


def test_a_batch_that_was_not_taken_is_not_called_taken_because_its_task_has_ended(
    serve: Any, make_task: MakeTask, store_address: Address
) -> None:
    service = serve()
    task = service.add(make_task("binary coins"))
    service.send(task, [1] * USERS)
    service.shuffler.seal_full()
    service.stop()
    alone(store_address("analyzer"), lambda store: analyzer_ending.end_task(store, task.id, drop=True))
    service = serve()
    assert not service.shuffler.send_waiting() and service.shuffler.counts(task.id)["batches_waiting"] == 1
    service.stop()


@pytest.mark.parametrize("whole", [True, False])
def test_a_batch_that_was_taken_and_dropped_unread_is_not_sent_for_ever(
    serve: Any, make_task: MakeTask, store_address: Address, whole: bool
) -> None:
    sizes = BatchSizes() if whole else BatchSizes(whole=0, piece=4 * CIPHERTEXT_BYTES)
    service = serve(sizes=sizes)
    task = service.add(make_task("binary coins"))
    service.send(task, [1] * USERS)
    service.shuffler.seal_full()
    service.shuffler._post = lambda *sent: service._post(*sent) and (200 if "/pieces/" in sent[0] else 500)
    assert not service.shuffler.send_waiting()
    service.stop()
    back = store_address("analyzer")
    done = alone(back, lambda store: analyzer_ending.end_task(store, task.id, drop=True))
    assert done.what == {"unread batches": 1} and look_for_remains(back).found == ()
    service = serve(sizes=sizes)
    assert service.shuffler.send_waiting() and service.analyzer.read_all() == 0
    service.stop()


def test_a_task_that_goes_on_is_not_purged_and_ends_only_with_leave_to_drop(
    serve: Any, make_task: MakeTask, store_address: Address
) -> None:
    service = serve()
    task = service.add(make_task("binary coins"))
    service.stop()
    # Nothing waits before the first one has come, either.
    assert purge_shuffler(store_address("shuffler")) == []
    service = serve()
    service.send(task, [1] * (USERS - 1))
    service.work()
    service.stop()
    front, back = store_address("shuffler"), store_address("analyzer")
    assert purge_shuffler(front) == [] and alone(back, lambda store: analyzer_ending.purge(store, answers=True)) == []
    with pytest.raises(ParameterError, match=r"not 0 batches to be sent and 1 that are not full.*--drop"):
        alone(front, lambda store: shuffler_ending.end_task(store, task.id, drop=False))
    service = serve()
    service.send(task, [1])
    service.shuffler.seal_full()
    service.stop()
    with pytest.raises(ParameterError, match="not 1 batches to be sent and 0 that are not full"):
        alone(front, lambda store: shuffler_ending.end_task(store, task.id, drop=False))
    # Nothing was lost by asking: it is delivered, and waits to be read.
    service = serve()
    assert service.shuffler.send_waiting()
    service.stop()
    with pytest.raises(ParameterError, match="not 1 that were not read"):
        alone(back, lambda store: analyzer_ending.end_task(store, task.id, drop=False))
    assert alone(back, lambda store: store.read(needed_keys)) == {task.public_key.text: [f"task {task.id[:12]}"]}
    done = alone(back, lambda store: analyzer_ending.end_task(store, task.id, drop=True))
    assert done.what == {"unread batches": 1}
    assert alone(back, lambda store: store.read(needed_keys)) == {}
    assert look_for_remains(back).found == ()
    with pytest.raises(ParameterError, match="must be a task of this store that goes on"):
        alone(back, lambda store: analyzer_ending.end_task(store, task.id, drop=True))


@pytest.mark.parametrize("fill", [USERS, USERS - 1])
def test_what_is_dropped_leaves_nothing(serve: Any, make_task: MakeTask, store_address: Address, fill: int) -> None:
    """An open batch, or one that was sealed and not sent."""
    service = serve()
    task = service.add(make_task("binary coins"))
    service.send(task, [1] * fill)
    service.shuffler.seal_full()
    service.stop()
    front = store_address("shuffler")
    done = alone(front, lambda store: shuffler_ending.end_task(store, task.id, drop=True))
    full = int(fill == USERS)
    assert done.what == {"reports' ids": fill, "open batches": 1 - full, "unsent batches": full}
    counts = alone(front, lambda store: store.read(lambda records: records.counts(task.id)))
    assert (counts.batches_open, counts.batches_waiting, counts.leases) == (0, 0, 0)
    assert look_for_remains(front).found == ()


@pytest.mark.parametrize("received", [True, False])
def test_batches_in_pieces_are_dropped_whole(
    serve: Any, make_task: MakeTask, store_address: Address, received: bool
) -> None:
    """Pieces that came before their manifest, too; the doctor finds those of a batch that was read."""
    in_pieces = BatchSizes(whole=0, piece=4 * CIPHERTEXT_BYTES, dealt=30 * CIPHERTEXT_BYTES, bucket=640)
    service = serve(sizes=in_pieces)
    task = service.add(make_task("binary coins"))
    service.send(task, [1] * USERS)
    service.shuffler.seal_full()
    if not received:
        service.shuffler._post = lambda path, body: 500 if "/pieces/3" in path else service._post(path, body)
    assert service.shuffler.send_waiting() == received
    service.stop()
    back = store_address("analyzer")
    done = alone(back, lambda store: analyzer_ending.end_task(store, task.id, drop=True))
    assert done.what == {"unread batches": 1} and look_for_remains(back).found == ()
    batch = task.routing.batches_of(0)[0].batch_id
    assert alone(back, lambda store: store.read(lambda records: records.incoming_digests(task.id, batch))) == []


def test_pieces_that_a_killed_analyzer_left_are_purged(serve: Any, make_task: MakeTask, store_address: Address) -> None:
    """It was killed when the batch was read, and before its pieces were deleted."""
    in_pieces = BatchSizes(whole=0, piece=4 * CIPHERTEXT_BYTES, dealt=30 * CIPHERTEXT_BYTES, bucket=640)
    service = serve(sizes=in_pieces)
    service.analyzer._drop_pieces = lambda *_: None
    task = service.add(make_task("binary coins"))
    service.send(task, [1] * USERS)
    service.work()
    service.stop()
    back = store_address("analyzer")
    [purged] = alone(back, lambda store: analyzer_ending.purge(store, answers=True))
    assert purged.what == {"batches' totals": 1, "answers": 1} and look_for_remains(back).found == ()
    batch = task.routing.batches_of(0)[0].batch_id
    assert alone(back, lambda store: store.read(lambda records: records.incoming_digests(task.id, batch))) == []


def test_what_a_killed_purge_left_is_purged_the_next_time(
    filled: tuple[Task, list[Any]], store_address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said that the task has ended before the first id goes: the rest of them goes later."""
    task, _ = filled
    front = store_address("shuffler")

    def killed(*_: Any) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shuffler_ending, "_forget", killed)
        with pytest.raises(KeyboardInterrupt):
            purge_shuffler(front)
    text = alone(front, lambda store: store.read(lambda records: records.task(task.id)))
    assert Ended.of(text) is not None
    [purged] = purge_shuffler(front)
    assert purged.what == {"reports' ids": USERS}


def test_a_campaign_ends_with_all_its_rounds(serve: Any, store_address: Address) -> None:
    from shuffledp.learn.bandits.arms.fixed_batches import FixedBatches
    from shuffledp.privacy import Privacy
    from shuffledp.service.rounds import round_id

    service = serve()
    policy = FixedBatches(arms=2, horizon=40, privacy=Privacy(4, 1e-2), batch=10, method="coins")
    campaign = service.campaign(policy)
    first = campaign.round_task(0, 0)
    client = service.at("shuffler", "enrol")
    assert client.post(f"/v1/tasks/{first.id}/seats?count=3").status_code == 201
    service.stop()
    done = alone(store_address("shuffler"), lambda store: shuffler_ending.end_task(store, campaign.id, drop=True))
    assert done.task_id == campaign.id
    alone(store_address("analyzer"), lambda store: analyzer_ending.end_task(store, campaign.id, drop=False))
    service = serve()
    client = service.at("shuffler", "enrol")
    for number in (0, 1):
        answer = client.post(f"/v1/tasks/{round_id(campaign.id, number, 0)}/seats?count=1")
        assert answer.status_code == 404 and answer.json()["type"].endswith(":task-ended"), answer.text
    # Its models can still be asked for.
    assert service.at("analyzer").get(f"/v1/campaigns/{campaign.id}/models/newest").status_code == 200
    service.stop()


# --- what must not be there ----------------------------------------------------------------------


def doctor(capsys: pytest.CaptureFixture[str], address: str) -> tuple[int, list[dict[str, str]]]:
    """The doctor's exit code, and what it says of remains."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["doctor", "--store", address, "--json"])
    checks = json.loads(capsys.readouterr().out)["checks"]
    return int(ended.value.code or 0), [each for each in checks if each["name"].startswith("remains in ")]


def test_the_doctor_says_with_evidence_that_nothing_is_left(
    filled: tuple[Task, list[Any]], store_address: Address, capsys: pytest.CaptureFixture[str]
) -> None:
    for role in ("shuffler", "analyzer"):
        code, [check] = doctor(capsys, store_address(role))
        assert code == 0 and check["status"] == "ok" and check["found"].startswith("none: "), check
        kind = "keys of batches" if "postgresql" in store_address(role) else "free pages are zeros"
        assert kind in check["found"], check


def test_the_doctor_says_what_to_do_where_another_server_has_ended_a_task(
    serve: Any, filled: tuple[Task, list[Any]], store_address: Address
) -> None:
    task, _ = filled
    for answers, name, status in ((False, "has ended the task", "warn"), (True, "serves the task", "fail")):
        alone(store_address("analyzer"), lambda store, all_of=answers: analyzer_ending.purge(store, answers=all_of))
        service, checks = serve(), Checks()
        with service.at("analyzer", "read") as http:
            calls = Calls("http://test", service.tokens.secrets["read"], http, RandomBits.secure(), patience=0.0)
            checks._serves(calls, "analyzer", "read", f"/v1/tasks/{task.id}", task)
        service.stop()
        [check] = [each for each in checks if each.name == f"analyzer {name}"]
        assert check.status == status and "`shuffledp store end STORE TASK`, where --drop" in check.to_do


def test_a_shuffler_says_what_to_do_where_the_next_hop_has_ended_a_task(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    post = post_to("http://127.0.0.1:1", "t" * 64)
    for kind, lines in ((TASK_UNKNOWN, 0), (TASK_ENDED, 1)):
        refusal = httpx.Response(404, json=RefusedError(kind, "no").document())
        monkeypatch.setattr(httpx.Client, "post", lambda self, path, answer=refusal, **more: answer)
        assert post("/v1/tasks/0123456789abcdef/batches/1.0.1", b"") == 404
        assert [each.facts["task"] for each in caplog.records] == ["0123456789ab"] * lines
    assert "store end STORE TASK --drop" in caplog.records[0].facts["way_out"]


def refuted(capsys: pytest.CaptureFixture[str], address: str, words: str) -> None:
    code, checks = doctor(capsys, address)
    assert code == 3 and any(words in each["found"] and each["status"] == "fail" for each in checks), checks


def test_a_twin_that_forgets_to_delete_is_caught_on_sqlite(
    plain: Any,
    make_task: MakeTask,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def forgets(self: Any, task_id: str, batch_id: str) -> bool:
        self._set_state(GONE, (task_id, batch_id))
        return True

    def keeps(self: Any, task_id: str, total: Any) -> None:
        row = (json.dumps(total.total), total.dropped, total.void, task_id, total.batch_id)
        self.db.execute("UPDATE batches SET total = ?, dropped = ?, void = ? WHERE task_id = ? AND batch_id = ?", row)

    monkeypatch.setattr(SqliteShufflerRecords, "purge", forgets)
    monkeypatch.setattr(SqliteAnalyzerRecords, "add_total", keeps)
    service = plain()
    task = service.add(make_task("binary coins"))
    service.send(task, [1] * USERS)
    service.shuffler.seal_full()
    service.shuffler.send_waiting()
    service.analyzer._read(task.id, task.routing.batches_of(0)[0].batch_id)
    service.stop()
    refuted(capsys, str(tmp_path / "shuffler.db"), "has ciphertexts of a batch that left")
    refuted(capsys, str(tmp_path / "analyzer.db"), "1 batches that were read still have their ciphertexts")


def test_a_store_that_does_not_overwrite_is_caught(
    plain: Any,
    make_task: MakeTask,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pragmas = tuple(each.replace("secure_delete=ON", "secure_delete=OFF") for each in engine._PRAGMAS)
    monkeypatch.setattr(engine, "_PRAGMAS", pragmas)
    service = plain()
    task = service.add(make_task("binary coins"))
    service.send(task, [1] * USERS)
    service.work()
    service.stop()
    refuted(capsys, str(tmp_path / "shuffler.db"), "free pages were not overwritten")


@pytest.mark.parametrize(("overwrites", "pages"), [("OFF", 1), ("ON", 1), ("OFF", 40), ("ON", 40)])
def test_pages_that_list_free_pages_are_looked_at_as_well(tmp_path: Path, overwrites: str, pages: int) -> None:
    """The first page that is free is the list, and behind the list lies what was there; pages were free before."""
    file = tmp_path / "some.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute(f"PRAGMA secure_delete={overwrites}")
        database.execute("CREATE TABLE bodies (number INTEGER PRIMARY KEY, body BLOB)")
        for _ in range(3):
            database.execute("INSERT INTO bodies VALUES (1, ?)", (b"\xc5" * 4096 * pages,))
            database.execute("DELETE FROM bodies")
            database.execute("INSERT INTO bodies VALUES (2, ?)", (b"\x5c" * 4096 * (pages // 3),))
            database.execute("DELETE FROM bodies")
    count, dirty = free_pages(file)
    assert count >= pages and dirty == (count if overwrites == "OFF" else 0)


@pytest.mark.parametrize("store_address", ["sqlite"], indirect=True)
def test_a_log_that_was_not_emptied_is_caught(
    filled: tuple[Task, list[Any]], store_address: Address, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a server leaves it that was killed."""
    path = store_address("shuffler")
    with closing(sqlite3.connect(path)) as killed:
        killed.execute("PRAGMA wal_autocheckpoint=0")
        killed.execute("UPDATE tasks SET reports = reports + 1")
        killed.commit()
        refuted(capsys, path, "which may hold what was deleted")


def test_a_twin_that_forgets_keys_is_caught_on_postgresql(
    service_of: Any,
    make_task: MakeTask,
    tmp_path: Path,
    key: PrivateKey,
    tokens: Tokens,
    postgresql: Server,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A key of a batch that left stays in its folder: with it, whoever has an old copy of the database can read."""
    addresses = {
        role: postgresql.address(tmp_path / "batch keys", postgresql.new_schema()) for role in ("shuffler", "analyzer")
    }
    with monkeypatch.context() as patch:
        patch.setattr(Vault, "destroy", lambda self, numbers: None)
        service = service_of(tmp_path, key, tokens, address=addresses.__getitem__)
        task = service.add(make_task("binary coins"))
        service.send(task, [1] * USERS)
        service.work()
        service.stop()
    for role, left in (("shuffler", 2), ("analyzer", 1)):
        refuted(capsys, addresses[role], f"{left} keys of batches that left")
    # And a table that a crash, or a mistake, has left beside its shelf.
    schema = addresses["analyzer"].rpartition("schema=")[2]
    with postgresql.connect(schema) as db:
        db.execute("CREATE TABLE bodies_77 (key BYTEA, place BIGINT, body BYTEA)")
    refuted(capsys, addresses["analyzer"], "1 tables of ciphertexts belong to no shelf: bodies_77")


def test_a_store_that_a_server_holds_is_not_looked_after(serve: Any, store_address: Address) -> None:
    service = serve()
    for role in ("shuffler", "analyzer"):
        with pytest.raises(ParameterError, match="must be free"):
            open_alone(store_address(role))
        assert look_for_remains(store_address(role)).unknown != ()
    service.stop()
