"""Fits of the same people add up: charged to a ledger, or counted and warned about."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from shuffledp import Privacy
from shuffledp.accounting.ledger import Entry, Ledger
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


@pytest.mark.parametrize(
    ("seed", "second"),
    [
        (21, {"feature_bounds": (-3, 5)}),
        (22, {"feature_bounds": None, "feature_norm": 2.0}),
        (23, {"feature_bounds": {1: (-4, 4)}, "categories": {0: [0, 1]}}),
    ],
    ids=["other-bounds", "a-norm", "categories"],
)
def test_another_preparation_does_not_hide_who_was_asked_before(seed: int, second: dict) -> None:
    """Rows are known by what they were before bounds, norms and lists changed them."""
    rows, labels = people(200, seed)
    rows[:, 0] = labels
    ShuffleLogisticRegression(**ASKED).fit(rows[:120], labels[:120])
    with pytest.warns(RepeatedFitWarning, match="fit 2 "):
        ShuffleLogisticRegression(**ASKED | second).fit(rows[100:], labels[100:])


def test_another_target_of_the_same_people_does_not_hide_them() -> None:
    rows, labels = people(200, 24)
    ShuffleLogisticRegression(**ASKED).fit(rows, labels)
    with pytest.warns(RepeatedFitWarning, match="fit 2 "):
        ShuffleLogisticRegression(**ASKED).fit(rows, 1 - labels)


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
    rows = rng.normal(size=(3 * KEPT, 3))
    whole = register.sketch(rows).hashes
    assert whole.size == KEPT
    small = register.sketch(rows[: KEPT // 2]).hashes
    # A third of the larger one's smallest hashes belong to a third of its rows.
    assert np.intersect1d(whole, small).size > KEPT / 10
    assert np.intersect1d(whole, register.sketch(rows + 1e-9).hashes).size == 0
    # Whole numbers differ in few bits, and their hashes in all.
    grid = np.array([[a, b] for a in range(60) for b in range(60)], dtype=float)
    assert register.sketch(grid).hashes.size == len(grid)
    assert np.intersect1d(FitRegister().sketch(rows).hashes, whole).size == 0


def test_the_same_rows_have_the_same_sketch_however_they_are_kept() -> None:
    register = FitRegister()
    rows = np.array([[0.0, 2.0, -1.5], [4.0, 0.0, 0.0], [0.0, 0.0, 7.0]])
    known = register.sketch(rows).hashes.tolist()
    words = np.array([["0", "2", "-1.5"], ["4", "0", "-0.0"], ["0", "0", "7"]], dtype=object)
    others = (sparse.csr_array(rows), sparse.coo_matrix(rows), rows[::-1], rows.tolist(), words, words.astype(str))
    assert all(register.sketch(other).hashes.tolist() == known for other in others)
    # A word beside them changes no number's part: what is in other rows does not matter.
    mixed = np.array([[1, "a"], [1, "b"], ["x", "a"]], dtype=object)
    alone = [register.sketch(mixed[[row]]).hashes[0] for row in range(3)]
    assert sorted(alone) == register.sketch(mixed).hashes.tolist() and len(set(alone)) == 3
    assert np.intersect1d(register.sketch(rows[:, ::-1]).hashes, known).size == 0


def test_rows_that_are_alike_by_chance_do_not_count_as_learned_from() -> None:
    """Of ages and a flag everybody's row has been seen; of a few thousand kinds many have, and that is no sign."""
    rng = np.random.default_rng(8)
    entry = Entry.of_claim(
        time="2026-01-31T12:00:00Z", fingerprint="0" * 64, users=4, description="", claim=Privacy(1, 1e-6)
    )
    for kinds in (144, 3000, 40_000):
        rows = rng.integers(0, kinds, (6000, 1))
        register = FitRegister()
        register.add(register.sketch(rows[:4000]), entry)
        assert register.part_learned_from(register.sketch(rows[4000:])) < 0.1
        if kinds > 1000:
            assert register.part_learned_from(register.sketch(rows[1000:2000])) > 0.9
            assert register.part_learned_from(register.sketch(rows[3000:5000])) == pytest.approx(0.5, abs=0.1)
        # Questions that no model learned from do not count.
        register = FitRegister()
        register.add(register.sketch(rows), entry, learned=False)
        assert register.part_learned_from(register.sketch(rows)) == 0 and register.overlapping(register.sketch(rows))


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
