"""Worlds of linear bandits, many instances at once: fixed arms, or arms that are drawn anew for every user."""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


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
class FixedArms:
    """Each instance has its theta and its arms, and rewards that are 0 or 1, <features, theta> on average.

    Reference: [002] section 5.
    """

    features: Floats
    theta: Floats
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
        return cls(raised_sphere((instances, arms), dimension, generator), theta)

    @property
    def instances(self) -> int:
        """How many worlds."""
        return len(self.theta)

    def part(self, chosen: slice) -> "FixedArms":
        """Some of the instances."""
        return FixedArms(self.features[chosen], self.theta[chosen])


@dataclass(frozen=True, eq=False)
class FreshArms:
    """Every user is offered new arms, drawn on the raised sphere."""

    theta: Floats
    arms: int

    @classmethod
    def drawn(cls, instances: int, *, arms: int, dimension: int, generator: np.random.Generator) -> "FreshArms":
        """Theta on the raised sphere."""
        return cls(raised_sphere((instances,), dimension, generator), arms)

    @property
    def instances(self) -> int:
        """How many worlds."""
        return len(self.theta)

    def offer(self, users: int, generator: np.random.Generator) -> tuple[Floats, Floats]:
        """Features (instances, users, arms, dimension) and mean rewards of the next users' arms."""
        features = raised_sphere((self.instances, users, self.arms), self.theta.shape[1], generator)
        return features, np.asarray(np.matmul(features, self.theta[:, np.newaxis, :, np.newaxis])[..., 0])
