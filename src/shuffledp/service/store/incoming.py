"""What a shuffler's store must offer to a hop of a cascade, which takes whole batches from the hop before it."""

import json
from collections.abc import Iterable
from typing import Protocol

from shuffledp.service.delivery import IncomingRecords

NOT_WHOLE = 1
"""The size of a batch whose pieces come, as long as it is not known to be whole: it has 0 of 1."""

WHOLE_PLACE = 1 << 30
"""Where a batch's one body lies: after all places that its pieces may have had, of which a process may still know."""


class HopRecords(IncomingRecords, Protocol):
    """Batches that a later hop of a cascade takes, inside one transaction."""

    def received(self, task_id: str, batch_id: str) -> str | None:
        """The SHA-256 of a batch that the hop before this one has sent, in hexadecimal; None if it has not."""

    def receive(self, task_id: str, batch_id: str, size: int, digest: str, body: bytes) -> None:
        """Keep a batch of so many users that comes in one body, full at once, and remember its SHA-256."""

    def receive_pieces(self, task_id: str, batch_id: str, size: int, digest: str) -> None:
        """The pieces that have come are the batch of so many users, full at once; remember its SHA-256."""

    def drop_incoming(self, task_id: str, batch_id: str) -> None:
        """Forget pieces of a batch that was not received; nothing happens if there are none."""


def hops_in(routings: Iterable[str]) -> str:
    """Which hops of cascades a shuffler's store is of, in words, from what it has of its tasks; "" for none.

    >>> hops_in(['{"hop": 2, "layers": 1}', '{"users": 10}'])
    ', hop 2'
    """
    known = [json.loads(text) for text in routings]
    own = {each.get("layouts", [each])[0].get("hop") for each in known} - {None}
    return "".join(f", hop {hop}" for hop in sorted(own))


def hop_keys_in(routings: Iterable[str]) -> tuple[str, ...]:
    """The keys that a hop began with, from what its store has of its tasks; none in a store of one shuffler.

    >>> hop_keys_in(['{"hop": 2, "layers": 1, "hop_key": "k"}', '{"users": 10}'])
    ('k',)
    """
    return tuple(sorted({json.loads(text).get("hop_key") for text in routings} - {None}))
