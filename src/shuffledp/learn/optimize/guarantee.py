"""Whom a solver protects: the pair, every term of delta, and what it asks of a user."""

from dataclasses import dataclass
from typing import Any, Literal

from shuffledp.accounting.pairs import DominatingPair
from shuffledp.learn.guarantee import LearnerGuarantee

Model = Literal["shuffle", "pan-private", "none"]
"""From the analyzer; from one intrusion into a trusted analyzer's memory and from readers of its model; from nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizationGuarantee(LearnerGuarantee):
    """What holds for every user: cohorts of different stages and, if users are asked once, rounds are disjoint.

    The terms are those of the stage that proves least; `users_per_round` and `messages_per_user` are the smallest
    cohort and the most that a user sends in all its rounds.

    Attributes:
        model: who is trusted: shuffle, pan-private or nobody.
        honest_fraction: the users of every cohort who are counted on to add their noise.
        rounds: how many there are in all.
        rounds_per_user: in how many of them one user is.
        users_per_round: how many the smallest cohort has.
        messages_per_user: the most that a user sends in all its rounds.
        pair: what dominates all that one user shows; None where there is none.
        theory_page: where the proof is.
    """

    model: Model
    honest_fraction: float
    rounds: int
    rounds_per_user: int
    users_per_round: int
    messages_per_user: int
    pair: DominatingPair | None
    theory_page: str = "docs/theory/001-convex-optimization.md"
    history: str = ""
    """What this fit and others cost the same people together, in words; not in the document, which is this fit's."""

    def __str__(self) -> str:
        if self.privacy is None:
            return "nobody is protected"
        asked = "once" if self.rounds_per_user == 1 else f"in {self.rounds_per_user:,} rounds"
        return (
            f"epsilon {self.privacy.epsilon:g}, delta {self.privacy.delta:g} in the {self.model} model: "
            f"{self.rounds:,} rounds of {self.users_per_round:,} users or more, each asked {asked} for at most "
            f"{self.messages_per_user:,} messages" + (f"; {self.history}" if self.history else "")
        )

    def document(self) -> dict[str, Any]:
        """The guarantee as JSON."""
        numbers = ("model", "honest_fraction", "rounds", "rounds_per_user", "users_per_round", "messages_per_user")
        return {
            **{name: getattr(self, name) for name in numbers},
            "pair": None if self.pair is None else self.pair.describe(),
            **self._proof(),
            "theory_page": self.theory_page,
        }
