from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize

from shuffledp import Privacy
from shuffledp.errors import DataError, ParameterError
from shuffledp.learn.optimize import L2Ball, LogisticLoss, PoissonLoss, Problem, SoftmaxLoss, loss_from, plan
from shuffledp.learn.optimize.running import CohortSums, run_solver
from shuffledp.randomness import RandomBits

LOSS = SoftmaxLoss(classes=4)


def _rows(count: int, seed: int, size: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(count, size))
    features *= (rng.random(count) / np.linalg.norm(features, axis=1))[:, None]
    return features, rng.integers(0, 4, count).astype(float)


def test_gradients_are_the_values_derivatives() -> None:
    rows, theta, step = _rows(100, 1), np.random.default_rng(2).normal(size=12), 1e-6
    gradients = LOSS.gradients(theta, *rows)
    for axis in range(12):
        move = np.eye(12)[axis] * step
        slopes = (LOSS.values(theta + move, *rows) - LOSS.values(theta - move, *rows)) / (2 * step)
        assert np.allclose(slopes, gradients[:, axis], atol=1e-8)
    assert np.allclose(
        np.exp(-LOSS.values(theta, *rows)), LOSS.probabilities(theta, rows[0])[range(100), rows[1].astype(int)]
    )


def test_two_classes_are_the_logistic_loss() -> None:
    features, targets = _rows(50, 3)
    theta, labels = np.random.default_rng(4).normal(size=6), targets % 2
    two, one = SoftmaxLoss(classes=2), LogisticLoss()
    difference = theta[3:] - theta[:3]
    assert np.allclose(two.values(theta, features, labels), one.values(difference, features, 2 * labels - 1))
    halves = one.gradients(difference, features, 2 * labels - 1)
    assert np.allclose(two.gradients(theta, features, labels), np.hstack([-halves, halves]))


def test_constants_are_the_least_that_hold() -> None:
    """Brute force: no gradient is longer than sqrt(2), no Hessian above 1/2, and both are reached in the limit."""
    rng = np.random.default_rng(5)
    features = np.array([[0.6, 0.8, 0.0]])
    longest, steepest = 0.0, 0.0
    for _ in range(400):
        theta = rng.normal(size=12) * rng.choice([0.0, 1.0, 10.0, 40.0])
        length = np.linalg.norm(LOSS.gradients(theta, features, np.array([rng.integers(4)])))
        p = LOSS.probabilities(theta, features)[0]
        longest = max(longest, float(length))
        steepest = max(steepest, float(np.linalg.eigvalsh(np.diag(p) - np.outer(p, p)).max()))
    even = np.zeros((4, 3))
    even[:2] = 40 * features
    p = LOSS.probabilities(even.ravel(), features)[0]
    steepest = max(steepest, float(np.linalg.eigvalsh(np.diag(p) - np.outer(p, p)).max()))
    assert 1 - 1e-3 < longest / LOSS.lipschitz(L2Ball(dimension=12, radius=1)) <= 1 + 1e-12
    assert 1 - 1e-9 < steepest / LOSS.smoothness <= 1 + 1e-12
    assert SoftmaxLoss(classes=4, feature_bound=3.0).smoothness == 9 * LOSS.smoothness


@pytest.mark.parametrize("loss", [LOSS, PoissonLoss(target_bound=3.0)], ids=lambda loss: loss.name)
def test_convex_on_random_segments(loss) -> None:
    rng, rows = np.random.default_rng(6), _rows(200, 7)
    for _ in range(50):
        one, other = rng.normal(size=(2, 3 * loss.outputs)) * 5
        part = rng.random()
        between = loss.values(part * one + (1 - part) * other, *rows)
        assert (between <= part * loss.values(one, *rows) + (1 - part) * loss.values(other, *rows) + 1e-9).all()


def test_a_gradient_is_clipped_as_a_whole() -> None:
    features, targets = _rows(500, 8)
    theta = np.random.default_rng(9).normal(size=12)
    sent, clipped = LOSS.sent(theta, 0.3, None, features, targets)
    exact = LOSS.gradients(theta, features, targets)
    lengths = np.linalg.norm(exact, axis=1)
    assert 100 < clipped == np.count_nonzero(lengths > 0.3)
    assert np.linalg.norm(sent, axis=1).max() <= 0.3
    assert np.allclose(sent, exact * np.minimum(1, 0.3 / lengths)[:, None])


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e-160, 1e-8, 1.0, 1e8, 1e100, 1e153, 1e155, 1e300])
@pytest.mark.parametrize("certain", [0.0, 1.0, 500.0])
def test_nothing_longer_than_the_bound_is_sent_whatever_the_squares_do(size: float, certain: float) -> None:
    """Neither huge features nor a residual whose square vanishes (1e-217 at a score of 500) may hide a length."""
    features = np.array([[size, 0.0], [0.0, size]])
    theta = np.array([0.0, 0.0, certain / size if certain / size < 1e300 else 0.0, 0.0, 0.0, 0.0])
    sent, clipped = SoftmaxLoss(classes=3).sent(theta, 2.0, None, features, np.array([1.0, 0.0]))
    lengths = np.sqrt((sent.astype(np.longdouble) ** 2).sum(axis=1))
    exact = np.linalg.norm(
        SoftmaxLoss(classes=3).gradients(theta, features / size, np.array([1.0, 0.0])).astype(np.longdouble), axis=1
    )
    assert (lengths <= 2.0).all()
    if certain < 1.0:
        assert clipped == np.count_nonzero(exact * size > 2.0)


def test_bad_rows_are_refused_in_words() -> None:
    good = np.zeros((2, 3))
    for rows, words in (
        ((good, [0.0, 4.0]), r"targets must be a class in 0\.\.3, got something else in row 2"),
        ((good, [0.5, 1.0]), "got something else in row 1"),
        ((good, [-1.0, 1.0]), "got something else in row 1"),
        ((good, [0.0, np.nan]), "targets must be finite"),
        (([[0.0, np.inf, 0.0]], [0.0]), "features must be finite"),
        ((np.zeros((2, 5)), [0.0, 1.0]), "3 columns"),
        ((good,), "features and classes"),
    ):
        with pytest.raises(DataError, match=words):
            LOSS.check_rows(12, *rows)
    with pytest.raises(DataError, match="multiple of the 4 classes"):
        LOSS.check_rows(13, good, [0.0, 1.0])
    with pytest.raises(DataError, match=r"count in 0\.\.3, got something else in row 1"):
        PoissonLoss(target_bound=3).check_rows(3, good, [5.0, 0.0])
    with pytest.raises(DataError, match=r"count in 0\.\.3, got something else in row 2"):
        PoissonLoss(target_bound=3).check_rows(3, good, [3.0, -1.0])
    with pytest.raises(ParameterError, match="proximal map"):
        LOSS.sent(np.zeros(12), 1.0, 2.0, good, np.zeros(2))
    with pytest.raises(ParameterError, match="classes must be a whole number"):
        SoftmaxLoss(classes=1)


@pytest.mark.parametrize("largest", [0.5, 1.0, 4.0, 100.0])
@pytest.mark.parametrize("radius", [0.1, 1.0, 3.0])
def test_counts_have_the_constants_of_their_domain(largest: float, radius: float) -> None:
    loss = PoissonLoss(target_bound=4.0, largest_mean=largest, feature_bound=2.0)
    scores = np.linspace(-2 * radius, 2 * radius, 2001)
    steepest = max(np.abs(loss.slopes(scores, np.full(2001, count))).max() for count in (0.0, 4.0))
    assert loss.lipschitz(L2Ball(dimension=3, radius=radius)) == pytest.approx(2 * steepest, rel=1e-12)
    slopes = loss.slopes(np.linspace(-9, 9, 100_001), np.zeros(100_001))
    assert 0.999 < np.diff(slopes).max() / (18 / 100_000) * 4 / loss.smoothness <= 1 + 1e-9


def test_an_infinite_mean_costs_no_more_than_its_tangent() -> None:
    loss = PoissonLoss(target_bound=3.0)
    assert np.isfinite(loss.score_values(np.array([800.0, 1e5]), np.zeros(2))).all()
    sent, clipped = loss.sent(np.full(3, 1e4), 5.0, None, np.ones((1, 3)), np.zeros(1))
    assert clipped == 1 and np.linalg.norm(sent) <= 5.0


def test_losses_go_through_documents() -> None:
    for loss in (
        SoftmaxLoss(classes=5, ridge=0.1),
        PoissonLoss(target_bound=7.0),
        PoissonLoss(target_bound=7, largest_mean=2),
    ):
        assert loss_from(loss.document()) == loss


def test_every_solver_learns_several_classes() -> None:
    """Twenty thousand people of four classes: the model is near the best, its excess below the bound."""
    rng = np.random.default_rng(10)
    theta = rng.normal(size=(4, 3))
    theta *= 2.5 / np.linalg.norm(theta)
    features = rng.normal(size=(20_000, 3))
    features /= np.linalg.norm(features, axis=1)[:, None]
    targets = (features @ theta.T + rng.gumbel(size=(20_000, 4))).argmax(axis=1).astype(float)
    ball = L2Ball(dimension=12, radius=3)

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        return LOSS.objective(flat, features, targets), LOSS.gradients(flat, features, targets).mean(axis=0)

    best = optimize.minimize(objective, np.zeros(12), jac=True, tol=1e-8).fun
    for name in ("full-agd", "agd"):
        solver = plan(Problem.of(LOSS, ball, users=20_000, privacy=Privacy(1, 1e-6), rounds=60), solver=name)
        run = run_solver(solver, CohortSums(LOSS, (features, targets), bits=RandomBits.seeded(11)))
        excess = LOSS.objective(run.theta, features, targets) - best
        assert excess < solver.bound
        assert excess < 0.03
        assert run.clipped == 0
    # What four scores may overfit is more than what one may, and no solver is planned as if there were one.
    assert solver.problem.document()["outputs"] == 4
    full = Problem.of(LOSS, ball, users=20_000, privacy=Privacy(1, 1e-6), rounds=60)
    assert plan(full, solver="full-agd").bound > plan(replace(full, outputs=1), solver="full-agd").bound + 0.1
