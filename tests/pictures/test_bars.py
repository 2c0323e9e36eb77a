from pathlib import Path
from typing import Any

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


@pytest.mark.parametrize("bars", [1, 2, 3, 5])
def test_few_bars_stand_in_the_middle(tmp_path: Path, bars: int, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr("shuffledp.pictures.bars.save_figure", lambda figure, path: drawn.append(figure))
    names, counts = [f"group {number}" for number in range(bars)], np.arange(bars) + 5.0
    draw_bars(tmp_path / "bars.png", names=names, estimates=counts, bound=1.0, confidence=0.95, title="groups")
    low, high = sorted(drawn[0].axes[0].get_ylim())
    assert low < 0 and high > bars - 1 and low + high == pytest.approx(bars - 1)
