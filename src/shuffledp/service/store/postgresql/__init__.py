"""Stores in PostgreSQL: several shuffler processes on one database, bodies encrypted under keys outside of it.

Needs the extra `postgres` (psycopg). An address is what libpq takes, with `batch_keys=FOLDER`, and with `schema=NAME`
where the database has more than one store.
"""

from collections.abc import Callable
from contextlib import closing
from typing import TypeVar

from shuffledp.errors import DataError, ParameterError

try:
    import psycopg  # noqa: F401
except ImportError:
    _WAY_OUT = "install it: pip install 'shuffledp[postgres]'"
    raise ParameterError("store", "postgresql://", "needs the driver psycopg", _WAY_OUT) from None

from shuffledp.service.store.contract import Inspected
from shuffledp.service.store.incoming import hops_in
from shuffledp.service.store.postgresql.address import DatabaseAddress
from shuffledp.service.store.postgresql.analyzer import PostgresAnalyzerRecords
from shuffledp.service.store.postgresql.connecting import first_connection, holders, in_a_sentence, label_of
from shuffledp.service.store.postgresql.engine import PostgresStore
from shuffledp.service.store.postgresql.inspecting import condition_of, reading_session
from shuffledp.service.store.postgresql.migrating import check_version, migrate
from shuffledp.service.store.postgresql.shuffler import PostgresShufflerRecords

T = TypeVar("T")


def open_shuffler_store(rest: str) -> PostgresStore[PostgresShufflerRecords]:
    """A shuffler's store, which several processes may hold at once."""
    address = DatabaseAddress.parse(rest)
    return PostgresStore(address, "shuffler", PostgresShufflerRecords, shared=True)


def open_analyzer_store(rest: str) -> PostgresStore[PostgresAnalyzerRecords]:
    """An analyzer's store, held by one process."""
    address = DatabaseAddress.parse(rest)
    return PostgresStore(address, "analyzer", PostgresAnalyzerRecords, shared=False)


def open_outbox(rest: str | None) -> None:
    """There is none: an outbox is a device's own file."""
    way_out = "name a file, such as outbox.db"
    raise ParameterError("outbox", "postgresql://", "must be a file on the device itself", way_out)


_RECORDS = {"shuffler": PostgresShufflerRecords, "analyzer": PostgresAnalyzerRecords}


def inspect_store(rest: str) -> Inspected:
    """What the store in this schema is, who holds it, and "ok" or what is broken in it."""
    address = DatabaseAddress.parse(rest)
    with in_a_sentence(address), closing(first_connection(address, "inspection")) as db:
        label = label_of(db, address)
        if label is None:
            way_out = "check the address; a server makes its store when it starts"
            raise DataError("store", address.shown, "must be there", way_out)
        role, store_id, mark, version = label
        check_version(address, role, version)
        condition = condition_of(db, address, store_id, mark, _RECORDS[role])
        routings = db.execute("SELECT text FROM tasks").fetchall() if role == "shuffler" else []
        kind = f"{role} postgresql {version}{hops_in(text for (text,) in routings)}"
        return Inspected(kind, condition, holders(db, store_id), None, role == "analyzer")


def look_into_analyzer(rest: str, work: Callable[[PostgresAnalyzerRecords], T]) -> T:
    """Run this on what is committed in the analyzer's store of this schema, whoever holds it; nothing is changed."""
    address = DatabaseAddress.parse(rest)
    with in_a_sentence(address), closing(first_connection(address, "inspection")) as db:
        label = label_of(db, address)
        if label is None or label[0] != "analyzer":
            raise DataError("store", address.shown, "must be an analyzer's", "check the address")
        role, store_id, _, version = label
        check_version(address, role, version)
        with db.transaction():
            db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            return work(PostgresAnalyzerRecords(reading_session(db, address, store_id)))


def migrate_store(rest: str) -> tuple[str, int, int]:
    """Bring the tables of a store to this version; its role, its version before and its version now."""
    address = DatabaseAddress.parse(rest)
    with in_a_sentence(address), closing(first_connection(address, "migration")) as db:
        return migrate(db, address)
