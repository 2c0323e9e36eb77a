"""What an analyzer's store must offer for batches that come, and are opened, piece by piece."""

from collections.abc import Iterable
from typing import Protocol

from shuffledp.service.delivery import IncomingRecords


def about(most_bytes: int, bodies: Iterable[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """The first bodies, each with its place, that have so many bytes together; at least one if there is any.

    >>> about(3, [(1, b"ab"), (2, b"c"), (5, b"d")])
    [(1, b'ab'), (2, b'c')]
    """
    found, length = [], 0
    for place, body in bodies:
        found.append((place, body))
        length += len(body)
        if length >= most_bytes:
            break
    return found


class PieceRecords(IncomingRecords, Protocol):
    """Batches in pieces inside one transaction: they come, are received, opened piece by piece, read, and deleted."""

    def receive(self, task_id: str, batch_id: str, digest: str) -> None:
        """The pieces that have come are the batch from now on: it waits to be read."""

    def pieces(self, task_id: str, batch_id: str) -> int | None:
        """How many pieces a batch has that was received so and not read; None for any other batch."""

    def received_piece(self, task_id: str, batch_id: str, number: int) -> bytes | None:
        """A piece's ciphertexts, until the batch is read."""

    def unopened(self, task_id: str, batch_id: str) -> list[int]:
        """The numbers of a received batch's pieces of which no result is known."""

    def set_result(self, task_id: str, batch_id: str, number: int, result: bytes) -> None:
        """Remember what was found in a piece, instead of what was known of it."""

    def some_results(self, task_id: str, batch_id: str, first: int, most_bytes: int) -> list[tuple[int, bytes]]:
        """Number and result of pieces from this number on, in their order: about so many bytes, at least one."""

    def left_pieces(self) -> list[tuple[str, str]]:
        """Task and id of batches that were read, and of which pieces are left."""

    def drop_pieces(self, task_id: str, batch_id: str) -> bool:
        """Delete some pieces, and results, of a batch that was read or is not wanted; True if nothing is left."""
