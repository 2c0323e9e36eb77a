"""What all histograms share: everybody has one category, two bins move when one user's is replaced."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import DataError
from shuffledp.estimates import VectorEstimate
from shuffledp.messages import Batch, Reports
from shuffledp.protocols.base import Plan
from shuffledp.protocols.error_bounds import CONFIDENCE
from shuffledp.protocols.histogram.categories import Categories, Codes, Integers, as_categories
from shuffledp.randomness import RandomBits
from shuffledp.references.curator_histogram import CuratorHistogram
from shuffledp.references.local_histograms import best_local_histogram
from shuffledp.sampling.uniform import smallest_width

Floats = NDArray[np.float64]


@lru_cache(maxsize=256)
def _error_bound(plan: "HistogramPlan") -> float:
    return plan._l_inf_error()


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramPlan(Plan):
    """How many users have each category.

    Values are codes 0, 1, ...; `categories` says what they stand for.
    """

    protocol: ClassVar[str] = "histogram"
    domain_names: ClassVar[tuple[str, ...]] = ("categories",)
    keeps_zero: ClassVar[bool] = False

    categories: Categories

    # --- numbers -----------------------------------------------------------------------------

    @property
    def bins(self) -> int:
        """How many categories there are."""
        return self.categories.size

    @property
    def domain(self) -> dict[str, Any]:
        return {"categories": self.categories.document()}

    def _check_domain(self) -> None:
        object.__setattr__(self, "categories", as_categories(self.categories))

    @abstractmethod
    def _l_inf_error(self) -> float:
        """All bins are off by at most this with probability CONFIDENCE, whatever the data."""

    @property
    def error_bound(self) -> float:
        """All bins are off by at most this with probability CONFIDENCE, whatever the data."""
        return _error_bound(self)

    @property
    def l2_error(self) -> float:
        """The root of the mean squared length of the error, at most."""
        return math.sqrt(self._noisy_bins) * self.standard_error

    @property
    def _noisy_bins(self) -> int:
        """How many bins may be off: where zero is kept, one that nobody is in is answered exactly."""
        return min(self.bins, self.users) if self.keeps_zero else self.bins

    @property
    @abstractmethod
    def influence(self) -> float | None:
        """How far one client that lies can move a bin; None if as far as it likes."""

    def further_numbers(self) -> dict[str, Any]:
        return {"l_inf_error": self.error_bound, "l2_error": self.l2_error}

    @property
    def alphabet_size(self) -> int:
        return self.bins

    @property
    def bits_per_message(self) -> int:
        return max(1, (self.alphabet_size - 1).bit_length())

    @property
    def _kind(self) -> str:
        """The narrowest dtype that holds a message."""
        return f"u{smallest_width(self.bits_per_message) // 8}"

    @property
    def paper_standard_error(self) -> float | None:
        """Of the method with its paper's own constants; None where the paper gives none."""
        return None

    def reference(self) -> dict[str, float | None]:
        curator = CuratorHistogram.plan(privacy=self.privacy, bins=self.bins)
        local = best_local_histogram(users=self.users, privacy=self.privacy, bins=self.bins)
        return {
            "paper_standard_error": self.paper_standard_error,
            "central_standard_error": curator.standard_error,
            "local_standard_error": local.standard_error,
            "central_l_inf_error": curator.l_inf_error,
            "local_l_inf_error": local.l_inf_error,
        }

    @property
    def question(self) -> str:
        return f"count {self.users:,} users in {self.bins:,} categories"

    @property
    def title(self) -> str:
        return "A private histogram"

    # --- the two sides -----------------------------------------------------------------------

    def check_values(self, values: ArrayLike) -> Codes:
        """The codes as whole numbers in 0..bins-1."""
        array = np.asarray(values)
        if array.dtype.kind not in "bui":
            raise DataError(
                "values",
                f"dtype {array.dtype}",
                "must be codes of categories",
                "encode them: plan.categories.encode(x)",
            )
        return Integers(0, self.bins - 1).encode(array)

    def _all_values(self, values: ArrayLike) -> Codes:
        codes = self.check_values(values)
        self.check_reports(codes.size)
        return codes

    def counts(self, codes: Codes) -> Codes:
        """How many have each code."""
        return np.bincount(codes, minlength=self.bins)

    def true_value(self, values: ArrayLike) -> Floats:
        return self.counts(self.check_values(values)).astype(np.float64)

    def _tallied(self, batch: Batch) -> tuple[Codes, int]:
        """How often each message of the alphabet came in a whole batch, and how many messages were not of it."""
        self.check_reports(batch.reports)
        known = batch.payloads[batch.payloads < self.alphabet_size]
        seen = np.bincount(known.astype(np.int64, copy=False), minlength=self.alphabet_size)
        return seen, len(batch) - known.size

    @abstractmethod
    def analyze(self, batch: Batch) -> VectorEstimate: ...

    @abstractmethod
    def sample_estimate(self, values: ArrayLike, *, bits: RandomBits) -> VectorEstimate: ...

    def _estimate(self, value: Floats, *, dropped: int = 0, simulated: bool = False) -> VectorEstimate:
        return VectorEstimate(
            value=value,
            standard_error=self.standard_error,
            bound=self.error_bound + dropped * self._message_influence,
            confidence=CONFIDENCE,
            dropped=dropped,
            simulated=simulated,
        )

    @property
    def _message_influence(self) -> float:
        """How far one message that is missing moves a bin, at most."""
        return 1.0

    @property
    def step(self) -> float:
        """What an analyzer adds to the bound for each message that did not open."""
        return self._message_influence

    # --- the audit ---------------------------------------------------------------------------

    @property
    def neighbours(self) -> tuple[Codes, Codes, Codes]:
        first, second, others = (np.array([code], dtype=np.int64) for code in (0, 1, min(2, self.bins - 1)))
        return first, second, others

    def summaries(self, reports: Reports, trials: int) -> NDArray[np.int64]:
        """How many messages name the first category, and how many the second."""
        return np.stack([counted_in_runs(reports.payloads == code, reports, trials) for code in (0, 1)], axis=1)

    @abstractmethod
    def quieter(self, part: float) -> dict[str, Any]:
        """Fields of a twin with this part of the noise variance, for the audit: it protects nobody."""


def counted_in_runs(hits: NDArray[np.bool_], reports: Reports, trials: int) -> NDArray[np.int64]:
    """How many of the messages hit, in each of `trials` equal runs."""
    starts = np.concatenate(([0], np.cumsum(reports.sizes.reshape(trials, -1).sum(axis=1))))
    before = np.concatenate(([0], np.cumsum(hits, dtype=np.int64)))
    return np.asarray(np.diff(before[starts]))
