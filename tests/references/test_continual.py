import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from scipy import linalg, signal, special, stats

from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.errors import DataError, ParameterError
from shuffledp.privacy import Privacy
from shuffledp.references.continual.horizon import chernoff_bound, gaussian_factor
from shuffledp.references.continual.local_counter import local_error_bound
from shuffledp.references.continual.paper_counter import PaperCounter
from shuffledp.references.continual.paper_tree import paper_tree_error_bound
from shuffledp.references.continual.square_root import (
    best_curator_bound,
    curator_bounds,
    square_root_coefficients,
    sum_of_squares,
)
from shuffledp.references.local import LocalRandomizedResponse
from shuffledp.testing.statistics import assert_deviation, assert_mean

PRIVACY = Privacy(1, 1e-6)
USERS = 200
VALUES = np.arange(USERS) % 3 == 0
# Where no slot of seven users ends.
HARD = 127


@dataclass(frozen=True)
class SquareRoot:
    """The curator's mechanism itself, run: what `curator_bounds` bounds."""

    users: int
    privacy: Privacy
    batch: int = 1

    @property
    def slots(self) -> int:
        return self.users // self.batch

    def standard_error_at(self, time: int) -> float:
        rows, column = sum_of_squares([time // self.batch, self.slots])
        return gaussian_standard_deviation(self.privacy) * math.sqrt(float(rows) * float(column))

    def error_bound(self, confidence: float) -> float:
        return float(curator_bounds(self.users, np.array([self.batch]), self.privacy, confidence)[0])

    def run(self, values, *, generator: np.random.Generator) -> np.ndarray:
        after, prefixes = np.arange(1, self.users + 1), np.zeros(self.slots + 1)
        if self.slots:
            full = np.asarray(values)[: self.slots * self.batch].reshape(self.slots, self.batch)
            sigma = gaussian_standard_deviation(self.privacy, math.sqrt(float(sum_of_squares(self.slots))))
            drawn = sigma * generator.standard_normal(self.slots)
            noise = signal.fftconvolve(square_root_coefficients(self.slots), drawn)[: self.slots]
            prefixes[1:] = np.cumsum(full.sum(axis=1)) + noise
        return prefixes[after // self.batch] + (after % self.batch) / 2


@dataclass(frozen=True)
class LocalCounter:
    """The running sum of all users' randomized responses, each made unbiased: what `local_error_bound` bounds."""

    users: int
    privacy: Privacy

    def standard_error_at(self, time: int) -> float:
        return LocalRandomizedResponse(users=time, privacy=self.privacy).standard_error

    def error_bound(self, confidence: float) -> float:
        return local_error_bound(self.users, self.privacy, confidence)

    def run(self, values, *, generator: np.random.Generator) -> np.ndarray:
        lie = LocalRandomizedResponse(users=1, privacy=self.privacy).lie_probability
        answers = np.cumsum(np.asarray(values).astype(bool) ^ (generator.random(self.users) < lie))
        return (answers - lie * np.arange(1, self.users + 1)) / (1 - 2 * lie)


REFERENCES = [
    SquareRoot(USERS, PRIVACY),
    SquareRoot(USERS, PRIVACY, batch=7),
    LocalCounter(USERS, PRIVACY),
]


@cache
def errors_of(reference, runs: int = 2000, seed: int = 1) -> np.ndarray:
    generator = np.random.default_rng(seed)
    truth = np.cumsum(VALUES)
    return np.stack([reference.run(VALUES, generator=generator) - truth for _ in range(runs)])


@pytest.mark.parametrize("reference", REFERENCES, ids=repr)
def test_errors_have_the_law_that_is_stated(reference) -> None:
    errors = errors_of(reference)
    for time in (HARD, USERS):
        batch = getattr(reference, "batch", 1)
        # Half of the users since, less the ones among them.
        since = time % batch
        middle = since / 2 - VALUES[time - since : time].sum()
        deviation = reference.standard_error_at(time)
        assert_mean(errors[:, time - 1], middle, deviation, false_alarm=1e-9)
        assert_deviation(errors[:, time - 1], deviation, false_alarm=1e-9)
        with pytest.raises(AssertionError):
            assert_deviation(0.8 * errors[:, time - 1], deviation, false_alarm=1e-9)
    # Nothing passes the last deviation.
    largest = max(reference.standard_error_at(time) for time in range(1, USERS + 1))
    assert reference.standard_error_at(USERS) == pytest.approx(largest)


@pytest.mark.parametrize("reference", REFERENCES, ids=repr)
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_bounds_are_not_passed_more_often_than_stated(reference, confidence: float) -> None:
    largest = np.abs(errors_of(reference, seed=2)).max(axis=1)
    passed = int((largest > reference.error_bound(confidence)).sum())
    assert stats.binom.sf(passed - 1, largest.size, 1 - confidence) > 1e-9
    # And none of them is idle: at a third of it nearly every run is past.
    assert (largest > reference.error_bound(confidence) / 3).mean() > 0.5


@pytest.mark.parametrize(
    ("users", "single", "batched"),
    [(10**4, 77.1, 59.4), (10**5, 100.5, 80.0), (10**6, 125.8, 102.7), (10**8, 182.1, 154.0)],
)
def test_figures_of_the_square_root(users: int, single: float, batched: float) -> None:
    assert curator_bounds(users, np.array([1]), PRIVACY, 0.95)[0] == pytest.approx(single, abs=0.05)
    best = best_curator_bound(users, PRIVACY, 0.95)
    assert best == pytest.approx(batched, abs=0.05)
    assert (best <= curator_bounds(users, np.arange(1, 60), PRIVACY, 0.95)).all()


@pytest.mark.parametrize(("users", "epsilon"), [(1, 1.0), (2, 1.0), (30, 1.0), (500, 0.1), (500, 10.0)])
def test_the_best_batch_is_the_best_of_all(users: int, epsilon: float) -> None:
    privacy = Privacy(epsilon, 1e-6)
    bounds = curator_bounds(users, np.arange(1, users + 2), privacy, 0.9)
    assert best_curator_bound(users, privacy, 0.9) == bounds.min()


def test_sums_of_squares_go_on_where_the_expansion_begins() -> None:
    terms = 5000
    factors = np.concatenate(([1.0], 1 - 1 / (2 * np.arange(1.0, terms))))
    direct = np.cumsum(np.cumprod(factors) ** 2)
    np.testing.assert_allclose(sum_of_squares(np.arange(1, terms + 1)), direct, rtol=1e-12)
    assert sum_of_squares(0) == 0


def test_the_square_root_is_one_and_two_times_are_dependent_as_it_says() -> None:
    column = np.array([math.comb(2 * k, k) / 4**k for k in range(USERS)])
    root = np.tril(linalg.toeplitz(column))
    np.testing.assert_allclose(root @ root, np.tril(np.ones_like(root)), atol=1e-9)
    reference = SquareRoot(USERS, PRIVACY)
    scale = reference.standard_error_at(USERS) / float(sum_of_squares(USERS)) * np.linalg.norm(column)
    errors = errors_of(reference)
    for earlier, later in ((HARD, USERS), (USERS - 1, USERS)):
        change = scale * np.linalg.norm(root[later - 1] - root[earlier - 1])
        assert_deviation(errors[:, later - 1] - errors[:, earlier - 1], change, false_alarm=1e-9)


@pytest.mark.parametrize("users", [1, 100, 10**4, 10**8])
@pytest.mark.parametrize("epsilon", [0.01, 1, 5, 100])
def test_the_local_bound_is_between_the_last_times_deviation_and_hoeffdings_bound(users: int, epsilon: float) -> None:
    count = LocalCounter(users, Privacy(epsilon, 1e-6))
    width = 1 / math.tanh(epsilon / 2)
    assert (
        count.standard_error_at(users)
        < count.error_bound(0.95)
        <= width * math.sqrt(users * math.log(40) / 2) * (1 + 1e-5)
    )


def test_the_local_bound_holds_for_every_number_of_ones() -> None:
    users = 60
    count = LocalCounter(users, PRIVACY)
    bound, generator = count.error_bound(0.95), np.random.default_rng(3)
    for ones in (0, 20, 60):
        values = (np.arange(users) < ones).astype(int)
        runs = [np.abs(count.run(values, generator=generator) - np.cumsum(values)).max() for _ in range(2000)]
        assert stats.binom.sf((np.array(runs) > bound).sum() - 1, 2000, 0.05) > 1e-9


@pytest.mark.parametrize(
    ("users", "shufflers", "bound"),
    [
        (10**4, 3, 1549),
        (10**4, 4, 1765),
        (10**5, 4, 2578),
        (10**6, 1, 8617),
        (10**6, 2, 4234),
        (10**6, 3, 3654),
        (10**6, 4, 3666),
        (10**6, 8, 4839),
        (10**8, 8, 7594),
    ],
)
def test_figures_of_the_paper(users: int, shufflers: int, bound: int) -> None:
    assert round(paper_tree_error_bound(users, shufflers, PRIVACY, 0.95)) == bound


def test_chernoffs_bound_is_the_gaussians_and_above_its_tail() -> None:
    for cost in (0.1, 3.0, 40.0):
        bound = chernoff_bound(lambda rate: 8 * rate**2, cost, 1000.0)
        assert bound == pytest.approx(4 * math.sqrt(2 * cost), rel=1e-9)
        assert special.ndtr(-bound / 4) < math.exp(-cost)
    assert gaussian_factor(1, 0.05) == pytest.approx(stats.norm.isf(0.025))


@pytest.mark.parametrize("bound", [local_error_bound, best_curator_bound])
def test_bad_parameters_are_refused(bound) -> None:
    with pytest.raises(ParameterError, match="users"):
        bound(0, PRIVACY, 0.95)
    for confidence in (0.0, 1.0, math.nan):
        with pytest.raises(ParameterError, match="confidence"):
            bound(4, PRIVACY, confidence)


def test_bad_parameters_of_the_papers_counters_are_refused() -> None:
    with pytest.raises(ParameterError, match="shufflers"):
        paper_tree_error_bound(100, 0, PRIVACY, 0.95)
    counter = PaperCounter.k_shufflers(users=4, shufflers=1, privacy=PRIVACY)
    for values in ([0, 1, 1], [[0, 1], [1, 0]], [0, 1, 2, 0], [0, 0.5, 1, 1]):
        with pytest.raises(DataError, match="values"):
            counter.run(values, generator=np.random.default_rng(1))


@pytest.mark.parametrize("users", [1, 2, 33])
def test_a_batch_of_more_than_all_users_is_the_midpoint_alone(users: int) -> None:
    midpoint = SquareRoot(users, PRIVACY, batch=users + 1)
    assert midpoint.error_bound(0.95) == users / 2
    estimates = midpoint.run(np.ones(users), generator=np.random.default_rng(1))
    np.testing.assert_array_equal(estimates, np.arange(1, users + 1) / 2)


@pytest.mark.parametrize("accounting", ["paper", "simple", "exact"])
def test_the_papers_algorithms_run_as_written(accounting: str) -> None:
    counter = PaperCounter.k_shufflers(users=3000, shufflers=2, privacy=PRIVACY, accounting=accounting)
    tree = PaperCounter.binary_tree(users=3000, privacy=PRIVACY, accounting=accounting)
    values = np.arange(3000) % 2
    truth = np.cumsum(values)
    for each in (counter, tree):
        generator = np.random.default_rng(1)
        last = each.users // each.slot_users
        depth = int(each.schedule.depths[last])
        time = last * each.slot_users
        errors = [each.run(values, generator=generator)[time - 1] - truth[time - 1] for _ in range(400)]
        assert_mean(errors, 0.0, np.sqrt(each.coins * depth) / 2)
        assert_deviation(errors, np.sqrt(each.coins * depth) / 2)
        largest = [np.abs(each.run(values, generator=generator) - truth).max() for _ in range(60)]
        assert np.mean(np.array(largest) > each.error_bound(0.95)) <= 0.2


def test_what_each_improvement_is_worth() -> None:
    coins = [
        PaperCounter.k_shufflers(users=10**6, shufflers=4, privacy=PRIVACY, accounting=each).coins
        for each in ("paper", "simple", "exact")
    ]
    assert coins[2] == 288 and np.sqrt(coins[1]) / 2 == pytest.approx(16.65, abs=0.01)
    assert np.sqrt(coins[0]) / 2 == pytest.approx(78.1, abs=0.1)
