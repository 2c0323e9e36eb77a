"""The picture of a measured table: lines against one quantity on logarithmic axes, and bars method by method."""

import io
import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from shuffledp.experiments.survey.results import Line, Measured, Row, Table
from shuffledp.pictures.curves import DrawnLine, new_figure, plot_line, tidy

# A model has the same colour in every picture; several lines of one model differ in their dashes.
_COLOURS = {"local": "#c44e52", "shuffle": "#4c72b0", "central": "0.35"}
_DASHES = ("-", "--", ":", "-.")
_ACROSS, _TICKS = 4, 4
_CLAIMED = {"marker": "D", "color": "black", "markersize": 4, "markerfacecolor": "none", "linestyle": "none"}


def survey_png(table: Table) -> bytes:
    """The table's panels in rows of up to four, as the bytes of a PNG."""
    drawn = panels(table)
    across = min(_ACROSS if len(drawn) > 6 else 3, len(drawn)) if len(drawn) != 4 else 4
    down = math.ceil(len(drawn) / across)
    figure = new_figure(Path("page"), width=4.5 * across + 0.5, height=4.1 * down + 0.4)
    grid = figure.subplots(down, across, squeeze=False).reshape(-1)
    for axes, draw in zip(grid, drawn, strict=False):
        draw(axes)
        tidy(axes, grid=False)
    for axes in grid[len(drawn) :]:
        axes.set_visible(False)
    figure.suptitle(f"Table {table.number}: {table.title}")
    written = io.BytesIO()
    figure.savefig(written, format="png", dpi=110)
    return written.getvalue()


def panels(table: Table) -> Sequence[Callable[[Any], None]]:
    """What draws each panel: bars of cells, and lines, of all rows together where a row is a method."""
    rows = [row for row in table.rows if row.cells]
    groups: dict[tuple[str, str], list[Line]] = {}
    for row in table.rows:
        for line in row.lines:
            if all(point.value > 0 for point in line.points):
                groups.setdefault((f"against {line.against}" if rows else row.name, line.against), []).append(line)
    bars = [partial(_draw_bars, rows=rows, title=title, names=names) for title, *names in table.bars]
    return bars + [partial(_draw_lines, lines=lines, title=title) for (title, _), lines in groups.items()]


def _draw_lines(axes: Any, lines: Sequence[Line], title: str) -> None:
    alone = len({line.model for line in lines}) == 1 and len(lines) > 1
    drawn: Counter[str] = Counter()
    for place, line in enumerate(lines):
        value, low, high = (np.array([getattr(p, name) for p in line.points]) for name in ("value", "low", "high"))
        look = DrawnLine(
            name=line.name,
            x=line.x,
            y=value,
            # An interval that reaches below 0 ends a factor of five below its point.
            band=(np.maximum(low, value / 5), high),
            theory=None if line.exponent is None else line.exponent.claimed,
            dashes="-" if alone else _DASHES[drawn[line.model] % len(_DASHES)],
        )
        plot_line(axes, look, f"C{place}" if alone else _COLOURS[line.model], theory=(0, (1, 2)))
        drawn[line.model] += 1
    axes.set(xscale="log", yscale="log", xlabel=lines[0].against, ylabel=lines[0].measures)
    ticks = sorted({x for line in lines for x in line.x})
    kept = ticks if len(ticks) <= _TICKS else [ticks[round(i * (len(ticks) - 1) / (_TICKS - 1))] for i in range(_TICKS)]
    axes.set_xticks(kept, [f"{x:,.0f}" if x >= 10 else f"{x:.3g}" for x in kept])
    axes.set_xticks([], minor=True)
    bottom, top = axes.get_ylim()
    # Room for the legend below all lines, and never less than a decade.
    floor = min(bottom, top / 10)
    axes.set_ylim(floor / (top / floor) ** (0.11 * len(lines) + 0.05), top)
    axes.set_title(title, fontsize=10)
    axes.grid(True, which="major", alpha=0.25)
    axes.legend(frameon=False, fontsize=7.5, loc="lower left")


def _draw_bars(axes: Any, rows: Sequence[Row], title: str, names: Sequence[str]) -> None:
    """Bars of the first of two cells, with intervals, and marks of the second; rows with neither are left out."""
    cells = {row.name.split(":")[0]: [row.cells.get(name) for name in names] for row in rows}
    bars = {name: pair for name, pair in cells.items() if any(isinstance(cell, Measured | float) for cell in pair)}
    numbers = []
    for place, (name, (cell, claimed)) in enumerate(bars.items()):
        model = "local" if name.startswith("local") else "central" if name.startswith("trusted") else "shuffle"
        if isinstance(cell, Measured | float):
            value = cell.value if isinstance(cell, Measured) else cell
            numbers.append(value)
            axes.barh(place, value, color=_COLOURS[model], alpha=0.75, height=0.6)
        if isinstance(cell, Measured):
            axes.plot([max(cell.low, cell.value / 5), cell.high], [place, place], color="black", linewidth=1.2)
        if isinstance(claimed, float):
            numbers.append(claimed)
            axes.plot([claimed], [place], **_CLAIMED)
    axes.plot([], [], label="claimed", **_CLAIMED)
    axes.set(xscale="log", yticks=range(len(bars)))
    axes.set_yticklabels(list(bars), fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(min(filter(None, numbers)) / 2, max(numbers) * 1.6)
    axes.set_title(title, fontsize=10)
    axes.grid(True, axis="x", which="major", alpha=0.25)
    axes.legend(frameon=False, fontsize=8, loc="best")
