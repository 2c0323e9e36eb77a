"""Error, and what it costs, against the number of users, one line a method."""

import math
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shuffledp.errors import ParameterError
from shuffledp.files import whole_file

# Of a line's name, as a part of the picture's height.
_NAME_HEIGHT = 0.045

Lines = Mapping[str, Sequence[float | None]]


def draw_error_curves(users: Sequence[int], errors: Lines, title: str, path: Path) -> None:
    """Write a PNG or SVG of standard errors over numbers of users, both on logarithmic axes.

    Lines are named at their right end, in the order of `errors`; a method's name may carry its
    colour's role by being the same in two pictures.
    """
    figure = new_figure(path, width=8)
    axes = figure.subplots()
    _draw(axes, users, errors, {})
    axes.set(ylabel="standard error of the count", title=title)
    save_figure(figure, path)


def draw_error_and_cost(
    users: Sequence[int], errors: Lines, costs: Lines, title: str, path: Path, *, error_name: str = "standard error"
) -> None:
    """Write a PNG or SVG with two panels: standard errors, and bits that a user sends, over numbers of users.

    A line of the same name has the same colour in both.
    """
    figure = new_figure(path, width=13)
    left, right = figure.subplots(1, 2)
    colours: dict[str, Any] = {}
    _draw(left, users, errors, colours)
    _draw(right, users, costs, colours)
    left.set(ylabel=error_name, title="what it gains")
    right.set(ylabel="bits a user sends", title="what it costs")
    figure.suptitle(title)
    save_figure(figure, path)


def new_figure(path: Path, *, width: float, height: float = 4.6) -> Any:
    """An empty figure, or a refusal that says what to install."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ParameterError(
            "pictures", path, "need matplotlib", "install it with: pip install 'shuffledp[pictures]'"
        ) from None
    return Figure(figsize=(width, height), dpi=150, layout="constrained")


def _draw(axes: Any, users: Sequence[int], lines: Lines, colours: dict[str, Any]) -> None:
    axes.set(xscale="log", yscale="log", xlabel="users")
    ends = {}
    for name, line in lines.items():
        points = [(n, value) for n, value in zip(users, line, strict=True) if value is not None]
        drawn = axes.plot(*zip(*points, strict=True), linewidth=2, label=name, color=colours.get(name))[0]
        colours[name] = drawn.get_color()
        ends[name] = points[-1]
    _name_lines(axes, ends, colours)
    tidy(axes)


def _name_lines(axes: Any, ends: Mapping[str, tuple[float, float]], colours: Mapping[str, Any]) -> None:
    """Each line's name at its right end, moved up where it would cover the one below."""
    low, high = (math.log(limit) for limit in axes.get_ylim())
    height = -math.inf
    for name, (x, y) in sorted(ends.items(), key=lambda end: end[1][1]):
        height = max(math.log(y), height + _NAME_HEIGHT * (high - low))
        axes.annotate(
            name,
            (x, math.exp(height)),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=colours[name],
            fontsize=9,
        )


def tidy(axes: Any, *, grid: bool = True) -> None:
    """No frame above and to the right, and a faint grid."""
    if grid:
        axes.grid(True, which="major", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def check_picture_path(path: Path) -> None:
    """Refuse a name that no picture can be written to, before any work is done."""
    if path.suffix.lower() not in (".png", ".svg"):
        raise ParameterError("picture", str(path), "must end in .png or .svg", "name a picture")
    if not path.absolute().parent.is_dir():
        raise ParameterError("picture", str(path), "must be in a directory that exists", "create it, or name another")


def save_figure(figure: Any, path: Path) -> None:
    """Write the picture, whole or not at all."""
    check_picture_path(path)
    kind = path.suffix.lower().lstrip(".")
    with whole_file(path) as file, warnings.catch_warnings():
        # A letter that the font has not is drawn as a box: a warning a letter on the screen would help nobody.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(file, format=kind, metadata={"Date": None} if kind == "svg" else None)
