"""Stores in PostgreSQL: several shuffler processes on one database, bodies encrypted under keys outside of it.

Needs the extra `postgres` (psycopg). An address is what libpq takes, with `batch_keys=FOLDER`, and with `schema=NAME`
where the database has more than one store.
"""

from collections.abc import Callable
from contextlib import closing
from typing import Any, TypeVar

from shuffledp.errors import DataError, ParameterError

try:
    import psycopg  # noqa: F401
except ImportError:
    _WAY_OUT = "install it: pip install 'shuffledp[postgres]'"
    raise ParameterError("store", "postgresql://", "needs the driver psycopg", _WAY_OUT) from None

from shuffledp.service.store.contract import Inspected, Remains
from shuffledp.service.store.incoming import hop_keys_in, hops_in
from shuffledp.service.store.postgresql.address import DatabaseAddress
from shuffledp.service.store.postgresql.analyzer import PostgresAnalyzerRecords
from shuffledp.service.store.postgresql.connecting import first_connection, holders, in_a_sentence, label_of
from shuffledp.service.store.postgresql.engine import PostgresStore
from shuffledp.service.store.postgresql.inspecting import condition_of, reading_session, remains_in
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
        rows = db.execute("SELECT text FROM tasks").fetchall() if role == "shuffler" else []
        routings = [text for (text,) in rows]
        kind, held = f"{role} postgresql {version}{hops_in(routings)}", holders(db, store_id)
        return Inspected(kind, condition, held, None, role == "analyzer", hop_keys_in(routings))


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


def open_alone(rest: str) -> tuple[str, PostgresStore[Any]]:
    """The store of this schema and its role, held by nobody else, for whoever looks after it."""
    address = DatabaseAddress.parse(rest)
    role = inspect_store(rest).kind.partition(" ")[0]
    return role, PostgresStore(address, role, _RECORDS[role], shared=False)


def look_for_remains(rest: str) -> Remains:
    """What the schema and its folder of keys hold of batches that left; nothing is changed."""
    address = DatabaseAddress.parse(rest)
    with in_a_sentence(address), closing(first_connection(address, "inspection")) as db:
        label = label_of(db, address)
        if label is None:
            raise DataError("store", address.shown, "must be there", "check the address")
        role, store_id, _, version = label
        check_version(address, role, version)
        session = reading_session(db, address, store_id)
        return remains_in(db, session, _RECORDS[role], holders(db, store_id))


def migrate_store(rest: str) -> tuple[str, int, int]:
    """Bring the tables of a store to this version; its role, its version before and its version now."""
    address = DatabaseAddress.parse(rest)
    with in_a_sentence(address), closing(first_connection(address, "migration")) as db:
        return migrate(db, address)
