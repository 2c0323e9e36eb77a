import dataclasses
import math

import numpy as np
import pytest

from shuffledp.accounting.mixing import mixing_distance
from shuffledp.errors import BrokenBatchError, InfeasibleError, ParameterError
from shuffledp.messages import Batch
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum.shares import Shares
from shuffledp.protocols.polya import pure_ratio
from shuffledp.randomness import RandomBits
from shuffledp.sampling.laws import discrete_laplace
from shuffledp.testing.protocols import check_protocol
from shuffledp.testing.statistics import assert_law

TARGET = Privacy(1, 1e-6)


def test_as_accurate_as_a_trusted_curator() -> None:
    plan = Shares.plan(users=10_000, privacy=TARGET)
    assert plan.standard_error <= 1.45
    assert plan.standard_error == pytest.approx(1.357, abs=5e-4)
    assert plan.messages_per_user_max <= 12 and plan.bits_per_message <= 64


def test_the_error_is_exactly_discrete_laplace() -> None:
    plan = Shares.plan(users=50, privacy=TARGET)
    bits = RandomBits.seeded(1)
    errors = []
    for _ in range(20_000):
        reports = plan.randomize([0, 1] * 25, bits=bits)
        errors.append(plan.analyze(Batch(reports.payloads, 50)).value - 25)
    law = discrete_laplace(plan.ratio)
    assert_law(errors, law.low, [float(m) for m in law.masses()])


def test_shares_are_uniform_and_say_nothing_without_the_last() -> None:
    plan = Shares.plan(users=40, privacy=TARGET)
    reports = plan.randomize([1] * 40, bits=RandomBits.seeded(1))
    bits = RandomBits.seeded(2)
    shares = np.concatenate([plan.randomize([1] * 40, bits=bits).payloads for _ in range(100)])
    high = shares >> np.uint64(plan.modulus_bits - 4)
    assert_law(high, 0, np.full(16, 1 / 16))
    assert reports.payloads.size == 40 * plan.shares


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1 / 3, 1.0, 2.0, math.pi, 10.0, 100.0])
def test_the_ratio_is_rounded_towards_more_noise(epsilon: float) -> None:
    import mpmath

    with mpmath.workdps(50):
        assert -mpmath.log(mpmath.mpf(pure_ratio(epsilon))) <= mpmath.mpf(epsilon)
    assert pure_ratio(epsilon) == pytest.approx(math.exp(-epsilon), rel=1e-13)


@pytest.mark.parametrize("users", [1, 2, 30, 10_000, 10**6])
@pytest.mark.parametrize("honest_fraction", [1.0, 0.5])
def test_a_twin_with_20_percent_less_noise_cannot_be_made(users: int, honest_fraction: float) -> None:
    plan = Shares.plan(users=users, privacy=TARGET, honest_fraction=honest_fraction)
    twin = math.exp(-1 / 0.8)  # scale 0.8 of the noise's own
    with pytest.raises(InfeasibleError, match="noise must reach delta"):
        dataclasses.replace(plan, ratio=twin)
    if plan.shares > 1:
        with pytest.raises(InfeasibleError, match="noise must reach delta"):
            dataclasses.replace(plan, shares=plan.shares - 1)


class QuietShares(Shares):
    """Adds the noise of a plan with a smaller ratio."""

    def randomize(self, values, *, bits: RandomBits):
        loud = Shares.plan(users=self.users, privacy=Privacy(1 / 0.8, 1e-6))
        return dataclasses.replace(loud, shares=self.shares, modulus_bits=self.modulus_bits).randomize(
            values, bits=bits
        )


def test_check_protocol_catches_a_quiet_twin() -> None:
    honest = Shares.plan(users=40, privacy=TARGET)
    quiet = QuietShares(**{f.name: getattr(honest, f.name) for f in dataclasses.fields(honest)})
    with pytest.raises(AssertionError):
        check_protocol(quiet, [0, 1] * 20, [[2]])


def batch_of(plan: Shares, seed: int = 1) -> np.ndarray:
    return plan.randomize([1, 0] * (plan.users // 2), bits=RandomBits.seeded(seed)).payloads.copy()


def test_a_lost_share_is_detected() -> None:
    plan = Shares.plan(users=50, privacy=TARGET)
    with pytest.raises(BrokenBatchError, match="lost or altered"):
        plan.analyze(Batch(batch_of(plan)[1:], 50))


def test_an_altered_share_is_detected() -> None:
    """A random change passes with probability 2^-40: none in 3000 may."""
    plan = Shares.plan(users=50, privacy=TARGET)
    good = batch_of(plan)
    changes = RandomBits.seeded(3).words(3000) & plan.batch.splitting.mask
    for place, change in enumerate(changes):
        spoiled = good.copy()
        spoiled[place % good.size] = change
        with pytest.raises(BrokenBatchError):
            plan.analyze(Batch(spoiled, 50))


def test_a_share_outside_the_alphabet_is_detected() -> None:
    plan = Shares.plan(users=50, privacy=TARGET)
    spoiled = batch_of(plan)
    spoiled[0] += np.uint64(1 << plan.modulus_bits)
    with pytest.raises(BrokenBatchError):
        plan.analyze(Batch(spoiled, 50))


def test_negative_sums_are_decoded() -> None:
    plan = Shares.plan(users=2, privacy=TARGET)
    q = 1 << plan.modulus_bits
    assert plan.batch.splitting.decode(np.array([q - 3, 2], dtype=np.uint64)).tolist() == [-3, 2]
    with pytest.raises(BrokenBatchError):
        plan.batch.splitting.decode(np.array([q // 2], dtype=np.uint64))


def test_margins() -> None:
    plan = Shares.plan(users=10_000, privacy=TARGET)
    sums = plan.batch.splitting.highest - plan.batch.splitting.lowest + 1
    assert (1 << plan.modulus_bits) >= sums << 40
    assert plan.noise_law.sf(plan.largest_deviation) + plan.noise_law.cdf(-plan.largest_deviation - 1) <= 1e-12
    huge = Shares.plan(users=10**9, privacy=TARGET)
    assert huge.modulus_bits == 64 and "2^-34" in huge.lying_client


def test_the_closed_form_asks_for_more_shares() -> None:
    ours = Shares.plan(users=1000, privacy=TARGET)
    theirs = Shares.plan(users=1000, privacy=TARGET, constants="paper")
    assert theirs.shares > ours.shares
    assert mixing_distance(1000, ours.shares, 1 << ours.modulus_bits) * (1 + math.e) <= 1e-6
    with pytest.raises(ParameterError, match="19"):
        Shares.plan(users=10, privacy=TARGET, constants="paper")


def test_too_small_a_delta_says_what_would_do() -> None:
    with pytest.raises(InfeasibleError, match="coins"):
        Shares.plan(users=1000, privacy=Privacy(1, 1e-40))


@pytest.mark.parametrize(
    "change",
    [{"ratio": 0.0}, {"ratio": 1.0}, {"shares": 0}, {"shares": 1000}, {"modulus_bits": 5}, {"modulus_bits": 65}],
)
def test_bad_noise_is_named(change) -> None:
    plan = Shares.plan(users=50, privacy=TARGET)
    with pytest.raises(ParameterError, match=next(iter(change))):
        dataclasses.replace(plan, **change)
