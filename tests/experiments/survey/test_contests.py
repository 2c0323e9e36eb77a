"""What the tables run: private as they claim, by enumeration, and right where the answer is known."""

import itertools
import math

import numpy as np
import pytest

from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.accounting.laws import Poisson
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.accounting.two_bins import TwoBinsPair
from shuffledp.experiments.survey import parities, pointers, uniformity
from shuffledp.experiments.survey.measuring import Effort, Setting
from shuffledp.experiments.survey.table6 import count_min, hadamard, worst_range
from shuffledp.privacy import Privacy
from shuffledp.protocols.histogram import Histogram

SETTING = Setting(privacy=Privacy(1, 1e-6), effort=Effort.quick, seed=3)


def test_the_hidden_parity_agrees_with_all_and_others_with_half() -> None:
    signs, hidden = parities.agreements(8, 4000, np.random.default_rng(1))
    assert (signs[:, hidden] == 1).all() and signs.shape == (4000, len(parities.candidates(8)))
    others = np.delete(signs, hidden, axis=1).mean(axis=0)
    # 91 candidates, 4000 fair signs each: beyond 6.5 standard errors with probability below 1e-8.
    assert np.abs(others).max() < 6.5 / math.sqrt(4000)


def test_a_user_moves_a_vector_no_longer_than_the_plan_was_told() -> None:
    size = len(parities.candidates(4))
    plan = parities.vector_plan(50, SETTING.privacy, size)
    signs, _ = parities.agreements(4, 200, np.random.default_rng(2))
    assert np.linalg.norm(signs, axis=1).max() <= plan.radius * (1 + 1e-12)
    assert plan.guarantee().delta <= SETTING.privacy.delta


def test_the_exponential_mechanism_is_private() -> None:
    """Gumbel noise of scale 2/eps: the law of the largest is a softmax; all neighbours of three users, all outcomes."""
    rows = [np.array(row) for row in itertools.product((0, 1), repeat=3)]
    for others in itertools.combinations_with_replacement(rows, 2):
        laws = []
        for mine in rows:
            weights = np.exp((sum(others) + mine) / 2)
            laws.append(weights / weights.sum())
        ratios = [np.max(p / q) for p, q in itertools.permutations(laws, 2)]
        assert max(ratios) <= math.e * (1 + 1e-12)


def test_gumbel_noise_has_that_law() -> None:
    scores = np.array([0.0, 1.0, 3.0])
    generator = np.random.default_rng(4)
    chosen = np.argmax(scores + generator.gumbel(scale=2, size=(40_000, 3)), axis=1)
    expected = np.exp(scores / 2) / np.exp(scores / 2).sum()
    seen = np.bincount(chosen, minlength=3) / 40_000
    assert np.abs(seen - expected).max() < 6.5 * 0.5 / math.sqrt(40_000)


@pytest.mark.parametrize(("users", "bins"), [(3, 3), (4, 2), (2, 4)])
def test_one_user_moves_the_distance_from_uniform_by_at_most_one(users: int, bins: int) -> None:
    def distance(values) -> float:
        return float(np.abs(np.bincount(values, minlength=bins) - users / bins).sum() / 2)

    worst = 0.0
    for others in itertools.product(range(bins), repeat=users - 1):
        for mine, yours in itertools.permutations(range(bins), 2):
            worst = max(worst, abs(distance([*others, mine]) - distance([*others, yours])))
    assert 0 < worst <= 1 + 1e-12


def test_tests_see_a_distance_and_do_not_see_none() -> None:
    contest = uniformity.UniformityContest(SETTING, 8)
    for draw, users in (
        (contest.shuffle, 2000),
        (contest.central, 2000),
        (contest.central_histogram, 2000),
        (contest.local, 50_000),
    ):
        none, far = draw(users, 40, True), draw(users, 40, False)
        again = draw(users, 40, True)
        assert np.median(far) > none.max() and (none == again).all()
    assert uniformity.quietest_method(1000, SETTING.privacy, 8) in Histogram.methods


def test_pointers_are_found_by_many_users_and_not_by_few() -> None:
    runs = 20
    assert pointers.shuffle_successes(SETTING, "decoys", 3, 400, runs) == runs
    assert pointers.central_successes(SETTING, 3, 400, runs) == runs
    assert pointers.local_successes(SETTING, 3, 4000, runs) == runs
    few = (pointers.shuffle_successes(SETTING, "decoys", 3, 4, runs), pointers.local_successes(SETTING, 16, 8, runs))
    assert max(few) < runs / 2


def test_the_worst_range_is_the_worst() -> None:
    errors = np.random.default_rng(6).normal(size=(6, 7))
    boxes = [
        abs(errors[a:b, c:d].sum())
        for a, b in itertools.combinations(range(7), 2)
        for c, d in itertools.combinations(range(8), 2)
    ]
    assert worst_range(errors) == pytest.approx(max(boxes))
    line = errors[0]
    ranges = [abs(line[a:b].sum()) for a, b in itertools.combinations(range(8), 2)]
    assert worst_range(line) == pytest.approx(max(ranges))


def test_the_formulas_have_the_noise_of_the_accountant() -> None:
    """The Gaussian limit of 2 x 30 counters, against their exact composition: within two percent in epsilon."""
    mean = 2 * 30 * gaussian_standard_deviation(SETTING.privacy) ** 2
    exact = TwoBinsPair(ShiftPair(Poisson(mean)), times=30)
    assert exact.delta(1.02) < SETTING.privacy.delta < exact.delta(0.98)


def test_formulas_grow_with_the_domain_and_the_axes() -> None:
    for formula in (count_min, hadamard):
        small, large, plane = (formula(SETTING.privacy, 10_000, k, d) for k, d in ((2**8, 1), (2**16, 1), (2**8, 2)))
        assert all(a < b for a, b in zip(small, large, strict=True)) and small[0] < plane[0] and small[1] < plane[1]
        assert formula(Privacy(0.5, 1e-6), 10_000, 2**8, 1)[0] == pytest.approx(2 * small[0], rel=0.1)
