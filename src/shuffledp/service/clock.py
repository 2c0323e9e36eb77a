"""The time, from outside: servers ask a clock, and tests have one that they set."""

import time
from typing import Protocol


class Clock(Protocol):
    """Seconds since the epoch."""

    def now(self) -> float:
        """The time."""
        ...


class SystemClock:
    """The machine's own."""

    def now(self) -> float:
        """The time."""
        return time.time()
