"""The foundation's figures, as ratios in one run: `make bench`.

Each line compares with a reference measured in the same process, best of several rounds taken in turn.
"""

import sys
import time
from collections.abc import Callable

import numpy as np
from report import figure, report

from shuffledp import BinarySum, Privacy, RandomBits, Reports, Shuffler, simulate
from shuffledp.accounting.composition import Composition
from shuffledp.accounting.laws import Binomial
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.protocols.binary_sum.coins import smallest_fair_coins, smallest_probability
from shuffledp.protocols.domains.summed import BITS
from shuffledp.sampling.coins import fair_coin_sums
from shuffledp.sampling.discrete_gaussian import sample_discrete_gaussian
from shuffledp.shuffle.shuffler import BatchSpec

MILLION = 1_000_000


def best(*calls: Callable[[], object], rounds: int = 7) -> list[float]:
    """The best time of each call, the calls taken in turn so that a noisy moment hits all."""
    times = [[0.0] * rounds for _ in calls]
    for call in calls:
        call()
    for i in range(rounds):
        for times_of_call, call in zip(times, calls, strict=True):
            started = time.perf_counter()
            call()
            times_of_call[i] = time.perf_counter() - started
    return [min(t) for t in times]


def words() -> dict:
    bits, generator = RandomBits.secure(), np.random.PCG64(1)
    ours, theirs = best(lambda: bits.words(4 * MILLION), lambda: generator.random_raw(4 * MILLION))
    return figure("random words beside PCG64", theirs / ours, ">=", 1.0, f"{32e-3 / ours:.1f} GB/s")


def coin_sums() -> dict:
    bits, generator = RandomBits.secure(), np.random.default_rng(1)
    ours, theirs = best(lambda: fair_coin_sums(64, MILLION, bits=bits), lambda: generator.binomial(64, 0.5, MILLION))
    return figure("Bin(64, 1/2), exact, beside numpy's float", theirs / ours, ">=", 3.0, f"{1 / ours:.0f} million/s")


def wide_noise() -> dict:
    """Discrete Gaussians beside numpy's continuous ones, which protect nobody."""
    bits, generator = RandomBits.secure(), np.random.default_rng(1)
    variances = 4.0 ** generator.uniform(0, 40, MILLION)
    one, each, theirs = best(
        lambda: sample_discrete_gaussian(1e12, MILLION, bits=bits),
        lambda: sample_discrete_gaussian(variances, bits=bits),
        lambda: generator.standard_normal(MILLION),
    )
    note = f"{1 / each:.1f} with a variance each; {one / theirs:.0f} times numpy's standard_normal"
    return figure("discrete Gaussians, exact: million a second a core", 1 / one, ">=", 5.0, note)


def shuffler(messages: int) -> dict:
    payloads = np.zeros((messages, 1), dtype=np.uint64)
    reports, bits = Reports.of_equal_size(payloads), RandomBits.secure()
    keys = RandomBits.secure().words(messages)

    def shuffle() -> None:
        one = Shuffler(bits=bits)
        one.open(BatchSpec(messages))
        one.accept(reports)
        one.close()

    ours, sort = best(shuffle, lambda: np.sort(keys), rounds=4)
    return figure(
        f"shuffler, {messages:.0e} messages: million a second a core",
        messages / ours / 1e6,
        ">=",
        5.0,
        f"{ours / sort:.1f} times a bare sort of as many words",
    )


def count(method: str, fast: bool, limit: float) -> dict:
    plan = BinarySum.plan(users=MILLION, privacy=Privacy(1, 1e-6), method=method)
    values, bits = BITS.synthesize(MILLION, np.random.default_rng(1)), RandomBits.secure()
    ours, total = best(lambda: simulate(plan, values, bits=bits, fast=fast), lambda: values.sum(), rounds=5)
    name = f"binary sum by {method}, 1e6 users, {'fast law' if fast else 'message by message'}: seconds"
    return figure(name, ours, "<=", limit, f"{ours / total:.0f} times a plain sum")


def calibration() -> dict:
    # The search itself: both remember what they found.
    (coins, rare) = best(
        lambda: smallest_fair_coins.__wrapped__(Privacy(0.1, 1e-9)),
        lambda: smallest_probability.__wrapped__(MILLION, Privacy(1, 1e-6)),
    )
    return figure("calibration: milliseconds a call", 1000 * max(coins, rare), "<=", 50.0, "the slower of two regimes")


def composition() -> dict:
    from dp_accounting.pld import privacy_loss_distribution

    law, k = Binomial(1429, 0.5), np.arange(1431, dtype=np.float64)
    upper = {int(i): float(v) for i, v in zip(k, law.log_pmf(k), strict=True) if np.isfinite(v)}
    lower = {int(i): float(v) for i, v in zip(k, law.log_pmf(k - 1), strict=True) if np.isfinite(v)}

    def ours() -> float:
        return Composition([(ShiftPair(law), 20)]).epsilon(1e-6)

    def theirs() -> float:
        pld = privacy_loss_distribution.from_two_probability_mass_functions(lower, upper, symmetric=False)
        return float(pld.self_compose(20).get_epsilon_for_delta(1e-6))

    with np.errstate(all="ignore"):
        a, b = best(ours, theirs, rounds=3)
        note = f"{b / a:.2f} times its speed; epsilon {ours():.6f} beside {theirs():.6f}"
        return figure("20-fold composition beside dp-accounting: excess epsilon", theirs() / ours(), ">=", 1.0, note)


def errors() -> list[dict]:
    rows = []
    for users, method, limit in ((10_000, "shares", 1.45), (60, "coins", 5.48), (10_000, "coins", 5.85)):
        plan = BinarySum.plan(users=users, privacy=Privacy(1, 1e-6), method=method)
        note = f"a trusted curator's is {plan.reference()['central_standard_error']:.3f}"
        rows.append(figure(f"standard error, {method}, {users:,} users", plan.standard_error, "<=", limit, note))
    return rows


def main() -> int:
    rows = [
        words(),
        coin_sums(),
        wide_noise(),
        shuffler(MILLION),
        shuffler(10 * MILLION),
        count("coins", False, 2.0),
        count("coins", True, 0.02),
        count("shares", False, 5.0),
        count("shares", True, 0.02),
        calibration(),
        composition(),
        *errors(),
    ]
    return report("Foundation", rows)


if __name__ == "__main__":
    sys.exit(main())
