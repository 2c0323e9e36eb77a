"""Files as a version of years to come might write them: each kind's version is one that nobody knows yet."""

import json
import sqlite3
import struct
import zlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shuffledp.cli.token import _drawn
from shuffledp.service.analyzer.results import PieceResult
from shuffledp.service.models import unchecked_model
from shuffledp.service.rounds import RoundsRouting
from shuffledp.service.routing import Routing
from shuffledp.service.task import Task, canonical
from shuffledp.service.wire import SignedText

from .meaning import MEANINGS, unpacked

LATER = 97


@dataclass(frozen=True)
class Later:
    """A file whose version is another, and what reads it."""

    change: Callable[[Path], None]
    read: Callable[[Path], Any]


def _in_json(*names: str, field: str, inside: str | None = None, plain: bool = False) -> Callable[[Path], None]:
    """Another version in files of JSON; `plain` keeps the one spelling that ids are made of."""

    def change(folder: Path) -> None:
        for name in names:
            path = folder / name
            document = json.loads(path.read_text("utf-8"))
            (document if inside is None else document[inside])[field] = LATER
            path.write_text(canonical(document) if plain else json.dumps(document), "utf-8")

    return change


def _in_cells(folder: Path) -> None:
    body = json.dumps({"schema": LATER, "cell": "a" * 64, "result": 1}, sort_keys=True)
    (folder / "cells.txt").write_text(f"{zlib.crc32(body.encode()):08x} {body}\n")


def _in_result(folder: Path) -> None:
    body = (folder / "result.bin").read_bytes()
    (length,) = struct.unpack(">I", body[:4])
    text = json.dumps({**json.loads(body[4 : 4 + length]), "version": LATER}).encode()
    (folder / "result.bin").write_bytes(struct.pack(">I", len(text)) + text + body[4 + length :])


def _in_model(folder: Path) -> None:
    path = folder / "campaigns" / "arms.model"
    found = SignedText.from_document(json.loads(path.read_text("utf-8")))
    document = {**json.loads(found.text), "version": LATER}
    path.write_text(json.dumps({**found.document(), "text": json.dumps(document)}), "utf-8")


def _in_store(name: str, folder: Path) -> None:
    import gzip

    path = unpacked(folder, name)
    with closing(sqlite3.connect(path)) as db, db:
        [(label,)] = db.execute("SELECT label FROM store").fetchall()
        db.execute("UPDATE store SET label = ?", (f"{label.partition(' ')[0]} {LATER}",))
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()


def _store(name: str, kind: str) -> Later:
    return Later(lambda folder: _in_store(name, folder), MEANINGS[kind])


def _pending(folder: Path) -> Any:
    gate = Task.load(folder / "tasks" / "admitted.json").gate
    assert gate is not None
    return _drawn(folder / "admission" / "tokens.txt.pending", gate, 1)


def _keys(name: str, kind: str = "keys") -> Later:
    return Later(_in_json(f"keys/{name}", field="version"), MEANINGS[kind])


def _of(kind: str, name: str, field: str, **more: Any) -> Later:
    return Later(_in_json(name, field=field, **more), MEANINGS[kind])


LATER_FILES: dict[str, Later] = {
    "plan": _of("plan", "plans/histogram.json", "schema"),
    "state": _of("state", "states/counter.json", "schema"),
    "task": _of("task", "tasks/plain.json", "version", plain=True),
    "task of a cascade": _of("task", "tasks/cascade.json", "version", plain=True),
    "ended task": _of("ended task", "tasks/ended.json", "version"),
    "routing": Later(
        _in_json("tasks/plain.json", field="version", inside="routing"),
        lambda folder: Routing.from_document(json.loads((folder / "tasks/plain.json").read_text("utf-8"))["routing"]),
    ),
    "routing of rounds": Later(
        _in_json("campaigns/arms.json", field="version", inside="routing"),
        lambda folder: RoundsRouting.from_document(
            json.loads((folder / "campaigns/arms.json").read_text("utf-8"))["routing"]
        ),
    ),
    "campaign": _of("campaign", "campaigns/bandit.json", "version", plain=True),
    "state of a campaign": _of("state of a campaign", "campaigns/fit.state", "schema"),
    "signed model": Later(
        _in_model,
        lambda folder: unchecked_model(
            SignedText.from_document(json.loads((folder / "campaigns" / "arms.model").read_text("utf-8")))
        ),
    ),
    "ledger": _of("ledger", "ledger.json", "schema"),
    "model": _of("model", "model.json", "schema"),
    "sweep": Later(_in_cells, MEANINGS["sweep"]),
    "result of a piece": Later(_in_result, lambda folder: PieceResult.from_bytes((folder / "result.bin").read_bytes())),
    "data set": _of("data set", "batch/opened/manifest.json", "schema"),
    "job": _of("job", "batch/stopped-job/job.json", "schema"),
    "secret key": _keys("analyzer/analyzer.key"),
    "public key": _keys("analyzer/analyzer.pub"),
    "signing key": _keys("analyzer/models.key"),
    "gateway's key": _keys("analyzer/gateway.key"),
    "hop's key": _keys("hop-1/hop.key"),
    "role tokens": _keys("analyzer/tokens.json"),
    "tasks created": _keys("analyzer/created.json", "notes beside keys"),
    "keys retired": _keys("analyzer/retired.json", "notes beside keys"),
    "issuer's key": _keys("issuer/issuer.key", "tokens and an issuer"),
    "issuer's public key": _keys("issuer/issuer.pub", "tokens and an issuer"),
    "tokens that wait": Later(_in_json("admission/tokens.txt.pending", field="version"), _pending),
    "issuer's store": _store("issuer", "tokens and an issuer"),
    "shuffler's store": _store("shuffler", "stores"),
    "analyzer's store": _store("analyzer", "stores"),
    "outbox": _store("outbox", "stores"),
}
"""One for each version that stands in a file."""
