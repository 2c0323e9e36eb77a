"""A histogram with its error bars: bars with names where there are few, a profile where there are many in an order."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.pictures.curves import add_notes, check_drawing, new_figure, save_figure, tidy
from shuffledp.pictures.lettering import Letters, lettering

# More names than this cannot be read one by one.
MOST_BARS = 60
_MOST_SHOWN_OF_MANY = 40
_LONGEST_NAME = 32
_COLOUR, _FAINT = "#4c72b0", "#a9bcdc"
_TICKS = 9
_FEWEST_ROWS = 3
_MOST_POINTS = 4000

Floats = NDArray[np.float64]


def draw_bars(
    path: Path,
    *,
    names: Sequence[str],
    estimates: ArrayLike,
    bound: float,
    confidence: float,
    title: str,
    truth: ArrayLike | None = None,
    in_order: bool = False,
    column: str | None = None,
    measures: str = "users",
    intervals: tuple[ArrayLike, ArrayLike] | None = None,
) -> None:
    """Draw every category's estimate and how far it may be off, and the truth if it is given.

    Bars lie on their side, so that names can be read; the largest is at the top unless categories are in an order.
    Of more than 60 names only the 40 largest are drawn; more than 60 in an order are drawn as a profile.
    Bars that might be nothing but noise are faint. Names may be in any script.

    Args:
        path: where to: .png, .svg or .pdf.
        names: of the categories.
        estimates: how many users have each.
        bound: how far every estimate may be off.
        confidence: with which the bound holds for all at once.
        title: what stands above.
        truth: the true counts, where they may be shown.
        in_order: whether the categories have an order of their own.
        column: what the categories are values of, written beside them.
        measures: what the estimates are: users, or a rate, a sum or a mean of a group.
        intervals: the lower and the upper ends of every estimate's own interval, where one bound is not all's.
    """
    check_drawing(path)
    with lettering(path, [*names, title, column or ""]) as letters:
        ends = None if intervals is None else tuple(np.asarray(each, dtype=np.float64) for each in intervals)
        _draw(path, names, estimates, bound, confidence, title, truth, in_order, column, measures, ends, letters)


def _draw(
    path: Path,
    names: Sequence[str],
    estimates: ArrayLike,
    bound: float,
    confidence: float,
    title: str,
    truth: ArrayLike | None,
    in_order: bool,
    column: str | None,
    measures: str,
    ends: tuple[Floats, ...] | None,
    letters: Letters,
) -> None:
    from matplotlib.patches import Patch

    value = np.asarray(estimates, dtype=np.float64)
    true = None if truth is None else np.asarray(truth, dtype=np.float64)
    label = f"± {bound:,.4g}, {confidence:.0%} for all at once"
    if in_order and value.size > MOST_BARS and ends is None:
        _draw_profile(path, names, value, bound, label, title, true, column, measures, letters)
        return
    order = np.arange(value.size) if in_order else np.argsort(-value, kind="stable")
    if value.size > MOST_BARS:
        order = order[:_MOST_SHOWN_OF_MANY]
    left_out = value.size - order.size
    numbers = [int(code) + 1 for code in order] if in_order else range(1, order.size + 1)
    labels = letters.labels([_short(names[code]) for code in order], numbers)
    figure = new_figure(path, width=8, height=1.6 + 0.24 * max(4, order.size))
    axes = figure.subplots()
    places, shown = np.arange(order.size), value[order]
    lower, upper = (value - bound, value + bound) if ends is None else ends
    colours = [_COLOUR if each > 0 else _FAINT for each in lower[order]]
    axes.barh(places, shown, height=0.7, color=colours)
    bars = {"fmt": "none", "ecolor": "0.25", "elinewidth": 1.0, "capsize": 2.0}
    reach = np.maximum(0.0, np.stack((shown - lower[order], upper[order] - shown)))
    label = label if ends is None else f"interval, {confidence:.0%} for all at once"
    axes.errorbar(shown, places, xerr=reach, **bars, label=label)
    if true is not None:
        axes.plot(true[order], places, linestyle="none", marker="D", markersize=3.5, color="black", label="truth")
    small = 9 if order.size <= 25 else 8
    axes.set_yticks(places, labels, fontsize=small)
    # A bar or two are no thicker than three, and stand in the middle.
    spare = max(0.0, (_FEWEST_ROWS - order.size) / 2)
    axes.set(ylim=(order.size - 0.4 + spare, -0.6 - spare), xlabel=measures, title=letters.written(title))
    axes.set_ylabel(letters.word(column))
    notes = [letters.note(labels)]
    if left_out:
        largest = float(np.delete(value, order).max())
        notes.append(f"{left_out:,} more categories are not drawn; the largest of them has {largest:,.4g}")
    axes.axvline(0, color="0.4", linewidth=0.8)
    axes.xaxis.set_major_formatter("{x:,.6g}")
    # Below all, where it hides no bar.
    drawn, said = axes.get_legend_handles_labels()
    kinds = [(_COLOUR, "estimate"), (_FAINT, "estimate that may be nothing but noise")]
    patches = [Patch(color=colour, label=what) for colour, what in kinds if colour in colours]
    figure.legend(
        [*patches, *drawn],
        [*(patch.get_label() for patch in patches), *said],
        loc="outside lower center",
        ncols=4,
        frameon=False,
        fontsize=8,
        title="\n".join(note for note in notes if note) or None,
        title_fontsize=8,
    )
    tidy(axes, grid=False)
    save_figure(figure, path)


def _draw_profile(
    path: Path,
    names: Sequence[str],
    value: Floats,
    bound: float,
    label: str,
    title: str,
    true: Floats | None,
    column: str | None,
    measures: str,
    letters: Letters,
) -> None:
    figure = new_figure(path, width=9)
    axes = figure.subplots()
    together = -(-value.size // _MOST_POINTS)
    codes = np.arange(0, value.size, together)
    notes = []
    if together > 1:
        # Left out points could hide a peak: the largest of each few stands for them.
        value = np.maximum.reduceat(value, codes)
        true = None if true is None else np.maximum.reduceat(true, codes)
        notes = [f"each point is the largest of {together:,} categories"]
    axes.step(codes, value, where="mid", color=_COLOUR, linewidth=0.9, label="estimate")
    band = {"step": "mid", "color": _FAINT, "linewidth": 0, "alpha": 0.8}
    axes.fill_between(codes, value - bound, value + bound, label=label, **band)
    if true is not None:
        axes.step(codes, true, where="mid", color="black", linewidth=0.6, linestyle="--", label="truth")
    axes.legend(frameon=False, fontsize=8)
    last = len(names) - 1
    ticks = np.unique(np.linspace(0, last, _TICKS).round().astype(int))
    labels = letters.labels([_short(names[code]) for code in ticks], [int(code) + 1 for code in ticks])
    axes.set_xticks(ticks, labels, fontsize=9)
    # The first and the last name stay inside the picture.
    first, *_, right = axes.get_xticklabels()
    first.set_ha("left")
    right.set_ha("right")
    axes.set(xlim=(-0.5, last + 0.5), ylabel=measures, title=letters.written(title))
    axes.set_xlabel(letters.word(column))
    add_notes(figure, [letters.note(labels), *notes])
    axes.axhline(0, color="0.4", linewidth=0.8)
    axes.yaxis.set_major_formatter("{x:,.6g}")
    tidy(axes, grid=False)
    save_figure(figure, path)


def _short(name: str) -> str:
    """Long names lose their middle: they differ at their ends."""
    words = " ".join(name.split())
    return words if len(words) <= _LONGEST_NAME else f"{words[: _LONGEST_NAME - 13]}…{words[-12:]}"
