"""Several classes with one epsilon, and counts."""

import numpy as np
import pytest
from sklearn.linear_model import PoissonRegressor

from shuffledp import ParameterError
from shuffledp.errors import DataError
from shuffledp.learn import LinearModel, ShuffleLinearSVC, ShuffleLogisticRegression, ShufflePoissonRegressor


@pytest.fixture(scope="module")
def people() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(10)
    features = rng.uniform(-1, 1, (8000, 2))
    scores = features @ np.array([[4.0, 0.0], [-2.0, 3.0], [-2.0, -3.0]]).T + [0.0, 0.5, 0.0]
    return features, np.array(["a", "b", "c"])[(scores + rng.gumbel(size=scores.shape)).argmax(axis=1)]


def test_all_classes_share_one_gradient_and_one_epsilon(people, tmp_path) -> None:
    features, labels = people
    model = ShuffleLogisticRegression(
        classes=["a", "b", "c"], feature_bounds=(-1, 1), visits=None, solver="full-agd", max_rounds=30, random_state=1
    )
    assert model.fit(features, labels).score(features, labels) > 0.7
    assert model.guarantee_.privacy.epsilon == 1 and model.guarantee_.holds
    assert model.solver_.problem.dimension == 9 == model.problem(8000, 2).dimension
    assert model.solver_.problem.lipschitz == pytest.approx(np.sqrt(2))
    assert model.coef_.shape == (3, 2) and model.intercept_.shape == (3,)
    chances = model.predict_proba(features[:20])
    assert chances.shape == (20, 3) and chances.sum(axis=1) == pytest.approx(np.ones(20))
    assert np.exp(model.predict_log_proba(features[:20])) == pytest.approx(chances)
    kept = model.model()
    kept.save(tmp_path / "model.json")
    again = LinearModel.from_document(kept.document())
    assert (again.predict(features) == model.predict(features)).all()
    assert again.probabilities(features[:20]) == pytest.approx(chances)
    assert model.losses(features, labels)[-1] < np.log(3)


def test_a_label_outside_the_classes_is_refused_and_svc_takes_two(people) -> None:
    features, labels = people
    with pytest.raises(DataError, match="y must be a, b or d, got something else in row"):
        ShuffleLogisticRegression(classes=["a", "b", "d"], feature_bounds=(-1, 1)).fit(features, labels)
    with pytest.raises(DataError, match="Only binary classification is supported"):
        ShuffleLinearSVC(feature_bounds=(-1, 1)).fit(features, labels)
    few = ShuffleLogisticRegression(feature_bounds=(-1, 1), max_rounds=3, random_state=1).fit(features, labels)
    assert few.unprotected_ == ("classes",) and few.classes_.tolist() == ["a", "b", "c"]


def test_log_probabilities_are_exact_where_probabilities_are_not(people) -> None:
    features, labels = people
    model = ShuffleLogisticRegression(feature_bounds=(-1, 1), max_rounds=3, random_state=1)
    model.fit(features, labels == "a")
    model.coef_ = np.array([[1000.0, 0.0]])
    assert model.predict_log_proba([[1.0, 0.0]])[0, 0] == pytest.approx(-1000, rel=0.05)
    assert model.predict_proba([[1.0, 0.0]])[0].tolist() == [0.0, 1.0]


def test_counts_are_predicted_as_without_privacy(tmp_path) -> None:
    rng = np.random.default_rng(11)
    features = rng.uniform(-1, 1, (10_000, 2))
    counts = rng.poisson(np.exp(features @ [0.8, -0.5] + 0.3))
    often = {"visits": None, "solver": "full-agd", "max_rounds": 40, "random_state": 1}
    model = ShufflePoissonRegressor(feature_bounds=(-1, 1), max_target=8, gradient_bound=3, **often)
    best = PoissonRegressor(alpha=0).fit(features, counts)
    model.fit(features, counts)
    assert np.abs(model.predict(features) / best.predict(features) - 1).mean() < 0.1
    assert model.clipped_["targets"] == int((counts > 8).sum()) and model.guarantee_.holds
    again = LinearModel.from_document(model.model().document())
    assert (again.predict(features) == model.predict(features)).all()
    with pytest.raises(ParameterError, match="max_target must say how large a count may be"):
        ShufflePoissonRegressor(feature_bounds=(-1, 1)).fit(features, counts)
    with pytest.raises(DataError, match="y must be a count >= 0, got something else in row 1"):
        model.fit(features, counts - counts[0] - 1)
