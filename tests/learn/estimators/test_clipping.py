"""What was clipped is counted privately, among people who are asked nothing else."""

import warnings

import numpy as np
import pytest

from shuffledp import ParameterError, Privacy, RandomBits
from shuffledp.accounting.spending import Spending
from shuffledp.errors import RepeatedFitWarning
from shuffledp.learn import ShuffleLogisticRegression, ShuffleRidge
from shuffledp.learn.estimators import running
from shuffledp.learn.estimators.clipping import ClipCounts, ClippedWarning
from shuffledp.learn.estimators.guarantees import guarantee_of
from shuffledp.learn.fit_spending import entry_of_solver
from shuffledp.learn.optimize import plan

ONE = Privacy(1, 1e-6)


@pytest.fixture(scope="module")
def people() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    features = rng.uniform(0, 10, (12_000, 2))
    return features, features @ [1.0, 1.0] + rng.normal(size=12_000)


def test_data_that_cannot_have_met_what_was_declared_are_said_to(people) -> None:
    features, numbers = people
    asked = {"random_state": 1, "max_rounds": 5}
    with pytest.warns(ClippedWarning) as said:
        model = ShuffleRidge(feature_bounds=(0, 1), target_bounds=(-1, 1), **asked).fit(features, numbers)
    rows, targets = model.clipped_shares_
    # Others may have learned from these people before, in the same process.
    words = [str(each.message) for each in said if each.category is ClippedWarning]
    assert "At least 8" in words[0] and "declare feature_bounds" in words[0]
    assert "declare target_bounds" in words[1]
    for share, name in ((rows, "rows"), (targets, "targets")):
        true = model.clipped_[name] / 12_000
        assert share.what == name and share.low <= true <= share.high and share.is_too_much and share.users == 300
    assert model.model().document()["clipped"][0]["share"] == rows.share
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # That the same people are asked again is another matter.
        warnings.simplefilter("ignore", RepeatedFitWarning)
        fine = ShuffleRidge(feature_bounds=(0, 10), target_bounds=(-5, 25), **asked).fit(features, numbers)
    assert [share.is_too_much for share in fine.clipped_shares_] == [False, False]


def test_nobody_is_asked_both_and_the_guarantee_says_so(people, monkeypatch) -> None:
    """The rows of cohorts and those of counts are disjoint: no row is in two questions."""
    features, numbers = people
    asked: dict[str, np.ndarray] = {}
    counted, sums = ClipCounts.counted, running.CohortSums

    def count(self, clipped, rows, **how):
        asked["counted"] = rows
        return counted(self, clipped, rows, **how)

    def cohorts(*all_, order, **how):
        asked["gradients"] = order
        return sums(*all_, order=order, **how)

    monkeypatch.setattr(ClipCounts, "counted", count)
    monkeypatch.setattr(running, "CohortSums", cohorts)
    model = ShuffleRidge(feature_bounds=(0, 10), target_bounds=(-5, 25), random_state=1, max_rounds=5)
    model.fit(features, numbers)
    assert model.solver_.problem.users == 11_400 == model.problem(12_000, 2).users and model.n_users_ == 12_000
    assert "600 other people were asked only" in model.guarantee_.because and model.guarantee_.holds
    both = np.concatenate((asked["counted"], asked["gradients"]))
    assert asked["counted"].size == 600 and np.unique(both).size == both.size == 12_000


def test_counts_are_planned_with_the_whole_epsilon_and_for_few_people() -> None:
    counts = ClipCounts.planned("auto", 100_000, ("rows",), ONE, 0.5)
    plan = counts.plan
    assert counts.users == 500 and plan.honest_users == 250
    assert sum(term.value for term in plan.delta_terms(1.0, plan.honest_users)) <= 1e-6
    assert ClipCounts.planned("auto", 3_999, ("rows",), ONE).users == 0
    assert ClipCounts.planned(0, 10, ("rows",), ONE).counted({}, np.arange(0), bits=RandomBits.seeded(1)) == ()
    assert ClipCounts.planned(50, 1000, ("rows", "targets"), ONE).users == 100
    faint = Privacy(0.05, 1e-6)
    assert (
        ClipCounts.planned("auto", 10_000, ("rows",), faint).users == 0
        and ClipCounts.planned(500, 10_000, ("rows",), faint).users == 500
    )
    for bad in ("some", -1, 1.5, True, 500):
        with pytest.raises(ParameterError) as refused:
            ClipCounts.planned(bad, 1000, ("rows", "targets"), ONE)
        assert refused.value.parameter == "count_clipped"


def test_a_count_with_less_noise_is_refused() -> None:
    """Counts planned for epsilon 1.2 do not pass as counts of epsilon 1."""
    solver = ShuffleLogisticRegression(feature_bounds=(0, 1), max_rounds=2).problem(5000, 2)
    solver = plan(solver, solver="sgd")
    assert guarantee_of(solver, ClipCounts.planned(250, 5000, ("rows",), ONE), ()).holds
    with pytest.raises(ParameterError, match="passed by the count"):
        guarantee_of(solver, ClipCounts.planned(250, 5000, ("rows",), Privacy(1.2, 1e-6)), ())


def test_a_ledger_is_charged_what_holds_for_those_who_are_counted_too() -> None:
    """Over fits the solver's Gaussian pair adds up to less than the claim, and covers nobody who is counted instead."""
    solver = plan(ShuffleLogisticRegression(feature_bounds=(0, 1), max_rounds=2).problem(5000, 2), solver="sgd")
    alone, both = entry_of_solver(solver), entry_of_solver(solver, asks_else=True)
    assert both.claim == alone.claim == ONE
    assert Spending((both, both)).epsilon(1e-5) > Spending((alone, alone)).epsilon(1e-5)


def test_intervals_hold_as_often_as_they_say() -> None:
    """400 counts of a share of 0.3: fewer than 94% would cover by chance with probability below 1e-9 (Hoeffding)."""
    counts, bits = ClipCounts.planned(200, 10_000, ("rows",), ONE), RandomBits.seeded(11)
    rng = np.random.default_rng(12)
    clipped = {"rows": rng.random(10_000) < 0.3}
    true, covered, narrow = clipped["rows"].mean(), 0, 0
    for _ in range(400):
        (share,) = counts.counted(clipped, rng.permutation(10_000)[:200], bits=bits)
        covered += share.low <= true <= share.high
        narrow += abs(share.share - true) <= (share.high - share.low) / 20
    assert share.confidence == pytest.approx(0.94) and covered >= 0.94 * 400 and narrow < 0.94 * 400 / 2


def test_labels_have_no_targets_to_clip(people) -> None:
    features, numbers = people
    model = ShuffleLogisticRegression(feature_bounds=(0, 10), classes=[0, 1], random_state=1, max_rounds=3)
    model.fit(features, (numbers > 10).astype(int))
    assert [share.what for share in model.clipped_shares_] == ["rows"] and model.solver_.problem.users == 11_500
