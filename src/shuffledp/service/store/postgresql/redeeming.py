"""Tokens that seats were given for, in PostgreSQL: one at a time for all processes."""

from shuffledp.service.store.postgresql.seats import PostgresSeats
from shuffledp.service.store.redeeming import MOST_SEATS, Redeemed
from shuffledp.service.wire import position_of


class PostgresRedeeming(PostgresSeats):
    """Records of tokens; whoever gives a seat for one locks the owner, and the task or round of the seat it had."""

    def redeemed(self, owner: str, token: str, task_id: str) -> Redeemed:
        number, name = self._lock(owner), self.vault.name_of(token)
        self._lock(task_id)
        query = "SELECT task_id, seat FROM held WHERE name = %s"
        held = self.rows(query, name)
        if held and held[0][0] != task_id:
            # Of another round, where its report may arrive at this moment at another process.
            self._lock(held[0][0])
            held = self.rows(query, name)
        # Last: where a report has just taken the seat away, the token is seen to be spent.
        counted = self.rows("SELECT seats FROM redeemed WHERE task = %s AND name = %s", number, name)
        return Redeemed(counted[0][0], *(held[0] if held else ())) if counted else Redeemed()

    def seat_token(self, owner: str, token: str, seats: int, task_id: str, seat: str) -> None:
        number, name = self._lock(owner), self.vault.name_of(token)
        query = "INSERT INTO redeemed VALUES (%s, %s, %s) ON CONFLICT (task, name) DO UPDATE SET seats = excluded.seats"
        self.db.execute(query, (number, name, seats))
        place = (task_id, position_of(seat))
        # Whoever had the place before has it no more.
        query = "DELETE FROM held WHERE name = %s OR (task_id = %s AND position = %s)"
        self.db.execute(query, (name, *place))
        self.db.execute("INSERT INTO held VALUES (%s, %s, %s, %s)", (*place, seat, name))

    def spend(self, owner: str, task_id: str, seats: list[str]) -> None:
        self._lock(task_id)
        places = [position_of(seat) for seat in seats]
        query = "DELETE FROM held WHERE task_id = %s AND position = ANY(%s) AND seat = ANY(%s) RETURNING name"
        names = sorted(bytes(name) for (name,) in self.rows(query, task_id, places, seats))
        number = "(SELECT number FROM tasks WHERE task_id = %s)"
        query = f"UPDATE redeemed SET seats = {MOST_SEATS} WHERE task = {number} AND name = ANY(%b::bytea[])"
        self.db.execute(query, (owner, names))

    def _forget_tokens(self, owner: str, most: int) -> int:
        """Delete some of what is known of an owner's tokens; how many, 0 if none is left."""
        number = self._lock(owner)
        some = f"SELECT name FROM redeemed WHERE task = %s ORDER BY name LIMIT {most}"
        query = f"DELETE FROM redeemed WHERE task = %s AND name IN ({some}) RETURNING 1"
        return len(self.rows(query, number, number))
