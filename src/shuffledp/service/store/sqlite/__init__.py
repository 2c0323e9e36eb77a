"""Stores in SQLite files: embedded, one process a store, what is deleted is overwritten."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from shuffledp.errors import DataError
from shuffledp.files import holder
from shuffledp.service.store.contract import Inspected, Remains
from shuffledp.service.store.incoming import hop_keys_in, hops_in
from shuffledp.service.store.sqlite import analyzer, incoming, outbox, redeeming, shuffler
from shuffledp.service.store.sqlite.analyzer import SqliteAnalyzerRecords
from shuffledp.service.store.sqlite.engine import SqliteStore, read_label, reading_only
from shuffledp.service.store.sqlite.outbox import SqliteOutbox
from shuffledp.service.store.sqlite.remains import remains_of
from shuffledp.service.store.sqlite.shuffler import SqliteShufflerRecords

T = TypeVar("T")


def open_shuffler_store(path: str) -> SqliteStore[SqliteShufflerRecords]:
    """A shuffler's store in this file."""
    return SqliteStore(
        Path(path),
        shuffler.SCHEMA,
        label=shuffler.LABEL,
        records=SqliteShufflerRecords,
        later=incoming.LATER + redeeming.LATER,
        upgrades=shuffler.UPGRADES,
    )


def open_analyzer_store(path: str) -> SqliteStore[SqliteAnalyzerRecords]:
    """An analyzer's store in this file."""
    return SqliteStore(
        Path(path), analyzer.SCHEMA, label=analyzer.LABEL, records=SqliteAnalyzerRecords, later=analyzer.LATER
    )


def open_outbox(path: str | None) -> SqliteOutbox:
    """A client's outbox in this file; None for one in memory."""
    return SqliteOutbox(None if path is None else Path(path))


def inspect_store(path: str) -> Inspected:
    """What the store in this file is, who holds it, and "ok" or what is broken in it."""
    file = Path(path)
    if not file.is_file():
        to_do = "check the path; a server makes its store when it starts"
        raise DataError("store", path, "must be a file", to_do)
    label, condition = read_label(file)
    known = [*shuffler.LABELS, analyzer.LABEL, outbox.LABEL]
    if label not in known:
        way_out = f"this version reads {', '.join(known)}: use the shuffledp that made it"
        raise DataError("store", f"a store of {label}", "must be of this version", way_out)
    routings: list[str] = []
    if label in shuffler.LABELS:
        with reading_only(file) as database:
            routings = [text for (text,) in database.execute("SELECT routing FROM tasks")]
    kind, is_analyzers = f"{label}{hops_in(routings)}", label == analyzer.LABEL
    return Inspected(kind, condition, holder(file), file, is_analyzers, hop_keys_in(routings))


def open_alone(path: str) -> tuple[str, SqliteStore[Any]]:
    """The store of this file and its role, for whoever looks after it while no server runs."""
    label = _label(path)
    if label in shuffler.LABELS:
        return "shuffler", open_shuffler_store(path)
    if label == analyzer.LABEL:
        return "analyzer", open_analyzer_store(path)
    raise DataError("store", path, "must be a server's store", "an outbox is looked after by its client")


def look_for_remains(path: str) -> Remains:
    """What the file holds of batches that left it, and of what was deleted; nothing is changed."""
    return remains_of(Path(path), _label(path))


def _label(path: str) -> str:
    """The role and version of a store of this version, without the hops that it is of."""
    inspect_store(path)
    return read_label(Path(path))[0]


def look_into_analyzer(path: str, work: Callable[[SqliteAnalyzerRecords], T]) -> T:
    """Run this on what is committed in the analyzer's store of this file; nothing is changed."""
    with reading_only(Path(path)) as database:
        return work(SqliteAnalyzerRecords(database))
