"""People who are shown articles between two topics, of which they like one: a small world for linear bandits.

The world is a simulation's; `Readers` are its people as devices of a live campaign.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

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

    @property
    def blind_regret(self) -> float:
        """What one person who takes any article loses on average, to three digits."""
        means = self.means(self.offer(100_000, np.random.default_rng(1)))
        return float((means.max(axis=1) - means.mean(axis=1)).mean())


@dataclass
class Readers:
    """People who choose by the model that they are shown, click or not, and report that.

    Attributes:
        world: what they are shown, and like: any with `offer` and `means`.
        people: how many they are.
        seed: where articles and clicks come from; left out, from nowhere that is known.
        models: by which model each of them answered; -1 before that.
        lost: what each lost beside the best article, on average.
        clicked: whether each clicked.
    """

    world: Any
    people: int
    seed: int | None = None
    models: NDArray[np.int64] = field(init=False)
    lost: Floats = field(init=False)
    clicked: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.models = np.full(self.people, -1)
        self.lost, self.clicked = np.zeros(self.people), np.zeros(self.people)

    @cached_property
    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    def act(self, crowd: Any, step: Any, places: NDArray[np.intp]) -> Any:
        """Those at these places choose an article; what they report is its features with the click.

        Args:
            crowd: their devices (`shuffledp.service.device.crowd.Crowd`).
            step: what the model asks for.
            places: who they are.
        """
        offered = self.world.offer(len(places), self._generator)
        chosen, means = crowd.choose(step, offered), self.world.means(offered)
        taken = np.take_along_axis(means, chosen[:, np.newaxis], axis=1)[:, 0]
        features = np.take_along_axis(offered, chosen[:, np.newaxis, np.newaxis], axis=1)[:, 0]
        clicks = self._generator.random(len(places)) < taken
        self.lost[places], self.clicked[places] = means.max(axis=1) - taken, clicks
        return crowd.rewarded(step, features, clicks.astype(np.float64))

    def remember(self, model: int, places: NDArray[np.intp]) -> None:
        """They have reported by the model of this number."""
        self.models[places] = model
