import numpy as np
import pytest
from scipy import optimize

from shuffledp.errors import DataError, ParameterError
from shuffledp.learn.optimize import (
    CustomLoss,
    HingeLoss,
    HuberLoss,
    L2Ball,
    LinearLoss,
    LogisticLoss,
    PoissonLoss,
    SquaredLoss,
)

BALL = L2Ball(dimension=3, radius=2)
LINEAR = {loss.name: loss for loss in (LogisticLoss(), HingeLoss(), SquaredLoss(), HuberLoss())}
LINEAR["poisson"] = PoissonLoss(target_bound=3.0)


def _rows(loss: LinearLoss, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(count, 3))
    features *= (rng.random(count) / np.linalg.norm(features, axis=1))[:, None]
    labels = rng.choice([-1.0, 1.0], count)
    if loss.name == "poisson":
        return features, rng.integers(0, 4, count).astype(float)
    return features, labels if loss.name in ("logistic", "hinge") else labels * rng.random(count)


@pytest.mark.parametrize("name", LINEAR)
def test_gradients_are_the_values_derivatives(name: str) -> None:
    loss = LINEAR[name]
    rows, theta, step = _rows(loss, 200, 1), np.array([0.3, -0.8, 0.5]), 1e-6
    for axis in range(3):
        move = np.eye(3)[axis] * step
        slopes = (loss.values(theta + move, *rows) - loss.values(theta - move, *rows)) / (2 * step)
        assert np.allclose(slopes, loss.gradients(theta, *rows)[:, axis], atol=1e-4)


@pytest.mark.parametrize("name", LINEAR)
def test_constants_hold_and_are_nearly_reached(name: str) -> None:
    loss = LINEAR[name]
    rng, longest, steepest = np.random.default_rng(2), 0.0, 0.0
    for _ in range(300):
        features = rng.normal(size=(1, 3))
        features /= np.linalg.norm(features)
        theta = rng.choice([-1, 1]) * 2 * features[0] if rng.random() < 0.5 else BALL.project(rng.normal(size=3))
        near = theta + 1e-4 * features[0]
        rows = features, rng.choice([0.0, 3.0] if name == "poisson" else [-1.0, 1.0], 1)
        gradient = loss.gradients(theta, *rows)
        longest = max(longest, float(np.linalg.norm(gradient)))
        if loss.smoothness is not None:
            steepest = max(steepest, float(np.linalg.norm(loss.gradients(near, *rows) - gradient)) / 1e-4)
    assert 0.85 * loss.lipschitz(BALL) <= longest <= loss.lipschitz(BALL) + 1e-9
    if loss.smoothness is not None:
        assert 0.8 * loss.smoothness <= steepest <= loss.smoothness * (1 + 1e-6)


@pytest.mark.parametrize("loss", [HingeLoss(), SquaredLoss(), HuberLoss(threshold=0.2)], ids=lambda loss: loss.name)
@pytest.mark.parametrize("smoothing", [0.3, 2.0, 20.0])
def test_what_is_sent_leads_to_the_envelopes_minimizer(loss: LinearLoss, smoothing: float) -> None:
    theta = np.array([0.3, -0.8, 0.5])
    for seed in range(8):
        features, targets = _rows(loss, 1, seed)

        def moreau(z: np.ndarray, rows: tuple[np.ndarray, np.ndarray] = (features, targets)) -> float:
            return float(loss.values(z, *rows)[0]) + smoothing / 2 * float((z - theta) @ (z - theta))

        found = optimize.minimize(moreau, theta, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13})
        sent, clipped = loss.sent(theta, 100.0, smoothing, features, targets)
        assert clipped == 0
        assert moreau(theta - sent[0] / smoothing) <= found.fun + 1e-9


def test_envelopes_of_lipschitz_losses_are_no_steeper_than_the_loss() -> None:
    # The paper says 2 L; L is enough, since an envelope's gradient is a subgradient somewhere else.
    loss = HingeLoss()
    rows = _rows(loss, 1000, 3)
    for smoothing in (0.01, 1.0, 100.0):
        sent, clipped = loss.sent(np.array([5.0, -3.0, 1.0]), 1.0, smoothing, *rows)
        assert clipped == 0
        assert np.linalg.norm(sent, axis=1).max() <= 1


@pytest.mark.parametrize("name", LINEAR)
def test_long_gradients_are_clipped_and_counted(name: str) -> None:
    loss, theta = LINEAR[name], np.array([0.3, -0.8, 0.5])
    features, targets = _rows(loss, 500, 4)
    sent, clipped = loss.sent(theta, 0.1, None, features, targets)
    exact = loss.gradients(theta, features, targets)
    lengths = np.linalg.norm(exact, axis=1)
    assert 0 < clipped == np.count_nonzero(lengths > 0.1)
    assert np.linalg.norm(sent, axis=1).max() <= 0.1
    assert np.allclose(sent, exact * np.minimum(1, 0.1 / np.maximum(lengths, 1e-300))[:, None])


def test_custom_losses_are_clipped_alike() -> None:
    loss = CustomLoss(
        value=lambda theta, x: np.linalg.norm(theta - x, axis=1),
        gradient=lambda theta, x: 3 * (theta - x),
        bound=1.0,
    )
    sent, clipped = loss.sent(np.zeros(2), 1.0, None, np.array([[3.0, 4.0], [0.1, 0.0]]))
    assert clipped == 1
    assert np.allclose(sent, [[-0.6, -0.8], [-0.3, 0.0]])
    with pytest.raises(ParameterError, match="proximal"):
        loss.sent(np.zeros(2), 1.0, 1.0, np.array([[3.0, 4.0]]))


def test_bad_data_are_refused_in_words() -> None:
    loss, good = LogisticLoss(), np.zeros((2, 3))
    for rows, words in (
        ((np.array([[0.0, np.nan, 0.0], [0, 0, 0]]), np.ones(2)), "row 1"),
        ((np.array([[0.0, 0.0, 0.0], [0, np.inf, 0]]), np.ones(2)), "row 2"),
        ((good, np.array([1.0, np.nan])), "targets"),
        ((good, np.array([1.0, 0.0])), "-1 or 1"),
        ((good, np.ones(3)), "shapes"),
        ((np.zeros((2, 4)), np.ones(2)), "3 columns"),
        ((good,), "features and targets"),
        ((np.zeros((0, 3)), np.ones(0)), "shapes"),
        ((np.array([["a", "b", "c"]]), np.ones(1)), "numbers"),
    ):
        with pytest.raises(DataError, match=words):
            loss.check_rows(3, *rows)
    # One user's huge numbers are clipped like any others; those without a length are refused.
    sent, clipped = loss.sent(-np.ones(3), 1.0, None, np.full((1, 3), 1e200), np.ones(1))
    assert clipped == 1 and 1 - 1e-8 < np.linalg.norm(sent) <= 1
    with pytest.raises(DataError, match="must be finite"):
        loss.sent(np.ones(3), 1.0, None, np.full((1, 3), 1.7e308), np.ones(1))


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e-170, 1e-162, 1e-160, 1e-100, 1e-8, 1.0, 1e8, 1e100, 1e153, 1e155])
@pytest.mark.parametrize("slope_at", [1e-3, 1.0, 1e172])
def test_nothing_longer_than_the_bound_is_sent_whatever_the_squares_do(size: float, slope_at: float) -> None:
    """Squares that vanish or overflow must not hide how long a gradient is."""
    loss = SquaredLoss(feature_bound=1.0, target_bound=slope_at)
    features = size * np.array([[3.0, -4.0], [1.0, 0.0], [0.0, 1e-3], [0.0, 0.0]])
    targets = slope_at * np.array([1.0, -1.0, 1.0, 1.0])
    sent, clipped = loss.sent(np.zeros(2), 2.0, None, features, targets)
    lengths = np.hypot(*sent.astype(np.longdouble).T)
    assert (lengths <= 2.0).all()
    exact = np.hypot(*features.astype(np.longdouble).T) * slope_at
    assert clipped == np.count_nonzero(exact > 2.0)
    kept = (exact <= 2.0) & (exact > 1e-300)
    assert lengths[kept].astype(float) == pytest.approx(exact[kept].astype(float), rel=1e-9)


def test_targets_beyond_their_bound_are_refused() -> None:
    with pytest.raises(DataError, match=r"something else in row 2"):
        SquaredLoss(target_bound=1.0).check_rows(1, [[0.1], [0.2]], [1.0, 1.5])


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_a_gradient_that_is_no_number_is_sent_as_nothing(odd: float) -> None:
    """One person's row neither ends a run nor moves it by more than the bound."""
    loss = CustomLoss(value=lambda theta, x: x[:, 0], gradient=lambda theta, x: np.where(x > 0, odd, 3.0), bound=1.0)
    sent, clipped = loss.sent(np.zeros(1), 1.0, None, np.array([[-1.0], [1.0], [-1.0]]))
    assert np.abs(sent[[0, 2], 0] - 1).max() < 1e-9 and sent[1, 0] == 0 and clipped == 3
