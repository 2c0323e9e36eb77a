"""Discrete Gaussians: every proposal's probability by itself, then the draws, by floating point and whole numbers."""

import math
import tracemalloc
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import special

from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.sampling import discrete_gaussian
from shuffledp.sampling.discrete_gaussian import (
    _MARGIN,
    LARGEST_VARIANCE,
    _acceptance,
    _decide,
    _fill,
    _log2_width,
    _propose,
    _scaled_acceptance,
    sample_discrete_gaussian,
)
from shuffledp.testing.statistics import assert_deviation, assert_law, assert_mean, assert_not_law

# On both sides of every power of two, where the width changes, and of where the offset stops growing.
VARIANCES = [
    1.0,
    1.3,
    math.nextafter(2.0, 0),
    2.0,
    2.9,
    3.0,
    4.0,
    math.nextafter(8.0, 0),
    8.0,
    100.7,
    1e12 / 7,
    2.0**100,
]
SMALL = [variance for variance in VARIANCES if variance < 200]


def masses(variance: float, reach: int) -> np.ndarray:
    weights = np.exp(-(np.arange(-reach, reach + 1, dtype=np.float64) ** 2) / (2 * variance))
    return weights / weights.sum()


def probability(power: int, exponent: Fraction) -> mpmath.mpf:
    return mpmath.ldexp(mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator), power)


def proposals(variance: float, longest: int) -> list[tuple[int, int, int]]:
    """c, r and the width: all r of a narrow width, the ends of a wide one."""
    width = 1 << int(_log2_width(variance))
    places = range(width) if width < 64 else (0, 1, width // 3, width - 1)
    return [(count, place, width) for count in range(longest) for place in places]


@pytest.mark.parametrize("variance", VARIANCES)
def test_no_proposal_has_a_probability_above_1(variance: float) -> None:
    with mpmath.workdps(60):
        for count, place, width in proposals(variance, 60):
            assert probability(*_acceptance(count, count * width + place, width, variance)) <= 1


@pytest.mark.parametrize("variance", VARIANCES)
def test_proposed_and_accepted_has_the_exact_law(variance: float) -> None:
    """P[c] P[r] P[sign] p over e^(-x^2/2v) is one number for all x, in rational numbers: no tolerance."""
    constants = set()
    for count, place, width in proposals(variance, 60):
        size = count * width + place
        power, exponent = _acceptance(count, size, width, variance)
        # 2^-(c+1) / (2 width) 2^power e^-exponent = 2^(power - c - 2) / width  e^(x^2/2v - exponent)  e^(-x^2/2v)
        constants.add((power - count, size**2 / (2 * Fraction(variance)) - exponent, width))
    assert len(constants) == 1
    # Accepted in all: the constant times the sum of the weights, which is near sqrt(2 pi v) and takes 0 once.
    ((power, offset, width),) = constants
    accepted = 2.0 ** (power - 2) / width * math.exp(offset) * math.sqrt(2 * math.pi * variance)
    assert 0.43 < accepted < 0.58


@pytest.mark.parametrize("variance", VARIANCES)
def test_floating_point_is_as_good_as_the_proof_says(variance: float) -> None:
    """Within 2^-40 of every proposal's probability: the margin is 256 times that."""
    width = 1 << int(_log2_width(variance))
    places = RandomBits.seeded(1).words(300) % np.uint64(width)
    counts = np.arange(300) % 13
    sizes = counts * width + places.astype(np.int64)
    scales = 2.0 ** (counts + 31)
    computed = _scaled_acceptance(scales, sizes, _log2_width(variance), np.asarray(variance)) / 2.0**32
    with mpmath.workdps(40):
        for count, size, value in zip(counts.tolist(), sizes.tolist(), computed.tolist(), strict=True):
            assert abs(value - probability(*_acceptance(count, size, width, variance))) < 2.0**-40 <= _MARGIN / 256


class ScriptedBits(RandomBits):
    """Bits that are given words, first digits and further words."""

    def __init__(self, words: list[int], digits: list[int], further: tuple[int, ...] = ()) -> None:
        super().__init__(bytes(32))
        self.first, self.digits, self.further = words, digits, list(further)

    def fill(self, out) -> None:
        if out.dtype == np.uint32:
            out[...] = self.digits
        elif self.first:
            out[...], self.first = self.first, []
        else:
            out[...] = self.further.pop(0)


def word(count: int, place: int, negative: int) -> int:
    """A word that proposes so: any higher bits of r and any bits behind the first one of c change nothing."""
    return (1 << 51 + count | place | negative << 50 | 1 << 49) & (1 << 64) - 1


@pytest.mark.parametrize("exactly", [False, True])
@pytest.mark.parametrize("variance", [*SMALL, 1e12 / 7])
def test_every_proposal_is_decided_where_it_should_be(variance: float, exactly: bool) -> None:
    """For all c, r and signs: U three units of 2^-32 below p is accepted, three above refused; minus zero always."""
    words, digits, expected = [], [], []
    with mpmath.workdps(40):
        for count, place, width in proposals(variance, 13):
            size = count * width + place
            weight = mpmath.exp(-(mpmath.mpf(size) ** 2) / (2 * mpmath.mpf(variance)))
            offset = min(mpmath.mpf(width) ** 2 / (2 * mpmath.mpf(variance)), mpmath.mpf(11) / 16)
            threshold = int(mpmath.ldexp(mpmath.exp(offset) * weight, 31 + count))
            for negative in (0, 1):
                for distance in (-3, 3):
                    if 0 <= threshold + distance < 1 << 32:
                        words.append(word(count, place, negative))
                        digits.append(threshold + distance)
                        allowed = distance < 0 and (size or not negative)
                        expected.append((-size if negative else size) if allowed else None)
    bits = ScriptedBits(words, digits)
    values, accepted = _propose(np.asarray(variance), len(words), margin=1.0 if exactly else _MARGIN, bits=bits)
    drawn = [int(value) if yes else None for value, yes in zip(values, accepted, strict=True)]
    assert drawn == expected and {None, 1, -1} <= set(drawn)


def test_floating_point_decides_only_what_is_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where U's digits are p's own, or one more, whole numbers are asked; by 2^32 times a margin more, they are not."""
    asked = []
    monkeypatch.setattr(discrete_gaussian, "_decide", lambda *of, bits: asked.append(of[1]))
    variance = 7.3
    with mpmath.workdps(40):
        near = int(mpmath.ldexp(probability(*_acceptance(1, 3, 2, variance)), 32))
    digits = [near + distance for distance in range(-1200, 1201)]
    bits = ScriptedBits([word(1, 1, 0)] * len(digits), digits)
    _propose(np.asarray(variance), len(digits), margin=1000 / 2**32, bits=bits)
    # (near - 1, near + 1) encloses p: asked are at least all within the margin of it, and 2 more at most.
    assert {near + distance for distance in range(-999, 1001)} <= set(asked)
    assert len(asked) <= 2003


@pytest.mark.parametrize("variance", VARIANCES)
def test_a_run_that_ends_its_word_is_accepted_only_where_all_digits_are_0(variance: float) -> None:
    """Of c >= 13, p is below 2^-47: refused for certain if U has a digit, and left to whole numbers if it has none."""
    width = 1 << int(_log2_width(variance))
    with mpmath.workdps(60):
        for count in range(13, 60):
            assert probability(*_acceptance(count, count * width, width, variance)) < mpmath.mpf(2) ** -47
    asked = ScriptedBits([0, 0], [1, 0], (1, *[1 << 63] * 3))
    accepted = _propose(np.asarray(variance), 2, margin=_MARGIN, bits=asked)[1]
    # One further word ended the run of the second; U's next digits refused it, or its exponent alone did.
    assert not accepted.any() and len(asked.further) < 4


def test_long_runs_of_zeros_are_counted_to_their_end() -> None:
    """13 zeros end a word: c goes on in further words, and U, all of whose digits are 0, is below any p."""
    width, further = 1 << int(_log2_width(100.0)), [0, 1 << 7]
    value = _decide(5, 0, 100.0, bits=ScriptedBits([], [], (*further, *[0] * 200)))
    assert value == (13 + 64 + 7) * width + 5
    assert _decide(5, 1, 100.0, bits=ScriptedBits([], [], tuple(further))) is None
    values, accepted = _propose(
        np.asarray(100.0), 2, margin=_MARGIN, bits=ScriptedBits([5, 1 << 50], [0, 0], (1, 0, 2, *[0] * 4))
    )
    assert accepted.all() and values.tolist() == [13 * width + 5, -14 * width]


def test_a_value_that_no_64_bits_hold_is_never_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discrete_gaussian, "uniform_is_below", lambda *of, bits: True)
    with pytest.raises(OverflowError):
        sample_discrete_gaussian(LARGEST_VARIANCE, 1, bits=ScriptedBits([3], [0], (*[0] * 200, 1)))


@pytest.mark.parametrize("margin", [1.0, 0.1])
def test_whole_numbers_and_floating_point_draw_the_same(margin: float) -> None:
    """All, or most, of the decisions are made in whole numbers: from the same bits, the same draws."""
    variances = np.tile(VARIANCES, 400)
    quick, slow = (np.empty(variances.size, dtype=np.int64) for _ in range(2))
    _fill(quick, variances, margin=_MARGIN, block=3000, bits=RandomBits.seeded(5))
    _fill(slow, variances, margin=margin, block=3000, bits=RandomBits.seeded(5))
    assert (quick == slow).all()


def test_whole_numbers_alone_have_the_law() -> None:
    drawn = np.empty(5_000, dtype=np.int64)
    _fill(drawn, np.asarray(2.9), margin=1.0, block=4096, bits=RandomBits.seeded(1))
    assert_law(drawn, -30, masses(2.9, 30), false_alarm=1e-9)
    assert_not_law(drawn, -30, masses(0.8 * 2.9, 30), false_alarm=1e-9)


@pytest.mark.parametrize("variance", SMALL)
def test_draws_have_the_law_and_a_tenth_less_variance_is_caught(variance: float) -> None:
    reach = int(12 * variance**0.5) + 3
    drawn = sample_discrete_gaussian(variance, 200_000, bits=RandomBits.seeded(1))
    assert_law(drawn, -reach, masses(variance, reach), false_alarm=1e-9)
    wrong = sample_discrete_gaussian(max(1.0, 0.9 * variance), 200_000, bits=RandomBits.seeded(1))
    if variance > 1:
        assert_not_law(wrong, -reach, masses(variance, reach), false_alarm=1e-9)
    assert_not_law(drawn, -reach, masses(0.9 * variance, reach), false_alarm=1e-9)


@pytest.mark.parametrize("deviation", [1e3, 1e6, 2.0**40, 2.0**50])
def test_wide_noise_has_its_moments_its_shape_and_all_its_digits(deviation: float) -> None:
    drawn = sample_discrete_gaussian(deviation**2, 200_000, bits=RandomBits.seeded(1))
    assert_mean(drawn, 0.0, deviation, false_alarm=1e-9)
    assert_deviation(drawn, deviation, false_alarm=1e-9)
    with pytest.raises(AssertionError):
        assert_deviation(drawn, 0.9**0.5 * deviation, false_alarm=1e-9)
    # In cells of an eighth of a deviation; sums over whole numbers are integrals up to 1e-7 here.
    cell = int(deviation / 8)
    edges = (np.arange(-80, 81) * cell - 0.5) / deviation
    assert_law(drawn // cell, -80, np.diff(special.ndtr(edges)), false_alarm=1e-9)
    assert_law(drawn % 32, 0, np.full(32, 1 / 32), false_alarm=1e-9)


def test_every_draw_has_its_own_variance() -> None:
    variances = np.array([[1.0, 1e12, 7.3], [7.3, 1.0, 1e12]])
    drawn = sample_discrete_gaussian(np.tile(variances, (50_000, 1)), bits=RandomBits.seeded(1))
    assert drawn.shape == (100_000, 3) and drawn.dtype == np.int64
    drawn = drawn.reshape(-1, 2, 3)
    for row in range(2):
        for column in range(3):
            here, variance = drawn[:, row, column], variances[row, column]
            if variance < 100:
                assert_law(here, -40, masses(variance, 40), false_alarm=1e-9)
            else:
                assert_deviation(here, variance**0.5, false_alarm=1e-9)
    # Neighbours in an array are independent: their products have mean 0.
    assert_mean(drawn[:, 0, 0] * drawn[:, 1, 1], 0.0, 1.0, false_alarm=1e-9)


@pytest.mark.parametrize("block", [1, 7, 1000])
def test_blocks_of_any_size_fill_every_place(block: int) -> None:
    drawn = np.full(1501, 1 << 62, dtype=np.int64)
    _fill(drawn, np.asarray(7.3), margin=_MARGIN, block=block, bits=RandomBits.seeded(1))
    assert_law(drawn, -40, masses(7.3, 40), false_alarm=1e-9)


def test_memory_does_not_grow_with_the_number_of_draws() -> None:
    variances = np.full(1_000_000, 1e6)
    tracemalloc.start()
    drawn = sample_discrete_gaussian(variances, bits=RandomBits.seeded(1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The answer, the check of the variances (a byte or two each), and blocks.
    assert peak < drawn.nbytes + 3 * variances.size + 4_000_000


def test_shapes() -> None:
    bits = RandomBits.seeded(1)
    assert sample_discrete_gaussian(5.0, (2, 3), bits=bits).shape == (2, 3)
    assert sample_discrete_gaussian(5.0, 0, bits=bits).shape == (0,)
    assert sample_discrete_gaussian(5.0, bits=bits).shape == ()
    assert sample_discrete_gaussian(np.full((3, 4), 5.0).T, bits=bits).shape == (4, 3)
    assert sample_discrete_gaussian(np.full(4, 5.0), 4, bits=bits).shape == (4,)


@pytest.mark.parametrize(
    "variances", [0.0, -1.0, math.nextafter(1.0, 0), math.nan, math.inf, math.nextafter(2.0**100, math.inf), [4.0, 0.5]]
)
def test_variances_out_of_range_are_named(variances) -> None:
    with pytest.raises(ParameterError, match=r"variances must lie in 1\.\.2\^100, got"):
        sample_discrete_gaussian(np.asarray(variances), bits=RandomBits.seeded(1))


@pytest.mark.parametrize(("variances", "shape"), [(4.0, -1), (4.0, 1.5), (4.0, (2, -1)), ([4.0, 5.0], 3), ([4.0], ())])
def test_shapes_that_do_not_fit_are_named(variances, shape) -> None:
    with pytest.raises(ParameterError, match="shape must be"):
        sample_discrete_gaussian(np.asarray(variances), shape, bits=RandomBits.seeded(1))
