"""What encrypts bodies before they reach the database, and destroys their keys when they have left it."""

import hashlib
import threading
from collections import OrderedDict

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from shuffledp.errors import DataError
from shuffledp.randomness import RandomBits
from shuffledp.service.store.postgresql.keys import KEY_BYTES, BatchKeys

_NONCE_BYTES = 12
OVERHEAD_BYTES = _NONCE_BYTES + 16
_MOST_KEPT = 256
# A key that is in no table after so long belongs to a transaction that never was.
_ORPHAN_SECONDS = 3600.0


class Vault:
    """A store's keys: two for each batch, and one that never leaves, under which ids are written down.

    Args:
        keys: where they are.
        store_id: the store's own random id, which the names of its keys begin with.
        bits: where keys' names and nonces come from.
    """

    def __init__(self, keys: BatchKeys, store_id: str, *, bits: RandomBits) -> None:
        self._keys, self.store_id, self._bits = keys, store_id, bits
        self._open: OrderedDict[bytes, AESGCM] = OrderedDict()
        self._lock = threading.Lock()
        self._ids_key = keys.get(self._ids_name) or b""

    @property
    def _ids_name(self) -> str:
        return f"{self.store_id}-ids"

    def begin(self) -> bytes:
        """Make the key for ids of a new store; answers what the store remembers it by."""
        self._ids_key = self._keys.make(self._ids_name)
        return self.mark

    @property
    def mark(self) -> bytes:
        """By which it is known whether this is the folder that the store began with; says nothing about the key."""
        return hashlib.blake2b(b"shuffledp batch keys", key=self._ids_key, digest_size=16).digest()

    @property
    def is_there(self) -> bool:
        """Whether the store's own key was found."""
        return len(self._ids_key) == KEY_BYTES

    def name_of(self, report_id: str) -> bytes:
        """Under which name a report's id is written down: who has the database alone cannot tell whose it is."""
        return hashlib.blake2b(bytes.fromhex(report_id), key=self._ids_key, digest_size=16).digest()

    def new_key(self) -> bytes:
        """A new key, durable; answers its number, which is random."""
        number: bytes = self._bits.unsigned(16, 8).tobytes()
        self._remember(number, self._keys.make(self._name(number)))
        return number

    def seal(self, number: bytes, place: str, body: bytes | memoryview) -> bytes:
        """A body under this key; it opens in this place only."""
        nonce: bytes = self._bits.unsigned(_NONCE_BYTES, 8).tobytes()
        return nonce + self._cipher(number).encrypt(nonce, bytes(body), place.encode())

    def open(self, number: bytes, place: str, sealed: bytes) -> bytes:
        """The body that was sealed.

        Raises:
            DataError: its key is gone, or what is there is another body.
        """
        try:
            return self._cipher(number).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], place.encode())
        except InvalidTag:
            raise DataError("store", place, "must hold what was written there", "restore the database") from None

    def destroy(self, numbers: list[bytes]) -> None:
        """Make sure that nobody ever opens what was sealed under these keys."""
        with self._lock:
            for number in numbers:
                self._open.pop(number, None)
        self._keys.destroy([self._name(number) for number in numbers])

    def missing(self, numbers: list[bytes]) -> set[bytes]:
        """Those of these keys that are not there."""
        return {number for number in numbers if self._keys.get(self._name(number)) is None}

    def orphans(self, known: set[bytes], older_than: float | None = None) -> list[bytes]:
        """Keys of this store that are not among the known ones, and were made so many seconds ago or earlier.

        Args:
            known: those that are needed.
            older_than: None for as long as a transaction may take at most.
        """
        names = self._keys.names(f"{self.store_id}-", _ORPHAN_SECONDS if older_than is None else older_than)
        numbers = [bytes.fromhex(name.rpartition("-")[2]) for name in names if name != self._ids_name]
        return [number for number in numbers if number not in known]

    def _name(self, number: bytes) -> str:
        return f"{self.store_id}-{number.hex()}"

    def _remember(self, number: bytes, key: bytes) -> AESGCM:
        cipher = AESGCM(key)
        with self._lock:
            self._open[number] = cipher
            if len(self._open) > _MOST_KEPT:
                self._open.popitem(last=False)
        return cipher

    def _cipher(self, number: bytes) -> AESGCM:
        with self._lock:
            known = self._open.get(number)
            if known is not None:
                self._open.move_to_end(number)
                return known
        key = self._keys.get(self._name(number))
        if key is None:
            way_out = "restore the folder; a batch whose key was destroyed cannot be read by anybody"
            raise DataError("batch_keys", self._name(number), "must be in the folder", way_out)
        return self._remember(number, key)
