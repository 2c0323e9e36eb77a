"""Public hash functions: few collisions over the seeds, as Theorem 31 counts them, and nothing secret."""

import numpy as np
import pytest

from shuffledp.errors import ParameterError
from shuffledp.protocols.histogram.hashed_rows import columns_for
from shuffledp.protocols.histogram.public_hash import PRIME, PublicHashes


def test_the_modulus_is_prime_and_products_fit() -> None:
    odd = np.arange(3, int(PRIME**0.5) + 2, 2)
    assert PRIME % 2 and (PRIME % odd != 0).all()
    assert (PRIME - 1) * ((1 << 31) - 1) + PRIME - 1 < 1 << 64
    largest = np.array([(1 << 31) - 1])
    a, b = PublicHashes(3, 1, 1000).coefficients(0)
    assert PublicHashes(3, 1, 1000).cells(largest, 0)[0] == (a * int(largest[0]) + b) % PRIME % 1000


def test_pairs_meet_as_rarely_as_promised() -> None:
    columns, seeds = 50, 4000
    codes = np.array([0, 1, 2, 77, (1 << 31) - 1])
    cells = np.stack([PublicHashes(seed, 1, columns).cells(codes, 0) for seed in range(seeds)])
    for i in range(codes.size):
        for j in range(i):
            met = int(np.count_nonzero(cells[:, i] == cells[:, j]))
            # 1/columns of 4000 seeds are 80; 6.2 standard errors more have probability below 1e-9.
            assert met <= 80 + 6.2 * np.sqrt(80)


def _some_category_is_never_alone(hashes: PublicHashes, bins: int, present: np.ndarray) -> bool:
    cells = hashes.all_cells(np.arange(bins))
    met = cells[:, np.newaxis] == cells[present]
    met[present, np.arange(present.size)] = False
    return bool(met.any(axis=1).all(axis=1).any())


@pytest.mark.parametrize("rows", [1, 2, 4])
def test_theorem_31(rows: int) -> None:
    """At most 1% of the seeds let some category meet others in all rows; a third of the columns is not enough."""
    users, bins, seeds = 12, 40, 3000
    columns = columns_for(users, bins, rows)
    present = np.arange(0, bins, 3)[:users]
    bad = sum(_some_category_is_never_alone(PublicHashes(seed, rows, columns), bins, present) for seed in range(seeds))
    assert bad <= 0.01 * seeds + 6.2 * np.sqrt(0.01 * seeds)
    if rows == 4:
        twin = [PublicHashes(seed, rows, columns // 4) for seed in range(seeds)]
        assert sum(_some_category_is_never_alone(each, bins, present) for each in twin) > 0.05 * seeds


def test_refusals() -> None:
    for wrong in ({"seed": -1}, {"rows": 0}, {"columns": 1 << 40}, {"seed": True}):
        with pytest.raises(ParameterError):
            PublicHashes(**{"seed": 0, "rows": 1, "columns": 2} | wrong)
