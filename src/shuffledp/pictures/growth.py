"""Regret over numbers of users on logarithmic axes, with bands, and the slopes that theory gives."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shuffledp.pictures.curves import new_figure, save_figure, tidy
from shuffledp.pictures.regrets import style_of


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthLine:
    """One policy: mean regret, its standard error, and the theory's slope."""

    name: str
    label: str
    users: Sequence[int]
    mean: Sequence[float]
    standard_error: Sequence[float]
    theory: float


def draw_growth(path: Path, lines: Sequence[GrowthLine], title: str) -> None:
    """Write a PNG or SVG; the theory's slope is drawn dashed from the first point."""
    figure = new_figure(path, width=8.4, height=5.2)
    axes = figure.subplots()
    for line in lines:
        colour, _ = style_of(line.name)
        users, mean, error = (
            np.asarray(part, dtype=np.float64) for part in (line.users, line.mean, line.standard_error)
        )
        low = np.maximum(mean - 2 * error, mean / 10)
        axes.fill_between(users, low, mean + 2 * error, color=colour, alpha=0.2, linewidth=0)
        axes.plot(users, mean, "o-", color=colour, markersize=3.5, linewidth=1.6, label=line.label)
        axes.plot(users, mean[0] * (users / users[0]) ** line.theory, "--", color=colour, linewidth=1, alpha=0.8)
    axes.plot([], [], "--", color="0.4", linewidth=1, label="the worst case's slope")
    axes.set(xscale="log", yscale="log", xlabel="users", ylabel="regret", title=title)
    tidy(axes)
    axes.legend(frameon=False, loc="upper left", fontsize=9)
    save_figure(figure, path)
