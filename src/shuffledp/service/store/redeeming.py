"""What a shuffler's store must remember of tokens: how many seats each was given, and which seat it has now."""

from dataclasses import dataclass
from typing import Protocol

MOST_SEATS = 3
"""So many seats a token gets, one after another, each when the lease of the one before ran out without a report."""


@dataclass(frozen=True, slots=True)
class Redeemed:
    """What is known of a token.

    Attributes:
        seats: how many it was given; all that it may get from the moment that a report came for one of them.
        task_id: the task or the round in which its newest seat is; None where that is not known any more.
        seat: that seat, which may have no lease any more.
    """

    seats: int = 0
    task_id: str | None = None
    seat: str | None = None


class TokenRecords(Protocol):
    """Tokens inside one transaction. An owner is a task, or the campaign that a round is of; a token is a digest of it.

    Which seat a token has is known as long as its lease: when a report has come, all that is left of the token is that
    it gets no other seat, until its owner ends.
    """

    def redeemed(self, owner: str, token: str, task_id: str) -> Redeemed:
        """What is known of a token that asks for a seat of this task or round.

        Until the commit nobody else gives it a seat, and nobody else changes the lease of the one that it has.
        """

    def seat_token(self, owner: str, token: str, seats: int, task_id: str, seat: str) -> None:
        """Remember a token's seat, of so many that it was given; another that it had is not known any more."""

    def spend(self, owner: str, task_id: str, seats: list[str]) -> None:
        """Reports came for these seats: their tokens get no others, and which seats were theirs is forgotten."""
