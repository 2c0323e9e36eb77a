"""People with several rows: counts, sums and histograms in which everybody contributes the same number of rows."""

import json
import math

import numpy as np
import pytest

from shuffledp import BinarySum, BoundedSum, Histogram, Privacy, RandomBits, simulate
from shuffledp.accounting.groups import GroupPair, one_step, steps_factor
from shuffledp.accounting.laws import Binomial, DiscreteLaplace
from shuffledp.accounting.pairs import FinitePair, ShiftPair
from shuffledp.continual.family import RunningSum
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.protocols.catalogue import plan_from_document
from shuffledp.protocols.people.families import RepeatedCount, RepeatedSumFamily
from shuffledp.protocols.people.histogram import RepeatedHistogram, RepeatedHistogramFamily
from shuffledp.protocols.plan import changed
from shuffledp.protocols.polya import pure_ratio
from shuffledp.testing.protocols import check_protocol

PRIVACY = Privacy(1, 1e-6)
HISTOGRAM = {"categories": ["a", "b", "c"], "at_most": 3}


def test_a_parameter_asks_for_the_family_of_people() -> None:
    asked = {"users": 500, "privacy": PRIVACY, "at_most": 3}
    assert BinarySum.plan(**asked).protocol == "repeated-count"
    assert BoundedSum.plan(**asked, low=0, high=2).protocol == "repeated-sum"
    assert Histogram.plan(**asked, categories=3, method="decoys").protocol == "repeated-histogram"
    assert Histogram.choose(**asked, categories=3, method="decoys").plan.at_most == 3


@pytest.mark.parametrize("method", ["bits", "shares"])
def test_counts_keep_every_promise(method: str) -> None:
    plan = RepeatedCount.plan(users=40, privacy=Privacy(2, 1e-4), at_most=3, method=method)
    check_protocol(plan, [3, 0, 1, 2] * 10, [[4] * 40, [0.5] * 40, [-1] * 40], runs=500)


def test_sums_keep_every_promise() -> None:
    plan = RepeatedSumFamily.plan(users=40, privacy=Privacy(2, 1e-4), low=-1, high=2, at_most=2, method="bits")
    # Ends of the grid are not rounded: their error is the noise alone, below what is claimed, so they are not taken.
    people = np.tile([-2.0, 4.0, 0.3, 1.7], 10)
    truth = plan.true_value(people)
    runs = [simulate(plan, people, bits=RandomBits.seeded(k)).value - truth for k in range(300)]
    assert abs(np.mean(runs)) < 6 * plan.standard_error / math.sqrt(300)
    assert (np.abs(runs) <= plan.error_bound).mean() > 0.9
    assert plan.sum_plan.low == -2.0 and plan.sum_plan.high == 4.0
    assert plan_from_document(json.loads(json.dumps(plan.document()))) == plan


def test_histograms_keep_every_promise() -> None:
    plan = RepeatedHistogramFamily.plan(users=40, privacy=Privacy(3, 1e-3), **HISTOGRAM, method="decoys")
    values = plan.encode([["a", "b", "a"], [], ["c"], ["b", "b"]] * 10)
    bad = [[[4, 0, 0]] * 40, [[0, 1]] * 40, [0] * 40, [[-1, 0, 0]] * 40]
    check_protocol(plan, values, bad, runs=500)


def test_rows_that_nobody_has_are_not_counted() -> None:
    plan = RepeatedHistogramFamily.plan(users=300, privacy=Privacy(4, 1e-6), **HISTOGRAM, method="decoys")
    values = plan.encode([["a"], []] * 150)
    assert plan.true_value(values).tolist() == [150, 0, 0]
    assert simulate(plan, values, bits=RandomBits.seeded(1)).value.size == 3


@pytest.mark.parametrize("rows", [[], ["a"], ["a", "b", "c"]])
def test_nothing_that_is_sent_says_how_many_rows_one_has(rows: list[str]) -> None:
    """Every report of decoys has 3 messages of its own, and coins beside them that know nothing of the rows."""
    plan = RepeatedHistogramFamily.plan(users=50, privacy=Privacy(3, 1e-3), **HISTOGRAM, method="decoys")
    sizes = plan.randomize(plan.encode([rows] * 50), bits=RandomBits.seeded(3)).sizes
    always = plan.randomize(plan.encode([["a", "a", "a"]] * 50), bits=RandomBits.seeded(3)).sizes
    assert sizes.tolist() == always.tolist()
    count = RepeatedCount.plan(users=50, privacy=PRIVACY, at_most=3, method="bits")
    assert set(count.randomize([len(rows)] * 50, bits=RandomBits.seeded(1)).sizes.tolist()) == {3 + count.coins}


# --- privacy -------------------------------------------------------------------------------------


def several_bins(noise: np.ndarray, shifts: list[int]) -> FinitePair:
    """The joint law of independent noise in several bins against itself moved by whole numbers, by brute force."""
    width = noise.size + 2 * max(map(abs, shifts))
    start = max(map(abs, shifts))
    still, moved = np.ones(1), np.ones(1)
    for shift in shifts:
        p, q = np.zeros(width), np.zeros(width)
        p[start : start + noise.size] = noise
        q[start + shift : start + shift + noise.size] = noise
        still, moved = np.outer(still, p).reshape(-1), np.outer(moved, q).reshape(-1)
    return FinitePair(still, moved)


@pytest.mark.parametrize("shifts", [[2, -2], [1, 1, -2], [1, 1, -1, -1], [2, -1, -1]])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_group_privacy_covers_every_way_to_spread_rows_over_bins(shifts: list[int], epsilon: float) -> None:
    """Two replaced rows: whatever bins they leave and enter, by brute force, for noise of both kinds."""
    k = np.arange(13)
    binomial = np.exp(Binomial(12, 0.4).log_pmf(k.astype(float)))
    two = several_bins(binomial, [1, -1])
    assert several_bins(binomial, shifts).delta(epsilon) <= GroupPair(two, 2).delta(epsilon) * (1 + 1e-9)


def test_group_privacy_of_one_step_is_the_pair_itself() -> None:
    once = ShiftPair(Binomial(80, 0.5))
    assert GroupPair(once, 1).delta(0.7) == once.delta(0.7)
    assert GroupPair(ShiftPair(DiscreteLaplace(pure_ratio(0.25))), 4).delta(1.0) == 0.0
    with pytest.raises(ParameterError, match="steps"):
        GroupPair(once, 0)
    with pytest.raises(ParameterError, match="atoms"):
        GroupPair(once, 2).atoms()


@pytest.mark.parametrize("steps", [1, 2, 7, 100])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
def test_one_step_is_group_privacy_read_backwards(epsilon: float, steps: int) -> None:
    once = one_step(Privacy(epsilon, 1e-6), steps)
    again = steps_factor(epsilon, steps) * once.delta
    assert once.epsilon == epsilon / steps
    assert 1e-6 * (1 - 1e-9) < again <= 1e-6


@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0])
def test_steps_are_a_geometric_sum(epsilon: float, steps: int) -> None:
    assert steps_factor(epsilon, steps) == pytest.approx(sum(math.exp(k * epsilon / steps) for k in range(steps)))


def test_every_term_is_counted_for_all_rows() -> None:
    """A method with a cut-off and tables beside its noise: each term is charged as often as the noise's."""
    plan = RepeatedHistogramFamily.plan(users=200, privacy=Privacy(4, 1e-4), **HISTOGRAM, method="correlated")
    once, every = plan.sum_plan.delta_terms(4 / 3, 600), plan.delta_terms(4.0, 200)
    assert [term.name for term in once] == [term.name for term in every] and len(once) > 1
    for row, person in zip(once, every, strict=True):
        assert person.value == pytest.approx(steps_factor(4.0, 3) * row.value)


@pytest.mark.parametrize(
    ("family", "domain", "method"),
    [
        (RepeatedCount, {"at_most": 3}, "bits"),
        (RepeatedCount, {"at_most": 3}, "shares"),
        (RepeatedSumFamily, {"at_most": 3, "low": 0, "high": 1}, "bits"),
        (RepeatedSumFamily, {"at_most": 3, "low": 0, "high": 1}, "shares"),
        (RepeatedHistogramFamily, HISTOGRAM, "decoys"),
        (RepeatedHistogramFamily, HISTOGRAM, "zsum"),
    ],
)
def test_a_twin_with_less_noise_is_refused(family: object, domain: dict[str, object], method: str) -> None:
    plan = family.plan(users=500, privacy=PRIVACY, method=method, **domain)  # type: ignore[attr-defined]
    assert plan.guarantee().holds
    assert not plan.twin(0.8).guarantee().holds
    assert not changed(plan, **plan.quieter(0.8)).guarantee().holds


def test_a_plan_for_one_row_does_not_hide_three() -> None:
    """The noise of an ordinary plan, claimed for people with three rows."""
    once = Histogram.plan(users=1500, privacy=PRIVACY, categories=4, method="decoys")
    plan = RepeatedHistogramFamily.plan(users=500, privacy=PRIVACY, **HISTOGRAM, method="decoys")
    quiet = changed(plan, sum_plan=changed(plan.sum_plan, probability=once.probability, coins=once.coins))
    assert quiet.guarantee().delta > 100 * PRIVACY.delta
    with pytest.raises(ParameterError, match="must be the one made here"):
        RepeatedHistogram.of_people(once, plan.common, **HISTOGRAM)
    one = BinarySum.plan(users=500, privacy=PRIVACY, method="shares")
    many = RepeatedCount.plan(users=500, privacy=PRIVACY, at_most=3, method="shares")
    with pytest.raises(InfeasibleError, match="must reach delta"):
        plan_from_document(many.document() | {"noise": many.noise | {"ratio": one.ratio}})


@pytest.mark.parametrize("fraction", [0.85, 1 / 3, 0.5])
def test_whole_people_are_honest(fraction: float) -> None:
    """Of 10 people with 3 rows, 0.85 honest means 8 people, 24 rows: not 25."""
    plan = RepeatedHistogramFamily.plan(
        users=10, privacy=Privacy(8, 1e-2), **HISTOGRAM, method="decoys", honest_fraction=fraction
    )
    assert plan.sum_plan.honest_users == 3 * plan.honest_users == 3 * math.floor(10 * fraction + 1e-9)


def test_one_batch_is_no_worse_than_one_for_each_row() -> None:
    """The reason for the design: composed batches of one row each need as much noise, or more."""
    from shuffledp.accounting.repeated import RepeatedPair
    from shuffledp.accounting.split_coins import BallsPair

    plan = RepeatedHistogramFamily.plan(users=10_000, privacy=PRIVACY, **HISTOGRAM, method="decoys")
    rate = plan.sum_plan.blanket_mean
    # Three batches: the variance of each is what a third of ours would be.
    assert RepeatedPair(BallsPair(80_000, 0.97 * rate / 3 / 80_000), 3).delta(1.0) > 1e-6
    wide = {"users": 500, "privacy": Privacy(4, 1e-4), "categories": 3, "at_most": 2}
    laplace, decoys = (RepeatedHistogramFamily.plan(**wide, method=method) for method in ("correlated", "decoys"))
    assert laplace.standard_error < 0.6 * decoys.standard_error


# --- files ---------------------------------------------------------------------------------------


def test_a_plan_survives_its_file_and_says_how_many_rows_count() -> None:
    plan = RepeatedHistogramFamily.plan(users=100, privacy=PRIVACY, **HISTOGRAM, method="decoys", honest_fraction=0.8)
    document = json.loads(json.dumps(plan.document()))
    again = plan_from_document(document)
    assert again == plan and again.fingerprint == plan.fingerprint
    other = RepeatedHistogramFamily.plan(users=100, privacy=PRIVACY, **HISTOGRAM | {"at_most": 2}, method="decoys")
    assert other.fingerprint != plan.fingerprint
    for name, value in {"at_most": 2, "users": 101, "epsilon": 0.5, "categories": ["a", "b"]}.items():
        with pytest.raises(ParameterError):
            plan_from_document(document | {name: value})


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, 1001, "3"])
def test_at_most_is_a_number_of_rows(wrong: object) -> None:
    for family, domain in ((RepeatedCount, {}), (RepeatedHistogramFamily, {"categories": 3})):
        with pytest.raises(ParameterError, match=r"at_most must be a whole number"):
            family.plan(users=50, privacy=PRIVACY, at_most=wrong, **domain)  # type: ignore[attr-defined]


# --- running counts ------------------------------------------------------------------------------


def test_a_running_count_takes_people_with_all_their_rows() -> None:
    asked = {"users": 2000, "privacy": PRIVACY, "shufflers": 2, "method": "laplace"}
    once, plan = RunningSum.plan(**asked), RunningSum.plan(**asked, at_most=4)
    assert plan.pair(2000).shift == 4
    assert 3.5 * once.error_bound < plan.error_bound < 4.1 * once.error_bound
    assert plan.guarantee().holds and not plan.twin(0.8).guarantee().holds
    assert not changed(plan, batch_noise=once.batch_noise).guarantee().holds
    assert plan_from_document(json.loads(json.dumps(plan.document()))) == plan
    # Whole numbers are not rounded: with all noise taken away the sums are exact.
    values = np.tile([4, 0, 1, 3], 500)
    assert plan.prepare(values, bits=RandomBits.seeded(1)).tolist() == values.tolist()
    estimates = plan.learner().run(values, bits=RandomBits.seeded(1))
    assert abs(estimates.at(2000).value - values.sum()) <= plan.error_bound
    reference = plan.reference()
    # A device alone rounds its rows to none or all of them before it lies: a bit's error four times, and rounding's.
    assert 1 < reference["local_error_bound"] / (4 * once.reference()["local_error_bound"]) < 1.25


@pytest.mark.parametrize("more", [{"categories": 3}, {"values": "reals"}, {"values": "bits"}])
def test_other_running_sums_take_one_row_a_person(more: dict[str, object]) -> None:
    with pytest.raises(ParameterError, match="at_most is not an option of"):
        RunningSum.plan(users=2000, privacy=PRIVACY, shufflers=2, at_most=4, **more)
