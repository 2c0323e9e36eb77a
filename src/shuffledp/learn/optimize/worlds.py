"""Synthetic populations of a declared shape: rows and targets made from a public seed, on which solvers rehearse.

A population is some hundred rows, each as likely as any other, so that a cohort of b users is b draws from them: their
gradients' sum is the rows' gradients, weighted by how often each was drawn. That is the law of b people whatever b is,
at the price of some hundred rows. No person's data is used.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from shuffledp.learn.optimize.linear_losses import LinearLoss, lengths_of
from shuffledp.learn.optimize.losses import Loss
from shuffledp.learn.optimize.sets import ConvexSet
from shuffledp.protocols.vector_sum.matrices import pack_symmetric
from shuffledp.randomness import RandomBits
from shuffledp.sampling.uniform import uniform_below

Floats = NDArray[np.float64]

# Rows of a population: at least so many, and so many times the numbers of a model, but fewer where models are long.
_ROWS, _ROWS_A_NUMBER, _FEWEST_A_NUMBER, _NUMBERS = 256, 6, 2, 1 << 15
# The intercept's feature beside the others' longest row, as estimators have it; and further than any domain reaches.
_CONSTANT, _FAR = 0.5, 1e6
# From so many draws a row on, how often each is drawn has a normal law.
_MANY = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldSpec:
    """How rows lie and how targets follow from them.

    Attributes:
        name: in a word.
        common: the part of a row that all its features share; 0 are independent ones, near 1 almost equal ones.
        full: whether rows have their greatest length, and not only the greatest range in every feature.
        strength: the length of the model that targets follow, in parts of the longest in its direction.
        longest: how long that model is at most, times the longest row: a wide domain is room, and no claim that targets
            follow from features as closely as it allows.
        rare: how much less likely the second class is, as a score.
        spread: how far the least of the factors that features are mixed from reaches, beside the first; 1 are features
            that are not mixed.
    """

    name: str
    common: float
    full: bool
    strength: float
    longest: float
    rare: float = 0.0
    spread: float = 1.0


SPECS = (
    WorldSpec(name="clear", common=0.3, full=True, strength=2.0, longest=40.0),
    WorldSpec(name="table", common=0.8, full=False, strength=1.0, longest=20.0),
    WorldSpec(name="rare", common=0.6, full=False, strength=0.7, longest=14.0, rare=2.5),
    WorldSpec(name="faint", common=0.3, full=False, strength=0.2, longest=4.0),
    WorldSpec(name="mixed", common=0.0, full=False, strength=2.0, longest=200.0, spread=0.01),
)
"""Nearly separable classes, features that hang together, a rare class, hardly any signal, and features that nearly
follow from one another, as lengths, areas and weights do."""


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """A population of equally likely rows."""

    name: str
    loss: Loss
    features: Floats
    targets: Floats
    lengths: Floats

    def mean_loss(self, theta: Floats) -> float:
        """The population's mean loss, ridge included."""
        return self.loss.objective(theta, self.features, self.targets)

    def constant_loss(self) -> float:
        """The least mean loss of a model that says the same of everybody."""
        return self.loss.constant_loss(self.targets)

    def drawn(self, users: int, normals: "Normals") -> Floats:
        """How often each row is drawn by so many users."""
        rows = len(self.targets)
        if users < _MANY * rows:
            return np.bincount(uniform_below(rows, users, bits=normals.bits), minlength=rows).astype(np.float64)
        free = normals.next(rows)
        return np.asarray(users / rows + np.sqrt(users / rows) * (free - free.mean()))

    def moments_sum(self, counts: Floats) -> Floats:
        """The sum of these users' moments: no row is longer than may be, so that none is clipped."""
        return pack_symmetric(self.features.T @ (counts[:, np.newaxis] * self.features))

    def gradient_sum(self, point: Floats, clip: float, smoothing: float | None, counts: Floats) -> Floats:
        """The sum of what these users would send: their clipped gradients, or their envelopes'."""
        loss = self.loss
        if not isinstance(loss, LinearLoss):
            return np.asarray(counts @ loss.sent(point, clip, smoothing, self.features, self.targets)[0])
        # What `LinearLoss.sent` does, without its checks, and without a gradient a row.
        scores = self.features @ point
        if smoothing is None:
            slopes = loss.slopes(scores, self.targets)
        else:
            slopes = loss.envelope_slopes(scores, self.targets, self.lengths**2 / smoothing)
        longest = clip / self.lengths
        return np.asarray((counts * np.clip(slopes, -longest, longest)) @ self.features)


class Normals:
    """Standard normal numbers from seeded bits: for rehearsals, where they protect nobody."""

    def __init__(self, seed: int) -> None:
        self.bits = RandomBits.seeded(seed)
        self._pool, self._used = np.empty(0), 0

    def next(self, count: int) -> Floats:
        """So many numbers that were not given out before."""
        if self._used + count > self._pool.size:
            self._pool, self._used = uniforms(max(count, 1 << 14), self.bits), 0
        self._used += count
        # Most of a pool is never used: only what is given out is turned into normal numbers.
        return np.asarray(special.ndtri(self._pool[self._used - count : self._used]))


def uniforms(count: int, bits: RandomBits) -> Floats:
    """Numbers strictly between 0 and 1."""
    return np.asarray((bits.unsigned(count, 32).astype(np.float64) + 0.5) / 2.0**32)


def world_of(spec: WorldSpec, loss: Loss, domain: ConvexSet, seed: int) -> World | None:
    """A population of rows as long as the loss allows, the last feature an intercept, and targets that follow a model.

    Args:
        spec: how rows lie and how targets follow from them.
        loss: its longest row, its number of scores and its targets.
        domain: where models lie.
        seed: public.

    Returns:
        The population; None where the loss cannot say what its targets look like.

    >>> from shuffledp.learn.optimize import L2Ball, LogisticLoss
    >>> world = world_of(SPECS[0], LogisticLoss(), L2Ball(dimension=5, radius=3), seed=1)
    >>> world.features.shape, bool(world.lengths.max() <= 1), sorted(set(world.targets.tolist()))
    ((256, 5), True, [-1.0, 1.0])
    """
    bits = RandomBits.seeded(seed)
    size = domain.dimension // loss.outputs
    width = size - 1
    rows = max(_ROWS, _FEWEST_A_NUMBER * size, min(_ROWS_A_NUMBER * size, _NUMBERS // domain.dimension))

    def between(*shape: int) -> Floats:
        return 2 * uniforms(int(np.prod(shape)), bits).reshape(shape) - 1

    shared, signs = between(rows, 1), np.sign(between(width))
    own = between(rows, width)
    if spec.spread < 1 and width > 1:
        own *= np.minimum(1.0, np.geomspace(1 / spec.spread, spec.spread, width))
        own = own @ np.linalg.qr(between(width, width))[0]
        own /= np.abs(own).max()
    inner = signs * (spec.common * shared + (1 - spec.common) * own)
    inner += 0.3 * (1 - np.abs(inner)) * np.sign(between(width))
    longest = lengths_of(inner)[:, np.newaxis] if spec.full and width else np.sqrt(max(width, 1))
    bound: float = getattr(loss, "feature_bound", 1.0)
    constant = _CONSTANT if width else 1.0
    features = bound * np.column_stack((inner / longest, np.full(rows, constant))) / np.hypot(constant, width > 0)
    model = np.zeros((loss.outputs, size))
    if width:
        model[:, :width] = between(loss.outputs, width) + signs * spec.common * np.sign(between(loss.outputs, 1))
        # As long as the domain allows in that direction.
        model = spec.strength * domain.project(_FAR * domain.reach * model.ravel()).reshape(model.shape)
        model *= min(1.0, spec.longest / bound / float(np.linalg.norm(model)))
    scores = features @ model.T
    scores -= scores.mean(axis=0)
    targets = loss.imagined_targets(scores if loss.outputs > 1 else scores[:, 0], uniforms(rows, bits), spec.rare)
    return None if targets is None else World(spec.name, loss, features, targets, lengths_of(features))
