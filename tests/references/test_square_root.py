from dataclasses import replace

import numpy as np
import pytest

from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.references.continual.square_root import CuratorSquareRoot, best_curator

PRIVACY = Privacy(1, 1e-6)


def test_a_curator_of_several_coordinates() -> None:
    """Twice the length is twice the noise, and more coordinates are a union of as many."""
    one = CuratorSquareRoot(users=10**5, privacy=PRIVACY)
    long = CuratorSquareRoot(users=10**5, privacy=PRIVACY, sensitivity=2.0, reach=1.0)
    assert long.error_bound(0.95) == pytest.approx(2 * one.error_bound(0.95))
    ten = CuratorSquareRoot(users=10**5, privacy=PRIVACY, coordinates=10)
    assert ten.error_bound(0.95) == pytest.approx(one.error_bound(0.995))
    best = best_curator(10**5, PRIVACY, 0.95, sensitivity=2.0, coordinates=10, reach=1.0)
    assert best.error_bound(0.95) == min(replace(best, batch=batch).error_bound(0.95) for batch in range(1, 400))
    with pytest.raises(ParameterError, match="coordinates"):
        ten.run(np.ones(10**5), generator=np.random.default_rng(1))
