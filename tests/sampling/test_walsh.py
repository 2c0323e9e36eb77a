import numpy as np
import pytest
from scipy.linalg import hadamard

from shuffledp.sampling.walsh import walsh_hadamard


@pytest.mark.parametrize("length", [1, 2, 8, 64])
def test_the_transform_is_hadamards_matrix_and_its_own_inverse(length: int) -> None:
    values = np.random.default_rng(1).integers(-50, 50, size=(3, length))
    found = walsh_hadamard(values.copy())
    assert (found == values @ hadamard(length)).all()
    assert (walsh_hadamard(found.copy()) == length * values).all()
