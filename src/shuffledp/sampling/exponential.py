"""Comparing a uniform number with 2^k e^-z for rational z, exactly: integers that enclose the exponential."""

from fractions import Fraction

from shuffledp.randomness import RandomBits

# Binary digits by which the enclosure is finer than the uniform number that it is compared with.
_GUARD = 64


def enclose_exponential(exponent: Fraction, precision: int) -> tuple[int, int]:
    """Whole numbers low <= 2^precision e^exponent <= high, for a rational exponent >= 0.

    The exponent is halved until it is at most 1/2; there the series' terms fall by 4 or more a step once the first is
    taken, so that all left out are together less than the last one. Then it is squared as often as it was halved. All
    that bounds from below is rounded down, all that bounds from above up, so the enclosure holds for any precision.

    >>> low, high = enclose_exponential(Fraction(1), 40)
    >>> low / 2**40 <= 2.718281828459045 <= high / 2**40, high - low < 1000
    (True, True)
    """
    halvings = int(exponent).bit_length() + 1
    small_low = (exponent.numerator << precision) // (exponent.denominator << halvings)
    small_high = small_low + 1
    low = high = term_low = term_high = 1 << precision
    step = 0
    while term_low:
        step += 1
        term_low = (term_low * small_low >> precision) // step
        term_high = ((term_high * small_high >> precision) + 1) // step + 1
        low += term_low
        high += term_high
    high += term_high
    for _ in range(halvings):
        low = low * low >> precision
        high = (high * high >> precision) + 1
    return low, high


def _enclose_probability(power: int, exponent: Fraction, length: int) -> tuple[int, int]:
    """Whole numbers low <= 2^(length + power) e^-exponent <= high."""
    if exponent == 0 and length + power >= 0:
        return 1 << (length + power), 1 << (length + power)
    if exponent >= 0 and length + power <= int(exponent):  # e > 2, so it is at most 1 and need not be computed
        return 0, 1
    precision = length + _GUARD + 2 * abs(int(exponent)).bit_length()
    low, high = enclose_exponential(abs(exponent), precision)
    if exponent > 0:
        scaled = 1 << (length + power + precision)
        return scaled // high, scaled // low + 1
    scale = length + power - precision
    return (low << scale, high << scale) if scale >= 0 else (low >> -scale, (high >> -scale) + 1)


def uniform_is_below(power: int, exponent: Fraction, digits: int, length: int, *, bits: RandomBits) -> bool:
    """Whether a uniform number U on [0, 1) is below 2^power e^-exponent, exactly.

    U begins with the `length` binary digits of the whole number `digits`; more are drawn, 64 at a time, until U's
    interval lies on one side of the enclosure of e^-exponent, which gets finer with it. As e^-exponent is irrational
    unless the exponent is 0, where the enclosure is a point, this ends with probability 1.

    Args:
        power: Of 2, any whole number.
        exponent: Any rational number.
        digits: The first binary digits of U, as a whole number below 2^length.
        length: How many they are.
        bits: Where further digits come from.

    Returns:
        Whether U < 2^power e^-exponent.

    >>> uniform_is_below(0, Fraction(1), 0b0101110, 7, bits=RandomBits.seeded(0))  # e^-1 = 0.0101111000...
    True
    """
    while True:
        low, high = _enclose_probability(power, exponent, length)
        if digits < low:
            return True
        if digits >= high:
            return False
        digits = digits << 64 | int(bits.words(1)[0])
        length += 64
