"""What a live campaign reached, beside what others reach: one strong line, and the others with their bands."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shuffledp.pictures.curves import DrawnLine, add_notes, check_drawing, new_figure, save_figure, tidy

LIVE, SAME, FREE, CURATOR, ONE, LOCAL = "#0b4f8a", "#6fa8dc", "#2e8b57", "#7d4fa8", "#d98200", "#c0392b"
"""Colours of: a live run, its own simulation, what protects nobody, a curator, one shuffler, the local model."""


def draw_live(
    path: Path,
    live: DrawnLine,
    others: Sequence[DrawnLine],
    *,
    against: str,
    measures: str,
    title: str,
    subtitle: str,
    notes: Sequence[str] = (),
    top: float | None = None,
    bottom: float | None = None,
    level: tuple[float, str] | None = None,
) -> None:
    """Draw a live run and what it is compared with; every line is named at its right end.

    Args:
        path: where to: .png, .svg or .pdf.
        live: what happened.
        others: what would have happened, with bands where there are many runs.
        against: what the lines are drawn over.
        measures: what is drawn.
        title: of the picture.
        subtitle: below it, smaller.
        notes: what is to be said below.
        top: where the picture ends, if some lines go further.
        bottom: where it begins.
        level: a height, and what it is.
    """
    check_drawing(path)
    figure = new_figure(path, width=9.6, height=5.6)
    axes = figure.subplots()
    for line in others:
        if line.band is not None:
            axes.fill_between(line.x, *line.band, color=line.colour, alpha=0.13, linewidth=0, zorder=1)
        axes.plot(line.x, line.y, color=line.colour, linewidth=1.6, linestyle=line.dashes, zorder=2)
    look = {"markersize": 5.5, "markeredgecolor": "white", "markeredgewidth": 0.9, "zorder": 4}
    axes.plot(live.x, live.y, color=LIVE, linewidth=2.6, marker="o", clip_on=False, **look)
    if level is not None:
        axes.axhline(level[0], color="0.45", linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    axes.set_xlim(0, max(float(line.x[-1]) for line in (live, *others)))
    axes.set_ylim(bottom=bottom, top=top)
    named = [(live.name, LIVE, _end(live), True)]
    named += [(line.name, str(line.colour), _end(line), False) for line in others]
    named += [] if level is None else [(level[1], "0.35", (axes.get_xlim()[1], level[0]), False)]
    name_at_the_end(axes, named)
    axes.locator_params(axis="x", integer=True)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set(xlabel=against, ylabel=measures)
    axes.set_title(title, loc="left", fontsize=13.5, fontweight="bold", pad=26)
    axes.annotate(subtitle, (0, 1.03), xycoords="axes fraction", fontsize=9.5, color="0.35", annotation_clip=False)
    tidy(axes)
    add_notes(figure, notes)
    save_figure(figure, path)


def _end(line: DrawnLine) -> tuple[float, float]:
    """Where a line ends, to the right."""
    return float(np.asarray(line.x)[-1]), float(np.asarray(line.y)[-1])


def name_at_the_end(axes: Any, named: Sequence[tuple[str, str, tuple[float, float], bool]]) -> None:
    """Names to the right, moved apart where they would lie on each other, each with a thin line to what it names.

    Args:
        axes: with its limits as they will be drawn.
        named: of each a name, its colour, where it ends, and whether it is printed in bold.
    """
    low, high = axes.get_ylim()
    order = sorted(named, key=lambda each: each[2][1])
    inside = [min(max(each[2][1], low), high) for each in order]
    heights = spread([(each - low) / (high - low) for each in inside], 0.05)
    for (name, colour, (end, _), strong), ends_at, height in zip(order, inside, heights, strict=True):
        style = {"fontweight": "bold" if strong else "normal", "fontsize": 9.5, "color": colour, "va": "center"}
        # From the middle of the name's left side: it is seen which line it is of, wherever the name had to go.
        leader = {"arrowstyle": "-", "color": colour, "linewidth": 0.9, "shrinkA": 1, "shrinkB": 2, "relpos": (0, 0.5)}
        place = {"xycoords": "data", "xytext": (1.045, height), "textcoords": "axes fraction"}
        axes.annotate(name, (end, ends_at), **place, arrowprops=leader, annotation_clip=False, **style)


def spread(heights: Sequence[float], apart: float) -> list[float]:
    """Heights in 0..1, sorted, moved up and down alike until each is so much above the last.

    >>> [round(each, 2) for each in spread([0.1, 0.5, 0.52, 0.9], 0.1)]
    [0.1, 0.46, 0.56, 0.9]
    >>> [round(each, 2) for each in spread([0.98, 0.99], 0.1)]
    [0.9, 1.0]
    """
    steps = apart * np.arange(len(heights))
    bare = np.asarray(heights, dtype=np.float64) - steps
    # Moved up only, and down only: what lies between two that are far enough apart is so, too.
    up, down = np.maximum.accumulate(bare), np.minimum.accumulate(bare[::-1])[::-1]
    middle = np.clip((up + down) / 2, 0.0, 1.0 - steps[-1])
    return [float(each) for each in middle + steps]
