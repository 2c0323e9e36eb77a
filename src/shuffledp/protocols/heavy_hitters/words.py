"""Strings of a domain that nobody can list, as a search sees them."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import DataError
from shuffledp.protocols.domains.domain import Domain, Generator

Strings = NDArray[np.bytes_]
PRINTABLE = bytes(range(32, 127))


@dataclass(frozen=True)
class UnlistedStrings(Domain):
    """Strings of any symbols, cut after `length` bytes of UTF-8; `alphabet` are the bytes that a search follows."""

    kind: ClassVar[str] = "words"
    reads: ClassVar[Literal["numbers", "words"]] = "words"
    length: int
    alphabet: bytes

    @property
    def parameters(self) -> dict[str, Any]:
        return {"length": self.length, "alphabet": self.alphabet.decode("latin-1")}

    @property
    def options(self) -> str:
        return f"--length {self.length}"

    def encode(self, values: ArrayLike) -> Strings:
        return self.check_values(values)

    def check_values(self, values: ArrayLike) -> Strings:
        """Strings as the search sees them: UTF-8, cut after `length` bytes.

        A byte 0 before the end of a string becomes another byte that is not in the alphabet: NumPy ends strings by
        zeros, and a cut after one would leave another string.
        """
        array = np.asarray(values)
        if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "US":
            raise DataError("strings", f"{array.dtype} of shape {array.shape}", "must be a column of text", "pass one")
        # Half a surrogate pair is no text, but its owner has a string all the same: one with other bytes.
        encoded = np.char.encode(array, "utf-8", "surrogatepass") if array.dtype.kind == "U" else array
        cut = encoded.astype(f"S{self.length}")
        letters = np.ascontiguousarray(encoded).view(np.uint8).reshape(encoded.size, -1)[:, : self.length]
        zeros = (letters == 0) & (np.arange(letters.shape[1]) < np.char.str_len(encoded)[:, np.newaxis])
        if zeros.any():
            other = next(byte for byte in range(1, 256) if byte not in self.alphabet)
            cut.view(np.uint8).reshape(cut.size, -1)[:, : letters.shape[1]][zeros] = other
        return cut

    def synthesize(self, users: int, generator: Generator) -> Strings:
        """The k-th of a hundred words has about 1/k of the users; a word spells its number in the alphabet."""
        drawn = np.exp(np.log(101.0) * generator.random(users)).astype(np.int64) - 1
        symbols = [bytes([symbol]) for symbol in self.alphabet]
        words = [
            b"".join(symbols[(place // 7**digit) % len(symbols)] for digit in range(self.length))
            for place in range(100)
        ]
        return np.asarray(np.array(words, dtype=f"S{self.length}")[drawn])
