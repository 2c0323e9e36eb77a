"""A distribution function with its band, the truth if it is known, and quantiles with their intervals."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.pictures.curves import new_figure, save_figure, thinned, tidy


def draw_distribution(
    path: Path,
    *,
    values: ArrayLike,
    shares: ArrayLike,
    bound: float,
    confidence: float,
    title: str,
    truth: ArrayLike | None = None,
    quantiles: Sequence[tuple[float, float, float, float]] = (),
) -> None:
    """Write a PNG or SVG; `quantiles` are (q, value, lower, upper), `bound` is that of all shares at once.

    Below it the error, where the truth is known: the band of many users is too narrow to see.
    """
    figure = new_figure(path, width=9, height=6.4 if truth is not None else 4.6)
    panels: Any = figure.subplots(2 if truth is not None else 1, 1, squeeze=False, sharex=True)
    axes, below = panels[0, 0], panels[-1, 0]
    where, height = np.asarray(values, dtype=np.float64), np.asarray(shares, dtype=np.float64)
    shown = thinned(where.size)
    low, high = np.clip(height - bound, 0, 1)[shown], np.clip(height + bound, 0, 1)[shown]
    axes.fill_between(where[shown], low, high, alpha=0.25, linewidth=0, step="post", label=f"{confidence:.0%} band")
    axes.step(where[shown], height[shown], where="post", linewidth=1.5, label="estimate")
    if truth is not None:
        true = np.asarray(truth, dtype=np.float64)
        axes.step(where[shown], true[shown], where="post", linewidth=1, color="black", linestyle="--", label="truth")
        below.axhspan(-bound, bound, alpha=0.25, linewidth=0)
        below.plot(where[shown], (height - true)[shown], linewidth=0.8)
        below.set(ylabel="estimate - truth")
        tidy(below, grid=False)
    for q, value, lower, upper in quantiles:
        axes.plot([lower, upper], [q, q], color="0.35", linewidth=3, solid_capstyle="butt", alpha=0.6)
        axes.plot([value], [q], marker="o", markersize=4, color="0.2")
        axes.annotate(f" {q:g}: {value:,.6g}", (max(value, upper), q), fontsize=8, va="top")
    axes.set(ylabel="share of users at or below", title=title, ylim=(-0.02, 1.02))
    below.set(xlabel="value")
    tidy(axes, grid=False)
    axes.legend(frameon=False, loc="lower right")
    save_figure(figure, path)
