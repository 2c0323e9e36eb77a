"""Falling losses over users on logarithmic axes, panel by panel, with bands and the slope that theory gives each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shuffledp.pictures.curves import new_figure, save_figure, tidy


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLine:
    """One line: means, their standard errors, and the slope that they should have."""

    name: str
    users: Sequence[int]
    means: Sequence[float]
    standard_errors: Sequence[float]
    theory: float


def draw_rates(path: Path, panels: Mapping[str, Sequence[RateLine]], title: str, label: str) -> None:
    """Write a PNG or SVG; bands are two standard errors, theory is dashed through the middle of the points."""
    figure = new_figure(path, width=6.2 * len(panels), height=5.2)
    for axes, (name, lines) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
        for place, line in enumerate(lines):
            colour = f"C{place}"
            users, means, errors = (
                np.asarray(numbers, dtype=np.float64) for numbers in (line.users, line.means, line.standard_errors)
            )
            middle = np.log(means).mean() - line.theory * np.log(users).mean()
            # A band that reaches below 0 ends a decade below its line.
            low, high = np.maximum(means - 2 * errors, means / 10), means + 2 * errors
            axes.fill_between(users, low, high, color=colour, alpha=0.2, linewidth=0)
            axes.plot(users, means, "o-", color=colour, markersize=3.5, linewidth=1.5, label=line.name)
            axes.plot(users, np.exp(middle) * users**line.theory, "--", color=colour, linewidth=1)
        axes.plot([], [], "--", color="0.4", linewidth=1.2, label="the theory's slope")
        axes.set(xscale="log", yscale="log", xlabel="users", ylabel=label, title=name)
        tidy(axes)
        axes.legend(frameon=False, fontsize=9, loc="lower left")
    figure.suptitle(title)
    save_figure(figure, path)
