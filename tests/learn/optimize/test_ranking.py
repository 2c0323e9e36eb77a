"""Rehearsals rank solvers: from the problem alone, with the solvers' own steps and the plans' noise."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from shuffledp import Privacy
from shuffledp.errors import ParameterError
from shuffledp.learn.optimize import (
    HingeLoss,
    HuberLoss,
    L2Ball,
    LogisticLoss,
    Problem,
    SoftmaxLoss,
    SquaredLoss,
    plan,
)
from shuffledp.learn.optimize.choosing import METHODS, rehearsals
from shuffledp.learn.optimize.gd import GdStage
from shuffledp.learn.optimize.outlook import too_few
from shuffledp.learn.optimize.ranking import Candidate, Rehearsals, Rehearsed, chosen_stages, mean_part, ranked
from shuffledp.learn.optimize.rehearsal import rehearse
from shuffledp.learn.optimize.running import CohortSums, run_solver
from shuffledp.learn.optimize.stages import SteppedMethod, noise_of
from shuffledp.learn.optimize.worlds import SPECS, Normals, World, world_of
from shuffledp.randomness import RandomBits

PRIVACY = Privacy(1, 1e-6)
BALL = L2Ball(dimension=5, radius=5)
MANY = Problem.of(LogisticLoss(), BALL, users=8000, privacy=PRIVACY, rounds=60)
SHUFFLED = tuple(method for method in METHODS.values() if method.model == "shuffle")


def test_auto_takes_what_is_best_in_rehearsals_whatever_rounds_are_allowed() -> None:
    """By bounds it took gd with 1,000 rounds and full-agd with 400, and agd where full-agd was better."""
    first = {rounds: rehearsals(replace(MANY, rounds=rounds))[0] for rounds in (60, 400)}
    # These two are alike on rows of five features: which is a little better depends on the rounds that are allowed.
    assert {each.candidate.method for each in first.values()} <= {"conditioned", "full-agd"}
    assert first[60].score == pytest.approx(first[400].score, rel=0.01)
    ranks = {each.candidate.method: each.score for each in reversed(rehearsals(MANY))}
    assert max(ranks["full-agd"], ranks["conditioned"]) < min(ranks["gd"], ranks["agd"], ranks["sgd"])
    solver = plan(MANY)
    assert (solver.name, solver.chosen.by) == (first[60].candidate.method, "simulation") and solver.guarantee().holds
    once = plan(replace(MANY, visits=1))
    assert once.name == "agd" and once.guarantee().rounds_per_user == 1
    named = plan(replace(MANY, visits=1), solver="least-bound")
    assert (named.chosen.by, named.name, named.stages) != (once.chosen.by, once.name, once.stages)


def test_what_is_not_rehearsed_is_ranked_by_bounds_and_says_so() -> None:
    bare = replace(MANY, loss=None, visits=1)
    solver = plan(bare)
    assert solver.chosen.by == "bound" and "not named" in str(solver.chosen)
    assert solver.stages == plan(replace(MANY, visits=1), solver="least-bound").stages
    assert rehearsals(bare) == () and too_few(solver) is None
    assert plan(MANY, solver="sgd").chosen.by == "name"
    with pytest.raises(ParameterError, match="auto, least-bound or one of"):
        plan(MANY, solver="newton")


def test_rehearsals_are_a_function_of_the_problem() -> None:
    problem = replace(MANY, visits=1)
    assert ranked.__wrapped__(problem, LogisticLoss(), SHUFFLED) == ranked(problem, LogisticLoss(), SHUFFLED)


def test_the_noise_of_rehearsals_is_the_plans() -> None:
    for problem in (MANY, replace(MANY, visits=1, honest_fraction=0.5)):
        rehearsed, stages = chosen_stages(problem, LogisticLoss(), SHUFFLED)
        expected = Rehearsals(problem, LogisticLoss(), SHUFFLED).noise(rehearsed.candidate.method, stages[0].rounds)
        assert expected == pytest.approx(noise_of(problem, stages[0].plan), rel=0.04)


@pytest.mark.parametrize(("part", "is_right"), [(1.0, True), (0.8, False)])
def test_rehearsed_noise_has_the_variance_it_is_told(part: float, is_right: bool) -> None:
    """A population without gradients is moved by noise alone. False alarms: 1e-9."""
    problem = Problem.of(LogisticLoss(), L2Ball(dimension=5, radius=1e6), users=100, privacy=PRIVACY)
    still = World("still", LogisticLoss(), np.zeros((4, 5)), np.ones(4), np.ones(4))
    stage = GdStage(rounds=1, users=100, plan=None, bound=1.0, step_size=1.0)
    noise = 5 * 30.0**2
    moved = np.array([rehearse(problem, (stage,), (part**2 * noise,), still, seed) for seed in range(200)])
    squares = float((moved**2).sum()) * 100**2 / 30.0**2
    low, high = stats.chi2.ppf([0.5e-9, 1 - 0.5e-9], moved.size)
    assert bool(low < squares < high) is is_right


def test_a_rehearsal_takes_the_steps_of_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a population that is drawn row by row, without noise, it is the solver's own run."""
    loss = LogisticLoss(ridge=0.01)
    world = world_of(SPECS[1], loss, BALL, seed=3)
    assert world is not None
    people = len(world.targets)
    problem = Problem.of(loss, BALL, users=people, privacy=None, rounds=12)
    monkeypatch.setattr(World, "drawn", lambda self, users, normals: np.ones(people))
    for name in ("full-agd", "gd", "conditioned"):
        solver = plan(problem, solver=name)
        sums = CohortSums(loss, (world.features, world.targets), bits=RandomBits.seeded(1), exact=True)
        found = rehearse(problem, solver.stages, (0.0,), world, 1)
        assert found == pytest.approx(run_solver(solver, sums).theta, rel=1e-9)


@pytest.mark.parametrize("loss", [LogisticLoss(), HingeLoss(), SquaredLoss(), HuberLoss(threshold=0.25)])
def test_populations_send_what_users_send(loss) -> None:
    world = world_of(SPECS[2], loss, BALL, seed=5)
    assert world is not None
    counts, point = np.arange(len(world.targets), dtype=np.float64), np.linspace(-1, 1, 5)
    for clip in (10.0, 0.1):
        for smoothing in (None, 2.0) if loss.has_prox else (None,):
            sent, _ = loss.sent(point, clip, smoothing, world.features, world.targets)
            assert world.gradient_sum(point, clip, smoothing, counts) == pytest.approx(counts @ sent, rel=1e-8)


def test_worlds_are_as_declared() -> None:
    for loss, size in ((LogisticLoss(feature_bound=2.0), 1), (SquaredLoss(), 7), (SoftmaxLoss(classes=3), 12)):
        domain = L2Ball(dimension=size, radius=3)
        for place, spec in enumerate(SPECS):
            world = world_of(spec, loss, domain, seed=place)
            assert world is not None
            loss.check_rows(size, world.features, world.targets)
            assert world.lengths.max() <= loss.feature_bound * (1 + 1e-12)
            assert 0 < world.constant_loss() <= world.mean_loss(np.zeros(size)) + 1e-12
    drawn = [world.drawn(users, Normals(1)) for users in (100, 10**6)]
    assert [round(counts.sum()) for counts in drawn] == [100, 10**6]


def test_bounds_of_other_steps_are_proved_and_no_smaller() -> None:
    for loss in (LogisticLoss(), HingeLoss(), SquaredLoss(ridge=0.1)):
        problem = Problem.of(loss, BALL, users=5000, privacy=PRIVACY, rounds=50)
        for method in SHUFFLED:
            if isinstance(method, SteppedMethod) and method.refusal(problem) is None and method.name != "conditioned":
                sketch = method.sketch(problem, 5000, BALL.reach, 50)
                noise = method.expected_noise(problem, sketch.rounds)
                own = method.steps(problem, sketch, BALL.reach, noise, None)
                assert method.proved_bound(problem, own, noise) == pytest.approx(own.bound, rel=1e-6)
                for scale in (0.25, 4.0):
                    other = method.steps(problem, sketch, scale * BALL.reach, noise, None)
                    assert method.proved_bound(problem, other, noise) > own.bound * (1 - 1e-9)


def test_steps_that_were_rehearsed_are_run_with_noise_for_their_rounds() -> None:
    rehearsed, (stage,) = chosen_stages(MANY, LogisticLoss(), SHUFFLED)
    assert rehearsed == ranked(MANY, LogisticLoss(), SHUFFLED)[0]
    assert isinstance(rehearsed, Rehearsed) and stage.rounds == (rehearsed.candidate.rounds or stage.rounds)


def test_too_few_people_are_told_from_when_on_it_is_worth_it() -> None:
    ball = L2Ball(dimension=31, radius=10)
    few = Problem.of(LogisticLoss(), ball, users=300, privacy=Privacy(0.5, 1e-6), visits=1)
    words = too_few(plan(few))
    assert words is not None and "300 people are too few" in words
    enough = int(words.split("From about ")[1].split()[0].replace(",", ""))
    assert enough > 300
    assert mean_part(ranked(replace(few, users=2 * enough), LogisticLoss(), (METHODS["agd"],))[0].losses) < 0.95
    assert too_few(plan(few, solver="sgd")) is not None
    assert too_few(plan(MANY)) is None and too_few(plan(MANY, solver="agd")) is None


def test_where_targets_are_coins_the_chosen_steps_do_not_diverge() -> None:
    """Half of what people answered in a survey hardly follows from the rest: there losses are as steep as can be.

    Steps twice as long as the metric's smoothness allows lost a tenth more than a constant, of 50,000 people.
    """
    rng = np.random.default_rng(3)
    inner = np.sign(rng.normal(size=(128, 24)) + 0.7) / np.sqrt(24)
    # Every row has either target as often.
    rows = np.repeat(np.column_stack((inner, np.ones(128))) / np.sqrt(2), 2, axis=0)
    coins = World("coins", LogisticLoss(), rows, np.tile([1.0, -1.0], 128), np.ones(256))
    problem = Problem.of(LogisticLoss(), L2Ball(dimension=25, radius=100), users=50_000, privacy=Privacy(4, 1e-6))
    methods = (METHODS["conditioned"],)
    best = ranked(problem, LogisticLoss(), methods)[0].candidate

    def part(candidate: Candidate) -> float:
        found = Rehearsals(problem, LogisticLoss(), methods)
        stages = found.stages(candidate, planned=False)
        noises = tuple(found.noise(candidate.method, stage.rounds) for stage in stages)
        return float(np.mean([coins.mean_loss(rehearse(problem, stages, noises, coins, run)) for run in (1, 2)]))

    assert part(best) < 1.02 * np.log(2) < 1.05 * np.log(2) < part(Candidate("conditioned", 97, 2.0))
