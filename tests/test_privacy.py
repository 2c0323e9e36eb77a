import math

import numpy as np
import pytest

from shuffledp.accounting.pairs import FinitePair
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, -math.inf, 101, "1", None, True])
def test_epsilon_out_of_range_is_named(epsilon) -> None:
    with pytest.raises(ParameterError) as caught:
        Privacy(epsilon, 1e-6)
    assert caught.value.parameter == "epsilon"
    assert str(caught.value).startswith("epsilon must") and str(caught.value).endswith(".")


@pytest.mark.parametrize("delta", [0, 1, -1e-9, 2, math.nan, math.inf, "x", None, False])
def test_delta_out_of_range_is_named(delta) -> None:
    with pytest.raises(ParameterError) as caught:
        Privacy(1, delta)
    assert caught.value.parameter == "delta"


def test_privacy_is_frozen_data() -> None:
    assert Privacy(1, 1e-6) == Privacy(1.0, 1e-6)
    with pytest.raises(AttributeError):
        Privacy(1, 1e-6).epsilon = 2  # type: ignore[misc]


@pytest.mark.parametrize(
    ("epsilon", "delta", "users", "named"),
    [
        (1, 1e-6, 10_000, []),
        (10, 0.099, None, []),
        (10.5, 1e-6, 10_000, ["epsilon"]),
        (1, 1e-4, 10_000, ["delta"]),
        (1, 0.99e-4, 10_000, []),
        (1, 0.1, None, ["delta"]),
        (100, 0.5, 1, ["epsilon", "delta"]),
    ],
)
def test_a_weak_promise_is_called_weak(epsilon: float, delta: float, users: int | None, named: list[str]) -> None:
    promise = Privacy(epsilon, delta)
    assert [caution.partition(" ")[0] for caution in promise.cautions(users)] == named
    assert bool(promise.brief_caution(users)) == bool(named)


def test_a_value_drawn_at_random_is_private_with_one_over_users() -> None:
    users = 50
    shown = np.full(users, 1 / users)
    # Outcomes are (whose, value): that of the person replaced has another value.
    replaced = FinitePair(p=np.append(shown, 0.0), q=np.concatenate(([0.0], shown[1:], shown[:1])))
    assert replaced.delta(0.0) == pytest.approx(1 / users)
    assert Privacy(1, 1 / users).cautions(users) and not Privacy(1, 0.99 / users).cautions(users)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-3), (2.0, 1e-2)])
def test_adding_and_removing_make_a_replacement_and_no_less(epsilon: float, delta: float) -> None:
    half = Privacy(epsilon, delta).added_or_removed
    e, d = math.exp(half.epsilon), half.delta
    # The worst chain: removing shows an outcome with probability d, adding hides one; else ratios are the largest.
    without = np.array([0.0, 0.02, 0.0, 0.0])
    before = np.array([d, e * 0.02 + 0.0, 0.0, 0.0])
    after = np.array([0.0, (0.02 - d) / e, 0.0, 0.0])
    for masses in (without, before, after):
        masses[3] = 1 - masses.sum()
    assert FinitePair(p=before, q=without).forward(half.epsilon) <= d * (1 + 1e-6)
    assert FinitePair(p=without, q=after).forward(half.epsilon) <= d * (1 + 1e-6)
    both = FinitePair(p=before, q=after).forward(epsilon)
    assert both == pytest.approx((1 + e) * d, rel=1e-6) and both == pytest.approx(delta, rel=1e-6)
