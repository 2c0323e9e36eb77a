"""Mean and variance of people's rows: the noise hides all rows of a person, and both intervals are proved."""

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import shuffledp
from shuffledp import Privacy, RandomBits, simulate
from shuffledp.accounting.laws import DiscreteLaplace
from shuffledp.audit.trials import audit_plan
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.protocols.catalogue import plan_from_document
from shuffledp.protocols.domains.row_parts import EVERY_ROW, RowNumbers
from shuffledp.protocols.people.moments import RepeatedMomentsFamily, variance_interval, variance_of
from shuffledp.protocols.people.rows import contributions
from shuffledp.protocols.plan import changed
from shuffledp.protocols.statistics import MomentsFamily

PRIVACY = Privacy(1, 1e-6)
RANGE: dict[str, Any] = {"low": -1, "high": 3, "at_most": 3}
FALSE_ALARM = 1e-6


def lists_of(users: int, seed: int) -> list[list[float]]:
    """Rows of people; one in four has none."""
    generator = np.random.default_rng(seed)
    return [(-1 + 4 * generator.beta(2, 4, size)).tolist() for size in generator.integers(0, 4, users)]


def test_at_most_asks_for_it_and_the_plan_is_kept() -> None:
    plan: Any = MomentsFamily.plan(users=500, privacy=PRIVACY, **RANGE)
    assert plan.protocol == "repeated-moments" and plan.domain.most_rows == 3 and plan.domain.group_list is None
    assert plan_from_document(json.loads(json.dumps(plan.document()))) == plan
    assert "groups" not in plan.document()
    with pytest.raises(InfeasibleError, match="one client"):
        MomentsFamily.plan(users=500, privacy=PRIVACY, **RANGE, live=True)


def test_both_intervals_hold_and_errors_are_what_is_said() -> None:
    plan: Any = RepeatedMomentsFamily.plan(users=600, privacy=PRIVACY, **RANGE)
    lists = lists_of(600, 1)
    people, rows = plan.encode(lists), np.concatenate(lists)
    truth = np.array([rows.mean(), rows.var()])
    assert plan.true_value(people) == pytest.approx(truth)
    bits, runs = RandomBits.seeded(1), 400
    found = [plan.sample_estimate(people, bits=bits) for _ in range(runs)]
    errors = np.array([each.value for each in found]) - truth
    said = np.mean([each.standard_errors for each in found], axis=0)
    # The deviation of Laplace noise is found to 5.6% in 400 runs; the rounding in it is taken at its worst.
    assert (0.65 * said < errors.std(axis=0)).all() and (errors.std(axis=0) < 1.28 * said).all()
    assert (np.abs(errors.mean(axis=0)) < 6 * said / math.sqrt(runs) + 0.01).all()
    held = [bool((np.abs(error) <= each.bounds).all()) for error, each in zip(errors, found, strict=True)]
    assert sum(held) >= binom.ppf(FALSE_ALARM, runs, 0.95)
    by_messages = simulate(plan, people, bits=RandomBits.seeded(3))
    assert (np.abs(by_messages.value - truth) <= 3 * np.array(by_messages.bounds)).all()


@pytest.mark.parametrize("seed", range(12))
def test_the_interval_of_the_variance_is_the_least_and_the_most_of_all_parts_in_the_box(seed: int) -> None:
    """Brute force: a grid of all three parts within the bound and not below 0."""
    generator = np.random.default_rng(seed)
    parts, bound = generator.uniform(0, [60, 30, 60][seed % 3], 3), float(generator.uniform(0.5, 8))
    grids = [np.linspace(max(0.0, part - bound), part + bound, 41) for part in parts]
    box = np.stack(np.meshgrid(*grids, indexing="ij"), axis=-1).reshape(-1, 3)
    total = box.sum(axis=1)
    every = box[:, 2] / total - ((box[:, 1] / 2 + box[:, 2]) / total) ** 2
    least, most = variance_interval(parts, bound)
    # Never narrower than what was found, and wider by less than the grid's own steps.
    assert least <= max(0.0, every.min()) + 1e-12 and most >= every.max() - 1e-12
    assert least == pytest.approx(max(0.0, every.min()), abs=2e-3) and most == pytest.approx(every.max(), abs=2e-3)


def test_without_rows_nothing_is_known() -> None:
    plan: Any = RepeatedMomentsFamily.plan(users=50, privacy=PRIVACY, **RANGE)
    nobody = plan.encode([[]] * 50)
    found = [plan.sample_estimate(nobody, bits=RandomBits.seeded(seed)) for seed in range(20)]
    assert all((each.value <= [3, 4]).all() and (np.array(each.bounds) <= [4, 4]).all() for each in found)
    assert max(each.bounds[1] for each in found) > 2 and plan.true_value(nobody).tolist() == [1.0, 0.0]
    assert variance_interval(np.zeros(3), 1.0) == (0.0, 0.25) == (0.0, variance_of(np.zeros(3)))


# --- privacy -------------------------------------------------------------------------------------


def test_no_two_people_are_further_apart_than_the_noise_hides() -> None:
    """By brute force over rows and roundings: three parts together, none below 0."""
    domain = RowNumbers(EVERY_ROW, -1.0, 3.0, 2, 5)
    rows = [list(each) for size in range(3) for each in itertools.product((-1.0, 0.3, 1.1, 3.0), repeat=size)]
    bits = RandomBits.seeded(1)
    steps = np.unique(np.concatenate([domain.to_steps(domain.encode(rows), bits=bits) for _ in range(30)]), axis=0)
    assert max(int(np.abs(a - b).sum()) for a, b in itertools.product(steps, steps)) == domain.furthest == 20
    assert steps.min() == 0 and set((steps.sum(axis=1) % 5).tolist()) == {0}
    sums = RepeatedMomentsFamily.plan(users=50, privacy=PRIVACY, **RANGE).sum_plan
    law = DiscreteLaplace(sums.ratio)
    assert 2 * 3 * sums.grid * law.largest_log_ratio <= PRIVACY.epsilon * (1 + 1e-12)


def test_quieter_twins_and_noise_for_one_row_are_refused() -> None:
    plan: Any = RepeatedMomentsFamily.plan(users=300, privacy=PRIVACY, **RANGE)
    once: Any = RepeatedMomentsFamily.plan(users=300, privacy=PRIVACY, **RANGE | {"at_most": 1})
    assert plan.guarantee().holds and not plan.twin(0.8).guarantee().holds
    quiet = changed(plan, sum_plan=changed(plan.sum_plan, ratio=once.sum_plan.ratio, grid=once.sum_plan.grid))
    assert not quiet.guarantee().holds
    with pytest.raises(InfeasibleError, match="must reach delta"):
        plan_from_document(plan.document() | {"noise": plan.noise | {"ratio": plan.sum_plan.ratio**3}})


def test_an_audit_finds_half_the_noise() -> None:
    plan = RepeatedMomentsFamily.plan(users=6, privacy=Privacy(1, 1e-3), low=0, high=1, at_most=2)
    assert audit_plan(plan, bits=RandomBits.seeded(1), trials=20_000).verdict == "stands"
    assert audit_plan(plan, bits=RandomBits.seeded(2), trials=20_000, sabotage=0.5).verdict == "refuted"


def test_nothing_that_is_sent_says_how_many_rows_one_has() -> None:
    plan: Any = RepeatedMomentsFamily.plan(users=50, privacy=PRIVACY, **RANGE)
    sizes = {
        tuple(plan.randomize(plan.encode([rows] * 50), bits=RandomBits.seeded(1)).sizes) for rows in ([], [3.0] * 3)
    }
    assert len(sizes) == 1


def test_only_the_first_rows_of_a_person_are_randomized() -> None:
    """Contributions are bounded before anything is sent: a fourth row of somebody changes nothing at all."""
    domain = RepeatedMomentsFamily.plan(users=50, privacy=PRIVACY, **RANGE).domain
    values, owners = [0.5, 1.0, 2.0, 3.0, -1.0], ["a", "b", "a", "a", "a"]
    kept = contributions(domain, values, owners)
    assert kept.tolist() == contributions(domain, [*values[:4], 2.9], owners).tolist() and kept.shape == (2, 6)
    with pytest.raises(ParameterError, match="at most 3 rows"):
        domain.encode([[1.0] * 4])


def test_in_one_line() -> None:
    rows = [0.0, 2.0, 2.0] * 1000
    found = shuffledp.variance(
        rows, low=0, high=2, user=[row // 3 for row in range(3000)], at_most=2, epsilon=2, delta=1e-6, seed=1
    )
    assert float(found) == pytest.approx(1.0, abs=0.1) and found.bound < 0.3
