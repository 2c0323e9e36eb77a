"""A guarantee as data: the pair it is the curve of, every term of delta, what each collusion reveals."""

from dataclasses import dataclass

from shuffledp.accounting.pairs import DominatingPair
from shuffledp.privacy import Privacy


@dataclass(frozen=True, slots=True)
class DeltaTerm:
    """One summand of delta and where it comes from."""

    name: str
    value: float
    why: str


@dataclass(frozen=True, slots=True)
class Collusion:
    """What some parties learn together; epsilon is None where nothing protects any more."""

    parties: str
    epsilon: float | None
    delta: float | None
    in_words: str
    paper_epsilon: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """Why a plan is (epsilon, delta)-private."""

    claim: Privacy
    pair: DominatingPair
    theory_page: str
    dominates_because: str
    terms: tuple[DeltaTerm, ...]

    @property
    def delta(self) -> float:
        """What is proved: the sum of all terms, at the claim's epsilon."""
        return sum(term.value for term in self.terms)

    @property
    def holds(self) -> bool:
        """Whether what is proved reaches what is claimed."""
        return self.delta <= self.claim.delta


def delta_of_distance(epsilon_factor: float, distance: float) -> float:
    """Delta to add when each of two views is within `distance` of an (epsilon, .)-private one.

    P[A|x] <= P0[A|x] + d <= e^eps P0[A|x'] + delta + d <= e^eps (P[A|x'] + d) + delta + d.
    """
    return (1 + epsilon_factor) * distance
