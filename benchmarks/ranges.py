"""Ranges and quantiles: the median of a million users, and trees beside the paper's, a curator's and a local one."""

import math
import sys
import time

import numpy as np
from report import figure, report

from shuffledp import Privacy, RandomBits, Ranges, simulate
from shuffledp.protocols.heavy_hitters import HeavyHitters
from shuffledp.protocols.histogram.blanket import smallest_blanket
from shuffledp.references.range_trees import best_curator_tree, best_local_tree
from shuffledp.schedules.interval_trees import IntervalTree, TreeSquares
from shuffledp.simulation.heavy_hitters import search_heavy_hitters

TARGET = Privacy(1, 1e-6)
USERS, SIZE = 1_000_000, 1 << 16
RUNS = 10


def worlds() -> dict[str, np.ndarray]:
    """Uniform, concentrated around one place, all but a few on two neighbouring values, and heavy tailed."""
    draws = np.random.default_rng(1)
    return {
        "uniform": draws.integers(0, SIZE, USERS),
        "concentrated": draws.normal(20_000, 40, USERS).clip(0, SIZE - 1).astype(np.int64),
        "two values": np.where(draws.random(USERS) < 0.4995, 32_767, 32_768),
        "heavy tailed": np.minimum(draws.pareto(0.7, USERS) * 20, SIZE - 1).astype(np.int64),
    }


def rank_error(counts: np.ndarray, code: int, q: float) -> float:
    """How far q is from the ranks that a value has."""
    shares = np.cumsum(counts) / counts.sum()
    below = shares[code - 1] if code else 0.0
    return max(0.0, below - q, q - shares[code])


def medians() -> list[dict]:
    rows = []
    for limit in (6, 8, 12):
        started = time.perf_counter()
        plan = Ranges.plan(users=USERS, privacy=TARGET, domain=SIZE, max_messages=limit)
        seconds = time.perf_counter() - started
        proved = plan.errors.prefix_bound / USERS
        sent = f"{plan.messages_per_user_mean:.2f} messages, branching {plan.branching[0]}, planned in {seconds:.1f} s"
        rows.append(figure(f"at most {limit} messages: all ranks, proved, %", 100 * proved, "<=", 0.2, sent))
        for name, codes in worlds().items():
            counts = np.bincount(codes, minlength=SIZE)
            bits, worst, outside = RandomBits.seeded(limit), 0.0, 0
            true = np.cumsum(counts) / USERS
            everywhere = 0.0
            for _ in range(RUNS):
                ranges = plan.ranges(plan.sample_estimate(codes, bits=bits))
                median = ranges.median()
                worst = max(worst, rank_error(counts, int(median.value), 0.5))
                outside += not median.lower <= int(np.argmax(true >= 0.5)) <= median.upper
                everywhere = max(everywhere, float(np.abs(ranges.cdf() - true).max()))
            note = f"worst rank anywhere {100 * everywhere:.4f}%; intervals missed {outside} of {RUNS}"
            rows.append(figure(f"  median, {name}: worst of {RUNS}, %", 100 * worst, "<=", 0.2, note))
    return rows


def message_by_message() -> list[dict]:
    plan = Ranges.plan(users=USERS, privacy=TARGET, domain=SIZE, max_messages=8)
    codes = worlds()["heavy tailed"]
    started = time.perf_counter()
    ranges = plan.ranges(simulate(plan, codes, bits=RandomBits.seeded(9)))
    seconds = time.perf_counter() - started
    off = rank_error(np.bincount(codes, minlength=SIZE), int(ranges.median().value), 0.5)
    note = f"rank error of the median {100 * off:.4f}%"
    return [figure("every message of a million users, seconds", seconds, "<=", 60, note)]


def trees() -> list[dict]:
    """The worst prefix's standard error, in users."""
    best = Ranges.plan(users=USERS, privacy=TARGET, domain=SIZE, max_messages=24)
    few = Ranges.plan(users=USERS, privacy=TARGET, domain=SIZE, max_messages=8)
    dyadic = Ranges.plan(users=USERS, privacy=TARGET, domain=SIZE, method="dyadic")
    tree = IntervalTree(SIZE, 2)
    levels = tree.depth
    part = smallest_blanket(Privacy(1 / levels, 1e-6 / levels))
    basic = math.sqrt(float(TreeSquares(tree, (part,) * levels).prefixes()[0].max()))
    paper = best.reference()["paper_prefix_standard_error"]
    curator, local = best_curator_tree(TARGET, SIZE), best_local_tree(USERS, TARGET, SIZE)
    ours = best.errors.prefix
    return [
        figure("worst prefix, standard error", ours, "<=", 50, f"{best.messages_per_user_mean:.1f} messages a user"),
        figure("the same with 8 messages", few.errors.prefix, "<=", 100, f"{few.messages_per_user_mean:.1f} a user"),
        figure("/ dyadic tree, exact composition", ours / dyadic.errors.prefix, "<=", 1.1, _dyadic(dyadic)),
        figure("/ dyadic tree, epsilon / levels", ours / basic, "<=", 0.5, f"{basic:.1f}, with least squares"),
        figure("/ the paper's constants, dyadic", ours / paper, "<=", 0.1, f"{paper:.0f}, no least squares"),
        figure("/ trusted curator's best tree", ours / curator.prefix_error, "<=", 1.3, _named(curator)),
        figure("/ local model's best tree", ours / local.prefix_error, "<=", 0.01, _named(local)),
    ]


def _dyadic(plan: Ranges) -> str:
    return f"{plan.errors.prefix:.1f} with {plan.messages_per_user_mean:.0f} messages a user"


def _named(tree: object) -> str:
    return f"{tree.prefix_error:.1f}, branching {tree.branching}, {tree.noise}"


def rectangles() -> list[dict]:
    plan = Ranges.plan(users=USERS, privacy=TARGET, domain=[256, 256])
    draws = np.random.default_rng(2)
    codes = np.stack([draws.normal(100, 40, USERS).clip(0, 255).astype(np.int64) for _ in range(2)], axis=1)
    ranges = plan.ranges(plan.sample_estimate(codes, bits=RandomBits.seeded(3)))
    counted = ranges.count((60, 140), (90, 200))
    inside = (codes[:, 0] >= 60) & (codes[:, 0] <= 140) & (codes[:, 1] >= 90) & (codes[:, 1] <= 200)
    off = abs(counted.value - inside.sum())
    sent = f"{plan.messages_per_user_mean:.1f} messages a user, branching {plan.branching}"
    return [
        figure("256 x 256: all corners, proved, %", 100 * plan.errors.prefix_bound / USERS, "<=", 0.2, sent),
        figure(
            "one rectangle, off by (users)", off, "<=", counted.bound, f"standard error {counted.standard_error:.0f}"
        ),
    ]


def strings() -> list[dict]:
    draws = np.random.default_rng(4)
    letters = b"abcdefghijklmnopqrstuvwxyz"
    names = ["".join(chr(c) for c in draws.integers(97, 123, draws.integers(3, 9))) for _ in range(20_000)]
    weights = 1 / np.arange(1, len(names) + 1)
    people = np.array(names)[draws.choice(len(names), USERS, p=weights / weights.sum())]
    search = HeavyHitters.plan(users=USERS, privacy=TARGET, length=8, top=20, alphabet=letters)
    started = time.perf_counter()
    found = search_heavy_hitters(search, people, bits=RandomBits.seeded(5))
    seconds = time.perf_counter() - started
    distinct, counts = np.unique(people, return_counts=True)
    truth = dict(zip(distinct.tolist(), counts.tolist(), strict=True))
    top = sorted(truth, key=truth.get, reverse=True)[:20]
    recovered = len({each.string for each in found} & set(top)) / 20
    held = sum(each.lower <= truth.get(each.string, 0) <= each.upper for each in found)
    note = f"20,000 names, Zipf; {held} of {len(found)} intervals hold; {seconds:.1f} s message by message"
    # At most 20 strings are printed: of those who are promised more, the others are left to a larger `top`.
    missed = sum(truth[name] >= search.surely_found and name not in {each.string for each in found} for name in top)
    promise = f"promised from {search.surely_found:,.0f} of {USERS:,} users on"
    return [
        figure("frequent strings: part of the true top 20", recovered, ">=", 0.9, note),
        figure("frequent strings: missed of the top 20 that are promised", missed, "<=", 0, promise),
    ]


if __name__ == "__main__":
    sys.exit(report("Ranges and quantiles", medians() + message_by_message() + trees() + rectangles() + strings()))
