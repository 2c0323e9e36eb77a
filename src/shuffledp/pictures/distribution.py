"""A distribution function with its band, the truth if it is known, and quantiles with their intervals."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.pictures.curves import add_notes, check_drawing, new_figure, save_figure, thinned, tidy
from shuffledp.pictures.lettering import Letters, lettering


def draw_distribution(
    path: Path,
    *,
    values: ArrayLike,
    shares: ArrayLike,
    bound: float,
    confidence: float,
    title: str,
    truth: ArrayLike | None = None,
    quantiles: Sequence[tuple[float, Any, Any, Any]] = (),
    column: str | None = None,
) -> None:
    """Draw a distribution function with its band.

    Below it the error, where the truth is known: the band of many users is too narrow to see.

    Args:
        path: where to: .png, .svg or .pdf.
        values: rising; numbers, or days in ISO form.
        shares: the share of users at or below each value.
        bound: how far all shares at once may be off.
        confidence: with which the bound holds.
        title: what stands above.
        truth: the true shares, where they may be shown.
        quantiles: (q, value, lower, upper) each, to be marked.
        column: what the values are, written below them.
    """
    check_drawing(path)
    with lettering(path, [title, column or ""]) as letters:
        _draw(path, values, shares, bound, confidence, title, truth, quantiles, column, letters)


def _draw(
    path: Path,
    values: ArrayLike,
    shares: ArrayLike,
    bound: float,
    confidence: float,
    title: str,
    truth: ArrayLike | None,
    quantiles: Sequence[tuple[float, Any, Any, Any]],
    column: str | None,
    letters: Letters,
) -> None:
    figure = new_figure(path, width=9, height=6.4 if truth is not None else 4.6)
    panels: Any = figure.subplots(2 if truth is not None else 1, 1, squeeze=False, sharex=True)
    axes, below = panels[0, 0], panels[-1, 0]
    where, height = _places(values), np.asarray(shares, dtype=np.float64)
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
    for place, (q, value, lower, upper) in enumerate(quantiles):
        look = {"color": "0.35", "linewidth": 3, "solid_capstyle": "butt", "alpha": 0.6}
        ends, (at,) = _places([lower, upper]), _places([value])
        axes.plot(ends, [q, q], label=None if place else "quantile and its interval", **look)
        axes.plot([at], [q], marker="o", markersize=4, color="0.2")
        told = value if isinstance(value, str) else f"{value:,.6g}"
        axes.annotate(f" {q:g}: {told}", (max(at, ends[1]), q), fontsize=8, va="top")
    axes.set(ylabel="share of users at or below", title=letters.written(title), ylim=(-0.02, 1.02))
    below.set(xlabel=letters.word(column, "value"))
    add_notes(figure, [letters.note()])
    tidy(axes, grid=False)
    axes.legend(frameon=False, loc="lower right")
    save_figure(figure, path)


def _places(values: ArrayLike) -> NDArray[Any]:
    """Where values lie along the picture: numbers, or days."""
    array = np.asarray(values)
    return array.astype("datetime64[D]" if array.dtype.kind == "U" else np.float64)
