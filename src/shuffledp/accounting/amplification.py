"""Amplification by shuffling: what n shuffled reports of one local randomizer hide, whatever it is.

All n users apply the same local_epsilon-private randomizer once; a uniform permutation of the n reports
is seen; one user's value is replaced. The functions here know local_epsilon and n only, so they are for
exploration: the privacy belongs to a run that really shuffled n reports. Proofs and what is cited:
docs/theory/amplification.md.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from shuffledp.accounting.curves import Curve
from shuffledp.accounting.guarantee import delta_of_distance
from shuffledp.accounting.laws import Binomial, Floats, stirling_error
from shuffledp.accounting.pairs import RELATIVE_ERROR, WINDOW_TAIL, Atoms, DominatingPair
from shuffledp.errors import ParameterError
from shuffledp.privacy import LARGEST_EPSILON

# Numbers of clones this close count as the smallest of them, which costs a quarter of this in epsilon.
_BLOCK, _COMPOSED_BLOCK = 1e-6, 1e-4
# A number of clones less likely than this counts as certain ruin.
_RARE_COUNT = 1e-22


def check_run(local_epsilon: float, users: int) -> None:
    """Refuse what no theorem here covers."""
    if not 0 < local_epsilon <= LARGEST_EPSILON:
        raise ParameterError(
            "local_epsilon", local_epsilon, f"must lie in (0, {LARGEST_EPSILON:g}]", "1 is a common choice"
        )
    if users < 2:
        raise ParameterError("users", users, "must be >= 2", "one report hides among nobody")


def _check_delta(name: str, delta: float) -> None:
    if not 0 < delta < 1:
        raise ParameterError(name, delta, "must lie strictly between 0 and 1", "1e-6 is a common choice")


@dataclass(frozen=True)
class ClosedForm:
    """A bound by a formula: epsilon = log(1 + root sqrt(ln(4/delta)) + constant), for delta >= smallest_delta.

    Its curve is the formula read from right to left, and stays at smallest_delta from there on.
    """

    root: float
    constant: float
    smallest_delta: float

    def delta(self, epsilon: float) -> float:
        """The delta that goes with epsilon, rounded up."""
        excess = max(0.0, math.expm1(epsilon) - self.constant) / self.root
        return min(1.0, max(4 * math.exp(-(excess**2)) * (1 + RELATIVE_ERROR), self.smallest_delta))

    def epsilon(self, delta: float) -> float:
        """The epsilon that goes with delta; outside the theorem's range an error."""
        _check_delta("delta", delta)
        if delta < self.smallest_delta:
            raise ParameterError(
                "delta",
                delta,
                f"must be >= {self.smallest_delta:.3g} for this formula",
                "take more users or a smaller local_epsilon, or the numerical bound",
            )
        return math.log1p(self.root * math.sqrt(math.log(4 / delta)) + self.constant) * (1 + RELATIVE_ERROR)


def closed_form_2021(local_epsilon: float, users: int) -> ClosedForm:
    """Feldman, McMillan, Talwar 2021, Theorem 3.1; cited. It needs local_epsilon <= ln(n / (16 ln(2/delta))).

    >>> round(closed_form_2021(1.0, 10_000).epsilon(1e-6), 5)
    0.21403
    """
    check_run(local_epsilon, users)
    ratio = math.exp(local_epsilon)
    gap = (ratio - 1) / (ratio + 1)
    return ClosedForm(
        gap * 8 * math.sqrt(ratio / users), gap * 8 * ratio / users, min(1.0, 2 * math.exp(-users / (16 * ratio)))
    )


def closed_form_2023(local_epsilon: float, users: int) -> ClosedForm:
    """Feldman, McMillan, Talwar 2023, Theorem 3.2; it needs local_epsilon <= ln(n / (8 ln(2/delta)) - 1).

    The estimate of the stronger clones' pair is cited; that the pair bounds every randomizer is not (see
    `stronger_clones`).

    >>> round(closed_form_2023(3.0, 10_000).epsilon(1e-6), 3)
    0.655
    """
    check_run(local_epsilon, users)
    ratio = math.exp(local_epsilon)
    return ClosedForm(
        (ratio - 1) * 4 * math.sqrt(2 / ((ratio + 1) * users)),
        (ratio - 1) * 4 / users,
        min(1.0, 2 * math.exp(-users / (8 * (ratio + 1)))),
    )


@dataclass(frozen=True, eq=False)
class ClonePair(DominatingPair):
    """C ~ Bin(n-1, clone_probability) other users' reports look like the target's two, evenly: A and C - A.

    The target joins the first with probability e^eps0/(e^eps0+1) under P and 1/(e^eps0+1) under Q, else
    the second. Swapping the two counts swaps P and Q, so both directions are equal at every epsilon and
    one is computed.
    """

    local_epsilon: float
    users: int
    clone_probability: float

    def __post_init__(self) -> None:
        check_run(self.local_epsilon, self.users)
        if not 0 < self.clone_probability < 1:
            raise ParameterError(
                "clone_probability", self.clone_probability, "must lie strictly between 0 and 1", "see `clones`"
            )

    @property
    def _likely(self) -> float:
        return 1 / (1 + math.exp(-self.local_epsilon))

    @property
    def _unlikely(self) -> float:
        return 1 / (1 + math.exp(self.local_epsilon))

    def _counts(self, block: float) -> tuple[Floats, Floats, float]:
        """Numbers of clones, their probabilities, and the probability of any other number.

        A clone more is a fair coin more, a post-processing: a block may count as its smallest member.
        """
        law = Binomial(self.users - 1, self.clone_probability)
        start, end = law.window(WINDOW_TAIL)
        counts = np.arange(start, end + 1, dtype=np.float64)
        weights = np.exp(law.log_pmf(counts))
        # The window's ends are rough, and each count costs a tail.
        kept = np.flatnonzero(weights > _RARE_COUNT)
        counts, weights = counts[kept], weights[kept]
        outside = law.cdf(counts[0] - 1) + law.sf(counts[-1])
        starts = np.arange(0, counts.size, max(1, int(block * law.mean)))
        return counts[starts], np.asarray(np.add.reduceat(weights, starts)), outside

    @cached_property
    def _clones(self) -> tuple[Floats, Floats, float]:
        return self._counts(_BLOCK)

    def forward(self, epsilon: float) -> float:
        if epsilon >= self.local_epsilon:
            return 0.0
        likely, unlikely, ratio = self._likely, self._unlikely, math.exp(epsilon)
        clones, weights, outside = self._clones
        # Given C, P(a)/Q(a) = (likely a + unlikely (C+1-a)) / (unlikely a + likely (C+1-a)) rises in a, so
        # {P > e^eps Q} is an upper tail: C+1-a < (C+1) share. No digits of the share cancel, however close to 0
        # or eps to eps0, so a rounding error can only move the cut past a term near 0.
        share = likely * -math.expm1(epsilon - self.local_epsilon) / ((likely - unlikely) * (1 + ratio))
        last = clones + 1 - np.ceil((clones + 1) * share)
        apart = upper_tail_of_fair_coins(last, clones)
        joined = apart + mass_of_fair_coins(last, clones)
        p = likely * joined + unlikely * apart
        scaled = ratio * (unlikely * joined + likely * apart)
        terms = np.maximum(p - scaled, 0.0) + RELATIVE_ERROR * (p + scaled)
        return float(weights @ terms) * (1 + RELATIVE_ERROR) + outside

    def reverse(self, epsilon: float) -> float:
        return self.forward(epsilon)

    @cached_property
    def _atoms(self) -> Atoms:
        counts, weights, outside = self._counts(_COMPOSED_BLOCK)
        log_p, log_q = [], []
        for count, weight in zip(counts, weights, strict=True):
            total = int(count) + 1
            # Hoeffding: fair coins leave this window with probability WINDOW_TAIL; P and Q are at most twice that.
            reach = math.sqrt(total * math.log(2 / WINDOW_TAIL) / 2)
            low, high = max(0, math.floor(total / 2 - reach)), min(total, math.ceil(total / 2 + reach))
            first = np.arange(low, high + 1, dtype=np.float64)
            # b(a-1; C) = 2 a/(C+1) b(a; C+1): both laws are Bin(C+1, 1/2) times a line.
            base = Binomial(total, 0.5).log_pmf(first) + math.log(2 * weight / total)
            log_p.append(base + np.log(self._likely * first + self._unlikely * (total - first)))
            log_q.append(base + np.log(self._unlikely * first + self._likely * (total - first)))
        left_out = outside + 2 * WINDOW_TAIL
        return Atoms(np.concatenate(log_p), np.concatenate(log_q), left_out, left_out)

    def atoms(self) -> Atoms:
        return self._atoms

    def describe(self) -> str:
        return (
            f"P = (A + D, C - A + 1 - D), Q = (A + 1 - D, C - A + D), where C ~ Binomial({self.users - 1:,}, "
            f"{self.clone_probability:.8g}), A ~ Binomial(C, 0.5), D ~ Bernoulli({self._likely:.8g})"
        )


def upper_tail_of_fair_coins(last: Floats, coins: Floats) -> Floats:
    """P[Bin(coins, 1/2) > last], for whole numbers, elementwise.

    >>> upper_tail_of_fair_coins(np.array([-1.0, 0.0, 2.0]), np.array([0.0, 2.0, 2.0])).round(12).tolist()
    [1.0, 0.75, 0.0]
    """
    inside = (last >= 0) & (last < coins)
    tail = special.betainc(np.where(inside, last + 1, 1.0), np.where(inside, coins - last, 1.0), 0.5)
    return np.where(inside, tail, np.where(last < 0, 1.0, 0.0))


def mass_of_fair_coins(heads: Floats, coins: Floats) -> Floats:
    """P[Bin(coins, 1/2) = heads], for whole numbers, elementwise; a tenth of the cost of a tail.

    >>> mass_of_fair_coins(np.array([-1.0, 0.0, 1.0]), np.array([2.0, 2.0, 2.0])).round(12).tolist()
    [0.0, 0.25, 0.5]
    """
    inside = (heads > 0) & (heads < coins)
    n, k = np.where(inside, coins, 2.0), np.where(inside, heads, 1.0)
    skew = (2 * k - n) / n
    # Stirling, as in `Binomial.log_pmf`; the bracket is skew^2 at first order, so n times its rounding is small.
    log_mass = (
        stirling_error(n)
        - stirling_error(k)
        - stirling_error(n - k)
        - n / 2 * ((1 + skew) * np.log1p(skew) + (1 - skew) * np.log1p(-skew))
        + 0.5 * np.log(n / (2 * math.pi * k * (n - k)))
    )
    ends = np.where((heads == 0) | (heads == coins), np.exp2(-coins), 0.0)
    return np.where(inside, np.exp(log_mass), ends)


def clones(local_epsilon: float, users: int) -> ClonePair:
    """Every other report is a clone with probability e^-eps0: Feldman, McMillan, Talwar 2021; proved here.

    >>> from shuffledp.accounting.curves import epsilon_at
    >>> round(epsilon_at(clones(1.0, 10_000), 1e-6), 6)
    0.053005
    """
    check_run(local_epsilon, users)
    return ClonePair(local_epsilon, users, math.exp(-local_epsilon))


def stronger_clones(local_epsilon: float, users: int) -> ClonePair:
    """Clones with probability 2/(e^eps0+1): Feldman, McMillan, Talwar 2023, for one fixed randomizer.

    Their own proof has an erratum (arXiv 2208.04591) that leaves adaptive sequences of general randomizers
    out. For one randomizer that all users share, docs/theory/amplification.md proves the bound anew.

    >>> from shuffledp.accounting.curves import epsilon_at
    >>> round(epsilon_at(stronger_clones(1.0, 10_000), 1e-6), 6)
    0.043206
    """
    check_run(local_epsilon, users)
    return ClonePair(local_epsilon, users, 2 / (math.exp(local_epsilon) + 1))


@dataclass(frozen=True, eq=False)
class LocalDeltaCurve:
    """A curve for pure randomizers, raised for ones that are (local_epsilon, local_delta)-private.

    `distance` bounds how far all reports together are from those of a pure one.
    """

    pure: Curve
    distance: float

    def delta(self, epsilon: float) -> float:
        """The delta, rounded up."""
        return min(1.0, self.pure.delta(epsilon) + delta_of_distance(math.exp(epsilon), self.distance))


def local_delta_distance(local_epsilon: float, local_delta: float, users: int) -> float:
    """(1 + 2 e^-eps0 (n-1)) delta0: proved in docs/theory/amplification.md, for both kinds of clones.

    >>> round(local_delta_distance(4.0, 1e-9, 10_000), 10)
    3.673e-07
    """
    _check_local_delta(local_epsilon, local_delta, users)
    return local_delta * (1 + 2 * math.exp(-local_epsilon) * (users - 1))


def local_delta_distance_2021(local_epsilon: float, local_delta: float, users: int) -> float:
    """(1 + e^-eps0/2) n delta0: Feldman, McMillan, Talwar 2021, Theorem 3.8; cited, for `clones` only.

    >>> round(local_delta_distance_2021(4.0, 1e-9, 10_000), 10)
    1.00916e-05
    """
    _check_local_delta(local_epsilon, local_delta, users)
    return local_delta * (1 + math.exp(-local_epsilon) / 2) * users


def _check_local_delta(local_epsilon: float, local_delta: float, users: int) -> None:
    check_run(local_epsilon, users)
    if not 0 <= local_delta < 1:
        raise ParameterError("local_delta", local_delta, "must lie in [0, 1)", "0 means a pure randomizer")
