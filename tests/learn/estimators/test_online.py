"""`partial_fit`: each call's people are new, so that everybody has one guarantee."""

import numpy as np
import pytest

from shuffledp.errors import DataError, InfeasibleError, ParameterError
from shuffledp.learn import ShuffleLogisticRegression, ShuffleRidge

ASKED = {"feature_bounds": (-1, 1), "random_state": 1, "max_rounds": 20}


@pytest.fixture(scope="module")
def people() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(9)
    features = rng.uniform(-1, 1, (9000, 2))
    return features, features @ [0.6, -0.3] + rng.normal(size=9000) / 10


def test_calls_are_of_new_people_and_each_has_the_whole_epsilon(people) -> None:
    features, numbers = people
    model = ShuffleRidge(**ASKED, target_bounds=(-1, 1))
    losses = []
    for start in range(0, 9000, 3000):
        part = slice(start, start + 3000)
        model.partial_fit(features[part], numbers[part])
        losses.append(np.mean((model.predict(features) - numbers) ** 2))
    assert model.n_users_ == 9000 and model.calls_ == 3 and model.n_iter_ == 3 * model.solver_.rounds
    guarantee = model.guarantee_
    assert guarantee.privacy.epsilon == 1 and guarantee.holds
    assert "9,000 people in 3 calls of partial_fit" in guarantee.because and "spent epsilon and delta twice" in str(
        guarantee.because
    )
    assert model.bound_ is None and model.model().users == 9000
    assert losses[-1] < losses[0] and model.score(features, numbers) > 0.8


def test_a_call_begins_where_the_last_one_ended_and_the_mean_is_kept(people) -> None:
    features, numbers = people
    labels = np.where(numbers > 0, "up", "down")
    model = ShuffleLogisticRegression(**ASKED)
    first = model.partial_fit(features[:6000], labels[:6000], classes=["up", "down"]).theta_.copy()
    assert model.classes_.tolist() == ["down", "up"] and model.unprotected_ == ()
    model.partial_fit(features[6000:], labels[6000:])
    # One round's steps away from the start, not from the centre.
    call = (model.theta_ - 2 / 3 * first) * 3
    assert np.linalg.norm(model.path_[-1] - call) < 1e-9
    assert np.linalg.norm(model.path_[0] - first) < np.linalg.norm(model.path_[0])
    assert model.decision_function(features[:9]) == pytest.approx(
        model.preparation_.rows(features[:9])[0] @ model.theta_
    )


def test_the_guarantee_is_that_of_the_call_that_proves_least(people) -> None:
    """Two sizes of cohorts prove two deltas: whichever call comes first, the larger one is shown."""
    features, numbers = people
    found = []
    for cut in (3000, 6000):
        model = ShuffleRidge(**ASKED, target_bounds=(-1, 1), count_clipped=0)
        alone = [
            ShuffleRidge(**ASKED, target_bounds=(-1, 1), count_clipped=0).fit(features[part], numbers[part]).guarantee_
            for part in (slice(cut), slice(cut, None))
        ]
        model.partial_fit(features[:cut], numbers[:cut]).partial_fit(features[cut:], numbers[cut:])
        assert alone[0].delta != alone[1].delta
        assert model.guarantee_.delta == max(each.delta for each in alone)
        found.append(model.guarantee_.delta)
    assert found[0] == found[1]


def test_fit_begins_anew_and_what_fails_changes_nothing(people) -> None:
    features, numbers = people
    model = ShuffleRidge(**ASKED, target_bounds=(-1, 1)).partial_fit(features, numbers)
    before = dict(vars(model))
    with pytest.raises(DataError):
        model.partial_fit(features[:, :1], numbers)
    with pytest.raises(InfeasibleError):
        model.partial_fit(features[:5], numbers[:5])
    assert vars(model).keys() == before.keys() and all(vars(model)[name] is before[name] for name in before)
    model.fit(features[:5000], numbers[:5000])
    assert model.n_users_ == 5000 and not hasattr(model, "calls_") and "calls" not in model.guarantee_.because


@pytest.mark.parametrize("change", [{"epsilon": 0.5}, {"delta": 1e-7}, {"honest_fraction": 0.9}])
def test_every_call_promises_the_same(people, change: dict[str, float]) -> None:
    """A model has one guarantee, and the people of all calls read it."""
    features, numbers = people
    model = ShuffleRidge(**ASKED, target_bounds=(-1, 1), epsilon=2).partial_fit(features[:3000], numbers[:3000])
    before = model.guarantee_
    with pytest.raises(ParameterError, match="as in the calls of partial_fit before") as refused:
        model.set_params(**change).partial_fit(features[3000:6000], numbers[3000:6000])
    assert refused.value.parameter in change and model.guarantee_ is before and model.calls_ == 1
    # What is known of other fits is that of the last call: these people were asked at least twice.
    model.set_params(epsilon=2, delta=1e-6, honest_fraction=1.0)
    told = model.partial_fit(features[:3000], numbers[:3000]).guarantee_.history
    assert told != before.history and int(told.split()[3]) >= 2
