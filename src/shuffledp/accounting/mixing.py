"""Split-and-mix: how far the shuffled shares are from showing nothing but their sum.

n users split values of Z_q into m shares each, uniform given their sum; all shares are permuted.
Give an adversary one share of every user in the clear and compare, for two independent placements of
the other M = m - 1 shares of each, how often they agree: with c the number of connected components
of the random multigraph with an edge (owner, owner') a share,

    TV(view, simulation from the sum alone)  <=  1/2 sqrt(E[q^(c-1)] - 1)

(docs/theory/split-and-mix.md has the proof). With w(k, n) = C(n, k) / C(nM, kM) and
F_n = E[q^(c-1)] on n users,

    F_n - 1 = 1/n sum_{k=1..n-1} (k (q+1) - n) w(k, n) F_(n-k),        F_1 = 1,

a recursion without negative terms (q + 1 >= n), so that no digit is lost however small F_n - 1 is.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from shuffledp.accounting.laws import Floats
from shuffledp.errors import InfeasibleError, ParameterError

# The recursion is run as far as one of these; beyond, an induction bounds it (see _beyond).
_ENDS = (256, 1024, 2048)
# Terms at the far end that the induction sums one by one.
_LAST = 40
# Binomial coefficients are good to 1e-6 or better; the result is rounded up by more.
_SAFETY = 1.001
MOST_SHARES = 256
# Below this x, log(1 + e^x) and e^x - 1 with e^x for x are e^x to all digits.
_NEARLY_LINEAR = -40.0


def _log_choose(n: Floats | float, k: Floats | float) -> Floats:
    # The beta function keeps relative precision where log-gammas of huge numbers would cancel.
    return np.asarray(-special.betaln(n - k + 1.0, k + 1.0) - np.log(n + 1.0), dtype=np.float64)


def _log_weights(users: int, others: Floats, shares: int) -> Floats:
    """Log w(k, users) for each k, with `shares` shares a user."""
    n = float(users)
    return np.subtract(_log_choose(n, others), _log_choose(n * shares, others * shares))


@dataclass(frozen=True, eq=False)
class _Recursion:
    """log F_1, ..., log F_N and log(F_N - 1), ... for M shares in the dark and modulus q."""

    log_f: Floats
    log_excess: Floats


@lru_cache(maxsize=256)
def _recursion(users: int, shares: int, modulus: int) -> _Recursion:
    k = np.arange(users + 1, dtype=np.float64)
    log_a = special.gammaln(k * shares + 1) - special.gammaln(k + 1)  # w(k, n) = a_k a_(n-k) / a_n
    # k(q+1) - n <= k(q+1): a bound too, and all but equal for the moduli in use.
    nearly = modulus > 1e6 * users
    with np.errstate(divide="ignore"):
        log_factor_and_a = np.log(k * (modulus + 1.0)) + log_a
    log_a_and_f = log_a.copy()
    log_f = np.zeros(users + 1)
    log_excess = np.full(users + 1, -np.inf)
    for n in range(2, users + 1):
        if nearly:
            left = log_factor_and_a[1:n]
        else:
            with np.errstate(divide="ignore"):
                left = np.log(k[1:n] * (modulus + 1.0) - n) + log_a[1:n]
        terms = left + log_a_and_f[n - 1 : 0 : -1]
        top = float(terms.max())
        log_excess[n] = top + math.log(float(np.exp(terms - top).sum())) - log_a[n] - math.log(n)
        log_f[n] = np.logaddexp(0.0, log_excess[n])
        log_a_and_f[n] += log_f[n]
    return _Recursion(log_f, log_excess)


def _beyond(users: int, known: _Recursion, shares: int, modulus: int) -> float:
    """Log of a bound on F_n - 1 for n beyond the recursion, or inf where the induction does not start.

    (k(q+1)-n)/n <= q k/n, so F_n - 1 <= q sum_j (1 - j/n) w(j, n) F_j. With N the recursion's end:
    terms j <= N use the known F_j; the last ones, j = n - k, use F_j <= 2; those between use
    w(j, n) <= C(n, j)^(1-M) (Vandermonde) and F_j <= 2. Each part falls as n grows, so that if the
    bound is <= 1 at N + 1, and F_j <= 2 just below, then F_n <= 2 for every n > N, and the bound holds.
    """
    end = known.log_f.size - 1
    j = np.arange(1, end + 1, dtype=np.float64)

    def bound(n: int) -> float:
        weights = _log_weights(n, j, shares)
        last = weights[:_LAST] + np.log(2 * j[:_LAST] / n)
        between = math.log(2.0 * n) + (1 - shares) * float(_log_choose(float(n), _LAST + 1.0))
        terms = np.concatenate((weights + known.log_f[1:], last, [between]))
        return math.log(modulus) + float(special.logsumexp(terms))

    starts = known.log_f[end - _LAST :].max() <= math.log(2.0) and bound(end + 1) <= 0.0
    return bound(users) if starts else math.inf


def _log_leading(users: int, shares: int, modulus: int) -> float:
    """Log of q n / C(nM, M), the part of F_n - 1 in which one user's shares meet none of the others'."""
    return math.log(modulus) + math.log(users) - float(_log_choose(float(users) * shares, float(shares)))


def _log_excess(users: int, shares: int, modulus: int) -> float:
    """log(F_n - 1): exact for few users, a bound for many, inf where none is proved."""
    for end in _ENDS:
        if users <= end:
            return float(_recursion(users, shares, modulus).log_excess[users])
        if _log_leading(end, shares, modulus) < -1:  # otherwise the induction cannot start here
            bound = _beyond(users, _recursion(end, shares, modulus), shares, modulus)
            if math.isfinite(bound):
                return bound
    return math.inf


def _checked_excess(users: int, messages: int, modulus: int) -> float:
    """log(F_n - 1) with so many messages a user, one of them in the clear; inf where nothing is proved."""
    if users < 1 or messages < 1:
        raise ParameterError("users", users, "must be >= 1, with at least one message each", "count again")
    if modulus + 1 < users:
        raise ParameterError("modulus", modulus, f"must be at least {users - 1}", "choose a larger one")
    if users == 1:
        return -math.inf
    return _log_excess(users, messages - 1, modulus) if messages >= 3 else math.inf


def mixing_distance(users: int, messages: int, modulus: int) -> float:
    """A bound on the total variation distance between the shuffled shares and a simulation of them
    from their sum alone, whatever the values; at most 1. Two inputs with one sum are at most twice
    as far apart.

    >>> mixing_distance(users=10_000, messages=9, modulus=2**54) < 1e-7
    True
    """
    log_excess = _checked_excess(users, messages, modulus)
    return min(1.0, _SAFETY * 0.5 * math.exp(0.5 * log_excess)) if log_excess < 2 else 1.0


def mixing_distance_of(batches: Iterable[tuple[int, int, int, int]]) -> float:
    """How far the views of several batches are from simulations from their sums alone: 1/2 sqrt(prod F - 1).

    Each batch mixes its own shares, so k alike are about sqrt(k) times as far as one, and not k times.

    Args:
        batches: users, messages a user and modulus of a batch or coordinate, and how many there are of its kind.

    >>> one, hundred = (mixing_distance_of([(10_000, 9, 2**54, count)]) for count in (1, 100))
    >>> round(hundred / one, 6)
    10.0
    """
    kinds = list(batches)
    if len(kinds) == 1 and kinds[0][-1] == 1:
        return mixing_distance(*kinds[0][:3])
    log_logs = [-math.inf]
    for users, messages, modulus, count in kinds:
        if count < 0:
            raise ParameterError("count", count, "must be >= 0", "count again")
        log_excess = _checked_excess(users, messages, modulus)
        if count and log_excess > -math.inf:
            log_logs.append(math.log(count) + _log_log1p_exp(log_excess))
    log_total = float(special.logsumexp(log_logs))
    # Beyond log 5 the bound is 1; far below 0, e^x - 1 is x but for less than is rounded up.
    if log_total >= math.log(math.log(5.0)):
        return 1.0
    log_product = math.log(math.expm1(math.exp(log_total))) if log_total > _NEARLY_LINEAR else log_total
    return min(1.0, _SAFETY * 0.5 * math.exp(0.5 * log_product))


def _log_log1p_exp(x: float) -> float:
    """log(log(1 + e^x)), or x itself, which is more, where that is the same to all digits."""
    return math.log(float(np.logaddexp(0.0, x))) if x > _NEARLY_LINEAR else x


def distance_together(distances: Iterable[float]) -> float:
    """How far batches are from their simulations all together, where each is so far by its own bound.

    >>> round(distance_together([3e-7, 4e-7]) / 5e-7, 6)
    1.0
    """
    each = list(distances)
    # 1/2 sqrt(prod (1 + 4 d^2) - 1); where that is tiny, the root of the sum of squares, rounded up.
    if math.hypot(*each) <= 1e-8:
        return math.hypot(*each) * (1 + 1e-9)
    product = math.expm1(math.fsum(math.log1p(4 * distance * distance) for distance in each))
    return min(1.0, 0.5 * math.sqrt(product) * (1 + 1e-9))


def distance_of_each(distance: float, count: int) -> float:
    """How far each of so many batches may be from its simulation if all together may be so far.

    >>> round(distance_of_each(1e-6, 100) / 1e-7, 6)
    1.0
    """
    if count == 1:
        return distance
    # (1 + 4 e^2)^count = 1 + 4 d^2; e is d / sqrt(count) but for a part of about d^2, and rounded down by more.
    each = distance / math.sqrt(count)
    if distance > 1e-8:
        each = 0.5 * math.sqrt(math.expm1(math.log1p(4 * distance * distance) / count))
    return each * (1 - 1e-9)


def smallest_messages(users: int, modulus: int, distance: float) -> int:
    """The smallest number of shares a user, found by stepping from the leading term, that mixes this well."""
    if users == 1:
        return 1

    messages = 3
    while messages < MOST_SHARES and _log_leading(users, messages - 1, modulus) > 2 * math.log(2 * distance):
        messages += 1
    while messages > 3 and mixing_distance(users, messages - 1, modulus) <= distance:
        messages -= 1
    while mixing_distance(users, messages, modulus) > distance:
        messages += 1
        if messages > MOST_SHARES:
            raise InfeasibleError(
                "users",
                users,
                f"must be more than 1 for split-and-mix with at most {MOST_SHARES} shares at this delta",
                "choose a larger delta, or the method coins",
            )
    return messages


def robust_messages(users: int, modulus: int, distance: float) -> int:
    """As smallest_messages, and two more at most if that keeps the distance when only a third is honest.

    >>> smallest_messages(10_000, 2**62, 1e-7), robust_messages(10_000, 2**62, 1e-7)
    (10, 11)
    """
    fewest = smallest_messages(users, modulus, distance)
    third = users // 3
    if third < 2:
        return fewest
    # An epsilon that has grown, too, multiplies the distance in delta.
    few = (m for m in range(fewest, fewest + 3) if mixing_distance(third, m, modulus) <= distance / 4)
    return next(few, fewest)
