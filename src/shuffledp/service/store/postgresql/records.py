"""What the records of both roles share: a transaction, shelves for encrypted bodies, and keys that are doomed.

A body is never in the database in the clear. It lies on a shelf, a table that several small batches share and a large
one has for itself, under a key of its batch. Nothing is deleted from a shelf: what a batch left there cannot be read
once its key is destroyed, and the table is dropped whole when none of its batches needs it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg

from shuffledp.service.store.postgresql.connecting import Connection
from shuffledp.service.store.postgresql.vault import Vault

# A shelf takes so many batches, or so many bytes; a batch that may be longer than the latter has one for itself.
SHELF_BATCHES, SHELF_BYTES, LARGE_BYTES = 64, 4 << 20, 1 << 20
# Of a body in one row: with all that a row needs it fills a page of 8 kB. A place has room for so many bits of rows.
ROW_BYTES, _ROW_BITS = 8000, 20
_PLACES = 1 << 42
# An empty shelf that nobody put anything on for so long is dropped, too.
IDLE_SECONDS = 60.0


class TaskLockedError(Exception):
    """Another process writes about a task at the moment, and this request must not wait for it here."""


class StaleError(Exception):
    """What this process remembered of the database is not so any more: the same again, without it."""


@dataclass
class Session:
    """One request inside a transaction.

    Attributes:
        db: the connection.
        vault: what encrypts.
        holder: this process, as others know it.
        claim_seconds: how long a batch is this process's without a sign of life.
        is_reading: nothing is locked or changed.
        is_alone: whether it has the transaction for itself.
        locked: the tasks that the transaction has locked. Whoever shares one and has locked something waits for no
            other lock: two that waited for each other would both stand still.
        made: keys that nobody needs if this is rolled back.
        known: what this process remembers of the database, to be found to hold at the end of a request.
        learned: what it will remember if this is committed.
    """

    db: Connection
    vault: Vault
    holder: str
    claim_seconds: float
    is_reading: bool = False
    is_alone: bool = True
    locked: set[str] = field(default_factory=set)
    made: list[bytes] = field(default_factory=list)
    known: dict[Any, Any] = field(default_factory=dict)
    learned: dict[Any, Any] = field(default_factory=dict)


class PostgresRecords:
    """Records on a connection that is inside a transaction."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.db, self.vault = session.db, session.vault

    def rows(self, query: str, *given: Any) -> list[Any]:
        """What a query finds."""
        return self.db.execute(query, given).fetchall()

    def settle(self) -> None:
        """Write what was only noted so far; called at the end of a request."""

    def _put(self, task_id: str, kind: str, expected: int) -> tuple[int, bytes]:
        """A place for a new batch's bodies: a shelf and a key."""
        shelf = None
        if expected <= LARGE_BYTES:
            found = self.rows(
                "UPDATE shelves SET taken = taken + 1, held = held + 1, bytes = bytes + %s, "
                "touched = clock_timestamp(), "
                f"is_open = taken + 1 < {SHELF_BATCHES} AND bytes + %s < {SHELF_BYTES} "
                "WHERE task_id = %s AND kind = %s AND is_open RETURNING number",
                expected, expected, task_id, kind,
            )  # fmt: skip
            shelf = found[0][0] if found else None
        if shelf is None:
            [(shelf,)] = self.rows(
                "INSERT INTO shelves (task_id, kind, taken, held, bytes, is_open) "
                "VALUES (%s, %s, 1, 1, %s, %s) RETURNING number",
                task_id, kind, expected, expected <= LARGE_BYTES,
            )  # fmt: skip
            self.db.execute(
                f"CREATE TABLE {kind}_{shelf} (key BYTEA, place BIGINT, body BYTEA NOT NULL, PRIMARY KEY (key, place))"
            )
            # Rows fit on their pages: nothing is compressed, or moved elsewhere in smaller pieces.
            self.db.execute(f"ALTER TABLE {kind}_{shelf} ALTER body SET STORAGE PLAIN")
        key = self.vault.new_key()
        self.session.made.append(key)
        return int(shelf), key

    def _write(
        self, kind: str, shelf: int, batch: int, key: bytes, bodies: list[tuple[int, bytes | memoryview]]
    ) -> None:
        """Place and body of each, sealed, in as many rows as it takes."""
        places, sealed = [], []
        for place, body in bodies:
            for row, start in enumerate(range(0, len(body), ROW_BYTES)):
                places.append((place << _ROW_BITS) + row)
                sealed.append(self.vault.seal(key, place_of(kind, batch, places[-1]), body[start : start + ROW_BYTES]))
        self.db.execute(
            f"INSERT INTO {kind}_{shelf} SELECT %b, * FROM unnest(%b::bigint[], %b::bytea[])", (key, places, sealed)
        )

    def _bodies(
        self, kind: str, shelf: int, key: bytes, batch: int, places: tuple[int, int] = (0, _PLACES)
    ) -> Iterator[bytes]:
        """A batch's bodies in the order of their places, a row each, opened; of all places, or from one to another."""
        query = f"SELECT place, body FROM {kind}_{shelf} WHERE key = %s AND place >= %s AND place < %s ORDER BY place"
        first, end = (place << _ROW_BITS for place in places)
        for place, body in self.db.execute(query, (key, first, end), binary=True):
            yield self.vault.open(key, place_of(kind, batch, place), body)

    def _leave(self, shelf: int, key: bytes) -> None:
        """A batch needs its shelf no more, and its key is to be destroyed."""
        self.db.execute("UPDATE shelves SET held = held - 1, touched = clock_timestamp() WHERE number = %s", (shelf,))
        self.db.execute("INSERT INTO doomed VALUES (%s) ON CONFLICT DO NOTHING", (key,))

    def doomed(self) -> list[bytes]:
        """Keys that are to be destroyed."""
        return [bytes(key) for (key,) in self.rows("SELECT key FROM doomed")]

    def has_empty_shelves(self) -> bool:
        """Whether there are tables that nobody needs."""
        return bool(self.rows(f"SELECT 1 FROM shelves WHERE {_EMPTY} LIMIT 1"))

    def destroyed(self, keys: list[bytes]) -> None:
        """These keys are gone; whoever else is about to say so is not waited for."""
        some = "SELECT key FROM doomed WHERE key = ANY(%s) FOR UPDATE SKIP LOCKED"
        self.db.execute(f"DELETE FROM doomed WHERE key IN ({some})", (keys,))


def place_of(kind: str, batch: int, place: int) -> str:
    """Where a body lies: it opens nowhere else."""
    return f"{kind} {batch} {place}"


_EMPTY = f"held = 0 AND (NOT is_open OR touched < clock_timestamp() - interval '{IDLE_SECONDS} seconds')"


def drop_empty_shelves(db: Connection) -> None:
    """Drop shelves that nobody needs, one a transaction; one that is being read, as by a backup, waits."""
    for number, kind in db.execute(f"SELECT number, kind FROM shelves WHERE {_EMPTY}").fetchall():
        try:
            with db.transaction():
                db.execute("SET LOCAL lock_timeout = '500ms'")
                query = f"SELECT 1 FROM shelves WHERE number = %s AND {_EMPTY} FOR UPDATE SKIP LOCKED"
                if db.execute(query, (number,)).fetchall():
                    db.execute(f"DROP TABLE {kind}_{number}")
                    db.execute("DELETE FROM shelves WHERE number = %s", (number,))
        except psycopg.errors.LockNotAvailable:
            continue
