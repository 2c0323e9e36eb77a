"""What experiments share: numbers between commas, slopes as JSON, and rows beside a picture to go on with."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shuffledp.experiments.common import Slope


def going_on(picture: Path | None) -> dict[str, Any]:
    """With a picture, which must be one that can be drawn, rows are kept beside it: a second run goes on.

    >>> going_on(None)["cache"] is None, going_on(Path("a.png"))["cache"]
    (True, PosixPath('a.png.rows.json'))
    """
    if picture is not None:
        from shuffledp.pictures.slopes import check_picture

        check_picture(picture)
    cache = None if picture is None else picture.with_name(picture.name + ".rows.json")
    return {"workers": min(os.cpu_count() or 1, 8), "cache": cache}


def whole_numbers(text: str, parameter: str, example: str) -> list[int]:
    """The whole numbers between commas.

    >>> whole_numbers("1,2,3", "shufflers", "1,2")
    [1, 2, 3]
    """
    from shuffledp.errors import ParameterError

    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        problem = "must be whole numbers with commas between"
        raise ParameterError(parameter, text, problem, f"try {example}") from None


def slope_document(name: str, slope: "Slope") -> dict[str, float]:
    """A slope and its 95% interval, under names that begin so."""
    return {name: slope.slope, f"{name}_low": slope.low, f"{name}_high": slope.high}
