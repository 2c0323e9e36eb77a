"""Tokens that seats were given for, in SQLite: an older program refuses the tasks that need them."""

import json

from shuffledp.service.store.redeeming import MOST_SEATS, Redeemed
from shuffledp.service.store.sqlite.engine import StoreConnection
from shuffledp.service.wire import position_of

# `redeeming` has tokens as they come, `redeemed` those that get no other seat, which leave the order of arrival behind
# when a batch is sealed. `held` has a row for every seat that waits for its report.
_HELD = "CREATE TABLE {} held ({}, PRIMARY KEY (task_id, position)) WITHOUT ROWID;"
_HELD_COLUMNS = "task_id TEXT NOT NULL, position INTEGER NOT NULL, seat TEXT NOT NULL, token BLOB NOT NULL"
_HELD_INDEX = "CREATE INDEX {} held_by ON held (token);"
_COUNTED = "(task_id TEXT NOT NULL, token BLOB NOT NULL, seats INTEGER NOT NULL, PRIMARY KEY (task_id, token))"
LATER = f"""
CREATE TABLE IF NOT EXISTS redeeming {_COUNTED} WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS redeemed {_COUNTED} WITHOUT ROWID;
{_HELD.format("IF NOT EXISTS", _HELD_COLUMNS)}
{_HELD_INDEX.format("IF NOT EXISTS")}
"""


class SqliteRedeeming:
    """Records of tokens, on a connection that is inside a transaction."""

    db: StoreConnection

    def redeemed(self, owner: str, token: str, task_id: str) -> Redeemed:
        name = bytes.fromhex(token)
        query = (
            "SELECT seats FROM redeeming WHERE task_id = ?1 AND token = ?2 "
            "UNION ALL SELECT seats FROM redeemed WHERE task_id = ?1 AND token = ?2"
        )
        counted = self.db.execute(query, (owner, name)).fetchone()
        if counted is None:
            return Redeemed()
        held = self.db.execute("SELECT task_id, seat FROM held WHERE token = ?", (name,)).fetchone()
        return Redeemed(counted[0], *(held or ()))

    def seat_token(self, owner: str, token: str, seats: int, task_id: str, seat: str) -> None:
        name = bytes.fromhex(token)
        query = "INSERT INTO redeeming VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET seats = excluded.seats"
        self.db.execute(query, (owner, name, seats))
        self.db.execute("DELETE FROM held WHERE token = ?", (name,))
        # Whoever had the place before has it no more.
        self.db.execute("INSERT OR REPLACE INTO held VALUES (?, ?, ?, ?)", (task_id, position_of(seat), seat, name))

    def spend(self, owner: str, task_id: str, seats: list[str]) -> None:
        places = {position_of(seat): seat for seat in seats}
        some = "task_id = ? AND position IN (SELECT value FROM json_each(?))"
        listed = (task_id, json.dumps(list(places)))
        found = self.db.execute(f"SELECT position, seat, token FROM held WHERE {some}", listed).fetchall()
        spent = [(MOST_SEATS, owner, token) for position, seat, token in found if places[position] == seat]
        self.db.executemany("UPDATE redeeming SET seats = ? WHERE task_id = ? AND token = ?", spent)
        self.db.execute(f"DELETE FROM held WHERE {some}", listed)

    def _settle_tokens(self, owner: str, most: int) -> bool:
        """Some tokens that get no other seat leave the order of arrival behind; True if none is left.

        Then nothing in the file tells which seats they had: SQLite overwrites what is deleted, but not what it has
        moved when a page was split, and a dropped table's pages are overwritten whole.
        """
        known = "SELECT 1 FROM redeeming WHERE task_id = ?1 UNION ALL SELECT 1 FROM redeemed WHERE task_id = ?1 LIMIT 1"
        if self.db.execute(known, (owner,)).fetchone() is None:
            return True
        some = f"FROM redeeming WHERE task_id = ?1 AND seats >= {MOST_SEATS} ORDER BY token LIMIT {most}"
        query = f"INSERT OR REPLACE INTO redeemed SELECT * {some}"
        moved = self.db.execute(query, (owner,)).rowcount
        query = f"DELETE FROM redeeming WHERE (task_id, token) IN (SELECT task_id, token {some})"
        self.db.execute(query, (owner,))
        if moved == most:
            return False
        waiting = self.db.execute("SELECT * FROM held ORDER BY task_id, position").fetchall()
        self.db.execute("DROP TABLE held")
        self.db.execute(_HELD.format("", _HELD_COLUMNS))
        self.db.execute(_HELD_INDEX.format(""))
        self.db.executemany("INSERT INTO held VALUES (?, ?, ?, ?)", waiting)
        return True

    def _forget_tokens(self, owner: str, most: int) -> int:
        """Delete some of what is known of an owner's tokens; how many, 0 if none is left."""
        count = 0
        for table in ("redeeming", "redeemed"):
            some = f"SELECT token FROM {table} WHERE task_id = ?1 ORDER BY token LIMIT {most}"
            gone = self.db.execute(f"DELETE FROM {table} WHERE task_id = ?1 AND token IN ({some})", (owner,))
            count += gone.rowcount
        return count
