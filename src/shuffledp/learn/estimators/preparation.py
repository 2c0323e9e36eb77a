"""What becomes of a row before a model sees it: one preparation, kept with the model, for training and prediction."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from shuffledp.errors import ParameterError
from shuffledp.learn.estimators.columns import Columns, place_of
from shuffledp.learn.estimators.declared import (
    INTERCEPT_RADIUS,
    Changed,
    DeclaredFeatures,
    Floats,
    check_moderate,
    pairs_of,
)
from shuffledp.learn.optimize import BallWithIntercepts, ConvexSet, L2Ball

# Numbers at a time: they stay in the cache, and sparse rows are never dense all at once.
_AT_A_TIME = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class Preparation:
    """Categories become numbers, numbers are cut off at their bounds, and rows longer than a norm are shortened.

    >>> ready = Preparation.of(2, bounds=(0, 10), norm=None, categories={1: ["red", "blue"]})
    >>> people = np.array([[5.0, "blue"], [20.0, "red"]], dtype=object)
    >>> ready.scores(people, np.array([0.1, 0.0, 2.0]), 1.0).tolist()
    [3.5, 2.0]
    >>> again = Preparation.from_document(ready.document())
    >>> again.scores(people, np.array([0.1, 0.0, 2.0]), 1.0).tolist()
    [3.5, 2.0]
    """

    columns: Columns
    features: DeclaredFeatures

    @classmethod
    def of(
        cls,
        columns: int | Sequence[str],
        *,
        bounds: Any,
        norm: float | None,
        intercept: bool = True,
        categories: Any = None,
        other: Any = None,
    ) -> Self:
        """What was declared of so many columns, or of columns with these names.

        Args:
            columns: how many there are, or their names.
            bounds: (low, high) for all columns of numbers, one each, or by name or number; None without bounds.
            norm: longer rows are shortened; None for the longest within the bounds.
            intercept: whether a constant is appended.
            categories: lists of categories by a column's name or number.
            other: one more category of every list, for values outside it.

        Raises:
            ParameterError: a bound is missing that cannot be guessed, or something declared cannot be.
        """
        found = Columns.of(columns, categories, other)
        names = list(range(found.width)) if isinstance(columns, int) else [str(name) for name in columns]
        numeric = found.numeric
        if bounds is None and norm is None and numeric:
            problem = "must say what features may be: it cannot be read from people's data, nor guessed"
            way_out = "pass (low, high) for all or one each, (-1, 1) for instance, or feature_norm for longest rows"
            raise ParameterError("feature_bounds", None, problem, way_out)
        pairs = np.tile([-1.0, 1.0], (found.size, 1))
        if bounds is not None:
            lows, highs = pairs_of(_in_order(bounds, names, numeric), len(numeric))
            places = dict(found.spread())
            for place, low, high in zip(numeric, lows, highs, strict=True):
                pairs[places[place]] = low, high
        longest = math.sqrt(found.blocks)
        length = longest if norm is None else check_moderate("feature_norm", norm, "say how long a row can be")
        bounded = bounds is not None or not numeric
        return cls(found, DeclaredFeatures.of(pairs, norm=length, intercept=intercept, bounded=bounded))

    @classmethod
    def none(cls, columns: int) -> Self:
        """No preparation: rows of numbers as they come."""
        pairs = np.tile([-1.0, 1.0], (columns, 1))
        return cls(Columns.of(columns), DeclaredFeatures.of(pairs, norm=math.inf, intercept=False, bounded=False))

    @property
    def dimension(self) -> int:
        """Numbers of a model with one score."""
        return self.features.dimension

    def models(self, radius: float, scores: int) -> ConvexSet:
        """Where models of so many scores lie: weights within a ball, intercepts within one of their own."""
        dimension = scores * self.dimension
        if not self.features.intercept:
            return L2Ball(dimension=dimension, radius=radius)
        own = INTERCEPT_RADIUS * radius
        return BallWithIntercepts(dimension=dimension, radius=radius, intercept_radius=own, every=self.dimension)

    def _pieces(self, people: Any) -> Iterator[tuple[slice, Floats]]:
        """Rows as numbers, some at a time, dense."""
        size = max(1, _AT_A_TIME // max(1, self.columns.size))
        for start in range(0, people.shape[0], size):
            part = slice(start, start + size)
            yield part, self._encoded(people[part], start)

    def _encoded(self, people: Any, first: int = 0) -> Floats:
        return self.columns.encode(people.toarray() if sparse.issparse(people) else people, first)

    def rows(self, people: Any) -> tuple[Any, Changed]:
        """What a solver is given, no row longer than 1, and which had to be cut off or shortened.

        Args:
            people: a row a person, dense or in compressed sparse rows: those are prepared only when they are asked for.
        """
        changed = np.zeros(people.shape[0], dtype=np.bool_)
        lazy = sparse.issparse(people)
        rows: Any = RowsOnDemand(self, people) if lazy else np.empty((people.shape[0], self.dimension))
        for part, values in self._pieces(people):
            made, changed[part] = self.features.rows(values)
            if not lazy:
                rows[part] = made
        return rows, changed

    def some_rows(self, people: Any) -> Floats:
        """What a solver is given of some people."""
        return self.features.rows(self._encoded(people))[0]

    def scores(self, people: Any, coefficients: Floats, intercept: float | Floats) -> Floats:
        """Coefficients times prepared rows, plus the intercept: a number a row, or one for each row of coefficients."""
        several = coefficients.ndim == 2
        scores = np.empty((people.shape[0], len(coefficients)) if several else people.shape[0])
        for part, values in self._pieces(people):
            scores[part] = self.features.natural(values) @ coefficients.T + intercept
        return scores

    def document(self) -> dict[str, Any]:
        """The preparation as JSON."""
        features = self.features
        pairs = np.column_stack((features.lows, features.highs)).tolist()
        return {
            **self.columns.document(),
            "bounds": pairs if features.bounded else None,
            "norm": features.norm if math.isfinite(features.norm) else None,
        }

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """The preparation that a JSON document describes.

        Raises:
            ValueError, TypeError, KeyError: it describes none.
        """
        columns = Columns.from_document(document)
        bounds, norm = document["bounds"], document["norm"]
        pairs = np.tile([-1.0, 1.0], (columns.size, 1)) if bounds is None else np.array(bounds, dtype=np.float64)
        lows, highs = pairs_of(pairs, columns.size)
        length = math.inf if norm is None else check_moderate("norm", norm, "fit it again")
        pairs = np.column_stack((lows, highs))
        return cls(columns, DeclaredFeatures.of(pairs, norm=length, intercept=False, bounded=bounds is not None))


def _in_order(bounds: Any, names: Sequence[Any], numeric: Sequence[int]) -> Any:
    """Bounds by name or number, in the columns' order; others as they came."""
    if not isinstance(bounds, Mapping):
        return bounds
    by_place = {place_of(key, names, "feature_bounds"): pair for key, pair in bounds.items()}
    for place in numeric:
        if place not in by_place:
            way_out = "every column of numbers needs a pair (low, high)"
            raise ParameterError("feature_bounds", list(bounds), f"must say what {names[place]} may be", way_out)
    if extra := sorted(set(by_place) - set(numeric)):
        raise ParameterError("feature_bounds", names[extra[0]], "must be of columns of numbers", "leave it out")
    return [by_place[place] for place in numeric]


class RowsOnDemand:
    """Sparse rows that are prepared when a cohort is asked, as many as it has."""

    def __init__(self, preparation: Preparation, people: Any) -> None:
        self._preparation, self._people = preparation, people

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, and numbers of each."""
        return self._people.shape[0], self._preparation.dimension

    def __len__(self) -> int:
        return int(self._people.shape[0])

    def __getitem__(self, chosen: slice | NDArray[np.intp]) -> Floats:
        return self._preparation.some_rows(self._people[chosen])
