"""A model on people who were kept out: their scores and labels become codes, and codes an evaluation."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import DataError, ParameterError
from shuffledp.learn.evaluation.metrics import Evaluation
from shuffledp.learn.evaluation.planned import EvaluationPlan
from shuffledp.learn.spec import as_floats
from shuffledp.privacy import Privacy
from shuffledp.randomness import RandomBits

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


def evaluate(
    model: Any,
    X: ArrayLike,  # noqa: N803
    y: ArrayLike,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    bins: int | None = None,
    honest_fraction: float = 1.0,
    random_state: int | None = None,
) -> Evaluation:
    """AUC, accuracy, log loss, Brier score and calibration of a classifier, private for the people it is tried on.

    Args:
        model: a classifier of two classes: a `LinearModel`, or anything with `classes_` and `decision_function` or
            `predict_proba`. It must not have learned from these people.
        X: features, a row a person.
        y: labels, each one of the model's two classes.
        epsilon: what holds for every person over all metrics together.
        delta: the probability left over.
        bins: into how many intervals scores are cut; by the number of people if left out.
        honest_fraction: the people who are counted on to add their noise.
        random_state: None draws secure bits; a seed repeats a simulation and protects nobody.

    Returns:
        Every metric with an interval; all of them hold together.

    Raises:
        DataError: a label that is none of the model's classes, or a score that is no number; nothing is spent.
        InfeasibleError: the people are too few for this privacy.

    >>> from shuffledp.learn import LinearModel
    >>> model = LinearModel(
    ...     estimator="ShuffleLogisticRegression", features=("x",), classes=(0, 1), solver="gd", users=9,
    ...     coefficients=np.array([2.0]), intercept=0.0, guarantee={}, declared={}, simulated=False,
    ... )
    >>> X = np.linspace(-2, 2, 8000)[:, None]
    >>> found = evaluate(model, X, (X[:, 0] > 0.5).astype(int), epsilon=1.0, random_state=1)
    >>> found["auc"].lower > 0.9, abs(found["accuracy"].value - 0.875) < 0.05
    (True, True)
    """
    classes = getattr(model, "classes_", None)
    if classes is None:
        classes = getattr(model, "classes", None)
    if classes is None or len(classes) != 2:
        shown = None if classes is None else list(classes)
        raise ParameterError("model", shown, "must be a classifier of two classes", "fit one with --classes A,B")
    labels = labels_of(y, classes)
    logits, probabilities = logits_of(model, X)
    warnings: tuple[str, ...] = ()
    if getattr(model, "users", getattr(model, "n_users_", None)) == len(labels):
        warnings = (f"The model learned from {len(labels):,} people, as many as these: were they kept out?",)
    return evaluate_scores(
        logits,
        labels,
        privacy=Privacy(epsilon, delta),
        probabilities=probabilities,
        bins=bins,
        honest_fraction=honest_fraction,
        bits=RandomBits.secure() if random_state is None else RandomBits.seeded(random_state),
        warnings=warnings,
    )


def evaluate_scores(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    privacy: Privacy,
    bits: RandomBits,
    probabilities: bool = True,
    bins: int | None = None,
    honest_fraction: float = 1.0,
    warnings: tuple[str, ...] = (),
) -> Evaluation:
    """As `evaluate`, from people's scores as logits and labels 0 and 1: the estimate is drawn from its law.

    Args:
        logits: a score a person; the prediction is label 1 above 0.
        labels: 0 or 1 a person.
        privacy: what holds for every person over all metrics together.
        bits: where the noise comes from.
        probabilities: whether scores are logits of predicted probabilities.
        bins: into how many intervals scores are cut; by the number of people if left out.
        honest_fraction: the people who are counted on to add their noise.
        warnings: what speaks against the figures.
    """
    scores, marked = as_floats("scores", logits), labels_of(labels, (0, 1))
    if scores.ndim != 1 or scores.shape != marked.shape:
        raise DataError("scores", f"shape {scores.shape}", f"must be {marked.size} numbers", "pass one a person")
    limits = {"bins": bins, "honest_fraction": honest_fraction, "probabilities": probabilities}
    plan = EvaluationPlan.plan(users=len(marked), privacy=privacy, **limits)  # type: ignore[arg-type]
    codes = plan.cells.codes(scores, marked)
    return plan.read(plan.ranges.sample_estimate(codes, bits=bits), warnings=warnings)


def labels_of(y: ArrayLike, classes: Any) -> Codes:
    """0 for the first class and 1 for the second.

    Raises:
        DataError: a label that is neither; the sentence names its row.
    """
    labels = np.asarray(y)
    if labels.ndim != 1 or not labels.size:
        raise DataError("labels", f"shape {labels.shape}", "must be a label a person", "pass one column")
    first, second = (labels == label for label in classes)
    for row in np.flatnonzero(~(first | second))[:1].tolist():
        wanted = f"must be one of the model's classes {classes[0]}, {classes[1]}"
        raise DataError("labels", f"{labels[row]} in row {row + 1}", wanted, "leave that person out")
    return np.asarray(second, dtype=np.int64)


def logits_of(model: Any, X: ArrayLike) -> tuple[Floats, bool]:  # noqa: N803
    """Every person's score as a logit, and whether it is one of a predicted probability."""
    if hasattr(model, "scores"):
        return np.asarray(model.scores(X), dtype=np.float64), bool(model.has_probabilities)
    if hasattr(model, "predict_proba"):
        chances = np.asarray(model.predict_proba(X), dtype=np.float64)[:, 1]
        with np.errstate(divide="ignore"):
            return np.log(chances) - np.log1p(-chances), True
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X), dtype=np.float64), False
    raise ParameterError("model", type(model).__name__, "must have scores", "take one with decision_function")


def true_metrics(logits: Floats, labels: Codes, *, limit: float, probabilities: bool) -> dict[str, float | None]:
    """The same metrics read from the data without noise and without bins: not for publication.

    >>> true_metrics(np.array([-1.0, 1.0]), np.array([0, 1]), limit=8.0, probabilities=False)
    {'auc': 1.0, 'accuracy': 1.0, 'positive_rate': 0.5}
    """
    positive = labels == 1
    yes, no = logits[positive], np.sort(logits[~positive])
    wins = np.searchsorted(no, yes, side="left") + np.searchsorted(no, yes, side="right")
    found: dict[str, float | None] = {
        "auc": float(wins.mean() / (2 * no.size)) if yes.size and no.size else None,
        "accuracy": float(((logits > 0) == positive).mean()),
        "positive_rate": float(positive.mean()),
    }
    if probabilities:
        with np.errstate(over="ignore"):
            chances = 1 / (1 + np.exp(-logits))
        signed = np.where(positive, -1.0, 1.0) * np.clip(logits, -limit, limit)
        found["log_loss"] = float(np.logaddexp(0.0, signed).mean())
        found["brier"] = float(((chances - positive) ** 2).mean())
        found["mean_prediction"] = float(chances.mean())
    return found
