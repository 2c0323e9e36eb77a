"""Names in any script, in every kind of picture and every format, without a warning."""

import warnings
from pathlib import Path

import numpy as np
import pytest

from shuffledp.pictures import lettering as module
from shuffledp.pictures.bars import draw_bars
from shuffledp.pictures.distribution import draw_distribution
from shuffledp.pictures.lettering import Letters, letters_for
from shuffledp.pictures.running import draw_running_count

NAMES = ["München", "北京", "القاهرة", "🎉", "🎉 Party", "東京", "Ελλάδα", "$x^2$"]


@pytest.fixture
def only_dejavu(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine without further fonts."""
    monkeypatch.setattr(module, "_others", lambda: iter(()))


def draw_all(folder: Path, ending: str, names: list[str], column: str) -> list[Path]:
    files = [folder / f"{kind}{ending}" for kind in ("bars", "profile", "distribution", "running")]
    values = np.arange(len(names), 0.0, -1)
    shown = {"bound": 2.0, "confidence": 0.95, "title": f"Of {column}", "column": column}
    draw_bars(files[0], names=names, estimates=values, **shown)
    draw_bars(
        files[1], names=[*names, *map(str, range(70))], estimates=np.arange(70.0 + len(names)), in_order=True, **shown
    )
    draw_distribution(files[2], values=np.arange(9), shares=np.linspace(0, 1, 9), quantiles=[(0.5, 4, 3, 5)], **shown)
    times = np.arange(0, 100, 10)
    draw_running_count(
        files[3], times=times, estimates=times[:, np.newaxis] * values, names=names, what="users", **shown
    )
    return files


@pytest.mark.parametrize("ending", [".png", ".svg", ".pdf"])
def test_every_picture_draws_every_script_without_a_warning(tmp_path: Path, only_dejavu: None, ending: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        files = draw_all(tmp_path, ending, NAMES, "城市")
    heads = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    assert all(file.read_bytes().startswith(heads[ending]) for file in files)


def test_an_svg_keeps_what_no_font_has_as_text(tmp_path: Path, only_dejavu: None) -> None:
    bars, _, distribution, running = (file.read_text("utf-8") for file in draw_all(tmp_path, ".svg", NAMES, "城市"))
    for name in ("München", "北京", "القاهرة", "🎉 Party", "$x^2$"):
        assert f">{name}</text>" in bars and f">{name}</text>" in running, name
    assert ">城市</text>" in bars and ">城市</text>" in distribution and "no font" not in bars


def test_axes_name_the_column_and_lines_are_in_a_legend(tmp_path: Path) -> None:
    said = [file.read_text("utf-8") for file in draw_all(tmp_path, ".svg", ["a", "b"], "Größe")]
    assert all("<!-- Größe -->" in text for text in said)
    assert all(f"<!-- {what} -->" in said[0] for what in ("users", "estimate that may be nothing but noise"))
    assert "<!-- quantile and its interval -->" in said[2]
    one = tmp_path / "one.svg"
    times = np.arange(0, 100, 10)
    shown = {"bound": 2.0, "confidence": 0.95, "title": "A count", "column": "clicked", "boundaries": [50]}
    draw_running_count(one, times=times, estimates=times, **shown)
    assert "<!-- count of clicked -->" in one.read_text() and "<!-- a large batch closes -->" in one.read_text()


def test_stand_ins_are_told_apart_and_explained() -> None:
    letters = Letters(("DejaVu Sans",), frozenset("北京東🎉"))
    labels = letters.labels(NAMES, range(1, 9))
    assert labels == ["München", "no. 2", "القاهرة", "no. 4", "□ Party", "no. 6", "Ελλάδα", r"\$x^2\$"]
    assert "places in the table" in letters.note(labels) and "□ stands" in letters.note(["□ Party"])
    assert letters.labels(["北 a", "京 a"], [1, 2]) == ["no. 1", "no. 2"]
    assert letters.word("北", "value") == letters.word(None, "value") == "value" and letters.word("x") == "x"
    assert Letters(("DejaVu Sans",), frozenset()).note() == ""


def test_a_font_that_has_the_letters_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    first = module._first_file()
    has = {first: frozenset(range(128)), "a.ttf": frozenset(), "b.ttf": frozenset({ord("北")}), "c.ttf": frozenset()}
    monkeypatch.setattr(module, "_letters_of", has.__getitem__)
    monkeypatch.setattr(module, "_others", lambda: iter([("A", "a.ttf"), ("B", "b.ttf"), ("C", "c.ttf")]))
    assert letters_for(["x", "北京\u200d\ufe0f"]) == Letters(("DejaVu Sans", "B"), frozenset("京"))
    assert letters_for(["x"]).fonts == ("DejaVu Sans",)


def test_a_file_that_is_no_font_has_no_letters(tmp_path: Path) -> None:
    broken = tmp_path / "broken.ttf"
    broken.write_bytes(b"no font")
    assert module._letters_of(str(broken)) == frozenset()
    assert all(family != "DejaVu Sans" and "Last Resort" not in family for family, _ in module._others())


@pytest.mark.parametrize("count", [1, 2, 200])
def test_one_name_and_many_make_a_picture(tmp_path: Path, count: int) -> None:
    file = tmp_path / "bars.pdf"
    draw_bars(file, names=[f"ü{n}" for n in range(count)], estimates=np.ones(count), bound=1, confidence=0.9, title="t")
    assert file.stat().st_size > 5000
