"""Stores in SQLite files: embedded, one process a store, what is deleted is overwritten."""

from pathlib import Path

from shuffledp.errors import DataError
from shuffledp.service.store.sqlite import analyzer, outbox, shuffler
from shuffledp.service.store.sqlite.analyzer import SqliteAnalyzerRecords
from shuffledp.service.store.sqlite.engine import SqliteStore, read_label
from shuffledp.service.store.sqlite.outbox import SqliteOutbox
from shuffledp.service.store.sqlite.shuffler import SqliteShufflerRecords


def open_shuffler_store(path: str) -> SqliteStore[SqliteShufflerRecords]:
    """A shuffler's store in this file."""
    return SqliteStore(Path(path), shuffler.SCHEMA, label=shuffler.LABEL, records=SqliteShufflerRecords)


def open_analyzer_store(path: str) -> SqliteStore[SqliteAnalyzerRecords]:
    """An analyzer's store in this file."""
    return SqliteStore(Path(path), analyzer.SCHEMA, label=analyzer.LABEL, records=SqliteAnalyzerRecords)


def open_outbox(path: str | None) -> SqliteOutbox:
    """A client's outbox in this file; None for one in memory."""
    return SqliteOutbox(None if path is None else Path(path))


def inspect_store(path: str) -> tuple[str, str]:
    """Kind and version of the store in this file, and "ok" or what is broken in it."""
    label, condition = read_label(Path(path))
    known = [each.LABEL for each in (shuffler, analyzer, outbox)]
    if label not in known:
        way_out = f"this version reads {', '.join(known)}"
        raise DataError("store", f"a store of {label}", "must be of this version", way_out)
    return label, condition
