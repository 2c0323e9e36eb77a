"""What a later hop of a cascade takes: whole batches of the hop before it, in one body or in pieces, each once.

Every method runs inside one transaction of the records it is given. A batch is full as soon as it is received: what
becomes of it then is what becomes of any full batch.
"""

import hashlib
from dataclasses import dataclass

from shuffledp.service.delivery import Manifest, check_manifest, check_same, take_piece
from shuffledp.service.problems import BATCH_UNKNOWN, WRONG_HOP, WRONG_LENGTH, RefusedError
from shuffledp.service.routing import Routing
from shuffledp.service.shuffler.desk import ShufflerDesk
from shuffledp.service.store.contract import ShufflerRecords


@dataclass(frozen=True)
class HopDesk:
    """A later hop's rules beside those of every shuffler.

    Attributes:
        desk: the shuffler's own rules.
    """

    desk: ShufflerDesk

    def routing(self, task_id: str) -> Routing:
        """What is known of a task whose batches are taken here.

        Raises:
            RefusedError: this is the first hop, which takes reports.
        """
        routing = self.desk.routings[task_id]
        if routing.hop == 1:
            words = "this is hop 1, which takes reports: send batches to the hop after it."
            raise RefusedError(WRONG_HOP, words)
        return routing

    def batch_size(self, task_id: str, batch_id: str) -> int:
        """How many users a batch of a task has, or a refusal."""
        routing = self.routing(task_id)
        place = routing.find(batch_id)
        if place is None:
            words = f"the task's schedule has no batch {batch_id[:40]}: check the task's file."
            raise RefusedError(BATCH_UNKNOWN, words)
        return routing.schedule.batch_users(place[1], place[2])

    def batch_bytes(self, task_id: str, batch_id: str) -> int:
        """How long a batch of a task must be when it comes here, or a refusal."""
        return self.routing(task_id).batch_bytes(self.batch_size(task_id, batch_id))

    def receive(self, records: ShufflerRecords, task_id: str, batch_id: str, body: bytes) -> bool:
        """Keep a batch that comes in one body; False if the same bytes were delivered before.

        Raises:
            RefusedError: another length, or delivered before with other bytes; or there is no room for it now.
        """
        expected, hop = self.batch_bytes(task_id, batch_id), self.routing(task_id).hop
        if len(body) != expected:
            words = f"the batch has {len(body)} bytes and must have {expected} at hop {hop}"
            raise RefusedError(WRONG_LENGTH, f"{words}: send it whole, from hop {hop - 1}.")
        digest = hashlib.sha256(body).hexdigest()
        if self._is_known(records, task_id, batch_id, digest):
            return False
        # Pieces of it that came before were its sender's of other sizes.
        records.drop_incoming(task_id, batch_id)
        records.receive(task_id, batch_id, self.batch_size(task_id, batch_id), digest, body)
        return True

    def take_piece(self, records: ShufflerRecords, task_id: str, batch_id: str, number: int, body: bytes) -> bool:
        """Keep a piece of a batch; False if it was kept before, or the whole batch was."""
        expected, unit = self.batch_bytes(task_id, batch_id), self.routing(task_id).ciphertext_bytes
        if records.received(task_id, batch_id) is not None:
            # The manifest says whether it is the same batch.
            return False
        self._check_room(records)
        return take_piece(records, task_id, batch_id, number, body, expected=expected, unit=unit)

    def take_manifest(self, records: ShufflerRecords, task_id: str, batch_id: str, manifest: Manifest) -> bool:
        """The pieces that have come are the batch; False if it was delivered before."""
        expected = self.batch_bytes(task_id, batch_id)
        if self._is_known(records, task_id, batch_id, manifest.digest):
            return False
        check_manifest(records, task_id, batch_id, manifest, expected=expected)
        records.receive_pieces(task_id, batch_id, self.batch_size(task_id, batch_id), manifest.digest)
        return True

    def _is_known(self, records: ShufflerRecords, task_id: str, batch_id: str, digest: str) -> bool:
        """Whether these very bytes were received before; refused if others were, or nothing new can be taken now."""
        known = records.received(task_id, batch_id)
        if known is None:
            self._check_room(records)
            return False
        check_same(batch_id, known, digest)
        return True

    def _check_room(self, records: ShufflerRecords) -> None:
        if refused := self.desk.refuse_without_room(records):
            raise refused
