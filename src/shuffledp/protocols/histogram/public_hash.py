"""Public hash functions: everybody can compute them, from a seed that is part of the plan."""

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.protocols.domains.domain import Codes
from shuffledp.protocols.fields import check_fields, domain

# The smallest prime above 2^32: a product with a code below 2^31 and a sum still fit into 64 bits.
PRIME = (1 << 32) + 15


@dataclass(frozen=True, slots=True)
class PublicHashes:
    """Functions ((a x + b) mod q) mod columns, one for each row, a and b from the seed.

    Two codes meet in a row with probability at most 1/columns over a uniform on 1..q-1 and b on 0..q-1, independently
    in every row. The seed is no secret and protects nobody; it must only be chosen without a look at the data.

    Reference: Carter, Wegman 1979.

    >>> PublicHashes(seed=0, rows=2, columns=10).cells(np.array([0, 1, 2]), 1).tolist()
    [0, 4, 8]
    """

    seed: int = domain(f"[0, {PRIME})")
    rows: int = domain(f"[1, {PRIME})")
    columns: int = domain(f"[1, {PRIME})")

    def __post_init__(self) -> None:
        check_fields(self)

    def coefficients(self, row: int) -> tuple[int, int]:
        """The row's a and b; 192 bits each, so that no value is favoured by more than 2^-159."""
        digest = hashlib.sha512(f"shuffledp public hash {self.seed} {row}".encode()).digest()
        first, second = (int.from_bytes(digest[start : start + 24], "big") for start in (0, 24))
        return 1 + first % (PRIME - 1), second % PRIME

    def cells(self, codes: Codes, row: int) -> NDArray[np.int64]:
        """The row's column of each code."""
        a, b = (np.uint64(number) for number in self.coefficients(row))
        return ((codes.astype(np.uint64) * a + b) % np.uint64(PRIME) % np.uint64(self.columns)).astype(np.int64)

    def all_cells(self, codes: Codes) -> NDArray[np.int64]:
        """A line a code with its column in every row."""
        return np.stack([self.cells(codes, row) for row in range(self.rows)], axis=1)
