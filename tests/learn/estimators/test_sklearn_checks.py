"""scikit-learn's own checks, all of them: what fails at epsilon 1 has too few people, else it passes."""

import pytest
from sklearn.utils.estimator_checks import check_estimator

from shuffledp.errors import InfeasibleError
from shuffledp.learn import (
    ShuffleHuberRegressor,
    ShuffleLinearSVC,
    ShuffleLogisticRegression,
    ShufflePoissonRegressor,
    ShuffleRidge,
    ShuffleScaler,
    fit_spending,
)
from shuffledp.learn.estimators import base, scaler

# The checks scale their rows by what they are.
pytestmark = pytest.mark.filterwarnings("ignore::shuffledp.errors.FittedScalingWarning")

# The checks' rows are hardly longer than 5, and their targets lie within -3 and 3.
NORM, NUMBERS = {"feature_norm": 5.0}, {"target_bounds": (-3, 3)}
HARDLY_PRIVATE = {
    **NORM, "epsilon": 100.0, "delta": 0.1, "visits": None, "solver": "full-agd", "max_rounds": 40, "count_clipped": 0,
}  # fmt: skip
FEW = {"radius": 4.0, "gradient_bound": 0.3}

# In these 15 people are weighed, or repeated and left out. A repeated row is one more person, with noise of its own, so
# that no two such models are equal to the last digit, however little noise there is.
WEIGHTS = {"check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"}


def failures(estimator) -> dict[str, BaseException]:
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    assert sum(result["status"] == "passed" for result in results) > 30
    return {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"}


@pytest.fixture
def unrehearsed(request, monkeypatch) -> None:
    """No rehearsals, which read no row: all of these have too few people, and the ridge says it of all."""
    if not isinstance(request.getfixturevalue("estimator"), ShuffleRidge):
        monkeypatch.setattr(fit_spending, "warn_if_too_few", lambda solver: None)
        monkeypatch.setattr(base, "outlook", lambda solver: None)
        monkeypatch.setattr(base, "noise_alone", lambda solver, theta: None)


def is_too_few(error: BaseException | None) -> bool:
    """Whether a refusal of too few people is what a check failed by."""
    while error is not None:
        if isinstance(error, InfeasibleError):
            return error.parameter == "users" and "would do" in error.problem
        error = error.__cause__ or error.__context__
    return False


# Every model is in one of the two, and both are of classes and of numbers; the others are a sweep.
@pytest.mark.usefixtures("unrehearsed")
@pytest.mark.parametrize(
    "estimator",
    [
        ShuffleLogisticRegression(**NORM),
        pytest.param(ShuffleLinearSVC(**NORM), marks=pytest.mark.sweep),
        ShuffleRidge(**NORM, **NUMBERS),
        pytest.param(ShuffleHuberRegressor(**NORM, **NUMBERS), marks=pytest.mark.sweep),
        ShufflePoissonRegressor(**NORM, max_target=5.0),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_fails_at_epsilon_one_has_fewer_people_than_one_batch(estimator) -> None:
    found = failures(estimator)
    assert found.keys() >= WEIGHTS
    assert {name: str(error) for name, error in found.items() if not is_too_few(error)} == {}


@pytest.mark.usefixtures("unrehearsed")
@pytest.mark.parametrize(
    "estimator",
    [
        pytest.param(ShuffleLogisticRegression(**HARDLY_PRIVATE), marks=pytest.mark.sweep),
        ShuffleLinearSVC(**HARDLY_PRIVATE),
        pytest.param(ShuffleRidge(**HARDLY_PRIVATE, **NUMBERS, **FEW), marks=pytest.mark.sweep),
        ShuffleHuberRegressor(**HARDLY_PRIVATE, **NUMBERS, **FEW),
        ShufflePoissonRegressor(**HARDLY_PRIVATE, max_target=5.0),
    ],
    ids=lambda each: type(each).__name__,
)
def test_all_but_repeated_people_pass_where_people_are_enough_for_the_noise(estimator) -> None:
    assert failures(estimator).keys() <= WEIGHTS


def test_a_scaler_fails_only_where_a_feature_has_nobody_to_ask(monkeypatch) -> None:
    """The checks have 10 to 100 people, of whom no quantile can be told: here it may be off as far as it likes."""
    monkeypatch.setattr(scaler, "_FURTHEST", 1e9)
    found = failures(ShuffleScaler(bounds=(-10, 10), epsilon=100.0, delta=0.1, people=1, steps=8, random_state=0))
    assert found.keys() == {"check_fit2d_1sample"} and "too few for 10 groups" in str(found["check_fit2d_1sample"])
