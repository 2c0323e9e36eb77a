"""Batches that overlap: the first windows as bars, and what one user adds to each of its own."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from shuffledp.pictures.curves import check_drawing, new_figure, save_figure, tidy

# So many windows are told apart in one picture.
MOST_WINDOWS = 36
_COLOURS = ("#4c72b0", "#a9bcdc")


def draw_windows(
    path: Path, batches: Mapping[int, Sequence[tuple[int, int]]], parts: Mapping[str, Sequence[float]], title: str
) -> None:
    """Write a PNG, SVG or PDF: a row a shuffler with a bar a window, and below what a user adds to its windows.

    Args:
        path: where to: .png, .svg or .pdf.
        batches: by shuffler, the first and the last user of every window, in order.
        parts: by name, what a user adds to the windows that it is in, the first to close first.
        title: what stands above.
    """
    check_drawing(path)
    figure = new_figure(path, width=10, height=4.8 + 0.5 * len(batches))
    upper, lower = figure.subplots(2, 1, height_ratios=(1 + 0.5 * len(batches), 2.2))
    last = first_windows(batches)
    for level, spans in batches.items():
        shown = [(first, end) for first, end in spans if end <= last]
        faces = [_COLOURS[place % 2] for place in range(len(shown))]
        upper.broken_barh([(first, end - first) for first, end in shown], (level - 0.4, 0.8), facecolors=faces)
    of_all = sum(map(len, batches.values()))
    drawn = sum(end <= last for spans in batches.values() for _, end in spans)
    words = f"users (the first {drawn} of {of_all:,} windows)" if drawn < of_all else "users"
    upper.set(title=title, xlabel=words, yticks=list(batches), yticklabels=[f"shuffler {level}" for level in batches])
    upper.xaxis.set_major_formatter("{x:,.0f}")
    width = 0.8 / len(parts)
    for number, (name, heights) in enumerate(parts.items()):
        places = [place + (number + 0.5) * width - 0.4 for place in range(len(heights))]
        # Some are too small to be seen beside others.
        lower.bar(places, heights, width=0.92 * width, label=f"{name}: {heights[0]:+.2g} at first")
    windows = range(max(map(len, parts.values())))
    named = [f"window {place + 1}" if place else "the first window to close" for place in windows]
    lower.axhline(0, color="0.4", linewidth=0.8)
    lower.set(ylabel="a user adds, in steps", xticks=list(windows), xticklabels=named)
    lower.legend(frameon=False, fontsize=9, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.12))
    for panel in (upper, lower):
        tidy(panel, grid=False)
    save_figure(figure, path)


def first_windows(batches: Mapping[int, Sequence[tuple[int, int]]]) -> int:
    """The last user of the first so many windows, of all if they are fewer.

    >>> first_windows({1: [(0, 3), (3, 6)], 2: [(0, 1), (1, 4)]})
    6
    """
    ends = sorted(end for spans in batches.values() for _, end in spans[:MOST_WINDOWS])
    return ends[min(len(ends), MOST_WINDOWS) - 1]
