"""Regret over the number of users, a panel an epsilon and a line a policy."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from shuffledp.pictures.curves import new_figure, save_figure, tidy

Line = Sequence[tuple[int, float]]


def draw_regret(path: Path, panels: Mapping[str, Mapping[str, Line]], title: str) -> None:
    """Write a PNG or SVG on logarithmic axes; a line of the same name has the same colour in all panels."""
    figure = new_figure(path, width=4.6 * len(panels) + 1.5, height=4.8)
    grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    for axes, (panel, lines) in zip(grid, panels.items(), strict=True):
        for name, line in lines.items():
            style = "--" if name.startswith(("non-private", "ucb1", "thompson")) else "-"
            users, regret = zip(*line, strict=True)
            axes.plot(users, regret, style, color=f"C{names.index(name)}", linewidth=1.6, label=name)
        axes.set(xscale="log", yscale="log", xlabel="users", title=panel)
        tidy(axes)
    grid[0].set_ylabel("regret")
    entries = dict(zip(*reversed(grid[0].get_legend_handles_labels()), strict=True))
    for axes in grid[1:]:
        entries |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    figure.legend(entries.values(), entries.keys(), loc="outside right center", frameon=False)
    figure.suptitle(title)
    save_figure(figure, path)
