"""What is done about one batch or one task of a shuffler's store, in a commit of its own, or in as many as it takes."""

from collections.abc import Callable

from shuffledp.service.store.contract import Counts, ShufflerRecords, Store

ShufflerStore = Store[ShufflerRecords]


def claim(store: ShufflerStore, task_id: str, batch_id: str) -> bool:
    """Whether a batch is this process's to seal and to send; another's is left alone."""
    return store.write(lambda records: records.claim(task_id, batch_id))


def tidy(store: ShufflerStore, task_id: str, batch_id: str) -> None:
    """Finish what sealing a batch left to later commits."""
    _until_done(store, lambda records: records.tidy(task_id, batch_id))


def drop_draft(store: ShufflerStore, task_id: str, batch_id: str) -> None:
    """Delete what an earlier try to seal a batch has written."""
    _until_done(store, lambda records: records.drop_draft(task_id, batch_id))


def purge(store: ShufflerStore, task_id: str, batch_id: str) -> None:
    """Delete a batch that the next hop has, or that nobody will have."""
    _until_done(store, lambda records: records.purge(task_id, batch_id))


def abandon(store: ShufflerStore, task_id: str, positions: int) -> None:
    """Delete what a task has in batches that are not full, and give none of its positions to anybody any more."""
    _until_done(store, lambda records: records.abandon(task_id, positions))


def add_piece(store: ShufflerStore, task_id: str, batch_id: str, number: int, piece: bytes | memoryview) -> None:
    """Keep a piece of a batch that is being permuted."""
    store.write(lambda records: records.add_piece(task_id, batch_id, number, piece))


def counts_of(store: ShufflerStore, task_id: str) -> Counts:
    """How far a task has come."""
    return store.read(lambda records: records.counts(task_id))


def _until_done(store: ShufflerStore, work: Callable[[ShufflerRecords], bool]) -> None:
    """Commit after commit: others write between them."""
    while not store.write(work):
        pass
