"""The numbers of all groups, and below them how far apart two of them are, with both of its intervals."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.pictures.curves import add_notes, check_drawing, new_figure, save_figure, tidy
from shuffledp.pictures.lettering import lettering

_COLOUR = "#4c72b0"
_BARS = {"fmt": "o", "color": _COLOUR, "ecolor": "0.25", "elinewidth": 1.2, "capsize": 3.0, "markersize": 4.5}


def draw_difference(
    path: Path,
    *,
    names: Sequence[str],
    estimates: ArrayLike,
    intervals: tuple[ArrayLike, ArrayLike],
    what: str,
    value: float,
    told: Sequence[tuple[str, tuple[float, float]]],
    confidence: float,
    measures: str,
    title: str,
    truth: ArrayLike | None = None,
    apart: float | None = None,
    column: str | None = None,
) -> None:
    """Draw every group's number, and below them the difference: where 0 lies in an interval, it cannot be told.

    Args:
        path: where to: .png, .svg or .pdf.
        names: of the groups.
        estimates: their numbers.
        intervals: the lower and the upper ends of the groups' intervals, which hold for all at once.
        what: which difference it is, in words.
        value: the difference.
        told: its intervals, each with whom it holds for.
        confidence: of all intervals of groups at once, and of each of the difference's.
        measures: what the numbers are.
        title: what stands above.
        truth: the groups' true numbers, where they may be shown.
        apart: the true difference, likewise.
        column: what the groups are values of, written beside them.
    """
    check_drawing(path)
    with lettering(path, [*names, what, title, column or ""]) as letters:
        heights = max(2, len(names)), max(2, len(told))
        figure = new_figure(path, width=8, height=2.2 + 0.34 * sum(heights))
        above, below = figure.subplots(2, 1, height_ratios=heights)
        value_of, lower, upper = (np.asarray(each, dtype=np.float64) for each in (estimates, *intervals))
        labels = letters.labels([str(name) for name in names], range(1, len(names) + 1))
        label = f"interval, {confidence:.0%} for all groups at once"
        _points(above, labels, value_of, lower, upper, label, truth)
        above.set(xlabel=measures, title=letters.written(title))
        above.set_ylabel(letters.word(column))
        ends = np.array([interval for _, interval in told])
        whom, middle = [words for words, _ in told], np.full(len(told), value)
        true = None if apart is None else np.full(len(told), apart)
        _points(below, whom, middle, ends[:, 0], ends[:, 1], f"interval, {confidence:.0%} each", true)
        below.axvline(0, color="0.4", linewidth=0.8)
        below.set(xlabel=letters.written(what))
        add_notes(figure, [letters.note(labels)])
        save_figure(figure, path)


def _points(axes: Any, names: Sequence[str], value: Any, lower: Any, upper: Any, label: str, truth: Any) -> None:
    places = np.arange(len(names))
    reach = np.maximum(0.0, np.stack((value - lower, upper - value)))
    axes.errorbar(value, places, xerr=reach, label=label, **_BARS)
    if truth is not None:
        true = np.asarray(truth, dtype=np.float64)
        axes.plot(true, places, linestyle="none", marker="D", markersize=3.5, color="black", label="truth")
    axes.set_yticks(places, names, fontsize=9)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.xaxis.set_major_formatter("{x:,.6g}")
    axes.legend(frameon=False, fontsize=8)
    tidy(axes, grid=False)
