"""The mean over the rows of people who have several: how many rows there are is private, too."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.groups import GroupPair
from shuffledp.accounting.mixing import robust_messages
from shuffledp.accounting.pairs import DominatingPair
from shuffledp.errors import ParameterError
from shuffledp.estimates import Estimate, VectorEstimate
from shuffledp.messages import Reports
from shuffledp.protocols.bounded_sum.shares import laplace_grid
from shuffledp.protocols.derived import DerivedFamily, DerivedPlan
from shuffledp.protocols.domains.repeated import check_at_most
from shuffledp.protocols.domains.row_means import RowMeans
from shuffledp.protocols.domains.summed import check_range
from shuffledp.protocols.family import AT_MOST, Family
from shuffledp.protocols.fields import domain, noise, only_exact
from shuffledp.protocols.grouped.coordinates import CoordinateShares
from shuffledp.protocols.people.numbers import ROW_RANGE, RowNumbersPlan
from shuffledp.protocols.polya import pure_ratio
from shuffledp.protocols.presentation import ALONE, APART, CURATOR, Listing, beside_others
from shuffledp.protocols.request import Request
from shuffledp.protocols.statistics.moments import farther, like
from shuffledp.protocols.sums.noise import shift_pair
from shuffledp.randomness import RandomBits
from shuffledp.references.curator_sums import curator_errors
from shuffledp.sampling.rounding import LARGEST


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMeanShares(CoordinateShares):
    """Everybody sends how far its rows lie above the middle of the range, and half of how many they are, in shares.

    The adversary sees, up to a stated distance, both sums modulo 2^modulus_bits plus discrete Laplace noise. The first
    number of a person is never further from 0 than the second, so that a replaced person moves both together by at
    most at_most whole grids.

    >>> from shuffledp import Privacy
    >>> plan = RowMeanShares.plan(users=10_000, privacy=Privacy(1, 1e-6), low=0, high=5, at_most=3)
    >>> round(plan.standard_error, 2), plan.coordinates
    (4.28, 2)
    """

    protocol: ClassVar[str] = "row-mean"
    title: ClassVar[str] = "Private sums of rows and of their number"

    low: float = domain(read=float)
    high: float = domain(read=float)
    at_most: int = domain("[1, 1000]")
    grid: int = noise(f"[2, {LARGEST}]")

    @classmethod
    def for_request(cls, request: Request, *, low: float, high: float, at_most: int) -> Self:
        """The honest users' noise alone hides all of a person's rows and how many they are."""
        only_exact(request.constants)
        check_range(low, high)
        check_at_most(at_most)
        # Even, as rows are counted in halves.
        grid = 2 * laplace_grid(request.users, request.privacy.epsilon / (2 * at_most))
        rows = RowMeans(low, high, at_most, grid)
        ratio = pure_ratio(request.privacy.epsilon, rows.furthest)
        other = "weighted-mean of everybody's own mean, weighted by its number of rows"
        found = cls.calibrated(request, ratio, rows.largest_shift, robust_messages, other, rows.coordinates)
        return cls(**request.common, low=low, high=high, at_most=at_most, grid=grid, **found)

    def _check_domain(self) -> None:
        check_range(self.low, self.high)
        if self.grid % 2:
            raise ParameterError("grid", self.grid, "must be even", "make the plan again")

    @property
    def domain(self) -> RowMeans:
        return RowMeans(self.low, self.high, self.at_most, self.grid)

    def pair(self, honest: int) -> DominatingPair:
        return GroupPair(shift_pair(self.batch.law(honest), 1), self.domain.furthest)

    @property
    def dominates_because(self) -> str:
        return (
            "Up to the transport term, permuted shares can be simulated from both sums; with all others known these "
            "are the user's steps plus the honest users' independent Polya shares. Of a user with c rows the first "
            "number is within c half grids of 0 and the second is c half grids, so that two users' steps are at most "
            "at_most grids apart in both together: group privacy, and for Laplace noise no delta."
        )

    def reference(self) -> dict[str, float | None]:
        """A trusted curator who adds noise to both sums."""
        return curator_errors(self.privacy, apart=float(self.at_most), moved=self.at_most)

    def true_value(self, values: ArrayLike) -> NDArray[np.float64]:
        """How far all rows lie above the middle of the range, in its width, and half of how many they are."""
        return np.asarray(self.domain.numbers(self.check_values(values)).sum(axis=0))

    @property
    def question(self) -> str:
        each = f"each in [{self.low:g}, {self.high:g}], at most {self.at_most:,} of each user"
        return f"add up and count the rows of {self.users:,} users, {each}"

    @property
    def neighbours(self) -> tuple[Any, Any, Any]:
        """All rows of one user at the low end or at the high end; the others have none."""
        most = float(self.at_most)
        low, high = np.array([[self.low * most, most]]), np.array([[self.high * most, most]])
        return low, high, np.zeros((1, 2))

    @property
    def _audited_range(self) -> tuple[int, int]:
        return self.domain.lowest, self.domain.highest

    @property
    def audited_line(self) -> NDArray[np.int64]:
        return np.ones(1, dtype=np.int64)

    def audited_reports(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        """The reports about the first number, in which alone the neighbours differ."""
        steps = self.to_steps(self.check_values(values), bits=bits)[:, :1]
        return self.batch.randomize(np.ascontiguousarray(steps), 0, bits=bits)

    def summaries(self, reports: Reports, trials: int) -> NDArray[np.int64]:
        """How far the noisy first sum is between its two true values, in a fiftieth of their distance.

        Beyond either value Laplace noise shows nothing more: its log ratio is flat there.
        """
        sums = self.batch.run_sums(reports.payloads.reshape(trials, 1, -1))
        between = np.clip(sums, *self._audited_range)
        return (between // max(1, self.domain.furthest // 50)).reshape(-1, 1)


RowMeanFamily: Family[Any] = Family.of(
    "row-mean", "How far rows lie above the middle of their range, and how many they are.", RowMeanShares,
    domain=(*ROW_RANGE, AT_MOST),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedMean(RowNumbersPlan):
    """The mean over all rows, where a person has many and at most `at_most` of them count.

    Nothing that is seen says how many rows a person has, so that how many there are in all is found with noise, too.

    >>> from shuffledp import Privacy, RandomBits, simulate
    >>> plan = RepeatedMean.plan(users=3000, privacy=Privacy(1, 1e-6), low=0, high=10, at_most=3)
    >>> people = plan.encode([[2.0, 4.0, 9.0], [], [5.0]] * 1000)
    >>> bool(abs(simulate(plan, people, bits=RandomBits.secure()).value - 5) < 0.2)
    True
    """

    protocol: ClassVar[str] = "repeated-mean"
    file_command: ClassVar[str] = "mean"
    title: ClassVar[str] = "A private mean of rows"
    is_unbiased: ClassVar[bool] = False
    asks: ClassVar[str] = "find the mean of"
    summed = RowMeanFamily

    @classmethod
    def sum_domain(cls, *, low: float, high: float, at_most: int) -> dict[str, Any]:  # type: ignore[override]
        check_range(low, high)
        return {"low": float(low), "high": float(high), "at_most": check_at_most(at_most)}

    @property
    def domain(self) -> RowMeans:
        found: RowMeans = self.sum_plan.domain
        return found

    @property
    def standard_error(self) -> float:
        """The whole range: nobody may have a row. An estimate knows its own."""
        return self.high - self.low

    error_bound = standard_error

    def _moved(self, by: float) -> float:
        return self.standard_error

    def error_among(self, rows: float, error: float | None = None) -> float:
        """The standard error of the mean of so many rows, in the middle of the range.

        Args:
            rows: how many rows count, of all people together.
            error: of each sum; the plan's if left out.
        """
        sums = self.sum_plan.standard_error if error is None else error
        return float(min(1.0, sums / rows) * (self.high - self.low))

    def reference(self) -> dict[str, float | None]:
        """Where everybody has one row."""
        found = self.sum_plan.reference()
        return {name: each if each is None else self.error_among(self.users, each) for name, each in found.items()}

    def compared(self) -> Listing:
        """The error where everybody has one row, beside a trusted curator's and the local model's."""
        found, own = self.reference(), self.error_among(self.users)
        rows = [
            ("trusted curator", found["central_laplace_standard_error"], CURATOR),
            (f"this plan ({self.method})", own, APART),
            ("local model", found["local_standard_error"], ALONE),
        ]
        title = f"If everybody had one row, {self.users:,} rows in all; with more rows every error is smaller"
        return beside_others(title, ("who adds it", "standard error"), own, rows)

    def facts(self) -> list[tuple[str, str]]:
        told = f"{self.error_among(self.users):.4g} where everybody has one row; less where there are more"
        each = f"exactly {self.at_most:,} rows of every user, filled up with rows that count for nothing"
        own = DerivedPlan.facts(self)
        return [("what counts", each), *((name, told if name == "standard error" else text) for name, text in own)]

    def answer(self, estimate: VectorEstimate) -> Estimate:
        """The mean that these two sums say.

        Its bound is every ratio of two sums within theirs, and the whole range where there may be no row at all.
        """
        width, bound = self.high - self.low, estimate.bound
        above, half = (float(number) for number in estimate.value)
        least, most = -0.5, 0.5
        if half > bound:
            fewest, many = 2 * (half - bound), 2 * (half + bound)
            least = max(least, min((above - bound) / rows for rows in (fewest, many)))
            most = min(most, max((above + bound) / rows for rows in (fewest, many)))
        part = min(most, max(least, above / (2 * half))) if half > 0 else (least + most) / 2
        # The delta method: noise in half of the rows counts twice as much as in the rows.
        spread = estimate.standard_error * math.hypot(1.0, 2 * part) / (2 * half) if half > 0 else math.inf
        middle = self.low + width / 2
        mean, ends = middle + width * part, (middle + width * least, middle + width * most)
        return like(estimate, mean, min(width, width * spread), farther(mean, ends))

    def true_value(self, values: ArrayLike) -> float:
        above, half = self.sum_plan.true_value(values).tolist()
        return self.low + (self.high - self.low) * (0.5 + (above / (2 * half) if half > 0 else 0.0))


RepeatedMeanFamily = DerivedFamily.by(
    RepeatedMean,
    "The mean over all rows, where a person has several and at most --at-most of them count.",
    *ROW_RANGE,
    AT_MOST,
)
