import dataclasses
import math

import numpy as np
import pytest

from shuffledp.errors import BrokenBatchError, InfeasibleError, ParameterError
from shuffledp.messages import Batch
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum.coins import Coins
from shuffledp.randomness import RandomBits
from shuffledp.testing.protocols import check_protocol

TARGET = Privacy(1, 1e-6)


def test_standard_errors_at_epsilon_1() -> None:
    assert Coins.plan(users=80, privacy=TARGET).standard_error == pytest.approx(4.47, abs=0.005)
    few = Coins.plan(users=60, privacy=TARGET)
    assert few.bits_per_user == math.ceil(80 / 60) and few.probability == 0.5
    assert 4.47 <= few.standard_error <= math.sqrt(60 * 2) / 2
    assert Coins.plan(users=10_000, privacy=TARGET).standard_error <= 5.85


def test_the_papers_own_constants() -> None:
    paper = Coins.plan(users=60, privacy=TARGET, constants="paper")
    assert paper.standard_error == pytest.approx(18.7, rel=0.02)  # whole coins a user
    assert paper.bits_per_user == 24
    many = Coins.plan(users=10_000, privacy=TARGET, constants="paper")
    assert many.noise_law.mean == pytest.approx(48 * math.log(2e6))
    assert many.standard_error > 4 * Coins.plan(users=10_000, privacy=TARGET).standard_error


@pytest.mark.parametrize("users", [1, 30, 60, 80, 81, 1000, 10**6])
@pytest.mark.parametrize("honest_fraction", [1.0, 0.5])
def test_a_twin_with_20_percent_less_noise_cannot_be_made(users: int, honest_fraction: float) -> None:
    plan = Coins.plan(users=users, privacy=TARGET, honest_fraction=honest_fraction)
    if plan.probability == 0.5:
        # Rounding up to whole coins may leave more than the smallest noise: take 20% off that.
        needed = 80 / plan.honest_users
        twin = {"bits_per_user": max(1, math.floor(0.8 * needed)), "probability": min(0.5, 0.4 * needed)}
        twin = {"bits_per_user": twin["bits_per_user"]} if needed >= 2 else {"bits_per_user": 1, "probability": 0.25}
    else:
        twin = {"probability": 0.8 * plan.probability}
    with pytest.raises(InfeasibleError, match="noise must reach delta"):
        dataclasses.replace(plan, **twin)


class QuietCoins(Coins):
    """Sends one coin in five as 0: what check_protocol must notice."""

    def _noise_bits(self, count: int, bits: RandomBits):
        return super()._noise_bits(count, bits) & (bits.unsigned(count, 8) > 51)


def test_check_protocol_catches_a_quiet_twin() -> None:
    honest = Coins.plan(users=40, privacy=TARGET)
    quiet = QuietCoins(**{f.name: getattr(honest, f.name) for f in dataclasses.fields(honest)})
    with pytest.raises(AssertionError):
        check_protocol(quiet, [0, 1] * 20, [[2]])


def test_lost_and_malformed_messages_widen_the_bound() -> None:
    plan = Coins.plan(users=50, privacy=TARGET)
    payloads = plan.randomize([1] * 50, bits=RandomBits.seeded(1)).payloads
    whole = plan.analyze(Batch(payloads, 50))
    spoiled = payloads.copy()
    spoiled[:3] = 77
    estimate = plan.analyze(Batch(spoiled[:-2], 50))
    assert estimate.dropped == 5 and estimate.bound == whole.bound + 5
    assert abs(estimate.value - whole.value) <= 5


def test_more_messages_than_the_plan_are_refused() -> None:
    plan = Coins.plan(users=50, privacy=TARGET)
    payloads = plan.randomize([1] * 50, bits=RandomBits.seeded(1)).payloads
    with pytest.raises(BrokenBatchError, match="more than the plan"):
        plan.analyze(Batch(np.concatenate((payloads, payloads)), 50))


@pytest.mark.parametrize(
    "change", [{"bits_per_user": 0}, {"probability": 0.6}, {"probability": 0.0}, {"probability": math.nan}]
)
def test_bad_noise_is_named(change) -> None:
    plan = Coins.plan(users=50, privacy=TARGET)
    with pytest.raises(ParameterError, match=next(iter(change))):
        dataclasses.replace(plan, **change)
