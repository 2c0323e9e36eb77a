"""Connections to PostgreSQL with the settings that a store needs, and who holds a store."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql

from shuffledp.errors import DataError, ParameterError
from shuffledp.service.store.postgresql.address import DatabaseAddress

Connection = psycopg.Connection[Any]

CONNECT_SECONDS = 5
# Nothing that a store does takes long: what does was forgotten by somebody, and holds up everybody else.
_SETTINGS = {
    "synchronous_commit": "on",
    "statement_timeout": "60s",
    "lock_timeout": "10s",
    "idle_in_transaction_session_timeout": "30s",
    "client_min_messages": "warning",
    "timezone": "UTC",
    # Every statement finds its rows by an index, also while a table is new and nothing is known of it.
    "enable_seqscan": "off",
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
}
# Advisory locks of this program: of stores, and of migrations.
_STORES, _MIGRATIONS = 0x53444850, 0x53444851


def connect(address: DatabaseAddress, role: str) -> Connection:
    """A connection that commits by itself what is not inside BEGIN and COMMIT.

    Raises:
        psycopg.OperationalError: there is none at the moment.
    """
    # Whoever asks who holds a store is shown this.
    name = f"shuffledp {role}, process {os.getpid()} on {socket.gethostname()}"[:63]
    connection: Connection = psycopg.connect(
        address.conninfo, autocommit=True, application_name=name, connect_timeout=CONNECT_SECONDS
    )
    try:
        with connection.pipeline():
            for setting, value in _SETTINGS.items():
                connection.execute("SELECT set_config(%s, %s, false)", (setting, value))
            if address.schema is not None:
                connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(address.schema)))
    except BaseException:
        connection.close()
        raise
    return connection


def first_connection(address: DatabaseAddress, role: str) -> Connection:
    """The connection with which a store is opened, to a server that keeps what it acknowledges.

    Raises:
        ParameterError: it may lose what it acknowledged.
    """
    connection = connect(address, role)
    try:
        for setting in ("fsync", "full_page_writes"):
            if connection.execute(f"SHOW {setting}").fetchall() != [("on",)]:
                problem = f"must be on a server with {setting} = on, or what is acknowledged may be lost"
                raise ParameterError("store", address.shown, problem, "turn it on in postgresql.conf")
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def in_a_sentence(address: DatabaseAddress) -> Iterator[None]:
    """What the server refuses while a store is opened is bad input, and said in a line, without the password.

    Raises:
        ParameterError: there is no such server or database, it does not let us in, or not make tables.
    """
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as refused:
        why = (refused.diag.message_primary or type(refused).__name__).rstrip(".")
        problem = f"must be a schema in which its user may make tables ({why})"
        raise ParameterError("store", address.shown, problem, "grant it, or name another with &schema=NAME") from None
    except (psycopg.OperationalError, psycopg.ProgrammingError) as refused:
        if isinstance(refused, psycopg.ProgrammingError) and refused.sqlstate is not None:
            raise
        first = str(refused).strip().partition("\n")[0]
        why = first.rpartition(" failed: ")[2].rpartition("FATAL:")[2].strip() or type(refused).__name__
        way_out = "is the server there, and are database, user and password right? (a password may be in ~/.pgpass)"
        problem = f"must be a database that can be reached ({why})"
        raise ParameterError("store", address.shown, problem, way_out) from None


def _lock_id(store_id: str) -> int:
    return int.from_bytes(bytes.fromhex(store_id[:8]), "big", signed=True)


def hold(connection: Connection, store_id: str, *, shared: bool) -> bool:
    """Take the store for this connection, alone or with others of its kind; the server gives it back if we die."""
    name = "pg_try_advisory_lock_shared" if shared else "pg_try_advisory_lock"
    [(taken,)] = connection.execute(f"SELECT {name}(%s, %s)", (_STORES, _lock_id(store_id))).fetchall()
    return bool(taken)


def holders(connection: Connection, store_id: str) -> str:
    """Who holds a store, in words."""
    rows = connection.execute(
        "SELECT DISTINCT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid) "
        "WHERE l.locktype = 'advisory' AND l.granted AND l.classid = %s::bigint::oid AND l.objid = %s::bigint::oid "
        "AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) ORDER BY 1",
        (_STORES, _lock_id(store_id) % 2**32),
    ).fetchall()
    return "by " + " and ".join(name or "somebody" for (name,) in rows) if rows else "by nobody"


def lock_migrations(connection: Connection, address: DatabaseAddress) -> None:
    """Wait until nobody else changes the tables of this schema; until the end of the transaction."""
    query = "SELECT pg_advisory_xact_lock(%s, hashtext(COALESCE(%s, current_schema())))"
    connection.execute(query, (_MIGRATIONS, address.schema))


def held_by_others(address: DatabaseAddress, who: str) -> DataError:
    """The refusal for a store that another process holds."""
    return DataError("store", address.shown, f"must be free: it is held {who}", "stop that one first")


def label_of(connection: Connection, address: DatabaseAddress) -> "tuple[str, str, bytes, int] | None":
    """Role, id, mark of the keys and version of the store in this schema; None if the schema is empty.

    Raises:
        DataError: something else is there.
    """
    [(store, migrations, others)] = connection.execute(
        "SELECT to_regclass('store'), to_regclass('migrations'), "
        "(SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace(quote_ident(current_schema())) "
        "AND relkind = 'r')"
    ).fetchall()
    if store is None and not others:
        return None
    try:
        assert store is not None and migrations is not None
        [(role, store_id, mark)] = connection.execute("SELECT role, store_id, keys_mark FROM store").fetchall()
        [(version,)] = connection.execute("SELECT max(number) FROM migrations").fetchall()
    except (AssertionError, ValueError, psycopg.errors.UndefinedColumn):
        problem = "must be an empty schema or a store of shuffledp"
        raise DataError("store", address.shown, problem, "name another with &schema=NAME") from None
    return role, store_id, bytes(mark), int(version)
