"""An embedded store: SQLite in WAL mode, one writer, many requests to one fsync.

Everything that changes the store goes through one connection. A thread takes all requests that wait, runs each in a
savepoint of its own, and commits them together (synchronous=FULL): a request's future is resolved after the
commit that holds it, never before. What is deleted is overwritten (secure_delete), and `forget` empties the log.

Python runs one thread at a time, and a thread gives the interpreter away with every statement: beside a busy event loop
that is a dozen times a commit that one of them waits to be woken up. So a loop runs its statements itself while nobody
else writes, and only the disk is waited for in another thread, which needs no interpreter there.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar
from urllib.parse import quote

from shuffledp.errors import DataError, ParameterError
from shuffledp.files import locked
from shuffledp.service.problems import NO_ROOM, RefusedError
from shuffledp.service.store.group_commit import GroupCommit, Work

R = TypeVar("R")
T = TypeVar("T")

Answers = list[Callable[[], None]]
"""What resolves the futures of a commit's requests."""

# How long a transaction waits to begin while somebody else holds a lock; an event loop does not.
_BUSY_SECONDS = 5
# Nothing new is accepted while less than this is free, or this part of a small disk.
_RESERVE_BYTES, _RESERVE_PART = 64 << 20, 4
_PRAGMAS = (
    # Reports that come one by one touch a page each for their random ids, which are then written whole.
    "PRAGMA page_size=4096",
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA secure_delete=ON",
    "PRAGMA foreign_keys=ON",
    "PRAGMA temp_store=MEMORY",
    # The log is emptied by hand, after what was in it was purged.
    "PRAGMA wal_autocheckpoint=8000",
)


_ITSELF: Any = lambda connection: connection  # noqa: E731


class StoreConnection(sqlite3.Connection):
    """A connection with a place for what its records remember from one transaction to the next.

    Transactions are taken back without a word to them: they look whether what they remember still holds.
    """

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.remembered: dict[str, Any] = {}


class SqliteStore(GroupCommit[R]):
    """One database file, held by one process; work is given `records` over a connection inside a transaction.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with closing(SqliteStore(Path(folder) / "s.db", "CREATE TABLE t (x INTEGER)", label="test 1")) as store:
    ...         _ = store.write(lambda db: db.execute("INSERT INTO t VALUES (7)"))
    ...         store.read(lambda db: db.execute("SELECT x FROM t").fetchall())
    [(7,)]
    """

    def __init__(
        self,
        path: Path,
        schema: str,
        *,
        label: str,
        records: Callable[[StoreConnection], R] = _ITSELF,
        parameter: str = "store",
        later: str = "",
        upgrades: Mapping[str, str] | None = None,
    ) -> None:
        self.path, self._parameter = path, parameter
        self._records = records
        self._held, self._is_unwanted = ExitStack(), False
        had_lock = self._beside(".lock").exists()
        # The second server on one store is told which process holds it.
        self._held.enter_context(locked(path, timeout=0.0, parameter=parameter))
        # Whether this opening makes it; a path that is a link is another's file.
        self._is_new = not path.exists() and not path.is_symlink()
        try:
            self._writer = self._connect()
            self._create(schema, label, upgrades or {})
            # Tables of later versions that older ones can do without.
            self._writer.executescript(later)
            # A process that was killed may have left in the log what it had deleted; where there is no room to
            # empty it, the next `forget` does.
            with suppress(sqlite3.OperationalError):
                _truncate(self._writer)
            # Kept short: see `_begin_patiently`.
            self._writer.execute("PRAGMA busy_timeout=0")
        except BaseException:
            if self._is_new:
                self._remove()
            elif not had_lock:
                self._beside(".lock").unlink(missing_ok=True)
            self._held.close()
            raise
        self._readers = threading.local()
        # Of the writing connection: from the first statement of a transaction until it is on disk.
        self._using = threading.Lock()
        self._forgetting = threading.Lock()
        self._to_disk: SimpleQueue[tuple[Work[R], Answers] | None] = SimpleQueue()
        self._is_dirty = True
        self._disk = threading.Thread(target=self._write_down, name=f"disk {path.name}", daemon=True)
        self._disk.start()
        self._begin(f"store {path.name}")

    def discard(self) -> None:
        """Let go of a store that is of no use; if it was made by this opening, nothing is left of it."""
        self._is_unwanted = True
        self.close()

    def _let_go(self) -> None:
        # Kept from here on: whoever comes now is refused by the queue.
        self._using.acquire()
        self._to_disk.put(None)
        self._disk.join()
        with suppress(sqlite3.Error):
            _truncate(self._writer)
        self._writer.close()
        if self._is_unwanted and self._is_new:
            self._remove()
        self._held.close()

    def _remove(self) -> None:
        """Remove the files of a store that this process has made and holds."""
        for ending in ("", "-wal", "-shm", ".lock"):
            self._beside(ending).unlink(missing_ok=True)

    def _beside(self, ending: str) -> Path:
        return self.path.with_name(self.path.name + ending)

    def _connect(self) -> StoreConnection:
        try:
            # Made with its mode: at no time can anybody else read it.
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            connection = sqlite3.connect(
                self.path,
                isolation_level=None,
                check_same_thread=False,
                timeout=_BUSY_SECONDS,
                factory=StoreConnection,
            )
            for pragma in _PRAGMAS:
                connection.execute(pragma)
        except (sqlite3.DatabaseError, OSError) as broken:
            problem = "must be a store's file in a directory that can be written"
            raise ParameterError(self._parameter, str(self.path), problem, f"name another ({broken})") from None
        return connection

    def _create(self, schema: str, label: str, upgrades: Mapping[str, str]) -> None:
        try:
            known = self._writer.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            if not known:
                self._writer.executescript(
                    f"BEGIN; CREATE TABLE store (label TEXT NOT NULL); "
                    f"INSERT INTO store VALUES ('{label}'); {schema}; COMMIT;"
                )
                return
            found = self._writer.execute("SELECT label FROM store").fetchone()[0] if ("store",) in known else "unknown"
        except sqlite3.DatabaseError as broken:
            problem = f"must be a database ({broken})"
            raise DataError(self._parameter, str(self.path), problem, "name another file") from None
        if found in upgrades:
            self._upgrade(found, label, upgrades[found])
        elif found != label:
            is_other_role = found.partition(" ")[0] != label.partition(" ")[0]
            way_out = "name another file" if is_other_role else "use the shuffledp that made it, or name another file"
            raise DataError(self._parameter, f"a store of {found}", f"must be of {label}", way_out)

    def _upgrade(self, found: str, label: str, statements: str) -> None:
        """Make a store of an earlier version one of this, all of it or nothing."""
        try:
            self._writer.executescript(f"BEGIN; {statements} UPDATE store SET label = '{label}'; COMMIT;")
        except (sqlite3.Error, MemoryError) as broken:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            why = str(broken) or type(broken).__name__
            problem, way_out = f"must become one of {label}, and could not ({why})", "nothing was changed: try again"
            raise DataError(self._parameter, f"a store of {found}", problem, way_out) from None

    def has_room(self) -> bool:
        """Whether the disk has more than the reserve: what is left is for moving the log into the database."""
        disk = os.statvfs(self.path.parent)
        return disk.f_bavail * disk.f_frsize > min(_RESERVE_BYTES, disk.f_blocks * disk.f_frsize // _RESERVE_PART)

    def _forget(self) -> None:
        """Empty the log, so that what was deleted is nowhere on disk."""
        with self._using:
            _truncate(self._writer)

    def forget_deleted(self) -> None:
        """Empty the log if anything was written since that last succeeded."""
        # Whoever comes while another is at it goes on when that is done.
        with self._forgetting:
            if self._is_dirty:
                self._is_dirty = False
                try:
                    self.forget()
                except BaseException:
                    self._is_dirty = True
                    raise

    def submit_here(self, work: Callable[[R], T]) -> "Future[T]":
        """As `submit`; while nobody else writes, its statements have run when this returns: only the disk has not."""
        # Before anything is held: there may be no memory for it.
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        requests: Work[R] = [(work, future)]
        if not self._using.acquire(blocking=False):
            return self.submit(work)
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            begun = requests, self._statements(requests)
        except BaseException as broken:
            try:
                refusals = self._undone(requests, broken)
            finally:
                self._using.release()
            if _is_busy(broken):
                # Another process writes, and is waited for in the store's own thread.
                return self.submit(work)
            _tell(refusals)
            if not isinstance(broken, Exception):
                raise
        else:
            self._to_disk.put(begun)
        return future

    def _write_down(self) -> None:
        """Commit what others have begun with."""
        while (begun := self._to_disk.get()) is not None:
            work, answers = begun
            try:
                self._writer.execute("COMMIT")
            except Exception as broken:
                answers = self._undone(work, broken)
            finally:
                self._using.release()
            _tell(answers)

    def _commit(self, work: Work[R]) -> None:
        with self._using:
            try:
                self._begin_patiently()
                answers = self._statements(work)
                self._writer.execute("COMMIT")
            except Exception as broken:
                # Whatever it is, no memory among it, this thread goes on: everybody waits for it.
                answers = self._undone(work, broken)
        _tell(answers)

    def _begin_patiently(self) -> None:
        """Begin a transaction; another process that writes is waited for."""
        try:
            self._writer.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as broken:
            if not _is_busy(broken):
                raise
            with _patient(self._writer, _BUSY_SECONDS):
                self._writer.execute("BEGIN IMMEDIATE")

    def _statements(self, work: Work[R]) -> Answers:
        """Run these requests in a transaction that was begun; what to answer when it is committed."""
        self._is_dirty = True
        answers: Answers = []
        for act, future in work:
            try:
                with _savepoint(self._writer):
                    result = act(self._records(self._writer))
            except (sqlite3.OperationalError, MemoryError):
                raise
            except Exception as refused:
                # Refusals wait for the commit, too: they may rest on what it holds.
                answers.append(partial(future.set_exception, refused))
            else:
                answers.append(partial(future.set_result, result))
        return answers

    def _undone(self, work: Work[R], broken: BaseException) -> Answers:
        """Take back what these requests have written, and refuse them all."""
        with suppress(Exception):
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
        why = str(broken) or type(broken).__name__
        refusal = RefusedError(NO_ROOM, f"the store cannot be written ({why}): try again later.", retry_after=5)
        return [partial(future.set_exception, refusal) for _, future in work]

    def read(self, work: Callable[[R], T]) -> T:
        """Run this on what is committed, in the caller's thread."""
        connection: StoreConnection | None = getattr(self._readers, "connection", None)
        if connection is None:
            connection = self._readers.connection = self._connect()
        connection.execute("BEGIN")
        try:
            return work(self._records(connection))
        finally:
            connection.execute("COMMIT")


def _tell(answers: Answers) -> None:
    for answer in answers:
        answer()


@contextmanager
def _savepoint(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("SAVEPOINT request")
    try:
        yield
    except BaseException:
        # A full disk may have rolled everything back already.
        if connection.in_transaction:
            connection.execute("ROLLBACK TO request")
            connection.execute("RELEASE request")
        raise
    connection.execute("RELEASE request")


def _is_busy(broken: BaseException) -> bool:
    """Whether somebody else holds a lock."""
    return isinstance(broken, sqlite3.OperationalError) and (
        getattr(broken, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
    )


@contextmanager
def _patient(connection: sqlite3.Connection, seconds: float) -> Iterator[None]:
    """Locks that others hold are waited for, so long."""
    connection.execute(f"PRAGMA busy_timeout={round(1000 * seconds)}")
    try:
        yield
    finally:
        connection.execute("PRAGMA busy_timeout=0")


def _truncate(connection: sqlite3.Connection) -> None:
    # Readers are not waited for long: writers would wait, too.
    with _patient(connection, 0.1):
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise sqlite3.OperationalError("the log is being read: it is emptied the next time")


@contextmanager
def reading_only(path: Path) -> Iterator[sqlite3.Connection]:
    """A store's file in one transaction that can change nothing, beside whoever holds it.

    Raises:
        DataError: it is no database, or not one of a store.
    """
    way_out = "name a file that a server or a client made"
    with path.open("rb") as file:
        if file.read(16) != b"SQLite format 3\0":
            raise DataError("store", str(path), "must be a SQLite database", way_out)
    try:
        uri = f"file:{quote(str(path.resolve()))}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=2, isolation_level=None)) as database:
            database.execute("BEGIN")
            yield database
    except (sqlite3.Error, TypeError) as broken:
        raise DataError("store", str(path), f"must be a store of shuffledp ({broken})", way_out) from None


def read_label(path: Path) -> tuple[str, str]:
    """What a file says that it is a store of, and "ok" or what SQLite finds broken in it; nothing is changed."""
    with reading_only(path) as database:
        label = database.execute("SELECT label FROM store").fetchone()[0]
        return label, database.execute("PRAGMA quick_check(1)").fetchone()[0]
