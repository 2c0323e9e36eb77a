import numpy as np
import pytest

from shuffledp import BinarySum, Privacy, RandomBits, simulate
from shuffledp.errors import ParameterError, TooFewReportsError
from shuffledp.simulation.environments.synthetic import synthetic_values

PLAN = BinarySum.plan(users=100_000, privacy=Privacy(1, 1e-6), method="coins")


def test_progress_is_told_for_every_chunk() -> None:
    told: list[int] = []
    simulate(PLAN, synthetic_values(PLAN, seed=1), bits=RandomBits.seeded(1), progress=told.append)
    assert told == [65_536, 100_000]


def test_both_fidelities_are_near_the_truth() -> None:
    values = (np.random.default_rng(2).random(PLAN.users) < 0.2).astype(np.uint8)
    for fast in (False, True):
        estimate = simulate(PLAN, values, bits=RandomBits.secure(), fast=fast)
        assert abs(estimate.value - values.sum()) < 12 * PLAN.standard_error
        assert not estimate.simulated


def test_other_numbers_of_values_are_refused() -> None:
    with pytest.raises(TooFewReportsError):
        simulate(PLAN, np.ones(99_999, dtype=np.uint8), bits=RandomBits.seeded(1))
    with pytest.raises(ParameterError, match="100000"):
        simulate(PLAN, np.ones(100_001, dtype=np.uint8), bits=RandomBits.seeded(1))


def test_synthetic_bits_have_their_share() -> None:
    assert synthetic_values(PLAN, seed=1).mean() == pytest.approx(0.3, abs=0.01)
    assert (synthetic_values(PLAN, seed=3) == synthetic_values(PLAN, seed=3)).all()
