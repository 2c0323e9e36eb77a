"""What is wrong with a store, if anything: keys that are missing, or that should be gone."""

from collections.abc import Callable
from typing import Any

from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits
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


def reading_session(db: Connection, address: DatabaseAddress, store_id: str) -> Session:
    """A request that changes nothing, with the keys that the store's folder has."""
    bits = RandomBits.secure()
    vault = Vault(KeyFolder(address.batch_keys, bits=bits, must_exist=True), store_id, bits=bits)
    return Session(db, vault, "", 0.0, is_reading=True)
