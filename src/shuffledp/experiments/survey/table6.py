"""Table 6: range queries in the shuffle model, the survey's techniques by formula and ours measured."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.experiments.survey.measuring import Setting, mean_of, shares_of
from shuffledp.experiments.survey.results import Cell, Line, Measured, Model, Row, Table, figure, number
from shuffledp.privacy import Privacy
from shuffledp.protocols.ranges import Ranges
from shuffledp.protocols.ranges.base import RangesPlan
from shuffledp.references.range_trees import best_curator_tree, best_local_tree

NUMBER = 6
TITLE = "Range queries in the shuffle model"
HOW = (
    "Users have a value below k on each of d axes. Measured is the worst of all ranges (rectangles if d = 2) of a run, "
    "found exactly from the prefix sums of the errors, and averaged over runs; claimed is what the plan proves for all "
    "of them at once with probability 95%. The survey's two techniques are formulas: their own construction with noise "
    "by the Gaussian limit of the exact accountant, far below their papers' constants, and a union bound over all "
    "ranges."
)
_FAILURE = 0.05
Floats = NDArray[np.float64]


def sides(setting: Setting, axes: int) -> tuple[int, ...]:
    """The values of an axis that are tried."""
    if axes == 1:
        return setting.pick((4, 8, 16), (2**8, 2**12, 2**16), (2**8, 2**10, 2**12, 2**14, 2**16))
    return setting.pick((2, 4, 6), (2**4, 2**6, 2**8), (2**4, 2**5, 2**6, 2**7, 2**8))


def users_of(setting: Setting) -> int:
    """Those who report."""
    return setting.pick(5000, 100_000, 100_000)


def _names(axes: int, side: int) -> tuple[str, ...]:
    head = f"d = {axes}, k = {side:,}: "
    return tuple(head + name for name in ("worst range", "claimed", "messages a user", "bits a message"))


def worst_range(errors: Floats) -> float:
    """The largest error of any range, from the errors of single values; of any rectangle, if there are two axes.

    A range is a difference of two prefixes; of the rectangles between two rows the worst is one of columns.

    >>> worst_range(np.array([1.0, -3.0, 1.0, 5.0]))
    6.0
    >>> worst_range(np.array([[1.0, -3.0], [2.0, 4.0]]))
    6.0
    """
    if errors.ndim == 1:
        prefixes = np.concatenate(([0.0], np.cumsum(errors)))
        return float(prefixes.max() - prefixes.min())
    corners = np.zeros((errors.shape[0] + 1, errors.shape[1] + 1))
    corners[1:, 1:] = errors.cumsum(axis=0).cumsum(axis=1)
    spread = (
        rows.max(axis=1) - rows.min(axis=1) for rows in (corners[a + 1 :] - corners[a] for a in range(len(errors)))
    )
    return float(max(each.max() for each in spread))


def count_min(privacy: Privacy, users: int, side: int, axes: int) -> tuple[float, float, int]:
    """Error of all ranges, messages and bits of the private Count-Min sketch of all nodes.

    A user is in k = (log2 side + 1)^d nodes; T rows of 2 k n columns keep any two apart. Replacement moves 2 k T
    counters, and a node's estimate, the least of T, is no sum: the nodes' errors add up.
    """
    nodes, items = (2 * side) ** axes, (math.log2(side) + 1) ** axes
    rows = math.ceil(math.log2(2 * nodes / _FAILURE))
    mean = 2 * items * rows * gaussian_standard_deviation(privacy) ** 2
    score = float(stats.norm.isf(_FAILURE / (2 * nodes * rows)))
    error = (2 * math.log2(side)) ** axes * score * math.sqrt(mean)
    columns = 2 * items * users
    return error, items * rows * (1 + 2 * mean), math.ceil(math.log2(rows)) + math.ceil(math.log2(columns))


def hadamard(privacy: Privacy, users: int, side: int, axes: int) -> tuple[float, float, int]:
    """Error of all ranges, messages and bits of multi-message Hadamard response: one blanket for all nodes."""
    nodes, items = (2 * side) ** axes, (math.log2(side) + 1) ** axes
    mean = 2 * items * gaussian_standard_deviation(privacy) ** 2
    score = float(stats.norm.isf(_FAILURE / (2 * (side**2 / 2) ** axes)))
    error = score * math.sqrt((2 * math.log2(side)) ** axes * mean)
    return error, items + mean, math.ceil(math.log2(users)) * math.ceil(math.log2(nodes + 1))


_COLUMNS = ("Error", "Messages per user", "Bits per message")
_TECHNIQUES = {
    "Count-Min": (
        count_min,
        ("O(log^(2d+3/2)(k^d) log(1/δ) / ε)", "O(log^(3d+3)(k^d) log(1/δ) / ε²)", "O(log n + log(d log k))"),
    ),
    "Hadamard": (
        hadamard,
        ("O(log^(2d+1/2)(k^d) log(1/εδ) / ε)", "O(log^(2d)(k^d) log(1/εδ) / ε²)", "O(log(n) d log k)"),
    ),
}


def technique_row(setting: Setting, name: str) -> Row:
    """One of the survey's techniques, by formula."""
    formula, said = _TECHNIQUES[name]
    cells: dict[str, Cell] = {}
    for axes in (1, 2):
        side = sides(setting, axes)[-1]
        numbers = (None, *formula(setting.privacy, users_of(setting), side, axes))
        cells |= dict(zip(_names(axes, side), numbers, strict=True))
    return Row(
        name=name,
        survey=dict(zip(_COLUMNS, said, strict=True)),
        source="[36]",
        cells=cells,
        notes=("By formula: so many messages were not sent.",),
    )


def _values(users: int, side: int, axes: int) -> NDArray[np.int64]:
    """Most users have small values, on one axis or on both."""
    near = np.repeat(np.arange(side), shares_of(users, 1 / np.arange(1.0, side + 1)))
    return near if axes == 1 else np.stack((near, near[::-1]), axis=1)


def _mean_worst(setting: Setting, draw: Callable[[], Floats]) -> Measured:
    """The mean over runs of the worst range's error, from the errors of single values that each run draws."""
    return mean_of([worst_range(draw()) for _ in range(setting.pick(5, 12, 60))])


def method_row(setting: Setting, method: str) -> Row:
    """One of the methods here, against the values of an axis."""
    axes = 2 if method == "grid" else 1
    users, tried = users_of(setting), sides(setting, axes)
    plans: list[RangesPlan] = [
        Ranges.plan(users=users, privacy=setting.privacy, domain=[side] * axes, method=method) for side in tried
    ]

    def worst(side: int, plan: RangesPlan) -> Measured:
        values, bits = _values(users, side, axes), setting.bits("ranges", method, side)
        truth, shape = plan.true_value(values), (side,) * axes
        return _mean_worst(setting, lambda: (plan.sample_estimate(values, bits=bits).value - truth).reshape(shape))

    points = list(map(worst, tried, plans))
    # A range is a difference of two prefixes, a rectangle a sum and difference of four corners.
    bounds = [2**axes * plan.errors.prefix_bound for plan in plans]
    numbers = (points[-1], bounds[-1], plans[-1].messages_per_user_mean, plans[-1].bits_per_message)
    against = "values" if axes == 1 else "values of either axis"
    return Row(
        name=method,
        survey={},
        source="ours",
        cells=dict(zip(_names(axes, tried[-1]), numbers, strict=True)),
        lines=(Line("shuffle", method, against, tried, points, measures="error of the worst range", bounds=bounds),),
    )


def reference_row(setting: Setting, model: Model) -> Row:
    """A curator's tree, or one in the local model, on one axis."""
    users, tried = users_of(setting), sides(setting, 1)
    central = model == "central"

    def worst(side: int) -> Measured:
        counts = np.bincount(_values(users, side, 1), minlength=side)
        privacy, generator = setting.privacy, setting.generator("reference ranges", model, side)
        tree = best_curator_tree(privacy, side) if central else best_local_tree(users, privacy, side)
        return _mean_worst(setting, lambda: tree.sample_leaves(counts, generator=generator) - counts)

    points = list(map(worst, tried))
    name = "trusted curator: the best tree" if central else "local model: the best tree"
    why = (
        "Every level has the same noise; ours has more where there are fewer nodes to pay for, so that it can come out "
        "below."
    )
    return Row(
        name=name,
        survey={},
        source="for comparison",
        cells={_names(1, tried[-1])[0]: points[-1]},
        lines=(Line(model, name, "values", tried, points, measures="error of the worst range"),),
        notes=(why,) if central else (),
    )


ROWS: tuple[Callable[[Setting], Row], ...] = (
    *(partial(technique_row, name=name) for name in _TECHNIQUES),
    *(partial(method_row, method=method) for method in Ranges.methods),
    partial(reference_row, model="central"),
    partial(reference_row, model="local"),
)


def assemble(setting: Setting, rows: tuple[Row, ...]) -> Table:
    """The table, and what one sees in it."""
    side = sides(setting, 1)[-1]
    worst, claimed, sent, _ = _names(1, side)
    found = {row.name.split(":")[0]: row.cells for row in rows}

    def told(name: str, column: str) -> str:
        return figure(number(found[name][column]))

    ours = [row.name for row in rows if row.source == "ours" and worst in row.cells]
    best = min(ours, key=lambda name: number(found[name][worst]))
    sees = (
        f"Of all ranges of {side:,} values the worst is off by {told(best, worst)} with {best}, which sends "
        f"{told(best, sent)} messages a user; by {told('trusted curator', worst)} with a curator and by "
        f"{told('local model', worst)} in the local model. The survey's techniques would be within "
        f"{told('Hadamard', claimed)} with {told('Hadamard', sent)} messages (Hadamard) and "
        f"{told('Count-Min', claimed)} with {told('Count-Min', sent)} (Count-Min)."
    )
    largest = [_names(axes, sides(setting, axes)[-1]) for axes in (1, 2)]
    bars = tuple((f"error of the worst range, {names[0].split(':')[0]}", names[0], names[1]) for names in largest)
    title = f"{TITLE}, {users_of(setting):,} users"
    return Table(number=NUMBER, title=title, how=HOW, rows=rows, sees=sees, bars=bars)
