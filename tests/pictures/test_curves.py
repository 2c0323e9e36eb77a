import sys

import pytest

from shuffledp.errors import ParameterError
from shuffledp.pictures.curves import draw_error_curves

LINES = {"local": [10.0, 30.0, 90.0], "shares": [1.36, 1.36, 1.36]}


@pytest.mark.parametrize(("suffix", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_a_picture_is_written(tmp_path, suffix: str, begins: bytes) -> None:
    file = tmp_path / f"errors.{suffix}"
    draw_error_curves([100, 1000, 10_000], LINES, "Errors", file)
    assert file.read_bytes().startswith(begins) and file.stat().st_size > 5000


def test_without_matplotlib_it_says_what_to_install(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ParameterError, match=r"shuffledp\[pictures\]"):
        draw_error_curves([1, 2], {"a": [1.0, 2.0]}, "t", tmp_path / "x.png")
