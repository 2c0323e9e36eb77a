import itertools
import math
from collections import Counter, defaultdict
from functools import cache, reduce

import mpmath
import numpy as np
import pytest

from shuffledp.accounting import mixing
from shuffledp.accounting.mixing import distance_of_each, mixing_distance, mixing_distance_of, smallest_messages
from shuffledp.errors import InfeasibleError, ParameterError


def view(values: tuple[int, ...], messages: int, q: int) -> dict[tuple[int, ...], float]:
    """The exact law of the multiset of all shares, as counts of each residue."""
    law: dict[tuple[int, ...], float] = {(0,) * q: 1.0}
    for value in values:
        own: Counter[tuple[int, ...]] = Counter()
        for shares in itertools.product(range(q), repeat=messages - 1):
            counts = [0] * q
            for share in (*shares, (value - sum(shares)) % q):
                counts[share] += 1
            own[tuple(counts)] += 1
        joined: defaultdict[tuple[int, ...], float] = defaultdict(float)
        for before, probability in law.items():
            for counts, times in own.items():
                joined[tuple(a + b for a, b in zip(before, counts, strict=True))] += probability * times
        law = {counts: p / q ** (messages - 1) for counts, p in joined.items()}
    return law


def tv(a: dict, b: dict) -> float:
    return sum(abs(a.get(key, 0.0) - b.get(key, 0.0)) for key in a.keys() | b.keys()) / 2


@cache
def views_and_simulations(users: int, messages: int, q: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The exact law of every input's view, up to order, and of the simulation from its sum, on the same outcomes."""
    found = []
    for total in range(q):
        inputs = Counter(tuple(sorted(v)) for v in itertools.product(range(q), repeat=users) if sum(v) % q == total)
        laws = {v: view(v, messages, q) for v in inputs}
        outcomes = sorted({counts for law in laws.values() for counts in law})
        rows = {v: np.array([law.get(counts, 0.0) for counts in outcomes]) for v, law in laws.items()}
        simulation = sum(times * rows[v] for v, times in inputs.items()) / inputs.total()
        found += [(row, simulation) for row in rows.values()]
    return found


def together(laws: tuple[np.ndarray, ...]) -> np.ndarray:
    """The law of independent views."""
    return reduce(np.multiply.outer, laws).ravel()


@pytest.mark.parametrize(
    "batches",
    [
        ((2, 3, 2), (2, 3, 2)),
        ((2, 4, 3), (2, 4, 3)),
        ((3, 4, 2), (3, 4, 2), (3, 4, 2)),
        ((2, 4, 4), (3, 4, 3)),
        ((2, 5, 2), (2, 5, 3), (3, 4, 2)),
    ],
)
def test_several_batches_against_exact_distances(batches: tuple) -> None:
    """Every share of every batch, every input: the views of all batches beside their independent simulations."""
    bound = mixing_distance_of([(*batch, 1) for batch in batches])
    worst = 0.0
    for chosen in itertools.product(*(views_and_simulations(*batch) for batch in batches)):
        real, simulated = zip(*chosen, strict=True)
        worst = max(worst, float(np.abs(together(real) - together(simulated)).sum()) / 2)
    alone = [max(float(np.abs(a - b).sum()) / 2 for a, b in views_and_simulations(*batch)) for batch in batches]
    # Together they show more than any of them alone, and less than the distances' sum.
    assert max(alone) < worst <= bound < sum(mixing_distance(*batch) for batch in batches)


@pytest.mark.parametrize(("users", "messages", "q"), [(2, 60, 2**20), (10, 24, 2**40), (60, 17, 2**54)])
@pytest.mark.parametrize("count", [1, 3, 1000, 10**7])
def test_the_product_of_many_batches_in_80_digits(users: int, messages: int, q: int, count: int) -> None:
    with mpmath.workdps(80):
        product = mpmath.expm1(count * mpmath.log1p(exact_excess(users, messages - 1, q)))
        other = mpmath.log1p(exact_excess(5, 30, 2**30))
        exact = float(mpmath.sqrt(product) / 2)
        mixed = float(mpmath.sqrt(mpmath.expm1(mpmath.log1p(product) + 2 * other)) / 2)
    assert exact <= mixing_distance_of([(users, messages, q, count)]) <= 1.0011 * exact < 0.5
    # In any order, and in parts.
    parts = [(5, 31, 2**30, 1), (users, messages, q, count), (5, 31, 2**30, 1)]
    assert mixed <= mixing_distance_of(parts) <= 1.0011 * mixed


def test_no_distance_is_too_small_to_be_added() -> None:
    """F - 1 is far below what a float beside 1 can hold, and near where its square root ends."""
    tiny = mixing_distance(10**6, 100, 2**64)
    assert 0 < tiny < 1e-200
    assert mixing_distance_of([(10**6, 100, 2**64, 10**6)]) == pytest.approx(1000 * tiny, rel=1e-9)
    assert mixing_distance_of([]) == mixing_distance_of([(1, 1, 2**40, 10**7)]) == 0.0
    assert mixing_distance_of([(10**6, 100, 2**64, 1), (10, 2, 2**40, 1)]) == 1.0
    with pytest.raises(ParameterError, match="count"):
        mixing_distance_of([(10, 9, 2**40, -1)])
    with pytest.raises(ParameterError, match="users"):
        mixing_distance_of([(0, 9, 2**40, 1)])


@pytest.mark.parametrize("distance", [1e-300, 1e-12, 1e-8, 1e-3, 0.3])
@pytest.mark.parametrize("count", [1, 2, 7, 10**5])
def test_what_each_of_several_batches_may_show(distance: float, count: int) -> None:
    each = distance_of_each(distance, count)
    with mpmath.workdps(700):
        all_of_them = mpmath.sqrt((1 + 4 * mpmath.mpf(each) ** 2) ** count - 1) / 2
        assert distance * (1 - 3e-9) <= all_of_them <= distance


@pytest.mark.parametrize(
    ("users", "messages", "q", "worst_pair"),
    [(3, 3, 3, 0.284), (4, 5, 3, 0.0133), (5, 4, 4, 0.0533), (4, 6, 4, 0.0079)],
)
def test_the_bound_against_exact_distances(users: int, messages: int, q: int, worst_pair: float) -> None:
    """All inputs up to order: distance to the simulation from the sum alone, and between two inputs."""
    bound = mixing_distance(users, messages, q)
    worst_simulation = worst = 0.0
    for total in range(q):
        inputs = [v for v in itertools.product(range(q), repeat=users) if sum(v) % q == total]
        sorted_inputs = sorted({tuple(sorted(v)) for v in inputs})
        views = {v: view(v, messages, q) for v in sorted_inputs}
        weights = Counter(tuple(sorted(v)) for v in inputs)
        simulation: defaultdict[tuple[int, ...], float] = defaultdict(float)
        for v, times in weights.items():
            for counts, p in views[v].items():
                simulation[counts] += p * times / len(inputs)
        worst_simulation = max(worst_simulation, *(tv(views[v], simulation) for v in sorted_inputs))
        worst = max(worst, *(tv(views[a], views[b]) for a in sorted_inputs for b in sorted_inputs))
    assert worst_simulation <= bound
    assert worst <= 2 * bound
    assert worst == pytest.approx(worst_pair, abs=0.0005 if worst_pair > 0.1 else 0.00006)


def exact_excess(users: int, shares: int, q: int) -> mpmath.mpf:
    """E[q^(c-1)] - 1 by the exponential formula, with rational arithmetic in 80 digits."""
    with mpmath.workdps(80):
        a = [mpmath.factorial(k * shares) / mpmath.factorial(k) for k in range(users + 1)]
        b = [mpmath.mpf(1)]
        for n in range(1, users + 1):
            b.append(mpmath.fsum((k * (q + 1) - n) * a[k] * b[n - k] for k in range(1, n + 1)) / n)
        return b[users] / a[users] / q - 1


@pytest.mark.parametrize(("users", "shares", "q"), [(2, 5, 2**20), (3, 10, 2**64), (10, 8, 2**40), (60, 6, 2**54)])
def test_the_recursion_in_80_digits(users: int, shares: int, q: int) -> None:
    ours = mixing._recursion(users, shares, q).log_excess[users]
    assert ours == pytest.approx(float(mpmath.log(exact_excess(users, shares, q))), abs=2e-9 + 3e-6 * (q > 1e6 * users))


@pytest.mark.parametrize("shares", [8, 10, 12, 20])
@pytest.mark.parametrize("q", [2**40, 2**54, 2**60, 2**64])
def test_the_induction_bounds_the_recursion(shares: int, q: int) -> None:
    """Where it starts, the bound lies above the exact value and within 1% of it for 1000 users on."""
    exact = mixing._recursion(2048, shares, q).log_excess
    for end in mixing._ENDS[:2]:
        known = mixing._recursion(end, shares, q)
        for users in (end + 1, end + 200, 1500, 2048):
            bound = mixing._beyond(users, known, shares, q)
            if math.isfinite(bound):
                assert bound >= exact[users] - 1e-9
                if users > 1.2 * end:
                    assert bound <= exact[users] + 0.01


def test_the_induction_starts_for_the_plans_people_make() -> None:
    for users in (3000, 10**4, 10**5, 10**6, 10**7, 10**8):
        assert mixing_distance(users, 10, 2**60) < 1e-6


def test_weights_fall_with_the_number_of_users() -> None:
    """The step of the induction: w(j, n) = C(n, j) / C(nM, jM) falls in n."""
    for shares in (2, 5, 9):
        j = np.arange(1.0, 200.0)
        rows = np.array([mixing._log_weights(n, j, shares) for n in range(200, 2000, 50)])
        assert (np.diff(rows, axis=0) < 0).all()


def test_weights_of_very_many_users_in_50_digits() -> None:
    with mpmath.workdps(50):
        for users in (10**6, 10**9, 10**12):
            exact = [
                mpmath.log(mpmath.binomial(users, j)) - mpmath.log(mpmath.binomial(users * 8, j * 8))
                for j in (1, 7, 40)
            ]
            ours = mixing._log_weights(users, np.array([1.0, 7.0, 40.0]), 8)
            assert [float(abs(a - b)) < 1e-6 for a, b in zip(ours, exact, strict=True)] == [True] * 3


@pytest.mark.parametrize(
    ("users", "messages"), [(10, 21), (20, 18), (100, 14), (1000, 11), (10**4, 9), (10**5, 8), (10**6, 8)]
)
def test_message_counts_for_40_bits_of_security(users: int, messages: int) -> None:
    """protocols section 7: two inputs within 2^-40, so each within 2^-41 of the simulation."""
    assert smallest_messages(users, int(users**1.5), 2.0**-41) == messages


@pytest.mark.parametrize("users", [2, 3, 5, 19, 100, 400, 3000, 10**5, 10**7])
def test_the_smallest_number_of_messages_is_the_smallest(users: int) -> None:
    messages = smallest_messages(users, 2**60, 2.7e-7)
    assert mixing_distance(users, messages, 2**60) <= 2.7e-7 < mixing_distance(users, messages - 1, 2**60)


def test_one_user_needs_no_mixing() -> None:
    assert mixing_distance(1, 1, 2**40) == 0 and smallest_messages(1, 2**40, 1e-9) == 1


def test_bad_input_is_named() -> None:
    with pytest.raises(ParameterError, match="users"):
        mixing_distance(0, 3, 10)
    with pytest.raises(ParameterError, match="modulus"):
        mixing_distance(10, 3, 5)
    with pytest.raises(InfeasibleError, match="shares"):
        smallest_messages(2, 2**64, 1e-300)
