"""Model files: versioned, fingerprinted, and refused when they are not what was written."""

import json

import numpy as np
import pytest

from shuffledp.errors import DataError
from shuffledp.learn import ShuffleHuberRegressor, ShuffleLinearSVC, ShuffleLogisticRegression, ShuffleRidge, load_model


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    features = rng.uniform(-1, 1, (3000, 2))
    return features, features @ [0.5, -0.3]


@pytest.mark.parametrize(
    "estimator", [ShuffleLogisticRegression, ShuffleLinearSVC, ShuffleRidge, ShuffleHuberRegressor]
)
def test_a_file_predicts_as_the_estimator_does(data, tmp_path, estimator) -> None:
    features, y = data
    y = np.where(y > 0, "up", "down") if estimator in (ShuffleLogisticRegression, ShuffleLinearSVC) else y
    numbers = {"target_bounds": (-1, 1)} if y.dtype.kind == "f" else {}
    model = estimator(feature_bounds=(-1, 1), random_state=1, **numbers).fit(features, y)
    model.model(["a", "b"]).save(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert loaded.document() == model.model(["a", "b"]).document()
    assert (loaded.predict(features) == model.predict(features)).all()
    assert loaded.guarantee["epsilon"] == 1 and loaded.users == 3000 and loaded.simulated
    if estimator is ShuffleLogisticRegression:
        assert loaded.probabilities(features) == pytest.approx(model.predict_proba(features)[:, 1])
    else:
        with pytest.raises(DataError, match="must be a logistic regression"):
            loaded.probabilities(features)


def test_nothing_that_was_read_without_noise_is_in_a_file(data) -> None:
    features, y = data
    model = ShuffleRidge(feature_bounds=(-0.5, 0.5), target_bounds=(-1, 1), random_state=1).fit(features, y)
    assert model.clipped_["rows"] > 0
    assert model.model().document().keys() == {
        "schema", "kind", "estimator", "features", "classes", "coefficients", "intercept", "solver", "users",
        "simulated", "unprotected", "declared", "guarantee", "fingerprint", "preparation", "clipped",
    }  # fmt: skip
    assert model.model().features == ("x0", "x1")


def test_classes_that_were_read_from_labels_are_marked_and_declared_ones_are_the_same_for_neighbours(data) -> None:
    features, _ = data
    labels = np.zeros(len(features), dtype=np.int64)
    found = []
    for label, declared in ((1, None), (7, None), (1, [0, 7]), (7, [0, 7])):
        labels[5] = label if declared is None or label in declared else 0
        found.append(
            ShuffleLogisticRegression(classes=declared, feature_norm=2.0, max_rounds=3).fit(features, labels).model()
        )
    first, second, third, fourth = found
    assert first.classes != second.classes and first.unprotected == second.unprotected == ("classes",)
    assert "read from people's labels and is not covered" in first.guarantee["because"]
    assert third.classes == fourth.classes == (0, 7) and third.unprotected == ()
    assert third.guarantee == fourth.guarantee and "labels" not in third.guarantee["because"]


@pytest.fixture
def document(data) -> dict:
    features, y = data
    return (
        ShuffleRidge(feature_bounds=(-1, 1), target_bounds=(-1, 1), random_state=1).fit(features, y).model().document()
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": 3}, "must be 1 or 2, got 3: use the shuffledp that wrote it"),
        ({"kind": "plan"}, "of the kind shuffledp-linear-model"),
        ({"intercept": 7.0}, "must have its own fingerprint"),
        ({"coefficients": [0.0, 1.0]}, "must have its own fingerprint"),
        ({"guarantee": {"epsilon": 0.01}}, "must have its own fingerprint"),
        ({"fingerprint": None}, "must have its own fingerprint"),
    ],
)
def test_another_version_and_what_was_altered_are_refused(document, tmp_path, change: dict, said: str) -> None:
    file = tmp_path / "model.json"
    file.write_text(json.dumps(document | change))
    with pytest.raises(DataError, match=said):
        load_model(file)


@pytest.mark.parametrize(
    "change",
    [
        {"coefficients": [1.0]},
        {"coefficients": "many"},
        {"coefficients": [10**400, 1]},
        {"features": None},
        {"features": "ab"},
        {"users": "all"},
        {"users": float("inf")},
        {"simulated": "false"},
        {"classes": [1]},
        {"classes": [1, 1]},
        {"classes": [[1], [2]]},
        {"classes": "ab"},
        {"unprotected": "ab"},
        {"preparation": None},
        {"preparation": {"width": 2}},
        {"preparation": {"width": 3, "categories": [], "other": None, "bounds": None, "norm": None}},
        {"preparation": {"width": 2, "categories": [], "other": None, "bounds": [[0, 0], [0, 1]], "norm": None}},
        {"intercept": [0.0, 1.0]},
        {"clipped": "few"},
    ],
)
def test_a_file_with_the_right_fingerprint_and_broken_fields_is_refused(document, change: dict) -> None:
    from shuffledp.learn.estimators.models import LinearModel
    from shuffledp.protocols.states import fingerprint_of

    content = {key: value for key, value in (document | change).items() if key != "fingerprint"}
    with pytest.raises(DataError, match="model must have"):
        LinearModel.from_document(content | {"fingerprint": fingerprint_of(content)})


def test_what_is_no_file_or_no_json_is_refused(tmp_path, document) -> None:
    with pytest.raises(DataError, match="file that can be read"):
        load_model(tmp_path / "none.json")
    half = tmp_path / "half.json"
    half.write_text(json.dumps(document)[:100])
    for text in (half.read_text(), "[" * 100_000):
        half.write_text(text)
        with pytest.raises(DataError, match="complete JSON"):
            load_model(half)


def test_features_of_another_shape_are_refused(document) -> None:
    from shuffledp.learn import LinearModel

    model = LinearModel.from_document(document)
    for bad in ([[1.0]], [1.0, 2.0], [[1.0, np.nan]]):
        with pytest.raises(DataError, match="rows of 2 finite numbers"):
            model.predict(bad)
