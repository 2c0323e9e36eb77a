"""Sealing full batches: a hop's layer is taken off, they are permuted, and kept as they will leave."""

import time
from collections.abc import Callable
from functools import partial

from shuffledp.service.problems import RefusedError
from shuffledp.service.shuffler.commits import ShufflerStore, add_piece, claim, drop_draft, tidy
from shuffledp.service.shuffler.desk import ShufflerDesk
from shuffledp.service.shuffler.large import BatchSizes, LargeBatch
from shuffledp.service.shuffler.layers import Suspects
from shuffledp.service.telemetry import Metrics, log
from shuffledp.service.workers import ClosedError


class BatchSealer:
    """What seals one process's full batches.

    Args:
        store: where they are.
        desk: the rules that hold now.
        sizes: how much of a large batch is in memory at a time.
        metrics: where it counts what it did.
        is_stopping: whether to end as soon as possible.
    """

    def __init__(
        self,
        store: ShufflerStore,
        desk: Callable[[], ShufflerDesk],
        sizes: BatchSizes,
        metrics: Metrics,
        is_stopping: Callable[[], bool],
    ) -> None:
        self._store, self._desk, self._sizes, self._is_stopping = store, desk, sizes, is_stopping
        self._sealed = metrics.counter("batches_sealed", "Batches permuted and kept.")
        self._peeled = metrics.counter("messages_peeled", "Messages that a layer was taken off.")
        self.replaced = metrics.counter("messages_replaced", "Messages that gave way to random bytes.", "why")
        self._peeling_seconds = metrics.counter("peeling_seconds", "Time spent taking layers off.")

    def seal_full(self) -> bool:
        """Permute and keep every full batch; what an earlier process left half done is finished first. True if all are.

        A batch that cannot be sealed waits, and does not hold up the others.
        """
        all_sealed = True
        untidy = [(partial(tidy, self._store), *key) for key in self._store.read(lambda records: records.untidy())]
        full = [(self.seal, *key) for key in self._store.read(lambda records: records.full_batches())]
        for act, task_id, batch_id in untidy + full:
            try:
                if claim(self._store, task_id, batch_id):
                    act(task_id, batch_id)
            except RefusedError:
                raise
            except ClosedError:
                log("batch left with its layer", task=task_id[:12], batch=batch_id)
                return False
            except Exception as failed:
                log("batch not sealed", level=40, batch=batch_id, error=type(failed).__name__)
                all_sealed = False
        return all_sealed

    def seal(self, task_id: str, batch_id: str) -> None:
        """Piece by piece, a commit each: reports go on being accepted between them."""
        started = time.perf_counter()
        length = self._store.read(lambda records: records.full_bytes(task_id, batch_id))
        if length is None:
            return
        if self._store.read(lambda records: records.has_draft(task_id, batch_id)):
            drop_draft(self._store, task_id, batch_id)
        if length > self._sizes.whole:
            peel = partial(self._peel, task_id, batch_id)
            large = LargeBatch(self._store, self._desk(), self._sizes, task_id, batch_id, length, peel)
            is_tidy = large.seal(self._is_stopping)
        else:
            is_tidy = self._seal_whole(task_id, batch_id)
        if is_tidy is None:
            return
        if not is_tidy:
            tidy(self._store, task_id, batch_id)
        self._sealed.inc()
        log("batch sealed", task=task_id[:12], batch=batch_id, seconds=round(time.perf_counter() - started, 3))

    def _peel(self, task_id: str, batch_id: str, body: bytes, suspects: Suspects | None = None) -> bytes:
        """Messages of a batch without this hop's layer, which are counted; as they came where it has none."""
        routing, started = self._desk().routings[task_id], time.perf_counter()
        if not routing.layers:
            return body
        peeled = self._desk().peeled(task_id, batch_id, body, suspects)
        self._peeling_seconds.inc(time.perf_counter() - started)
        self._peeled.inc(len(body) // routing.ciphertext_bytes)
        for why, count in (("unopened", peeled.unopened), ("copy", peeled.copies)):
            self.replaced.labels(why).inc(count)
        if peeled.unopened or peeled.copies:
            facts = {"unopened": peeled.unopened, "copies": peeled.copies}
            log("messages replaced", level=30, task=task_id[:12], batch=batch_id, **facts)
        return peeled.body

    def _seal_whole(self, task_id: str, batch_id: str) -> bool | None:
        """A batch that fits into memory; answers whether it is tidy, and None if it was not sealed."""
        # A full batch changes no more: it is read, peeled and permuted while others write.
        desk = self._desk()
        body = self._store.read(lambda records: desk.full_batch(records, task_id, batch_id))
        if not body:
            return None
        pieces = desk.permuted_batch(task_id, self._peel(task_id, batch_id, body))
        for number, piece in enumerate(pieces[:-1]):
            if self._is_stopping():
                # What is written is a draft, which the next process drops.
                return None
            add_piece(self._store, task_id, batch_id, number, piece)
        return self._store.write(lambda records: desk.seal(records, task_id, batch_id, pieces))
