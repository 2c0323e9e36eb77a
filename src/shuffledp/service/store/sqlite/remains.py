"""What must not be in a file any more: tables of batches that left, a log, and pages that were not overwritten."""

import re
import sqlite3
import struct
from pathlib import Path

from shuffledp.files import holder
from shuffledp.service.store.contract import Remains
from shuffledp.service.store.sqlite import analyzer, pieces, shuffler
from shuffledp.service.store.sqlite.engine import reading_only

_OF_A_BATCH = re.compile(r"(parts|buckets|pieces)_([0-9]+)")


def remains_of(path: Path, label: str) -> Remains:
    """What a store's file holds of batches that left it, and of what was deleted.

    Args:
        path: the store's file, which is only read.
        label: what it is a store of.
    """
    looks = {**dict.fromkeys(shuffler.LABELS, _of_shuffler), analyzer.LABEL: _of_analyzer}
    evidence: list[str] = []
    found: list[str] = []
    with reading_only(path) as database:
        if label in looks:
            said, wrong = looks[label](database)
            (found.extend(wrong) if wrong else evidence.append(said))
    held = holder(path)
    log = path.with_name(f"{path.name}-wal")
    length = log.stat().st_size if log.exists() else 0
    if held != "by nobody" and not held.startswith("by nobody:"):
        unknown = f"log ({length:,} bytes) and free pages, as it is held {held}: look again when that has stopped"
        return Remains(tuple(evidence), tuple(found), (unknown,))
    if length:
        found.append(f"its log has {length:,} bytes, which may hold what was deleted")
        return Remains(tuple(evidence), tuple(found))
    evidence.append("its log is empty")
    pages, dirty = free_pages(path)
    if dirty:
        found.append(f"{dirty:,} of {pages:,} free pages were not overwritten")
    else:
        evidence.append(f"all {pages:,} free pages are zeros")
    return Remains(tuple(evidence), tuple(found))


def _of_shuffler(database: sqlite3.Connection) -> tuple[str, list[str]]:
    """Tables of ciphertexts belong to batches that are open or wait."""
    names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    open_ones = {number for (number,) in database.execute("SELECT number FROM batches")}
    states = dict(database.execute("SELECT number, state FROM sealed").fetchall())
    tables = [(found[1], int(found[2])) for found in map(_OF_A_BATCH.fullmatch, names) if found]
    untidy = {number for number, state in states.items() if state == shuffler.TIDYING}
    unsent = {number for number, state in states.items() if state < shuffler.GONE}
    allowed = {"parts": open_ones | untidy, "buckets": open_ones | untidy, "pieces": open_ones | unsent}
    wrong = [
        f"table {kind}_{number} has ciphertexts of a batch that left"
        for kind, number in tables
        if number not in allowed[kind]
    ]
    gone = sum(state == shuffler.GONE for state in states.values())
    drafts = len({number for kind, number in tables if kind != "parts" and number in open_ones})
    said = f"of {gone:,} batches that left no table is there, {len(tables):,} tables are of batches that did not"
    return said + (f" ({drafts:,} a draft)" if drafts else ""), wrong


def _of_analyzer(database: sqlite3.Connection) -> tuple[str, list[str]]:
    """Whatever was added up has no ciphertexts."""
    read, kept = database.execute(
        "SELECT COUNT(*), COALESCE(SUM(body IS NOT NULL), 0) FROM batches WHERE total IS NOT NULL"
    ).fetchone()
    if database.execute("SELECT 1 FROM sqlite_master WHERE name = 'incoming'").fetchone():
        # Batches in pieces, of a later version: those that were read are deleted soon after.
        (left,) = database.execute("SELECT COUNT(*) FROM incoming WHERE state = ?", (pieces.READ,)).fetchone()
        kept += left
    wrong = [f"{kept:,} batches that were read still have their ciphertexts"] if kept else []
    return f"of {read:,} batches that were read no ciphertext is there", wrong


def free_pages(path: Path) -> tuple[int, int]:
    """How many pages of a database nobody uses, and how many of them hold anything; the file is only read.

    A page of the list of free pages says where the next one of the list is and which pages are free, and may hold
    numbers of pages that were free; all others that are free must be zeros, as SQLite writes them with secure_delete.
    """
    count = dirty = 0
    with path.open("rb") as file:
        header = file.read(100)
        size = int.from_bytes(header[16:18], "big")
        size = 65536 if size == 1 else size
        trunk, nothing = int.from_bytes(header[32:36], "big"), bytes(size)
        pages = path.stat().st_size // size
        seen: set[int] = set()
        while trunk and trunk not in seen:
            seen.add(trunk)
            file.seek((trunk - 1) * size)
            page = file.read(size)
            trunk, leaves = int.from_bytes(page[:4], "big"), int.from_bytes(page[4:8], "big")
            for place in range(8, 8 + 4 * min(leaves, size // 4 - 2), 4):
                file.seek((int.from_bytes(page[place : place + 4], "big") - 1) * size)
                dirty += file.read(size) != nothing
                count += 1
            dirty += any(number > pages for (number,) in struct.iter_unpack(">I", page[8:]))
            count += 1
    return count, dirty
