import numpy as np
import pytest

from shuffledp.pictures.running import MOST_LINES, draw_running_count


@pytest.mark.parametrize("coordinates", [1, 3, 20])
@pytest.mark.parametrize("with_truth", [False, True])
def test_the_furthest_coordinates_are_drawn_and_named(tmp_path, coordinates: int, with_truth: bool) -> None:
    times = np.arange(0, 5001, 50)
    slopes = np.linspace(-1, 2, coordinates)
    truth = times[:, np.newaxis] * slopes
    names = [f"c{place}" for place in range(coordinates)]
    file = tmp_path / "sums.svg"
    draw_running_count(
        file,
        times=times,
        estimates=truth + 5,
        bound=20.0,
        confidence=0.9,
        title="Sums",
        truth=truth if with_truth else None,
        names=names,
    )
    text = file.read_text()
    drawn = [name for name in names if f"<!-- {name} -->" in text]
    wanted = sorted(np.argsort(-np.abs(truth[-1] + 5))[:MOST_LINES])
    assert drawn == [names[place] for place in wanted]
    assert ("<!-- truth -->" in text) == with_truth and "90% band" in text
