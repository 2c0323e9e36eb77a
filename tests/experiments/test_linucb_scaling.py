"""How regret grows: the local model fastest, and bounds with the theory's slopes."""

import pytest

from shuffledp.errors import ParameterError
from shuffledp.experiments.linucb_scaling import THEORY, regret_growth


def test_slopes_fall_with_trust() -> None:
    rows, slopes = regret_growth(largest=10_000, instances=6)
    assert len(rows) == 9 and [slope.policy for slope in slopes] == list(THEORY)
    local, one, four = slopes
    assert local.regret.slope > one.regret.slope and local.regret.slope > four.regret.slope
    assert local.bound.slope > one.bound.slope > four.bound.slope
    for row in rows:
        assert row.regret_mean < row.bound
    for wrong in ({"largest": 100}, {"instances": 1}):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            regret_growth(**wrong)
