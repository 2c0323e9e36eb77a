"""Fits of the same people add up: charged to a ledger, or counted and warned about."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from shuffledp import Privacy
from shuffledp.accounting.ledger import Ledger
from shuffledp.accounting.spending import Spending
from shuffledp.errors import (
    FittedScalingWarning,
    InfeasibleError,
    ParameterError,
    RepeatedFitWarning,
    TooFewPeopleWarning,
)
from shuffledp.learn import ShuffleLogisticRegression
from shuffledp.learn.fit_register import KEPT, FitRegister
from shuffledp.learn.fit_spending import FitSpending, entry_of_solver, warn_if_scaled_by_data

ASKED = {"classes": [0, 1], "feature_bounds": (-4, 4), "solver": "agd", "max_rounds": 4, "random_state": 1}


def people(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(count, 2))
    return features, (features[:, 0] > 0).astype(int)


def test_the_second_fit_of_the_same_people_is_counted_and_composed() -> None:
    rows, labels = people(600, 1)
    model = ShuffleLogisticRegression(**ASKED)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RepeatedFitWarning)
        model.fit(rows, labels)
    assert "of this fit; 1 fit so far" in str(model.guarantee_)
    with pytest.warns(RepeatedFitWarning, match=r"fit 2 .* epsilon 1 again, together epsilon 1"):
        model.fit(rows[300:], labels[300:])
    assert "2 fits so far" in str(model.guarantee_)
    together = float(str(model.guarantee_).split("together epsilon ")[1].split(",")[0])
    # Two Gaussian pairs have sqrt(2) times the shift: more than one fit's epsilon, less than the sum.
    assert 1.2 < together < 2
    with warnings.catch_warnings():
        warnings.simplefilter("error", RepeatedFitWarning)
        model.fit(*people(600, 2))


def test_fits_compose_as_the_ledger_composes_them() -> None:
    solver = ShuffleLogisticRegression(**ASKED).fit(*people(500, 9)).solver_
    entry = entry_of_solver(solver)
    assert entry is not None and entry.extra_delta > 0
    spending = FitSpending((entry,) * 3)
    epsilon, delta = spending.together()
    assert delta == pytest.approx(6e-6)
    assert Spending(spending.entries).epsilon(delta) == pytest.approx(epsilon, rel=0.01)
    # A bare claim adds up: nothing is known of its pair.
    bare = FitSpending((entry, entry, entry.claim_only()))
    assert epsilon < bare.together()[0] <= 3


def test_clones_of_a_cross_validation_share_the_count() -> None:
    rows, labels = people(900, 3)
    with pytest.warns(RepeatedFitWarning) as said:
        cross_val_score(ShuffleLogisticRegression(**ASKED), rows, labels, cv=3)
    words = [str(each.message) for each in said if each.category is RepeatedFitWarning]
    assert [word.split("fit ")[1].split()[0] for word in words] == ["2", "3"]


def test_a_ledger_is_charged_once_a_fit_and_refuses_what_it_does_not_cover(tmp_path) -> None:
    rows, labels = people(600, 4)
    ledger = Ledger.open(tmp_path / "panel.json", "panel", Privacy(2, 1e-5))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RepeatedFitWarning)
        for given, times in ((ledger.path, 1), (ledger, 2)):
            model = ShuffleLogisticRegression(**ASKED, ledger=given).fit(rows, labels)
            assert len(Ledger.load(ledger.path).account.entries) == times
        greedy = ShuffleLogisticRegression(**ASKED, epsilon=3, ledger=ledger.path)
        with pytest.raises(InfeasibleError, match="budget"):
            greedy.fit(rows, labels)
    spent = Ledger.load(ledger.path)
    assert len(spent.account.entries) == 2 and spent.left().epsilon_spent <= 2 and not hasattr(greedy, "coef_")
    assert spent.account.entries[0].fingerprint == model.solver_.fingerprint
    assert "charged to the ledger of panel" in str(model.guarantee_)
    with pytest.raises(ParameterError, match="ledger must be a Ledger or its file"):
        ShuffleLogisticRegression(**ASKED, ledger=7).fit(rows, labels)


def test_a_warning_that_is_an_error_spends_nothing(tmp_path) -> None:
    rows, labels = people(40, 5)
    ledger = Ledger.open(tmp_path / "few.json", "few", Privacy(9, 1e-5))
    with warnings.catch_warnings():
        warnings.simplefilter("error", TooFewPeopleWarning)
        with pytest.raises(TooFewPeopleWarning, match=r"40 people are too few.*From about .* people on"):
            ShuffleLogisticRegression(**ASKED, epsilon=0.5, ledger=ledger.path).fit(rows, labels)
    assert Ledger.load(ledger.path).account.entries == ()


def test_sketches_find_shared_rows_and_no_others() -> None:
    register, rng = FitRegister(), np.random.default_rng(6)
    rows, targets = rng.normal(size=(3 * KEPT, 3)), np.zeros(3 * KEPT)
    whole = register.sketch(rows, targets)
    assert whole.size == KEPT
    small = register.sketch(rows[: KEPT // 2], targets[: KEPT // 2])
    # A third of the larger one's smallest hashes belong to a third of its rows.
    assert np.intersect1d(whole, small).size > KEPT / 10
    assert np.intersect1d(whole, register.sketch(rows + 1e-9, targets)).size == 0
    assert np.intersect1d(whole, register.sketch(rows, targets + 1)).size == 0
    # Whole numbers differ in few bits, and their hashes in all.
    grid = np.array([[a, b] for a in range(60) for b in range(60)], dtype=float)
    assert register.sketch(grid, np.zeros(len(grid))).size == len(grid)
    assert np.intersect1d(FitRegister().sketch(rows, targets), whole).size == 0


def test_scalers_that_were_fitted_on_the_data_are_noticed() -> None:
    rows, labels = people(500, 7)
    for scaler in (StandardScaler(), MinMaxScaler()):
        with pytest.warns(FittedScalingWarning, match="2 of 2 features have exactly"):
            make_pipeline(scaler, ShuffleLogisticRegression(**ASKED)).fit(rows, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FittedScalingWarning)
        warn_if_scaled_by_data(rows)
        warn_if_scaled_by_data(np.column_stack((rows, labels)))
        warn_if_scaled_by_data(np.stack([np.arange(500) % 11 / 10, np.arange(500) % 13 / 12], axis=1))
        warn_if_scaled_by_data(StandardScaler().fit(people(500, 8)[0]).transform(rows))
