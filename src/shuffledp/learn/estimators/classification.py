"""Two classes, told apart by a line: logistic regression and the linear support vector classifier."""

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from shuffledp.errors import DataError
from shuffledp.learn.estimators.base import ShuffleLinearModel
from shuffledp.learn.estimators.data import checked_data
from shuffledp.learn.estimators.declared import Floats
from shuffledp.learn.optimize import HingeLoss, LinearLoss, LogisticLoss
from shuffledp.learn.spec import refuse_first

# The base says in words what to install, so it comes first.
from sklearn.base import ClassifierMixin  # isort: skip
from sklearn.utils.multiclass import check_classification_targets  # isort: skip
from sklearn.utils.validation import check_is_fitted  # isort: skip


@dataclass(kw_only=True, eq=False, repr=False)
class ShuffleLinearClassifier(ClassifierMixin, ShuffleLinearModel):
    """Two classes by the sign of a score; `classes` declares which labels there are.

    If they are not declared they are read from people's labels, and the guarantee does not cover which there are.
    """

    classes: ArrayLike | None = None

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:  # noqa: N803
        """Learn from rows of features and a label each.

        Args:
            X: a row of features a person.
            y: each person's label, one of two.

        Returns:
            The estimator itself, fitted.

        Raises:
            DataError: data that cannot be learned from, or not two classes.
            InfeasibleError: too few people for the privacy asked for.
        """
        with self._all_or_nothing():
            return self._learn(X, y)

    def _learn(self, *data: ArrayLike) -> Self:
        features, labels = checked_data(self, *data)
        try:
            with warnings.catch_warnings():
                # It warns of many different labels, which are counted below, or refused by those declared.
                warnings.simplefilter("ignore", UserWarning)
                check_classification_targets(labels)
        except ValueError as refused:
            way_out = "for numbers take a regression (--task regression), or make labels of them"
            problem = f"must be one of two labels a person. {str(refused).partition('.')[0]}"
            raise DataError("y", f"dtype {labels.dtype}", problem, way_out) from None
        self.classes_ = np.unique(labels if self.classes is None else np.asarray(self.classes))
        if self.classes_.size == 1:
            problem = "must have two classes, and there is only one class"
            raise DataError("y", self.classes_[0], problem, "find people of another, or declare classes")
        if self.classes_.size > 2:
            problem = "must have two classes. Only binary classification is supported"
            raise DataError("y", f"{self.classes_.size} classes", problem, "tell one class from all others")
        targets, _ = self._scaled_targets(labels)
        coefficients, intercept = self._fit(features, targets, 0)
        self.coef_, self.intercept_ = coefficients[np.newaxis, :], np.array([intercept])
        return self

    def _scaled_targets(self, y: NDArray[Any]) -> tuple[Floats, int]:
        wanted = f"must be {self.classes_[0]} or {self.classes_[1]}"
        refuse_first("y", y, ~np.isin(y, self.classes_), wanted, "declare the classes there are", form="")
        return np.where(y == self.classes_[1], 1.0, -1.0), 0

    def _unprotected(self) -> tuple[str, ...]:
        return ("classes",) if self.classes is None else ()

    def decision_function(self, X: ArrayLike) -> Floats:  # noqa: N803
        """Scores: above 0 for the second of `classes_`."""
        return self._scores(X)

    def predict(self, X: ArrayLike) -> NDArray[Any]:  # noqa: N803
        """The likelier class of every row.

        Args:
            X: a row of features a person.

        Returns:
            One of `classes_` for each row.
        """
        scores = self.decision_function(X)
        return np.asarray(self.classes_[(scores > 0).astype(np.int64)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class ShuffleLogisticRegression(ShuffleLinearClassifier):
    """Logistic regression in the shuffle model: smooth, and with `alpha` strongly convex.

    >>> X = np.arange(1, 20_001)[:, np.newaxis] * np.sqrt([2, 3, 5]) % 2 - 1
    >>> y = X @ [3, -2, 0] > 0
    >>> model = ShuffleLogisticRegression(epsilon=1, delta=1e-6, feature_bounds=(-1, 1), random_state=1).fit(X, y)
    >>> model.score(X, y) > 0.9, model.guarantee_.model, model.guarantee_.holds
    (True, 'shuffle', True)
    """

    def _loss(self) -> LinearLoss:
        return LogisticLoss(ridge=self.alpha)

    def predict_proba(self, X: ArrayLike) -> Floats:  # noqa: N803
        """Of both classes, a row a person."""
        check_is_fitted(self)
        second = special.expit(self.decision_function(X))
        return np.column_stack((1 - second, second))


@dataclass(kw_only=True, eq=False, repr=False)
class ShuffleLinearSVC(ShuffleLinearClassifier):
    """The linear support vector classifier in the shuffle model: the hinge loss, convex and not smooth.

    >>> X = np.arange(1, 20_001)[:, np.newaxis] * np.sqrt([2, 3]) % 2 - 1
    >>> y = np.where(X[:, 0] > X[:, 1], "left", "right")
    >>> model = ShuffleLinearSVC(epsilon=1, delta=1e-6, feature_bounds=(-1, 1), random_state=1).fit(X, y)
    >>> model.score(X, y) > 0.9, model.predict([[1, -1]]).tolist()
    (True, ['left'])
    """

    def _loss(self) -> LinearLoss:
        return HingeLoss(ridge=self.alpha)
