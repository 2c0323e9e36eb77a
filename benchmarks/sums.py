"""Bounded and vector sums: errors beside the analytic Gaussian, dropouts, and speed beside a plain sum."""

import resource
import sys
import time

import numpy as np
from report import figure, report

from shuffledp import BoundedSum, Privacy, RandomBits, VectorSum, simulate
from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.accounting.laws import Binomial
from shuffledp.accounting.normal_scores import normal_scores
from shuffledp.accounting.renyi import renyi_delta
from shuffledp.protocols.bounded_sum.paper import robust_epsilon

TARGET = Privacy(1, 1e-6)
GAUSSIAN = gaussian_standard_deviation(TARGET)


def errors() -> list[dict]:
    shares = BoundedSum.plan(users=10_000, privacy=TARGET, low=0, high=1, method="shares")
    bits = BoundedSum.plan(users=10_000, privacy=TARGET, low=0, high=1, method="bits")
    note = f"the paper's constants give an error of {shares.reference()['paper_standard_error']:.3g}"
    rows = [
        figure("scalar, 10,000 users, shares: standard error", shares.standard_error, "<=", 1.5, "Laplace: 1.414"),
        figure("the same: messages a user", shares.messages_per_user_max, "<=", 12, note),
        figure("the same: bits a message", shares.bits_per_message, "<=", 64, ""),
        figure(
            "scalar, 10,000 users, bits: standard error", bits.standard_error, "<=", 4.9, f"Gaussian: {GAUSSIAN:.3f}"
        ),
    ]
    few = BoundedSum.plan(users=1000, privacy=TARGET, low=0, high=1, method="bits")
    note = f"{few.error_bound:.2f}; with the rounding apart, by Hoeffding's bound, 13.50"
    rows.append(
        figure("scalar, 1,000 users, bits: 95% bound / error", few.error_bound / few.standard_error, "<=", 2.01, note)
    )
    for users, dimension in ((1000, 10), (100_000, 1000)):
        for method in ("shares", "bits"):
            plan = VectorSum.plan(users=users, privacy=TARGET, dimension=dimension, radius=1, method=method)
            reference = plan.reference()
            ratio = plan.standard_error / reference["central_standard_error"]
            note = f"{plan.standard_error:.3f}; the paper's constants {reference['paper_standard_error']:.4g}"
            rows.append(figure(f"vector, d {dimension}, {users:,} users, {method}: / Gaussian", ratio, "<=", 1.1, note))
            if method == "shares":
                limit = 12 if dimension == 1000 else 16
                rows.append(figure("the same: shares a coordinate", plan.noise["shares"], "<=", limit, ""))
    return rows


def conversions() -> list[dict]:
    """What the Renyi conversion costs, beside normal scores: deviation over shift length at (1, 1e-6)."""
    rows = []
    for length in (1, 2, 4, 16):
        coins = int((2 * 4.5 * length) ** 2)
        while renyi_delta(Binomial(coins, 0.5), length, 10, TARGET.epsilon) > TARGET.delta:
            coins += max(1, coins // 500)
        fewer = int((2 * GAUSSIAN * length) ** 2)
        # A thousandth of delta for the window.
        slope = 1 / gaussian_standard_deviation(Privacy(1, 0.999e-6))
        while normal_scores(Binomial(fewer, 0.5), length, 1e-10).steepest * length > slope:
            fewer += max(1, fewer // 500)
        by_scores, by_renyi = (np.sqrt(n) / 2 / length for n in (fewer, coins))
        note = f"Renyi {by_renyi:.3f}; Gaussian {GAUSSIAN:.3f}"
        rows.append(figure(f"coins, shift {length}: deviation by normal scores", by_scores, "<=", by_renyi, note))
    return rows


def dropouts() -> list[dict]:
    plans = {
        "scalar bits": BoundedSum.plan(users=10_000, privacy=TARGET, low=0, high=1, method="bits"),
        "vector bits": VectorSum.plan(users=100_000, privacy=TARGET, dimension=10, radius=1, method="bits"),
        "vector shares": VectorSum.plan(users=100_000, privacy=TARGET, dimension=10, radius=1, method="shares"),
    }
    rows = []
    for name, plan in plans.items():
        for fraction in (1.0, 0.9, 0.5, 1 / 3):
            claimed = robust_epsilon(TARGET, fraction)
            left = plan.epsilon_with(fraction)
            note = "the paper's 1/gamma as the target"
            rows.append(figure(f"{name}, honest {fraction:.3g}: epsilon", left, "<=", claimed * (1 + 1e-9), note))
    return rows


def speed() -> list[dict]:
    users, dimension = 100_000, 1000
    vectors = np.random.default_rng(1).normal(size=(users, dimension))
    vectors /= np.linalg.norm(vectors, axis=1)[:, np.newaxis] * (1 + 1e-9)
    bits = RandomBits.seeded(1)
    rows = []
    for method in ("shares", "bits"):
        plan = VectorSum.plan(users=users, privacy=TARGET, dimension=dimension, radius=1, method=method)
        first = _seconds(lambda: plan.sample_estimate(vectors, bits=bits))  # noqa: B023
        sums, estimates = [], []
        for _ in range(5):
            sums.append(_seconds(lambda: vectors.sum(axis=0)))
            estimates.append(_seconds(lambda: plan.sample_estimate(vectors, bits=bits)))  # noqa: B023
        note = f"{min(estimates):.3f} s beside {min(sums):.3f} s; the first, with its tables, {first:.2f} s"
        ratio = min(estimates) / min(sums)
        rows.append(figure(f"sample_estimate, {method}, 1e5 x 1000: / X.sum(axis=0)", ratio, "<=", 12, note))
    plan = VectorSum.plan(users=users, privacy=TARGET, dimension=dimension, radius=1, method="shares")
    started = time.perf_counter()
    estimate = simulate(plan, vectors, bits=bits)
    seconds = time.perf_counter() - started
    rate = users * plan.messages_per_user_max / seconds / 1e6
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    deviation = float(np.sqrt(np.mean(np.square(estimate.value - vectors.sum(axis=0))))) / plan.standard_error
    rows += [
        figure(
            "message by message, shares: million shares/s", rate, ">=", 5, f"1e9 shares in {seconds:.0f} s, one core"
        ),
        figure("the same: gigabytes at most", memory, "<=", 2, "0.8 of them the data"),
        figure("the same: error / claimed", deviation, "<=", 1.12, "root mean square of 1000 coordinates"),
    ]
    return rows


def _seconds(call) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(report("Sums", [*errors(), *conversions(), *dropouts(), *speed()]))
