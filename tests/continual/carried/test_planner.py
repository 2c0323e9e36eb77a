"""What is planned: the smallest bound, within what is asked; weights along lines below what is allowed."""

import numpy as np
import pytest

from harness import carried
from shuffledp.accounting.filter_designs import design_for
from shuffledp.continual.carried.horizon import Horizon
from shuffledp.continual.carried.planner import best_carried, plan_carried, plan_of
from shuffledp.continual.plan import CounterPlan
from shuffledp.continual.request import CountRequest
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.privacy import Privacy


@pytest.mark.parametrize("least_weight", [64, 4])
@pytest.mark.parametrize(("windows", "slots"), [(2, 40), (3, 60), (4, 60), (5, 60)])
def test_weights_use_the_whole_shift_and_no_more(windows: int, slots: int, least_weight: float) -> None:
    weights = Horizon(design_for(windows, slots), slots).weights(0.2355, least_weight)
    columns = carried.shifts(weights, carried.target(weights))
    assert columns.max() <= weights.shift <= 0.2355 * (1 + 1e-6)
    assert columns.max() > 0.2355 * (1 - 1e-6)
    # All slots' people are nearly equally well hidden: nobody has noise to spare but for whole weights.
    assert columns.min() > (0.9 if least_weight == 64 else 0.5) * columns.max()
    assert (np.diff(weights.slot_weights) >= 0).mean() > 0.8


def test_more_shufflers_are_never_worse_and_the_best_is_taken() -> None:
    bounds = [plan_carried(users=60_000, shufflers=k, privacy=Privacy(1, 1e-6)).error_bound for k in (2, 3, 4, 5)]
    assert bounds[0] > bounds[1] > bounds[2] * 0.999 and bounds[3] <= bounds[2] * 1.005
    auto = CounterPlan.plan(users=60_000, shufflers=4, privacy=Privacy(1, 1e-6))
    assert auto.error_bound > bounds[2]
    with pytest.raises(InfeasibleError):
        plan_carried(users=60_000, shufflers=1, privacy=Privacy(1, 1e-6))
    with pytest.raises(InfeasibleError):
        plan_carried(users=5, shufflers=4, privacy=Privacy(1, 1e-6))


@pytest.mark.parametrize("users", [60, 150, 220, 300, 420])
@pytest.mark.parametrize("shufflers", [4, 5, 8])
def test_few_users_are_planned_for_or_refused_in_a_sentence(users: int, shufflers: int) -> None:
    """Designs are extrapolated to few slots, where poles must not meet."""
    plan = plan_carried(users=users, shufflers=shufflers, privacy=Privacy(4, 1e-2))
    assert plan.guarantee().holds and plan.error_bound < users / 2


def test_a_limit_of_messages_is_kept() -> None:
    asked = {"users": 20_000, "shufflers": 4, "privacy": Privacy(1, 1e-6)}
    free = plan_carried(**asked)
    most = free.messages_per_user_max - 1
    kept = best_carried(CountRequest(**asked, max_messages=most))
    assert kept.messages_per_user_max <= most and kept.shufflers_used < free.shufflers_used
    with pytest.raises(ParameterError, match="max_messages must be at least"):
        best_carried(CountRequest(**asked, max_messages=3))


def test_slots_near_the_chosen_size_are_no_better() -> None:
    asked = CountRequest(users=20_000, shufflers=3, privacy=Privacy(1, 1e-6))
    best = best_carried(asked)
    for size in (best.slot_users // 2, best.slot_users * 2):
        assert plan_of(asked, 3, size).error_bound > 0.99 * best.error_bound
