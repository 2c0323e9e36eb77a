"""Table 1: what local protocols must have, and what shuffle protocols do."""

from collections.abc import Callable
from functools import partial

import numpy as np

from shuffledp.errors import InfeasibleError
from shuffledp.experiments.pointer_chasing import universe_size
from shuffledp.experiments.survey import pointers, uniformity
from shuffledp.experiments.survey.measuring import (
    Effort,
    Setting,
    fewest_users,
    line_of,
    mean_of,
    root_mean_square,
    shares_of,
)
from shuffledp.experiments.survey.results import Line, Measured, Row, Table, figure
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
    points: dict[str, list[Measured]] = {"local": [], "rr": [], "shares": [], "central": []}
    for users in sizes:
        values = (np.arange(users) % 3 == 0).astype(np.uint8)
        truth = float(values.sum())
        generator = setting.generator("sums", users)
        local = LocalRandomizedResponse(users=users, privacy=setting.privacy)
        curator = CuratorDiscreteLaplace(privacy=setting.privacy)
        points["local"].append(
            root_mean_square([local.sample_estimate(values, generator=generator).value - truth for _ in range(runs)])
        )
        points["central"].append(
            root_mean_square([curator.sample_estimate(values, generator=generator).value - truth for _ in range(runs)])
        )
        for method in ("rr", "shares"):
            plan = BinarySum.plan(users=users, privacy=setting.privacy, method=method)
            bits = setting.bits("sums", method, users)
            points[method].append(
                root_mean_square([plan.sample_estimate(values, bits=bits).value - truth for _ in range(runs)])
            )
    lines = (
        line_of("local", "randomized response", "users", sizes, points["local"], claimed=0.5),
        line_of("shuffle", "randomized response, shuffled", "users", sizes, points["rr"], claimed=0.0),
        line_of("shuffle", "shares of discrete Laplace noise", "users", sizes, points["shares"], claimed=0.0),
        line_of("central", "discrete Laplace", "users", sizes, points["central"]),
    )
    return Row(
        name="Binary sums: error",
        survey={"Local": "Ω(√n / ε)", "Shuffle": "O(1/ε)"},
        source="[15, 19] and [9, 27]; randomized response: Theorem 10",
        lines=lines,
    )


def histograms(setting: Setting) -> Row:
    """The error of the worst bin, against users and against bins."""
    users_tried = setting.pick([300, 1000, 3000], [1000, 10_000, 100_000], [1000, 10_000, 100_000, 1_000_000])
    bins_tried = setting.pick([10, 30, 100], [10, 100, 1000, 10_000], [10, 100, 1000, 10_000, 100_000])
    users_fixed, bins_fixed = setting.pick((1000, 30), (100_000, 1000), (100_000, 1000))
    # Chosen once, in the middle: choosing asks every method for a plan.
    best = Histogram.plan(users=users_fixed, privacy=setting.privacy, categories=bins_fixed).method
    lines: list[Line] = []
    for against, grid in (
        ("users", [(users, bins_fixed) for users in users_tried]),
        ("bins", [(users_fixed, bins) for bins in bins_tried]),
    ):
        x = [users if against == "users" else bins for users, bins in grid]
        found = [_worst_bins(setting, best, users, bins) for users, bins in grid]
        claims = {"local": 0.5 if against == "users" else None, "shuffle": 0.0, "central": None}
        methods = list(dict.fromkeys(method for _, method in found))
        names = {
            "local": "optimized unary encoding",
            "shuffle": f"{' and '.join(methods)}, the best here",
            "central": "discrete Laplace",
        }
        for model in ("local", "shuffle", "central"):
            points = [each[model] for each, _ in found]
            lines.append(
                line_of(
                    model, names[model], against, x, points, claimed=claims[model], measures="error of the worst bin"
                )
            )
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


def _worst_bins(setting: Setting, method: str, users: int, bins: int) -> tuple[dict[str, Measured], str]:
    counts = shares_of(users, 1 / np.arange(1.0, bins + 1))
    values = np.repeat(np.arange(bins), counts)
    generator, bits = setting.generator("worst", users, bins), setting.bits("worst", users, bins)
    try:
        plan = Histogram.plan(users=users, privacy=setting.privacy, categories=bins, method=method)
    except InfeasibleError:
        plan = Histogram.plan(users=users, privacy=setting.privacy, categories=bins)
    curator = CuratorHistogram(privacy=setting.privacy, bins=bins)
    local = LocalHistogram(encoding="optimized-unary", users=users, privacy=setting.privacy, bins=bins)
    drawn: dict[str, list[float]] = {"local": [], "shuffle": [], "central": []}
    for _ in range(setting.pick(10, 20, 100)):
        for model, estimate in (
            ("local", local.sample_estimate(counts, generator=generator)),
            ("shuffle", plan.sample_estimate(values, bits=bits).value),
            ("central", curator.sample_estimate(counts, generator=generator)),
        ):
            drawn[model].append(float(np.abs(estimate - counts).max()))
    return {model: mean_of(errors) for model, errors in drawn.items()}, plan.method


def uniformity_tests(setting: Setting) -> Row:
    """The users that a uniformity test needs, against the bins."""
    bins_tried = setting.pick([4, 8, 16], [16, 64, 256, 1024], [16, 64, 256, 1024, 4096])
    runs = setting.pick(20, 60, 300)
    lines = []
    for model, name, claimed in (
        ("local", "a noisy bit about a random half of the bins", 1.0),
        ("shuffle", "", 2 / 3),
        ("central", "a curator's distance from uniform", 0.5),
    ):
        points = []
        for bins in bins_tried:
            method = uniformity.Contest(setting, bins).shuffle_method()
            name = f"squares of the histogram by {method}" if model == "shuffle" else name
            points.append(uniformity.users_needed(setting, bins, model, runs))
        lines.append(line_of(model, name, "bins", bins_tried, points, claimed=claimed, measures="users needed"))  # type: ignore[arg-type]
    if setting.effort is not Effort.quick:
        fewer = bins_tried[:3] if setting.effort is Effort.normal else bins_tried
        points = [uniformity.declared_users_needed(setting, bins, runs) for bins in fewer]
        name = "collisions, with declared errors"
        lines.append(line_of("shuffle", name, "bins", fewer, points, claimed=2 / 3, measures="users needed"))
    return Row(
        name="α-uniformity testing: sample complexity",
        survey={"Local": "Ω(d / α²ε²)", "Shuffle": "O(d^(2/3)/α^(4/3)ε^(2/3) + √d/αε + √d/α²)"},
        source="[1] and [27]",
        lines=tuple(lines),
        notes=(
            f"α = {uniformity.DISTANCE}. Measured is the core tester, whose exponent is 3/4 where noise dominates and "
            "1/2 where chance does; the survey's 2/3 needs its domain compression on top, which the test with declared "
            "errors takes where it helps: not yet at these sizes.",
            "The central model's exponent is Table 3's.",
        ),
    )


def pointer_chasing(setting: Setting) -> Row:
    """The users that pointer chasing needs, against the length of the permutations."""
    lengths = setting.pick([2, 3, 4], [2, 3, 4, 5, 6, 7], [2, 3, 4, 5, 6, 7, 8])
    further = setting.pick([6], [16, 32, 64], [16, 32, 64, 128])
    runs = setting.pick(20, 80, 300)
    method = Histogram.plan(users=100, privacy=setting.privacy, categories=universe_size(lengths[-1])).method
    counts: dict[str, Callable[[int, int], int]] = {
        "local": lambda length, users: pointers.local_successes(setting, length, users, runs),
        "shuffle": lambda length, users: pointers.shuffle_successes(setting, method, length, users, runs),
        "zsum": lambda length, users: pointers.shuffle_successes(setting, "zsum", length, users, runs),
        "central": lambda length, users: pointers.central_successes(setting, length, users, runs),
    }
    lines = []
    for model, asked, name, claimed in (
        ("local", "local", "one round of unary encodings", 1.0),
        ("shuffle", "shuffle", f"the histogram of all permutations by {method}", 0.0),
        ("shuffle", "zsum", "the survey's histogram, by zsum", 0.0),
        ("central", "central", "a curator's histogram of all permutations", None),
    ):
        x = [*lengths, *further] if model == "local" else lengths
        points = [
            fewest_users(partial(counts[asked], length), runs, target=pointers.TARGET, start=50, steps=setting.steps)
            for length in x
        ]
        lines.append(line_of(model, name, "length", x, points, claimed=claimed, measures="users needed"))  # type: ignore[arg-type]
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
