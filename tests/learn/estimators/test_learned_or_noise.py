"""What can be expected is said before anything is spent, and a model that cannot be told from noise says so."""

import warnings

import numpy as np
import pytest

from shuffledp import Privacy
from shuffledp.errors import NothingLearnedWarning, TooFewPeopleWarning
from shuffledp.learn import ShuffleLinearSVC, ShuffleLogisticRegression, ShuffleRidge
from shuffledp.learn.optimize import L2Ball, LogisticLoss, Problem, plan
from shuffledp.learn.optimize import noise_alone as judging
from shuffledp.learn.optimize.noise_alone import worlds_without_signal
from shuffledp.learn.optimize.outlook import near_limit, outlook, too_few
from shuffledp.learn.optimize.stages import noise_of
from shuffledp.learn.optimize.vacuous import excess_of_nothing, proves_nothing
from shuffledp.learn.optimize.worlds import World

RUNS = 12


def fitted(people: int, seed: int, *, signal: bool, often: bool = False) -> ShuffleLogisticRegression:
    """Of five features, uniform; classes follow them closely, or are drawn without a look at them."""
    generator = np.random.default_rng(seed)
    rows = generator.uniform(0, 1, (people, 5))
    scores = 6 * rows @ np.linspace(1, -1, 5) if signal else np.full(people, 0.5)
    labels = (scores + generator.logistic(size=people) > 0).astype(int)
    visits = None if often else 1
    model = ShuffleLogisticRegression(feature_bounds=(0, 1), classes=[0, 1], random_state=seed, visits=visits)
    return model.set_params(solver="full-agd" if often else "agd", max_rounds=40).fit(rows, labels)


@pytest.mark.parametrize(("people", "often"), [(500, False), (8000, False), (3000, True)])
def test_labels_that_are_noise_are_said_to_be_and_clear_ones_are_not(people: int, often: bool) -> None:
    """As measured, of noise at least 80% of models say so at every size tried, and 95% of all; see the benchmark."""
    said = [fitted(people, seed, signal=False, often=often).noise_alone_.is_all for seed in range(RUNS)]
    assert np.mean(said) >= 0.75
    if people > 1000:
        assert not any(fitted(people, seed, signal=True, often=often).noise_alone_.is_all for seed in range(RUNS))


def test_the_wrong_twin_with_a_quarter_of_the_noise_calls_noise_a_signal(monkeypatch) -> None:
    monkeypatch.setattr(judging, "noise_of", lambda *known: noise_of(*known) / 16)
    judging._rehearsed.cache_clear()
    said = [fitted(500, seed, signal=False).noise_alone_.is_all for seed in range(RUNS)]
    judging._rehearsed.cache_clear()
    assert np.mean(said) < 0.5


def test_a_model_of_noise_warns_once_and_one_that_learned_does_not() -> None:
    with pytest.warns(NothingLearnedWarning, match="cannot be told from noise: weights are .* Evaluate it"):
        fitted(500, 3, signal=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NothingLearnedWarning)
        fitted(8000, 3, signal=True)


def test_nothing_is_said_of_models_that_begin_elsewhere_or_are_not_rehearsed() -> None:
    rows, labels = np.tile([[0.0], [1.0]], (2000, 1)), np.tile([0, 1], 2000)
    model = ShuffleLogisticRegression(feature_bounds=(0, 1), classes=[0, 1], random_state=1, solver="agd")
    assert model.partial_fit(rows, labels).noise_alone_ is not None
    assert model.partial_fit(rows, labels).noise_alone_ is None


def test_worlds_without_a_signal_have_none_and_numbers_are_judged_too() -> None:
    generator = np.random.default_rng(1)
    rows = generator.uniform(0, 1, (20_000, 3))
    known = {"feature_bounds": (0, 1), "target_bounds": (-1, 1), "random_state": 1, "solver": "agd"}
    noise = ShuffleRidge(**known).fit(rows, generator.uniform(-1, 1, 20_000))
    line = ShuffleRidge(**known).fit(rows, rows @ [1.0, -0.5, -0.5])
    assert noise.noise_alone_.is_all and not line.noise_alone_.is_all
    for world in worlds_without_signal(noise.loss_, noise.solver_.problem.domain):
        apart = (world.targets - world.targets.mean()) @ (world.features - world.features.mean(axis=0))
        assert np.abs(apart).max() < 1e-8 and world.lengths.max() <= 1 + 1e-9


def breast_cancer(users: int, epsilon: float = 1.0):
    """The problem of thirty features, as that table has, asked once."""
    model = ShuffleLogisticRegression(epsilon=epsilon, feature_bounds=(0, 1), classes=[0, 1])
    return plan(model.problem(users, 30), solver="agd")


def test_who_is_near_the_limit_is_told_in_how_many_runs_nothing_is_learned() -> None:
    """341 people learn on average; a third of all runs and more do not, which the mean does not show."""
    few, near, many = (breast_cancer(users) for users in (100, 341, 5000))
    assert too_few(near) is None
    assert "runs learn nothing" in near_limit(near) and "8 of 10 runs" in near_limit(near)
    assert near_limit(many) is None and outlook(many).in_vain < outlook(many).runs / 5
    assert outlook(few).in_vain > outlook(near).in_vain > outlook(many).in_vain
    assert outlook(few).part > outlook(near).part > outlook(many).part
    assert outlook(near).low < outlook(near).part < outlook(near).high


def test_worlds_in_which_nothing_is_lost_have_an_outlook_too(monkeypatch) -> None:
    """A hinge loss of one feature and hardly any noise is 0 in some world: there is no logarithm of that."""
    monkeypatch.setattr(World, "mean_loss", lambda *known: 0.0)
    found = outlook(plan(ShuffleLinearSVC(feature_bounds=(0, 1), classes=[0, 1]).problem(300, 1), solver="sgd"))
    assert 0 < found.part < 1e-3 and found.in_vain == 0


def test_the_warning_comes_before_anything_is_spent() -> None:
    generator = np.random.default_rng(2)
    rows, labels = generator.uniform(0, 1, (341, 30)), generator.integers(0, 2, 341)
    model = ShuffleLogisticRegression(feature_bounds=(0, 1), classes=[0, 1], random_state=1, ledger="no such file")
    with pytest.warns(TooFewPeopleWarning, match="near the fewest that learn"), pytest.raises(Exception, match="file"):
        model.fit(rows, labels)


@pytest.mark.parametrize(("bound", "vain"), [(0.7, True), (0.6, False), (None, False)])
def test_a_bound_proves_nothing_where_a_model_of_zeros_is_no_worse(bound: float | None, vain: bool) -> None:
    problem = Problem.of(LogisticLoss(), L2Ball(dimension=3, radius=10), users=1000, privacy=Privacy(1, 1e-6))
    assert proves_nothing(problem, bound) is vain
    assert excess_of_nothing(problem) == pytest.approx(np.log(2))
