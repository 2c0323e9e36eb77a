"""Lines, panel by panel, with bands, proved bounds and the slopes that theory gives; and what all pictures share."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from shuffledp.errors import ParameterError
from shuffledp.files import whole_file

# What each format would write down about when it was made, and need not.
_FORMATS: dict[str, dict[str, None] | None] = {".png": None, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnLine:
    """What was measured at each x, and what is known of it; a line of one name looks the same in every panel."""

    name: str
    x: Any
    y: Any
    band: Any = None
    """The low and the high ends of what is measured."""
    bounds: Any = None
    """What is proved at each x."""
    theory: float | None = None
    """The slope of log y against log x, drawn through the middle of the points."""
    colour: str | None = None
    """One of the picture's own if it is left out."""
    dashes: str = "-"

    @classmethod
    def through(
        cls, rows: Sequence[Any], x: str, y: str, *, error: str = "", bound: str = "", **look: Any
    ) -> "DrawnLine":
        """A line through the rows' fields of these names, with a band of two standard errors and bounds if named."""
        where, mean, errors, bounds = (
            np.array([getattr(row, name) for row in rows]) if name else None for name in (x, y, error, bound)
        )
        band = None if errors is None else within_two_errors(mean, errors)
        return cls(x=where, y=mean, band=band, bounds=bounds, **look)


def within_two_errors(mean: Any, error: Any) -> tuple[Any, Any]:
    """The ends of a band of two standard errors; one that logarithms cannot show is brought to a tenth of its mean."""
    mean, error = np.asarray(mean), np.asarray(error)
    return np.maximum(mean - 2 * error, mean / 10), mean + 2 * error


def plot_line(axes: Any, line: DrawnLine, colour: str, *, marked: bool = True, theory: Any = "--") -> Any:
    """Draw one line into a panel and return its handle; `theory` is the dash of the theory's slope."""
    x, y = np.asarray(line.x, dtype=np.float64), np.asarray(line.y, dtype=np.float64)
    if line.band is not None:
        axes.fill_between(x, *line.band, color=colour, alpha=0.18, linewidth=0)
    style = {"linestyle": line.dashes, "marker": "o" if marked else None, "markersize": 3.5, "linewidth": 1.5}
    handle = axes.plot(x, y, color=colour, label=line.name, **style)[0]
    if line.theory is not None:
        middle = np.log(y).mean() - line.theory * np.log(x).mean()
        axes.plot(x, np.exp(middle) * x**line.theory, linestyle=theory, color=colour, linewidth=1.1)
    if line.bounds is not None:
        axes.plot(x, line.bounds, ":", color=colour, linewidth=1.2)
    return handle


def draw_lines(
    path: Path,
    rows: Sequence[Mapping[str, Sequence[DrawnLine]]],
    *,
    against: str,
    measures: str,
    title: str | None = None,
    logarithmic: bool = True,
    one_scale: bool = True,
) -> None:
    """Write a PNG, SVG or PDF with a row of panels for each of `rows`, which are titles with lines.

    Args:
        path: where to.
        rows: from above to below, each from left to right.
        against: what the lines are drawn over.
        measures: what is drawn.
        title: of the whole picture, where it has several panels.
        logarithmic: both axes; otherwise they begin at 0.
        one_scale: whether panels of a row with the same lines have the same scale.
    """
    panels = [lines for row in rows for lines in row.values()]
    names = [line.name for lines in panels for line in lines]
    # Lines that come again in other panels are named once, beside all.
    again = len(set(names)) < len(names)
    across, down = max(map(len, rows)), len(rows)
    width, height = (4.2, 3.6) if again else (6.4, 4.7)
    figure = new_figure(path, width=width * across + 1.5, height=height * down + 0.5)
    grid = figure.subplots(down, across, sharey="row" if again and one_scale else False, squeeze=False)
    handles: dict[str, Any] = {}
    for place, row in enumerate(rows):
        for axes, (heading, lines) in zip(grid[place], row.items(), strict=False):
            order = list(dict.fromkeys(names if again else (line.name for line in lines)))
            for line in lines:
                colour = line.colour or f"C{order.index(line.name)}"
                handles[line.name] = plot_line(axes, line, colour, marked=logarithmic)
            if logarithmic:
                axes.set(xscale="log", yscale="log")
            else:
                axes.set(xlim=(0, max(line.x[-1] for line in lines)))
                axes.set_ylim(bottom=0)
                axes.locator_params(axis="x", nbins=4)
                axes.xaxis.set_major_formatter("{x:,.0f}")
                axes.yaxis.set_major_formatter("{x:,.0f}")
            axes.set(title=heading, xlabel=against if place == down - 1 else None)
            tidy(axes)
            if not again:
                _explain(axes, lines)
        grid[place][0].set_ylabel(measures)
    if again:
        for dash, what in _explained([line for lines in panels for line in lines]):
            handles[what] = grid[0][0].plot([], [], dash, color="0.4", linewidth=1.2)[0]
        figure.legend(list(handles.values()), list(handles), loc="outside right upper", frameon=False, fontsize=9)
    if across > 1:
        # The last number below a panel and the first below the next one would read as one.
        figure.get_layout_engine().set(w_pad=0.12)
    figure.suptitle(title)
    save_figure(figure, path)


def _explain(axes: Any, lines: Sequence[DrawnLine]) -> None:
    """A legend with the lines' names, and with what dashes and dots are."""
    for dash, what in _explained(lines):
        axes.plot([], [], dash, color="0.4", linewidth=1.2, label=what)
    axes.legend(frameon=False, fontsize=9)


def check_drawing(path: Path) -> None:
    """Refuse to draw where nothing is installed that can, and a name that no picture can be written to."""
    check_picture_path(path)
    if find_spec("matplotlib") is None:
        raise ParameterError("pictures", path, "need matplotlib", "install it with: pip install 'shuffledp[pictures]'")


def add_notes(figure: Any, notes: Sequence[str]) -> None:
    """What is to be said below a picture, a line each; empty ones are left out."""
    said = [note for note in notes if note]
    if said:
        figure.supxlabel("\n".join(said), fontsize=8, color="0.35")


def _explained(lines: Sequence[DrawnLine]) -> list[tuple[str, str]]:
    """Dashes and dots that occur among the lines, and what they are."""
    kinds = [("--", "the theory's slope", "theory"), (":", "proved bound, 95%", "bounds")]
    return [(dash, what) for dash, what, name in kinds if any(getattr(line, name) is not None for line in lines)]


def new_figure(path: Path, *, width: float, height: float = 4.6) -> Any:
    """An empty figure, or a refusal that says what to install."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ParameterError(
            "pictures", path, "need matplotlib", "install it with: pip install 'shuffledp[pictures]'"
        ) from None
    return Figure(figsize=(width, height), dpi=150, layout="constrained")


def thinned(size: int) -> Any:
    """Places of some of so many points, evenly: more than 4000 make a picture heavy and no clearer."""
    return np.unique(np.linspace(0, size - 1, min(size, 4000)).astype(np.int64))


def tidy(axes: Any, *, grid: bool = True) -> None:
    """No frame above and to the right, and a faint grid."""
    if grid:
        axes.grid(True, which="major", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def check_picture_path(path: Path) -> None:
    """Refuse a name that no picture can be written to, before any work is done."""
    if path.suffix.lower() not in _FORMATS:
        raise ParameterError("picture", str(path), "must end in .png, .svg or .pdf", "name a picture")
    if not path.absolute().parent.is_dir():
        raise ParameterError("picture", str(path), "must be in a directory that exists", "create it, or name another")


_FOOTNOTE: ContextVar[str] = ContextVar("footnote", default="")


@contextmanager
def footnote(text: str) -> Iterator[None]:
    """Pictures that are saved meanwhile say this in their lower right corner; nothing where it is empty."""
    before = _FOOTNOTE.set(text)
    try:
        yield
    finally:
        _FOOTNOTE.reset(before)


def save_figure(figure: Any, path: Path) -> None:
    """Write the picture, whole or not at all."""
    check_picture_path(path)
    kind = path.suffix.lower().lstrip(".")
    if _FOOTNOTE.get():
        figure.text(0.995, 0.005, _FOOTNOTE.get(), ha="right", va="bottom", fontsize=8, color="firebrick")
    with whole_file(path) as file, warnings.catch_warnings():
        # An SVG that keeps text as text is measured with the fonts here, which may lack a letter.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(file, format=kind, metadata=_FORMATS[path.suffix.lower()])
