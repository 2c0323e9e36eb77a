"""Measured errors over users on logarithmic axes, with the slope that theory gives each line."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shuffledp.errors import ParameterError
from shuffledp.pictures.curves import new_figure, save_figure, tidy


@dataclass(frozen=True, slots=True, kw_only=True)
class SlopeLine:
    """One line: what was measured, what is proved, and the slope that both should have."""

    name: str
    users: Sequence[int]
    errors: Sequence[float]
    bounds: Sequence[float]
    theory: float


def check_picture(path: Path) -> None:
    """Refuse a name that cannot be drawn to, before any work is done."""
    if path.suffix.lower() not in (".png", ".svg") or not path.parent.is_dir():
        raise ParameterError("picture", str(path), "must be a .png or .svg in a folder that exists", "name a picture")
    new_figure(path, width=1)


def draw_slopes(path: Path, lines: Sequence[SlopeLine], title: str) -> None:
    """Write a PNG or SVG; the theory's slope is drawn dashed through the middle of the measured points."""
    figure = new_figure(path, width=9, height=5.2)
    from matplotlib.ticker import LogLocator, NullFormatter

    axes = figure.subplots()
    for place, line in enumerate(lines):
        colour, users = f"C{place}", np.asarray(line.users, dtype=np.float64)
        middle = np.log(line.errors).mean() - line.theory * np.log(users).mean()
        axes.plot(users, line.errors, "o-", color=colour, markersize=3.5, linewidth=1.5, label=line.name)
        axes.plot(users, np.exp(middle) * users**line.theory, "--", color=colour, linewidth=1)
        axes.plot(users, line.bounds, ":", color=colour, linewidth=1.2)
    for style, words in (("--", "the theory's slope"), (":", "proved bound, 95%")):
        axes.plot([], [], style, color="0.4", linewidth=1.2, label=words)
    axes.set(xscale="log", yscale="log", xlabel="users", ylabel="largest error at any time", title=title)
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    tidy(axes)
    axes.legend(frameon=False)
    save_figure(figure, path)
