import numpy as np
import pytest

from shuffledp import Counter, Privacy, RandomBits
from shuffledp.continual.plan import CounterPlan
from shuffledp.protocols.domains.summed import Bits, OneHot, Reals, SummedDomain, Vectors
from shuffledp.simulation import running_truth
from shuffledp.simulation.running_truth import RunningTruth, estimates_at


@pytest.mark.parametrize("domain", [Bits(), Reals(16), Vectors(3, 2.0, 16), OneHot(5)], ids=lambda d: d.kind)
@pytest.mark.parametrize("at_a_time", [1, 64, 1 << 20])
def test_the_truth_in_blocks_is_the_truth(monkeypatch, domain: SummedDomain, at_a_time: int) -> None:
    monkeypatch.setattr(running_truth, "_AT_A_TIME", at_a_time)
    plan = CounterPlan.plan(users=400, shufflers=2, privacy=Privacy(4, 1e-3), domain=domain)
    values = domain.synthesize(391, np.random.default_rng(1))
    estimates = Counter(plan).run(values, bits=RandomBits.seeded(1))
    numbers = np.eye(5)[values] if isinstance(domain, OneHot) else values
    sums = np.concatenate([np.zeros((1, *np.shape(numbers)[1:])), np.cumsum(numbers, axis=0)])
    truth = RunningTruth.of(estimates, estimates.plan.domain.check_values(values))
    closing = estimates.times
    np.testing.assert_allclose(truth.at_closing, sums[closing], atol=1e-9)
    np.testing.assert_allclose(truth.at_the_end, sums[-1], atol=1e-9)
    np.testing.assert_allclose(estimates_at(estimates, np.arange(1, 392)), estimates.every(), atol=1e-9)
    assert truth.largest_error == pytest.approx(np.abs(estimates.every() - sums[1:]).max())
