"""Identity testing by uniformity testing: each user maps its category to a cell that is uniform if the claim is true.

Reference: Goldreich 2016, with a mixing weight and a number of cells that are chosen for the claim at hand.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError
from shuffledp.protocols.domains.domain import Codes
from shuffledp.randomness import RandomBits
from shuffledp.sampling.bernoulli import bernoulli
from shuffledp.sampling.uniform import uniform_below

# A cell is this many grains: probabilities are rounded to grains, once, and the rounding is declared.
GRAINS = 1 << 24
EIGHTHS = (0, 1, 2, 4)
_MOST_CELLS_A_CATEGORY = 64
_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """`size` equal cells for a claimed distribution: category i has `weights[i]` grains of them after mixing.

    A user first replaces its category by a uniform one with probability `mixed` / 8, then draws a grain of its
    category: a grain of a cell that is the category's alone leads there, any other to one of the shared cells.

    >>> cells = Cells.of([0.5, 0.25, 0.25])
    >>> cells.size, cells.distance_kept, cells.rounding
    (4, 1.0, 0.0)
    """

    size: int
    mixed: int
    weights: tuple[int, ...]
    rounding: float
    """The claim is this far, in total variation, from one that has exactly these weights."""

    @classmethod
    def of(cls, probabilities: Sequence[float]) -> "Cells":
        """The mixing and the number of cells that should need the fewest users for this claim."""
        claim = _checked(probabilities)
        bins = len(claim)
        common = math.lcm(*(share.limit_denominator(_MOST_CELLS_A_CATEGORY * bins).denominator for share in claim))
        sizes = {int(bins * 2 ** (step / 4)) for step in range(4 * int(math.log2(_MOST_CELLS_A_CATEGORY)) + 1)}
        if common <= _MOST_CELLS_A_CATEGORY * bins:
            sizes.add(common)
        every = [cls._made(claim, size, mixed) for size in sorted(sizes) for mixed in EIGHTHS]
        found = [cells for cells in every if cells is not None]
        # The users needed grow like size^(3/4) / distance where noise dominates; only power hangs on this choice.
        return min(found, key=lambda cells: (cells.size**0.75 / cells.distance_kept, cells.size))

    @classmethod
    def _made(cls, claim: list[Fraction], size: int, mixed: int) -> "Cells | None":
        # Whole numbers over one denominator: exact, and far quicker than fractions.
        common = math.lcm(*(share.denominator for share in claim))
        shares = [share.numerator * (common // share.denominator) for share in claim]
        whole = 8 * len(claim) * common
        blended = [((8 - mixed) * len(claim) * share + mixed * common) * size * GRAINS for share in shares]
        grains, rests = (list(part) for part in zip(*(divmod(each, whole) for each in blended), strict=True))
        # Largest remainders get the grains that are left, so that all add up.
        left = size * GRAINS - sum(grains)
        for i in sorted(range(len(rests)), key=lambda i: -rests[i])[:left]:
            grains[i] += 1
            rests[i] = whole - rests[i]
        if min(grains) < GRAINS:
            return None
        off = Fraction(sum(rests), whole * 2 * size * GRAINS)
        return cls(size=size, mixed=mixed, weights=tuple(grains), rounding=float(off) * (1 + 1e-12))

    @property
    def distance_kept(self) -> float:
        """Users whose law is a distance a from the claim are at least this part of a from uniform over the cells."""
        return (1 - self.mixed / 8) * min(weight // GRAINS * GRAINS / weight for weight in self.weights)

    @property
    def claim(self) -> NDArray[np.float64]:
        """The claimed probabilities, as they were rounded."""
        blended = _whole_numbers(self.weights) / (self.size * GRAINS)
        claim = np.maximum(0.0, (blended - self.mixed / 8 / len(self.weights)) / (1 - self.mixed / 8))
        return np.asarray(claim / claim.sum())

    @property
    def own_cells(self) -> NDArray[np.int64]:
        """How many cells each category has alone."""
        return _whole_numbers(self.weights) // GRAINS

    def assign(self, codes: Codes, *, bits: RandomBits) -> Codes:
        """The cell of each user's category, by exact private coins."""
        if self.mixed:
            swapped = np.flatnonzero(bernoulli(Fraction(self.mixed, 8), codes.size, bits=bits))
            codes = codes.copy()
            codes[swapped] = uniform_below(len(self.weights), swapped.size, bits=bits)
        own = self.own_cells
        starts = np.cumsum(own) - own
        grain = _uniform_below_each(_whole_numbers(self.weights)[codes], bits=bits)
        place = grain // GRAINS
        cells = starts[codes] + place
        shared = np.flatnonzero(place >= own[codes])
        if shared.size:
            first = int(own.sum())
            cells[shared] = first + uniform_below(self.size - first, shared.size, bits=bits).astype(np.int64)
        return np.asarray(cells)

    def law(self, probabilities: Sequence[float]) -> NDArray[np.float64]:
        """The law over the cells of users with this law over the categories."""
        weights, own = _whole_numbers(self.weights), self.own_cells
        p = (1 - self.mixed / 8) * np.asarray(probabilities, dtype=np.float64) + self.mixed / 8 / len(self.weights)
        alone = np.repeat(p * GRAINS / weights, own)
        rest = self.size - alone.size
        return np.concatenate((alone, np.full(rest, (1 - alone.sum()) / rest if rest else 0.0)))


@lru_cache(maxsize=16)
def _whole_numbers(weights: tuple[int, ...]) -> NDArray[np.int64]:
    return np.array(weights, dtype=np.int64)


def _uniform_below_each(moduli: NDArray[np.int64], *, bits: RandomBits) -> NDArray[np.int64]:
    """One integer uniform below each modulus, exactly: drawn again where it is too large."""
    masks = (np.int64(1) << np.ceil(np.log2(moduli.astype(np.float64))).astype(np.int64) + 1) - 1
    values = bits.words(moduli.size).astype(np.int64) & masks
    pending = np.flatnonzero(values >= moduli)
    while pending.size:
        values[pending] = bits.words(pending.size).astype(np.int64) & masks[pending]
        pending = pending[values[pending] >= moduli[pending]]
    return values


def as_claim(given: Any) -> tuple[float, ...] | None:
    """Claimed probabilities of any number of categories; None where the claim is uniform."""
    return None if given is None else check_claim(given, None)


def check_claim(probabilities: Any, bins: int | None) -> tuple[float, ...]:
    """The claimed probabilities of all categories, or an error that names the first that cannot be one."""
    try:
        given = tuple(float(value) for value in probabilities)
    except (TypeError, ValueError):
        raise ParameterError("against", probabilities, "must be a list of probabilities", "one a category") from None
    if bins is not None and len(given) != bins:
        raise ParameterError(
            "against", f"{len(given)} probabilities", f"must have one for each of the {bins} categories", "add zeros"
        )
    for place, value in enumerate(given):
        if not (math.isfinite(value) and value >= 0):
            raise ParameterError("against", f"{value} in place {place + 1}", "must be >= 0", "pass probabilities")
    total = math.fsum(given)
    if abs(total - 1) > _TOLERANCE:
        raise ParameterError("against", f"a sum of {total:.12g}", "must add up to 1", "divide by their sum")
    return given


def _checked(probabilities: Sequence[float]) -> list[Fraction]:
    exact = [Fraction(value) for value in check_claim(probabilities, len(probabilities))]
    # Decimal fractions do not add up to 1 in binary: thirds of a last digit are what the tolerance is for.
    total = sum(exact)
    near = [share.limit_denominator(10**9) for share in exact]
    if sum(near) == 1 and max(abs(a - b) for a, b in zip(near, exact, strict=True)) < Fraction(1, 10**15):
        return near
    return [share / total for share in exact]
