"""Weights of people: they make no gradient longer, whatever they are."""

import numpy as np
import pytest

from shuffledp import ParameterError
from shuffledp.errors import DataError
from shuffledp.learn import ShuffleLogisticRegression, ShuffleRidge
from shuffledp.learn.estimators.weights import WeightedLoss
from shuffledp.learn.optimize import HingeLoss, LogisticLoss, SoftmaxLoss, SquaredLoss


@pytest.mark.parametrize("loss", [LogisticLoss(), HingeLoss(), SquaredLoss(), SoftmaxLoss(classes=2)])
def test_no_weight_makes_a_gradient_longer_than_the_bound(loss) -> None:
    """Weights come from devices: those beyond 1 are cut off where gradients are made, too."""
    rng = np.random.default_rng(1)
    features = rng.normal(size=(300, 3))
    targets = np.where(rng.random(300) < 0.5, 1.0, -1.0)
    if isinstance(loss, SoftmaxLoss):
        targets = (targets + 1) / 2
    theta = rng.normal(size=3 * loss.outputs)
    weights = rng.exponential(size=300) * 5
    sent, clipped = WeightedLoss(of=loss).sent(theta, 0.2, None, features, targets, weights)
    plain, counted = loss.sent(theta, 0.2, None, features, targets)
    assert (np.linalg.norm(sent, axis=1) <= 0.2).all() and clipped == counted > 0
    light = weights < 1
    assert sent[light] == pytest.approx(plain[light] * weights[light, np.newaxis])
    moments, _ = WeightedLoss(of=loss).moments(0.2, features, targets, weights)
    assert (np.linalg.norm(moments, axis=1) <= 0.2).all()
    assert moments[light] == pytest.approx(loss.moments(0.2, features, targets)[0][light] * weights[light, np.newaxis])


@pytest.fixture(scope="module")
def people() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(8)
    features = rng.uniform(-1, 1, (3000, 2))
    return features, (features @ [2.0, -1.0] + rng.logistic(size=3000) / 2 > 0).astype(np.int64)


ASKED = {"feature_bounds": (-1, 1), "random_state": 1, "max_rounds": 10}


def test_weights_count_and_are_cut_off_at_the_declared_maximum(people) -> None:
    features, labels = people
    asked = {**ASKED, "classes": [0, 1]}
    flat = ShuffleLogisticRegression(**asked).fit(features, labels)
    same = ShuffleLogisticRegression(**asked, max_weight=3.0).fit(features, labels, sample_weight=np.full(3000, 3.0))
    assert same.coef_ == pytest.approx(flat.coef_) and same.clipped_["weights"] == 0
    # People of one side only: the model is what they say.
    half = np.where(labels == 1, 1.0, 0.0)
    ones = ShuffleLogisticRegression(**asked).fit(features, labels, sample_weight=half)
    assert (ones.predict(features) == 1).mean() > 0.9
    more = ShuffleLogisticRegression(**asked).fit(features, labels, sample_weight=np.full(3000, 9.0))
    assert more.clipped_["weights"] == 3000 and more.coef_ == pytest.approx(flat.coef_)
    # The same problem, the same noise: weights change what is sent, never how it is protected.
    assert ones.solver_.problem == flat.solver_.problem and ones.guarantee_.terms == flat.guarantee_.terms
    lighter = ShuffleRidge(**ASKED, target_bounds=(0, 1)).fit(features, labels, sample_weight=half)
    assert lighter.predict(features).mean() > 0.6


def test_classes_weigh_what_is_declared(people) -> None:
    features, labels = people
    asked = {**ASKED, "classes": [0, 1]}
    heavy = ShuffleLogisticRegression(**asked, class_weight={1: 9}).fit(features, labels)
    flat = ShuffleLogisticRegression(**asked).fit(features, labels)
    assert (heavy.predict(features) == 1).mean() > (flat.predict(features) == 1).mean() + 0.1
    both = ShuffleLogisticRegression(**asked, class_weight={0: 1 / 9}, max_weight=2.0)
    assert both.fit(features, labels, sample_weight=np.full(3000, 2.0)).coef_ == pytest.approx(heavy.coef_)


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (np.full(3000, -1.0), "finite number >= 0, got something else in row 1"),
        (np.full(3000, np.nan), "finite number >= 0"),
        (np.zeros(3000), "all weights are zero"),
        (np.ones(2), "one number for each of 3000 people"),
        (["a"] * 3000, "one number for each"),
    ],
)
def test_weights_that_are_none_are_refused(people, weights, said: str) -> None:
    with pytest.raises(DataError, match=said):
        ShuffleLogisticRegression(**ASKED).fit(*people, sample_weight=weights)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"class_weight": "balanced"}, "cannot be read from people's labels unpaid"),
        ({"class_weight": {7: 1.0}}, "must be weights of 0, 1"),
        ({"class_weight": {1: -1.0}}, "class_weight must be a positive number"),
        ({"class_weight": 3}, "must be weights of 0, 1"),
        ({"max_weight": 0}, "max_weight must be a positive number"),
    ],
)
def test_weights_that_cannot_be_declared_are_named(people, asked: dict, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        ShuffleLogisticRegression(**ASKED, **asked).fit(*people, sample_weight=np.ones(3000))
