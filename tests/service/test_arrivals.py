"""Reports' ids in SQLite: known from the commit that holds them on, wherever they are, and once in their places."""

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from harness.world import known_ids, rows
from shuffledp import BinarySum, Privacy
from shuffledp.errors import DataError
from shuffledp.service.problems import RefusedError
from shuffledp.service.store import inspect_store, open_shuffler_store
from shuffledp.service.store.contract import Remains
from shuffledp.service.store.sqlite import arrivals, look_for_remains, shuffler
from shuffledp.service.store.sqlite.arrivals import Arrivals

TASKS = ("ab" * 32, "cd" * 32)


class TakenBackError(Exception):
    """What an act does is taken back."""


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that some commits show what else takes many thousands of reports."""
    monkeypatch.setattr(arrivals, "MOST_IDS", 6)
    monkeypatch.setattr(arrivals, "ENOUGH_IDS", 20)
    monkeypatch.setattr(arrivals, "_NEW_IDS", 1)


class Machine:
    """Random acts on a store, and what must then be known."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path, self.draw = path, random.Random(seed)
        self.known: dict[str, set[str]] = {task_id: set() for task_id in TASKS}
        self.store: Any = open_shuffler_store(path)
        self.store.write(lambda records: [records.add_task(task_id, "{}") for task_id in TASKS])
        self.most = self.passes = 0

    def close(self) -> None:
        self.store.close()

    def new_id(self) -> str:
        return f"{self.draw.getrandbits(128):032x}"

    def act(self) -> Callable[[Any], None]:
        """An act of one to three steps on the records, which checks what they say before each and after it."""
        task_id, is_taken_back = self.draw.choice(TASKS), self.draw.random() < 0.3
        kinds = [self.draw.choice(["keep"] * 5 + ["settle", "work off"]) for _ in range(self.draw.randint(1, 3))]
        old = self.draw.sample(sorted(self.known[task_id]), min(3, len(self.known[task_id])))
        kept = [[self.new_id() for _ in range(self.draw.randint(1, 5))] if kind == "keep" else [] for kind in kinds]

        def run(records: Any) -> None:
            known = set(old)
            for kind, fresh in zip(kinds, kept, strict=True):
                assert records.accepted_among(task_id, [*known, *fresh]) == known
                if kind == "keep":
                    records.keep(task_id, fresh, [], [])
                elif kind == "settle":
                    records._settle_ids(task_id)
                else:
                    records.work_off()
                known.update(fresh)
                assert records.accepted_among(task_id, [*known]) == known
            if is_taken_back:
                raise TakenBackError

        if not is_taken_back:
            self.known[task_id].update(name for some in kept for name in some)
        return run

    def step(self) -> None:
        futures = [self.store.submit(self.act()) for _ in range(self.draw.randint(1, 3))]
        for future in futures:
            with suppress(TakenBackError):
                future.result(timeout=30)
        if self.draw.random() < 0.05:
            self.store.close()
            self.store = open_shuffler_store(self.path)
        self.check()

    def check(self) -> None:
        for task_id, known in self.known.items():
            asked = [*known, *(self.new_id() for _ in range(3))]
            for ask in (self.store.read, self.store.write):
                assert ask(lambda records, task=task_id, some=asked: records.accepted_among(task, some)) == known
        [(waiting, begun)] = self.store.read(
            lambda records: records.db.execute(
                "SELECT (SELECT COALESCE(SUM(length(ids)), 0) / 16 FROM arrivals), (SELECT COUNT(*) FROM settling)"
            ).fetchall()
        )
        self.most, self.passes = max(self.most, waiting), self.passes + begun


def run(path: Path, seed: int, steps: int) -> Machine:
    machine = Machine(path, seed)
    with closing(machine):
        for _ in range(steps):
            machine.step()
    return machine


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_taken_back_or_moved_exactly_what_was_kept_is_known(tmp_path: Path, seed: int) -> None:
    machine = run(tmp_path / "s.db", seed, 120)
    assert machine.passes > 10, "no id was on its way to its place while others came"
    assert sum(map(len, machine.known.values())) > 300


TWINS: dict[str, tuple[type, str, Any]] = {
    "does not look": (Arrivals, "look", lambda self, db: self),
    "forgets those on their way": (Arrivals, "of", lambda self, task_id: set()),
    "moves only the first": (Arrivals, "up_to", lambda self, *given: _up_to(self, *given)[:6]),
}
_up_to = Arrivals.up_to


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("name", TWINS)
def test_what_is_wrong_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    where, attribute, wrong = TWINS[name]
    monkeypatch.setattr(where, attribute, wrong)
    # SQLite itself refuses an id that would be in its place twice, or two rows of one number.
    with pytest.raises((AssertionError, RefusedError, sqlite3.IntegrityError)):
        for seed in range(8):
            run(tmp_path / f"{seed}.db", seed, 120)


class GivesNumbersAgain(Arrivals):
    """As SQLite would number rows: from 1 in a table that was emptied."""

    def delete(self, db: sqlite3.Connection, *given: Any) -> None:
        self._next = 1
        super().delete(db, *given)

    def add(self, db: sqlite3.Connection, task_id: str, ids: list[bytes]) -> None:
        self._next = (db.execute("SELECT MAX(number) FROM arrivals").fetchone()[0] or 0) + 1
        super().add(db, task_id, ids)


@pytest.mark.parametrize("kind", [Arrivals, GivesNumbersAgain])
def test_what_was_emptied_filled_and_taken_back_is_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Arrivals]
) -> None:
    """The table then has as many rows as before: only their numbers tell that they are others."""
    monkeypatch.setattr(arrivals, "Arrivals", kind)
    machine = Machine(tmp_path / "s.db", 5)
    first, kept, taken_back = (machine.new_id() for _ in range(3))

    def empty_and_fill(records: Any) -> None:
        assert records._settle_ids(TASKS[0])
        records.keep(TASKS[0], [taken_back], [], [])
        raise TakenBackError

    with closing(machine):
        machine.store.write(lambda records: records.keep(TASKS[0], [first], [], []))
        assert machine.store.write(lambda records: records._settle_ids(TASKS[0]))
        machine.store.write(lambda records: records.keep(TASKS[0], [kept], [], []))
        with pytest.raises(TakenBackError):
            machine.store.write(empty_and_fill)
        known = machine.store.write(lambda records: records.accepted_among(TASKS[0], [kept, taken_back]))
    assert (known == {kept}) is (kind is Arrivals)


@pytest.mark.usefixtures("few")
def test_ids_leave_the_order_of_arrival_and_no_page_keeps_it(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "s.db", 1)
    first = [machine.new_id() for _ in range(40)]
    with closing(machine.store) as store:
        for report_id in first:
            store.write(lambda records, name=report_id: records.keep(TASKS[0], [name], [], []))
        # Others come while they are moved.
        last, others = machine.new_id(), machine.new_id()
        assert not store.write(lambda records: records._settle_ids(TASKS[0]))
        store.write(lambda records: records.keep(TASKS[0], [last], [], []))
        store.write(lambda records: records.keep(TASKS[1], [others], [], []))
        commits = 1
        while not store.write(lambda records: records._settle_ids(TASKS[0])):
            commits += 1
        assert commits >= 40 // 6
        assert known_ids(store) == {bytes.fromhex(name) for name in [*first, last, others]}
        assert [row[1:] for row in rows(store, "SELECT * FROM arrivals")] == [(TASKS[1], bytes.fromhex(others))]
        store.forget()
    raw = (tmp_path / "s.db").read_bytes()
    # Each is in one place of the whole file, and the places are in the order of the ids.
    places = [[at for at in range(len(raw)) if raw.startswith(bytes.fromhex(name), at)] for name in sorted(first)]
    assert [len(each) for each in places] == [1] * 40
    found = look_for_remains(str(tmp_path / "s.db"))
    assert found.found == () and isinstance(found, Remains)


def test_a_batch_leaves_when_all_ids_have_left_the_order_of_arrival(tmp_path: Path) -> None:
    """Those that came after their moving began are moved by the next."""
    machine = Machine(tmp_path / "s.db", 2)
    with closing(machine.store) as store:
        store.write(lambda records: records.keep(TASKS[0], [machine.new_id() for _ in range(5000)], [], []))
        assert not store.write(lambda records: records._settle_ids(TASKS[0]))
        store.write(lambda records: records.keep(TASKS[0], [machine.new_id()], [], []))
        assert [store.write(lambda records: records._settle_ids(TASKS[0])) for _ in range(2)] == [False, True]
        assert store.read(lambda records: records.db.execute("SELECT COUNT(*) FROM accepted").fetchone()) == (5001,)


def test_ids_of_a_slow_task_do_not_lie_in_the_order_of_a_busy_ones_batches(tmp_path: Path) -> None:
    """Put in their places one by one, they would be laid down in their page as they came."""
    machine = Machine(tmp_path / "s.db", 6)
    slow = [machine.new_id() for _ in range(20)]
    with closing(machine):
        for report_id in slow:
            machine.store.write(lambda records, name=report_id: records.keep(TASKS[0], [name], [], []))
            machine.store.write(lambda records: records.keep(TASKS[1], [machine.new_id()], [], []))
            assert machine.store.write(lambda records: records._settle_ids(TASKS[1]))
        assert machine.store.write(lambda records: records._settle_ids(TASKS[0]))
        machine.store.forget()
    raw = (tmp_path / "s.db").read_bytes()
    places = [raw.find(bytes.fromhex(name)) for name in sorted(slow)]
    assert places == sorted(places, reverse=True) and -1 not in places


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("at_once", [1, 5, 30])
def test_memory_is_bounded_and_a_batch_leaves_however_many_come_at_once(tmp_path: Path, at_once: int) -> None:
    machine = Machine(tmp_path / "s.db", 7)

    def come(records: Any) -> int:
        records.keep(TASKS[0], [machine.new_id() for _ in range(at_once)], [], [])
        return int(records._arrivals.count)

    with closing(machine):
        most = 0
        for _ in range(200 // at_once + 20):
            most = max(most, machine.store.write(come))
            if machine.store.write(lambda records: records.has_backlog()):
                machine.store.write(lambda records: records.work_off())
        assert most <= 20 + 6 * max(at_once, 6)
        for _ in range(20):
            if machine.store.write(lambda records: records._settle_ids(TASKS[0])):
                break
            machine.store.write(come)
        else:
            pytest.fail("it never ends while reports come")


class Halting(set[bytes]):
    """A set that takes in some of what it is given, and then has no memory."""

    def update(self, *others: Any) -> None:
        for each in others:
            super().update(list(each)[:1])
        raise MemoryError


def test_without_memory_what_is_remembered_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it breaks off: an id that was taken back must not be known, and one that was kept must."""
    machine = Machine(tmp_path / "s.db", 8)
    kept, refused = ([machine.new_id() for _ in range(30)] for _ in range(2))
    ask = lambda records: records.accepted_among(TASKS[0], kept + refused)  # noqa: E731

    def halting(records: Any) -> None:
        records._arrivals._ids[TASKS[0]] = Halting(records._arrivals.of(TASKS[0]))
        records.keep(TASKS[0], refused, [], [])

    with closing(machine):
        for report_id in kept:
            machine.store.write(lambda records, name=report_id: records.keep(TASKS[0], [name], [], []))
        with pytest.raises(RefusedError, match="MemoryError"):
            machine.store.write(halting)
        with monkeypatch.context() as short:
            calls = iter(range(100))
            cut = arrivals._cut
            short.setattr(arrivals, "_cut", lambda ids: cut(ids) if next(calls) < 10 else _no_memory())
            with pytest.raises(RefusedError, match="MemoryError"):
                machine.store.write(ask)
        assert machine.store.write(ask) == set(kept)


def _no_memory() -> Any:
    raise MemoryError


@pytest.mark.usefixtures("few")
def test_an_ended_tasks_ids_are_forgotten_and_counted_once(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "s.db", 3)
    ids = {task_id: [machine.new_id() for _ in range(15)] for task_id in TASKS}
    with closing(machine.store) as store:
        for task_id, own in ids.items():
            for report_id in own:
                store.write(lambda records, task=task_id, name=report_id: records.keep(task, [name], [], []))
        store.write(lambda records: records._settle_ids(TASKS[0]))
        gone = 0
        while some := store.write(lambda records: records.forget_ids(TASKS[0])):
            gone += some
        assert gone == 15 and known_ids(store) == {bytes.fromhex(name) for name in ids[TASKS[1]]}
        assert store.write(lambda records: records.accepted_among(TASKS[0], ids[TASKS[0]])) == set()


@pytest.mark.parametrize("is_broken_off", [False, True])
def test_a_store_of_version_2_is_brought_up_to_date(
    tmp_path: Path, is_broken_off: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its ids stay known, and nothing of it is left half done; an older program refuses it from then on."""
    path, machine = tmp_path / "s.db", Machine(tmp_path / "made.db", 4)
    machine.store.close()
    waiting, placed = ([machine.new_id() for _ in range(30)] for _ in range(2))
    with closing(sqlite3.connect(path)) as old:
        added = ("arrivals", "settling", "turns")
        new = "\n".join(line for line in shuffler.SCHEMA.splitlines() if not any(name in line for name in added))
        old.executescript("CREATE TABLE store (label TEXT NOT NULL); INSERT INTO store VALUES ('shuffler 2');" + new)
        old.execute(
            "CREATE TABLE arrived (task_id TEXT NOT NULL, report_id BLOB NOT NULL, PRIMARY KEY (task_id, report_id)) "
            "WITHOUT ROWID"
        )
        for table, ids in (("arrived", waiting), ("accepted", placed)):
            old.executemany(f"INSERT INTO {table} VALUES (?, ?)", [(TASKS[0], bytes.fromhex(name)) for name in ids])
        old.commit()
    assert inspect_store(path).kind == "shuffler 2"
    if is_broken_off:
        broken = arrivals.FROM_VERSION_2 + "INSERT INTO nowhere VALUES (1);"
        with monkeypatch.context() as one_time:
            one_time.setitem(shuffler.UPGRADES, "shuffler 2", broken)
            with pytest.raises(DataError, match="nothing was changed"):
                open_shuffler_store(path)
        assert inspect_store(path).kind == "shuffler 2"
    with closing(open_shuffler_store(path)) as store:
        known = store.write(lambda records: records.accepted_among(TASKS[0], waiting + placed))
        assert known == {*waiting, *placed}
        names = {name for (name,) in rows(store, "SELECT name FROM sqlite_master")}  # type: ignore[arg-type]
        assert "arrived" not in names and {"arrivals", "settling"} <= names
    assert inspect_store(path).kind == "shuffler 3"


@pytest.mark.usefixtures("few")
def test_a_server_works_its_backlog_off_while_reports_come(
    make_service: Callable[..., Any], make_task: Callable[..., Any]
) -> None:
    """Also where no batch is sealed for long; a retry is known all the same."""
    service = make_service()
    task = service.add(make_task(BinarySum.plan(users=400, privacy=Privacy(2, 1e-3), method="rr")))
    sent = [service.send(task, [1])[0] for _ in range(90)]
    store = service.shuffler._store
    store.write(lambda records: None)
    [(waiting,)] = rows(store, "SELECT SUM(length(ids)) / 16 FROM arrivals")
    assert waiting < 60 and len(known_ids(store)) == 90
    answers = store.write(lambda records: service.shuffler.desk.accept(records, task.id, sent))
    assert [answer.new for answer in answers] == [False] * 90
