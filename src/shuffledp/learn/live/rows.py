"""What a device makes of its own row and target before it takes a gradient: declared beforehand, the same for all."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import DataError, ParameterError
from shuffledp.learn.estimators.preparation import Preparation
from shuffledp.learn.estimators.targets import DeclaredTargets
from shuffledp.learn.optimize.named_losses import loss_from
from shuffledp.protocols.learner import DeviceStep

Floats = NDArray[np.float64]

_AGAIN = "create the campaign again with this version"

ROW_STEPS: dict[str, Callable[[Mapping[str, Any]], int]] = {
    "gradient": lambda parameters: len(parameters["point"]),
    "moments": lambda parameters: int(parameters["dimension"]),
}
"""Steps that a row and a label are for, and how many numbers the model has whose they are."""


@dataclass(frozen=True, slots=True, eq=False)
class DeviceRows:
    """Columns, their bounds and categories, an intercept, and what targets may be: classes, or numbers in a range.

    Attributes:
        features: the columns' names, in order.
        preparation: what becomes of a row of them.
        classes: the labels there may be, sorted; None where targets are numbers.
        targets: the numbers that targets may be; None where they are labels.

    >>> rows = DeviceRows.of(["age", "city"], bounds={"age": (0, 100)}, categories={"city": ["Ulm", "Bonn"]},
    ...                      classes=["no", "yes"])
    >>> prepared, target = rows.prepared({"age": 50, "city": "Ulm"}, "yes")
    >>> prepared.shape, target.tolist()
    ((1, 4), [1.0])
    >>> DeviceRows.from_document(rows.document()).document() == rows.document()
    True
    """

    features: tuple[str, ...]
    preparation: Preparation
    classes: tuple[Any, ...] | None
    targets: DeclaredTargets | None

    @classmethod
    def of(
        cls,
        features: Sequence[str],
        *,
        bounds: Any,
        norm: float | None = None,
        intercept: bool = True,
        categories: Any = None,
        other: Any = None,
        classes: Sequence[Any] | None = None,
        target_bounds: Any = None,
    ) -> Self:
        """What is declared of so many named columns and of the target.

        Args:
            features: the columns' names.
            bounds: (low, high) for all columns of numbers, one each, or by name; None without bounds.
            norm: longer rows are shortened; None for the longest within the bounds.
            intercept: whether a constant is appended.
            categories: lists of categories by a column's name.
            other: one more category of every list, for values outside it.
            classes: the labels there may be; None where targets are numbers.
            target_bounds: (low, high) of targets that are numbers.

        Raises:
            ParameterError: something is missing that cannot be guessed, or something declared cannot be.
        """
        ready = Preparation.of(
            list(features), bounds=bounds, norm=norm, intercept=intercept, categories=categories, other=other
        )
        if classes is not None and len(set(classes)) < 2:
            raise ParameterError("classes", list(classes), "must be two labels or more", "name every label")
        labels = None if classes is None else tuple(np.unique(np.asarray(list(classes))).tolist())
        numbers = DeclaredTargets.of(target_bounds) if labels is None else None
        return cls(tuple(map(str, features)), ready, labels, numbers)

    @property
    def dimension(self) -> int:
        """Numbers of a model with one score."""
        return self.preparation.dimension

    def check_step(self, step: DeviceStep | None) -> None:
        """Refuse what no device could make a value of this step from.

        Args:
            step: what devices of the campaign compute first.

        Raises:
            DataError: the step takes no rows, or rows of another dimension, or other targets.
        """
        if step is None or step.name not in ROW_STEPS:
            found = None if step is None else step.name
            raise DataError("rows", found, "must be left out where devices send no gradients", "declare none")
        loss, dimension = loss_from(step.parameters["loss"]), ROW_STEPS[step.name](step.parameters)
        if self.dimension * loss.outputs != dimension:
            found = f"{self.dimension} numbers a score"
            raise DataError("rows", found, f"must be {dimension // loss.outputs}", "declare what was planned for")
        labels = 0 if self.classes is None else len(self.classes)
        if len(self.features) != self.preparation.columns.width or labels not in (0, max(2, loss.outputs)):
            raise DataError("rows", f"{labels} classes", "must be those of the loss", "declare what was planned for")

    def prepared(self, row: Any, target: Any) -> tuple[Floats, Floats]:
        """One person's row and target as a loss takes them: arrays with one entry.

        Args:
            row: the columns by name, or in order.
            target: a label or a number.

        Raises:
            DataError: a column is missing, something is not finite or in no list, or the label is none of the classes.
        """
        values = self._in_order(row)
        has_words = bool(self.preparation.columns.levels)
        try:
            people = np.array([values], dtype=object if has_words else np.float64)
        except (TypeError, ValueError):
            raise DataError("row", "something else", "must be numbers", "mend it first") from None
        if not has_words and not np.isfinite(people).all():
            raise DataError("row", "something that is not finite", "must be finite numbers", "mend it first")
        return self.preparation.some_rows(people), np.array([self._target(target)])

    def _in_order(self, row: Any) -> list[Any]:
        if isinstance(row, Mapping):
            missing = [name for name in self.features if name not in row]
            if missing:
                raise DataError("row", f"no {missing[0]}", "must have every column", f"pass {', '.join(self.features)}")
            return [row[name] for name in self.features]
        try:
            values = list(row)
        except TypeError:
            raise DataError(
                "row", type(row).__name__, "must be a row of values", "pass them in order, or by name"
            ) from None
        if len(values) != len(self.features):
            wanted = f"must be {len(self.features)} values: {', '.join(self.features)}"
            raise DataError("row", f"{len(values)} values", wanted, "pass them in that order, or by name")
        return values

    def _target(self, target: Any) -> float:
        if self.classes is not None:
            # An array is equal to nothing, and to no label.
            if not np.isscalar(target) or target not in self.classes:
                wanted = f"must be one of {', '.join(map(str, self.classes))}"
                raise DataError("label", "another", wanted, "send one of the declared classes")
            place = self.classes.index(target)
            return float(place) if len(self.classes) > 2 else 2.0 * place - 1
        assert self.targets is not None
        try:
            number = float(target)
        except (TypeError, ValueError):
            number = np.nan
        if not np.isfinite(number):
            raise DataError("label", "something else", "must be a finite number", "mend it first")
        return float(self.targets.scaled(np.array([number]))[0][0])

    def document(self) -> dict[str, Any]:
        """What is declared, as JSON."""
        targets = self.targets
        return {
            "features": list(self.features),
            "preparation": self.preparation.document(),
            "intercept": self.preparation.features.intercept,
            "classes": None if self.classes is None else list(self.classes),
            "targets": None if targets is None else {"centre": targets.centre, "half": targets.half},
        }

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """What a JSON document declares.

        Raises:
            DataError: it declares nothing of the kind.
        """
        try:
            ready = Preparation.from_document(document["preparation"])
            ready = replace(ready, features=replace(ready.features, intercept=bool(document["intercept"])))
            classes, targets = document["classes"], document["targets"]
            return cls(
                tuple(map(str, document["features"])),
                ready,
                None if classes is None else tuple(classes),
                None if targets is None else DeclaredTargets(float(targets["centre"]), float(targets["half"])),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as broken:
            raise DataError("campaign.rows", repr(broken), "must declare features and targets", _AGAIN) from None
