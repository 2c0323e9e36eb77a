"""Narrow bounds from wide ones: private, from people of their own."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from shuffledp import Privacy
from shuffledp.accounting.ledger import Ledger
from shuffledp.errors import InfeasibleError, ParameterError, RepeatedFitWarning
from shuffledp.learn import ShuffleLogisticRegression, ShuffleScaler


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    """A price, log-normal around 2,400, and a weight around 0.8."""
    rng = np.random.default_rng(1)
    return np.column_stack((np.exp(7.8 + rng.normal(size=12_000)), rng.gamma(4, 0.2, size=12_000)))


@pytest.fixture(scope="module")
def scaler(rows: np.ndarray) -> ShuffleScaler:
    return ShuffleScaler(bounds=[(0, 1e6), (0, 100)], people=1500, random_state=1).fit(rows)


def test_bounds_are_narrow_and_hold_most_people(rows: np.ndarray, scaler: ShuffleScaler) -> None:
    lows, highs = scaler.bounds_.T
    inside = ((rows >= lows) & (rows <= highs)).mean(axis=0)
    assert (inside > 0.8).all()
    assert highs[0] - lows[0] < 1e6 / 20 and highs[1] - lows[1] < 100 / 20
    scaled = scaler.transform(rows)
    assert np.abs(scaled).max() <= 1 and scaled.std(axis=0).min() > 0.2


def test_everybody_is_asked_once_at_most(rows: np.ndarray, scaler: ShuffleScaler) -> None:
    assert np.unique(scaler.asked_).size == scaler.asked_.size == 2 * 1500
    left, places = scaler.others(rows, np.arange(len(rows)))
    assert len(left) == 12_000 - 3000 and not np.isin(places, scaler.asked_).any()


def test_its_guarantee_is_one_groups(scaler: ShuffleScaler) -> None:
    guarantee = scaler.guarantee_
    assert guarantee.privacy == Privacy(1, 1e-6) and guarantee.holds and guarantee.delta > 0
    assert guarantee.delta == scaler.plan_.guarantee().delta and scaler.plan_.users == 1500
    assert scaler.simulated_


def test_people_who_are_not_asked_about_a_feature_do_not_move_its_bounds(rows: np.ndarray) -> None:
    """A row that is replaced moves what its own group is asked about, and nothing else."""
    before = ShuffleScaler(bounds=(0, 1e6), people=1500, random_state=2).fit(rows)
    other = rows.copy()
    free = np.setdiff1d(np.arange(len(rows)), before.asked_)
    other[free] = 1e6
    assert (ShuffleScaler(bounds=(0, 1e6), people=1500, random_state=2).fit(other).bounds_ == before.bounds_).all()


def test_a_model_of_the_others_is_better_for_it(rows: np.ndarray, scaler: ShuffleScaler) -> None:
    labels = (rows[:, 0] > 2000).astype(int)
    narrow = ShuffleLogisticRegression(classes=[0, 1], feature_bounds=scaler.bounds_, solver="agd", random_state=1)
    wide = clone(narrow).set_params(feature_bounds=[(0, 1e6), (0, 100)])
    right = narrow.fit(*scaler.others(rows, labels)).score(rows, labels)
    assert right > 0.85 > 0.7 > wide.fit(rows, labels).score(rows, labels)


def test_what_cannot_be_is_refused(rows: np.ndarray) -> None:
    for asked, error, words in (
        ({}, ParameterError, "bounds must say how far"),
        ({"bounds": (0, 1), "people": 7000}, InfeasibleError, "too few for 2 groups"),
        ({"bounds": (0, 1), "people": 20}, InfeasibleError, "ask more people"),
        ({"bounds": (0, 1), "rank": 0.5}, ParameterError, "rank"),
    ):
        with pytest.raises(error, match=words):
            ShuffleScaler(**asked).fit(rows)


def test_who_was_asked_is_registered_and_charged(rows: np.ndarray, tmp_path) -> None:
    """Those asked pay: a second scaler of the same people is counted, a model of the others is nobody's second."""
    own = rows + 0.25
    asked = {"bounds": (0, 1e6), "people": 1500, "random_state": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("error", RepeatedFitWarning)
        scaler = ShuffleScaler(**asked).fit(own)
        left = scaler.others(own)
        ShuffleScaler(**asked).fit(left[:3000])
    assert "1 fit so far" in scaler.guarantee_.because
    with pytest.warns(RepeatedFitWarning, match=r"question 2 .* together epsilon"):
        again = ShuffleScaler(**asked).fit(own[scaler.asked_])
    assert "2 fits so far" in again.guarantee_.because
    ledger = Ledger.open(tmp_path / "panel.json", "panel", Privacy(1.5, 1e-5))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RepeatedFitWarning)
        ShuffleScaler(**asked, ledger=ledger.path).fit(own)
    entry = Ledger.load(ledger.path).account.entries[0]
    assert (entry.users, entry.description) == (3000, "bounds of 2 features")
    unfitted = ShuffleScaler(**asked, ledger=ledger.path)
    with pytest.raises(InfeasibleError, match="budget"):
        unfitted.fit(own)
    assert len(Ledger.load(ledger.path).account.entries) == 1 and not hasattr(unfitted, "bounds_")
