"""A clock that stands still until a test moves it, forwards or back."""


class MockClock:
    """The time that a test says it is.

    >>> clock = MockClock(100.0)
    >>> clock.move(-5)
    >>> clock.now()
    95.0
    """

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._now = start

    def now(self) -> float:
        """The time."""
        return self._now

    def move(self, seconds: float) -> None:
        """Let time pass, or set the clock back as a time server may."""
        self._now += seconds
