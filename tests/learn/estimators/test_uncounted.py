"""Bounds that are far off are told, also where too few people are there to count it privately."""

import warnings

import numpy as np
import pytest

from shuffledp import Privacy
from shuffledp.errors import UncountedBoundsWarning
from shuffledp.learn import ShuffleLogisticRegression, ShuffleRidge
from shuffledp.learn.estimators.clipping import ClipCounts, ClippedWarning

PEOPLE = np.random.default_rng(1).uniform(0, 1, (5000, 2))
LABELS = (PEOPLE[:, 0] > 0.5).astype(int)


def fitted(bounds, people: int = 600) -> ShuffleLogisticRegression:
    known = {"feature_bounds": bounds, "classes": [0, 1], "random_state": 1, "solver": "agd"}
    return ShuffleLogisticRegression(**known).fit(PEOPLE[:people], LABELS[:people])


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ((0, 0.7), "More than 10% of rows were cut off or shortened: declare feature_bounds"),
        ((5, 9), "More than 10% of rows"),
        ([(0, 1), (0, 1000)], "1 of 2 features use less than 2% of their declared bounds"),
    ],
)
def test_whoever_holds_the_rows_is_told_that_bounds_are_far_off(bounds, words: str) -> None:
    with pytest.warns(UncountedBoundsWarning, match=words):
        fitted(bounds)


def test_bounds_that_fit_and_counts_that_were_made_say_nothing_here() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UncountedBoundsWarning)
        assert fitted((0, 1)).clipped_counted_from_ == 4000
        with pytest.warns(ClippedWarning):
            counted = fitted((0, 0.5), people=5000)
    assert counted.clipped_counted_from_ is None and counted.clipped_shares_[0].is_too_much


def test_targets_are_looked_at_too() -> None:
    model = ShuffleRidge(feature_bounds=(0, 1), target_bounds=(0, 0.5), random_state=1, solver="agd")
    with pytest.warns(UncountedBoundsWarning, match="targets were cut off: declare target_bounds"):
        model.fit(PEOPLE[:600], PEOPLE[:600, 0])
    assert model.clipped_counted_from_ == 8000


@pytest.mark.parametrize("questions", [("rows",), ("rows", "targets")])
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_from_so_many_people_on_it_is_counted_and_from_fewer_it_is_not(questions, epsilon: float) -> None:
    privacy = Privacy(epsilon, 1e-6)
    enough = ClipCounts.counted_from(questions, privacy)
    if enough is not None:
        assert ClipCounts.planned("auto", enough, questions, privacy).users > 0
        assert ClipCounts.planned("auto", enough - 60 * 20, questions, privacy).users == 0
    else:
        assert ClipCounts.planned("auto", 10**6, questions, privacy).users == 0
