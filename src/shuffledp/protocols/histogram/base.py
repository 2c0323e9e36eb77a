"""What all histograms share: everybody has one category, two bins move when one user's is replaced."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.messages import Reports
from shuffledp.protocols.counted import CountedPlan, counted_in_runs, first_codes
from shuffledp.protocols.domains.categories import as_categories
from shuffledp.protocols.domains.domain import Categories, Codes, Floats
from shuffledp.protocols.fields import domain, forwarded
from shuffledp.protocols.histogram.side_by_side import between_extremes
from shuffledp.protocols.presentation import ALONE, APART, CURATOR, Listing, beside_others
from shuffledp.randomness import RandomBits
from shuffledp.references.curator_histogram import CuratorHistogram
from shuffledp.references.local_histograms import best_local_histogram


@lru_cache(maxsize=256)
def _error_bound(plan: "HistogramPlan") -> float:
    return plan._l_inf_error()


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramPlan(CountedPlan):
    """How many users have each category.

    Values are codes 0, 1, ...; `categories` says what they stand for.
    """

    protocol: ClassVar[str] = "histogram"
    lists_methods: ClassVar[bool] = True
    file_command: ClassVar[str] = "histogram"
    title: ClassVar[str] = "A private histogram"
    unit: ClassVar[str] = " users in every category"

    categories: Categories = domain(read=as_categories, write=Categories.document)

    bins: ClassVar[int] = forwarded("categories.size")
    """How many categories there are."""

    domain = forwarded("categories")

    @abstractmethod
    def _l_inf_error(self) -> float:
        """All bins are off by at most this with probability CONFIDENCE, whatever the data."""

    @property
    def error_bound(self) -> float:
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
    def combined_factor(self) -> float:
        """How much larger the error of combined bins may be than if they were independent.

        Decoys are thrown into all bins, so that noise in one is less in the others: for weights w the variance is
        m (|w|^2 - (sum w)^2 / bins), where that of one bin is m (1 - 1/bins). Independent bins have less.
        """
        return math.sqrt(self.bins / (self.bins - 1))

    def further_numbers(self) -> dict[str, Any]:
        return {"l_inf_error": self.error_bound, "l2_error": self.l2_error}

    alphabet_size = forwarded("bins")

    @property
    def paper_standard_error(self) -> float | None:
        """The standard error with the paper's own constants; None where the paper gives none."""
        return None

    def reference(self) -> dict[str, float | None]:
        curator = CuratorHistogram(privacy=self.privacy, bins=self.bins)
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
    def local_method(self) -> str:
        """The local model's best method for the same question, by name."""
        return best_local_histogram(users=self.users, privacy=self.privacy, bins=self.bins).encoding

    def facts(self) -> list[tuple[str, str]]:
        sends, *others = CountedPlan.facts(self)
        worst = f"no category is off by more than {self.error_bound:,.4g} users, with 95% confidence"
        return [sends, ("worst category", worst), *others]

    def beside(self) -> dict[str, Any]:
        return {"local_method": self.local_method}

    methods_compared = between_extremes

    def compared(self) -> Listing:
        """How far off the worst category may be, beside a trusted curator's and the local model's."""
        reference = self.reference()
        rows = [
            ("trusted curator", reference["central_l_inf_error"], CURATOR),
            (f"this plan ({self.method})", self.error_bound, APART),
            (f"local: {self.local_method}", reference["local_l_inf_error"], ALONE),
        ]
        heading = ("who adds noise", "off by at most")
        return beside_others("The worst category, 95%", heading, self.error_bound, rows, unknown="-")

    @property
    def influence(self) -> float:
        return float(self.messages_per_user_max) * self.message_influence

    @property
    def lying_client(self) -> str:
        return f"moves a bin by at most {self.influence:.3g}: {self.message_influence:.3g} for each of its messages"

    def counts(self, codes: Codes) -> Codes:
        """How many users have each code."""
        return np.asarray(np.bincount(codes, minlength=self.bins), dtype=np.int64)

    def _summed(self, codes: Codes, bits: RandomBits) -> Codes:
        return self.counts(codes)

    def true_value(self, values: ArrayLike) -> Floats:
        return np.asarray(self.counts(self.check_values(values)), dtype=np.float64)

    neighbours = property(first_codes)

    def summaries(self, reports: Reports, trials: int) -> NDArray[np.int64]:
        """How many messages name the first category, and how many the second."""
        return np.stack([counted_in_runs(reports.payloads == code, reports, trials) for code in (0, 1)], axis=1)
