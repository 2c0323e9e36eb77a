"""Union bounds over many Gaussians: the sum of their tails, however many there are."""

import numpy as np
import pytest
from scipy import special, stats

from shuffledp.accounting import unions
from shuffledp.accounting.unions import gaussian_union


@pytest.mark.parametrize("failure", [0.05, 1e-6])
@pytest.mark.parametrize(
    "deviations", [np.ones(1), np.ones(500), np.geomspace(0.01, 3, 400), np.array([1.0] + [0.4999] * 100_000)]
)
def test_a_union_is_the_sum_of_tails(deviations: np.ndarray, failure: float) -> None:
    bound = gaussian_union(deviations, failure)
    assert 2 * stats.norm.sf(bound / deviations).sum() <= failure
    assert 2 * stats.norm.sf(0.999 * bound / deviations).sum() > failure


# All but the largest lie just below the upper edge of one bin, then just above the lower one.
ONE_BIN = [np.append(1.0, np.full(9_000, 0.5 + (5_000 + inside) * 0.5 / unions._BINS)) for inside in (0.99, 0.01)]


@pytest.mark.parametrize(
    "deviations",
    [np.linspace(0.3, 1.0, 20_000), np.full(9_000, 2.0), np.geomspace(0.01, 7.0, 50_000), *ONE_BIN],
)
def test_bins_decide_as_the_sum_of_all_tails_does(deviations: np.ndarray) -> None:
    """The same bits as a search that adds up every tail in every step."""
    largest = float(deviations.max())
    tried = deviations[deviations > 0.5 * largest]
    for failure in np.geomspace(1e-9, 0.05, 12).tolist():
        low, high = (largest * -float(special.ndtri(each)) for each in (failure / 2, failure / 4 / deviations.size))
        while high - low > 1e-4 * high:
            middle = (low + high) / 2
            rest = (deviations.size - tried.size) * float(special.ndtr(-middle / (0.5 * largest)))
            passed = 2 * (float(special.ndtr(-middle / tried).sum()) + rest)
            low, high = (low, middle) if passed <= failure else (middle, high)
        assert gaussian_union(deviations, failure) == high


def test_stretches_of_deviations_give_one_union(monkeypatch: pytest.MonkeyPatch) -> None:
    """Millions are looked at in stretches: as if they were one."""
    deviations = np.linspace(0.3, 1.0, 20_000) ** 2
    whole = gaussian_union(deviations, 1e-3)
    monkeypatch.setattr(unions, "_TOGETHER", 777)
    assert gaussian_union(deviations, 1e-3) == whole
