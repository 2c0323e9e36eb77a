import math

import pytest

from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, -math.inf, 101, "1", None, True])
def test_epsilon_out_of_range_is_named(epsilon) -> None:
    with pytest.raises(ParameterError) as caught:
        Privacy(epsilon, 1e-6)
    assert caught.value.parameter == "epsilon"
    assert str(caught.value).startswith("epsilon must") and str(caught.value).endswith(".")


@pytest.mark.parametrize("delta", [0, 1, -1e-9, 2, math.nan, math.inf, "x", None, False])
def test_delta_out_of_range_is_named(delta) -> None:
    with pytest.raises(ParameterError) as caught:
        Privacy(1, delta)
    assert caught.value.parameter == "delta"


def test_privacy_is_frozen_data() -> None:
    assert Privacy(1, 1e-6) == Privacy(1.0, 1e-6)
    with pytest.raises(AttributeError):
        Privacy(1, 1e-6).epsilon = 2  # type: ignore[misc]
