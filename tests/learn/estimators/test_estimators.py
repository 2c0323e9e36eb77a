"""What private estimators promise, count and refuse."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.utils.validation import check_is_fitted

from shuffledp import ParameterError
from shuffledp.errors import DataError, InfeasibleError
from shuffledp.learn import (
    ShuffleHuberRegressor,
    ShuffleLinearSVC,
    ShuffleLogisticRegression,
    ShuffleRidge,
)
from shuffledp.learn.estimators.clipping import ClippedWarning
from shuffledp.learn.optimize.choosing import METHODS

CLASSIFIERS = (ShuffleLogisticRegression, ShuffleLinearSVC)
REGRESSORS = (ShuffleRidge, ShuffleHuberRegressor)


@pytest.fixture(scope="module")
def people() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three features in 0..10, a label and a number."""
    rng = np.random.default_rng(7)
    features = rng.uniform(0, 10, (10_000, 3))
    scores = features @ [1.0, -0.7, 0.0] - 1.5
    return features, np.where(scores + rng.logistic(size=10_000) / 2 > 0, "yes", "no"), scores + rng.normal(size=10_000)


@pytest.mark.parametrize("estimator", CLASSIFIERS)
@pytest.mark.parametrize("solver", ["auto", "gd"])
def test_classifiers_learn_and_say_whom_they_protect(people, estimator, solver: str) -> None:
    features, labels, _ = people
    often = {} if solver == "auto" else {"visits": None, "max_rounds": 40}
    model = estimator(epsilon=1, delta=1e-6, feature_bounds=(0, 10), solver=solver, random_state=1, **often)
    assert model.fit(features, labels) is model
    assert model.score(features, labels) > 0.88
    guarantee = model.guarantee_
    assert (guarantee.privacy.epsilon, guarantee.privacy.delta, guarantee.model) == (1, 1e-6, "shuffle")
    assert guarantee.holds and 0 < guarantee.delta <= 1e-6
    assert guarantee.rounds == model.n_iter_ and guarantee.messages_per_user > 0
    assert (guarantee.rounds_per_user, guarantee.users_per_round == 9_500) == (40 if often else 1, bool(often))
    assert "epsilon 1" in str(guarantee) and "shuffle" in str(guarantee)
    assert model.classes_.tolist() == ["no", "yes"] and model.coef_.shape == (1, 3) and model.n_features_in_ == 3
    scores = model.decision_function(features)
    assert scores == pytest.approx(features @ model.coef_[0] + model.intercept_[0])
    assert (model.predict(features) == np.where(scores > 0, "yes", "no")).all()


@pytest.mark.parametrize("estimator", REGRESSORS)
def test_regressions_learn_in_the_units_of_the_data(people, estimator) -> None:
    features, _, numbers = people
    model = estimator(feature_bounds=[(0, 10), (0, 10), (-1, 11)], target_bounds=(-12, 12), random_state=1)
    assert model.fit(features, numbers).score(features, numbers) > 0.8
    assert model.clipped_ == {"rows": 0, "targets": 0, "gradients": model.clipped_["gradients"]}


def test_probabilities_are_of_both_classes(people) -> None:
    features, labels, _ = people
    model = ShuffleLogisticRegression(feature_bounds=(0, 10), random_state=1).fit(features, labels)
    chances = model.predict_proba(features[:5])
    assert chances.sum(axis=1) == pytest.approx(np.ones(5))
    assert (chances[:, 1] > 0.5).tolist() == (model.predict(features[:5]) == "yes").tolist()


def test_it_works_where_scikit_learn_expects_an_estimator(people) -> None:
    features, labels, _ = people
    model = ShuffleLogisticRegression(feature_bounds=(0, 10), random_state=1)
    scores = cross_val_score(model, features[:3000], labels[:3000], cv=3)
    assert scores.mean() > 0.7
    again = clone(model).set_params(epsilon=2.0)
    assert again.get_params()["epsilon"] == 2.0 and again.get_params()["feature_bounds"] == (0, 10)
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(noise=0)


def test_numbers_of_numpy_are_numbers(people) -> None:
    features, labels, _ = people
    own = {"epsilon": 2, "radius": 3, "visits": 1, "max_rounds": 5, "feature_norm": 2.0, "gradient_bound": 0.5}
    numpys = {name: np.asarray(value)[()] for name, value in own.items()}
    one, two = (
        ShuffleLogisticRegression(feature_bounds=(0, 10), random_state=1, **each).fit(features, labels).model()
        for each in (own, numpys)
    )
    assert one.fingerprint == two.fingerprint
    model = ShuffleLogisticRegression(feature_bounds=(0, 10), max_rounds=np.int64(5))
    assert model.problem(np.int64(500), 3) == model.problem(500, 3)


def test_seeds_repeat_and_no_seed_is_secure(people) -> None:
    features, labels, _ = people

    def fitted(seed) -> ShuffleLogisticRegression:
        return ShuffleLogisticRegression(feature_bounds=(0, 10), random_state=seed).fit(features[:1000], labels[:1000])

    assert (fitted(3).coef_ == fitted(3).coef_).all() and fitted(3).simulated_
    first, second = fitted(np.random.RandomState(3)), fitted(np.random.RandomState(3))
    assert (first.coef_ == second.coef_).all()
    assert (fitted(None).coef_ != fitted(None).coef_).all() and not fitted(None).simulated_


def test_more_epsilon_is_less_noise_in_the_plan(people) -> None:
    features, labels, _ = people
    errors = []
    for epsilon in (0.5, 1, 4):
        model = ShuffleLogisticRegression(epsilon=epsilon, feature_bounds=(0, 10), solver="agd", random_state=1)
        stage = model.fit(features, labels).solver_.stages[0]
        errors.append(stage.plan.standard_error)
    assert errors[0] > errors[1] > errors[2]


def test_what_one_person_sends_depends_on_nobody_else(people) -> None:
    """Nothing is standardized by the data: another row changes no row but its own."""
    features, _, numbers = people
    other = features.copy()
    other[5] = 1e9
    model = ShuffleRidge(feature_bounds=(0, 10), target_bounds=(-12, 12), max_rounds=2).fit(features, numbers)
    (one, clipped), (two, more) = (model.preparation_.rows(rows) for rows in (features, other))
    assert np.flatnonzero((one != two).any(axis=1)).tolist() == [5]
    assert more.sum() == clipped.sum() + 1
    changed = numbers.copy()
    changed[5] = -1e9
    first, second = (model._scaled_targets(each)[0] for each in (numbers, changed))
    assert np.flatnonzero(first != second).tolist() == [5]


def test_the_plan_is_made_without_data(people) -> None:
    features, labels, _ = people
    model = ShuffleLogisticRegression(feature_bounds=(0, 10), random_state=1)
    before = model.problem(users=10_000, features=3)
    assert model.fit(features, labels).solver_.problem == before
    with pytest.warns(ClippedWarning):
        flipped = model.fit(-features, labels[::-1])
    assert flipped.solver_.problem == before


def test_losses_fall_and_the_twin_has_no_noise(people) -> None:
    features, labels, _ = people
    model = ShuffleLogisticRegression(epsilon=0.5, feature_bounds=(0, 10), random_state=1).fit(features, labels)
    losses = model.losses(features, labels)
    assert losses.shape == model.path_rounds_.shape and losses[-1] < losses[0]
    assert model.path_rounds_[-1] == model.n_iter_
    twin = model.twin_losses(features, labels)
    other = clone(model).set_params(random_state=2).fit(features, labels)
    spread = abs(other.losses(features, labels)[-1] - losses[-1])
    # Only the order of people differs between twins: their losses are closer than those with noise.
    assert abs(other.twin_losses(features, labels)[-1] - twin[-1]) < spread
    assert twin[-1] < losses[-1]


def test_a_fit_that_fails_leaves_the_estimator_as_it_was(people) -> None:
    features, labels, numbers = people
    classifier = ShuffleLogisticRegression(feature_bounds=(0, 10), max_rounds=3).fit(features, labels)
    regression = ShuffleRidge(feature_norm=20.0, target_bounds=(-12, 12), max_rounds=3).fit(features, numbers)
    for model, y in ((classifier, np.where(labels == "no", 0, 1)), (regression, numbers)):
        before, said = dict(vars(model)), model.predict(features[:9])
        with pytest.raises(InfeasibleError):
            model.fit(features[:10], y[:10])
        with pytest.raises(InfeasibleError):
            model.fit(np.ones((10, 5)), y[:10])
        assert vars(model).keys() == before.keys() and all(vars(model)[name] is before[name] for name in before)
        assert (model.predict(features[:9]) == said).all()


def test_parameters_set_after_a_fit_say_nothing_of_its_model(people) -> None:
    features, labels, numbers = people
    later = {"feature_bounds": (0, 1000), "radius": 99.0, "epsilon": 77.0, "alpha": 3.0}
    classifier = ShuffleLogisticRegression(feature_bounds=(0, 10), max_rounds=3, random_state=1).fit(features, labels)
    regression = ShuffleHuberRegressor(feature_norm=20.0, target_bounds=(-12, 12), max_rounds=3, random_state=1).fit(
        features, numbers
    )
    for model, y, more in (
        (classifier, labels, {"classes": ["maybe", "no"]}),
        (regression, numbers, {"target_bounds": (0, 1), "threshold": 1.0}),
    ):
        before, losses, twin = model.model().document(), model.losses(features, y), model.twin_losses(features, y)
        model.set_params(**later, **more)
        assert model.model().document() == before
        assert (model.losses(features, y) == losses).all() and (model.twin_losses(features, y) == twin).all()


# --- counted --------------------------------------------------------------------------------------


def test_rows_and_targets_beyond_what_was_declared_are_clipped_and_counted(people) -> None:
    features, _, numbers = people
    common = {"random_state": 1, "count_clipped": 0}
    model = ShuffleRidge(feature_bounds=(0, 5), target_bounds=(-1, 1), **common).fit(features, numbers)
    assert model.clipped_["rows"] == int((features > 5).any(axis=1).sum())
    assert model.clipped_["targets"] == int((np.abs(numbers) > 1).sum())
    shortened = ShuffleRidge(feature_norm=4.0, target_bounds=(-12, 12), **common).fit(features, numbers)
    assert shortened.clipped_["rows"] == int((np.linalg.norm(features, axis=1) > 4).sum())


@pytest.mark.parametrize("estimator", [*CLASSIFIERS, *REGRESSORS])
def test_gradients_beyond_the_bound_are_clipped_and_counted(people, estimator) -> None:
    features, labels, numbers = people
    y = labels if estimator in CLASSIFIERS else numbers / 12
    common = {"feature_bounds": (0, 10), "random_state": 1}
    common |= {} if estimator in CLASSIFIERS else {"target_bounds": (-1, 1)}
    assert estimator(**common, gradient_bound=None).fit(features, y).clipped_["gradients"] == 0
    model = estimator(**common, gradient_bound=0.05).fit(features, y)
    assert model.clipped_["gradients"] > 1000
    assert model.solver_.problem.lipschitz == 0.05 and model.guarantee_.holds


def test_no_bound_is_claimed_where_gradients_may_be_clipped() -> None:
    """At a slope of 0.4 gradients of targets at 1 and -1 are clipped to balance elsewhere, whatever the noise."""
    rng = np.random.default_rng(0)
    features, targets = np.ones((100_000, 1)), np.where(rng.random(100_000) < 0.7, 1.0, -1.0)
    common = {"feature_norm": 1.0, "target_bounds": (-1, 1), "fit_intercept": False, "alpha": 0.0, "radius": 1.0}
    # By name: how a solver is chosen is not what is tried here, and its rehearsals take most of the time.
    common |= {"random_state": 1, "solver": "agd"}
    clipped = ShuffleRidge(**common).fit(features, targets)
    whole = ShuffleRidge(**common, gradient_bound=None).fit(features, targets)
    assert (clipped.coef_[0] - 0.4) ** 2 / 2 > clipped.solver_.bound and clipped.bound_ is None
    assert whole.bound_ == whole.solver_.bound and (whole.coef_[0] - 0.4) ** 2 / 2 < whole.bound_
    assert ShuffleRidge(**common, gradient_bound=2.0).fit(features, targets).bound_ == whole.bound_


# --- refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [*CLASSIFIERS, *REGRESSORS])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_features_that_are_not_finite_are_refused(people, estimator, bad: float) -> None:
    features, labels, numbers = people
    broken = features.copy()
    broken[7, 1] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        estimator().fit(broken, labels if estimator in CLASSIFIERS else numbers)


@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_labels_of_one_class_are_refused(people, estimator) -> None:
    features, labels, _ = people
    with pytest.raises(DataError, match="two classes, and there is only one class, got one class"):
        estimator().fit(features, np.full(len(labels), "yes"))


def test_classes_that_are_declared_are_not_read_from_data(people) -> None:
    features, labels, _ = people
    model = ShuffleLogisticRegression(classes=["no", "yes"], feature_bounds=(0, 10), random_state=1)
    assert model.fit(features, np.full(len(labels), "yes")).classes_.tolist() == ["no", "yes"]
    assert (model.predict(features[:5]) == "yes").all()
    with pytest.raises(DataError, match=r"y must be a or b, got something else in row 1"):
        ShuffleLogisticRegression(classes=["a", "b"], feature_bounds=(0, 10)).fit(features, labels)


@pytest.mark.parametrize("estimator", [ShuffleLinearSVC, ShuffleRidge])
def test_too_few_people_for_one_batch_hear_how_many_would_do(people, estimator) -> None:
    features, labels, numbers = people
    y = labels if estimator in CLASSIFIERS else numbers / 12
    model = estimator(epsilon=0.5, feature_bounds=(0, 10), random_state=1)
    if estimator in REGRESSORS:
        model.set_params(target_bounds=(-1, 1))
    with pytest.raises(InfeasibleError) as refused:
        model.fit(features[:20], y[:20])
    enough = int(refused.value.problem.split(";")[1].split()[0].replace(",", ""))
    assert refused.value.parameter == "users" and refused.value.value == 20 < enough < 1000
    check_is_fitted(model.fit(features[:enough], y[:enough]))
    with pytest.raises(InfeasibleError):
        model.fit(features[: enough - 1], y[: enough - 1])


def test_a_solver_that_cannot_take_the_loss_is_refused_in_words(people) -> None:
    features, labels = people[0][:2000], people[1][:2000]
    with pytest.raises(InfeasibleError, match="take smoothed-agd or sgd"):
        ShuffleLinearSVC(feature_norm=20.0, solver="agd").fit(features, labels)
    with pytest.raises(InfeasibleError, match="needs a strongly convex loss: add a ridge"):
        ShuffleLogisticRegression(feature_norm=20.0, solver="phased-agd").fit(features, labels)
    strong = {"feature_norm": 20.0, "solver": "phased-agd", "alpha": 0.1, "random_state": 1}
    with pytest.raises(InfeasibleError, match="strongly convex in the intercept, too: fit none"):
        ShuffleLogisticRegression(**strong).fit(features, labels)
    check_is_fitted(ShuffleLogisticRegression(**strong, fit_intercept=False).fit(features, labels))
    with pytest.raises(InfeasibleError, match="asked only once"):
        ShuffleLogisticRegression(feature_norm=20.0, solver="gd").fit(features, labels)
    streams = [name for name, method in METHODS.items() if method.model == "pan-private"]
    assert streams
    for name in streams:
        with pytest.raises(ParameterError, match="all rows are in memory at once"):
            ShuffleLogisticRegression(feature_norm=20.0, solver=name).fit(features, labels)
    with pytest.raises(ParameterError, match="must be auto, least-bound or one of sgd, agd"):
        ShuffleLogisticRegression(feature_norm=20.0, solver="newton").fit(features, labels)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epsilon", 0), ("epsilon", "1"), ("delta", 1.0), ("radius", 0), ("radius", float("nan")), ("alpha", -1),
        ("alpha", 1e200), ("radius", 1e200), ("gradient_bound", 1e-200), ("feature_norm", 1e-320),
        ("visits", 0), ("honest_fraction", 0), ("honest_fraction", 1.5), ("feature_norm", 0), ("gradient_bound", -1),
        ("feature_bounds", (1, 0)), ("feature_bounds", (0, float("inf"))), ("feature_bounds", [(0, 1), (0, 1)]),
        ("feature_bounds", "wide"), ("feature_bounds", 3), ("random_state", -1), ("random_state", "one"),
        ("fit_intercept", "no"), ("visits", np.float64(2)), ("max_rounds", np.bool_(True)),
    ],
)  # fmt: skip
def test_parameters_out_of_range_are_named(people, name: str, value) -> None:
    features, labels, _ = people
    with pytest.raises(ParameterError) as refused:
        ShuffleLogisticRegression(**{"random_state": 1, "feature_norm": 20.0, name: value}).fit(
            features[:500], labels[:500]
        )
    known = {"random_state": "seed", "max_rounds": "rounds"}
    assert refused.value.parameter == known.get(name, name)


@pytest.mark.parametrize(
    ("name", "value"), [("target_bounds", (1, 1)), ("target_bounds", None), ("threshold", 0), ("max_rounds", 0)]
)
def test_parameters_of_regressions_are_named(people, name: str, value) -> None:
    features, _, numbers = people
    with pytest.raises(ParameterError) as refused:
        ShuffleHuberRegressor(**{"feature_norm": 20.0, "target_bounds": (-12, 12), name: value}).fit(
            features[:500], numbers[:500]
        )
    assert refused.value.parameter == {"max_rounds": "rounds"}.get(name, name)


# --- without scikit-learn --------------------------------------------------------------------------

WITHOUT = """
import sys
sys.modules["sklearn"] = None
import shuffledp, shuffledp.learn, shuffledp.learn.optimize
from shuffledp.learn import LinearModel, load_model
for name in ("ShuffleLogisticRegression", "ShuffleHuberRegressor"):
    try:
        exec(f"from shuffledp.learn import {name}")
    except ImportError as missing:
        print(missing)
"""


def test_without_scikit_learn_only_estimators_are_missing_and_say_so() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["Estimators need scikit-learn: pip install 'shuffledp[learn]'."] * 2


def test_learn_has_only_what_it_says() -> None:
    import shuffledp.learn

    assert "ShuffleRidge" in dir(shuffledp.learn)
    with pytest.raises(AttributeError, match="no attribute 'ShuffleForest'"):
        shuffledp.learn.ShuffleForest  # noqa: B018
