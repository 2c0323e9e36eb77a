"""Table 3: what robust shuffle protocols must pay beyond a curator."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from shuffledp.experiments.survey import parities, uniformity
from shuffledp.experiments.survey.measuring import Setting, sampled_error, users_at
from shuffledp.experiments.survey.results import Line, Model, Row, Table, figure
from shuffledp.protocols.distinct_elements import DistinctElements
from shuffledp.references.curator import CuratorDiscreteLaplace

NUMBER = 3
TITLE = "Robust shuffle privacy and central privacy"
HOW = (
    "The shuffle column of the survey is a lower bound, a theorem about every robust protocol: shown is what the best "
    "shuffle protocol here needs. Plans are for half of the users honest (γ = 1/2) where the row says so; all of them "
    "follow the protocol in the runs. Errors are root mean squares; sample sizes are the fewest users with which 2/3 "
    "(uniformity) or 90% (parities) of the runs end right."
)


def distinct_elements(setting: Setting) -> Row:
    """The error of the number of categories that anybody has, against the categories there are."""
    bins_tried = setting.pick([10, 30, 100], [10, 100, 1000, 10_000], [10, 100, 1000, 10_000, 100_000])
    runs = setting.pick(60, 300, 2000)
    shuffle, central, bounds = [], [], []
    for bins in bins_tried:
        # Half of the categories have somebody, and there are twice as many users as categories, as the theorem asks.
        values = np.arange(2 * bins) % math.ceil(bins / 2)
        truth = float(math.ceil(bins / 2))
        plan = DistinctElements.plan(users=values.size, privacy=setting.privacy, categories=bins, honest_fraction=0.5)
        shuffle.append(sampled_error(plan, values, truth, runs, bits=setting.bits("distinct", bins)))
        bounds.append(plan.standard_error)
        # Leaving one category and joining another moves the number by at most 1.
        curator = CuratorDiscreteLaplace(privacy=setting.privacy)
        central.append(sampled_error(curator, [truth], truth, runs, generator=setting.generator("distinct", bins)))
    line = partial(Line, against="categories", x=bins_tried)
    return Row(
        name="Distinct elements: additive error",
        survey={"Robust shuffle": "Ω(√(d/ε) + 1/ε), n ≥ 2d", "Central": "O(1/ε)"},
        source="[8] and [30]",
        lines=(
            line("shuffle", "parities of rare ones, γ = 1/2", points=shuffle, claimed=0.5, bounds=bounds),
            line("central", "the number plus discrete Laplace noise", points=central, claimed=0.0),
        ),
        notes=(
            f"Every user sends shares about every category: {plan.messages_per_user_max:,} messages of one bit for "
            f"{bins_tried[-1]:,} categories.",
            "Planned for half honest, an empty category's parity is nearer to a fair coin when all are: the "
            "error is that of all.",
        ),
    )


def uniformity_tests(setting: Setting) -> Row:
    """The users that a test needs, beside a curator's two."""
    return Row(
        name="Uniformity testing: sample complexity",
        survey={
            "Robust shuffle": "Ω(d^(2/3)/α^(4/3)ε^(2/3) + √d/α² + 1/αε), δ = 0",
            "Central": "O(√d/α² + √d/α√ε + d^(1/3)/α^(4/3)ε^(2/3) + 1/αε)",
        },
        source="[8] and [4]",
        lines=uniformity.contest_lines(setting, "shuffle", "central_histogram", "central"),
        notes=(f"α = {uniformity.DISTANCE}; planned for all users honest.",),
    )


def parity_learning(setting: Setting) -> Row:
    """The users that find a hidden parity, against the candidates."""
    bits_tried = setting.pick([2, 3, 4], [4, 5, 6, 8, 10], [4, 5, 6, 8, 10, 12])
    runs = setting.pick(10, 50, 200)
    arms: list[tuple[Model, str, float | None, Callable[..., int]]] = [
        ("local", "randomized response to one candidate", 1.0, parities.local_successes),
        ("shuffle", "a vector sum of all agreements", 0.5, parities.shuffle_successes),
        ("central", "exponential mechanism", None, parities.central_successes),
    ]
    x = [len(parities.candidates(bits)) for bits in bits_tried]
    lines = []
    for model, name, claimed, successes in arms:
        points = users_at(setting, bits_tried, partial(successes, setting), runs, parities.TARGET)
        lines.append(Line(model, name, "candidates", x, points, claimed=claimed, measures="users needed"))
    return Row(
        name="Parity learning: sample complexity",
        survey={"Robust shuffle": "Ω(√(d choose ≤k) / αε)", "Central": "O(log (d choose ≤k))"},
        source="[26], [45] and [43]",
        lines=tuple(lines),
        notes=(
            f"Parities of at most k = {parities.ORDER} of d = {bits_tried[0]} to {bits_tried[-1]} bits, all users' "
            "labels right (realizable); planned for all users honest.",
            "The fitted powers hold logarithms: the largest of so many noisy numbers is read.",
        ),
    )


ROWS = (distinct_elements, uniformity_tests, parity_learning)


def assemble(setting: Setting, rows: tuple[Row, ...]) -> Table:
    """The table, and what one sees in it."""
    distinct, tests, parity = rows
    d, n = distinct.lines[0].x[-1], parity.lines[0].x[-1]
    errors = [figure(line.at(d).value) for line in distinct.lines]
    users = [f"{figure(line.at(n).value)} (growing like N^{line.power})" for line in parity.lines]
    sees = (
        f"Of {d:,.0f} categories the shuffle model counts those in use to within {errors[0]}, which grows like "
        f"d^{distinct.lines[0].power}, a curator to within {errors[1]}, like d^{distinct.lines[1].power}. Users for a "
        f"uniformity test grow like d^{tests.lines[0].power} and, with a curator, d^{tests.lines[2].power}. Among "
        f"{n:,.0f} parities the hidden one takes {users[1]} users to find in the shuffle model, {users[0]} in the "
        f"local one and {users[2]} with a curator."
    )
    return Table(number=NUMBER, title=TITLE, how=HOW, rows=rows, sees=sees)
