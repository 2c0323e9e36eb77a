"""Table 1: what local protocols must have, and what shuffle protocols do."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from shuffledp.errors import InfeasibleError
from shuffledp.experiments.pointer_chasing import universe_size
from shuffledp.experiments.survey import pointers, uniformity
from shuffledp.experiments.survey.measuring import (
    Arm,
    Effort,
    Setting,
    lines_of,
    mean_of,
    sampled_error,
    shares_of,
    users_at,
)
from shuffledp.experiments.survey.results import Line, Measured, Model, Row, Table, figure
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.protocols.histogram import Histogram
from shuffledp.references.curator import CuratorDiscreteLaplace
from shuffledp.references.curator_histogram import CuratorHistogram
from shuffledp.references.local import LocalRandomizedResponse
from shuffledp.references.local_histograms import LocalHistogram

NUMBER = 1
TITLE = "Local and shuffle: four problems that part the two models"
HOW = (
    "Errors are root mean squares over runs (sums) or means of the worst bin (histograms); sample sizes are the fewest "
    "users with which 2/3 of the runs (uniformity) or 90% (pointer chasing) end right. The local column of the survey "
    "is a lower bound, a theorem about every local protocol: shown is what the best local protocol here needs. A "
    "trusted curator's numbers are beside both."
)


def binary_sums(setting: Setting) -> Row:
    """The error of a count against the number of users."""
    sizes = setting.pick([30, 100, 300], [100, 1000, 10_000, 100_000], [100, 1000, 10_000, 100_000, 1_000_000])
    runs = setting.pick(60, 300, 1000)

    def errors(users: int) -> Iterator[Measured]:
        values = (np.arange(users) % 3 == 0).astype(np.uint8)
        truth, generator = float(values.sum()), setting.generator("sums", users)
        local = LocalRandomizedResponse(users=users, privacy=setting.privacy)
        yield sampled_error(local, values, truth, runs, generator=generator)
        for method in ("rr", "shares"):
            plan = BinarySum.plan(users=users, privacy=setting.privacy, method=method)
            yield sampled_error(plan, values, truth, runs, bits=setting.bits("sums", method, users))
        curator = CuratorDiscreteLaplace(privacy=setting.privacy)
        yield sampled_error(curator, values, truth, runs, generator=generator)

    arms: list[Arm] = [
        ("local", "randomized response", 0.5),
        ("shuffle", "randomized response, shuffled", 0.0),
        ("shuffle", "shares of discrete Laplace noise", 0.0),
        ("central", "discrete Laplace", None),
    ]
    return Row(
        name="Binary sums: error",
        survey={"Local": "Ω(√n / ε)", "Shuffle": "O(1/ε)"},
        source="[15, 19] and [9, 27]; randomized response: Theorem 10",
        lines=lines_of("users", sizes, map(errors, sizes), arms),
    )


def histograms(setting: Setting) -> Row:
    """The error of the worst bin, against users and against bins."""
    users_tried = setting.pick([300, 1000, 3000], [1000, 10_000, 100_000], [1000, 10_000, 100_000, 1_000_000])
    bins_tried = setting.pick([10, 30, 100], [10, 100, 1000, 10_000], [10, 100, 1000, 10_000, 100_000])
    users_fixed, bins_fixed = setting.pick((1000, 30), (100_000, 1000), (100_000, 1000))
    # Chosen once, in the middle: choosing asks every method for a plan.
    best = Histogram.plan(users=users_fixed, privacy=setting.privacy, categories=bins_fixed).method
    lines: list[Line] = []
    for against, x, grid, claimed in (
        ("users", users_tried, [(users, bins_fixed) for users in users_tried], 0.5),
        ("bins", bins_tried, [(users_fixed, bins) for bins in bins_tried], None),
    ):
        found, methods = zip(*(_worst_bins(setting, best, users, bins) for users, bins in grid), strict=True)
        arms: list[Arm] = [
            ("local", "optimized unary encoding", claimed),
            ("shuffle", f"{' and '.join(dict.fromkeys(methods))}, the best here", 0.0),
            ("central", "discrete Laplace", None),
        ]
        lines += lines_of(against, x, found, arms, "error of the worst bin")
    return Row(
        name="d-bin histograms: ℓ∞ error",
        survey={"Local": "Ω(√(n log d) / ε)", "Shuffle": "O(log(1/δ) / ε²)"},
        source="[12] and [7]",
        lines=tuple(lines),
        notes=(
            f"Against users with {bins_fixed:,} bins, against bins with {users_fixed:,} users; most users "
            "are in few bins.",
            "The survey's √(log d) is no power: a fitted one is small, and falls.",
        ),
    )


def _worst_bins(setting: Setting, method: str, users: int, bins: int) -> tuple[list[Measured], str]:
    """The local, the shuffle and the central model's error of the worst bin, and the shuffle's method."""
    counts = shares_of(users, 1 / np.arange(1.0, bins + 1))
    values = np.repeat(np.arange(bins), counts)
    generator, bits = setting.generator("worst", users, bins), setting.bits("worst", users, bins)
    asked: dict[str, Any] = {"users": users, "privacy": setting.privacy, "categories": bins}
    try:
        plan = Histogram.plan(**asked, method=method)
    except InfeasibleError:
        plan = Histogram.plan(**asked)
    curator = CuratorHistogram(privacy=setting.privacy, bins=bins)
    local = LocalHistogram(encoding="optimized-unary", users=users, privacy=setting.privacy, bins=bins)
    errors = [
        [
            float(np.abs(local.sample_estimate(counts, generator=generator) - counts).max()),
            float(np.abs(plan.sample_estimate(values, bits=bits).value - counts).max()),
            float(np.abs(curator.sample_estimate(counts, generator=generator) - counts).max()),
        ]
        for _ in range(setting.pick(10, 20, 100))
    ]
    return [mean_of(each) for each in zip(*errors, strict=True)], plan.method


def uniformity_tests(setting: Setting) -> Row:
    """The users that a uniformity test needs, against the bins."""
    lines = uniformity.contest_lines(setting, "local", "shuffle", "central")
    if setting.effort is not Effort.quick:
        bins_tried, runs = uniformity.sizes_and_runs(setting)
        fewer = bins_tried[:3] if setting.effort is Effort.normal else bins_tried
        found = ([uniformity.declared_users_needed(setting, bins, runs)] for bins in fewer)
        arm: Arm = ("shuffle", "collisions, with declared errors", 2 / 3)
        lines += lines_of("bins", fewer, found, [arm], "users needed")
    return Row(
        name="α-uniformity testing: sample complexity",
        survey={"Local": "Ω(d / α²ε²)", "Shuffle": "O(d^(2/3)/α^(4/3)ε^(2/3) + √d/αε + √d/α²)"},
        source="[1] and [27]",
        lines=lines,
        notes=(
            f"α = {uniformity.DISTANCE}. Measured is the core tester, whose exponent is 3/4 where noise dominates and "
            "1/2 where chance does; the survey's 2/3 needs its domain compression on top, which the test with declared "
            "errors takes where it helps: not yet at these sizes.",
            "The central model's exponent is Table 3's.",
        ),
    )


# Of messages a user: no limit that any histogram reaches.
_ANY_NUMBER = 10**9


def pointer_chasing(setting: Setting) -> Row:
    """The users that pointer chasing needs, against the length of the permutations."""
    lengths = setting.pick([2, 3, 4], [2, 3, 4, 5, 6, 7], [2, 3, 4, 5, 6, 7, 8])
    further = setting.pick([6], [16, 32, 64], [16, 32, 64, 128])
    runs = setting.pick(20, 80, 300)
    # However many messages it takes: what is measured is how few users do.
    size = universe_size(lengths[-1])
    method = Histogram.plan(users=100, privacy=setting.privacy, categories=size, max_messages=_ANY_NUMBER).method
    by = partial(pointers.shuffle_successes, setting)
    arms: list[tuple[Model, str, float | None, Callable[..., int]]] = [
        ("local", "one round of unary encodings", 1.0, partial(pointers.local_successes, setting)),
        ("shuffle", f"the histogram of all permutations by {method}", 0.0, partial(by, method)),
        ("shuffle", "the survey's histogram, by zsum", 0.0, partial(by, "zsum")),
        ("central", "a curator's histogram of all permutations", None, partial(pointers.central_successes, setting)),
    ]
    lines = []
    for model, name, claimed, successes in arms:
        x = [*lengths, *further] if model == "local" else lengths
        points = users_at(setting, x, successes, runs, pointers.TARGET)
        lines.append(Line(model, name, "length", x, points, claimed=claimed, measures="users needed"))
    return Row(
        name="(2, ℓ)-pointer chasing: sample complexity",
        survey={"Local": "Ω(ℓ)", "Shuffle": "O(log(1/δ) / ε²)"},
        source="[42] and [7]; Theorem 18",
        lines=tuple(lines),
        notes=(
            f"The universe has 2 ℓ! elements, {universe_size(lengths[-1]):,} at ℓ = {lengths[-1]} (the survey's (ℓ!)² "
            "is an erratum), so that longer permutations have too many messages to be simulated.",
            "The fitted power in ℓ of the best shuffle method and of the curator is log ℓ! over a short range: they "
            "read the fullest of 2 ℓ! noisy bins. Empty bins stay empty by zsum, so that its users do not grow with ℓ; "
            "at these lengths it needs more all the same. "
            "The local one has a log ℓ of its own, for telling ℓ values apart.",
        ),
    )


ROWS = (binary_sums, histograms, uniformity_tests, pointer_chasing)


def assemble(setting: Setting, rows: tuple[Row, ...]) -> Table:
    """The table, and what one sees in it."""
    sums, bins, tests, chase = rows
    local, shuffle = sums.lines[0], sums.lines[2]
    last = local.x[-1]
    counted = [figure(line.at(last).value) for line in (local, shuffle, sums.lines[3])]
    sees = (
        f"Among {last:,.0f} users the local model counts to within {counted[0]}, the shuffle model to within "
        f"{counted[1]} and a curator to within {counted[2]}. The worst bin's error grows like "
        f"n^{bins.lines[0].power} locally and n^{bins.lines[1].power} shuffled; users for a uniformity test like "
        f"d^{tests.lines[0].power} and d^{tests.lines[1].power}; for pointer chasing like ℓ^{chase.lines[0].power}, "
        f"ℓ^{chase.lines[1].power} and, where empty bins stay empty, ℓ^{chase.lines[2].power}."
    )
    return Table(number=NUMBER, title=TITLE, how=HOW, rows=rows, sees=sees)
