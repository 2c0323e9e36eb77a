"""Distribution tests: declared and simulated errors, how users grow with categories, and pointer chasing."""

import math
import sys

import numpy as np
from report import figure, report

from shuffledp import Privacy, UniformityTest
from shuffledp.experiments.counter import fitted_slope
from shuffledp.experiments.pointers import pointer_chasing
from shuffledp.protocols.distribution_test.local import local_users_needed
from shuffledp.protocols.distribution_test.moments import poissonised_variance, symmetric_bits_moments

TARGET, D, DISTANCE = Privacy(1, 1e-6), 100, 0.25
SIZES = [2**power for power in range(4, 13)]


def survey() -> list[dict]:
    """The survey's statistic with symmetric bits, one bin's noise, at the sizes that were checked before."""
    generator, rate, runs, rows = np.random.default_rng(1), 85.3, 20_000, []
    uniform = np.full(D, 1 / D)
    far = uniform * (1 + 2 * DISTANCE * np.where(np.arange(D) % 2, -1, 1))
    # By 100,000 runs; a shorter simulation had said 0.038, 0.076 and 0, 0.002.
    for m, alarm, miss in ((800, 0.0363, 0.0871), (1600, 0.0, 0.0008)):
        scores = []
        for law in (uniform, far):
            counts = generator.poisson(m * law, (runs, D)).astype(float)
            counts += (generator.poisson(rate / 2, (runs, D)) - generator.poisson(rate / 2, (runs, D))) / 2
            scores.append(D / m * ((counts - m / D) ** 2 - counts).sum(axis=1) - D**2 / m * rate / 4)
        limit = 2 * m * DISTANCE**2
        ratio = float(np.var(scores[0])) / poissonised_variance(m, D, *symmetric_bits_moments(rate))
        note = "symmetric bits, one bin's noise, 20,000 runs"
        rows += [
            figure(f"survey, m {m}: false alarms", float(np.mean(scores[0] > limit)), "<=", alarm + 0.006, note),
            figure(f"survey, m {m}: misses", float(np.mean(scores[1] <= limit)), "<=", miss + 0.008, note),
            figure(f"survey, m {m}: variance off by", abs(ratio - 1), "<=", 0.05, f"simulated / formula {ratio:.3f}"),
        ]
    return rows


def errors() -> list[dict]:
    rows = []
    for method in ("decoys", "rows"):
        asked = {"privacy": TARGET, "categories": D, "distance": DISTANCE, "method": method}
        users = UniformityTest.users_needed(**asked)
        for certificate in ("proved", "simulated"):
            plan = UniformityTest.plan(users=users, false_alarm=1 / 3, certificate=certificate, **asked)
            alarms = float(np.mean(plan._scores(np.full(plan.bins, 1 / plan.bins), 20_000, 3) > plan.threshold))
            note = f"{users:,} users, threshold {plan.threshold:.3f}, {plan.messages_per_user_mean:.2f} messages a user"
            rows += [
                figure(f"{method}, {certificate}: declared miss", plan.declared_miss, "<=", 1 / 3, note),
                figure(f"{method}, {certificate}: simulated false alarms", alarms, "<=", 1 / 3, "20,000 runs"),
                figure(
                    f"{method}, {certificate}: simulated misses", plan.simulated_miss(runs=5000), "<=", 1 / 3, "pairs"
                ),
            ]
    return rows


def fewest_by_simulation(d: int) -> int:
    """The fewest users with which both errors are below a third on the hard law, by simulation alone."""
    low, high = 16, UniformityTest.users_needed(privacy=TARGET, categories=d, distance=DISTANCE, method="decoys")
    while high - low > 0.02 * high:
        middle = (low + high) // 2
        plan = UniformityTest.plan(
            users=middle, privacy=TARGET, categories=d, distance=DISTANCE, method="decoys", false_alarm=1 / 3
        )
        low, high = (low, middle) if plan.simulated_miss(runs=1000) <= 1 / 3 else (middle, high)
    return high


def slopes() -> list[dict]:
    asked = {"privacy": TARGET, "distance": DISTANCE}
    local = {"epsilon": 1.0, "distance": DISTANCE}
    tables = {
        "decoys": ([UniformityTest.users_needed(categories=d, method="decoys", **asked) for d in SIZES], 0.75),
        "compressed": ([UniformityTest.users_needed(categories=d, method="compressed", **asked) for d in SIZES], 2 / 3),
        "rows": ([UniformityTest.users_needed(categories=d, method="rows", **asked) for d in SIZES], 0.75),
        "decoys, simulated": ([fewest_by_simulation(d) for d in SIZES], 0.75),
        "local, private coins": ([local_users_needed(bins=d, public_coins=False, **local) for d in SIZES], 1.5),
    }
    rows = []
    for name, (users, theory) in tables.items():
        fit = fitted_slope(SIZES, users)
        last = math.log(users[-1] / users[-3]) / math.log(4)
        note = f"± {fit.high - fit.slope:.3f}, at the end {last:.3f}, theory {theory:.3f}; users {users}"
        rows.append(figure(f"slope of users in d, {name}", fit.slope, "<=", theory + 0.12, note))
    # Below some 500 bins groups do not help the local model yet: its slope is that of private coins there.
    every = [2**power for power in range(4, 17)]
    grouped = [local_users_needed(bins=d, public_coins=True, **local) for d in every]
    whole, end = fitted_slope(every[:9], grouped[:9]), fitted_slope(every[6:], grouped[6:])
    note = f"± {whole.high - whole.slope:.3f}; users {grouped[:9]}"
    rows.append(figure("slope of users in d, local, public coins, 16..4096", whole.slope, ">=", 1.0, note))
    note = f"± {end.high - end.slope:.3f}, theory 1"
    rows.append(figure("slope of users in d, local, public coins, 1024..65536", end.slope, "<=", 1.1, note))
    large = {m: UniformityTest.users_needed(categories=2**16, method=m, **asked) for m in ("decoys", "compressed")}
    note = f"decoys {large['decoys']:,}, compressed {large['compressed']:,}"
    rows.append(
        figure("65,536 categories: compressed / decoys", large["compressed"] / large["decoys"], "<=", 0.8, note)
    )
    return rows


def pointers() -> list[dict]:
    rows = pointer_chasing(lengths=[2, 3, 4, 5, 6], runs=400)
    users = {(row.model, row.length): row.users for row in rows}
    out = []
    for row in rows:
        note = f"right {row.success:.2f} in [{row.success_low:.2f}, {row.success_high:.2f}], {row.method}"
        if row.local_success_with_as_many is not None:
            note += f"; local with as many {row.local_success_with_as_many:.2f}"
        out.append(figure(f"PC(2, {row.length}), {row.model}: users for 2/3", row.users, "<=", 300, note))
    growth = [users[model, 6] / users[model, 3] for model in ("shuffle", "local")]
    out.append(figure("users at l = 6 over l = 3, shuffle", growth[0], "<=", growth[1], f"local {growth[1]:.2f}"))
    return out


if __name__ == "__main__":
    sys.exit(report("Distribution tests", [*survey(), *errors(), *slopes(), *pointers()]))
