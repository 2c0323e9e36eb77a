"""Range counts: every promise of a plan, exact composition, twins that fail, bounds and quantiles."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from shuffledp.accounting.composition import Composition
from shuffledp.accounting.curves import epsilon_at
from shuffledp.accounting.products import FewerAtomsPair, ProductPair
from shuffledp.accounting.split_coins import BallsPair
from shuffledp.audit.trials import audit_plan
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.messages import Batch
from shuffledp.privacy import Privacy
from shuffledp.protocols.catalogue import plan_from_document
from shuffledp.protocols.domains.axes import Axes, Axis, as_axes
from shuffledp.protocols.histogram.blanket import smallest_blanket
from shuffledp.protocols.ranges import Ranges
from shuffledp.protocols.ranges.bounds import DecoyWeights, every_sum_bound, one_sum_bound
from shuffledp.protocols.ranges.grid import Grid
from shuffledp.protocols.ranges.planning import calibrated
from shuffledp.protocols.ranges.tree import Dyadic, Tree
from shuffledp.randomness import RandomBits
from shuffledp.schedules.interval_trees import IntervalTree
from shuffledp.testing.protocols import check_protocol
from shuffledp.testing.statistics import assert_mean

TARGET = Privacy(1, 1e-6)
LOOSE = Privacy(1, 1e-3)
BAD_VALUES = [[0, 1, 9], [-1], [0.5], ["a"], [], [[1]]]
BAD_PAIRS = [[[0, 4]], [[-1, 0]], [[0.5, 0.5]], [["a", "b"]], [], [[1]], [1, 2]]


def test_a_tree_keeps_every_promise() -> None:
    plan = Tree.plan(users=60, privacy=LOOSE, axes=7, branching=3)
    assert plan.trees[0].sizes == (3, 7)
    check_protocol(plan, np.arange(60) % 7, BAD_VALUES, runs=500)


def test_a_dyadic_tree_keeps_every_promise() -> None:
    plan = Dyadic.plan(users=60, privacy=LOOSE, axes=8)
    check_protocol(plan, np.arange(60) % 8, BAD_VALUES, runs=250)


def test_a_grid_keeps_every_promise() -> None:
    plan = Grid.plan(users=60, privacy=LOOSE, axes=[2, 3], branching=2)
    assert len(plan.levels) == 5
    pairs = np.stack((np.arange(60) % 2, np.arange(60) % 3), axis=1)
    check_protocol(plan, pairs, BAD_PAIRS, runs=150)


# --- privacy -----------------------------------------------------------------------------------


def _view(balls: int, bins: int, probability: float, own: int) -> dict[tuple[int, ...], float]:
    """The law of one level's counts: a user's own node, and balls that may be thrown."""
    views: dict[tuple[int, ...], float] = {}
    outcomes = [(None, 1 - probability)] + [(j, probability / bins) for j in range(bins)]
    for thrown in itertools.product(outcomes, repeat=balls):
        counts = [0] * bins
        counts[own] += 1
        for place, _ in thrown:
            if place is not None:
                counts[place] += 1
        key = tuple(counts)
        views[key] = views.get(key, 0.0) + math.prod(weight for _, weight in thrown)
    return views


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.3])
def test_the_product_is_the_whole_view(epsilon: float) -> None:
    """Two levels of a tree with 2 and 4 nodes, outcome by outcome, for every pair of values."""
    levels = [(3, 2, 0.8), (4, 4, 0.6)]
    worst = 0.0
    for x, other in itertools.permutations(range(4), 2):
        p = [_view(*level, own) for level, own in zip(levels, (x // 2, x), strict=True)]
        q = [_view(*level, own) for level, own in zip(levels, (other // 2, other), strict=True)]
        delta = 0.0
        for first, second in itertools.product(set(p[0]) | set(q[0]), set(p[1]) | set(q[1])):
            here = p[0].get(first, 0) * p[1].get(second, 0)
            delta += max(0.0, here - math.exp(epsilon) * q[0].get(first, 0) * q[1].get(second, 0))
        worst = max(worst, delta)
    product = ProductPair([BallsPair(balls, probability / bins) for balls, bins, probability in levels])
    assert worst <= product.delta(epsilon) <= worst * 1.01 + 1e-9


def test_fewer_atoms_dominate_and_lose_little() -> None:
    balls = BallsPair(1_000_000, 171e-6)
    for epsilon in (0.3, 0.8):
        exact = Composition([(balls, 2)]).delta(epsilon)
        assert balls.delta(epsilon) <= FewerAtomsPair(balls).delta(epsilon)
        assert exact * (1 - 1e-4) <= ProductPair([balls, balls]).delta(epsilon) <= exact * 1.02


@pytest.mark.parametrize(
    "plan",
    [
        Tree.plan(users=1000, privacy=TARGET, axes=64, branching=8),
        Dyadic.plan(users=100_000, privacy=TARGET, axes=32),
        Grid.plan(users=10_000, privacy=LOOSE, axes=[16, 9], branching=4),
    ],
    ids=["tree", "dyadic", "grid"],
)
def test_a_fifth_less_noise_misses(plan) -> None:
    assert 0.95 <= plan.guarantee().delta / plan.privacy.delta <= 1
    with pytest.raises(InfeasibleError):
        dataclasses.replace(plan, probabilities=tuple(0.8 * each for each in plan.probabilities))


def test_composition_beats_equal_parts_of_epsilon() -> None:
    users, sizes = 100_000, IntervalTree(256, 2).sizes
    coins, probabilities = calibrated(TARGET, users, sizes, (1.0,) * 8)
    equal = smallest_blanket(Privacy(1 / 8, 1e-6 / 8))
    assert users * coins[0] * probabilities[0] / sizes[0] < equal / 6


def test_the_audit_catches_half_the_noise() -> None:
    plan = Tree.plan(users=12, privacy=Privacy(1, 1e-2), axes=4, branching=2)
    trials = 60_000
    assert audit_plan(plan, bits=RandomBits.seeded(1), trials=trials).verdict == "stands"
    assert audit_plan(plan, bits=RandomBits.seeded(2), trials=trials, sabotage=0.5).verdict == "refuted"
    quieter = plan.twin(0.5)
    assert quieter.blanket_means == pytest.approx([mean / 2 for mean in plan.blanket_means])


def test_dropouts_cost_what_the_accountant_says() -> None:
    plan = Tree.plan(users=1000, privacy=LOOSE, axes=32, branching=6, honest_fraction=0.5)
    assert plan.pair(500).delta(1.0) <= 1e-3
    assert plan.epsilon_with(0.25) > 1.2


# --- planning ----------------------------------------------------------------------------------


def test_the_planner_keeps_to_the_limit_and_beats_other_branchings() -> None:
    asked = {"users": 100_000, "privacy": LOOSE, "domain": 100}
    few = Ranges.plan(**asked, max_messages=6)
    many = Ranges.plan(**asked, max_messages=20)
    assert few.messages_per_user_max <= 6 and many.messages_per_user_max <= 20
    assert many.errors.prefix < few.errors.prefix
    wide = Ranges.plan(**asked, branching=32)
    assert many.errors.prefix < wide.errors.prefix or wide.messages_per_user_max > 20
    with pytest.raises(InfeasibleError, match="max_messages"):
        Ranges.plan(**asked, max_messages=1)


def test_the_papers_own_constants_are_far_off() -> None:
    asked = {"users": 100_000, "privacy": LOOSE, "axes": 64}
    assert Dyadic.plan(**asked, constants="paper").errors.prefix > 5 * Dyadic.plan(**asked).errors.prefix


def test_references_stand_where_they_should() -> None:
    plan = Ranges.plan(users=100_000, privacy=LOOSE, domain=1024, branching=11)
    reference = plan.reference()
    assert plan.errors.prefix < 2 * reference["central_prefix_standard_error"]
    assert 20 * plan.errors.prefix < reference["local_prefix_standard_error"]
    assert 20 * plan.errors.prefix < reference["paper_prefix_standard_error"]


# --- errors ------------------------------------------------------------------------------------


def test_variances_of_ranges_and_rectangles_are_exact() -> None:
    """From decoys' weights, against the covariance of the whole linear map from centred counts to values."""
    for plan in (
        Tree.plan(users=500, privacy=LOOSE, axes=11, branching=3),
        Grid.plan(users=500, privacy=LOOSE, axes=[5, 4], branching=2),
    ):
        columns, covariance = [], []
        for level, (nodes, mean) in enumerate(zip(plan.level_sizes, plan.blanket_means, strict=True)):
            for node in range(nodes):
                counts = [np.zeros(shape) for shape in plan.level_shapes]
                counts[level].reshape(-1)[node] = 1.0
                # The root's part is left out by taking differences.
                columns.append((plan._leaves(counts) - plan._leaves([0 * each for each in counts])).reshape(-1))
            covariance.append(mean * (np.eye(nodes) - 1 / nodes))
        solver = np.array(columns).T
        whole = np.zeros((solver.shape[1],) * 2)
        start = 0
        for block in covariance:
            whole[start : start + len(block), start : start + len(block)] = block
            start += len(block)
        leaves = solver @ whole @ solver.T
        assert np.asarray(plan.standard_errors_for([])) ** 2 == pytest.approx(np.diag(leaves))
        functionals = [np.zeros(axis.size) for axis in plan.axes]
        for functional in functionals:
            functional[1:4] = 1.0
        joint = functionals[0] if len(functionals) == 1 else np.outer(*functionals).reshape(-1)
        variance = sum(level.variance for level in plan.level_weights(tuple(functionals)))
        assert variance == pytest.approx(joint @ leaves @ joint)


def test_moments_are_exact() -> None:
    """Against the sum over all outcomes of a few coins."""
    weights = np.array([0.5, -0.2, 0.1])
    level = DecoyWeights(3, 0.4, weights, np.full(3, 1 / 3))
    centred = weights - weights.mean()
    outcomes = [(0.0, 0.6)] + [(float(each), 0.4 / 3) for each in centred]
    moment = 0.0
    for thrown in itertools.product(outcomes, repeat=3):
        moment += math.prod(p for _, p in thrown) * math.exp(0.7 * sum(x for x, _ in thrown))
    assert level.log_moment(0.7) == pytest.approx(math.log(moment))


def test_bounds_hold_and_are_not_idle() -> None:
    """800 runs: each bound fails in at most 5% of them (Hoeffding, false alarm 1e-9), and half of it fails often."""
    plan = Tree.plan(users=300, privacy=LOOSE, axes=30, branching=4)
    codes = np.arange(300) ** 2 % 30
    truth = plan.true_value(codes)
    bits, runs = RandomBits.seeded(5), 800
    estimates = [plan.sample_estimate(codes, bits=bits) for _ in range(runs)]
    errors = np.array([estimate.value - truth for estimate in estimates])
    prefixes = np.abs(np.cumsum(errors, axis=1)).max(axis=1)
    one = plan.ranges(estimates[0]).count(3, 17)
    several = np.abs(errors[:, 3:18].sum(axis=1))
    slack = math.sqrt(math.log(1e9) / (2 * runs))
    for worst, bound in (
        (prefixes, plan.errors.prefix_bound),
        (np.abs(errors).max(axis=1), plan.errors.value_bound),
        (several, one.bound),
    ):
        assert (worst > bound).mean() <= 0.05 + slack
        assert (worst > bound / 2).mean() > 0.05 + slack
    assert_mean(several**2 / one.standard_error**2, 1.0, 1.6, false_alarm=1e-9)


def test_a_bound_for_one_sum_is_below_that_for_many() -> None:
    level = DecoyWeights(10_000, 0.1, np.array([1.0, 0.0]), np.full(2, 0.5))
    alone = one_sum_bound([level])
    assert 1.9 * math.sqrt(level.variance) < alone < 2.9 * math.sqrt(level.variance)
    assert alone <= every_sum_bound(np.full(10, level.variance), np.ones(10))


# --- what is read ------------------------------------------------------------------------------


def test_counts_quantiles_and_the_distribution_function() -> None:
    users = 20_000
    plan = Ranges.plan(users=users, privacy=LOOSE, domain=Axis(-50, 205), branching=16)
    ages = np.random.default_rng(3).normal(60, 30, users).round().clip(-50, 205)
    codes = plan.encode(ages)
    ranges = plan.ranges(plan.sample_estimate(codes, bits=RandomBits.seeded(4)))
    counted = ranges.count(40, 80)
    assert abs(counted.value - ((ages >= 40) & (ages <= 80)).sum()) <= counted.bound < 300
    assert ranges.count(-50, 205).value == pytest.approx(users)
    assert ranges.count(-50, 205).bound == pytest.approx(0.0, abs=1e-6)
    share = ranges.cdf()
    assert (np.diff(share) >= 0).all() and share[0] >= 0 and share[-1] <= 1
    for q in (0.0, 0.1, 0.5, 0.9, 1.0):
        found = ranges.quantile(q)
        true = np.sort(ages)[max(0, math.ceil(q * users) - 1)]
        assert found.lower <= found.value <= found.upper
        assert found.lower <= true <= found.upper
    assert ranges.median() == ranges.quantile(0.5)
    with pytest.raises(ParameterError, match="q"):
        ranges.quantile(1.2)
    with pytest.raises(ParameterError, match="range"):
        ranges.count(0, 300)


def test_rectangles() -> None:
    users = 20_000
    plan = Ranges.plan(users=users, privacy=LOOSE, domain=[16, (0.0, 1.0, 8)], branching=4)
    draws = np.random.default_rng(6)
    values = np.stack((draws.integers(0, 16, users), draws.beta(2, 5, users)), axis=1)
    ranges = plan.ranges(plan.sample_estimate(plan.encode(values), bits=RandomBits.seeded(7)))
    counted = ranges.count((3, 9), (0.25, 0.75))
    inside = (values[:, 0] >= 3) & (values[:, 0] <= 9) & (values[:, 1] >= 0.25) & (values[:, 1] < 0.75)
    assert abs(counted.value - inside.sum()) <= counted.bound < 400
    with pytest.raises(ParameterError, match="range"):
        ranges.count((3, 9), (0.2, 0.7))


def test_domains() -> None:
    assert as_axes((0, 9)) == (Axis(0, 9),)
    assert Axis(0.0, 10.0, 5).encode([0.0, 1.99, 2.0, 10.0]).tolist() == [0, 0, 1, 4]
    assert Axes((Axis(-3, 3),)).clip_own_values([-5, 0, 9])[1] == 2
    for bad in ((5, 5), (0.5, 3), (0, 1, 1), (0, float("nan"))):
        with pytest.raises(ParameterError):
            as_axes(bad)
    for values in ([0.5], [7], ["a"], []):
        with pytest.raises(ParameterError):
            Axis(0, 5).encode(values)
    with pytest.raises(ParameterError, match="axes"):
        Ranges.plan(users=100, privacy=TARGET, domain=[4, 4, 4])
    with pytest.raises(ParameterError, match="dyadic"):
        Ranges.plan(users=100, privacy=TARGET, domain=8, method="dyadic", branching=4)


def test_the_quick_epsilon_is_the_searched_one() -> None:
    pair = ProductPair([BallsPair(1000, 0.05), BallsPair(2000, 0.02)])
    assert pair.epsilon(1e-4) == pytest.approx(epsilon_at(pair, 1e-4), rel=1e-3)


def test_a_message_that_is_dropped_widens_what_it_can_have_moved() -> None:
    plan = Tree.plan(users=300, privacy=LOOSE, axes=30, branching=4)
    reports = plan.randomize(np.arange(300) % 30, bits=RandomBits.seeded(8))
    whole = plan.analyze(Batch(reports.payloads, 300))
    prefixes = np.cumsum(whole.value)
    for place in range(0, reports.payloads.size, 97):
        broken = reports.payloads.copy()
        broken[place] = plan.alphabet_size
        found = plan.analyze(Batch(broken, 300))
        assert found.dropped == 1 and found.bound == pytest.approx(whole.bound + plan.message_influence)
        assert np.abs(np.cumsum(found.value) - prefixes).max() <= plan.errors.reach


@pytest.mark.parametrize(("domain", "methods"), [(20, ("grid",)), ([4, 6], ("tree", "dyadic"))])
def test_a_file_whose_method_has_another_number_of_axes_is_refused_in_a_sentence(domain, methods) -> None:
    document = Ranges.plan(users=1000, privacy=Privacy(1, 1e-6), domain=domain, branching=3).document()
    for method in methods:
        with pytest.raises(ParameterError, match=r"^domain must be"):
            plan_from_document(document | {"method": method})


def test_a_domain_wider_than_the_largest_number_is_refused() -> None:
    """Its cells would be made of infinities: every value's code came out below 0."""
    with pytest.raises(ParameterError, match=r"^domain must have a finite width"):
        Axis(-1.7e308, 1.7e308, 10)
