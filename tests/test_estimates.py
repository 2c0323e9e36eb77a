from shuffledp.estimates import Estimate


def test_an_estimate_shows_its_error() -> None:
    estimate = Estimate(value=1234.567, standard_error=5.83, bound=12, confidence=0.95, dropped=2, simulated=True)
    assert str(estimate) == (
        "1,234.6 ± 5.83 (within 12 with 95% confidence; 2 malformed messages dropped; "
        "a simulation: seeded bits protect nobody)"
    )
    assert (estimate.lower, estimate.upper) == (1222.567, 1246.567)


def test_digits_follow_the_error() -> None:
    assert str(Estimate(value=1e6 + 0.4, standard_error=120, bound=1, confidence=0.9)).startswith("1,000,000 ± 120")
    assert str(Estimate(value=0.123456, standard_error=0.01, bound=1, confidence=0.9)).startswith("0.123 ± 0.01")
