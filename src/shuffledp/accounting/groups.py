"""Several people's values at once, or several values of one person: group privacy as a pair."""

import math
from dataclasses import dataclass

from shuffledp.accounting.pairs import Atoms, DominatingPair
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy


def steps_factor(epsilon: float, steps: int) -> float:
    """How many times the delta of one step is that of so many: 1 + e^(epsilon/steps) + e^(2 epsilon/steps) + ...

    >>> steps_factor(0.0, 3), round(steps_factor(1.0, 2), 4)
    (3.0, 2.6487)
    """
    if steps == 1 or epsilon == 0:
        return float(steps)
    # A geometric sum, rounded up. Beyond e^700 a smaller epsilon is still a bound.
    bounded = min(epsilon, 700.0)
    return math.expm1(bounded) / math.expm1(bounded / steps) * (1 + 1e-12)


def one_step(privacy: Privacy, steps: int) -> Privacy:
    """What one step may cost where so many together may cost this: group privacy, read backwards.

    Args:
        privacy: what must hold for all steps together.
        steps: how many there are.

    Returns:
        The target of one step.

    >>> once = one_step(Privacy(1, 1e-6), 4)
    >>> once.epsilon, steps_factor(1.0, 4) * once.delta <= 1e-6
    (0.25, True)
    """
    if steps == 1:
        return privacy
    # A hair less, so that multiplying again never rounds above the target.
    return Privacy(privacy.epsilon / steps, privacy.delta / steps_factor(privacy.epsilon, steps) * (1 - 1e-12))


@dataclass(frozen=True, eq=False)
class GroupPair(DominatingPair):
    """Two inputs that are so many steps apart, where one step shows no more than a pair.

    If P_0, P_1, ..., P_m are views of which neighbours are dominated by the pair in both directions, then
    P_0 <= e^a P_1 + d_a and P_1 <= e^b P_2 + d_b give P_0 <= e^(a+b) P_2 + d_a + e^a d_b, and so on: with equal
    parts of epsilon, H_epsilon(P_0||P_m) is at most the step's own delta at epsilon/m times
    1 + e^(epsilon/m) + ... + e^((m-1) epsilon/m). It holds however the steps are chosen: nothing is assumed of the
    noise.

    Attributes:
        pair: what dominates two inputs that are one step apart.
        steps: how many steps the two inputs are apart.

    >>> from shuffledp.accounting.laws import DiscreteLaplace
    >>> from shuffledp.accounting.pairs import ShiftPair
    >>> GroupPair(ShiftPair(DiscreteLaplace(0.8)), 4).delta(1.0)
    0.0
    """

    pair: DominatingPair
    steps: int

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ParameterError("steps", self.steps, "must be >= 1", "inputs differ by at least one step")

    def forward(self, epsilon: float) -> float:
        return self.pair.delta(epsilon / self.steps) * steps_factor(epsilon, self.steps)

    def reverse(self, epsilon: float) -> float:
        return self.forward(epsilon)

    def atoms(self) -> Atoms:
        if self.steps != 1:
            raise ParameterError("steps", self.steps, "must be 1 for atoms", "compose the claim instead")
        return self.pair.atoms()

    def describe(self) -> str:
        return f"{self.steps} steps, each no more than: {self.pair.describe()}"
