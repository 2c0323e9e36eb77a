"""People with several rows, and groups: one batch beside one a row, ends beside vectors, and the speed of grouping."""

import math
import sys
import time

import numpy as np
from report import figure, report

from shuffledp import Privacy, VectorSum
from shuffledp.accounting.curves import smallest_real
from shuffledp.accounting.repeated import RepeatedPair
from shuffledp.accounting.split_coins import BallsPair
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.protocols.grouped.ends import EndsShares
from shuffledp.protocols.people.families import RepeatedCount
from shuffledp.protocols.people.histogram import RepeatedHistogramFamily
from shuffledp.protocols.people.rows import kept_rows

TARGET = Privacy(1, 1e-6)
USERS, ROWS, BINS = 10_000, 3, 10


def composed() -> list[dict]:
    """One batch with all of a person's rows, over as many batches with one row of everybody each, added up."""
    rows = []
    plan = RepeatedHistogramFamily.plan(users=USERS, privacy=TARGET, categories=BINS, at_most=ROWS, method="decoys")
    coins = 8 * USERS

    def enough(rate: float) -> bool:
        return RepeatedPair(BallsPair(coins, rate / coins), ROWS).delta(TARGET.epsilon) <= TARGET.delta

    rate = smallest_real(enough, 0.0, 40.0 * ROWS, relative=1e-3)
    apart = math.sqrt(ROWS * rate * (1 - 1 / (BINS + 1)))
    note = f"{plan.standard_error:.2f} beside {apart:.2f}, both exact"
    ratio = plan.standard_error / apart
    rows.append(figure(f"histogram by decoys, {ROWS} rows: error / composed", ratio, "<=", 1.01, note))
    count = RepeatedCount.plan(users=USERS, privacy=TARGET, at_most=ROWS, method="shares")
    # Laplace noise composes by adding epsilons: delta of 1e-6 buys nothing for three.
    once = BinarySum.plan(users=USERS, privacy=Privacy(TARGET.epsilon / ROWS, TARGET.delta / ROWS), method="shares")
    apart = math.sqrt(ROWS) * once.standard_error
    note = f"{count.standard_error:.2f} beside {apart:.2f}"
    ratio = count.standard_error / apart
    rows.append(figure(f"count by shares, {ROWS} rows: error / composed", ratio, "<=", 0.6, note))
    return rows


def ends() -> list[dict]:
    """The error of a number of every group, beside that of a vector sum with one coordinate a number."""
    plan = EndsShares.plan(users=USERS, privacy=TARGET, groups=["A", "B"], low=0, high=1)
    vector = VectorSum.plan(users=USERS, privacy=TARGET, dimension=4, radius=1, method="shares")
    note = f"{plan.standard_error:.2f} beside {vector.standard_error:.2f}"
    ratio = plan.standard_error / vector.standard_error
    return [figure("ends of two groups: error / vector sum's", ratio, "<=", 0.4, note)]


def speed() -> list[dict]:
    """A million rows of a hundred thousand people, beside sorting their owners once."""
    owners = np.random.default_rng(1).integers(0, 100_000, 1_000_000)
    sorting, grouping = [], []
    for _ in range(3):
        for times, call in ((sorting, lambda: np.sort(owners)), (grouping, lambda: kept_rows(owners, 3))):
            started = time.perf_counter()
            call()
            times.append(time.perf_counter() - started)
    note = f"{min(grouping):.2f} s beside {min(sorting):.2f} s"
    return [figure("1e6 rows grouped: / sorting their owners", min(grouping) / min(sorting), "<=", 15, note)]


if __name__ == "__main__":
    sys.exit(report("People", [*composed(), *ends(), *speed()]))
