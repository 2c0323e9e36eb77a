"""A fitted linear model as a file: JSON with a version and a fingerprint, and a list of what no guarantee covers."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from shuffledp.errors import DataError
from shuffledp.files import whole_file
from shuffledp.protocols.states import (
    checked,
    fingerprint_of,
    is_real,
    kept,
    read_fields,
    vector,
    whole,
    written_fields,
)

SCHEMA = 1
KIND = "shuffledp-linear-model"
_WAY_OUT = "fit it again, or restore it from a copy"

Floats = NDArray[np.float64]


def _words(texts: Any) -> tuple[str, ...]:
    return tuple(map(str, checked(texts, isinstance(texts, list))))


def _labels(classes: Any) -> tuple[Any, ...] | None:
    if classes is None:
        return None
    plain = isinstance(classes, list) and all(isinstance(label, str | int | float) for label in classes)
    return tuple(checked(classes, plain and len(classes) == 2 and classes[0] != classes[1]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearModel:
    """Coefficients of named features; two classes for a classifier, none for a regression.

    Accuracy, losses and counts of what was clipped are not in it: they would be read from people's data without noise.
    What was read so and is in it, the classes where nobody declared them, is listed in `unprotected`.

    >>> model = LinearModel(
    ...     estimator="ShuffleLogisticRegression", features=("age",), classes=("no", "yes"), solver="gd", users=10,
    ...     coefficients=np.array([2.0]), intercept=-1.0, guarantee={}, declared={}, simulated=False,
    ... )
    >>> model.predict([[0.0], [1.0]]).tolist(), model.probabilities([[0.5]]).tolist()
    (['no', 'yes'], [0.5])
    >>> LinearModel.from_document(model.document()).fingerprint == model.fingerprint
    True
    """

    estimator: str = kept("an estimator's name", str)
    features: tuple[str, ...] = kept("a list of its features", _words, list)
    classes: tuple[Any, ...] | None = kept("two different classes, or none", _labels, lambda two: two and list(two))
    coefficients: Floats = vector("a list of finite coefficients")
    intercept: float = kept("a finite intercept", lambda value: float(checked(value, is_real(value))))
    guarantee: dict[str, Any] = kept("its guarantee", dict)
    declared: dict[str, Any] = kept("what was declared", dict)
    solver: str = kept("a solver's name", str)
    users: int = whole("whole users")
    simulated: bool = kept("whether it was simulated", lambda value: checked(value, isinstance(value, bool)))
    unprotected: tuple[str, ...] = kept("a list of what is not protected", _words, list, default=())

    def scores(self, features: ArrayLike) -> Floats:
        """Coefficients times features, plus the intercept, a row a person."""
        rows = np.asarray(features, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(self.features) or not np.isfinite(rows).all():
            wanted = f"must be rows of {len(self.features)} finite numbers: {', '.join(self.features)}"
            raise DataError("features", f"shape {rows.shape}", wanted, "pass those columns in that order")
        return np.asarray(rows @ self.coefficients + self.intercept)

    def predict(self, features: ArrayLike) -> NDArray[Any]:
        """Classes, or numbers of a regression."""
        scores = self.scores(features)
        return scores if self.classes is None else np.array(self.classes)[(scores > 0).astype(np.int64)]

    @property
    def has_probabilities(self) -> bool:
        """Whether scores are logits of the second class: those of logistic regression are."""
        return self.estimator == "ShuffleLogisticRegression"

    def probabilities(self, features: ArrayLike) -> Floats:
        """Of the second class, by logistic regression."""
        if not self.has_probabilities:
            raise DataError("model", self.estimator, "must be a logistic regression", "use predict")
        return np.asarray(special.expit(self.scores(features)))

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all the rest."""
        return fingerprint_of(self._content())

    def _content(self) -> dict[str, Any]:
        return {"schema": SCHEMA, "kind": KIND, **written_fields(self)}

    def document(self) -> dict[str, Any]:
        """The model as JSON."""
        content = self._content()
        return {**content, "fingerprint": fingerprint_of(content)}

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """The model that a JSON document describes; one of another version, or one that was altered, is refused."""
        if not isinstance(document, Mapping) or document.get("kind") != KIND:
            raise DataError("model", type(document).__name__, f"must be an object of the kind {KIND}", _WAY_OUT)
        if document.get("schema") != SCHEMA:
            raise DataError("model", document.get("schema"), f"must have schema {SCHEMA}", "fit it with this version")
        content = {key: value for key, value in document.items() if key != "fingerprint"}
        if document.get("fingerprint") != fingerprint_of(content):
            raise DataError("model", document.get("fingerprint"), "must have its own fingerprint", _WAY_OUT)
        model = cls(**read_fields(cls, content, "model", _WAY_OUT))
        if model.coefficients.size != len(model.features):
            raise DataError("model", model.coefficients.shape, "must have a finite number a feature", _WAY_OUT)
        return model

    def save(self, path: Path | str) -> None:
        """Write the file, whole or not at all."""
        text = json.dumps(self.document(), indent=2, allow_nan=False) + "\n"
        with whole_file(Path(path)) as file:
            file.write(text.encode())


def load_model(path: Path | str) -> LinearModel:
    """The model that `LinearModel.save` or `shuffledp fit` wrote."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError:
        raise DataError("model", str(path), "must be a file that can be read", "check the path") from None
    except (ValueError, RecursionError):
        raise DataError("model", str(path), "must be a complete JSON file", _WAY_OUT) from None
    return LinearModel.from_document(document)
