"""A fitted linear model as a file: JSON with a version and a fingerprint, and a list of what no guarantee covers."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

from shuffledp.errors import DataError, ParameterError
from shuffledp.files import kind_of_document, other_version, whole_file
from shuffledp.learn.estimators.preparation import Preparation
from shuffledp.learn.fit_register import REGISTER
from shuffledp.protocols.states import (
    checked,
    fingerprint_of,
    is_real,
    kept,
    read_fields,
    whole,
    written_fields,
)

SCHEMA = 2
KIND = "shuffledp-linear-model"
_WAY_OUT = "fit it again, or restore it from a copy"
# What files of the first version do not have.
_SINCE = ("preparation", "clipped")

Floats = NDArray[np.float64]


def _words(texts: Any) -> tuple[str, ...]:
    return tuple(map(str, checked(texts, isinstance(texts, list))))


def _labels(classes: Any) -> tuple[Any, ...] | None:
    if classes is None:
        return None
    plain = isinstance(classes, list) and all(isinstance(label, str | int | float) for label in classes)
    return tuple(checked(classes, plain and len(classes) >= 2 and len(set(classes)) == len(classes)))


def _real(value: Any) -> float:
    return float(checked(value, is_real(value)))


def _vector(values: Any) -> Floats:
    return np.array([_real(value) for value in checked(values, isinstance(values, list))])


def _matrix(values: Any) -> Floats:
    """A list of numbers, or lists of as many."""
    if not isinstance(values, list) or not values or not isinstance(values[0], list):
        return _vector(values)
    return np.array([_vector(row) for row in values])


def _intercept(value: Any) -> float | Floats:
    return _vector(value) if isinstance(value, list) else _real(value)


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def _shares(found: Any) -> tuple[dict[str, Any], ...]:
    return tuple(dict(each) for each in checked(found, isinstance(found, list)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearModel:
    """Coefficients of named features, and what becomes of a row before they are applied.

    `preparation` is that of training: categories become numbers, numbers are cut off at their bounds, and rows longer
    than the declared norm are shortened. With more than two classes there is a row of coefficients, and an intercept,
    for each. A file of the first version, which has none, is prepared by what it says was declared.

    Accuracy, losses and exact counts of what was clipped are not in it: they would be read from people's data without
    noise; `clipped` is a private count. What was read so and is in it, the classes where nobody declared them, is
    listed in `unprotected`.

    Attributes:
        estimator: the name of the estimator that learned it.
        features: the columns' names, in order.
        classes: the labels; None of a regression.
        coefficients: one a column, or a row of them for each of several classes.
        intercept: one number, or one for each of several classes.
        guarantee: what holds for everybody whom it learned from, as JSON.
        declared: what was said before any data was seen.
        solver: the name of the method that learned it.
        users: how many people it learned from.
        simulated: whether the noise came from a seeded source and protects nobody.
        unprotected: what in it was read from the data without noise.
        preparation: what becomes of a row before the coefficients are applied.
        clipped: private counts of what was clipped.
        schema: the version of its file.

    >>> model = LinearModel(
    ...     estimator="ShuffleLogisticRegression", features=("age",), classes=("no", "yes"), solver="gd", users=10,
    ...     coefficients=np.array([2.0]), intercept=-1.0, guarantee={}, declared={}, simulated=False,
    ...     preparation=Preparation.of(["age"], bounds=(0, 1), norm=None),
    ... )
    >>> model.predict([[0.0], [1.0]]).tolist(), model.probabilities([[0.5]]).tolist()
    (['no', 'yes'], [0.5])
    >>> model.scores([[1.0], [50.0]]).tolist()
    [1.0, 1.0]
    >>> LinearModel.from_document(model.document()).fingerprint == model.fingerprint
    True
    """

    estimator: str = kept("an estimator's name", str)
    features: tuple[str, ...] = kept("a list of its features", _words, list)
    classes: tuple[Any, ...] | None = kept("different classes, or none", _labels, lambda all_: all_ and list(all_))
    coefficients: Floats = kept("a list of finite coefficients", _matrix, _plain)
    intercept: float | Floats = kept("a finite intercept", _intercept, _plain)
    guarantee: dict[str, Any] = kept("its guarantee", dict)
    declared: dict[str, Any] = kept("what was declared", dict)
    solver: str = kept("a solver's name", str)
    users: int = whole("whole users")
    simulated: bool = kept("whether it was simulated", lambda value: checked(value, isinstance(value, bool)))
    unprotected: tuple[str, ...] = kept("a list of what is not protected", _words, list, default=())
    preparation: Preparation = kept("its preparation", Preparation.from_document, lambda ready: ready.document())
    clipped: tuple[dict[str, Any], ...] = kept("counts of what was clipped", _shares, list, default=())
    schema: int = kept("a known version", lambda value: checked(value, value in (1, SCHEMA)), default=SCHEMA)

    def scores(self, features: Any) -> Floats:
        """Coefficients times prepared features, plus the intercept.

        Args:
            features: a row a person, its columns in the order of `features`: an array, compressed sparse rows, or a
                data frame, whose columns are found by name.

        Returns:
            A number a row; with more than two classes one for each of them.

        Raises:
            DataError: other columns, something that is not finite, or a category outside its list.
        """
        return self.preparation.scores(self._rows(features), self.coefficients, self.intercept)

    def _rows(self, features: Any) -> Any:
        if hasattr(features, "columns") and set(self.features) <= set(map(str, features.columns)):
            features = features[list(self.features)]
        has_words = bool(self.preparation.columns.levels)
        if sparse.issparse(features):
            rows, values = sparse.csr_array(features), features.data
        else:
            rows = np.asarray(features, dtype=object if has_words else np.float64)
            values = rows
        finite = has_words or np.isfinite(values).all()
        if rows.ndim != 2 or rows.shape[1] != len(self.features) or not finite:
            wanted = f"must be rows of {len(self.features)} finite numbers: {', '.join(self.features)}"
            raise DataError("features", f"shape {rows.shape}", wanted, "pass those columns in that order")
        return rows

    def part_learned_from(self, features: Any) -> float:
        """About which part of these people some fit of this process had; read without noise, for whoever holds them."""
        return REGISTER.part_learned_from(REGISTER.sketch(self._rows(features)))

    @property
    def columns(self) -> tuple[str, ...]:
        """A name for each coefficient of a score: the features', and city=Oslo for a category."""
        return self.preparation.columns.names(self.features)

    def predict(self, features: Any) -> NDArray[Any]:
        """Classes, or numbers of a regression."""
        scores = self.scores(features)
        if self.classes is None:
            return np.asarray(np.exp(scores)) if self.has_log_scores else scores
        chosen = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(np.int64)
        return np.asarray(np.array(self.classes)[chosen])

    @property
    def has_log_scores(self) -> bool:
        """Whether scores are logarithms of what is predicted: those of Poisson regression are."""
        return self.estimator == "ShufflePoissonRegressor"

    @property
    def has_probabilities(self) -> bool:
        """Whether scores are logits: those of logistic regression are."""
        return self.estimator == "ShuffleLogisticRegression"

    def probabilities(self, features: Any) -> Floats:
        """The second class's probability by logistic regression; with more classes that of each, a row a person."""
        if not self.has_probabilities:
            raise DataError("model", self.estimator, "must be a logistic regression", "use predict")
        scores = self.scores(features)
        return np.asarray(special.softmax(scores, axis=1) if scores.ndim == 2 else special.expit(scores))

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all the rest."""
        return fingerprint_of(self._content())

    def _content(self) -> dict[str, Any]:
        later = _SINCE if self.schema == 1 else ()
        written = {name: value for name, value in written_fields(self).items() if name not in later}
        return {"schema": self.schema, "kind": KIND, **written}

    def document(self) -> dict[str, Any]:
        """The model as JSON, of the version in which it was read."""
        content = self._content()
        return {**content, "fingerprint": fingerprint_of(content)}

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """The model that a JSON document describes; one of another version, or one that was altered, is refused."""
        if not isinstance(document, Mapping) or document.get("kind") != KIND:
            found = kind_of_document(document) or type(document).__name__
            raise DataError("model", found, f"must be an object of the kind {KIND}", _WAY_OUT)
        schema = document.get("schema")
        if schema not in (1, SCHEMA):
            raise other_version("model.schema", schema, f"1 or {SCHEMA}")
        content = {key: value for key, value in document.items() if key != "fingerprint"}
        if document.get("fingerprint") != fingerprint_of(content):
            raise DataError("model", document.get("fingerprint"), "must have its own fingerprint", _WAY_OUT)
        if schema == 1:
            try:
                content |= {"preparation": _declared_then(content).document(), "clipped": []}
            except (ParameterError, TypeError, ValueError):
                raise DataError("model", "other declared", "must have what was declared", _WAY_OUT) from None
        model = cls(**read_fields(cls, content, "model", _WAY_OUT))
        scores = 1 if model.classes is None or len(model.classes) == 2 else len(model.classes)
        shape = (model.preparation.columns.size,) if scores == 1 else (scores, model.preparation.columns.size)
        if model.coefficients.shape != shape or model.preparation.columns.width != len(model.features):
            raise DataError("model", model.coefficients.shape, "must have a finite number a feature", _WAY_OUT)
        if np.shape(model.intercept) != shape[:-1]:
            raise DataError("model", np.shape(model.intercept), "must have a finite intercept a score", _WAY_OUT)
        return model

    def save(self, path: Path | str) -> None:
        """Write the file, whole or not at all."""
        text = json.dumps(self.document(), indent=2, allow_nan=False) + "\n"
        with whole_file(Path(path)) as file:
            file.write(text.encode())


def _declared_then(content: Mapping[str, Any]) -> Preparation:
    """How rows were prepared in training for a file of the first version: by the bounds and the norm it declares."""
    declared, columns = content.get("declared"), len(_words(content.get("features")))
    if not isinstance(declared, Mapping) or not {"feature_bounds", "feature_norm"} <= declared.keys():
        return Preparation.none(columns)
    bounds, norm = declared["feature_bounds"], declared["feature_norm"]
    # Without either, rows were shortened to 1 in that version.
    return Preparation.of(columns, bounds=bounds, norm=1.0 if bounds is None and norm is None else norm)


def load_model(path: Path | str) -> LinearModel:
    """The model that `LinearModel.save` or `shuffledp fit` wrote.

    Args:
        path: the model's file.

    Returns:
        The model, which predicts without the estimator.

    Raises:
        DataError: the file cannot be read, or is no model's.

    >>> import tempfile
    >>> model = LinearModel(
    ...     estimator="ShuffleLogisticRegression", features=("age",), classes=("no", "yes"), solver="gd", users=10,
    ...     coefficients=np.array([2.0]), intercept=-1.0, guarantee={}, declared={}, simulated=False,
    ...     preparation=Preparation.of(["age"], bounds=(0, 1), norm=None),
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(Path(folder) / "model.json")
    ...     load_model(Path(folder) / "model.json").fingerprint == model.fingerprint
    True
    """
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError:
        raise DataError("model", str(path), "must be a file that can be read", "check the path") from None
    except (ValueError, RecursionError):
        raise DataError("model", str(path), "must be a complete JSON file", _WAY_OUT) from None
    return LinearModel.from_document(document)
