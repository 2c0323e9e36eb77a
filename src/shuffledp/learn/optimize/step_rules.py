"""What becomes of a noisy gradient: steps with momentum, or Adam's; post-processing, which costs no privacy."""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.learn.spec import check_declared, number, positive

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRule(ABC):
    """Moves a point by a gradient; what it keeps between rounds are `memories` vectors as long as the point.

    Attributes:
        step_size: how far a gradient moves the point.
    """

    name: ClassVar[str]
    memories: ClassVar[int]
    step_size: float = positive("0.1 is a common beginning", default=0.1)

    def __post_init__(self) -> None:
        check_declared(self)

    @abstractmethod
    def step(self, time: int, point: Floats, kept: Floats, gradient: Floats) -> tuple[Floats, Floats]:
        """The next point and what is kept, a row a memory, after round `time`, counted from 1."""

    def document(self) -> dict[str, Any]:
        """The rule as JSON."""
        return {"rule": self.name, **asdict(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentumSteps(StepRule):
    """velocity <- momentum velocity + gradient; point <- point - step velocity.

    Attributes:
        momentum: the part of the velocity that is kept.

    >>> MomentumSteps(step_size=1.0, momentum=0.5).step(1, np.zeros(1), np.ones((1, 1)), np.array([2.0]))
    (array([-2.5]), array([[2.5]]))
    """

    name: ClassVar[str] = "momentum"
    memories: ClassVar[int] = 1
    momentum: float = number(0.0, 0.9999, "0 is plain gradient descent", default=0.9)

    def step(self, time: int, point: Floats, kept: Floats, gradient: Floats) -> tuple[Floats, Floats]:
        velocity = self.momentum * kept + gradient
        return point - self.step_size * velocity[0], velocity


@dataclass(frozen=True, slots=True, kw_only=True)
class AdamSteps(StepRule):
    """Steps by the running mean of gradients over the root of that of their squares, coordinate by coordinate.

    Reference: Kingma, Ba 2015, Algorithm 1.

    Attributes:
        decay: the part of the mean gradient that is kept.
        decay_of_squares: the part of the mean square that is kept.
        smallest: added to the root, so that nothing is divided by 0.

    >>> AdamSteps(step_size=0.1).step(1, np.zeros(1), np.zeros((2, 1)), np.array([5.0]))[0].round(6).tolist()
    [-0.1]
    """

    name: ClassVar[str] = "adam"
    memories: ClassVar[int] = 2
    decay: float = number(0.0, 0.9999, "0.9 suits most", default=0.9)
    decay_of_squares: float = number(0.0, 0.99999, "0.999 suits most", default=0.999)
    smallest: float = positive("1e-8 suits most", default=1e-8)

    def step(self, time: int, point: Floats, kept: Floats, gradient: Floats) -> tuple[Floats, Floats]:
        mean = self.decay * kept[0] + (1 - self.decay) * gradient
        squares = self.decay_of_squares * kept[1] + (1 - self.decay_of_squares) * gradient**2
        unbiased = mean / (1 - self.decay**time), squares / (1 - self.decay_of_squares**time)
        move = unbiased[0] / (np.sqrt(unbiased[1]) + self.smallest)
        return point - self.step_size * move, np.stack([mean, squares])
