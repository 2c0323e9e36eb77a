"""Strings of a domain that nobody can list, as a search sees them: spelled in bits."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import DataError, ParameterError
from shuffledp.protocols.domains.domain import Domain, Generator

Strings = NDArray[np.bytes_]
Bits = NDArray[np.uint8]
LONGEST = 64
ANY_TEXT = bytes(range(1, 255))
"""All bytes but 0, which ends a string, and 255, which UTF-8 never has: a string that cannot be spelled becomes it."""
_NO_STRING, _LONGER = b"\xff", 1
_READABLE = b"abcdefg"


@dataclass(frozen=True)
class UnlistedStrings(Domain):
    r"""Strings of at most `length` bytes of UTF-8, of the bytes of `alphabet`; longer ones are cut, and say so.

    A string is spelled symbol by symbol, each by its place in the alphabet, 0 after the last; one more bit says whether
    it was cut. So strings that share their first bytes share their first bits.

    >>> words = UnlistedStrings(length=4, alphabet=b"abc")
    >>> words.symbol_bits, words.bits
    (3, 13)
    >>> [words.name(word) for word in words.check_values(["ab", "abca", "abcab", "x"])]
    ['ab', 'abca', 'abca…', '\\xff']
    """

    kind: ClassVar[str] = "words"
    reads: ClassVar[Literal["numbers", "words"]] = "words"
    length: int
    alphabet: bytes

    def __post_init__(self) -> None:
        if isinstance(self.length, bool) or not isinstance(self.length, int) or not 1 <= self.length <= LONGEST:
            problem = f"must be a whole number in 1..{LONGEST}"
            raise ParameterError("length", self.length, problem, "16 bytes tell most names apart")
        if not isinstance(self.alphabet, bytes):
            raise ParameterError("alphabet", self.alphabet, "must be bytes", "encode it: text.encode()")
        symbols = set(self.alphabet)
        if not symbols or symbols & {0, 255} or len(symbols) != len(self.alphabet):
            problem = "must be different bytes, none of them 0 or 255"
            raise ParameterError("alphabet", self.alphabet, problem, "list the symbols once")

    @property
    def parameters(self) -> dict[str, Any]:
        return {"length": self.length, "alphabet": self.alphabet.decode("latin-1")}

    @property
    def options(self) -> str:
        return f"--length {self.length}"

    @property
    def symbol_bits(self) -> int:
        """Bits of a symbol: the end, every byte of the alphabet, and one code for what cannot be spelled."""
        return (len(self.alphabet) + 1).bit_length()

    @property
    def bits(self) -> int:
        """Bits of a whole string."""
        return self.length * self.symbol_bits + 1

    def encode(self, values: ArrayLike) -> Strings:
        return self.check_values(values)

    def check_values(self, values: ArrayLike) -> Strings:
        """Strings as the search sees them: UTF-8, cut after `length` bytes, with one byte more where one was cut.

        A string with other symbols, or with a byte 0 before its end, becomes one that no search finds.
        """
        array = np.asarray(values)
        if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "US":
            raise DataError("strings", f"{array.dtype} of shape {array.shape}", "must be a column of text", "pass one")
        # Half a surrogate pair is no text, but its owner has a string all the same: one with other bytes.
        encoded = np.char.encode(array, "utf-8", "surrogatepass") if array.dtype.kind == "U" else array
        sizes = np.char.str_len(encoded)
        cut = encoded.astype(f"S{self.length + 1}")
        letters = cut.view(np.uint8).reshape(cut.size, -1)
        letters[sizes > self.length, self.length] = _LONGER
        known = np.zeros(256, dtype=np.bool_)
        known[list(self.alphabet)] = True
        inside = np.arange(self.length) < sizes[:, np.newaxis]
        cut[(inside & ~known[letters[:, : self.length]]).any(axis=1)] = _NO_STRING
        return cut

    def can_spell(self, strings: Strings) -> NDArray[np.bool_]:
        """Which of the checked strings can be found at all."""
        return np.asarray(strings != _NO_STRING)

    def spelled(self, strings: Strings) -> Bits:
        """The bits of checked strings, a row each."""
        letters = np.ascontiguousarray(strings).view(np.uint8).reshape(strings.size, -1)
        places = np.full(256, (1 << self.symbol_bits) - 1, dtype=np.uint8)
        places[0] = 0
        places[list(self.alphabet)] = np.arange(1, len(self.alphabet) + 1)
        symbols = np.unpackbits(places[letters[:, : self.length, np.newaxis]], axis=2)[:, :, -self.symbol_bits :]
        return np.hstack((symbols.reshape(strings.size, -1), letters[:, self.length :]))

    def have_ended(self, bits: Bits) -> NDArray[np.bool_]:
        """Whose first bits, a row each, hold a whole symbol that ends the string: the rest is zeros."""
        whole = bits.shape[1] // self.symbol_bits
        symbols = bits[:, : whole * self.symbol_bits].reshape(len(bits), whole, self.symbol_bits)
        return np.asarray((symbols.max(axis=2, initial=0) == 0).any(axis=1))

    def string(self, bits: Bits) -> bytes:
        """The string with these bits, as `check_values` writes it."""
        symbols = np.packbits(bits[:-1].reshape(self.length, -1), axis=1, bitorder="big")[:, 0]
        places = (symbols >> (8 - self.symbol_bits)).tolist()
        written = bytes(0 if not place else self.alphabet[place - 1] for place in places if place <= len(self.alphabet))
        return written.rstrip(b"\0") + (bytes([_LONGER]) if bits[-1] else b"")

    def name(self, string: bytes) -> str:
        """A checked string as text, with an ellipsis where it was cut; half a character is shown by its bytes."""
        return string[: self.length].decode(errors="backslashreplace") + ("…" if len(string) > self.length else "")

    def synthesize(self, users: int, generator: Generator) -> Strings:
        """The k-th of a hundred words has about 1/k of the users; a word spells its number in the alphabet."""
        drawn = np.exp(np.log(101.0) * generator.random(users)).astype(np.int64) - 1
        symbols = [bytes([symbol]) for symbol in _READABLE if symbol in self.alphabet]
        symbols = symbols or [bytes([symbol]) for symbol in self.alphabet]
        words = [
            b"".join(symbols[(place // 7**digit) % len(symbols)] for digit in range(min(self.length, 8)))
            for place in range(100)
        ]
        return np.asarray(np.array(words, dtype=f"S{self.length + 1}")[drawn])
