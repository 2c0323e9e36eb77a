"""Pictures of a measured table: lines against one quantity on logarithmic axes, and bars method by method."""

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shuffledp.pictures.curves import new_figure, tidy

# A model has the same colour in every picture; several lines of one model differ in their dashes.
_COLOURS = {"local": "#c44e52", "shuffle": "#4c72b0", "central": "0.35"}
_DASHES = ("-", "--", ":", "-.")
_ACROSS, _TICKS = 4, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelLine:
    """One line with its intervals; a slope is drawn dotted through its middle if one is claimed."""

    name: str
    model: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    slope: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinePanel:
    """Lines against one quantity."""

    title: str
    against: str
    measures: str
    lines: Sequence[PanelLine]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """What was measured of a method, and what it claims; None where there is nothing."""

    name: str
    model: str
    value: float | None
    low: float | None
    high: float | None
    claimed: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BarPanel:
    """Methods beside one another."""

    title: str
    bars: Sequence[Bar]


def survey_png(panels: Sequence[LinePanel | BarPanel], title: str) -> bytes:
    """The panels in rows of up to four, as the bytes of a PNG."""
    across = min(_ACROSS if len(panels) > 6 else 3, len(panels)) if len(panels) != 4 else 4
    down = math.ceil(len(panels) / across)
    figure = new_figure(Path("page"), width=4.5 * across + 0.5, height=4.1 * down + 0.4)
    grid = figure.subplots(down, across, squeeze=False).reshape(-1)
    for axes, panel in zip(grid, panels, strict=False):
        if isinstance(panel, LinePanel):
            _draw_lines(axes, panel)
        else:
            _draw_bars(axes, panel)
        tidy(axes, grid=False)
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    figure.suptitle(title)
    written = io.BytesIO()
    figure.savefig(written, format="png", dpi=110)
    return written.getvalue()


def _draw_lines(axes: Any, panel: LinePanel) -> None:
    alone = len({line.model for line in panel.lines}) == 1 and len(panel.lines) > 1
    drawn: dict[str, int] = {}
    for place, line in enumerate(panel.lines):
        colour = f"C{place}" if alone else _COLOURS[line.model]
        dashes = "-" if alone else _DASHES[drawn.get(line.model, 0) % len(_DASHES)]
        drawn[line.model] = drawn.get(line.model, 0) + 1
        x, y, low, high = (np.asarray(each, dtype=np.float64) for each in (line.x, line.y, line.low, line.high))
        # An interval that reaches below 0 ends a factor of five below its point.
        axes.fill_between(x, np.maximum(low, y / 5), high, color=colour, alpha=0.18, linewidth=0)
        axes.plot(x, y, "o", linestyle=dashes, color=colour, markersize=3.5, linewidth=1.5, label=line.name)
        if line.slope is not None:
            middle = np.log(y).mean() - line.slope * np.log(x).mean()
            axes.plot(x, np.exp(middle) * x**line.slope, linestyle=(0, (1, 2)), color=colour, linewidth=1.1)
    axes.set(xscale="log", yscale="log", xlabel=panel.against, ylabel=panel.measures)
    ticks = sorted({float(x) for line in panel.lines for x in line.x})
    kept = ticks if len(ticks) <= _TICKS else [ticks[round(i * (len(ticks) - 1) / (_TICKS - 1))] for i in range(_TICKS)]
    axes.set_xticks(kept, [f"{x:,.0f}" if x >= 10 else f"{x:.3g}" for x in kept])
    axes.set_xticks([], minor=True)
    low, high = axes.get_ylim()
    # Room for the legend below all lines, and never less than a decade.
    floor = min(low, high / 10)
    axes.set_ylim(floor / (high / floor) ** (0.11 * len(panel.lines) + 0.05), high)
    axes.set_title(panel.title, fontsize=10)
    axes.grid(True, which="major", alpha=0.25)
    axes.legend(frameon=False, fontsize=7.5, loc="lower left")


def _draw_bars(axes: Any, panel: BarPanel) -> None:
    bars = [bar for bar in panel.bars if bar.value is not None or bar.claimed is not None]
    for place, bar in enumerate(bars):
        colour = _COLOURS[bar.model]
        if bar.value is not None:
            axes.barh(place, bar.value, color=colour, alpha=0.75, height=0.6)
            if bar.low is not None and bar.high is not None:
                axes.plot([max(bar.low, bar.value / 5), bar.high], [place, place], color="black", linewidth=1.2)
        if bar.claimed is not None:
            axes.plot([bar.claimed], [place], "D", color="black", markersize=4, markerfacecolor="none")
    axes.plot([], [], "D", color="black", markersize=4, markerfacecolor="none", label="claimed")
    axes.set(xscale="log", yticks=range(len(bars)))
    axes.set_yticklabels([bar.name for bar in bars], fontsize=8)
    axes.invert_yaxis()
    numbers = [each for bar in bars for each in (bar.value, bar.claimed) if each]
    axes.set_xlim(min(numbers) / 2, max(numbers) * 1.6)
    axes.set_title(panel.title, fontsize=10)
    axes.grid(True, axis="x", which="major", alpha=0.25)
    axes.legend(frameon=False, fontsize=8, loc="best")
