"""Intercepts have a ball of their own, and no ridge."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp import Privacy
from shuffledp.errors import InfeasibleError
from shuffledp.learn.optimize import BallWithIntercepts, L2Ball, LogisticLoss, Problem, plan

DOMAIN = BallWithIntercepts(dimension=6, radius=2.0, intercept_radius=3.0, every=3)


@given(seed=st.integers(0, 1000))
def test_the_nearest_point_is_in_the_set_and_no_other_is_nearer(seed: int) -> None:
    rng = np.random.default_rng(seed)
    far = rng.normal(size=6) * 5
    near = DOMAIN.project(far)
    rows = near.reshape(2, 3)
    assert np.linalg.norm(rows[:, :2]) <= 2 + 1e-12 and np.linalg.norm(rows[:, 2]) <= 3 + 1e-12
    assert (DOMAIN.project(near) == pytest.approx(near)) and np.linalg.norm(near) <= DOMAIN.reach + 1e-12
    other = DOMAIN.project(rng.normal(size=6) * 5)
    # The projection onto a convex set: no angle to another point of it is acute.
    assert (far - near) @ (other - near) <= 1e-9


def test_a_ridge_draws_weights_and_leaves_intercepts_alone() -> None:
    loss = LogisticLoss(ridge=0.5)
    for domain, kept in ((BallWithIntercepts(dimension=2, radius=5, intercept_radius=5, every=2), 0.0), (None, -0.5)):
        ball = domain or L2Ball(dimension=2, radius=5)
        problem = Problem.of(loss, ball, users=10_000, privacy=Privacy(1, 1e-6), visits=1)
        solver = plan(problem, solver="sgd")
        state = solver.start()
        state = type(state)(state.fingerprint, 0, np.ones(2), np.ones(2))
        cohort = solver.ask(state)
        moved = solver.tell(state, cohort.users, {1: np.zeros(2)}).point - 1
        assert moved[0] < 0 and (moved[1] < 0) == (kept < 0)
        assert problem.curvature == (0.0 if domain else 0.5)
    with pytest.raises(InfeasibleError, match="strongly convex in the intercept, too"):
        plan(Problem.of(loss, DOMAIN, users=10_000, privacy=Privacy(1, 1e-6)), solver="phased-agd")
