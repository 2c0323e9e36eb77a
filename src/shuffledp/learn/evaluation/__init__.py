"""How good a model is, on people who were kept out and whose scores and labels nobody sees.

Each person reports once, in which cell of a public grid their score and their label lie. All metrics are computed from
the same noisy counts: one epsilon for all of them, and intervals that hold together. docs/theory says why they do.
"""

from shuffledp.learn.evaluation.cells import ScoreCells
from shuffledp.learn.evaluation.enough import people_needed
from shuffledp.learn.evaluation.evaluating import evaluate, evaluate_scores
from shuffledp.learn.evaluation.metrics import CalibrationGroup, Evaluation, Metric
from shuffledp.learn.evaluation.planned import EvaluationPlan

__all__ = [
    "CalibrationGroup",
    "Evaluation",
    "EvaluationPlan",
    "Metric",
    "ScoreCells",
    "evaluate",
    "evaluate_scores",
    "people_needed",
]
