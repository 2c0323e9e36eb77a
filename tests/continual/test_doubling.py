"""A running count without a known horizon."""

import math
from itertools import pairwise

import numpy as np
import pytest

from shuffledp.accounting.laws import DiscreteLaplace
from shuffledp.continual.doubling import UnboundedCounter
from shuffledp.continual.noise import calibrate
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.sums.noise import LaplaceNoise
from shuffledp.randomness import RandomBits
from shuffledp.testing.statistics import assert_deviation, assert_mean, assert_same_law

PRIVACY = Privacy(1, 1e-6)


def counter(**asked) -> UnboundedCounter:
    return UnboundedCounter.plan(**({"first_users": 400, "shufflers": 3, "privacy": PRIVACY} | asked))


def test_epochs_double_and_follow_each_other() -> None:
    epochs = [counter().epoch(number) for number in range(6)]
    for epoch, following in pairwise(epochs):
        assert following.users_before == epoch.users_before + epoch.users
        assert 1.7 < following.users / epoch.users < 2.3
        # The epoch's own batch closes with the last slot, which the inner schedule leaves open.
        assert epoch.users % epoch.inner.slot_users == 0
        assert epoch.inner.schedule.slots * epoch.inner.slot_users == epoch.users
    assert [epoch.error_bound for epoch in epochs] == sorted(epoch.error_bound for epoch in epochs)


def test_a_user_is_in_as_many_batches_as_are_paid_for() -> None:
    made = counter(shufflers=4)
    assert made.epoch(3).inner.shufflers_used + 1 == made.shufflers_used <= 4
    assert made.epoch(3).inner.batch_noise == calibrate("laplace", made.shufflers_used, PRIVACY)
    assert sum(term.value for term in made.delta_terms(1.0)) <= 1e-6
    # Noise for one batch fewer, or a fifth less of its variance, would not be enough.
    assert calibrate("laplace", made.shufflers_used - 1, PRIVACY).delta(1.0, made.shufflers_used) > 1e-6
    assert LaplaceNoise(made.epoch(3).inner.batch_noise.ratio ** 1.12).delta(1.0, made.shufflers_used) > 1e-6
    assert made.epoch(2).mechanism.distance_with(made.epoch(2).users) <= made.epoch(2).inner.distance_per_batch


@pytest.mark.parametrize("kind", ["ones", "zeros"])
def test_all_epochs_keep_their_bounds_at_once(kind: str) -> None:
    made = counter()
    values = np.full(20_000, kind == "ones", dtype=np.uint8)
    truth = np.cumsum(values)
    bounds = np.array([made.error_bound_at(time) for time in range(1, 20_001, 50)])
    failed = sum(
        (np.abs(made.run(values, bits=bits) - truth)[::50] > bounds).any() for bits in RandomBits.seeded(1).spawn(200)
    )
    assert failed / 200 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)


def test_messages_and_law_agree_and_the_noise_is_what_is_said() -> None:
    made = counter(first_users=200, privacy=Privacy(2, 1e-3))
    values = np.ones(made.epoch(0).users + made.epoch(1).users, dtype=np.uint8)
    seen = {
        fast: [made.run(values, bits=bits, fast=fast)[-1] for bits in RandomBits.seeded(seed).spawn(150)]
        for fast, seed in ((True, 1), (False, 2))
    }
    assert_same_law(seen[True], seen[False])
    # Two past epochs: two noises.
    deviation = np.sqrt(2) * made.epoch(0).inner.batch_noise.law().standard_deviation
    assert_mean(np.array(seen[True]) - values.size, 0.0, deviation)
    assert_deviation(seen[True], deviation)


def test_it_costs_little_against_a_known_horizon() -> None:
    made = UnboundedCounter.plan(first_users=5000, shufflers=4, privacy=PRIVACY)
    assert made.error_bound_at(1_000_000) <= 240


@pytest.mark.parametrize(
    ("change", "parameter"),
    [({"shufflers": 1}, "shufflers"), ({"first_users": 1}, "first_users"), ({"confidence": 2}, "confidence")],
)
def test_bad_parameters_are_named(change, parameter: str) -> None:
    with pytest.raises(ParameterError) as refused:
        counter(**change)
    assert refused.value.parameter == parameter


def test_bad_values_are_refused() -> None:
    with pytest.raises(ParameterError, match="values"):
        counter().run([0, 1, 3], bits=RandomBits.seeded(1))
    bad = np.zeros(1000)
    bad[700] = 0.5
    with pytest.raises(ParameterError, match="values"):
        counter().run(bad, bits=RandomBits.seeded(1))
    for time in (0, -1):
        with pytest.raises(ParameterError, match="time"):
            counter().error_bound_at(time)
    with pytest.raises(ParameterError, match="epoch"):
        counter().epoch(-1)


def test_the_last_user_of_an_epoch_counts() -> None:
    """The epoch's own batch makes one more estimate: the smallest epochs show that the union holds it."""
    ratio = math.exp(-0.5)
    tail = 2 * ratio**6 / (1 + ratio)
    confidence = 1 - tail * (math.pi**2 / 6) * (1 + 1e-6)
    counter = UnboundedCounter(
        first_users=2, shufflers=2, shufflers_used=2, privacy=Privacy(1, 1e-3), confidence=confidence
    )
    bound = counter.epoch(0).error_bound
    noise = DiscreteLaplace(ratio)
    slot = (counter.epoch(0).inner.slot_users - 1) / 2
    beyond = 2 * noise.sf(int(bound - slot))
    assert 2 * beyond <= (1 - confidence) * 6 / math.pi**2
