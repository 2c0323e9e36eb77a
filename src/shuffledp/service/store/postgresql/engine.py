"""A store in PostgreSQL: one writer a process, many requests to one commit, several processes where the role allows.

A request's future is resolved after the commit that holds it. A connection that is lost before COMMIT was sent has
changed nothing: the requests run again on a new one. One that is lost afterwards leaves open whether they happened:
they are refused for the moment, and whoever asks again sends the same bytes.
"""

import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from typing import Any, TypeVar

import psycopg
from psycopg import errors

from shuffledp.randomness import RandomBits
from shuffledp.service.problems import NO_ROOM, RefusedError
from shuffledp.service.store.group_commit import GroupCommit, Work
from shuffledp.service.store.postgresql.address import DatabaseAddress
from shuffledp.service.store.postgresql.connecting import (
    Connection,
    connect,
    first_connection,
    held_by_others,
    hold,
    holders,
    in_a_sentence,
)
from shuffledp.service.store.postgresql.keys import BatchKeys, KeyFolder
from shuffledp.service.store.postgresql.migrating import prepared
from shuffledp.service.store.postgresql.records import Session, StaleError, TaskLockedError, drop_empty_shelves
from shuffledp.service.wire import new_id

R = TypeVar("R", bound=Any)
T = TypeVar("T")

# Between tries, in seconds: a server that restarts is back within the sum.
_PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
# How long nothing new is accepted after the server's disk was full.
_FULL_SECONDS = 10.0
# Tasks and batches that a process remembers.
_MOST_KNOWN = 10_000
# How long the server may take to see that a process is dead.
_HOLD_SECONDS = 2.0
_BROKEN = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError, MemoryError)


class UnsureError(Exception):
    """Whether a commit happened is not known."""


class PostgresStore(GroupCommit[R]):
    """A schema of a database; work is given records over a connection inside a transaction.

    Args:
        address: where it is.
        role: whose it is.
        records: what work is given.
        shared: whether several processes may hold it at once.
    """

    def __init__(self, address: DatabaseAddress, role: str, records: Callable[[Session], R], *, shared: bool) -> None:
        bits = RandomBits.secure()
        self.address, self.holder = address, new_id(bits=bits)
        self._role, self._records, self._shared = role, records, shared
        self._full_until = 0.0
        self._known: dict[Any, Any] = {}
        self._idle: list[Connection] = []
        self._idle_lock = threading.Lock()
        keys = KeyFolder(address.batch_keys, bits=bits)
        self._writer: Connection | None = None
        with in_a_sentence(address):
            self._open(keys, bits)
        self._begin(f"store of the {role}")

    def _open(self, keys: BatchKeys, bits: RandomBits) -> None:
        address, role = self.address, self._role
        self._writer = first_connection(address, role)
        try:
            self._vault = prepared(self._writer, address, role, keys, bits)
            self._store_id = self._vault.store_id
            self._hold_first(self._writer)
            self._destroy_orphans(self._records(self._session(self._writer)))
        except BaseException:
            self._writer.close()
            raise

    def _session(self, db: Connection, **more: Any) -> Session:
        return Session(db, self._vault, self.holder, self.address.claim_seconds, **more)

    def _hold_first(self, writer: Connection) -> None:
        """Take the store, or say who has it; a process that has just been killed may hold it for another moment."""
        deadline = time.monotonic() + _HOLD_SECONDS
        while not hold(writer, self._store_id, shared=self._shared):
            if time.monotonic() > deadline:
                raise held_by_others(self.address, holders(writer, self._store_id))
            time.sleep(_PAUSES[0])

    def _destroy_orphans(self, records: R) -> None:
        """Keys of transactions that were never committed, or of which nobody knew."""
        orphans = self._vault.orphans({*records.needed_keys(), *records.doomed()})
        self._vault.destroy(orphans)

    # --- writing -------------------------------------------------------------------------------

    def _connected(self) -> Connection:
        """The writer's connection; a new one holds the store again before anything is written."""
        if self._writer is None or self._writer.closed:
            self._writer = None
            writer = connect(self.address, self._role)
            if not hold(writer, self._store_id, shared=self._shared):
                who = holders(writer, self._store_id)
                writer.close()
                raise psycopg.OperationalError(f"the store is held {who}")
            self._writer = writer
        return self._writer

    def _commit(self, work: Work[R]) -> None:
        for alone in self._commit_together(work):
            # One that has a transaction for itself waits for locks, and is answered.
            while self._commit_together([alone]):
                pass

    def _commit_together(self, work: Work[R]) -> Work[R]:
        """Run requests in one transaction, again where nothing came of it; answers those to be run one by one."""
        for pause in (*_PAUSES, None):
            try:
                answers, later = self._try(work)
            except Exception as broken:
                # Whatever it is, no memory among it, this thread goes on: everybody waits for it.
                if pause is not None and _is_passing(broken):
                    time.sleep(pause)
                    continue
                if len(work) > 1 and isinstance(broken, psycopg.Error) and not isinstance(broken, _BROKEN):
                    # One of them is wrong: it is found when each has a transaction of its own.
                    return work
                self._refuse(work, broken)
                return []
            for answer in answers:
                answer()
            return later
        return []

    def _refuse(self, work: Work[R], broken: Exception) -> None:
        if isinstance(broken, errors.DiskFull):
            self._full_until = time.monotonic() + _FULL_SECONDS
        failed = broken
        if isinstance(broken, (*_BROKEN, UnsureError)):
            # What libpq says names hosts and users: not for whoever reports.
            words = f"the store cannot be written ({type(broken).__name__}): try again later."
            failed = RefusedError(NO_ROOM, words, retry_after=5)
        for _, future in work:
            future.set_exception(failed)

    def _try(self, work: Work[R]) -> tuple[list[Callable[[], None]], Work[R]]:
        """One transaction: what to answer after it, and requests that found a task locked.

        Raises:
            UnsureError: nobody knows whether it was committed.
            Exception: it was not.
        """
        answers: list[Callable[[], None]] = []
        later: Work[R] = []
        made: list[bytes] = []
        unneeded: list[bytes] = []
        locked: set[str] = set()
        learned: dict[Any, Any] = {}
        writer = self._connected()
        is_sure = True
        try:
            # Statements travel together until somebody wants to see what one of them found.
            with writer.pipeline() as pipeline:
                writer.execute("BEGIN")
                for act, future in work:
                    session = self._session(writer, is_alone=len(work) == 1, locked=locked, known=self._known)
                    writer.execute("SAVEPOINT request")
                    try:
                        records = self._records(session)
                        result = act(records)
                        records.settle()
                    except (psycopg.Error, StaleError, MemoryError):
                        raise
                    except Exception as refused:
                        writer.execute("ROLLBACK TO request")
                        unneeded += session.made
                        if isinstance(refused, TaskLockedError):
                            later.append((act, future))
                        else:
                            # Refusals wait for the commit, too: they may rest on what it holds.
                            answers.append(partial(future.set_exception, refused))
                    else:
                        answers.append(partial(future.set_result, result))
                        learned |= session.learned
                    finally:
                        made += session.made
                    writer.execute("RELEASE request")
                is_sure = False
                committed = writer.execute("COMMIT")
                pipeline.sync()
            is_sure = True
            if committed.statusmessage != "COMMIT":
                # A transaction that has failed is answered with ROLLBACK, and no error.
                raise psycopg.InternalError(f"COMMIT was answered with {committed.statusmessage}")
        except BaseException as broken:
            is_sure = is_sure or _is_server_error(broken, writer)
            self._known.clear()
            # Rolled back with its connection: the driver may believe that statements are prepared which never were.
            with suppress(Exception):
                writer.close()
            if not is_sure:
                raise UnsureError from broken
            with suppress(OSError):
                self._vault.destroy(made)
            raise
        if unneeded:
            with suppress(OSError):
                self._vault.destroy(unneeded)
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        self._known |= learned
        return answers, later

    def has_room(self) -> bool:
        """Whether the server's disk was not full a moment ago."""
        return time.monotonic() >= self._full_until

    # --- reading -------------------------------------------------------------------------------

    def read(self, work: Callable[[R], T]) -> T:
        """Run this on what is committed, in the caller's thread; again if an old connection is found to be lost."""
        for attempt in range(2):
            try:
                return self._read(work)
            except _BROKEN as broken:
                if attempt or not isinstance(broken, psycopg.Error) or broken.sqlstate not in _LOST:
                    words = f"the store cannot be read ({type(broken).__name__}): try again later."
                    raise RefusedError(NO_ROOM, words, retry_after=5) from broken
                self._drop_idle()
        raise AssertionError

    def _read(self, work: Callable[[R], T]) -> T:
        with self._idle_lock:
            db = self._idle.pop() if self._idle else None
        if db is None:
            db = connect(self.address, self._role)
        try:
            db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                answer = work(self._records(self._session(db, is_reading=True)))
            finally:
                db.execute("ROLLBACK")
        except BaseException:
            if db.closed or db.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                db.close()
            else:
                self._give_back(db)
            raise
        self._give_back(db)
        return answer

    def _give_back(self, db: Connection) -> None:
        with self._idle_lock:
            self._idle.append(db)

    def _drop_idle(self) -> None:
        with self._idle_lock:
            idle, self._idle = self._idle, []
        for db in idle:
            db.close()

    # --- forgetting ----------------------------------------------------------------------------

    def forget_deleted(self) -> None:
        """Destroy the keys of all that was deleted, by whichever process, and drop tables that nobody needs."""
        doomed, has_empty = self.read(lambda records: (records.doomed(), records.has_empty_shelves()))
        if doomed:
            self._vault.destroy(doomed)
            self.write(lambda records: records.destroyed(doomed))
        if not has_empty:
            return
        try:
            with closing(connect(self.address, self._role)) as db:
                drop_empty_shelves(db)
        except psycopg.OperationalError as broken:
            words = f"the store cannot be written ({type(broken).__name__}): try again later."
            raise RefusedError(NO_ROOM, words, retry_after=5) from broken

    def _forget(self) -> None:
        with closing(connect(self.address, self._role)) as db:
            records = self._records(self._session(db))
            doomed = records.doomed()
            self._vault.destroy(doomed)
            records.destroyed(doomed)
            drop_empty_shelves(db)

    def _let_go(self) -> None:
        if self._writer is not None:
            with suppress(Exception):
                self._records(self._session(self._writer)).let_go()
            self._writer.close()
        self._drop_idle()


_LOST = (None, "57P01", "57P02", "57P03", "08000", "08003", "08006", "25P03")
"""What the server, or nobody, says when a connection ends: SQLSTATE."""
_AGAIN = ("40001", "40P01")
"""Two transactions were in each other's way, and this one was given up."""


def _is_passing(broken: Exception) -> bool:
    """Whether nothing happened, and the same may go well in a moment."""
    if isinstance(broken, StaleError | errors.UndefinedTable):
        return True
    if not isinstance(broken, psycopg.Error):
        return False
    lost = isinstance(broken, psycopg.OperationalError | psycopg.InterfaceError) and broken.sqlstate in _LOST
    return lost or broken.sqlstate in _AGAIN


def _is_server_error(broken: BaseException, writer: Connection) -> bool:
    """Whether the server itself has said that it did not commit, and goes on."""
    sqlstate = broken.sqlstate if isinstance(broken, psycopg.Error) else None
    return sqlstate is not None and sqlstate not in _LOST and not writer.closed
