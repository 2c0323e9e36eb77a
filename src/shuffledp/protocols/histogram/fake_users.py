"""Histogram by fake users: a one-hot row and rows of zeros, every bit of all of them flipped now and then."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.curves import smallest_integer, smallest_meeting
from shuffledp.accounting.flipped_rows import FlippedRowsPair
from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.accounting.laws import Binomial
from shuffledp.accounting.pairs import bounded_exp
from shuffledp.errors import InfeasibleError
from shuffledp.messages import Reports
from shuffledp.privacy import Privacy
from shuffledp.protocols.domains.categories import AnyCategories, as_categories
from shuffledp.protocols.domains.domain import Codes, Floats
from shuffledp.protocols.fields import forwarded, noise
from shuffledp.protocols.histogram.base import HistogramPlan
from shuffledp.protocols.histogram.collision_bounds import flipped_bound
from shuffledp.protocols.request import Request
from shuffledp.protocols.streaming import rows_at_once
from shuffledp.protocols.unary import probability_with
from shuffledp.randomness import RandomBits
from shuffledp.sampling.subset import rare_events

# Rows that real users' own add a tenth to.
_FAKE_ROWS = 10
# With more flips than this, take more fake rows.
_LARGEST_FLIP = 0.1
_MOST_ROWS = 1 << 20
# Bits of everybody together; each costs two random bits.
_MOST_CELLS = 1 << 40
# From this variance of a column's flips on, curves take long.
_WIDE = 1 << 18
# The part of delta that reports which are cut short may cost.
_CUT_SHORT = 0.001

_pair = lru_cache(maxsize=256)(FlippedRowsPair)


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeUsers(HistogramPlan):
    """Each user sends the ones of its own row and of `fake_rows` rows of zeros, after `flip` in every bit.

    The adversary sees how many messages name each category: the sums of the columns. What rows the ones are from,
    which the paper's messages show, is dropped. A report of more than `cap` ones, which hardly happens, is cut short.

    Reference: Cheu, Zhilyaev 2022.

    >>> plan = FakeUsers.plan(users=10_000, privacy=Privacy(1, 1e-6), categories=100, fake_rows=1)
    >>> round(plan.flip, 5), round(plan.standard_error, 2), round(plan.paper_standard_error, 1)
    (0.00421, 9.23, 34.0)
    """

    method: ClassVar[str] = "fake-users"
    theory_page: ClassVar[str] = "docs/theory/histograms.md"
    law: ClassVar[str] = "flipped rows"
    curve: ClassVar[str] = "the curve of two columns of honest users' fake rows"
    drawn: ClassVar[str] = "flips are drawn exactly"
    dominates_because: ClassVar[str] = (
        "Flips are independent, so the columns are, and only two of them depend on the user's category; what other "
        "people's real rows add to these is independent of it, whatever they hold: the fake rows alone dominate."
    )

    fake_rows: int = noise(f"[1, {_MOST_ROWS}]")
    flip: float = noise("(0, 1/2)")
    cap: int = noise("[1, inf)")

    @classmethod
    def for_request(cls, request: Request, *, categories: AnyCategories, fake_rows: int | None = None) -> Self:
        """The fewest flips that hide which of two columns a user's one is in."""
        privacy, honest, domain = request.privacy, request.honest, as_categories(categories)
        # With one fake row each already: the curves of so many rows would take long.
        _check_cells(request.users, 2 * domain.size, domain.size)
        if request.constants == "paper":
            rows = fake_rows or max(1, math.ceil(4 * paper_variance(privacy) / honest))
            flip = _paper_flip(privacy, honest * rows)
        else:
            rows = fake_rows or _enough_rows(privacy, request, domain.size)
            flip = smallest_flip(privacy, honest * rows)
        ones = (rows + 1) * domain.size
        allowed = _CUT_SHORT * privacy.delta / (1 + math.exp(privacy.epsilon)) / honest
        cap = smallest_integer(lambda k: k >= ones or Binomial(ones - 1, flip).sf(k - 1) <= allowed)
        return cls(**request.common, categories=domain, fake_rows=rows, flip=flip, cap=cap)

    def _check_noise(self) -> None:
        super(FakeUsers, self)._check_noise()
        _check_cells(self.users, self._cells, self.bins)

    @property
    def _cells(self) -> int:
        """How many bits a user's rows have, its own and the fake ones."""
        return (self.fake_rows + 1) * self.bins

    def _error(self, flip: float) -> float:
        return math.sqrt(self.users * (self.fake_rows + 1) * flip * (1 - flip)) / (1 - 2 * flip)

    @property
    def standard_error(self) -> float:
        return self._error(self.flip)

    @property
    def paper_standard_error(self) -> float | None:
        try:
            return self._error(_paper_flip(self.privacy, self.honest_users * self.fake_rows))
        except InfeasibleError:
            return None

    def _l_inf_error(self) -> float:
        bound = flipped_bound(self.users * (self.fake_rows + 1), self.flip, self.users, self.bins)
        return bound / (1 - 2 * self.flip)

    @property
    def messages_per_user_mean(self) -> float:
        return 1 + (self._cells - 2) * self.flip

    messages_per_user_max = forwarded("cap")

    @property
    def message_influence(self) -> float:
        return 1 / (1 - 2 * self.flip)

    def pair(self, honest: int) -> FlippedRowsPair:
        return _pair(honest * self.fake_rows, self.flip)

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        # All bits but the user's own one are ones only by a flip.
        longer = Binomial(self._cells - 1, self.flip).sf(self.cap - 1)
        cost = (1 + bounded_exp(epsilon)) * honest * longer
        noise, sampling = super(FakeUsers, self).delta_terms(epsilon, honest)
        return noise, DeltaTerm("cut short", cost, "a report has more ones than the cap"), sampling

    def quieter(self, part: float) -> dict[str, Any]:
        return {"flip": probability_with(part * self.flip * (1 - self.flip))}

    def _flips(self, codes: Codes, bits: RandomBits) -> tuple[Codes, Codes, NDArray[np.bool_]]:
        """Users and columns of all flipped bits, user by user, and whether a bit was its user's own one."""
        user, cell = np.divmod(rare_events(codes.size * self._cells, self.flip, bits=bits), self._cells)
        column = cell % self.bins
        # The first row is the user's own.
        return user, column, cell == codes[user]

    def _reports(self, codes: Codes, bits: RandomBits) -> Reports:
        user, column, own = self._flips(codes, bits)
        kept = np.ones(codes.size, dtype=np.int64)
        kept[user[own]] = 0
        user, column = user[~own], column[~own]
        sizes = kept + np.bincount(user, minlength=codes.size)
        payloads = np.empty(int(sizes.sum()), dtype=self._kind)
        starts = np.cumsum(sizes) - sizes
        # A user's own one comes first, the ones made by flips after it.
        payloads[np.arange(user.size) + np.cumsum(kept)[user]] = column
        payloads[starts[kept == 1]] = codes[kept == 1]
        if int(sizes.max()) > self.cap:
            payloads = payloads[np.arange(payloads.size) - np.repeat(starts, sizes) < self.cap]
            sizes = np.minimum(sizes, self.cap)
        return Reports(payloads, sizes)

    def _own(self, seen: Codes) -> Sequence[Codes]:
        # A user's own one may be flipped away: no message is certain.
        return ()

    def _read(self, seen: Codes) -> Floats:
        expected = self.flip * self.users * (self.fake_rows + 1)
        return np.asarray((seen.astype(np.float64) - expected) / (1 - 2 * self.flip))

    def _summed(self, codes: Codes, bits: RandomBits) -> Codes:
        """The sums of the columns from the flips alone; no report is cut short, which it hardly ever is."""
        seen = self.counts(codes)
        rows = rows_at_once(self)
        for start in range(0, codes.size, rows):
            block = codes[start : start + rows]
            user, column, own = self._flips(block, bits)
            seen += self.counts(column[~own]) - self.counts(block[user[own]])
        return seen

    def _noisy(self, summed: Codes, bits: RandomBits) -> Codes:
        return summed


@lru_cache(maxsize=256)
def smallest_flip(privacy: Privacy, rows: int) -> float:
    """The fewest flips in so many honest fake rows.

    >>> round(smallest_flip(Privacy(1, 1e-6), 10_000), 5)
    0.00421
    """
    target = (1 - _CUT_SHORT) * privacy.delta

    most = 0.49

    def delta(flip: float) -> float:
        return 0.0 if flip >= most else _pair(rows, flip).delta(privacy.epsilon)

    if _pair(rows, most).delta(privacy.epsilon) > target:
        way_out = "take more of them, or a larger epsilon or delta"
        raise InfeasibleError("fake_rows", rows, "are too few in all", way_out)
    # Flips of very many rows are not asked for more closely than one in so many of them matters.
    variance = gaussian_standard_deviation(privacy, math.sqrt(2)) ** 2
    relative = 1e-9 if variance < _WIDE else 1e-5
    return smallest_meeting(delta, target, 0.0, min(most, 40 / rows), relative=relative)


def _enough_rows(privacy: Privacy, request: Request, bins: int) -> int:
    """Fake rows of a user: few flips in each, and few real rows beside them."""
    honest = request.honest
    # Rows with less than half of the variance of Gaussian noise are not asked: the curves of very many take long.
    least = (1 - 2 * _LARGEST_FLIP) ** 2 * gaussian_standard_deviation(privacy, math.sqrt(2)) ** 2 / 2

    def enough(rows: int) -> bool:
        if honest * rows * _LARGEST_FLIP * (1 - _LARGEST_FLIP) < least:
            return False
        return _pair(honest * rows, _LARGEST_FLIP).delta(privacy.epsilon) <= (1 - _CUT_SHORT) * privacy.delta

    rows = _FAKE_ROWS
    while not enough(rows):
        rows *= 2
        _check_cells(request.users, (rows + 1) * bins, bins)
        if rows > _MOST_ROWS:
            way_out = "take more users, or a larger epsilon or delta"
            raise InfeasibleError("fake_rows", rows, "would be too many", way_out)
    return rows


def _check_cells(users: int, cells: int, categories: int) -> None:
    """Refuse more bits in all users' rows, so many each, than can be numbered."""
    if users * cells >= _MOST_CELLS:
        problem = "are too many for rows of bits of so many users"
        raise InfeasibleError("categories", categories, problem, "use buckets")


def paper_variance(privacy: Privacy) -> float:
    """The variance that the paper asks of a column's fake rows.

    >>> round(paper_variance(Privacy(1, 1e-6)))
    470
    """
    scale = math.exp(privacy.epsilon)
    return 33 / 5 * ((scale + 1) / (scale - 1)) ** 2 * math.log(4 / privacy.delta)


def _paper_flip(privacy: Privacy, rows: int) -> float:
    variance = paper_variance(privacy) / rows
    if variance >= 0.25:
        raise InfeasibleError("fake_rows", rows, "are too few in all by the paper's formula", "take more of them")
    return probability_with(variance)
