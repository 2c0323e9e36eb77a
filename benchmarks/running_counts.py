"""Running counts and sums: bounds beside the paper's and a curator's, simulated maxima, speed, growth."""

import resource
import sys
import time

import numpy as np
from report import figure, report

from shuffledp import Counter, Privacy, RandomBits
from shuffledp.continual.certified import certify
from shuffledp.continual.plan import CounterPlan
from shuffledp.continual.reference import counter_reference
from shuffledp.protocols.domains.summed import OneHot
from shuffledp.simulation.environments.hard_streams import hard_stream

TARGET = Privacy(1, 1e-6)


def plans() -> list[dict]:
    rows = []
    for users, shufflers, noise, limit in (
        (10**6, 4, "auto", 160),
        (10**6, 2, "auto", 192),
        (10**6, 1, "auto", 490),
        (10**6, 8, "coins", 192),
        (10**5, 4, "auto", 114),
        (10**4, 3, "auto", 70),
    ):
        plan = CounterPlan.plan(users=users, shufflers=shufflers, privacy=TARGET, noise=noise)
        reference = counter_reference(plan)
        completed = CounterPlan.plan(
            users=users, shufflers=shufflers, privacy=TARGET, noise=noise, estimator="completed"
        ).error_bound
        note = (
            f"{plan.estimator}; completed {completed:g}, paper {reference['paper_error_bound']:,.0f}, "
            f"curator {reference['central_error_bound']:.1f}"
        )
        name = f"bound, {users:.0e} users, k {shufflers}, {noise}"
        rows.append(figure(name, plan.error_bound, "<=", limit, note))
    plan = CounterPlan.plan(users=10**6, shufflers=4, privacy=TARGET)
    reference = counter_reference(plan)
    gain = reference["paper_error_bound"] / plan.error_bound
    rows.append(figure("the paper's bound / ours, 1e6 users, k 4", gain, ">=", 22, ""))
    ratio = plan.error_bound / reference["central_error_bound"]
    rows.append(figure("ours / the strongest curator's", ratio, "<=", 1.6, ""))
    started = time.perf_counter()
    certified = certify(plan)
    note = f"10,000 runs in {time.perf_counter() - started:.0f} s"
    rows.append(figure("certified bound, 1e6 users, k 4", certified.error_bound, "<=", 152, note))
    for shufflers in (1, 4, 8, 20):
        started = time.perf_counter()
        big = CounterPlan.plan(users=10**9, shufflers=shufflers, privacy=TARGET)
        seconds = time.perf_counter() - started
        rows.append(
            figure(f"planning 1e9 users, k {shufflers}: seconds", seconds, "<=", 2, f"bound {big.error_bound:g}")
        )
    return rows


def other_values() -> list[dict]:
    """Numbers, vectors and categories with independent noise: bounds, and the fast law's speed."""
    asked = {"users": 10**6, "shufflers": 4, "privacy": TARGET}
    rows = []
    for name, plan, limit, least in (
        ("numbers", CounterPlan.plan_reals(**asked), 165, 1e7),
        ("vectors, d 10", CounterPlan.plan_vectors(dimension=10, radius=1, **asked), 475, 1e6),
        ("20 categories", CounterPlan.plan(domain=OneHot(20), **asked), 310, 2e6),
    ):
        note = f"{plan.batch_noise.family}, k {plan.shufflers_used}, {plan.messages_per_user_mean:.0f} messages a user"
        rows.append(figure(f"bound, {name}, 1e6 users, k 4", plan.error_bound, "<=", limit, note))
        counter, values = Counter(plan), plan.domain.synthesize(10**6, np.random.default_rng(1))
        counter.run(values, bits=RandomBits.seeded(1))
        seconds = min(_seconds(lambda: counter.run(values, bits=RandomBits.seeded(1))) for _ in range(3))  # noqa: B023
        rows.append(figure(f"{name}: values a second by law", 10**6 / seconds, ">=", least, f"{seconds:.3f} s"))
    return rows


def simulations() -> list[dict]:
    users = 10**6
    counter = Counter.of(users=users, shufflers=4, privacy=TARGET)
    rng = np.random.default_rng(1)
    streams = {
        "all ones": np.ones(users, dtype=np.uint8),
        "all zeros": np.zeros(users, dtype=np.uint8),
        "random": (rng.random(users) < 0.5).astype(np.uint8),
        "Delta(n, k)": hard_stream(users, 4, TARGET.epsilon, seed=1),
    }
    rows, quantiles = [], []
    for name, values in streams.items():
        truth = np.cumsum(values, dtype=np.int64)
        largest = [
            np.abs(counter.run(values, bits=bits).every() - truth).max() for bits in RandomBits.seeded(2).spawn(200)
        ]
        quantiles.append(float(np.quantile(largest, 0.95)))
        passed = float(np.mean(np.array(largest) > counter.plan.error_bound))
        limit = 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
        rows.append(
            figure(f"{name}: runs that pass the bound", passed, "<=", limit, f"95% quantile {quantiles[-1]:.1f}")
        )
    ratio = counter.plan.error_bound / max(quantiles)
    rows.append(figure("bound / 95% quantile on the worst stream", ratio, "<=", 1.6, ""))
    return rows


def speed() -> list[dict]:
    rows = []
    values = (np.random.default_rng(1).random(10**8, dtype=np.float32) < 0.3).view(np.uint8)
    counter = Counter.of(users=values.size, shufflers=5, privacy=TARGET)
    counter.run(values, bits=RandomBits.seeded(1))
    runs, sums = [], []
    for _ in range(3):
        sums.append(_seconds(lambda: np.cumsum(values)))
        runs.append(_seconds(lambda: counter.run(values, bits=RandomBits.seeded(1))))
    note = f"{min(runs):.2f} s beside {min(sums):.2f} s"
    rows.append(figure("run over 1e8 users / np.cumsum", min(runs) / min(sums), "<=", 2, note))
    before = None
    for users in (10**5, 10**6, 10**7, 10**8):
        counter = Counter.of(users=users, shufflers=4, privacy=TARGET)
        part = values[:users]
        counter.run(part, bits=RandomBits.seeded(1))
        seconds = min(_seconds(lambda: counter.run(part, bits=RandomBits.seeded(1))) for _ in range(5))  # noqa: B023
        if before is not None:
            rows.append(figure(f"time, {users:.0e} users / a tenth", seconds / before, "<=", 11, f"{seconds:.4f} s"))
        before = seconds
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    rows.append(figure("gigabytes at most, 0.1 the input", memory, "<=", 2.1, "cumsum's own 0.8 included"))
    counter = Counter.of(users=10**6, shufflers=4, privacy=TARGET)
    seconds = _seconds(lambda: counter.run(values[: 10**6], bits=RandomBits.seeded(1), fast=False))
    note = f"{counter.plan.messages_per_user_mean:.1f} messages a user, 4 shufflers"
    rows.append(figure("message by message, 1e6 users: seconds", seconds, "<=", 120, note))
    return rows


def _seconds(call) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(report("Running counts", [*plans(), *other_values(), *simulations(), *speed()]))
