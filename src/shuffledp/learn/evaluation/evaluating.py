"""A model on people who were kept out: their scores and labels become codes, and codes an evaluation."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import DataError, ParameterError, RepeatedFitWarning
from shuffledp.learn.callers import warn_caller
from shuffledp.learn.evaluation.cells import ScoreKind
from shuffledp.learn.evaluation.enough import judged
from shuffledp.learn.evaluation.metrics import Evaluation
from shuffledp.learn.evaluation.planned import EvaluationPlan
from shuffledp.learn.fit_spending import Budget, charge_plan
from shuffledp.learn.spec import as_floats, in_row
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
    ledger: Budget = None,
) -> Evaluation:
    """AUC, accuracy, log loss, Brier score and calibration of a classifier, private for the people it is tried on.

    Args:
        model: a classifier: a `LinearModel`, or anything with `classes_` and `decision_function` or `predict_proba`. It
            must not have learned from these people. Of more than two classes accuracy and the calibration of its
            confidence are told.
        X: features, a row a person.
        y: labels, each one of the model's classes.
        epsilon: what holds for every person over all metrics together.
        delta: the probability left over.
        bins: into how many intervals scores are cut; by the number of people if left out.
        honest_fraction: the people who are counted on to add their noise.
        random_state: None draws secure bits; a seed repeats a simulation and protects nobody.
        ledger: a `Ledger` or its file, whose budget is charged before anybody is asked; None counts what this process
            asked the same people, and warns from the second time on.

    Returns:
        Every metric with an interval; all of them hold together. Those that say nothing say so.

    Raises:
        DataError: a label that is none of the model's classes, a score that is no number, or mostly people whom a fit
            of this process learned from; nothing is spent.
        InfeasibleError: the people are too few for this privacy, or the ledger's budget does not cover it.

    >>> from types import SimpleNamespace
    >>> model = SimpleNamespace(classes_=[0, 1], decision_function=lambda X: 2 * X[:, 0])
    >>> X = np.linspace(-2, 2, 8000)[:, None]
    >>> found = evaluate(model, X, (X[:, 0] > 0.5).astype(int), epsilon=1.0, random_state=1)
    >>> found["auc"].lower > 0.9, abs(found["accuracy"].value - 0.875) < 0.05
    (True, True)
    """
    found = scored(model, X, y)
    doubts = _kept_out(model, X, len(found.labels))
    bits = RandomBits.secure() if random_state is None else RandomBits.seeded(random_state)
    asked = {"privacy": Privacy(epsilon, delta), "bins": bins, "honest_fraction": honest_fraction}
    plan, codes = _planned(found.logits, found.labels, scores=found.scores, **asked)
    charge_plan(ledger, plan.ranges, X, "an evaluation of a model")
    return _read(plan, codes, bits, doubts, classes=found.classes)


def evaluate_scores(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    privacy: Privacy,
    bits: RandomBits,
    scores: ScoreKind = "probabilities",
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
        scores: what they are: "probabilities", "scores" or "confidence".
        bins: into how many intervals scores are cut; by the number of people if left out.
        honest_fraction: the people who are counted on to add their noise.
        warnings: what speaks against the figures.

    Returns:
        Every metric with its interval.
    """
    asked = {"privacy": privacy, "bins": bins, "honest_fraction": honest_fraction}
    plan, codes = _planned(logits, labels, scores=scores, **asked)
    return _read(plan, codes, bits, warnings)


def _read(
    plan: EvaluationPlan, codes: Codes, bits: RandomBits, warnings: tuple[str, ...], *, classes: int = 2
) -> Evaluation:
    """What these people say by the plan, and which of it says nothing."""
    found = plan.read(plan.ranges.sample_estimate(codes, bits=bits), warnings=warnings)
    return judged(found, plan, classes=classes)


def _planned(logits: ArrayLike, labels: ArrayLike, **asked: Any) -> tuple[EvaluationPlan, Codes]:
    """How these people are asked, and what each would say: nothing is spent yet."""
    found, marked = as_floats("scores", logits), places_of(labels, (0, 1))
    if found.ndim != 1 or found.shape != marked.shape:
        raise DataError("scores", f"shape {found.shape}", f"must be {marked.size} numbers", "pass one a person")
    plan = EvaluationPlan.plan(users=len(marked), **asked)
    return plan, plan.cells.codes(found, marked)


# Estimates of how many are alike by chance are not off by so many.
_HARDLY_CHANCE = 0.5
# Of fewer nothing is said: one person more or less among those who learned must not be seen.
_SOME = 0.05


def _kept_out(model: Any, X: ArrayLike, people: int) -> tuple[str, ...]:  # noqa: N803
    """What speaks for people whom the model learned from; where most are known to be such, an error.

    Fits of this process are remembered; a model's file knows nothing of rows. Whose rows are alike is read without
    noise: it is told to whoever holds them, coarsely, and is no part of what is published.
    """
    part = model.part_learned_from(X) if hasattr(model, "part_learned_from") else 0.0
    if part > _HARDLY_CHANCE:
        wanted = "must be of people who were kept out: these would look too good, and pay twice"
        raise DataError("data", "mostly rows that were learned from", wanted, "keep rows out before fitting")
    if part > _SOME:
        warn_caller(
            "Some of these rows are as rows that were learned from: were they kept out? (Read without noise, for "
            "whoever holds the rows; no part of the evaluation.)",
            RepeatedFitWarning,
        )
    if getattr(model, "users", getattr(model, "n_users_", None)) == people:
        return (f"The model learned from {people:,} people, as many as these: were they kept out?",)
    return ()


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """People's scores as logits, labels 0 and 1, what both are, and how many classes the model tells apart."""

    logits: Floats
    labels: Codes
    scores: ScoreKind
    classes: int = 2

    def truth(self, limit: float = 8.0) -> dict[str, float | None]:
        """Metrics read from the data without noise and without bins: not for publication."""
        return true_metrics(self.logits, self.labels, limit=limit, scores=self.scores)


def scored(model: Any, X: ArrayLike, y: ArrayLike) -> Scored:  # noqa: N803
    """What a model says about people, beside their labels.

    Raises:
        ParameterError: the model is no classifier, or has no scores.
        DataError: a label that is none of its classes.
    """
    classes = getattr(model, "classes_", None)
    if classes is None:
        classes = getattr(model, "classes", None)
    if classes is None or len(classes) < 2:
        raise ParameterError("model", type(model).__name__, "must be a classifier", "predict takes others")
    places = places_of(y, classes)
    if len(classes) == 2 and hasattr(model, "scores"):
        kind: ScoreKind = "probabilities" if model.has_probabilities else "scores"
        return Scored(np.asarray(model.scores(X), dtype=np.float64), places, kind)
    likely = getattr(model, "predict_proba", getattr(model, "probabilities", None))
    if likely is None:
        if len(classes) > 2 or not hasattr(model, "decision_function"):
            raise ParameterError("model", type(model).__name__, "must have probabilities", "take a logistic one")
        return Scored(np.asarray(model.decision_function(X), dtype=np.float64), places, "scores")
    chances = np.asarray(likely(X), dtype=np.float64)
    if chances.shape != (len(places), len(classes)):
        wanted = f"must be a probability a person and class, ({len(places)}, {len(classes)})"
        raise DataError("probabilities", f"shape {chances.shape}", wanted, "pass a row and a label a person")
    if len(classes) == 2:
        return Scored(_logits(chances[:, 1]), places, "probabilities")
    said = chances.argmax(axis=1)
    right = np.asarray(said == places, dtype=np.int64)
    return Scored(_logits(chances[np.arange(len(said)), said]), right, "confidence", len(classes))


def _logits(chances: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(chances) - np.log1p(-chances))


def places_of(y: ArrayLike, classes: Any) -> Codes:
    """Which of the classes each label is, from 0.

    Raises:
        DataError: a label that is none of them; the sentence names its row.
    """
    labels = np.asarray(y)
    if labels.ndim != 1 or not labels.size:
        raise DataError("labels", f"shape {labels.shape}", "must be a label a person", "pass one column")
    found = np.full(labels.size, -1, dtype=np.int64)
    for place, label in enumerate(classes):
        found[labels == label] = place
    for row in np.flatnonzero(found < 0)[:1].tolist():
        wanted = f"must be one of the model's classes {', '.join(map(str, classes))}"
        raise DataError("labels", in_row(row, labels[row]), wanted, "leave that person out")
    return found


def true_metrics(logits: Floats, labels: Codes, *, limit: float, scores: ScoreKind) -> dict[str, float | None]:
    """All metrics read from the data without noise and without bins: not for publication.

    >>> true_metrics(np.array([-1.0, 1.0]), np.array([0, 1]), limit=8.0, scores="scores")
    {'auc': 1.0, 'accuracy': 1.0, 'positive_rate': 0.5}
    """
    positive = labels == 1
    with np.errstate(over="ignore"):
        chances = 1 / (1 + np.exp(-logits))
    if scores == "confidence":
        return {"accuracy": float(positive.mean()), "mean_confidence": float(chances.mean())}
    yes, no = logits[positive], np.sort(logits[~positive])
    wins = np.searchsorted(no, yes, side="left") + np.searchsorted(no, yes, side="right")
    found: dict[str, float | None] = {
        "auc": float(wins.mean() / (2 * no.size)) if yes.size and no.size else None,
        "accuracy": float(((logits > 0) == positive).mean()),
        "positive_rate": float(positive.mean()),
    }
    if scores == "probabilities":
        signed = np.where(positive, -1.0, 1.0) * np.clip(logits, -limit, limit)
        found["log_loss"] = float(np.logaddexp(0.0, signed).mean())
        found["brier"] = float(((chances - positive) ** 2).mean())
        found["mean_prediction"] = float(chances.mean())
    return found
