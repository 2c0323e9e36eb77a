"""Losses of one's own: refuted where they are wrong, and private whatever they do."""

import math
from dataclasses import replace

import numpy as np
import pytest

from shuffledp import Privacy, VectorSum
from shuffledp.errors import DataError, ParameterError
from shuffledp.learn.optimize import (
    CustomLoss,
    HingeLoss,
    HuberLoss,
    L2Ball,
    LogisticLoss,
    PoissonLoss,
    Problem,
    RowShape,
    SoftmaxLoss,
    SquaredLoss,
    check_loss,
    plan,
)
from shuffledp.learn.optimize.losses import Loss
from shuffledp.randomness import RandomBits
from shuffledp.simulation.optimize import optimize

BALL = L2Ball(dimension=3, radius=1)
FEATURES = RowShape(width=3, longest=1.0)
OWN = CustomLoss(
    value=lambda theta, x, y: np.logaddexp(0.0, -y * (x @ theta)),
    gradient=lambda theta, x, y: (-y / (1 + np.exp(y * (x @ theta))))[:, None] * x,
    bound=1.0,
    smooth=0.25,
    rowwise=True,
    rows=(FEATURES, RowShape(values=(-1, 1))),
)
MEAN = CustomLoss(
    value=lambda theta, x: ((theta - x) ** 2).sum(axis=1) / 2,
    gradient=lambda theta, x: theta - x,
    proximal=lambda theta, smoothing, x: (x + smoothing * theta) / (1 + smoothing),
    bound=2.0,
    smooth=1.0,
    strongly=1.0,
    rowwise=True,
    rows=(FEATURES,),
)


class _Memory:
    """Gradients that depend on whatever was seen before."""

    def __init__(self) -> None:
        self.seen = 0.0

    def __call__(self, theta: np.ndarray, x: np.ndarray) -> np.ndarray:
        self.seen += float(np.abs(x).sum())
        return theta - x + self.seen


@pytest.mark.parametrize(
    ("loss", "targets"),
    [
        (OWN, RowShape(values=(-1, 1))),
        (MEAN, None),
        (LogisticLoss(), RowShape(values=(-1, 1))),
        (HingeLoss(), RowShape(values=(-1, 1))),
        (SquaredLoss(), RowShape()),
        (HuberLoss(threshold=0.3), RowShape()),
        (PoissonLoss(target_bound=4.0), RowShape(values=(0, 1, 4))),
        (SoftmaxLoss(classes=3), RowShape(values=(0, 1, 2))),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_what_is_true_stands(loss: Loss, targets: RowShape | None) -> None:
    bits = RandomBits.seeded(1)
    rows = tuple(shape.draw(60, bits=bits) for shape in (FEATURES, targets) if shape is not None)
    ball = L2Ball(dimension=3 * loss.outputs, radius=1.0)
    custom_prox = loss.has_prox and not isinstance(loss, CustomLoss)
    if custom_prox:  # linear losses send envelopes' gradients without a proximal point
        loss = CustomLoss(
            value=loss.values, gradient=loss.gradients, bound=loss.lipschitz(ball), smooth=loss.smoothness
        )
    found = {check.claim: check for check in check_loss(loss, ball, *rows, bits=bits)}
    assert all(check.reached <= 1 + 1e-6 for check in found.values())
    assert found["lipschitz"].reached > 0.4
    if loss.smoothness is not None:
        assert found["smooth"].reached > 0.5
    assert ("proximal" in found) == loss.has_prox


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gradient": lambda theta, x: theta - x + x.mean(axis=0)}, "row-wise, got a gradient that changes with"),
        (
            {"gradient": lambda theta, x: theta - x + x[:1]},
            "row-wise, got a gradient that changes with the rows' order",
        ),
        ({"gradient": lambda theta, x: (theta - x) * len(x)}, "changes with how many rows there are"),
        ({"gradient": _Memory()}, "row-wise"),
        ({"value": lambda theta, x: ((theta - x) ** 2).sum(axis=1) / 2 + x.sum()}, "got a value that changes"),
        ({"value": lambda theta, x: ((theta - x) ** 2).sum() / 2}, r"shape \(48,\), got a value of shape \(\)"),
        ({"gradient": lambda theta, x: (theta - x).T}, "gradient of shape"),
        ({"gradient": lambda theta, x: np.log(x - 2)}, "gradient that is not finite"),
        ({"gradient": lambda theta, x: 1.01 * (theta - x)}, "gradient that is not its derivative"),
        (
            {"value": lambda theta, x: -((theta - x) ** 2).sum(axis=1) / 2, "gradient": lambda theta, x: x - theta},
            "convex",
        ),
        ({"strongly": 1.1}, "be convex as claimed"),
        ({"bound": 1.5}, r"lipschitz as claimed, got gradients longer than its bound \(1\.\d+ times\)"),
        ({"smooth": 0.9}, "smooth as claimed"),
        ({"proximal": lambda theta, smoothing, x: (x + theta) / 2}, "proximal"),
    ],
)
def test_what_is_false_is_refuted_before_anything_is_planned(change, words: str) -> None:
    Problem.of(MEAN, BALL, users=5000, privacy=Privacy(1, 1e-6))
    with np.errstate(invalid="ignore"), pytest.raises(ParameterError, match=words):
        Problem.of(replace(MEAN, **change), BALL, users=5000, privacy=Privacy(1, 1e-6))


def test_a_loss_that_mixes_rows_is_not_run_on_many_at_once() -> None:
    """A solver of another loss: the mixing one is refused where its first gradient would be taken, nothing spent."""
    mixing = replace(MEAN, gradient=lambda theta, x: theta - x.mean(axis=0) + 0 * x)
    solver = plan(Problem.of(MEAN, BALL, users=500, privacy=Privacy(1, 1e-6), visits=1))
    with pytest.raises(ParameterError, match=r"row-wise.*rows are then passed one by one"):
        optimize(solver, mixing, np.zeros((500, 3)), bits=RandomBits.seeded(1))
    slow = optimize(solver, replace(mixing, rowwise=False), np.zeros((500, 3)), bits=RandomBits.seeded(1))
    assert slow.gradients == sum(stage.users * stage.rounds for stage in solver.stages)


def test_a_loss_that_is_called_row_by_row_is_tried_row_by_row() -> None:
    """Written for one person: it cannot take two, and mixes them where it could."""

    def value(theta, x):
        assert len(x) == 1
        return float(((theta - x) ** 2).sum() / 2)

    def gradient(theta, x):
        assert len(x) == 1
        return theta - x.mean(axis=0, keepdims=True)

    loss = CustomLoss(value=value, gradient=gradient, bound=2.0, smooth=1.0, strongly=1.0, rows=(FEATURES,))
    solver = plan(Problem.of(loss, BALL, users=300, privacy=Privacy(1, 1e-6), visits=1))
    assert optimize(solver, loss, np.zeros((300, 3)), bits=RandomBits.seeded(1)).clipped == 0
    for change, words in (
        ({"smooth": 0.9}, "smooth as claimed"),
        ({"gradient": _Memory()}, "what it was asked before"),
    ):
        with pytest.raises(ParameterError, match=words):
            Problem.of(replace(loss, **change), BALL, users=300, privacy=Privacy(1, 1e-6))


def _flip_all(theta: np.ndarray, x: np.ndarray) -> np.ndarray:
    """One person's sign decides what everybody sends; where only one row is shown, it looks for more behind it."""
    everybody = x if x.base is None else x.base
    sign = 1.0 if (everybody == 7.0).any() else -1.0
    theta *= -1.0
    return np.full((len(x), theta.size), 9.0 * sign) * (1 + theta)


def _exact_delta(plan, one: np.ndarray, other: np.ndarray, epsilon: float) -> float:
    """The larger hockey-stick divergence between the two neighbours' views, summed exactly: rounding, then noise."""
    law, largest = plan.noise_law, 0.0
    start, end = law.window(1e-13)
    reach = len(one) * (plan.grid + 1)
    k = np.arange(start - reach, end + reach + 1)
    noise = np.exp(law.log_pmf(k * 1.0))
    views = []
    for sent in (one, other):
        rounded = np.ones(1)
        low = 0
        for number in sent[:, 0] / plan.step:
            down = math.floor(number)
            rounded = np.convolve(rounded, [1 - (number - down), number - down])
            low += down
        view = np.convolve(noise, rounded)
        shifted = np.zeros(len(k) + 4 * reach)
        shifted[2 * reach + low :][: len(view)] = view
        views.append(shifted)
    for first, second in (views, views[::-1]):
        largest = max(largest, float(np.maximum(first - math.exp(epsilon) * second, 0).sum()))
    return largest


def test_one_row_at_a_time_is_private_whatever_the_loss_does() -> None:
    """Exact views of neighbours for a loss in which one person's row changes everybody's gradient.

    It mixes rows, follows a view to the array behind it and writes into its arguments. Shown one row at a time it stays
    within the claim; shown all rows at once it does not, which is what `rowwise` must not be believed for.
    """
    claim = Privacy(1.0, 1e-3)
    sums = VectorSum.plan(users=6, privacy=claim, dimension=1, radius=1.0, method="shares", rotation=None)
    loss = CustomLoss(value=lambda theta, x: x[:, 0], gradient=_flip_all, bound=1.0, convex=False)
    theta = np.array([0.25])
    data = np.zeros((6, 1)), np.vstack([np.zeros((5, 1)), [[7.0]]])
    one, other = (loss.sent(theta, 1.0, None, rows)[0] for rows in data)
    assert theta[0] == 0.25
    assert np.array_equal(one[:5], other[:5]) and abs(one[5] - other[5]) > 1.9
    exact = _exact_delta(sums, one, other, claim.epsilon)
    assert 0.5 * claim.delta < exact <= claim.delta
    together = [np.clip(_flip_all(theta.copy(), rows), -1, 1) for rows in data]
    assert _exact_delta(sums, *together, claim.epsilon) > 0.5


def test_what_is_not_convex_gets_no_bound() -> None:
    loss = replace(OWN, convex=False)
    with pytest.raises(ParameterError, match=r"must be convex.*take GradientRounds"):
        Problem.of(loss, BALL, users=5000, privacy=Privacy(1, 1e-6))


def test_rows_must_be_as_declared() -> None:
    good = np.zeros((2, 3))
    for rows, words in (
        ((good, [1.0, 0.0]), r"array 2 must be one of -1, 1, got something else in row 2"),
        ((good, [1.0, np.nan]), "array 2 must be finite, got nan in row 2"),
        (([[0.0, np.nan, 0.0]], [1.0]), "array 1 must be finite"),
        (([[0.0, 1.5, 0.0]], [1.0]), r"array 1 must lie in -1\.\.1"),
        (([[0.0, 0.0, 0.0], [0.9, 0.9, 0.0]], [1.0, 1.0]), "at most 1 long, got something else in row 2"),
        ((np.zeros((2, 4)), [1.0, 1.0]), "3 numbers a user"),
        ((good, good), "a number a user"),
        ((good,), "the 2 declared"),
    ):
        with pytest.raises(DataError, match=words):
            OWN.check_rows(3, *rows)
    with pytest.raises(ParameterError, match="rowwise must come with the shape"):
        CustomLoss(value=OWN.value, gradient=OWN.gradient, bound=1.0, rowwise=True)
    for wrong in ({"low": 1.0, "high": 1.0}, {"values": ()}, {"values": (math.nan,)}, {"width": 0}, {"longest": -1}):
        with pytest.raises(ParameterError):
            RowShape(**wrong)
    with pytest.raises(DataError, match="one row of 3 numbers"):
        CustomLoss(value=OWN.value, gradient=lambda theta, x: x[0], bound=1.0).sent(np.zeros(3), 1.0, None, good)


@pytest.mark.parametrize(
    "shape", [RowShape(), FEATURES, RowShape(values=(0, 2)), RowShape(width=2, low=0, high=3, longest=2.5)]
)
def test_drawn_rows_are_as_declared_and_reach_the_limits(shape: RowShape) -> None:
    rows = shape.draw(300, bits=RandomBits.seeded(3))
    shape.check("rows", rows)
    lengths = np.linalg.norm(rows.reshape(300, -1), axis=1)
    assert lengths.max() > 0.999 * (shape.longest or max(abs(v) for v in shape.values or (1,)))
    assert len(np.unique(lengths)) >= 2
