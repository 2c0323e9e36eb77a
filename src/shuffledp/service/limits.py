"""How much one token may ask of a server: requests a second, and requests under way at once."""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from shuffledp.errors import ParameterError
from shuffledp.service.problems import TOO_MANY, RefusedError


@dataclass
class Limits:
    """A budget of requests for each role's token, which fills up again as time goes by.

    The token for enrol is everybody's, so its limit is that of all devices together; what one address may do is for a
    proxy in front to say, as this server looks at no address.

    Attributes:
        per_second: requests a second of one token, on average; None for as many as come.
        at_once: requests of one token that are under way at the same time; None for as many as come.
        clock: seconds that only grow.

    >>> now = [0.0]
    >>> limits = Limits(per_second=2, clock=lambda: now[0])
    >>> for _ in range(3):
    ...     with limits.spent("enrol"):
    ...         pass
    Traceback (most recent call last):
        ...
    shuffledp.service.problems.RefusedError: this token may ask 2 times a second: wait a moment.
    >>> now[0] = 0.5
    >>> with limits.spent("enrol"):
    ...     pass
    """

    per_second: float | None = None
    at_once: int | None = None
    clock: Callable[[], float] = time.monotonic
    _left: dict[str, tuple[float, float]] = field(default_factory=dict, repr=False)
    _under_way: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int), repr=False)

    def __post_init__(self) -> None:
        if self.per_second is not None and not 0 < self.per_second < math.inf:
            raise ParameterError("max_rate", self.per_second, "must be requests a second > 0", "leave it out for any")
        if self.at_once is not None and self.at_once < 1:
            raise ParameterError("max_at_once", self.at_once, "must be 1 or more", "leave it out for any")

    @contextmanager
    def spent(self, role: str) -> Iterator[None]:
        """One request of this role's token.

        Raises:
            RefusedError: too many came in this second, or are under way.
        """
        if self.per_second is not None:
            self._take(role, self.per_second)
        if self.at_once is not None and self._under_way[role] >= self.at_once:
            words = f"{self.at_once} requests of this token are under way: wait until one is answered."
            raise RefusedError(TOO_MANY, words, retry_after=1)
        self._under_way[role] += 1
        try:
            yield
        finally:
            self._under_way[role] -= 1

    def _take(self, role: str, rate: float) -> None:
        """A bucket of a second's requests, one at least, that fills up at the rate."""
        most, now = max(1.0, rate), self.clock()
        left, since = self._left.get(role, (most, now))
        left = min(most, left + (now - since) * rate)
        if left < 1:
            wait = max(1, math.ceil((1 - left) / rate))
            self._left[role] = (left, now)
            raise RefusedError(
                TOO_MANY, f"this token may ask {rate:g} times a second: wait a moment.", retry_after=wait
            )
        self._left[role] = (left - 1, now)
