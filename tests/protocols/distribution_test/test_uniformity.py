"""Distribution tests: declared errors hold as declared and as simulated, message by message and by law."""

import dataclasses
import math

import numpy as np
import pytest

from shuffledp.errors import InfeasibleError, ParameterError, TooFewReportsError
from shuffledp.messages import Batch
from shuffledp.privacy import Privacy
from shuffledp.protocols.distribution_test import UniformityTest
from shuffledp.protocols.distribution_test.base import _null_scores
from shuffledp.protocols.distribution_test.moments import balls_moments
from shuffledp.protocols.histogram.decoys import Decoys
from shuffledp.randomness import RandomBits
from shuffledp.references.null_laws import collision_scores, hard_law
from shuffledp.simulation.run import simulate
from shuffledp.testing.statistics import assert_mean, assert_same_law

TARGET = Privacy(1, 1e-6)
D, DISTANCE = 100, 0.25
LARGE = {"users": 1600, "privacy": TARGET, "categories": D, "distance": DISTANCE}
SMALL = {"users": 300, "privacy": TARGET, "categories": 12, "distance": 0.4}
CLAIM = tuple((np.arange(1, 13) / 78).tolist())


def _failures_allowed(rate: float, runs: int) -> float:
    """Hoeffding: exceeded with probability 1e-9 if the rate is true."""
    return runs * rate + math.sqrt(runs * math.log(1e9) / 2)


@pytest.mark.parametrize(("method", "users"), [("decoys", 1600), ("compressed", 1600), ("rows", 2000)])
@pytest.mark.parametrize("certificate", ["simulated", "proved"])
def test_errors_are_below_a_third_as_declared_and_as_simulated(method: str, users: int, certificate: str) -> None:
    plan = UniformityTest.plan(**{**LARGE, "users": users}, method=method, false_alarm=0.3, certificate=certificate)
    assert plan.declared_false_alarm <= 1 / 3 and plan.declared_miss <= 1 / 3
    alarms = np.mean(plan._scores(np.full(plan.bins, 1 / plan.bins), 3000, 11) > plan.threshold)
    assert alarms <= plan.declared_false_alarm
    assert plan.simulated_miss() <= plan.declared_miss


def test_simulated_thresholds_are_sharper_and_cannot_be_certified_too_far_out() -> None:
    sharp, proved = (UniformityTest.plan(**LARGE, certificate=kind) for kind in ("simulated", "proved"))
    assert 1.645 < sharp.threshold < 2.2 < proved.threshold == pytest.approx(math.sqrt(19))
    rare = UniformityTest.plan(**LARGE, false_alarm=1e-4)
    assert rare.threshold == pytest.approx(math.sqrt(9999))


@pytest.mark.parametrize("method", ["decoys", "compressed", "rows"])
@pytest.mark.parametrize("against", [None, CLAIM])
def test_messages_have_the_law_that_is_simulated(method: str, against) -> None:
    plan = UniformityTest.plan(**SMALL, method=method, against=against)
    bits, generator = RandomBits.seeded(1), np.random.default_rng(2)
    law = np.full(12, 1 / 12) if against is None else np.array(against)
    users = generator.choice(12, (400, 300), p=law)
    verdicts = [simulate(plan, row, bits=bits) for row in users]
    scores = [verdict.score for verdict in verdicts]
    assert_mean(scores, 0.0, 1.0)
    assert_same_law(scores, _null_scores(plan))
    assert sum(verdict.rejected for verdict in verdicts) <= _failures_allowed(plan.declared_false_alarm, 400)
    # A p-value is below any level no more often than that.
    assert sum(verdict.p_value <= 0.1 for verdict in verdicts) <= _failures_allowed(0.1, 400)


@pytest.mark.parametrize("method", ["decoys", "rows"])
def test_distant_users_are_found_message_by_message(method: str) -> None:
    plan = UniformityTest.plan(**{**SMALL, "users": 900}, method=method)
    assert plan.declared_miss <= 1 / 3
    users = np.random.default_rng(3).choice(12, (60, 900), p=hard_law(0.4, 12))
    found = [simulate(plan, row, bits=RandomBits.seeded(4 + place)) for place, row in enumerate(users)]
    assert sum(not verdict.rejected for verdict in found) <= _failures_allowed(plan.declared_miss, 60)
    # The chi-square distance of the hard law is 4 distance^2.
    assert np.mean([verdict.statistic for verdict in found]) == pytest.approx(0.64, rel=0.25)
    assert all(verdict.simulated for verdict in found)


def test_long_rows_travel_in_words() -> None:
    plan = UniformityTest.plan(users=400, privacy=TARGET, categories=150, distance=0.5, method="rows")
    assert plan.messages_per_user_max == 3
    values = np.random.default_rng(5).integers(150, size=400)
    scores = [simulate(plan, values[:400], bits=RandomBits.seeded(seed)).score for seed in range(60)]
    reports = plan.randomize(values, bits=RandomBits.seeded(1))
    ones = int(np.bitwise_count(reports.payloads).sum())
    expected = 400 * (plan.kept + 149 * plan.spurious)
    assert abs(ones - expected) <= 7 * math.sqrt(expected)
    assert len(set(scores)) == 60 and plan.local_epsilon > TARGET.epsilon


def test_forgetting_the_decoys_rejects_uniform_users() -> None:
    plan = UniformityTest.plan(**LARGE)
    wrong = balls_moments(plan.users, 0, D).deviation / balls_moments(plan.users, 4270, D).deviation
    assert np.mean(plan._scores(np.full(D, 1 / D), 1000, 6) / wrong > plan.threshold) > 0.2


def test_a_fifth_less_noise_is_refused() -> None:
    plan = UniformityTest.plan(**LARGE, method="decoys")
    with pytest.raises(InfeasibleError):
        dataclasses.replace(plan.histogram, probability=0.8 * plan.histogram.probability)
    with pytest.raises(InfeasibleError):
        dataclasses.replace(plan, probability=0.8 * plan.probability)
    rows = UniformityTest.plan(**LARGE, method="rows")
    with pytest.raises(InfeasibleError):
        dataclasses.replace(rows, spurious=0.8 * rows.spurious)
    assert plan.histogram == Decoys.plan(users=plan.users, privacy=plan.privacy, categories=plan.bins)


def test_the_calculator_finds_the_fewest() -> None:
    asked = {"privacy": TARGET, "categories": D, "distance": DISTANCE, "method": "decoys"}
    users = UniformityTest.users_needed(**asked)
    misses = [
        UniformityTest.plan(users=n, **asked, false_alarm=1 / 3, certificate="proved").declared_miss
        for n in (users, int(0.99 * users))
    ]
    assert misses[0] <= 1 / 3 < misses[1]
    assert UniformityTest.users_needed(**asked, honest_fraction=0.5) > users
    with pytest.raises(ParameterError):
        UniformityTest.users_needed(**asked, miss=0)


def test_users_grow_more_slowly_than_categories() -> None:
    asked = {"privacy": TARGET, "distance": DISTANCE}
    users = {
        (method, d): UniformityTest.users_needed(categories=d, method=method, **asked)
        for method in ("decoys", "compressed")
        for d in (1024, 16384)
    }
    plain, grouped = (math.log(users[m, 16384] / users[m, 1024]) / math.log(16) for m in ("decoys", "compressed"))
    assert 0.68 <= plain <= 0.75 and 0.55 <= grouped <= 2 / 3
    assert users["compressed", 16384] < 0.85 * users["decoys", 16384]


def test_verdicts_in_words() -> None:
    bits = RandomBits.seeded(7)
    few = UniformityTest.plan(users=50, privacy=TARGET, categories=20, distance=0.1)
    assert simulate(few, np.arange(50) % 20, bits=bits).words.startswith("undecided")
    many = UniformityTest.plan(users=3000, privacy=TARGET, categories=20, distance=0.25)
    assert simulate(many, np.arange(3000) % 20, bits=bits).words.startswith("no departure from uniform seen")
    assert simulate(many, np.zeros(3000, int), bits=bits).words.startswith("not uniform")


@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        ({"distance": 0.0}, "distance"),
        ({"distance": 0.995}, "distance"),
        ({"users": 1}, "users"),
        ({"method": "magic"}, "method"),
        ({"false_alarm": 1.0}, "false_alarm"),
        ({"certificate": "magic"}, "certificate"),
        ({"against": [0.5, 0.5]}, "against"),
    ],
)
def test_what_cannot_be_is_refused(given, parameter: str) -> None:
    with pytest.raises(ParameterError) as caught:
        UniformityTest.plan(**{**LARGE, **given})
    assert caught.value.parameter == parameter


def test_batches_of_another_size_and_bad_values_are_refused() -> None:
    plan = UniformityTest.plan(**SMALL)
    reports = plan.randomize(np.zeros(300, int), bits=RandomBits.seeded(1))
    with pytest.raises(TooFewReportsError):
        plan.analyze(Batch(reports.payloads, 299))
    with pytest.raises(ParameterError):
        plan.analyze(Batch(reports.payloads, 301))
    for bad in ([12], [-1], [0.5], ["a"], []):
        with pytest.raises(ParameterError):
            plan.randomize(bad, bits=RandomBits.seeded(1))
    broken = np.append(reports.payloads, np.array([200], reports.payloads.dtype))
    assert plan.analyze(Batch(broken, 300)).dropped == 1


@pytest.mark.parametrize(("users", "bins"), [(2, 2), (20, 5), (50, 7)])
def test_equal_counts_have_equal_scores_as_simulated_and_as_seen(users: int, bins: int) -> None:
    """Scores are discrete: a last digit more than the simulated score of the same counts would reject a whole atom."""
    throws, generator = 40, np.random.default_rng(1)
    plan = UniformityTest.plan(users=users, privacy=TARGET, categories=bins, distance=0.3, method="decoys")
    for seed in range(300):
        law = np.eye(bins)[0]
        # All users in the first bin and one seed: the decoys are those that the simulation draws.
        (score,) = collision_scores(users=users, throws=throws, probability=0.5, law=law, runs=1, seed=seed)
        generator = np.random.default_rng(seed)
        decoys = generator.binomial(throws, 0.5, 1)
        seen = generator.multinomial(users, law, 1) + generator.multinomial(decoys, np.full(bins, 1 / bins))
        assert plan.analyze(Batch(np.repeat(np.arange(bins), seen[0]).astype(np.uint8), users)).score == score


@pytest.mark.parametrize(("epsilon", "users", "honest"), [(8, 100, 1.0), (10, 5000, 1.0), (20, 20, 1.0), (1, 3, 0.4)])
def test_rows_that_are_private_alone_need_no_crowd(epsilon: float, users: int, honest: float) -> None:
    asked = {"users": users, "privacy": Privacy(epsilon, 1e-6), "categories": 5, "distance": 0.3}
    plan = UniformityTest.plan(**asked, method="rows", honest_fraction=honest)
    assert plan.guarantee().delta <= 1e-6


@pytest.mark.parametrize("honest", [0, -1, 2, float("nan")])
@pytest.mark.parametrize("method", ["auto", "decoys", "compressed", "rows"])
def test_a_fraction_that_is_none_is_refused_in_a_sentence(honest: float, method: str) -> None:
    with pytest.raises(ParameterError, match=r"^honest_fraction must lie in"):
        UniformityTest.plan(**SMALL, method=method, honest_fraction=honest)
