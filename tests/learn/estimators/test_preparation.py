"""One preparation for training and prediction: cut, shortened, one-hot, sparse; and files of the version before."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from shuffledp import ParameterError
from shuffledp.errors import DataError
from shuffledp.learn import LinearModel, ShuffleLogisticRegression, ShufflePoissonRegressor, ShuffleRidge, fit_register
from shuffledp.learn.estimators import preparation, running
from shuffledp.learn.estimators.preparation import Preparation

KEPT = Path(__file__).parents[2] / "golden" / "kept" / "model-0.1.0.json"


@pytest.fixture(scope="module")
def people() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    features = rng.normal(size=(4000, 3)) * [1.0, 5.0, 0.2]
    return features, (features @ [1.0, -0.2, 3.0] + rng.logistic(size=4000) > 0).astype(np.int64)


def test_what_is_predicted_is_what_was_learned_from(people) -> None:
    """Rows longer than the norm and numbers beyond their bounds are the same rows in training and in prediction."""
    features, labels = people
    model = ShuffleLogisticRegression(feature_norm=1.0, classes=[0, 1], random_state=1, count_clipped=0)
    model.fit(features, labels)
    shortened = features / np.maximum(1.0, np.linalg.norm(features, axis=1))[:, np.newaxis]
    assert (np.linalg.norm(features, axis=1) > 1).mean() > 0.9
    for scores in (model.decision_function(features), model.model().scores(features)):
        assert scores == pytest.approx(model.decision_function(shortened), rel=1e-9)
    rows = model.preparation_.rows(features)[0]
    assert model.decision_function(features) == pytest.approx(rows @ model.theta_, rel=1e-9)
    cut = ShuffleLogisticRegression(feature_bounds=(-1, 1), classes=[0, 1], random_state=1, count_clipped=0)
    cut.fit(features, labels)
    assert (cut.predict_proba(features) == cut.predict_proba(np.clip(features, -1, 1))).all()
    # Nothing at all happens to rows that were within.
    inside = features[(np.abs(features) <= 1).all(axis=1)]
    assert (cut.decision_function(inside) == inside @ cut.coef_[0] + cut.intercept_[0]).all()


def test_files_of_the_first_version_load_as_they_were_and_predict_as_they_were_trained() -> None:
    document = json.loads(KEPT.read_text())
    model = LinearModel.from_document(document)
    assert model.schema == 1 and model.document() == document and model.fingerprint == document["fingerprint"]
    inside = np.array([[0.25, 0.5], [0.0, 1.0]])
    assert (model.predict(inside) == inside @ document["coefficients"] + document["intercept"]).all()
    assert model.predict([[7.0, 0.5]]).tolist() == model.predict([[1.0, 0.5]]).tolist()
    for declared in ({"feature_bounds": "wide", "feature_norm": None}, {"feature_bounds": None, "feature_norm": -1}):
        with pytest.raises(DataError, match="what was declared"):
            LinearModel.from_document(_signed({**document, "declared": declared}))
    unsaid = LinearModel.from_document(_signed({**document, "declared": {}}))
    assert unsaid.predict([[7.0, 0.5]]) == pytest.approx(np.dot([7.0, 0.5], unsaid.coefficients) + unsaid.intercept)
    # In that version, nothing declared was a norm of 1.
    unbound = _signed({**document, "declared": {"feature_bounds": None, "feature_norm": None}})
    assert LinearModel.from_document(unbound).predict([[3.0, 4.0]]) == pytest.approx(
        LinearModel.from_document(unbound).predict([[0.6, 0.8]])
    )


def _signed(document: dict) -> dict:
    from shuffledp.protocols.states import fingerprint_of

    content = {key: value for key, value in document.items() if key != "fingerprint"}
    return content | {"fingerprint": fingerprint_of(content)}


# --- categories ------------------------------------------------------------------------------------

CITIES = ["Oslo", "Rome", "Lima", "Bern", "Cork"]


def frame(rows: int) -> tuple[dict[str, list], np.ndarray]:
    rng = np.random.default_rng(4)
    city, age = rng.integers(0, 5, rows), rng.uniform(0, 100, rows)
    label = np.where(rng.random(rows) < 1 / (1 + np.exp(-(age / 25 - 2 + 2.0 * (city < 2)))), "yes", "no")
    return {"age": age.tolist(), "city": [CITIES[place] for place in city]}, label


@pytest.mark.parametrize("kind", ["pandas", "polars", "array"])
def test_a_block_of_categories_is_never_longer_than_one(kind: str, tmp_path) -> None:
    columns, label = frame(6000)
    array = np.array([*zip(columns["age"], columns["city"], strict=True)], dtype=object)
    rows = array if kind == "array" else pytest.importorskip(kind).DataFrame(columns)
    city, age = (1, 0) if kind == "array" else ("city", "age")
    model = ShuffleLogisticRegression(
        feature_bounds={age: (0, 100)}, categories={city: CITIES}, classes=["no", "yes"], random_state=1
    )
    assert model.fit(rows, label).score(rows, label) > 0.75
    assert model.preparation_.features.norm == pytest.approx(np.sqrt(2)) and model.clipped_["rows"] == 0
    assert model.coef_.shape == (1, 6) and model.n_features_in_ == 2
    assert model.problem(6000, 2 if kind == "array" else ["age", "city"]).dimension == 7
    kept = model.model(["age", "city"])
    assert kept.columns == ("age", *(f"city={name}" for name in CITIES))
    kept.save(tmp_path / "model.json")
    again = LinearModel.from_document(json.loads((tmp_path / "model.json").read_text()))
    assert (again.predict(array[:50]) == model.predict(rows[:50])).all()
    if kind != "array":
        assert (again.predict(rows[["city", "age"]][:50]) == again.predict(array[:50])).all()


def test_values_outside_a_list_are_refused_or_go_to_the_other() -> None:
    rows = np.array([[1.0, "Oslo"], [2.0, "Paris"]], dtype=object)
    strict = Preparation.of(2, bounds=(0, 10), norm=None, categories={1: CITIES})
    with pytest.raises(DataError, match=r"must be one of Oslo, .* in column 2, got something else in row 2: .* other="):
        strict.rows(rows)
    open_ = Preparation.of(2, bounds=(0, 10), norm=None, categories={1: CITIES[:2]}, other="elsewhere")
    assert open_.columns.encode(rows).tolist() == [[1.0, 1.0, 0.0, 0.0], [2.0, 0.0, 0.0, 1.0]]
    numbers = Preparation.of(1, bounds=None, norm=None, categories={0: [3, 1]})
    assert numbers.columns.encode(np.array([[1.0], [3.0]])).tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert numbers.features.norm == 1.0
    for bad in (np.array([["old", "Oslo"]], dtype=object), np.array([[np.nan, "Oslo"]], dtype=object)):
        with pytest.raises(DataError, match=r"finite numbers in column 1, got .* in row 1"):
            strict.rows(bad)


@pytest.mark.parametrize(
    ("asked", "parameter"),
    [
        ({"bounds": None, "norm": None}, "feature_bounds"),
        ({"categories": {2: CITIES}}, "categories"),
        ({"categories": {"city": CITIES}}, "categories"),
        ({"categories": [CITIES]}, "categories"),
        ({"categories": {1: "Oslo"}}, "categories"),
        ({"categories": {1: ["Oslo"]}}, "categories"),
        ({"categories": {1: ["Oslo", "Oslo"]}}, "categories"),
        ({"categories": {1: ["Oslo", 3]}}, "categories"),
        ({"categories": {1: CITIES}, "other": 3}, "other"),
        ({"categories": {1: [1, 2]}, "other": "else"}, "other"),
        ({"categories": {1: CITIES}, "bounds": [(0, 1), (0, 1)]}, "feature_bounds"),
        ({"categories": {1: CITIES}, "bounds": {1: (0, 1)}}, "feature_bounds"),
        ({"bounds": {0: (0, 1)}}, "feature_bounds"),
        ({"bounds": {0: (0, 1), "age": (0, 1)}}, "feature_bounds"),
    ],
)
def test_what_cannot_be_declared_is_named(asked: dict, parameter: str) -> None:
    with pytest.raises(ParameterError) as refused:
        Preparation.of(2, **{"bounds": (0, 1), "norm": None, **asked})
    assert refused.value.parameter == parameter


@given(levels=st.integers(2, 40), numbers=st.integers(0, 3), seed=st.integers(0, 99))
def test_rows_with_categories_are_no_longer_than_one(levels: int, numbers: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ready = Preparation.of(numbers + 1, bounds=(-1, 1), norm=None, categories={0: list(range(levels))})
    rows, _ = ready.rows(np.column_stack((rng.integers(0, levels, 20), rng.normal(size=(20, numbers)) * 9)))
    assert (np.linalg.norm(rows, axis=1) <= 1).all() and rows.shape == (20, levels + numbers + 1)
    # Everybody is in one category: a block with more would be shortened, and say less.
    assert ((rows != 0).sum(axis=1) == 1 + numbers + 1).all()


# --- sparse ----------------------------------------------------------------------------------------


def test_sparse_rows_are_the_same_people_and_never_dense_at_once(people, monkeypatch) -> None:
    features, labels = people
    features = np.where(np.abs(features) < 0.2, 0.0, features)
    asked = {"feature_norm": 3.0, "classes": [0, 1], "random_state": 1, "count_clipped": 0}
    dense = ShuffleLogisticRegression(**asked).fit(features, labels)
    largest = []
    encode = Preparation._encoded
    for module in (preparation, running, fit_register):
        monkeypatch.setattr(module, "_AT_A_TIME", 3 * 500)
    monkeypatch.setattr(Preparation, "_encoded", lambda *all_: largest.append(all_[1].shape[0]) or encode(*all_))
    model = ShuffleLogisticRegression(**asked).fit(sparse.csr_matrix(features), labels)
    assert model.coef_ == pytest.approx(dense.coef_) and model.clipped_ == dense.clipped_
    assert (model.predict(sparse.csc_array(features)) == dense.predict(features)).all()
    assert model.losses(sparse.csr_array(features[:999]), labels[:999]) == pytest.approx(
        dense.losses(features[:999], labels[:999])
    )
    assert (model.model().predict(sparse.coo_array(features)) == dense.predict(features)).all()
    assert max(largest) <= max(500, dense.solver_.stages[0].users)


# --- asked for -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "asked", "missing"),
    [
        (ShuffleLogisticRegression, {}, "feature_bounds"),
        (ShuffleRidge, {"target_bounds": (0, 1)}, "feature_bounds"),
        (ShuffleRidge, {"feature_bounds": (0, 1)}, "target_bounds"),
    ],
)
def test_a_bound_that_cannot_be_guessed_is_asked_for(people, estimator, asked: dict, missing: str) -> None:
    features, labels = people
    with pytest.raises(ParameterError, match=r"nor guessed, got None: pass \(low, high\)") as refused:
        estimator(**asked).fit(features, labels)
    assert refused.value.parameter == missing


SECRET = "4711.25"


@pytest.mark.parametrize("what", ["a-word", "nan", "a-category", "a-label", "a-count", "a-weight", "one-column"])
def test_a_refusal_names_row_and_column_and_no_value_of_a_person(what: str) -> None:
    """A message may end up in a log: who is wrong is found by the row, and what they said stays where it is."""
    rows, labels = np.full((60, 2), 0.5), np.arange(60) % 2
    estimator: Any = ShuffleLogisticRegression(feature_bounds=(-1, 1), classes=[0, 1])
    words = rows.astype(object)
    words[3, 1] = SECRET + "!"
    data: tuple[Any, ...] = (rows, labels)
    where = "in row 4"
    if what == "a-word":
        data, where = (words, labels), "in row 4, column 2"
    elif what == "nan":
        data, where = (np.where(words == SECRET + "!", np.nan, words).astype(float), labels), "nan in row 4, column 2"
    elif what == "a-category":
        estimator = ShuffleLogisticRegression(feature_bounds=(-1, 1), classes=[0, 1], categories={1: ["a", "b"]})
        words[:, 1] = ["a", "b", "a", SECRET, "b", "a"] * 10
        data, where = (words, labels), "column 2, got something else in row 4"
    elif what == "a-label":
        data = (rows, np.array(["0", "1", "0", SECRET, "0", "1"] * 10))
        estimator.set_params(classes=["0", "1"])
    elif what == "a-count":
        estimator = ShufflePoissonRegressor(feature_bounds=(-1, 1), max_target=9)
        data = (rows, np.array([0.0, 1, 2, -float(SECRET), 0, 1] * 10))
    elif what == "a-weight":
        data = (rows, labels, [1.0, 1.0, 1.0, -float(SECRET), 1.0, 1.0] * 10)
    else:
        data, where = ([float(SECRET)] * 60, labels), "Reshape your data"
    with pytest.raises(DataError) as refused:
        estimator.fit(*data)
    assert where in str(refused.value)
    assert "4711" not in str(refused.value) and "4711" not in str(refused.value.value)
