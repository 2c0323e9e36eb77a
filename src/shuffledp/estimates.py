"""An answer that knows its error."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A value with its standard error and a proved bound: never a bare float.

    `bound` holds with probability `confidence` over the protocol's own noise, whatever the data;
    `dropped` counts malformed messages that were left out (the bound is widened by them);
    `simulated` says that the noise came from a seeded source and protects nobody.

    >>> print(Estimate(value=312.0, standard_error=1.357, bound=3.0, confidence=0.95))
    312.0 ± 1.36 (within 3 with 95% confidence)
    """

    value: float
    standard_error: float
    bound: float
    confidence: float
    dropped: int = 0
    simulated: bool = False

    @property
    def lower(self) -> float:
        """The value less the bound."""
        return self.value - self.bound

    @property
    def upper(self) -> float:
        """The value plus the bound."""
        return self.value + self.bound

    def __str__(self) -> str:
        notes = [f"within {self.bound:,.4g} with {self.confidence:.0%} confidence"]
        if self.dropped:
            notes.append(f"{self.dropped} malformed messages dropped")
        if self.simulated:
            notes.append("a simulation: seeded bits protect nobody")
        # One digit below the standard error's first.
        digits = max(0, 1 - math.floor(math.log10(self.standard_error))) if self.standard_error > 0 else 0
        return f"{self.value:,.{digits}f} ± {self.standard_error:.3g} ({'; '.join(notes)})"
