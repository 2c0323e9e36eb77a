"""Loss against rounds: how a model learns, and what its privacy costs."""

from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from shuffledp.pictures.curves import new_figure, save_figure, tidy

_WARNING = "Read from people's data without noise: no guarantee covers these curves. Not for publication."


def draw_learning_curve(path: Path, rounds: Sequence[int], losses: Mapping[str, Sequence[float]], title: str) -> None:
    """Write a PNG, SVG or PDF of losses after these rounds, a line a name, and that they are not private."""
    save_figure(_drawn(path, rounds, losses, title), path)


def learning_curve_svg(rounds: Sequence[int], losses: Mapping[str, Sequence[float]], title: str) -> str:
    """A picture of losses round by round, as SVG text that can stand in a web page."""
    text = StringIO()
    _drawn(Path("report"), rounds, losses, title).savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


def _drawn(path: Path, rounds: Sequence[int], losses: Mapping[str, Sequence[float]], title: str) -> Any:
    figure = new_figure(path, width=8)
    axes = figure.subplots()
    for name, line in losses.items():
        axes.plot(rounds, line, linewidth=2, marker="o" if len(rounds) < 3 else None, label=name)
    if rounds[-1] > 20:
        axes.set_xscale("log")
    axes.set(xlabel="rounds", ylabel="mean loss", title=title)
    tidy(axes)
    axes.legend(frameon=False)
    figure.supxlabel(_WARNING, fontsize=8, color="#a00")
    return figure
