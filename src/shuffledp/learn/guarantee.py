"""What learners' guarantees have in common: a claim, every term of delta, and who is trusted."""

from dataclasses import asdict, dataclass
from typing import Any

from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.privacy import Privacy


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerGuarantee:
    """What a learner satisfies, and why: `privacy` is None where nobody is protected.

    Attributes:
        privacy: what is claimed; None where nobody is protected.
        terms: every summand of delta.
        trusted: who must be believed, in words.
        because: why it holds, in words.
    """

    privacy: Privacy | None
    terms: tuple[DeltaTerm, ...]
    trusted: str
    because: str

    @property
    def delta(self) -> float:
        """What is proved at the claim's epsilon."""
        return sum(term.value for term in self.terms)

    @property
    def holds(self) -> bool:
        """Whether what is proved reaches what is claimed."""
        return self.privacy is None or self.delta <= self.privacy.delta

    def _proof(self) -> dict[str, Any]:
        """The claim and its proof as JSON."""
        return {
            "epsilon": None if self.privacy is None else self.privacy.epsilon,
            "delta": None if self.privacy is None else self.privacy.delta,
            "proved_delta": self.delta,
            "terms": [asdict(term) for term in self.terms],
            "trusted": self.trusted,
            "because": self.because,
        }
