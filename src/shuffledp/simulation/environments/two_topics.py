"""People who are shown articles between two topics, of which they like one: a small world for linear bandits."""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TwoTopics:
    """Everybody is shown some articles, each with its share of two topics, and clicks on the chosen one or not.

    Features are the cosine and the sine of an angle that is uniform between the topics, so that none are opposed; the
    chance of a click falls with the angle to what people like, from `top` on.

    Attributes:
        offers: articles that each person is shown.
        liked: the angle between the first topic and what people like.
        top: the chance of a click on just that.

    >>> world = TwoTopics()
    >>> shown = world.offer(1000, np.random.default_rng(1))
    >>> shown.shape, bool((world.means(shown) >= 0).all()), bool((world.means(shown) <= 0.95).all())
    ((1000, 5, 2), True, True)
    """

    offers: int = 5
    liked: float = 0.1
    top: float = 0.95
    theta: Floats = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "theta", self.top * np.array([math.cos(self.liked), math.sin(self.liked)]))

    @property
    def dimension(self) -> int:
        """Numbers of an article's features."""
        return 2

    def offer(self, users: int, generator: np.random.Generator) -> Floats:
        """Features of the articles that so many people are shown, (people, articles, 2)."""
        angles = generator.random((users, self.offers)) * (math.pi / 2)
        return np.stack((np.cos(angles), np.sin(angles)), axis=-1)

    def means(self, features: Floats) -> Floats:
        """The chance of a click on every article."""
        return np.asarray(features @ self.theta)
