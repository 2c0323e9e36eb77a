"""What experiments that can be gone on with share: rows beside the picture, and how many processes work."""

import os
from pathlib import Path
from typing import TypedDict


class Going(TypedDict):
    """How an experiment runs."""

    workers: int
    cache: Path | None


def going_on(picture: Path | None) -> Going:
    """With a picture, which must be one that can be drawn, rows are kept beside it: a second run goes on.

    >>> going_on(None)["cache"] is None, going_on(Path("a.png"))["cache"]
    (True, PosixPath('a.png.rows.json'))
    """
    if picture is not None:
        from shuffledp.pictures.slopes import check_picture

        check_picture(picture)
    cache = None if picture is None else picture.with_name(picture.name + ".rows.json")
    return Going(workers=min(os.cpu_count() or 1, 8), cache=cache)
