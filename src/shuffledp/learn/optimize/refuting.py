"""Attempts to refute what a loss claims: row by row, derivative, convex, constants. What stands is not proved.

Privacy rests on none of this, but on clipping and on one person's row at a time.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shuffledp.errors import ParameterError
from shuffledp.learn.optimize.losses import Floats, Loss, Rows
from shuffledp.learn.optimize.row_shapes import uniform_numbers
from shuffledp.learn.optimize.sets import ConvexSet
from shuffledp.randomness import RandomBits

# What floats may be off: results of many rows at once and of one may differ in their last digits.
_CLOSE = 1e-8
_STEP = 1e-5
# Finite differences have errors of the step's square, and of rounding over the step.
_DERIVATIVE = 1e-4


@dataclass(frozen=True, slots=True)
class LossCheck:
    """One claim that was tried: how often, and the most that was found of what it allows (1 is all of it).

    Attributes:
        claim: what was tried, in words.
        tries: how many times.
        reached: the most that was found, as a part of what the claim allows.
    """

    claim: str
    tries: int
    reached: float


def check_loss(
    loss: Loss, domain: ConvexSet, *rows: Floats, bits: RandomBits, tries: int = 24
) -> tuple[LossCheck, ...]:
    """Try to refute everything that a loss claims, on these rows.

    Args:
        loss: values, gradients and constants, and a proximal map where it has one.
        domain: where models lie: points are drawn from it.
        *rows: users' data, as the loss takes them. On people's own rows the figures, and whether a claim is refuted,
            are read without noise: take rows that were drawn (`RowShape.draw`) unless you may show that.
        bits: where points come from; seeded bits repeat the attempt.
        tries: how many points are tried.

    Returns:
        Every claim with how much of what it allows was reached.

    Raises:
        ParameterError: a claim is refuted; the sentence says which.

    >>> from shuffledp.learn.optimize import L2Ball, LogisticLoss
    >>> rows = np.array([[0.6, 0.8], [-0.6, 0.8], [1.0, 0.0]]), np.array([1.0, -1.0, 1.0])
    >>> found = check_loss(LogisticLoss(), L2Ball(dimension=2, radius=2), *rows, bits=RandomBits.seeded(1))
    >>> [check.claim for check in found]
    ['row by row', 'derivative', 'convex', 'lipschitz', 'smooth']
    """
    rowwise = check_rowwise(loss, domain.dimension, *rows, bits=bits)
    points = _points(domain, 2 * tries, bits)
    values = [loss.values(point, *rows) for point in points]
    gradients = [loss.gradients(point, *rows) for point in points]
    found = [rowwise]
    if loss.smoothness is not None or not loss.is_convex:
        found.append(_derivative(loss, points, gradients, rows, bits))
    if loss.is_convex:
        found.append(_convex(loss, points, values, gradients, rows, bits))
    longest = max(float(np.linalg.norm(gradient, axis=1).max()) for gradient in gradients)
    found.append(_within("lipschitz", longest / loss.lipschitz(domain), len(points), "gradients longer than its bound"))
    if loss.smoothness is not None:
        found.append(_smooth(loss, loss.smoothness, points, gradients, rows, bits))
    if loss.has_prox:
        found.append(_proximal(loss, points, rows))
    return tuple(found)


def check_rowwise(loss: Loss, dimension: int, *rows: Floats, bits: RandomBits) -> LossCheck:
    """Try to refute that every row's value, gradient and proximal point depend on that row alone.

    Raises:
        ParameterError: a result changed with another row, with the rows' order, or when it was asked for again.
    """
    points = 2 * uniform_numbers((3, dimension), bits=bits) - 1
    order = np.argsort(uniform_numbers(len(rows[0]), bits=bits))
    functions: list[tuple[str, Callable[..., Floats]]] = [("value", loss.values), ("gradient", loss.gradients)]
    if loss.has_prox:
        functions.append(("proximal", lambda theta, *own: loss.prox(theta, 1.0, *own)))
    half = len(order) // 2
    mixed = tuple(np.concatenate([array[:half], array[::-1][half:]]) for array in rows)
    worst = 0.0
    for theta in points:
        for name, function in functions:
            whole = _shaped(name, function(theta.copy(), *_copied(rows)), len(order), dimension)
            seen = (
                (whole, function(theta.copy(), *_copied(rows)), "what it was asked before"),
                (whole[order], function(theta.copy(), *(array[order] for array in rows)), "the rows' order"),
                (whole[:half], function(theta.copy(), *mixed)[:half], "another row's data"),
                (whole[:1], function(theta.copy(), *(array[:1].copy() for array in rows)), "how many rows there are"),
            )
            for wanted, got, cause in seen:
                off = _difference(wanted, got)
                worst = max(worst, off)
                if not off <= 1:
                    raise _refuted(
                        f"a {name} that changes with {cause}",
                        "be row-wise",
                        "compute each row's from that row alone, or leave rowwise out: rows are then passed one by one",
                    )
    return LossCheck("row by row", 4 * len(points) * len(functions), worst)


def _refuted(found: str, wanted: str, way_out: str) -> ParameterError:
    return ParameterError("loss", found, f"must {wanted}", way_out)


def _copied(rows: Rows) -> Rows:
    return tuple(array.copy() for array in rows)


def _shaped(name: str, result: Floats, users: int, dimension: int) -> Floats:
    wanted = (users,) if name == "value" else (users, dimension)
    if result.shape != wanted or not np.isfinite(result).all():
        found = f"a {name} of shape {result.shape}" if result.shape != wanted else f"a {name} that is not finite"
        raise _refuted(found, f"give finite numbers of shape {wanted}", "give an entry or a row a user")
    return result


def _difference(wanted: Floats, got: Floats) -> float:
    """The largest difference over what floats may be off; infinite where shapes differ."""
    if wanted.shape != got.shape:
        return float("inf")
    return float((np.abs(wanted - got) / (_CLOSE * (1 + np.abs(wanted)))).max(initial=0.0))


def _points(domain: ConvexSet, count: int, bits: RandomBits) -> list[Floats]:
    """Points of the domain, some of them on its edge."""
    directions = 2 * uniform_numbers((count, domain.dimension), bits=bits) - 1
    lengths = 1.5 * domain.reach * uniform_numbers(count, bits=bits)
    scale = lengths / np.maximum(np.linalg.norm(directions, axis=1), 1e-300)
    return [domain.project(domain.centre + move) for move in directions * scale[:, np.newaxis]]


def _pairs(count: int, bits: RandomBits) -> list[tuple[int, int]]:
    firsts, seconds = (uniform_numbers((2, 3 * count), bits=bits) * count).astype(np.intp)
    return [(int(a), int(b)) for a, b in zip(firsts, seconds, strict=True) if a != b]


def _within(claim: str, reached: float, tries: int, found: str) -> LossCheck:
    if not reached <= 1 + 1e-6:
        constants = {"lipschitz": "bound", "smooth": "smooth", "convex": "convex"}
        way_out = f"declare {constants[claim]} as it is, or mend the loss; privacy does not depend on it"
        raise _refuted(f"{found} ({reached:.4g} times)", f"be {claim} as claimed", way_out)
    return LossCheck(claim, tries, reached)


def _derivative(loss: Loss, points: list[Floats], gradients: list[Floats], rows: Rows, bits: RandomBits) -> LossCheck:
    """Central differences of the values along random directions, at most rows: a loss may jump at a few."""
    worst = 0.0
    for point, gradient in zip(points, gradients, strict=True):
        direction = 2 * uniform_numbers(point.size, bits=bits) - 1
        direction /= max(float(np.linalg.norm(direction)), 1e-300)
        ahead, behind = (loss.values(point + side * _STEP * direction, *rows) for side in (1, -1))
        slopes = (ahead - behind) / (2 * _STEP)
        off = np.abs(slopes - gradient @ direction) / (_DERIVATIVE * (1 + np.abs(slopes)))
        worst = max(worst, float(np.quantile(off, 0.9)))
    if not worst <= 1:
        raise _refuted("a gradient that is not its derivative", "have values and gradients that fit", "mend either")
    return LossCheck("derivative", len(points), worst)


def _convex(
    loss: Loss, points: list[Floats], values: list[Floats], gradients: list[Floats], rows: Rows, bits: RandomBits
) -> LossCheck:
    """Above every tangent by what strong convexity says: f(b) >= f(a) + <g(a), b - a> + strongly/2 |b - a|^2."""
    worst, pairs = 0.0, _pairs(len(points), bits)
    for a, b in pairs:
        move = points[b] - points[a]
        least = values[a] + gradients[a] @ move + loss.strong_convexity / 2 * float(move @ move)
        room = _CLOSE * (1 + np.abs(values[a]) + np.abs(values[b]))
        worst = max(worst, float(((least - values[b]) / room).max()))
    if not worst <= 1:
        found = "a value below a tangent of another point's"
        raise _refuted(found, "be convex as claimed", "declare convex and strongly as they are, or mend its gradient")
    return LossCheck("convex", len(pairs), max(worst, 0.0))


def _smooth(
    loss: Loss, smoothness: float, points: list[Floats], gradients: list[Floats], rows: Rows, bits: RandomBits
) -> LossCheck:
    """Near pairs and far ones: curvature is local."""
    worst, pairs = 0.0, _pairs(len(points), bits)
    for a, b in pairs:
        distance = float(np.linalg.norm(points[a] - points[b]))
        if distance > 1e-9:
            worst = max(worst, float(np.linalg.norm(gradients[a] - gradients[b], axis=1).max()) / distance)
    for point, gradient in zip(points, gradients, strict=True):
        move = 2 * uniform_numbers(point.size, bits=bits) - 1
        move *= 1e-4 / max(float(np.linalg.norm(move)), 1e-300)
        change = np.linalg.norm(loss.gradients(point - np.sign(point @ move) * move, *rows) - gradient, axis=1).max()
        worst = max(worst, (float(change) - _CLOSE) / 1e-4)
    return _within("smooth", worst / smoothness, len(pairs) + len(points), "gradients that change faster")


def _proximal(loss: Loss, points: list[Floats], rows: Rows) -> LossCheck:
    """The proximal point has no larger value(z) + smoothing/2 |z - theta|^2 than theta, and than points beside it."""
    worst, tries = 0.0, 0
    for smoothing in (0.5, 2.0, 20.0):
        for point, other in zip(points[:12:2], points[1:12:2], strict=True):
            nearest = loss.prox(point, smoothing, *rows)
            reached = _envelopes(loss, nearest, point, smoothing, rows)
            for part in (1.0, 0.1, 0.01):
                beside = nearest + part * (other - nearest)
                room = _CLOSE * (1 + np.abs(reached))
                least = _envelopes(loss, beside, point, smoothing, rows)
                worst, tries = max(worst, float(((reached - least) / room).max())), tries + 1
    if not worst <= 1:
        raise _refuted("a proximal point that is not the least", "have a proximal map that fits", "mend it")
    return LossCheck("proximal", tries, max(worst, 0.0))


def _envelopes(loss: Loss, models: Floats, theta: Floats, smoothing: float, rows: Rows) -> Floats:
    """Every user's value at that user's own model, plus its distance's part."""
    own = [loss.values(model, *(array[user : user + 1] for array in rows))[0] for user, model in enumerate(models)]
    return np.asarray(np.array(own) + smoothing / 2 * ((models - theta) ** 2).sum(axis=1))
