import sys

import pytest

from shuffledp.errors import ParameterError
from shuffledp.pictures.curves import DrawnLine, draw_lines

LINES = [
    DrawnLine(name="local", x=[100, 1000, 10_000], y=[10.0, 30.0, 90.0], theory=0.5),
    DrawnLine(name="shares", x=[100, 1000, 10_000], y=[1.36, 1.36, 1.36], bounds=[3.0, 3.0, 3.0]),
]


@pytest.mark.parametrize(("suffix", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_a_picture_is_written(tmp_path, suffix: str, begins: bytes) -> None:
    file = tmp_path / f"errors.{suffix}"
    draw_lines(file, [{"Errors": LINES}], against="users", measures="error")
    assert file.read_bytes().startswith(begins) and file.stat().st_size > 5000


def test_without_matplotlib_it_says_what_to_install(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ParameterError, match=r"shuffledp\[pictures\]"):
        draw_lines(tmp_path / "x.png", [{"Errors": LINES}], against="users", measures="error")
