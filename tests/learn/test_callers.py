"""A warning names the line of whoever called, directly or through scikit-learn."""

import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from shuffledp.errors import RepeatedFitWarning, TooFewPeopleWarning
from shuffledp.learn import ShuffleLogisticRegression
from shuffledp.learn.evaluation import evaluate

PEOPLE = np.linspace(0, 1, 1200).reshape(400, 3)
LABELS = np.arange(400) % 2
MODEL = ShuffleLogisticRegression(feature_bounds=(0, 1), classes=[0, 1], random_state=1, solver="agd")


def asked_directly() -> None:
    clone(MODEL).fit(PEOPLE, LABELS)


def asked_in_a_pipeline() -> None:
    make_pipeline(FunctionTransformer(), clone(MODEL)).fit(PEOPLE, LABELS)


def asked_for_figures() -> None:
    evaluate(
        SimpleNamespace(classes_=[0, 1], decision_function=lambda rows: rows[:, 0]), PEOPLE, LABELS, random_state=1
    )


@pytest.mark.parametrize("ask", [asked_directly, asked_in_a_pipeline, asked_for_figures])
def test_every_warning_points_at_the_line_that_asked(ask) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RepeatedFitWarning)
        warnings.simplefilter("always", TooFewPeopleWarning)
        asked_directly()
        caught.clear()
        ask()
    lines = {(Path(each.filename).name, each.lineno) for each in caught}
    assert any(issubclass(each.category, RepeatedFitWarning) for each in caught)
    assert lines == {(Path(__file__).name, ask.__code__.co_firstlineno + 1)}
