"""A loss of one's own, whose privacy rests on clipping and on being shown one person's row at a time."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.errors import DataError, ParameterError
from shuffledp.learn.optimize.losses import Floats, Loss, Rows
from shuffledp.learn.optimize.refuting import check_loss, check_rowwise
from shuffledp.learn.optimize.row_shapes import RowShape
from shuffledp.learn.optimize.sets import ConvexSet
from shuffledp.learn.spec import check_declared, not_negative, positive
from shuffledp.randomness import RandomBits

# What is refused once is refused again: the same rows every time.
_SEED, _DRAWN = 18, 48


@dataclass(frozen=True, kw_only=True)
class CustomLoss(Loss):
    """Any loss: value(theta, *rows), gradient(theta, *rows) and, where needed, proximal(theta, smoothing, *rows).

    All three take arrays with an entry or a row a user and return one a user. What a person sends is computed from
    copies of that person's row alone, one call a person, and clipped to `bound`: whatever the functions do with what
    they return, one person moves a sum by at most twice the bound, and what is no number is sent as 0. (A function that
    remembers earlier calls, writes down what it sees, or raises an error, is beyond what any call can hold: that a run
    stopped is seen. On people's own devices it sees nothing else.)

    With `rowwise=True` many people's rows are passed at once, which is faster by orders of magnitude and private only
    if no row's result depends on another row. That is your word; it is tried on rows drawn from the declared shapes
    before the first gradient is taken, and refused where it is refuted.

    Whoever gives the loss answers for its constants, too. Where `rows` are declared, `Problem.of` tries to refute them:
    that gradients are derivatives, convexity, `bound`, `smooth`, `strongly` and the proximal map. Privacy does not
    depend on them; proved bounds on the error do.

    Attributes:
        value: every user's loss at theta.
        gradient: every user's gradient, a row a user.
        bound: no gradient is longer; longer ones are clipped and counted.
        smooth: gradients change by at most this much per distance; None if they jump.
        strongly: the strong convexity of the values.
        proximal: every user's minimizer of value(z) + smoothing/2 |z - theta|^2.
        convex: whether the values are convex; solvers with proved bounds refuse others, `GradientRounds` takes all.
        rowwise: whether functions may be shown many users' rows at once.
        rows: the shape of every array of users' data, which rows are checked against and drawn from.
        ridge: the strong convexity of the part that depends on nobody.

    >>> mean = CustomLoss(
    ...     value=lambda theta, x: ((theta - x) ** 2).sum(axis=1) / 2,
    ...     gradient=lambda theta, x: theta - x,
    ...     bound=2.0, smooth=1.0, strongly=1.0, rowwise=True, rows=(RowShape(width=1),),
    ... )
    >>> mean.gradients(np.zeros(1), np.array([[0.5], [-0.5]])).tolist()
    [[-0.5], [0.5]]
    """

    name: ClassVar[str] = "custom"

    value: Callable[..., Floats]
    gradient: Callable[..., Floats]
    bound: float = positive("say how long a gradient can be")
    smooth: float | None = positive("leave it out if gradients jump", default=None)
    strongly: float = not_negative(default=0.0)
    proximal: Callable[..., Floats] | None = None
    convex: bool = True
    rowwise: bool = False
    rows: tuple[RowShape, ...] | None = None
    ridge: float = not_negative(default=0.0)

    def __post_init__(self) -> None:
        check_declared(self)
        if self.rowwise and not self.rows:
            wanted = "must come with the shape of every array of users' data, which it is tried on"
            raise ParameterError("rowwise", self.rowwise, wanted, "declare rows=(RowShape(width=3), RowShape())")

    @property
    def has_prox(self) -> bool:  # type: ignore[override]
        """Whether a proximal map was given."""
        return self.proximal is not None

    @property
    def is_convex(self) -> bool:
        return self.convex

    def lipschitz(self, domain: ConvexSet) -> float:
        return float(self.bound)

    @property
    def smoothness(self) -> float | None:
        return self.smooth

    @property
    def strong_convexity(self) -> float:
        return self.strongly

    def values(self, theta: Floats, *rows: Floats) -> Floats:
        return np.asarray(self.value(theta, *rows), dtype=np.float64)

    def gradients(self, theta: Floats, *rows: Floats) -> Floats:
        return np.asarray(self.gradient(theta, *rows), dtype=np.float64)

    def prox(self, theta: Floats, smoothing: float, *rows: Floats) -> Floats:
        if self.proximal is None:
            return super().prox(theta, smoothing, *rows)
        return np.asarray(self.proximal(theta, smoothing, *rows), dtype=np.float64)

    def unclipped(self, theta: Floats, smoothing: float | None, *rows: Floats) -> Floats:
        if self.rowwise:
            self._try_rows(theta.size)
            return super().unclipped(theta, smoothing, *rows)
        return _one_at_a_time(lambda point, *own: Loss.unclipped(self, point, smoothing, *own), theta, rows)

    def check_rows(self, dimension: int, *rows: ArrayLike) -> Rows:
        arrays = super().check_rows(dimension, *rows)
        if self.rows is not None:
            if len(arrays) != len(self.rows):
                raise DataError("data", f"{len(arrays)} arrays", f"must be the {len(self.rows)} declared", "pass all")
            for place, (shape, array) in enumerate(zip(self.rows, arrays, strict=True)):
                shape.check("data" if len(arrays) == 1 else f"array {place + 1}", array)
        return arrays

    def refute(self, domain: ConvexSet) -> None:
        if self.rows is not None:
            bits = RandomBits.seeded(_SEED)
            check_loss(self._as_sent, domain, *(shape.draw(_DRAWN, bits=bits) for shape in self.rows), bits=bits)

    @property
    def _as_sent(self) -> "CustomLoss":
        """The loss as people's rows go through it: many at once, or one by one."""
        if self.rowwise:
            return self
        proximal = None if self.proximal is None else _each(self.proximal, 2)
        return replace(self, value=_each(self.value, 1), gradient=_each(self.gradient, 1), proximal=proximal)

    @cached_property
    def _tried(self) -> set[int]:
        """Dimensions in which rows were tried and found to stand alone."""
        return set()

    def _try_rows(self, dimension: int) -> None:
        """Refuse to take many rows at once where they turn out to depend on each other; tried once a dimension."""
        if dimension not in self._tried:
            bits = RandomBits.seeded(_SEED)
            check_rowwise(self, dimension, *(shape.draw(_DRAWN, bits=bits) for shape in self.rows or ()), bits=bits)
            self._tried.add(dimension)


def _each(function: Callable[..., Floats], leading: int) -> Callable[..., Floats]:
    """The function called once a row, with its first so many arguments as they are."""

    def one_by_one(*arguments: Any) -> Floats:
        points, rows = arguments[:leading], arguments[leading:]
        own = (tuple(array[row : row + 1] for array in rows) for row in range(len(rows[0])))
        return np.concatenate([np.atleast_1d(np.asarray(function(*points, *each), dtype=np.float64)) for each in own])

    return one_by_one


def _one_at_a_time(function: Callable[..., Floats], theta: Floats, rows: Rows) -> Floats:
    """A vector a person from copies of that person's row alone, so that nothing leads from them to another's."""
    found = np.empty((len(rows[0]), theta.size))
    for person in range(len(found)):
        vector = function(theta.copy(), *(array[person : person + 1].copy() for array in rows))
        if vector.shape != (1, theta.size):
            wanted = f"must return one row of {theta.size} numbers for one person's row"
            raise DataError("loss", f"shape {vector.shape}", wanted, "keep the users' axis, which has length 1")
        found[person] = vector[0]
    return found
