"""Error against the number of users, one line a method."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from shuffledp.errors import ParameterError


def draw_error_curves(users: Sequence[int], errors: Mapping[str, Sequence[float]], title: str, path: Path) -> None:
    """Write a PNG or SVG of standard errors over numbers of users, both on logarithmic axes.

    Lines are named at their right end, in the order of `errors`; a method's name may carry its
    colour's role by being the same in two pictures.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ParameterError(
            "pictures", path, "need matplotlib", "install it with: pip install 'shuffledp[pictures]'"
        ) from None
    figure = Figure(figsize=(8, 4.6), dpi=150, layout="constrained")
    axes = figure.subplots()
    for name, line in errors.items():
        drawn = axes.plot(users, line, linewidth=2, label=name)[0]
        axes.annotate(
            name,
            (users[-1], line[-1]),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=drawn.get_color(),
            fontsize=9,
        )
    axes.set(xscale="log", yscale="log", xlabel="users", ylabel="standard error of the count", title=title)
    axes.grid(True, which="major", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
