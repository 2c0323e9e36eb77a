"""Users who come back, by brute force: where their visits may fall, and the exact composition of what they show."""

from dataclasses import replace
from itertools import combinations

import pytest

from shuffledp.accounting.composition import Composition
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.continual.noise import SkellamNoise
from shuffledp.continual.visits import Visits
from shuffledp.learn.bandits.linear.concurrent import ConcurrentLinUCB
from shuffledp.learn.bandits.linear.counted import CountedPolicy
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.privacy import Privacy
from shuffledp.references.bandits.curator import SquareRootLinUCB, TreeLinUCB
from shuffledp.references.bandits.local import LocalLinUCB
from shuffledp.schedules.combinatorial import combinatorial_schedule
from shuffledp.schedules.joined import joined_batches

PRIVACY = Privacy(1.0, 0.01)
ONE = LinearSetting(users=600, dimension=1)


@pytest.mark.parametrize(("budget", "levels"), [(4, 1), (3, 2), (2, 3)])
@pytest.mark.parametrize("visits", [1, 2, 3])
def test_no_slots_show_more_than_is_counted(budget: int, levels: int, visits: int) -> None:
    schedule = combinatorial_schedule(budget, levels, 1)
    joined = [{(level, first) for level, first, _ in joined_batches(schedule, slot)} for slot in range(schedule.slots)]
    most = 0
    for slots in combinations(range(schedule.slots), visits):
        together: dict[tuple[int, int], int] = {}
        for slot in slots:
            for batch in joined[slot]:
                together[batch] = together.get(batch, 0) + 1
        most = max(most, sum(count**2 for count in together.values()))
    assert most <= Visits(visits, levels).squares
    if visits == 1:
        assert most == levels


def exact_delta(policy: CountedPolicy, variance: float) -> float:
    """Of features 1 and -1, all rewards 1, in every visit: one coordinate moves by `apart`, at the worst places."""
    law, visits, levels = SkellamNoise(variance).law(), policy.visits, policy.plan.shufflers_used
    step = int(policy.setting.joint.apart / policy.plan.domain.step)
    pairs = [(ShiftPair(law, step), visits)]
    if levels > 1:
        pairs.append((ShiftPair(law, visits * step), levels - 1))
    return Composition(pairs).delta(PRIVACY.epsilon)


@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize("visits", [1, 3])
def test_the_exact_composition_is_within_the_claim(levels: int, visits: int) -> None:
    policy = ConcurrentLinUCB.with_layout(
        ONE, PRIVACY, visits, shufflers=levels, shufflers_used=levels, budget=3, users=ONE.users
    )
    noise = policy.plan.batch_noise
    assert isinstance(noise, SkellamNoise)
    assert 0.8 * PRIVACY.delta < exact_delta(policy, noise.variance) <= policy.guarantee().delta <= PRIVACY.delta
    # The twin with a fifth less noise tells too much.
    assert exact_delta(policy, 0.64 * noise.variance) > PRIVACY.delta


@pytest.mark.parametrize("make", [TreeLinUCB, SquareRootLinUCB, LocalLinUCB, ConcurrentLinUCB.planned])
def test_all_visits_of_a_user_are_protected_together(make) -> None:
    setting = replace(ONE, users=5000)
    planned = make == ConcurrentLinUCB.planned
    many = make(setting, PRIVACY, visits=4) if planned else make(setting=setting, privacy=PRIVACY, visits=4)
    guarantee = many.guarantee()
    assert guarantee.unit == "all of a user's visits together, 4 at most" and guarantee.holds
    assert guarantee.document()["unit"] == guarantee.unit


@pytest.mark.parametrize("visits", [2, 5])
def test_shares_and_tables_of_every_visit_are_terms_of_delta(visits: int) -> None:
    policy = ConcurrentLinUCB.with_layout(
        ONE, PRIVACY, visits, shufflers=2, shufflers_used=2, budget=3, users=ONE.users
    )
    plan = policy.plan
    once = {term.name: term.value for term in plan.delta_terms(PRIVACY.epsilon, plan.honest_users)}
    often = {term.name: term.value for term in policy.guarantee().terms}
    for name in ("transport", "sampling"):
        assert often[name] == pytest.approx(visits * once[name], abs=0) and once[name] > 0
