"""A guarantee as data: the pair it is the curve of, every term of delta, what each collusion reveals."""

from dataclasses import dataclass

from shuffledp import markup
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

    def __str__(self) -> str:
        """The claim, and what is proved, in a sentence."""
        verdict = "holds" if self.holds else "does not hold"
        claim = f"epsilon {self.claim.epsilon:g}, delta {self.claim.delta:g}"
        return f"{claim} {verdict}: delta {self.delta:.3g} is proved ({self.theory_page})"

    def _repr_html_(self) -> str:
        """The claim, every term of delta and the proof's idea, as notebooks show it."""
        facts = [
            ("claim", str(self)),
            ("what an adversary must tell apart", self.pair.describe()),
            ("why that is the worst", self.dominates_because),
        ]
        terms = [(term.name, f"{term.value:.3g}", term.why) for term in self.terms]
        bars = [("claimed delta", self.claim.delta), *((term.name, term.value) for term in self.terms)]
        return markup.section(
            markup.facts("A guarantee", facts),
            markup.listing("Terms of delta", ("term", "value", "why"), terms, left=(True, False, True)),
            markup.bars([name for name, _ in bars], [value for _, value in bars], in_order=True),
        )


def delta_of_distance(epsilon_factor: float, distance: float) -> float:
    """Delta to add when each of two views is within `distance` of an (epsilon, .)-private one.

    P[A|x] <= P0[A|x] + d <= e^eps P0[A|x'] + delta + d <= e^eps (P[A|x'] + d) + delta + d.
    """
    return (1 + epsilon_factor) * distance
