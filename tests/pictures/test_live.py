"""Pictures of live runs: every name can be attributed to its line."""

from pathlib import Path

import numpy as np
import pytest

from shuffledp.pictures.curves import DrawnLine, new_figure
from shuffledp.pictures.live import draw_live, name_at_the_end


def test_every_name_leads_to_the_end_of_its_line(tmp_path: Path) -> None:
    """Three lines that end close together, one above the picture, and a level: names lie apart, lines lead home."""
    axes = new_figure(tmp_path / "x.png", width=8).subplots()
    axes.set_xlim(0, 10)
    axes.set_ylim(0, 1)
    ends = {"a": (10.0, 0.50), "b": (10.0, 0.51), "c": (6.0, 0.52), "high": (10.0, 7.0), "level": (10.0, 0.1)}
    name_at_the_end(axes, [(name, f"C{place}", end, name == "a") for place, (name, end) in enumerate(ends.items())])
    drawn = {each.get_text(): each for each in axes.texts}
    assert drawn.keys() == ends.keys()
    for place, (name, (x, y)) in enumerate(ends.items()):
        label = drawn[name]
        assert label.xy == (x, min(y, 1.0)) and label.xycoords == "data" and label.arrow_patch is not None
        assert label.get_color() == f"C{place}" == label.arrowprops["color"]
    heights = sorted(each.xyann[1] for each in drawn.values())
    assert (
        min(np.diff(heights)) >= 0.05 - 1e-9 and [each.get_fontweight() for each in drawn.values()].count("bold") == 1
    )


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_a_picture_is_drawn(tmp_path: Path, suffix: str) -> None:
    x = np.arange(5)
    live = DrawnLine(name="live", x=x, y=x / 5)
    other = DrawnLine(name="other", x=x, y=x / 5 + 0.01, colour="red")
    words = {"against": "rounds", "measures": "loss", "title": "A title", "subtitle": "below it"}
    draw_live(tmp_path / f"live{suffix}", live, [other], level=(0.5, "guessing"), **words)
    assert (tmp_path / f"live{suffix}").stat().st_size > 1000
