import math

import numpy as np
import pytest

from shuffledp.accounting.laws import Binomial, DiscreteLaplace
from shuffledp.continual.noise import calibrate
from shuffledp.continual.planner import best_layout
from shuffledp.continual.request import CountRequest
from shuffledp.continual.uniform_tree import best_uniform_tree, prefixes_up_to, slot_users_for
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.schedules.prefixes import PrefixSchedule
from shuffledp.schedules.uniform import uniform_schedule

SMALL = [(d, k) for d in range(2, 9) for k in range(1, 7) if d**k <= 1000]


def nodes_of_the_paper(degree: int, shufflers: int, lowest: int, time: int) -> set[tuple[int, int]]:
    """[000] Definition 3.1: the left siblings of all inner nodes on the path from the root to leaf time + 1.

    Nodes are first leaf and number of leaves; the root has degree^shufflers * lowest leaves.
    """
    found = set()
    start, size = 0, degree**shufflers * lowest
    for _ in range(shufflers):
        size //= degree
        onto = (time - start) // size
        found |= {(start + sibling * size, size) for sibling in range(onto)}
        start += onto * size
    return found


def nodes_of(schedule: PrefixSchedule, time: int) -> set[tuple[int, int]]:
    """The batches that the estimate after so many users is made of."""
    found, end, users = set(), time // schedule.slot_users, schedule.slot_users
    while end:
        start = int(schedule.parents[end])
        found.add((start * users, (end - start) * users))
        end = start
    return found


@pytest.mark.parametrize(("degree", "shufflers"), SMALL)
@pytest.mark.parametrize("lowest", [1, 3])
def test_estimates_are_those_of_algorithm_3(degree: int, shufflers: int, lowest: int) -> None:
    schedule = uniform_schedule(degree, shufflers, lowest)
    assert schedule.slots == degree**shufflers
    for time in range(0, schedule.slots * lowest, 1 + schedule.slots // 200):
        assert nodes_of(schedule, time) == nodes_of_the_paper(degree, shufflers, lowest, time)


@pytest.mark.parametrize("height", range(2, 9))
def test_estimates_are_those_of_algorithm_2(height: int) -> None:
    """Binary, over n = 2^height leaves with log2 n - 1 shufflers: nodes are those with more than one leaf."""
    schedule = uniform_schedule(2, height - 1, 2)
    assert schedule.slots * schedule.slot_users == 2**height
    for time in range(2**height):
        blocks = {((time >> (at + 1)) << (at + 1), 1 << at) for at in range(1, height) if time >> at & 1}
        assert nodes_of(schedule, time) == blocks


def test_figure_2_of_the_paper() -> None:
    schedule = uniform_schedule(2, 2, 2)
    assert nodes_of(schedule, 6) == nodes_of(schedule, 7) == {(0, 4), (4, 2)}


@pytest.mark.parametrize(("degree", "shufflers"), SMALL)
def test_levels_overlap_and_depths(degree: int, shufflers: int) -> None:
    schedule = uniform_schedule(degree, shufflers, 1)
    times = np.arange(schedule.slots)
    digits = np.stack([times // degree**at % degree for at in range(shufflers)])
    assert schedule.depths.tolist() == digits.sum(axis=0).tolist()
    assert schedule.depths.max() == shufflers * (degree - 1)
    assert schedule.overlap() <= shufflers
    for level, ends in enumerate(schedule.ends_by_level, start=1):
        assert (ends - schedule.parents[ends] == degree ** (level - 1)).all()
        assert (schedule.parents[ends][1:] >= ends[:-1]).all()


@pytest.mark.parametrize(("degree", "shufflers"), SMALL)
def test_prefixes_are_counted_exactly(degree: int, shufflers: int) -> None:
    depths = uniform_schedule(degree, shufflers, 1).depths
    counted = [prefixes_up_to(j, degree, shufflers) for j in range(int(depths.max()) + 1)]
    assert counted == np.cumsum(np.bincount(depths)).tolist()
    coefficients = np.array([1], dtype=object)
    for _ in range(shufflers):
        coefficients = np.convolve(coefficients, np.ones(degree, dtype=object))
    assert counted == np.cumsum(coefficients).tolist()


def test_prefixes_beyond_the_floats_are_counted_exactly() -> None:
    assert prefixes_up_to(64 * 99, 100, 64) == 100**64


@pytest.mark.parametrize(
    ("degree", "shufflers", "slot_users"), [(1, 2, 1), (2, 0, 1), (2, 2, 0), (2, 32, 1), (0, 1, 1)]
)
def test_bad_parameters_are_refused(degree: int, shufflers: int, slot_users: int) -> None:
    with pytest.raises(ParameterError, match="degree"):
        uniform_schedule(degree, shufflers, slot_users)


def laplace(levels: int) -> DiscreteLaplace:
    return DiscreteLaplace(math.exp(-1 / levels))


def plain_bound(users: int, degree: int, levels: int, failure: float) -> float:
    """The union over all prefixes, by convolving the noise's masses one after the other."""
    reach = 300
    masses = np.exp(laplace(levels).log_pmf(np.arange(-reach, reach + 1.0)))
    depths = np.bincount(uniform_schedule(degree, levels, 1).depths)
    law, passed = np.array([1.0]), np.zeros(reach)
    for count in depths[1:]:
        law = np.convolve(law, masses)
        centre = law.size // 2
        law = law[max(0, centre - reach) : centre + reach + 1]
        # Symmetric: twice what lies above a, added up from the far end.
        passed += 2 * count * np.cumsum(law[::-1])[reach - 1 :: -1]
    return float(np.argmax(passed <= failure)) + (slot_users_for(users, degree, levels) - 1) / 2


@pytest.mark.parametrize("users", [20, 300, 2000])
def test_the_best_tree_is_the_best_of_all_by_brute_force(users: int) -> None:
    found = best_uniform_tree(users, 3, laplace, 0.9)
    assert found.bound == plain_bound(users, found.degree, found.shufflers, 1 - 0.9)
    tried = [(d, k) for k in (1, 2, 3) for d in range(2, {1: 61, 2: 25, 3: 10}[k]) if (d - 1) ** k <= users]
    assert found.bound <= min(plain_bound(users, d, k, 1 - 0.9) for d, k in tried)
    assert found.slot_users == slot_users_for(users, found.degree, found.shufflers)
    assert found.slot_users * found.degree**found.shufflers > users


def test_simulated_errors_stay_within_the_bound() -> None:
    users, runs = 5000, 2000
    tree = best_uniform_tree(users, 3, laplace)
    schedule = uniform_schedule(tree.degree, tree.shufflers, tree.slot_users)
    generator, stop = np.random.default_rng(5), 1 - laplace(tree.shufflers).p
    noise = generator.geometric(stop, (schedule.batches, runs)) - generator.geometric(stop, (schedule.batches, runs))
    largest = np.abs(schedule.prefix_sums(noise)).max(axis=0)
    # 5% of 2000 runs are 100; 170 would be a false alarm of less than 1e-9.
    assert (largest > tree.bound - (tree.slot_users - 1) / 2).sum() < 170


@pytest.mark.parametrize(
    ("users", "shufflers", "bound"),
    [(10**4, 3, 67.5), (10**5, 4, 114.0), (10**6, 1, 448.0), (10**6, 2, 202.0), (10**6, 4, 173.0), (10**9, 8, 430.5)],
)
def test_figures_with_discrete_laplace_noise(users: int, shufflers: int, bound: float) -> None:
    assert best_uniform_tree(users, shufflers, laplace).bound == pytest.approx(bound, rel=0.005)


def test_coins_are_far_below_the_papers_constants_and_below_plain_gaussian_tails() -> None:
    privacy = Privacy(1, 1e-6)
    bound = best_uniform_tree(10**6, 4, lambda levels: calibrate("coins", levels, privacy).law()).bound
    assert bound == pytest.approx(235, abs=2)
    assert bound < 284


def test_more_shufflers_are_never_worse_and_the_combinatorial_schedule_is_better() -> None:
    bounds = [best_uniform_tree(10**5, shufflers, laplace).bound for shufflers in (1, 2, 3, 4)]
    assert bounds == sorted(bounds, reverse=True)
    for users in (10**4, 10**6, 10**8):
        privacy = Privacy(1, 1e-6)
        asked = CountRequest(users=users, shufflers=4, privacy=privacy, noise="laplace", estimator="completed")
        layout = best_layout(asked)
        assert layout.bound < best_uniform_tree(users, 4, laplace).bound


def test_a_noise_with_a_mean_is_measured_from_it() -> None:
    assert best_uniform_tree(1000, 2, lambda _: Binomial(80, 0.5)).bound < 100


@pytest.mark.parametrize(("users", "shufflers", "confidence"), [(0, 1, 0.95), (10, 0, 0.95), (10, 1, 1.0), (10, 1, 0)])
def test_bad_parameters_of_the_best_tree_are_refused(users: int, shufflers: int, confidence: float) -> None:
    with pytest.raises(ParameterError):
        best_uniform_tree(users, shufflers, laplace, confidence)
