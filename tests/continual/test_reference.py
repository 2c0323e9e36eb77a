"""What stands beside a plan is what it says: each number again, by another route."""

import math

import numpy as np
import pytest
from scipy import linalg, optimize, stats

from shuffledp.accounting.laws import IntegerLaw
from shuffledp.continual.carried.planner import plan_carried
from shuffledp.continual.plan import CounterPlan
from shuffledp.continual.reference import counter_reference
from shuffledp.privacy import Privacy
from shuffledp.protocols.domains.summed import Reals
from shuffledp.references.continual.buffered import buffered_curator_bound
from shuffledp.references.continual.square_root import best_curator_bound

PRIVACY, FAILURE = Privacy(1, 1e-6), 0.05
USERS = 700


def planned(noise: str, **asked) -> CounterPlan:
    return CounterPlan.plan(users=USERS, shufflers=2, privacy=PRIVACY, noise=noise, **asked)


def one_sided_sums(law: IntegerLaw, most: int) -> list[np.ndarray]:
    """P[|S_j - mean| > a] for a = 0, 1, ... and j = 0..most, by plain convolution."""
    reach = 60 * math.ceil(law.standard_deviation)
    one = np.exp(law.log_pmf(np.arange(-reach, reach + 1.0) + law.mean))
    total, tails = np.ones(1), []
    for _ in range(most + 1):
        middle = total.size // 2
        inside = np.cumsum(np.append(total[middle], total[middle + 1 :] + total[:middle][::-1]))
        tails.append(np.append(1 - inside, np.zeros(2000))[:2000])
        total = np.convolve(total, one)
        total = total[max(0, total.size // 2 - 4000) : total.size // 2 + 4001]
    return tails


def least(tails: list[np.ndarray], depths: np.ndarray) -> int:
    """The least a that no prefix passes: prefixes of so many batches each."""
    union = sum(count * tails[j] for j, count in enumerate(np.bincount(depths)) if j)
    return int(np.argmax(union <= FAILURE))


@pytest.mark.parametrize("noise", ["coins", "laplace"])
def test_one_shuffler_has_the_plans_kind_of_noise(noise: str) -> None:
    """Slot after slot is a batch: prefix j is made of j noises. All budgets, one by one."""
    found = counter_reference(planned(noise))["sequential_error_bound"]
    law = CounterPlan.plan(users=USERS, shufflers=1, privacy=PRIVACY, noise=noise).batch_noise.law()
    tails = one_sided_sums(law, 40)
    bounds = [least(tails, np.arange(c + 1)) + (-(-(USERS + 1) // (c + 1)) - 1) / 2 for c in range(1, 41)]
    assert found == min(bounds)


@pytest.mark.parametrize("noise", ["coins", "laplace"])
def test_the_tree_has_the_plans_kind_of_noise(noise: str) -> None:
    """After t slots as many batches as the digits of t add up to: all degrees of one level and of two."""
    plan = planned(noise)
    bounds = []
    for levels in (1, 2):
        alone = CounterPlan.plan(users=5000, shufflers=levels, privacy=PRIVACY, noise=noise)
        # The same noise, whatever the schedule: what a user in so many batches needs.
        law = alone.view.of(plan.domain, levels, PRIVACY).calibrate(noise, PRIVACY).law()
        tails = one_sided_sums(law, 40)
        for degree in range(2, 41 if levels == 1 else 21):
            times = np.arange(degree**levels)
            digits = times if levels == 1 else times // degree + times % degree
            slot_users = -(-(USERS + 1) // degree**levels)
            bounds.append(least(tails, digits) + (slot_users - 1) / 2)
    assert counter_reference(plan)["uniform_tree_error_bound"] == min(bounds)


def test_what_was_wrong_one_shuffler_beside_coins() -> None:
    """One shuffler with coins was shown with discrete Laplace noise, below the plan with two."""
    plan = CounterPlan.plan(users=5000, shufflers=3, privacy=PRIVACY, noise="coins")
    with_coins = counter_reference(plan)["sequential_error_bound"]
    with_laplace = CounterPlan.plan(users=5000, shufflers=1, privacy=PRIVACY, noise="laplace").error_bound
    assert with_laplace < plan.error_bound < with_coins
    rows = {row.cells[0]: row.cells[1] for row in plan.compared().rows}
    assert rows["one shuffler, coins"] == f"{with_coins:,.4g}"


def test_an_honest_fraction_is_the_same_for_all() -> None:
    plan, trusting = planned("laplace", honest_fraction=0.5), planned("laplace")
    found, other = counter_reference(plan), counter_reference(trusting)
    for name in ("uniform_tree_error_bound", "sequential_error_bound"):
        assert found[name] > 1.1 * other[name]
    # A curator counts on nobody.
    assert found["central_error_bound"] == other["central_error_bound"] < plan.error_bound


def test_the_curator_is_the_square_root_of_the_summing_matrix() -> None:
    """By a matrix square root, the Gaussian's own curve, and all batches."""
    users = 60
    epsilon, delta = 1.0, 1e-6

    def curve(sigma: float) -> float:
        one = stats.norm.cdf(0.5 / sigma - epsilon * sigma)
        return one - math.exp(epsilon) * stats.norm.cdf(-0.5 / sigma - epsilon * sigma) - delta

    sigma = optimize.brentq(curve, 1, 20)
    bounds = []
    for batch in range(1, users + 1):
        slots = users // batch
        root = linalg.sqrtm(np.tril(np.ones((slots, slots))) + 1e-12 * np.diag(np.arange(slots))).real
        deviation = sigma * np.linalg.norm(root, axis=0).max() * np.linalg.norm(root, axis=1).max()
        bounds.append(stats.norm.isf(FAILURE / 2 / slots) * deviation + (batch - 1) / 2)
    assert best_curator_bound(users, PRIVACY, 0.95) == pytest.approx(min(bounds), rel=1e-3)


def test_the_curator_is_the_strongest_that_is_known() -> None:
    plan = CounterPlan.plan(users=10**5, shufflers=4, privacy=PRIVACY)
    curators = [curator(10**5, PRIVACY, 0.95) for curator in (best_curator_bound, buffered_curator_bound)]
    assert counter_reference(plan)["central_error_bound"] == min(curators) < plan.error_bound
    # A few buffers are better than the square root here, and the carried plan is that curator but for rounding.
    assert curators[1] < 0.94 * curators[0]
    carried = plan_carried(users=10**5, shufflers=4, privacy=PRIVACY)
    assert curators[1] < carried.error_bound < 1.02 * curators[1]


def test_a_curator_may_take_any_noise() -> None:
    coins = planned("coins")
    assert counter_reference(coins)["central_error_bound"] <= planned("auto").error_bound < coins.error_bound


def test_the_paper_and_the_local_model_by_hand() -> None:
    found = counter_reference(planned("laplace"))
    degree = USERS ** (2 / 5)
    coins = 96 * math.log(2 / (1e-6 / 2)) / 0.5**2
    tails = stats.norm.isf(FAILURE / 2 / degree**2)
    expected = math.sqrt(coins * 2 * (degree - 1)) / 2 * tails + USERS / degree**2 - 1
    assert found["paper_error_bound"] == pytest.approx(expected)
    lie = (1 - 1e-6) / (1 + math.e)
    rates = np.geomspace(1e-4, 1, 200_001)
    moment = np.maximum(*(np.log(p * np.exp(rates) + 1 - p) - rates * p for p in (lie, 1 - lie)))
    expected = ((math.log(2 / FAILURE) + USERS * moment) / rates).min() / (1 - 2 * lie)
    assert found["local_error_bound"] == pytest.approx(expected, rel=1e-6)


def test_numbers_have_their_own_references() -> None:
    """In the unit of their range, with their rounding; the paper has no constants for them."""
    small, large = (
        CounterPlan.plan(users=2000, shufflers=2, privacy=PRIVACY, domain=Reals(20, 0.0, high), noise="laplace")
        for high in (1.0, 10.0)
    )
    found, wide = counter_reference(small), counter_reference(large)
    assert found["paper_error_bound"] is None
    for name in ("uniform_tree_error_bound", "central_error_bound", "sequential_error_bound", "local_error_bound"):
        assert wide[name] == pytest.approx(10 * found[name], rel=1e-6)
    assert found["sequential_error_bound"] >= small.error_bound * (1 - 1e-9)
    lie = 1 / (1 + math.e)
    chances, rates = np.linspace(lie, 1 - lie, 400), np.geomspace(1e-3, 1, 3000)[:, np.newaxis]
    moment = (np.log(chances * np.exp(rates) + 1 - chances) - rates * chances).max(axis=1)
    expected = ((math.log(2 / FAILURE) + 2000 * moment) / rates[:, 0]).min() / (1 - 2 * lie)
    assert found["local_error_bound"] == pytest.approx(expected, rel=1e-3)
