"""Classes, told apart by scores: logistic regression and the linear support vector classifier."""

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from shuffledp.errors import DataError, ParameterError
from shuffledp.learn.estimators.base import is_poor_for_few
from shuffledp.learn.estimators.data import checked_data
from shuffledp.learn.estimators.declared import Changed, Floats
from shuffledp.learn.estimators.online import OnlineModel
from shuffledp.learn.estimators.weights import weights_of_classes
from shuffledp.learn.optimize import HingeLoss, LogisticLoss, Loss, SoftmaxLoss
from shuffledp.learn.spec import refuse_first

# The base says in words what to install, so it comes first.
from sklearn.base import ClassifierMixin  # isort: skip
from sklearn.utils.multiclass import check_classification_targets  # isort: skip
from sklearn.utils.validation import check_is_fitted  # isort: skip

_MOST_NAMED = 5
# More labels than these, that nobody declared, are rather numbers.
_MOST_READ = 20


@dataclass(kw_only=True, eq=False, repr=False)
class ShuffleLinearClassifier(ClassifierMixin, OnlineModel):
    """Classes by scores; `classes` declares which labels there are.

    If they are not declared they are read from people's labels, and the guarantee does not cover which there are.
    `class_weight` is how much a person of each class counts, as declared: {"no": 1, "yes": 9}.

    Attributes:
        classes: which labels there are; if left out they are read from people's labels, uncovered.
        class_weight: how much a person of each class counts, by class.
    """

    classes: ArrayLike | None = None
    class_weight: Any = None

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:  # noqa: N803
        """Learn from rows of features and a label each.

        Args:
            X: a row of features a person: an array, a data frame, or sparse rows.
            y: each person's label, one of the classes.
            sample_weight: how much each person's loss counts, at most `max_weight`; as private as the row.

        Returns:
            The estimator itself, fitted.

        Raises:
            DataError: data that cannot be learned from, or labels that are none of the classes.
            ParameterError: something that must be declared was not.
            InfeasibleError: too few people for the privacy asked for.
        """
        return self._begin(lambda: self._learn(X, y, sample_weight))

    def partial_fit(
        self,
        X: ArrayLike,  # noqa: N803
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Go on learning from new people: none of them may have been in a call before.

        Args:
            X: a row of features for each new person.
            y: each person's label.
            classes: all labels there are, in the first call, unless the estimator declares them.
            sample_weight: how much each person's loss counts, at most `max_weight`.

        Returns:
            The estimator itself: the mean of all calls' models, weighted by people. Each call begins at the one before.

        Raises:
            DataError: data that cannot be learned from, or labels that are none of the classes.
            InfeasibleError: too few new people for the privacy asked for.
        """
        return self._go_on(lambda: self._learn(X, y, sample_weight, classes))

    def _learn(self, X: Any, y: Any, sample_weight: Any, classes: Any = None) -> None:  # noqa: N803
        begun = self._has_begun
        people, labels = checked_data(self, X, y, reset=not begun)
        try:
            with warnings.catch_warnings():
                # It warns of many different labels, which are counted below, or refused by those declared.
                warnings.simplefilter("ignore", UserWarning)
                check_classification_targets(labels)
        except ValueError as refused:
            way_out = "for numbers take a regression (--task regression), or make labels of them"
            problem = f"must be one of a few labels a person. {str(refused).partition('.')[0]}"
            raise DataError("y", f"dtype {labels.dtype}", problem, way_out) from None
        if not begun:
            declared = self.classes if classes is None else classes
            self._labels_read = declared is None
            self.classes_ = np.unique(labels if declared is None else np.asarray(declared))
            self._check_classes()
        self._fit_targets(people, labels, self._weights_by_class(labels, sample_weight))

    def _declare(self) -> None:
        if self.classes is None or self.class_weight is not None:
            name = "classes" if self.classes is None else "class_weight"
            problem = "must be said before rows are read" if self.classes is None else "needs all rows in memory"
            raise ParameterError(name, getattr(self, name), problem, "declare classes, or fit fewer rows")
        self._labels_read = False
        self.classes_ = np.unique(np.asarray(self.classes))
        self._check_classes()

    def _set_model(self, coefficients: Floats, intercepts: Floats) -> None:
        self.coef_, self.intercept_ = coefficients, intercepts

    def _check_classes(self) -> None:
        if self.classes_.size == 1:
            problem = "must have two classes, and there is only one class"
            raise DataError("y", "one class", problem, "find people of another, or declare classes")
        if self.classes_.size > 2:
            problem = "must have two classes. Only binary classification is supported"
            raise DataError("y", f"{self.classes_.size} classes", problem, "take ShuffleLogisticRegression")

    def _weights_by_class(self, labels: NDArray[Any], weights: Any) -> Any:
        """Everybody's weight times that of the class, divided by the largest, which is declared."""
        by_class = weights_of_classes(self.class_weight, self.classes_)
        if by_class is None:
            return weights
        own = (by_class / by_class.max())[np.searchsorted(self.classes_, labels)]
        return own * self.max_weight if weights is None else own * np.asarray(weights, dtype=np.float64)

    def _numbered(self, y: NDArray[Any]) -> NDArray[np.intp]:
        """Labels as places in `classes_`."""
        names = self.classes_.tolist()
        more = " ..." if len(names) > _MOST_NAMED else ""
        wanted = f"must be {', '.join(map(str, names[:-1][:_MOST_NAMED]))}{more} or {names[-1]}"
        refuse_first("y", y, ~np.isin(y, self.classes_), wanted, "declare the classes there are")
        return np.searchsorted(self.classes_, y)

    def _scaled_targets(self, y: NDArray[Any]) -> tuple[Floats, Changed]:
        places = self._numbered(y).astype(np.float64)
        several = self.classes_.size > 2
        return places if several else 2 * places - 1, np.zeros(len(y), dtype=np.bool_)

    def _unprotected(self) -> tuple[str, ...]:
        return ("classes",) if self._labels_read else ()

    def _scores_planned(self) -> int:
        """How many scores a model has: one for two classes, else one for each."""
        classes = self.__dict__.get("classes_") if self.classes is None else np.unique(np.asarray(self.classes))
        return 1 if classes is None or len(classes) <= 2 else len(classes)

    def decision_function(self, X: ArrayLike) -> Floats:  # noqa: N803
        """Scores: above 0 for the second of two `classes_`, or a score for each of more."""
        return self._scores(X)

    def predict(self, X: ArrayLike) -> NDArray[Any]:  # noqa: N803
        """The likelier class of every row.

        Args:
            X: a row of features a person.

        Returns:
            One of `classes_` for each row.
        """
        scores = self.decision_function(X)
        chosen = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(np.int64)
        return np.asarray(self.classes_[chosen])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = is_poor_for_few(self.epsilon)
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class ShuffleLogisticRegression(ShuffleLinearClassifier):
    """Logistic regression in the shuffle model: smooth, and with `alpha` strongly convex but for the intercept.

    More than two classes have a score each, and one gradient a person for all of them: one epsilon, whatever their
    number.

    >>> X = np.arange(1, 20_001)[:, np.newaxis] * np.sqrt([2, 3, 5]) % 2 - 1
    >>> y = X @ [3, -2, 0] > 0
    >>> model = ShuffleLogisticRegression(epsilon=1, delta=1e-6, feature_bounds=(-1, 1), random_state=1).fit(X, y)
    >>> model.score(X, y) > 0.9, model.guarantee_.model, model.guarantee_.holds
    (True, 'shuffle', True)
    """

    def _loss(self) -> Loss:
        scores = self._scores_planned()
        return LogisticLoss(ridge=self.alpha) if scores == 1 else SoftmaxLoss(classes=scores, ridge=self.alpha)

    def _check_classes(self) -> None:
        if self.classes_.size < 2:
            super()._check_classes()
        if self._labels_read and self.classes_.size > _MOST_READ:
            problem = f"must be one of at most {_MOST_READ} labels where classes are read from them"
            way_out = "declare classes, or take a regression for numbers (--task regression)"
            raise DataError("y", f"{self.classes_.size} classes", problem, way_out)

    def predict_proba(self, X: ArrayLike) -> Floats:  # noqa: N803
        """How likely each class is.

        Args:
            X: a row of features a person.

        Returns:
            A row a person, a column for each of `classes_`.
        """
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: ArrayLike) -> Floats:  # noqa: N803
        """The logarithms of `predict_proba`, exact where those would be rounded to 0 or 1.

        Args:
            X: a row of features a person.

        Returns:
            A row a person, a column for each of `classes_`.
        """
        check_is_fitted(self)
        scores = self.decision_function(X)
        if scores.ndim == 2:
            return np.asarray(special.log_softmax(scores, axis=1))
        return np.column_stack((special.log_expit(-scores), special.log_expit(scores)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class ShuffleLinearSVC(ShuffleLinearClassifier):
    """The linear support vector classifier in the shuffle model: two classes, the hinge loss, convex and not smooth.

    >>> X = np.arange(1, 20_001)[:, np.newaxis] * np.sqrt([2, 3]) % 2 - 1
    >>> y = np.where(X[:, 0] > X[:, 1], "left", "right")
    >>> model = ShuffleLinearSVC(epsilon=1, delta=1e-6, feature_bounds=(-1, 1), random_state=1).fit(X, y)
    >>> model.score(X, y) > 0.9, model.predict([[1, -1]]).tolist()
    (True, ['left'])
    """

    def _loss(self) -> Loss:
        return HingeLoss(ridge=self.alpha)
