"""What is wrong with a store, if anything: keys that are missing, or that should be gone."""

from collections.abc import Callable
from typing import Any

from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.service.store.contract import Remains
from shuffledp.service.store.postgresql.address import DatabaseAddress
from shuffledp.service.store.postgresql.connecting import Connection
from shuffledp.service.store.postgresql.keys import KeyFolder
from shuffledp.service.store.postgresql.records import Session
from shuffledp.service.store.postgresql.vault import Vault


def condition_of(
    db: Connection, address: DatabaseAddress, store_id: str, mark: bytes, records: Callable[[Session], Any]
) -> str:
    """What is broken in a store, or "ok"."""
    bits = RandomBits.secure()
    try:
        vault = Vault(KeyFolder(address.batch_keys, bits=bits, must_exist=True), store_id, bits=bits)
    except ParameterError as wrong:
        return f"batch_keys {wrong.problem}"
    if not vault.is_there or vault.mark != mark:
        return "its keys are not those of this folder"
    inside = records(Session(db, vault, "", 0.0, is_reading=True))
    missing = vault.missing(inside.needed_keys())
    # Meanwhile a server may have destroyed some that were needed a moment ago.
    missing &= set(inside.needed_keys())
    if missing:
        return f"{len(missing)} keys of its batches are missing: what is in them cannot be read"
    doomed = set(inside.doomed()) - vault.missing(inside.doomed())
    if doomed:
        return f"{len(doomed)} keys wait to be destroyed: a server does it when it next sends or reads"
    return "ok"


# A key that a transaction is about to need is no older.
_IN_FLIGHT_SECONDS = 120.0
_SHELVES = (
    "SELECT c.relname FROM pg_class c WHERE c.relnamespace = to_regnamespace(quote_ident(current_schema())) "
    r"AND c.relkind = 'r' AND c.relname ~ '^(parts|buckets|pieces|bodies|results)_[0-9]+$' "
    "AND NOT EXISTS (SELECT 1 FROM shelves s WHERE s.kind || '_' || s.number = c.relname)"
)


def remains_in(db: Connection, session: Session, records: Callable[[Session], Any], held: str) -> Remains:
    """What a schema, and its folder of keys, hold of batches that left.

    Args:
        db: a connection to the schema.
        session: a request that changes nothing.
        records: of the store's role.
        held: who holds the store.
    """
    is_free, inside, vault = held == "by nobody", records(session), session.vault
    # Keys first: one that is made meanwhile is not taken for one that nothing needs.
    old_enough = 0.0 if is_free else _IN_FLIGHT_SECONDS
    candidates = set(vault.orphans(set(), older_than=old_enough))
    needed, doomed = set(inside.needed_keys()), set(inside.doomed())
    left = candidates - needed - doomed
    left -= vault.missing(list(left))
    waiting = doomed - vault.missing(list(doomed))
    tables = [name for (name,) in db.execute(_SHELVES).fetchall()]
    found = []
    if left:
        found.append(f"{len(left):,} keys of batches that left, or of nothing, are in the folder of keys")
    if waiting and is_free:
        found.append(f"{len(waiting):,} keys of batches that left wait to be destroyed")
    if tables:
        found.append(f"{len(tables):,} tables of ciphertexts belong to no shelf: {', '.join(tables[:3])}")
    unknown = () if is_free else (f"keys younger than {_IN_FLIGHT_SECONDS:g} s, as it is held {held}",)
    evidence = (
        f"each of {len(candidates - left):,} keys of batches is needed by one that did not leave",
        "every table of ciphertexts belongs to a shelf",
    )
    return Remains(() if found else evidence, tuple(found), unknown)


def reading_session(db: Connection, address: DatabaseAddress, store_id: str) -> Session:
    """A request that changes nothing, with the keys that the store's folder has."""
    bits = RandomBits.secure()
    vault = Vault(KeyFolder(address.batch_keys, bits=bits, must_exist=True), store_id, bits=bits)
    return Session(db, vault, "", 0.0, is_reading=True)
