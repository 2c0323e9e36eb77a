import numpy as np
import pytest

from shuffledp.privacy import Privacy
from shuffledp.references.continual.square_root import best_curator_bound, curator_bounds

PRIVACY = Privacy(1, 1e-6)
ALONE = np.array([1])


def test_a_curator_of_several_coordinates() -> None:
    """Twice the length is twice the noise, and more coordinates are a union of as many."""
    one = curator_bounds(10**5, ALONE, PRIVACY, 0.95)
    long = curator_bounds(10**5, ALONE, PRIVACY, 0.95, sensitivity=2.0, reach=1.0)
    assert long == pytest.approx(2 * one)
    ten = curator_bounds(10**5, ALONE, PRIVACY, 0.95, coordinates=10)
    assert ten == pytest.approx(curator_bounds(10**5, ALONE, PRIVACY, 0.995))
    values = {"sensitivity": 2.0, "coordinates": 10, "reach": 1.0}
    best = best_curator_bound(10**5, PRIVACY, 0.95, **values)
    assert best == curator_bounds(10**5, np.arange(1, 400), PRIVACY, 0.95, **values).min()
