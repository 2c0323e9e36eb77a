"""Two rounds from beginning to end."""

import numpy as np
import pytest

from shuffledp.privacy import Privacy
from shuffledp.protocols.masked_sum import MaskedSum
from shuffledp.randomness import RandomBits
from shuffledp.simulation.masked_sum import run_masked_sum

TARGET = Privacy(1, 1e-6)


@pytest.mark.parametrize("users", [2, 3, 25, 100])
def test_keys_agree_and_the_sum_is_near(users: int) -> None:
    plan = MaskedSum.plan(users=users, privacy=TARGET)
    values = np.arange(users) % 2
    run = run_masked_sum(plan, values, bits=RandomBits.seeded(1))
    assert run.keys_agree and run.fewest_key_bits >= plan.modulus_bits and run.pairs == users * (users - 1) // 2
    assert run.messages_round_1 == users * (users - 1) * plan.repetitions and run.messages_round_2 == users
    assert abs(run.error) <= plan.largest_deviation and run.truth == values.sum() and run.estimate.simulated


def test_a_seed_repeats_a_run_and_secure_bits_are_no_simulation() -> None:
    plan = MaskedSum.plan(users=5, privacy=TARGET)
    values = [1, 0, 1, 1, 0]
    first, second = (run_masked_sum(plan, values, bits=RandomBits.seeded(7)).estimate for _ in range(2))
    assert first == second and not run_masked_sum(plan, values, bits=RandomBits.secure()).estimate.simulated
