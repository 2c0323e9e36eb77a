"""What all shares by group have in common: several numbers in one batch, each with Laplace noise of its own."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.laws import IntegerLaw
from shuffledp.messages import Reports
from shuffledp.protocols.error_bounds import CONFIDENCE, noise_and_rounding_bound, with_errors
from shuffledp.protocols.streaming import summed
from shuffledp.protocols.sums.plan import LaplaceShares
from shuffledp.protocols.tallies import Tally
from shuffledp.randomness import RandomBits

_AT_A_TIME = 1 << 16


@lru_cache(maxsize=256)
def _bound_in_steps(noise: IntegerLaw, roundings: int, coordinates: int) -> float:
    """No coordinate is further off, noise and so many roundings together."""
    if not roundings:
        return float(noise.deviation_quantile((1 - CONFIDENCE) / coordinates))
    return noise_and_rounding_bound(noise, roundings, coordinates)


@dataclass(frozen=True, kw_only=True)
class CoordinateShares(LaplaceShares):
    """Each user adds its part of Laplace noise to all coordinates and sends each in random shares.

    The adversary sees, up to a stated distance, every coordinate's sum modulo 2^modulus_bits plus discrete Laplace
    noise. What hides a user is how far two users' coordinates are apart in all: a method's own lemma.
    """

    method: ClassVar[str] = "shares"
    theory_page: ClassVar[str] = "docs/theory/people-and-groups.md"
    moved: ClassVar[str] = "every number"
    is_labelled: ClassVar[bool] = True

    @property
    def roundings(self) -> int:
        """How many numbers are rounded at random in one coordinate, at most."""
        return self.users if self.domain.rounds else 0

    @property
    def error_bound(self) -> float:
        return self.step * _bound_in_steps(self.noise_law, self.roundings, self.coordinates)

    @property
    def noise_error(self) -> float:
        """The standard deviation of a coordinate's noise, without what rounding adds."""
        return self.step * self.noise_law.standard_deviation

    combined_factor: ClassVar[float] = 1.0
    """How much larger the error of combined coordinates is than if they were independent, which they are."""

    def from_steps(self, sums: NDArray[np.int64], *, dropped: int = 0, simulated: bool = False) -> Any:
        return with_errors(self, self.step * (sums - self.batch.mean), dropped=dropped, simulated=simulated)

    def summary(self, values: ArrayLike, *, bits: RandomBits) -> Tally:
        array = self.check_values(values)
        total = np.zeros(self.coordinates, dtype=np.int64)
        for start in range(0, len(array), _AT_A_TIME):
            total += self.to_steps(array[start : start + _AT_A_TIME], bits=bits).sum(axis=0)
        return summed(total, len(array))

    def sample_from(self, summary: Tally, *, bits: RandomBits) -> Any:
        self.check_reports(summary.reports)
        sums = self.batch.checked(summary.counts + self.batch.sample(self.coordinates, bits=bits))
        return self.from_steps(sums, simulated=not bits.is_secure)

    # --- the audit ---------------------------------------------------------------------------

    audited_pair: ClassVar[tuple[int, int]] = (0, 1)
    """The coordinates in which `neighbours` differ."""

    @property
    @abstractmethod
    def _audited_range(self) -> tuple[int, int]:
        """Between which steps `neighbours` move the first of these coordinates down and the second one up."""

    @property
    def audited_line(self) -> NDArray[np.int64]:
        return np.array([-1, 1], dtype=np.int64)

    def audited_reports(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        """The reports about the two coordinates in which the neighbours differ."""
        steps = self.to_steps(self.check_values(values), bits=bits)[:, self.audited_pair]
        return self.batch.randomize(np.ascontiguousarray(steps), 0, bits=bits)

    def summaries(self, reports: Reports, trials: int) -> NDArray[np.int64]:
        """How far each of two noisy coordinates is between its two true values, one less the other.

        Beyond either value Laplace noise shows nothing more: its log ratio is flat there. In a fiftieth of the range.
        """
        low, high = self._audited_range
        about = reports.payloads.reshape(trials, -1, 2, self.batch.each).transpose(0, 2, 1, 3)
        between = np.clip(self.batch.run_sums(about.reshape(trials, 2, -1)), low, high)
        return (between @ self.audited_line // max(1, (high - low) // 50)).reshape(-1, 1)
