"""How far off counts of random answers and sums of rounded numbers can be, beside exact laws of every input."""

import itertools

import numpy as np
import pytest
from scipy import stats

from shuffledp.accounting import answer_tails
from shuffledp.accounting.answer_tails import answers_bound, bennett_bound
from shuffledp.accounting.laws import Binomial, DiscreteLaplace, IntegerLaw
from shuffledp.accounting.rounded_noise import rounded_noise_bound
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum.pure import Pure
from shuffledp.protocols.binary_sum.response import Response
from shuffledp.protocols.bounded_sum.bits import BoundedBits
from shuffledp.protocols.error_bounds import rounding_deviation

FAILURE = 0.05
ANSWERS = {"rr": (0.5, 0.5), "pure": (0.125, 0.375, 0.375, 0.125), "uneven": (0.13, 0.37, 0.375, 0.125)}


def worst_tail(users: int, p: float, masses: tuple[float, ...], a: float) -> float:
    """max over t of P[|ones - E ones| > a], answer by answer."""
    middle = (len(masses) - 2) // 2
    random = p * np.array(masses)
    zero, one = (random + (1 - p) * (np.arange(random.size) == middle + x) for x in (0, 1))
    powers = {0: [np.ones(1)], 1: [np.ones(1)]}
    for x, law in ((0, zero), (1, one)):
        for _ in range(users):
            powers[x].append(np.convolve(powers[x][-1], law))
    found = []
    for ones in range(users + 1):
        law = np.convolve(powers[0][users - ones], powers[1][ones])
        # What the estimate takes off: the mean, as if the law of random answers were symmetric.
        mean = users * middle + ones + p * (users - 2 * ones) / 2
        found.append(law[np.abs(np.arange(law.size) - mean) > a].sum())
    return float(max(found))


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize(("users", "p"), [(1, 0.3), (7, 0.4), (40, 0.05), (61, 0.3)])
def test_the_bound_of_random_answers_is_the_smallest_for_the_worst_data(name: str, users: int, p: float) -> None:
    a = answers_bound(users, p, ANSWERS[name], FAILURE)
    assert worst_tail(users, p, ANSWERS[name], a + 1e-9) <= FAILURE < worst_tail(users, p, ANSWERS[name], a * 0.9999)


@pytest.mark.parametrize("name", ANSWERS)
def test_cells_of_many_numbers_of_ones_are_bounds_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    users, p = 160, 0.2
    exact = answers_bound(users, p, ANSWERS[name], FAILURE)
    for numbers in (500, 1500, 4000):
        monkeypatch.setattr(answer_tails, "_MOST_NUMBERS", numbers)
        by_cells = answers_bound.__wrapped__(users, p, ANSWERS[name], FAILURE)
        assert exact <= by_cells <= bennett_bound(users * p * 1.5, 3.0, FAILURE)
        # Sums over all data, not only over the ends of cells.
        assert worst_tail(users, p, ANSWERS[name], by_cells + 1e-9) <= FAILURE
    assert by_cells <= 1.15 * exact


def test_one_more_user_with_a_one_lowers_what_is_beside_the_ones() -> None:
    """The step of the proof: D_t falls stochastically in t."""
    masses, p, users = np.array(ANSWERS["pure"]), 0.2, 30
    tails = answer_tails._Tails(users, p, masses, np.arange(4) - 1.0, np.arange(users + 1), 400)
    for k in range(-20, 20):
        column = tails.above(np.arange(users + 1), np.full(users + 1, float(k)))
        assert (np.diff(column) <= 1e-13).all()


def test_what_exact_tails_buy() -> None:
    """Beside what Bennett and Hoeffding gave: 17.0, 27.8 and 13.5."""
    privacy = Privacy(1, 1e-6)
    assert Response.plan(users=1000, privacy=privacy).error_bound < 11.8
    assert Pure.plan(users=1000, privacy=privacy).error_bound < 14.9
    plan = BoundedBits.plan(users=1000, privacy=privacy, low=0, high=1)
    assert plan.error_bound < 2.01 * plan.standard_error


def rounded_tail(noise: IntegerLaw, parts: tuple[float, ...], a: float) -> float:
    """P[|noise - mean + sum (B_i - f_i)| > a], bit by bit."""
    rounded = np.ones(1)
    for part in parts:
        rounded = np.convolve(rounded, [1 - part, part])
    shifts = np.arange(rounded.size) - sum(parts)
    beyond = [noise.sf(noise.mean + a - s + 1e-12) + noise.cdf(np.ceil(noise.mean - a - s - 1e-12) - 1) for s in shifts]
    return float(rounded @ np.array(beyond))


@pytest.mark.parametrize("noise", [Binomial(40, 0.5), Binomial(31, 0.5), DiscreteLaplace(0.7)], ids=str)
@pytest.mark.parametrize("users", [1, 4, 12])
def test_rounded_numbers_pass_the_bound_of_no_data(noise: IntegerLaw, users: int) -> None:
    apart = noise.deviation_quantile(0.8 * FAILURE) + rounding_deviation(users, 0.2 * FAILURE)
    bound = rounded_noise_bound(noise, users, FAILURE, apart)
    assert bound < apart
    kinds = itertools.combinations_with_replacement(np.linspace(0, 1, 11), min(users, 4))
    worst = max(rounded_tail(noise, kind * (users // len(kind)), bound) for kind in kinds)
    assert worst <= FAILURE
    # And it is close: a step and a half less is too little for some of them.
    halves = (0.5,) * users, (0.3,) * users, (0.9,) * users
    assert max(rounded_tail(noise, parts, bound - 1.5 - 0.06 * users**0.5) for parts in halves) > FAILURE


def test_a_centred_bit_is_below_a_uniform_number_in_convex_order() -> None:
    part, beyond = np.meshgrid(np.linspace(0, 1, 101), np.linspace(0, 1, 101))
    for sign in (1, -1):
        up, down = (np.maximum(sign * value - beyond, 0) for value in (1 - part, -part))
        assert (part * up + (1 - part) * down <= (1 - beyond) ** 2 / 4 + 1e-12).all()
    # And quarters of a step have no less than the uniform number.
    masses = np.array([0.5, *[1] * 7, 0.5]) / 8
    for u in np.linspace(0, 1, 33):
        assert masses @ np.maximum(np.arange(-4, 5) / 4 - u, 0) >= (1 - u) ** 2 / 4 - 1e-12


def test_noise_that_is_not_symmetric_keeps_its_bound() -> None:
    assert rounded_noise_bound(Binomial(100, 0.1), 10, FAILURE, 17.25) == 17.25


def test_large_sums_agree_with_the_normal_law() -> None:
    """Of a million users and seven coins each; uniform numbers have a third where rounding has a quarter at most."""
    noise = Binomial(7 * 10**6, 0.5)
    bound = rounded_noise_bound(noise, 10**6, FAILURE, 5000.0)
    wide = np.sqrt(noise.variance + 10**6 * (1 / 3 + 1 / 96))
    assert bound == pytest.approx(stats.norm.isf(FAILURE / 2) * wide, rel=1e-3)
