"""Quantiles of people's rows: a tree over the values and one cell for no row, at the privacy of all of one's rows."""

import json
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import shuffledp
from shuffledp import Privacy, RandomBits, simulate
from shuffledp.accounting.groups import GroupPair, steps_factor
from shuffledp.audit.trials import audit_plan
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.protocols.catalogue import plan_from_document
from shuffledp.protocols.people.ranges import RepeatedRanges, RepeatedRangesFamily
from shuffledp.protocols.people.rows import contributions
from shuffledp.protocols.plan import changed
from shuffledp.protocols.ranges import Ranges
from shuffledp.testing.protocols import check_protocol

PRIVACY = Privacy(1, 1e-6)
FALSE_ALARM = 1e-6
ASKED: dict[str, Any] = {"domain": (10, 41), "at_most": 3}
RANKS = (0.0, 0.1, 0.5, 0.9, 1.0)


@pytest.fixture(scope="module")
def plan() -> Any:
    return Ranges.plan(users=400, privacy=Privacy(2, 1e-6), **ASKED)


def people_of(plan: Any, seed: int) -> tuple[Any, np.ndarray]:
    """Encoded rows of people, and all of them; one person in four has none."""
    generator = np.random.default_rng(seed)
    lists = [generator.binomial(31, 0.3, size) + 10 for size in generator.integers(0, 4, plan.users)]
    return plan.encode([rows.tolist() for rows in lists]), np.sort(np.concatenate(lists))


def test_at_most_asks_for_it_and_the_plan_is_kept(plan: Any) -> None:
    assert plan.protocol == "repeated-ranges" and plan.domain.most_rows == 3 and plan.sum_plan.size == 33
    document = json.loads(json.dumps(plan.document()))
    assert plan_from_document(document) == plan and plan_from_document(document).fingerprint == plan.fingerprint
    changes = {
        "at_most": 2,
        "users": 401,
        "epsilon": 0.5,
        "axes": [{"low": 0, "high": 5, "steps": None}],
        "branching": 2,
    }
    for name, value in changes.items():
        with pytest.raises(ParameterError):
            plan_from_document(document | {name: value})
    with pytest.raises(ParameterError, match="must be one where people have several rows"):
        Ranges.plan(users=400, privacy=PRIVACY, domain="0:9x0:9", at_most=2)
    days = Ranges.plan(users=50, privacy=Privacy(4, 1e-3), domain="2026-01-01:2026-01-31", at_most=2, method="dyadic")
    assert days.encode([["2026-01-03", "2026-01-31"], []]).tolist() == [[2, 30], [31, 31]]
    assert plan_from_document(json.loads(json.dumps(days.document()))) == days


def test_it_keeps_every_promise() -> None:
    plan: Any = RepeatedRangesFamily.plan(users=40, privacy=Privacy(4, 1e-3), domain=4, at_most=2)
    values = plan.encode([[0, 3], [], [2], [1, 1]] * 10)
    check_protocol(plan, values, [[[5, 0]] * 40, [[0]] * 40, [0] * 40, [[-1, 0]] * 40], runs=400)


def test_all_intervals_hold_the_true_quantiles_of_the_rows_that_count(plan: Any) -> None:
    """At most 5% of runs may miss any of the intervals, or any share of the distribution."""
    bits, runs = RandomBits.seeded(1), 200
    people, rows = people_of(plan, 1)
    truth = {rank: rows[max(0, int(np.ceil(rank * rows.size - 1e-9)) - 1)] for rank in RANKS}
    held, inside, totals = [], [], []
    for _ in range(runs):
        found = plan.ranges(plan.sample_estimate(people, bits=bits))
        each = [found.quantile(rank) for rank in RANKS]
        held.append(all(one.lower <= truth[one.q] <= one.upper for one in each))
        shares = np.cumsum(np.bincount(rows - 10, minlength=32)) / rows.size
        inside.append(float(np.abs(found.cdf() - shares).max()) <= found.rank_bound)
        totals.append(found.total)
    assert min(sum(held), sum(inside)) >= binom.ppf(FALSE_ALARM, runs, 0.95)
    assert abs(np.mean(totals) - rows.size) < 6 * plan.errors.prefix / np.sqrt(runs)
    # Neither the whole axis nor a single value: the median is known within a part of it.
    median = plan.ranges(plan.sample_estimate(people, bits=bits)).median()
    assert 0 < median.upper - median.lower < 31 and found.count(10, 41).value == pytest.approx(found.total)
    by_messages = plan.ranges(simulate(plan, people, bits=RandomBits.seeded(3))).median()
    assert by_messages.lower <= truth[0.5] <= by_messages.upper


def test_rows_that_nobody_has_are_in_no_range(plan: Any) -> None:
    few = plan.encode([[41]] * 100 + [[]] * 300)
    assert plan.true_value(few).tolist() == [0] * 31 + [100]
    found = plan.ranges(plan.sample_estimate(few, bits=RandomBits.seeded(1)))
    # Of 1,200 cells that are sent, 1,100 are of no row: they would be the median if they were counted.
    assert found.median().value >= 40 and found.total < 300
    nobody = plan.ranges(plan.sample_estimate(plan.encode([[]] * 400), bits=RandomBits.seeded(2)))
    assert (nobody.median().lower, nobody.median().upper, nobody.rank_bound) == (10, 41, 1.0)
    shown = plan.present(nobody.values, plan.true_value(plan.encode([[]] * 400)))
    assert [row["truth"] for row in shown.figures["quantiles"]] == [None] * 3


# --- privacy -------------------------------------------------------------------------------------


def test_the_guarantee_is_for_all_rows_of_a_person(plan: Any) -> None:
    pair = plan.pair(400)
    assert isinstance(pair, GroupPair) and pair.steps == 3 and plan.sum_plan.honest_users == 3 * 400
    once, every = plan.sum_plan.delta_terms(2 / 3, 1200), plan.delta_terms(2.0, 400)
    for row, person in zip(once, every, strict=True):
        assert person.value == pytest.approx(steps_factor(2.0, 3) * row.value)
    assert plan.guarantee().holds and not plan.twin(0.8).guarantee().holds
    assert not changed(plan, **plan.quieter(0.8)).guarantee().holds


def test_a_tree_for_one_row_a_person_does_not_hide_three(plan: Any) -> None:
    once: Any = Ranges.plan(users=1200, privacy=Privacy(2, 1e-6), domain=33, branching=plan.branching[0])
    quiet = changed(plan.sum_plan, coins=once.coins, probabilities=once.probabilities)
    assert changed(plan, sum_plan=quiet).guarantee().delta > 100 * 1e-6
    with pytest.raises(ParameterError, match="must be the one made here"):
        RepeatedRanges.of_people(once, plan.common, axes=plan.axes, branching=plan.branching, at_most=3)
    with pytest.raises(InfeasibleError, match="must reach delta"):
        noise = plan.noise | {"probabilities": [0.2 * each for each in plan.sum_plan.probabilities]}
        plan_from_document(plan.document() | {"noise": noise})


def test_an_audit_finds_noise_for_one_row_and_half_the_noise() -> None:
    plan: Any = RepeatedRangesFamily.plan(users=4, privacy=Privacy(1, 1e-2), domain=3, at_most=2, method="dyadic")
    once: Any = RepeatedRangesFamily.plan(users=8, privacy=Privacy(1, 1e-2), domain=3, at_most=1, method="dyadic")
    assert audit_plan(plan, bits=RandomBits.seeded(1), trials=20_000).verdict == "stands"
    less = changed(plan.sum_plan, coins=once.sum_plan.coins, probabilities=once.sum_plan.probabilities)
    assert audit_plan(changed(plan, sum_plan=less), bits=RandomBits.seeded(2), trials=20_000).epsilon_lower_bound > 1
    assert audit_plan(plan, bits=RandomBits.seeded(3), trials=20_000, sabotage=0.2).verdict == "refuted"


def test_what_is_sent_depends_neither_on_how_many_rows_one_has_nor_on_those_beyond_the_first(plan: Any) -> None:
    sizes = {
        tuple(plan.randomize(plan.encode([rows] * 400), bits=RandomBits.seeded(1)).sizes) for rows in ([], [12] * 3)
    }
    assert len(sizes) == 1
    owners = ["a", "b", "a", "a", "a"]
    kept = contributions(plan.domain, [10, 12, 14, 16, 41], owners)
    assert kept.tolist() == [[0, 4, 6], [2, 32, 32]]
    assert kept.tolist() == contributions(plan.domain, [10, 12, 14, 16, 11], owners).tolist()


def test_in_one_line() -> None:
    owners = [row // 3 for row in range(3000)]
    found = shuffledp.quantiles(
        [5, 9, 15] * 1000, low=0, high=15, user=owners, at_most=2, epsilon=2, delta=1e-6, at=(0.25, 0.75), seed=1
    )
    assert (float(found[0.25]), float(found[0.75])) == (5, 9) and 1800 < found.total < 2200
