"""Tails of sums of wide noise in blocks: against the law of every value, and against Gaussians, which such sums are."""

import math

import numpy as np
import pytest
from scipy import fft, special

from shuffledp.accounting.differences import Skellam
from shuffledp.accounting.laws import DiscreteLaplace
from shuffledp.continual import bounds
from shuffledp.continual.block_tails import BlockTails, whole_power
from shuffledp.continual.bounds import _error, _masses, _rounding, _value_tails, sum_tails

LAWS = [DiscreteLaplace(0.99), Skellam(900.0)]


def spectrum_of(masses: np.ndarray) -> np.ndarray:
    return fft.rfft(masses / masses.sum()).real


@pytest.mark.parametrize("law", LAWS, ids=["laplace", "skellam"])
@pytest.mark.parametrize("stride", [2, 5, 16])
def test_blocks_add_up_what_single_values_have(law, stride: int) -> None:
    reach = 14_000
    size = stride * fft.next_fast_len(-(-(2 * reach + 1) // stride), real=True)
    masses = _masses(law, size, 1)
    spectrum = spectrum_of(masses)
    blocks = BlockTails.of(spectrum, size, stride, _rounding(size))
    first = math.ceil(blocks.least_count)
    assert first < 60
    for count in (first, first + 1, 3 * first, 200):
        found, error = blocks.tails(count, reach)
        values = _value_tails(masses, spectrum, count, reach, stride)
        claimed = error + _error(spectrum, count, size)
        assert claimed < 1e-9
        assert np.abs(found[: values.size] - values[: found.size]).max() < claimed
        # Single values make the smaller error: both sides of a sum are looked at, and not one twice.
        assert error >= _error(spectrum, count, size)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 7])
def test_masses_are_those_of_the_nearest_multiples_and_halves_go_both_ways(width: int) -> None:
    law, size = Skellam(40.0), 2000
    masses = _masses(law, size, width)
    exact = np.zeros(size)
    for value in range(-300, 301):
        mass = math.exp(float(law.log_pmf(np.array([value + law.mean]))[0]))
        for nearest in (math.ceil(value / width - 0.5), math.floor(value / width + 0.5)):
            exact[nearest % size] += mass / 2
    assert np.abs(masses - exact).max() < 1e-15
    assert np.abs(masses[1:] - masses[:0:-1]).max() < 1e-16


def test_a_spectrum_of_noise_on_an_even_width_is_narrow() -> None:
    """Halves that all go to even multiples would leave half of the spectrum at its end."""
    spectrum = spectrum_of(_masses(DiscreteLaplace(0.999), 1 << 15, 2))
    assert abs(spectrum[-1]) < 1e-4


def test_tails_of_wide_noise_are_upper_bounds_and_near() -> None:
    """Sums of wide Skellam noise are Gaussian but for parts per million."""
    variance, most = 4e8, 500
    tails = sum_tails(Skellam(variance), most)
    assert tails.stride > tails.width > 1
    for column in (0, tails.counts.size // 2, tails.counts.size - 1):
        count = int(tails.counts[column])
        for row in range(0, len(tails.tails), 2000):
            exact = 2 * special.ndtr(-tails.bound(row, count) / math.sqrt(count * variance))
            shown = float(tails.tails[row, column])
            assert shown >= exact * (1 - 1e-4)
            moved = max(0.0, row * tails.stride - count * tails.width / 2 - tails.stride)
            assert shown <= 2 * special.ndtr(-moved / math.sqrt(count * variance)) * (1 + 1e-4) + 1e-9


def test_sums_of_few_noises_are_bounded_with_those_of_more() -> None:
    tails = sum_tails(DiscreteLaplace(0.9995), 300)
    assert 1 < tails.counts[0] < 40 and tails.counts[-1] == 300
    assert tails.groups(3) == 1


def test_no_long_transform_is_made_for_each_number_of_summands(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def counted(spectrum: np.ndarray, size: int) -> np.ndarray:
        sizes.append(size)
        return np.fft.irfft(spectrum, size)

    for module in (bounds, __import__("shuffledp.continual.block_tails", fromlist=["fft"])):
        monkeypatch.setattr(module.fft, "irfft", counted)
    sum_tails.__wrapped__(DiscreteLaplace(0.9995), 301)
    assert len(sizes) > 50 and max(sizes) < 1 << 17


@pytest.mark.parametrize("count", [0, 1, 2, 3, 8, 9, 20, 21])
def test_whole_powers_keep_their_signs(count: int) -> None:
    numbers = np.array([-0.9, -1e-5, 0.0, 0.3, 1.0])
    assert np.abs(whole_power(numbers, count) - numbers.astype(np.longdouble) ** count).max() < 1e-15
