"""Numbered forward migrations: plain SQL files, each applied once, in order, under a lock.

A file `migrations/ROLE/NNNN_name.sql` changes the tables of a store from version NNNN - 1 to NNNN. It is never edited
once it was released; there is no way back but a backup.
"""

from functools import cache
from pathlib import Path

from psycopg import sql

from shuffledp.errors import DataError
from shuffledp.randomness import RandomBits
from shuffledp.service.store.postgresql.address import DatabaseAddress
from shuffledp.service.store.postgresql.connecting import (
    Connection,
    held_by_others,
    hold,
    holders,
    label_of,
    lock_migrations,
)
from shuffledp.service.store.postgresql.keys import BatchKeys
from shuffledp.service.store.postgresql.vault import Vault

FOLDER = Path(__file__).parent / "migrations"
ROLES = ("shuffler", "analyzer")


@cache
def files_of(role: str) -> dict[int, Path]:
    """A role's migrations by their numbers, which are 1, 2, ...

    >>> [file.name for file in files_of("shuffler").values()]
    ['0001_begin.sql', '0002_buckets.sql', '0003_hops.sql', '0004_tokens.sql']
    """
    found = {int(file.name[:4]): file for file in sorted((FOLDER / role).glob("*.sql"))}
    assert list(found) == list(range(1, len(found) + 1)), "a number is missing or given twice"
    return found


def prepared(connection: Connection, address: DatabaseAddress, role: str, keys: BatchKeys, bits: RandomBits) -> Vault:
    """The vault of the store in this schema, which is made if the schema is empty.

    Raises:
        DataError: a store of another role or version, or one that began with other keys.
    """
    with connection.transaction():
        lock_migrations(connection, address)
        if address.schema is not None:
            connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(address.schema)))
        label = label_of(connection, address)
        if label is None:
            return _made(connection, role, keys, bits)
    found, store_id, mark, version = label
    check_role(found, role)
    check_version(address, found, version)
    vault = Vault(keys, store_id, bits=bits)
    if not vault.is_there or vault.mark != mark:
        way_out = "name that one; without it what waits in the store cannot be read"
        raise DataError("batch_keys", address.shown, "must name the folder that the store began with", way_out)
    return vault


def check_role(found: str, role: str) -> None:
    """Refuse a store of another role."""
    if found != role:
        way_out = "name another schema with &schema=NAME: the two must not share one"
        raise DataError("store", f"a store of the {found}", f"must be of the {role}", way_out)


def check_version(address: DatabaseAddress, role: str, version: int) -> None:
    """Refuse a store of an older version, which can be migrated, and of one that is not known."""
    newest = max(files_of(role))
    if version < newest:
        way_out = f"stop its servers and run `shuffledp store migrate {address.shown}`"
        raise DataError("store", f"{role} postgresql {version}", f"must be of version {newest}", way_out)
    if version > newest:
        way_out = "use the version of shuffledp that made it, or a newer one"
        raise DataError("store", f"{role} postgresql {version}", f"must be of version {newest} at most", way_out)


def _made(connection: Connection, role: str, keys: BatchKeys, bits: RandomBits) -> Vault:
    store_id = bits.unsigned(8, 8).tobytes().hex()
    vault = Vault(keys, store_id, bits=bits)
    connection.execute(_text(FOLDER / "0000_store.sql"))
    connection.execute("INSERT INTO store VALUES (%s, %s, %s)", (role, store_id, vault.begin()))
    _apply(connection, role, 0)
    return vault


def migrate(connection: Connection, address: DatabaseAddress) -> tuple[str, int, int]:
    """Bring a store to the newest version, all or nothing; answers its role, and its versions before and after.

    Raises:
        DataError: there is no store, it is of an unknown version, or a server holds it.
    """
    with connection.transaction():
        lock_migrations(connection, address)
        label = label_of(connection, address)
        if label is None:
            way_out = "check the address; a server makes its store when it starts"
            raise DataError("store", address.shown, "must be there", way_out)
        role, store_id, _, version = label
        if version > max(files_of(role)):
            check_version(address, role, version)
        if not hold(connection, store_id, shared=False):
            raise held_by_others(address, holders(connection, store_id))
        _apply(connection, role, version)
    return role, version, max(files_of(role))


def _apply(connection: Connection, role: str, version: int) -> None:
    for number, file in files_of(role).items():
        if number > version:
            connection.execute(_text(file))
            connection.execute("INSERT INTO migrations (number, name) VALUES (%s, %s)", (number, file.stem))


def _text(file: Path) -> bytes:
    return file.read_bytes()
