"""Whom a bandit protects from whom: one object for every trust model."""

from dataclasses import dataclass
from typing import Any, Literal

from shuffledp.learn.guarantee import LearnerGuarantee
from shuffledp.privacy import Privacy

Model = Literal["none", "joint", "shuffle", "local"]
"""Nobody is protected; from everybody but a trusted curator; from the analyzer; from everybody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearGuarantee(LearnerGuarantee):
    """What a policy satisfies: who is trusted, for how many visits, and every term of delta.

    Shuffle privacy is joint privacy, too: what all other users are shown is computed from the shuffled batches.
    Users who pool their own shares of a batch's noise know more than they were shown, and are not meant; all others of
    a batch together could take its noise off. Local privacy is both, against them as well.
    """

    model: Model
    visits: int
    local: Privacy | None = None
    """What a user's own messages satisfy before anybody shuffles or adds them; None where nothing."""
    theory_page: str = "docs/theory/002-linear-bandits.md"

    @property
    def unit(self) -> str:
        """What two neighbours differ in: user-level privacy where users return ([002] Proposition 4.3)."""
        return "one visit" if self.visits == 1 else f"all of a user's visits together, {self.visits} at most"

    @property
    def also(self) -> tuple[Model, ...]:
        """Weaker notions that follow, with the same epsilon and delta."""
        implied: dict[Model, tuple[Model, ...]] = {"local": ("shuffle", "joint"), "shuffle": ("joint",)}
        return implied.get(self.model, ())

    def document(self) -> dict[str, Any]:
        """The guarantee as JSON."""
        return {
            "model": self.model,
            "also": list(self.also),
            "visits": self.visits,
            "unit": self.unit,
            "local_epsilon": None if self.local is None else self.local.epsilon,
            "local_delta": None if self.local is None else self.local.delta,
            **self._proof(),
        }
