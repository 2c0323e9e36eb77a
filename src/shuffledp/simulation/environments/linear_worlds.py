"""Worlds of linear bandits, many instances at once: fixed arms, or arms that are drawn anew for every user."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from shuffledp.learn.bandits.linear.models import LinearModel
from shuffledp.learn.bandits.linear.observations import Floats, JointVectors
from shuffledp.learn.bandits.linear.posterior import PosteriorModel

# Features at a time, where every user has its own arms.
_AT_A_TIME = 1 << 20


def raised_sphere(shape: tuple[int, ...], dimension: int, generator: np.random.Generator) -> Floats:
    """Unit vectors, uniform among those that end in 1/sqrt(2): no two have a negative inner product.

    >>> float(np.linalg.norm(raised_sphere((), 4, np.random.default_rng(1))).round(9))
    1.0
    """
    vectors = np.empty((*shape, dimension))
    vectors[..., -1] = math.sqrt(0.5)
    if dimension > 1:
        free = generator.standard_normal((*shape, dimension - 1))
        vectors[..., :-1] = free * (math.sqrt(0.5) / np.linalg.norm(free, axis=-1, keepdims=True))
    return vectors


@dataclass(frozen=True, eq=False)
class LinearWorld(ABC):
    """Instances of a linear bandit, a row each, and what their users do.

    Attributes:
        theta: the true vector of every instance, a row each.
    """

    is_fixed: ClassVar[bool] = False
    """Whether all users of an instance are offered the same arms."""

    theta: Floats

    @property
    def instances(self) -> int:
        """How many worlds."""
        return len(self.theta)

    @property
    def dimension(self) -> int:
        """Numbers of theta."""
        return int(self.theta.shape[1])

    @abstractmethod
    def slot(
        self, model: LinearModel, count: int, joint: JointVectors, generator: np.random.Generator, *, singly: bool
    ) -> Iterator[tuple[Floats, Floats]]:
        """Let so many users of every instance choose by its model.

        Args:
            model: the models of all instances.
            count: users of each instance.
            joint: how features and reward become one vector.
            generator: where rewards, and arms that are drawn, come from.
            singly: whether every user's vector is wanted; otherwise some may be added up.

        Returns:
            Piece by piece, joint vectors (instances, users, length) and the regret of each instance.
        """


@dataclass(frozen=True, eq=False)
class FixedArms(LinearWorld):
    """Each instance has its theta and its arms, and rewards that are 0 or 1, <features, theta> on average.

    Reference: [002] section 5.
    """

    is_fixed: ClassVar[bool] = True

    features: Floats
    means: Floats = field(init=False)
    best: Floats = field(init=False)

    def __post_init__(self) -> None:
        # Probabilities, but for rounding.
        means = np.clip(np.einsum("iad,id->ia", self.features, self.theta), 0.0, 1.0)
        object.__setattr__(self, "means", means)
        object.__setattr__(self, "best", self.means.max(axis=1))

    @classmethod
    def drawn(cls, instances: int, *, arms: int, dimension: int, generator: np.random.Generator) -> "FixedArms":
        """As in the paper: theta and features on the raised sphere.

        >>> world = FixedArms.drawn(2, arms=3, dimension=5, generator=np.random.default_rng(1))
        >>> world.features.shape, bool((world.means >= 0).all())
        ((2, 3, 5), True)
        """
        theta = raised_sphere((instances,), dimension, generator)
        return cls(theta, raised_sphere((instances, arms), dimension, generator))

    @cached_property
    def _packed(self) -> Floats:
        """What a reward of 1 would add; the matrices' part also gives the widths."""
        return JointVectors(self.theta.shape[1]).pack(self.features, np.ones(self.means.shape))

    def slot(
        self, model: LinearModel, count: int, joint: JointVectors, generator: np.random.Generator, *, singly: bool
    ) -> Iterator[tuple[Floats, Floats]]:
        """All users of an instance choose the same arm, but where each draws its own theta."""
        if isinstance(model, PosteriorModel):
            yield from self._drawn_slot(model, count, joint, generator)
            return
        arms, size, every = self._packed, joint.dimension, np.arange(self.instances)
        widths = np.matmul(arms[..., size:], joint.pack_matrix(model.inverse)[..., np.newaxis])[..., 0]
        np.sqrt(np.maximum(widths, 0.0, out=widths), out=widths)
        widths *= model.radius[:, np.newaxis]
        widths += np.matmul(self.features, model.theta[..., np.newaxis])[..., 0]
        chosen = widths.argmax(axis=1)
        means, packed = self.means[every, chosen], arms[every, chosen]
        if singly:
            each = np.repeat(packed[:, np.newaxis], count, axis=1)
            each[..., :size] *= (generator.random((len(means), count)) < means[:, np.newaxis])[..., np.newaxis]
        else:
            packed *= count
            packed[:, :size] *= (generator.binomial(count, means) / count)[:, np.newaxis]
            each = packed[:, np.newaxis]
        yield each, np.asarray(count * (self.best - means))

    def _drawn_slot(
        self, model: PosteriorModel, count: int, joint: JointVectors, generator: np.random.Generator
    ) -> Iterator[tuple[Floats, Floats]]:
        """Users who draw: their thetas beside all arms in one product, some users at a time."""
        arms, size = self.means.shape[1], joint.dimension
        rows, flat = np.arange(self.instances)[:, np.newaxis] * arms, self._packed.reshape(-1, joint.length)
        together = max(1, _AT_A_TIME // (self.instances * arms))
        for begin in range(0, count, together):
            shape = (self.instances, min(together, count - begin), size)
            drawn = model.drawn(generator.standard_normal(shape))
            chosen = np.matmul(drawn, np.swapaxes(self.features, 1, 2)).argmax(axis=-1) + rows
            means, each = self.means.reshape(-1)[chosen], flat[chosen]
            each[..., :size] *= (generator.random(chosen.shape) < means)[..., np.newaxis]
            yield each, np.asarray((self.best[:, np.newaxis] - means).sum(axis=1))


@dataclass(frozen=True, eq=False)
class FreshArms(LinearWorld):
    """Every user is offered new arms, drawn on the raised sphere.

    Attributes:
        arms: how many each user is offered.

    >>> world = FreshArms(np.array([[0.6, 0.8]]), arms=3)
    >>> world.instances, world.dimension
    (1, 2)
    """

    arms: int

    @classmethod
    def drawn(cls, instances: int, *, arms: int, dimension: int, generator: np.random.Generator) -> "FreshArms":
        """Theta on the raised sphere."""
        return cls(raised_sphere((instances,), dimension, generator), arms)

    def offer(self, users: int, generator: np.random.Generator) -> tuple[Floats, Floats]:
        """Features (instances, users, arms, dimension) and mean rewards of the next users' arms."""
        features = raised_sphere((self.instances, users, self.arms), self.theta.shape[1], generator)
        return features, np.asarray(np.matmul(features, self.theta[:, np.newaxis, :, np.newaxis])[..., 0])

    def slot(
        self, model: LinearModel, count: int, joint: JointVectors, generator: np.random.Generator, *, singly: bool
    ) -> Iterator[tuple[Floats, Floats]]:
        together = max(1, _AT_A_TIME // (self.instances * self.arms * joint.dimension))
        for begin in range(0, count, together):
            features, means = self.offer(min(together, count - begin), generator)
            normals = generator.standard_normal((*features.shape[:2], model.draws))
            chosen = model.choose_each(features, normals)[..., np.newaxis]
            taken = np.take_along_axis(means, chosen, axis=-1)[..., 0]
            phi = np.take_along_axis(features, chosen[..., np.newaxis], axis=-2)[..., 0, :]
            rewards = generator.random(taken.shape) < taken
            yield joint.pack(phi, rewards), (means.max(axis=-1) - taken).sum(axis=1)
