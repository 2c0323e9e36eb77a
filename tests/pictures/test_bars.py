from pathlib import Path

import numpy as np
import pytest

from shuffledp.errors import ParameterError
from shuffledp.pictures.bars import MOST_BARS, draw_bars

SHOWN = {"bound": 10.0, "confidence": 0.95, "title": "A private histogram"}


def texts(path: Path) -> str:
    """An SVG keeps what it says as comments, one a text."""
    return path.read_text()


@pytest.mark.parametrize(
    ("bins", "in_order"), [(2, False), (2, True), (MOST_BARS, False), (MOST_BARS + 1, False), (61, True), (9001, True)]
)
def test_any_number_of_categories_makes_a_picture(tmp_path: Path, bins: int, in_order: bool) -> None:
    path = tmp_path / "bars.svg"
    names = [f"name {code}" for code in range(bins)]
    estimates = np.arange(bins)[::-1] - 1.0
    draw_bars(path, names=names, estimates=estimates, truth=np.arange(bins)[::-1], in_order=in_order, **SHOWN)
    said = texts(path)
    assert "<!-- name 0 -->" in said and "<!-- truth -->" in said and "95% for all at once" in said
    if bins > MOST_BARS and not in_order:
        assert f"{bins - 40:,} more categories are not drawn" in said
    if bins <= MOST_BARS:
        assert all(f"<!-- {name} -->" in said for name in names)
    assert ("each point is the largest of 3 categories" in said) == (bins > 4000 and in_order)


def test_the_largest_is_at_the_top_and_long_names_lose_their_middle(tmp_path: Path) -> None:
    path = tmp_path / "bars.svg"
    long = "a" * 40 + " the end"
    draw_bars(path, names=["small", "large", long], estimates=np.array([3.0, 50.0, 20.0]), **SHOWN)
    said = texts(path)
    places = [said.index(f"<!-- {name} -->") for name in ("large", "a" * 19 + "…aaaa the end", "small")]
    assert places == sorted(places)


def test_nothing_is_written_under_a_bad_name(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="svg or"):
        draw_bars(tmp_path / "bars.txt", names=["a", "b"], estimates=np.array([1.0, 2.0]), **SHOWN)
    assert list(tmp_path.iterdir()) == []
