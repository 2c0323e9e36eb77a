"""Randomness that a task repeats when it is run again: keyed by the job and the rows, never by who runs it when.

A task that is retried must repeat its bits: fresh ones would show a second randomization of the same person's value,
which spends privacy twice, and in an exchange they would lose rows and double others. So every stream is
AES(job key; purpose, the file's number, the file's fingerprint, the row): see docs/theory/engines.md.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.cmac import CMAC

from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits

_KEY_BYTES = 32
_LARGEST = 1 << 64


@dataclass(frozen=True, slots=True, repr=False)
class JobKey:
    """The key of one job, from which all its streams come.

    Attributes:
        raw: 32 bytes; they must leave the job's own file only through an engine's `entrust`.
        is_secure: whether they came from the operating system, so that the streams may protect somebody.

    >>> key = JobKey.seeded(1)
    >>> one, again = (key.bits("randomize", 3, b"f" * 32, 65_536).words(2).tolist() for _ in range(2))
    >>> one == again, one == key.bits("randomize", 3, b"f" * 32, 0).words(2).tolist(), key
    (True, False, JobKey(seeded))
    """

    raw: bytes
    is_secure: bool

    def __post_init__(self) -> None:
        if len(self.raw) != _KEY_BYTES:
            raise ParameterError("job key", f"{len(self.raw)} bytes", f"must be {_KEY_BYTES} bytes", "make a new one")

    @classmethod
    def generate(cls) -> Self:
        """A new key from the operating system."""
        return cls._from(RandomBits.secure())

    @classmethod
    def seeded(cls, seed: int) -> Self:
        """A repeatable key, for simulations and tests: it protects nobody."""
        return cls._from(RandomBits.seeded(seed))

    @classmethod
    def _from(cls, bits: RandomBits) -> Self:
        raw = np.empty(_KEY_BYTES, dtype=np.uint8)
        bits.fill(raw)
        return cls(raw.tobytes(), bits.is_secure)

    def bits(self, purpose: str, file: int, fingerprint: bytes, row: int) -> RandomBits:
        """The stream for the rows of a file that begin with this one.

        Args:
            purpose: what the bits are for: two uses of the same rows must not share a stream.
            file: the file's number in its manifest, or the number of whatever else has no file.
            fingerprint: what the file's content is known by, so that other content gets other bits.
            row: the number of the first row in the file.
        """
        for name, number in (("file", file), ("row", row)):
            if not 0 <= number < _LARGEST:
                raise ParameterError(name, number, "must lie in 0..2^64-1", "number from 0")
        named = purpose.encode()
        # Lengths stand before what has one, so that no two inputs are the same bytes.
        lengths = len(named).to_bytes(2, "big") + len(fingerprint).to_bytes(2, "big")
        about = lengths + named + fingerprint + file.to_bytes(8, "big") + row.to_bytes(8, "big")
        halves = []
        for half in (b"\0", b"\1"):
            cipher = CMAC(AES(self.raw))
            cipher.update(b"shuffledp job 1" + half + about)
            halves.append(cipher.finalize())
        return RandomBits.keyed(b"".join(halves), secure=self.is_secure)

    def __repr__(self) -> str:
        return f"JobKey({'secure' if self.is_secure else 'seeded'})"
