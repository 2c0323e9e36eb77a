"""A running count, sum or histogram with its band, and a schedule: which shuffler holds which users when."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.pictures.curves import add_notes, check_drawing, new_figure, save_figure, thinned, tidy
from shuffledp.pictures.lettering import Letters, lettering

_MOST_BATCHES = 1000
MOST_LINES = 8


def draw_running_count(
    path: Path,
    *,
    times: ArrayLike,
    estimates: ArrayLike,
    bound: float,
    confidence: float,
    title: str,
    truth: ArrayLike | None = None,
    boundaries: ArrayLike = (),
    what: str = "count",
    names: Sequence[str] = ("estimate",),
    column: str | None = None,
) -> None:
    """Draw the estimate and its band over time, the truth if it is given, and when batches closed.

    Below it the error, where the truth is known: a band that is narrow against a large count is hard to see.
    Where estimates have several columns, with a name each, those eight that end furthest from 0 are drawn.

    Args:
        path: where to: .png, .svg or .pdf.
        times: after how many users.
        estimates: a number a time, or a row of them.
        bound: how far every number may be off, at all times at once.
        confidence: with which the bound holds.
        title: what stands above.
        truth: the true numbers, where they may be shown.
        boundaries: when the largest batches closed.
        what: what is drawn: a count, a sum or users.
        names: of the numbers of a row, in any script.
        column: what is counted, written beside the axis.
    """
    check_drawing(path)
    with lettering(path, [*names, title, column or ""]) as letters:
        shown: dict[str, Any] = {"names": names, "what": what, "letters": letters, "column": column}
        heading = "\n".join(map(letters.written, title.splitlines()))
        _draw(path, times, estimates, bound, confidence, heading, truth, boundaries=boundaries, **shown)


def _draw(
    path: Path,
    times: ArrayLike,
    estimates: ArrayLike,
    bound: float,
    confidence: float,
    title: str,
    truth: ArrayLike | None,
    *,
    names: Sequence[str],
    what: str,
    boundaries: ArrayLike,
    letters: Letters,
    column: str | None,
) -> None:
    figure = new_figure(path, width=9, height=6.4 if truth is not None else 4.6)
    panels = [figure.subplots()] if truth is None else figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    axes, lower = panels[0], panels[-1]
    when, value = np.asarray(times, dtype=np.float64), _columns(estimates)
    shown, drawn = thinned(when.size), _furthest(value)
    several = len(drawn) > 1
    labels = letters.labels([names[place] for place in drawn], [place + 1 for place in drawn])
    lines = []
    for place, label in zip(drawn, labels, strict=True):
        line = axes.plot(when[shown], value[shown, place], linewidth=1.5, label=_word(label))[0]
        edges = (value[shown, place] - bound, value[shown, place] + bound)
        band = {"alpha": 0.13 if several else 0.25, "linewidth": 0, "color": line.get_color()}
        axes.fill_between(when[shown], *edges, **band, label=None if several else f"{confidence:.0%} band")
        lines.append(line)
    counted = letters.word(column)
    axes.set(ylabel=f"{what} of {counted}" if counted and not several else what, title=title)
    if truth is not None:
        true = _columns(truth)
        for nth, place in enumerate(drawn):
            look = {"linewidth": 1, "color": "black", "linestyle": "--", "label": None if nth else "truth"}
            axes.plot(when[shown], true[shown, place], **look)
        lower.axhspan(-bound, bound, alpha=0.25, linewidth=0, color="0.6" if several else None)
        for place, line in zip(drawn, lines, strict=True):
            look = {"linewidth": 0.6 if several else 0.8, "color": line.get_color()}
            errors = (value - true)[:, place]
            places = with_extremes(shown, errors)
            lower.plot(when[places], errors[places], **look)
        lower.set(ylabel="estimate - truth")
    for panel in panels:
        for place, edge in enumerate(np.asarray(boundaries, dtype=np.float64)):
            named = None if place else "a large batch closes"
            panel.axvline(edge, color="0.6", linewidth=0.6, linestyle=":", label=named)
        tidy(panel, grid=False)
    lower.set(xlabel="users so far")
    add_notes(figure, [letters.note(labels)])
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    heading = f"{counted}\n" * bool(counted) + f"shade: {confidence:.0%} band"
    beside = {"fontsize": 9, "loc": "center left", "bbox_to_anchor": (1, 0.5), "title": heading}
    axes.legend(frameon=False, **(beside if several else {}))
    save_figure(figure, path)


def draw_schedule(path: Path, batches: Mapping[int, Sequence[tuple[int, int]]], title: str) -> None:
    """Write a PNG, SVG or PDF with a row a shuffler and a bar a batch, from its first to its last user."""
    from matplotlib.collections import PolyCollection

    figure = new_figure(path, width=10, height=1.6 + 0.55 * len(batches))
    axes = figure.subplots()
    colours = ("#4c72b0", "#a9bcdc")
    for level, spans in batches.items():
        drawn = list(spans)
        if len(drawn) > _MOST_BATCHES:
            sizes = sorted({last - first for first, last in drawn})
            held = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
            words = f"{len(drawn):,} batches of {held} users: too many to draw"
            drawn = [(drawn[0][0], drawn[-1][1])]
            axes.text(sum(drawn[0]) / 2, level, words, ha="center", va="center", color="white", fontsize=9)
        corners = [
            [(first, level - 0.4), (last, level - 0.4), (last, level + 0.4), (first, level + 0.4)]
            for first, last in drawn
        ]
        faces = [colours[place % 2] for place in range(len(drawn))]
        axes.add_collection(PolyCollection(corners, facecolors=faces, edgecolors="none"))
    axes.autoscale_view()
    axes.set(xlabel="users", title=title, yticks=list(batches), yticklabels=[f"shuffler {level}" for level in batches])
    axes.xaxis.set_major_formatter("{x:,.0f}")
    tidy(axes, grid=False)
    save_figure(figure, path)


def with_extremes(places: NDArray[np.int64], errors: NDArray[np.float64]) -> NDArray[np.int64]:
    """These places, and between any two of them that of the largest error: a picture hides no error by leaving it out.

    >>> with_extremes(np.array([0, 3, 5]), np.array([0.0, -7.0, 2.0, 1.0, 1.5, 0.0])).tolist()
    [0, 1, 3, 4, 5]
    """
    far = np.abs(errors)
    between = [first + int(np.argmax(far[first:end])) for first, end in pairwise(places.tolist())]
    return np.unique(np.concatenate((places, np.array(between, dtype=np.int64))))


def _columns(values: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    return array if array.ndim == 2 else array[:, np.newaxis]


def _furthest(values: NDArray[np.float64]) -> list[int]:
    """The columns to draw, the highest at the end first, so that a legend reads like the picture."""
    last = values[-1]
    chosen = np.argsort(-np.abs(last), kind="stable")[:MOST_LINES]
    return sorted((int(column) for column in chosen), key=lambda column: -last[column])


def _word(name: str) -> str:
    """A name as a legend shows it: not hidden by an underscore in front."""
    return (" " if name.startswith("_") else "") + name
