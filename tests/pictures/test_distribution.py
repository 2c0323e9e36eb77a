"""The picture of a distribution function."""

import numpy as np

from shuffledp.pictures.distribution import draw_distribution


def test_with_and_without_the_truth(tmp_path) -> None:
    values, shares = np.arange(100), np.linspace(0, 1, 100)
    for name, truth in (("with.png", shares), ("without.svg", None)):
        file = tmp_path / name
        draw_distribution(
            file,
            values=values,
            shares=shares,
            bound=0.05,
            confidence=0.95,
            title="made up",
            truth=truth,
            quantiles=[(0.5, 50.0, 45.0, 55.0)],
        )
        assert file.stat().st_size > 5_000
