"""An analyzer's records in PostgreSQL, held by one process."""

import json
from typing import Any

from shuffledp.service.store.contract import BatchTotal, Progress, Release
from shuffledp.service.store.postgresql.pieces import PostgresPieces
from shuffledp.service.wire import SignedText

# Of a body in one statement.
PIECE_BYTES = 1 << 20
_MODEL = "SELECT text, signature FROM models WHERE campaign_id = %s"
_RELEASE = 'SELECT "time", estimate, standard_error, bound, confidence, dropped, void FROM releases WHERE task_id = %s'
_READ = "bodies_key IS NULL AND total IS NOT NULL"
# Of a task that has ended: that a batch was taken is all that is known of it.
_FORGOTTEN = "(bodies_key IS NULL AND total IS NULL)"
# A round's id is its campaign's, a dot and more; "/" comes after the dot.
_ROUNDS = """(task_id COLLATE "C" > %s || '.' AND task_id COLLATE "C" < %s || '/')"""


class PostgresAnalyzerRecords(PostgresPieces):
    """Records on a connection that is inside a transaction."""

    def add_task(self, task_id: str, text: str) -> None:
        self.db.execute("INSERT INTO tasks VALUES (%s, %s, NULL) ON CONFLICT DO NOTHING", (task_id, text))

    def tasks(self) -> dict[str, str]:
        return dict(self.rows("SELECT task_id, text FROM tasks ORDER BY task_id"))

    def task(self, task_id: str) -> str | None:
        found = self.rows("SELECT text FROM tasks WHERE task_id = %s", task_id)
        return found[0][0] if found else None

    def digest(self, task_id: str, batch_id: str) -> str | None:
        query = (
            "SELECT digest FROM batches WHERE task_id = %s AND batch_id = %s UNION ALL "
            "SELECT digest FROM incoming WHERE task_id = %s AND batch_id = %s"
        )
        found = self.rows(query, task_id, batch_id, task_id, batch_id)
        return found[0][0] if found else None

    def add_batch(self, task_id: str, batch_id: str, digest: str, body: bytes) -> None:
        shelf, key = self._put(task_id, "bodies", len(body))
        [(number,)] = self.rows(
            "INSERT INTO batches (task_id, batch_id, digest, bodies_shelf, bodies_key) VALUES (%s, %s, %s, %s, %s) "
            "RETURNING number",
            task_id, batch_id, digest, shelf, key,
        )  # fmt: skip
        whole = memoryview(body)
        for place, start in enumerate(range(0, len(body), PIECE_BYTES)):
            self._write("bodies", shelf, number, key, [(place, whole[start : start + PIECE_BYTES])])

    def unread(self, most: int) -> list[tuple[str, str]]:
        whole = "SELECT task_id, batch_id FROM batches WHERE bodies_key IS NOT NULL ORDER BY number LIMIT %s"
        in_pieces = "SELECT task_id, batch_id FROM incoming WHERE digest IS NOT NULL ORDER BY number LIMIT %s"
        return [row for query in (whole, in_pieces) for row in self.rows(query, most)][:most]

    def body(self, task_id: str, batch_id: str) -> bytes | None:
        query = "SELECT number, bodies_shelf, bodies_key FROM batches WHERE task_id = %s AND batch_id = %s"
        found = self.rows(query, task_id, batch_id)
        if not found or found[0][2] is None:
            return None
        number, shelf, key = found[0]
        return b"".join(self._bodies("bodies", shelf, key, number))

    def add_total(self, task_id: str, total: BatchTotal) -> None:
        if self._read_in_pieces(task_id, total):
            return
        kept = "SELECT number, bodies_shelf, bodies_key FROM batches WHERE task_id = %s AND batch_id = %s FOR UPDATE"
        for number, shelf, key in self.rows(kept, task_id, total.batch_id):
            self.db.execute(
                "UPDATE batches SET bodies_shelf = NULL, bodies_key = NULL, total = %s, dropped = %s, void = %s "
                "WHERE number = %s",
                (json.dumps(total.total), total.dropped, total.void, number),
            )
            if key is not None:
                self._leave(shelf, key)

    def totals(self, task_id: str, batch_ids: list[str]) -> dict[str, BatchTotal]:
        rows = self.rows(
            f"SELECT batch_id, total, dropped, void FROM batches WHERE task_id = %s AND batch_id = ANY(%s) AND {_READ}",
            task_id, batch_ids,
        )  # fmt: skip
        return {row[0]: BatchTotal(row[0], json.loads(row[1]), *row[2:]) for row in rows}

    def state(self, task_id: str) -> Any:
        found = self.rows("SELECT state FROM tasks WHERE task_id = %s", task_id)
        return json.loads(found[0][0]) if found and found[0][0] is not None else None

    def set_state(self, task_id: str, state: Any) -> None:
        self.db.execute("UPDATE tasks SET state = %s WHERE task_id = %s", (json.dumps(state), task_id))

    def add_release(self, task_id: str, release: Release) -> None:
        claimed = (release.standard_error, release.bound, release.confidence)
        row = (task_id, release.time, json.dumps(release.estimate), *claimed, release.dropped, release.void)
        self.db.execute("INSERT INTO releases VALUES (%s, %s, %s, %s, %s, %s, %s, %s)", row)

    def last_release(self, task_id: str) -> Release | None:
        found = self.rows(f'{_RELEASE} ORDER BY "time" DESC LIMIT 1', task_id)
        return _release(found[0]) if found else None

    def releases(self, task_id: str, after: int, most: int) -> list[Release]:
        query = f'{_RELEASE} AND "time" > %s ORDER BY "time" LIMIT %s'
        return [_release(row) for row in self.rows(query, task_id, after, most)]

    def progress(self, task_id: str) -> Progress:
        [row] = self.rows(
            "SELECT COUNT(*) + (SELECT COUNT(*) FROM incoming WHERE digest IS NOT NULL "
            f"AND (task_id = %s OR {_ROUNDS})), "
            "COUNT(*) FILTER (WHERE bodies_key IS NULL), COUNT(*) FILTER (WHERE void), "
            "COALESCE(SUM(dropped), 0)::bigint, (SELECT COUNT(*) FROM releases WHERE task_id = %s) FROM batches "
            f"WHERE (task_id = %s OR {_ROUNDS}) AND NOT {_FORGOTTEN}",
            *[task_id] * 7,
        )  # fmt: skip
        return Progress(*row)

    def add_model(self, campaign_id: str, number: int, model: SignedText) -> None:
        row = (campaign_id, number, model.text, model.signature)
        self.db.execute("INSERT INTO models VALUES (%s, %s, %s, %s)", row)

    def last_model(self, campaign_id: str) -> SignedText | None:
        found = self.rows(f"{_MODEL} ORDER BY number DESC LIMIT 1", campaign_id)
        return SignedText(*found[0]) if found else None

    def models(self, campaign_id: str, after: int, most: int) -> list[SignedText]:
        query = f"{_MODEL} AND number > %s ORDER BY number LIMIT %s"
        return [SignedText(*row) for row in self.rows(query, campaign_id, after, most)]

    def model(self, campaign_id: str, number: int) -> SignedText | None:
        found = self.rows(f"{_MODEL} AND number = %s", campaign_id, number)
        return SignedText(*found[0]) if found else None

    def all_totals(self, campaign_id: str) -> list[tuple[str, BatchTotal]]:
        rows = self.rows(
            f"SELECT task_id, batch_id, total, dropped, void FROM batches WHERE {_ROUNDS} AND {_READ}",
            campaign_id, campaign_id,
        )  # fmt: skip
        return [(row[0], BatchTotal(row[1], json.loads(row[2]), *row[3:])) for row in rows]

    def mark_ended(self, task_id: str, text: str) -> None:
        self.db.execute("UPDATE tasks SET text = %s WHERE task_id = %s", (text, task_id))

    def drop_unread(self, owner: str) -> int:
        gone = self.rows(
            f"SELECT bodies_shelf, bodies_key FROM batches WHERE (task_id = %s OR {_ROUNDS}) "
            "AND bodies_key IS NOT NULL FOR UPDATE",
            owner, owner, owner,
        )  # fmt: skip
        for shelf, key in gone:
            self._leave(shelf, key)
        unread = "UPDATE batches SET bodies_shelf = NULL, bodies_key = NULL, total = NULL WHERE bodies_key = ANY(%s)"
        self.db.execute(unread, ([key for _, key in gone],))
        query = f"SELECT task_id, batch_id FROM incoming WHERE task_id = %s OR {_ROUNDS}"
        own = f"digest IS NOT NULL AND (task_id = %s OR {_ROUNDS})"
        taken = f"SELECT task_id, batch_id, digest FROM incoming WHERE {own}"
        self.db.execute(f"INSERT INTO batches (task_id, batch_id, digest) {taken}", (owner, owner, owner))
        in_pieces = self.rows(query, owner, owner, owner)
        for task_id, batch_id in in_pieces:
            self.drop_pieces(task_id, batch_id)
        return len(gone) + len(in_pieces)

    def forget_totals(self, owner: str) -> int:
        self.db.execute("UPDATE tasks SET state = NULL WHERE task_id = %s", (owner,))
        query = (
            "UPDATE batches SET total = NULL, dropped = 0, void = FALSE "
            f"WHERE (task_id = %s OR {_ROUNDS}) AND total IS NOT NULL RETURNING 1"
        )
        return len(self.rows(query, owner, owner, owner))

    def forget_answers(self, owner: str) -> int:
        models = self.rows("DELETE FROM models WHERE campaign_id = %s RETURNING 1", owner)
        return len(models) + len(self.rows("DELETE FROM releases WHERE task_id = %s RETURNING 1", owner))

    def needed_keys(self) -> list[bytes]:
        """Every key that something in the store needs."""
        needed = self.rows("SELECT bodies_key FROM batches WHERE bodies_key IS NOT NULL")
        return [bytes(key) for (key,) in needed] + self._piece_keys()

    def let_go(self) -> None:
        """Nothing is claimed here."""


def _release(row: tuple[Any, ...]) -> Release:
    return Release(row[0], json.loads(row[1]), *row[2:])
