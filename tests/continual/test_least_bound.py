"""What one estimate alone refutes: exact tails, certificates that stand, and files that claim too little."""

import dataclasses
import json

import numpy as np
import pytest

from shuffledp.continual.certified import certify
from shuffledp.continual.plan import CounterPlan
from shuffledp.continual.shape import batch_noises
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.catalogue import plan_from_document
from shuffledp.protocols.sums.noise import CoinNoise
from shuffledp.randomness import RandomBits

PRIVACY = Privacy(1, 1e-6)


@pytest.mark.parametrize("estimator", ["completed", "combined"])
def test_a_certificate_stands_between_what_is_refuted_and_what_is_proved(estimator: str) -> None:
    plan = CounterPlan.plan(users=3000, shufflers=2, privacy=PRIVACY, noise="coins", estimator=estimator)
    certified = certify(plan, runs=1000)
    least, proved = plan.least_noise_bound, plan.proved_noise_bound
    assert 0 < least < certified.certified_noise_bound <= proved
    document = json.loads(json.dumps(certified.document()))
    assert plan_from_document(document) == certified
    with pytest.raises(ParameterError, match="certified_noise_bound"):
        dataclasses.replace(plan, certified_noise_bound=least - 1)
    # Of 4,000 runs about one in twenty passes the least bound at the deepest estimate alone; many more at any time.
    noise = batch_noises(plan, plan.schedule.batches, (4000,), bits=RandomBits.seeded(1))
    largest = np.abs(plan.schedule.prefix_sums(noise)).max(axis=0)
    assert (largest > least - 1).mean() > 0.05
    [claim] = certified.unchecked_claims
    assert "whoever made the plan" in claim and plan.unchecked_claims == ()


def test_a_single_batch_is_a_binomial() -> None:
    """Fair coins: the tails of one batch, of three and of five."""
    from scipy import stats

    from shuffledp.continual.least_bound import least_completed_bound
    from shuffledp.schedules.combinatorial import combinatorial_schedule

    schedule = combinatorial_schedule(5, 1, 10)
    for reached in (1, 3, 5):
        tails = [2 * stats.binom.sf(40 * reached + a, 80 * reached, 0.5) for a in range(60)]
        expected = next(a for a, tail in enumerate(tails) if tail <= 0.05)
        assert least_completed_bound(CoinNoise(80), schedule, reached, 0.05) == expected
    assert least_completed_bound(CoinNoise(80), schedule, 0, 0.05) == 0


def test_derived_floats_may_differ_in_their_last_bits() -> None:
    plan = CounterPlan.plan_reals(users=2000, shufflers=2, privacy=PRIVACY)
    document = json.loads(json.dumps(plan.document()))
    near = document | {"standard_error_max": document["standard_error_max"] * (1 + 1e-12)}
    assert plan_from_document(near) == plan
    with pytest.raises(ParameterError, match="standard_error_max"):
        plan_from_document(document | {"standard_error_max": document["standard_error_max"] * (1 + 1e-8)})
    with pytest.raises(ParameterError, match="fingerprint"):
        plan_from_document(document | {"epsilon": document["epsilon"] * (1 + 1e-12)})
