"""How well a model does: what it predicted against what was seen, and its ROC curve."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.pictures.curves import check_drawing, new_figure, save_figure, tidy


def draw_evaluation(
    path: Path,
    *,
    groups: Sequence[tuple[float, float, float, float]],
    curve: tuple[ArrayLike, ArrayLike] | None,
    area: str,
    confidence: float,
    title: str,
    column: str | None = None,
) -> None:
    """Draw calibration, where there are groups, and the ROC curve, where there is one.

    Args:
        path: where to: .png, .svg or .pdf.
        groups: (predicted, rate, lower, upper) of people with about the same predicted probability.
        curve: false and true positive rates; None where there are several classes.
        area: the area under the curve, in words.
        confidence: with which all intervals hold together.
        title: what stands above.
        column: what is predicted.
    """
    check_drawing(path)
    panels = bool(groups) + (curve is not None)
    figure = new_figure(path, width=5.2 * panels, height=4.8)
    grid: Any = figure.subplots(1, panels, squeeze=False)[0]
    if groups:
        predicted, rate, lower, upper = np.array(groups).T
        reach = np.maximum(0.0, np.stack((rate - lower, upper - rate)))
        label = f"interval, {confidence:.0%} for all at once"
        grid[0].errorbar(predicted, rate, yerr=reach, fmt="o-", elinewidth=1.0, capsize=2.0, label=label)
        grid[0].set(xlabel="predicted", ylabel="seen" if column is None else f"seen: {column}", title="Calibration")
    if curve is not None:
        grid[-1].plot(*curve, linewidth=1.5, label=f"area {area}".replace(": ", ":\n", 1).replace("; ", ";\n", 1))
        grid[-1].set(xlabel="false positives", ylabel="true positives", title="ROC curve")
    for axes in grid:
        axes.plot([0, 1], [0, 1], color="0.6", linewidth=0.8, linestyle="--")
        axes.set(xlim=(0, 1), ylim=(0, 1.02))
        tidy(axes)
        axes.legend(frameon=False, loc="upper left" if groups and axes is grid[0] else "lower right", fontsize=8)
    figure.suptitle(title)
    save_figure(figure, path)
