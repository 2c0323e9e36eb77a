"""A/B tests of means: how often the population's interval holds, and how wide it is beside others', for many shapes."""

import itertools
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from report import figure, report

from shuffledp import Privacy, RandomBits
from shuffledp.protocols.grouped.families import GroupedMeanFamily
from shuffledp.protocols.grouped.moments import GroupedMomentsFamily, GroupedRowsMomentsFamily

RUNS = 2000
LEAST = 0.935
Draw = Callable[[np.random.Generator, int], Any]
SHAPES: dict[str, Draw] = {
    "constant": lambda generator, size: np.full(size, 0.3),
    "constant at an end": lambda generator, size: np.zeros(size),
    "uniform": lambda generator, size: generator.random(size),
    "bell": lambda generator, size: generator.beta(4, 8, size),
    "skewed, 2% at the end": lambda generator, size: np.where(generator.random(size) < 0.02, 1.0, 0.05),
    "log-normal": lambda generator, size: np.minimum(generator.lognormal(-4.0, 1.2, size), 1.0),
    "bits": lambda generator, size: (generator.random(size) < 0.3).astype(np.float64),
}
# People in both groups, and epsilon.
CASES = [((60, 60), 1.0), ((40, 200), 4.0), ((400, 400), 1.0), ((2000, 300), 1.0), ((3000, 3000), 0.5)]


def coverage(shape: str, sizes: tuple[int, int], epsilon: float, runs: int, seed: int) -> tuple[float, float]:
    """How often the interval holds, and its median width; both groups have the same law, so that the truth is 0."""
    plan: Any = GroupedMomentsFamily.plan(
        users=sum(sizes), privacy=Privacy(epsilon, 1e-6), groups=["A", "B"], low=0, high=1
    )
    generator, bits = np.random.default_rng(seed), RandomBits.seeded(seed)
    group, held, widths = np.repeat([0.0, 1.0], sizes), 0, []
    for _ in range(runs):
        people = np.column_stack((group, SHAPES[shape](generator, group.size)))
        low, high = plan.difference(plan.sample_estimate(people, bits=bits), "A", "B").population
        held += low <= 0 <= high
        widths.append(high - low)
    return held / runs, float(np.median(widths))


def covered(runs: int = RUNS) -> list[dict]:
    """Every shape in groups of every size, 95% nominal; each with people and noise of its own."""
    rows = []
    for seed, (shape, (sizes, epsilon)) in enumerate(itertools.product(SHAPES, CASES)):
        share, width = coverage(shape, sizes, epsilon, runs, seed)
        name = f"{shape}, {sizes[0]} and {sizes[1]} people, epsilon {epsilon:g}: coverage"
        rows.append(figure(name, share, ">=", LEAST, f"median width {width:.3g} of the range"))
    return rows


def widths() -> list[dict]:
    """Beside a curator who sees all numbers and adds Laplace noise to the same three sums, or none at all."""
    rows = []
    for size in (200, 2000, 20_000):
        generator = np.random.default_rng(2)
        group, numbers = np.repeat([0.0, 1.0], size), generator.beta(4, 8, 2 * size)
        asked: dict[str, Any] = {"users": 2 * size, "privacy": Privacy(1, 1e-6), "groups": ["A", "B"]}
        found = {}
        for family in (GroupedMomentsFamily, GroupedMeanFamily):
            plan: Any = family.plan(**asked, low=0, high=1)
            runs = [
                plan.difference(
                    plan.sample_estimate(np.column_stack((group, numbers)), bits=RandomBits.seeded(seed)), "A", "B"
                ).population
                for seed in range(20)
            ]
            found[family.name] = float(np.median([high - low for low, high in runs]))
        own = found["grouped-moments"]
        parts = [(numbers[group == each].var(), numbers[group == each].mean()) for each in (0.0, 1.0)]
        sampling = sum(variance / size for variance, _ in parts)
        off = sum(sum((place - mean) ** 2 for place in (0, 0.5, 1)) for _, mean in parts)
        curator = 2 * math.sqrt(1.96**2 * sampling + (math.log(20) / math.sqrt(2)) ** 2 * 8 * off / size**2)
        seen = 2 * 1.96 * math.sqrt(sampling)
        note = f"{own:.4f} beside {curator:.4f}; {seen:.4f} without any noise"
        rows.append(
            figure(f"{size:,} people a group: width / a curator's of the same sums", own / curator, "<=", 1.1, note)
        )
        note = f"{own:.4f} beside {found['grouped-mean']:.4f}"
        rows.append(
            figure(
                f"{size:,} people a group: width / with the largest variance",
                own / found["grouped-mean"],
                "<=",
                0.9,
                note,
            )
        )
    return rows


def rows_alike(runs: int = RUNS // 4) -> list[dict]:
    """People with three rows each, all alike or not at all: both groups have the same law."""
    found = []
    for name, alike in (("alike", True), ("independent", False)):
        users, generator, bits = 600, np.random.default_rng(3), RandomBits.seeded(3)
        plan: Any = GroupedRowsMomentsFamily.plan(
            users=users, privacy=Privacy(2, 1e-6), groups=["A", "B"], low=0, high=1, at_most=3
        )
        held, group = 0, np.arange(users) % 2
        for _ in range(runs):
            own = [generator.beta(2, 5, users) for _ in range(3)]
            columns = [(group, own[0] if alike else each) for each in own]
            people = np.column_stack([column for pair in columns for column in pair])
            low, high = plan.difference(plan.sample_estimate(people, bits=bits), "A", "B").population
            held += low <= 0 <= high
        found.append(figure(f"600 people with three rows, {name}: coverage", held / runs, ">=", LEAST, "95% nominal"))
    return found


if __name__ == "__main__":
    many = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    sys.exit(report("Tests of means by group", [*widths(), *covered(many), *rows_alike(many // 4)]))
