"""What all binary sums share: values in {0, 1}, an additive integer noise, the same references."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.laws import IntegerLaw
from shuffledp.errors import DataError
from shuffledp.estimates import Estimate
from shuffledp.protocols.base import Plan
from shuffledp.protocols.binary_sum.paper import paper_standard_error
from shuffledp.references.curator import CuratorDiscreteLaplace
from shuffledp.references.local import LocalRandomizedResponse

CONFIDENCE = 0.95


@lru_cache(maxsize=1024)
def _bound(noise: IntegerLaw) -> float:
    return float(noise.deviation_quantile(1 - CONFIDENCE))


@dataclass(frozen=True, slots=True, kw_only=True)
class BinarySumPlan(Plan):
    """A count of users whose value is 1."""

    protocol: ClassVar[str] = "binary-sum"

    @property
    @abstractmethod
    def noise_law(self) -> IntegerLaw:
        """The law of what is added to the count when everybody follows the protocol."""

    @property
    def standard_error(self) -> float:
        return self.noise_law.standard_deviation

    def reference(self) -> dict[str, float | None]:
        return {
            "paper_standard_error": paper_standard_error(self.users, self.privacy),
            "central_standard_error": CuratorDiscreteLaplace(privacy=self.privacy).standard_error,
            "local_standard_error": LocalRandomizedResponse(users=self.users, privacy=self.privacy).standard_error,
        }

    def check_values(self, values: ArrayLike) -> NDArray[np.uint8]:
        """The values as 0s and 1s in bytes."""
        array = np.asarray(values)
        if array.ndim != 1 or array.size == 0:
            raise DataError(
                "values", f"shape {array.shape}", "must be a column of at least one value", "pass one a user"
            )
        if array.dtype.kind == "f" and np.isnan(array).any():
            row = int(np.flatnonzero(np.isnan(array))[0])
            raise DataError("values", f"NaN in row {row + 1}", "must be 0 or 1", "drop or fill missing values first")
        if array.dtype.kind not in "bui":
            raise DataError(
                "values",
                f"dtype {array.dtype}",
                "must be booleans or whole numbers",
                "convert them, e.g. x.astype(int)",
            )
        bad = np.flatnonzero((array != 0) & (array != 1)) if array.dtype.kind != "b" else np.empty(0, dtype=np.intp)
        if bad.size:
            row = int(bad[0])
            raise DataError(
                "values",
                f"{array[row]} in row {row + 1}",
                "must be 0 or 1",
                "a binary sum counts ones; recode the column",
            )
        return array.astype(np.uint8)

    def true_value(self, values: ArrayLike) -> float:
        return float(np.sum(self.check_values(values), dtype=np.int64))

    def _all_values(self, values: ArrayLike) -> NDArray[np.uint8]:
        array = self.check_values(values)
        self.check_reports(array.size)
        return array

    def _estimate(self, value: float, *, dropped: int = 0, simulated: bool = False) -> Estimate:
        return Estimate(
            value=value,
            standard_error=self.standard_error,
            bound=_bound(self.noise_law) + dropped,
            confidence=CONFIDENCE,
            dropped=dropped,
            simulated=simulated,
        )


def whole_number(noise: Any, name: str) -> int:
    """A parameter of a plan's noise that must be a whole number."""
    value = noise.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise DataError(f"noise.{name}", value, "must be a whole number", "make the plan again")
    return value


def real_number(noise: Any, name: str) -> float:
    """A parameter of a plan's noise that must be a number."""
    value = noise.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"noise.{name}", value, "must be a number", "make the plan again")
    return float(value)
