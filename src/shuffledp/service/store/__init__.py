"""Where servers and clients keep what must survive them: stores are opened by address, whatever keeps them."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from shuffledp.errors import ParameterError
from shuffledp.service.store.contract import AnalyzerRecords, Inspected, Remains, ShufflerRecords, Store
from shuffledp.service.store.outboxes import Outbox
from shuffledp.service.store.passwords import without_password

T = TypeVar("T")

IMPLEMENTATIONS = {"sqlite": "shuffledp.service.store.sqlite", "postgresql": "shuffledp.service.store.postgresql"}
"""By the scheme of an address: a module with the functions of this one, each taking the address behind the scheme."""


def _implementation(address: Path | str, parameter: str) -> tuple[Any, Path | str]:
    """The module that keeps stores at such addresses, and what is behind the scheme; a path is a SQLite file."""
    scheme, found, rest = str(address).partition("://")
    if not found:
        scheme, rest = "sqlite", str(address)
    if scheme not in IMPLEMENTATIONS:
        known = " or ".join(f"{name}://" for name in IMPLEMENTATIONS)
        raise ParameterError(
            parameter, without_password(str(address)), f"must be a file, or begin with {known}", "name one of these"
        )
    return import_module(IMPLEMENTATIONS[scheme]), rest


def open_shuffler_store(address: Path | str) -> Store[ShufflerRecords]:
    """A shuffler's store, made if it is new and held by this process until it is closed.

    Args:
        address: a file, or `scheme://` and what the implementation takes.

    Returns:
        The store, which a `ShufflerServer` takes.

    Raises:
        ParameterError: an unknown scheme, another kind or version of store, or one that somebody else holds.
    """
    module, rest = _implementation(address, "store")
    store: Store[ShufflerRecords] = module.open_shuffler_store(rest)
    return store


def open_analyzer_store(address: Path | str) -> Store[AnalyzerRecords]:
    """An analyzer's store, made if it is new and held by this process until it is closed.

    Args:
        address: a file, or `scheme://` and what the implementation takes.

    Returns:
        The store, which an `AnalyzerServer` takes.

    Raises:
        ParameterError: an unknown scheme, another kind or version of store, or one that somebody else holds.
    """
    module, rest = _implementation(address, "store")
    store: Store[AnalyzerRecords] = module.open_analyzer_store(rest)
    return store


def discard(opened: Store[Any]) -> None:
    """Let go of a store that a server was refused with; of one that was made for it nothing is left, if it can be so.

    Args:
        opened: what was opened by this process; other kinds than files stay as they are.
    """
    getattr(opened, "discard", opened.close)()


def open_outbox(address: Path | str | None) -> Outbox:
    """A client's outbox, made if it is new and held by this process until it is closed.

    Args:
        address: a file, or `scheme://` and what the implementation takes; None for one that lasts as long as the
            process.

    Raises:
        ParameterError: an unknown scheme, another kind or version of store, or one that somebody else holds.
    """
    module, rest = (_implementation("", "outbox")[0], None) if address is None else _implementation(address, "outbox")
    outbox: Outbox = module.open_outbox(rest)
    return outbox


def inspect_store(address: Path | str) -> Inspected:
    """What a store or outbox is, who holds it, and what is broken in it; nothing is changed.

    Args:
        address: a file, or `scheme://` and what the implementation takes.

    Raises:
        ParameterError: it is no store of a version that this one reads.
    """
    module, rest = _implementation(address, "store")
    found: Inspected = module.inspect_store(rest)
    return found


def look_into_analyzer(address: Path | str, work: Callable[[AnalyzerRecords], T]) -> T:
    """Run this on what is committed in an analyzer's store, whoever holds it; nothing is changed.

    Args:
        address: a file, or `scheme://` and what the implementation takes.
        work: what reads the records, and must write nothing.

    Returns:
        What the work returned.

    Raises:
        ParameterError: it is no analyzer's store that can be read.
    """
    module, rest = _implementation(address, "store")
    found: T = module.look_into_analyzer(rest, work)
    return found


def open_alone(address: Path | str) -> tuple[str, Store[Any]]:
    """A store that is there, of whichever role, held by this process alone until it is closed; answers the role, too.

    Args:
        address: a file, or `scheme://` and what the implementation takes.

    Raises:
        ParameterError: there is no such store, or a server holds it.
    """
    module, rest = _implementation(address, "store")
    if not hasattr(module, "open_alone"):
        shown = without_password(str(address))
        raise ParameterError("store", shown, "must be of a kind that can be looked after", "ask who keeps it")
    opened: tuple[str, Store[Any]] = module.open_alone(rest)
    return opened


def look_for_remains(address: Path | str) -> Remains:
    """What a store holds of batches that left it, and of what was deleted; nothing is changed.

    Args:
        address: a file, or `scheme://` and what the implementation takes.

    Raises:
        ParameterError: there is no such store.
    """
    module, rest = _implementation(address, "store")
    if not hasattr(module, "look_for_remains"):
        return Remains(unknown=("what was deleted: this kind of store cannot say",))
    found: Remains = module.look_for_remains(rest)
    return found


def migrate_store(address: Path | str) -> tuple[str, int, int]:
    """Bring a store's tables to this version: its role, its version before and its version now.

    Args:
        address: `scheme://` and what the implementation takes.

    Raises:
        ParameterError: there is nothing to migrate, an unknown version, or a server holds it.
    """
    module, rest = _implementation(address, "store")
    if not hasattr(module, "migrate_store"):
        problem, way_out = "must be a store with migrations", "a file needs none: a server brings it up to date"
        raise ParameterError("store", str(address), problem, way_out)
    done: tuple[str, int, int] = module.migrate_store(rest)
    return done
