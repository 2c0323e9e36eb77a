"""Regret over time, one panel a setting, one line a policy, with bands of two standard errors."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shuffledp.pictures.curves import new_figure, save_figure, tidy

# A policy has the same colour and dashes in every picture.
_STYLES = {
    "linucb": ("0.25", "-"),
    "jdp-sqrt": ("#4c72b0", "-"),
    "jdp-tree": ("#4c72b0", "--"),
    "concurrent-4": ("#c44e52", "-"),
    "shuffle-vec": ("#dd8452", "-"),
    "shuffle-amp": ("#dd8452", "--"),
    "ldp": ("#8172b3", "-"),
}
_OTHER = ("#55a868", "-")


def style_of(policy: str) -> tuple[str, str]:
    """Colour and dashes; any number of concurrent shufflers looks like four."""
    return _STYLES.get("concurrent-4" if policy.startswith("concurrent") else policy, _OTHER)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegretLine:
    """Mean regret after so many users, and its standard error."""

    name: str
    times: Sequence[int]
    mean: Sequence[float]
    standard_error: Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegretPanel:
    """One setting."""

    title: str
    lines: Sequence[RegretLine]


def draw_regrets(path: Path, rows: Sequence[Sequence[RegretPanel]], title: str) -> None:
    """Write a PNG or SVG with a row of panels for each of `rows`; panels of a row share their height."""
    across, down = max(len(row) for row in rows), len(rows)
    figure = new_figure(path, width=3.9 * across + 1.2, height=3.1 * down + 0.7)
    grid = figure.subplots(down, across, sharex=True, sharey="row", squeeze=False)
    handles: dict[str, object] = {}
    for place, row in enumerate(rows):
        for column, panel in enumerate(row):
            axes = grid[place][column]
            for line in panel.lines:
                colour, dashes = style_of(line.name)
                times, mean, error = (np.asarray(part) for part in (line.times, line.mean, line.standard_error))
                handles[line.name] = axes.plot(times, mean, dashes, color=colour, linewidth=1.6)[0]
                axes.fill_between(times, mean - 2 * error, mean + 2 * error, color=colour, alpha=0.18, linewidth=0)
            axes.set(title=panel.title, xlim=(0, max(line.times[-1] for line in panel.lines)))
            axes.set_ylim(bottom=0)
            axes.grid(True, alpha=0.25)
            tidy(axes, grid=False)
            axes.xaxis.set_major_formatter("{x:,.0f}")
            axes.yaxis.set_major_formatter("{x:,.0f}")
            axes.locator_params(axis="x", nbins=4)
            if place == down - 1:
                axes.set_xlabel("users so far")
            if column == 0:
                axes.set_ylabel("cumulative regret")
    figure.legend(list(handles.values()), list(handles), loc="outside right upper", frameon=False, fontsize=9)
    figure.suptitle(title)
    save_figure(figure, path)
