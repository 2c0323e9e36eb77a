"""What a distribution test answers: a verdict, how sure it is, and the errors that were declared before."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from shuffledp.estimates import Carrying
from shuffledp.protocols.notebook import presentation_html
from shuffledp.protocols.presentation import Presentation

ENOUGH_POWER = 1 / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TestedClaim(Carrying):
    """The answer: whether the users' law departs from the claim, and what that is worth.

    Attributes:
        score: the statistic as the test compares it.
        threshold: from which score on the claim is rejected.
        p_value: the probability of such a score if the claim is true, at most.
        rejected: whether the users' law departs from the claim.
        false_alarm: the declared probability to reject a true claim.
        miss: the declared probability to accept users who are `distance` away.
        distance: the total variation distance that had to be seen.
        claim: what was tested, in words.
        dropped: how many malformed messages were left out.
        simulated: whether the noise came from a seeded source and protects nobody.
    """

    __test__: ClassVar[bool] = False

    statistic: float
    """An unbiased estimate of the chi-square distance from uniform, over the bins that were counted."""
    score: float
    threshold: float
    p_value: float
    rejected: bool
    false_alarm: float
    miss: float
    distance: float
    claim: str
    dropped: int = 0
    simulated: bool = False

    def __str__(self) -> str:
        return self.words

    def labelled(self, *, simulated: bool, clipped: int = 0) -> "TestedClaim":
        """Say whether seeded bits made this answer; codes of categories are never clipped."""
        return replace(self, simulated=simulated)

    @property
    def words(self) -> str:
        """The verdict in a sentence.

        >>> errors = {"false_alarm": 0.05, "miss": 0.2, "distance": 0.25}
        >>> TestedClaim(
        ...     statistic=1, score=9, threshold=2, p_value=0.001, rejected=True, claim="uniform", **errors
        ... ).words
        'not uniform: the score 9.00 is above 2.00, exceeded with probability at most 0.05 if it were'
        """
        if self.rejected:
            return (
                f"not {self.claim}: the score {self.score:.2f} is above {self.threshold:.2f}, exceeded with "
                f"probability at most {self.false_alarm:.3g} if it were"
            )
        if self.miss <= ENOUGH_POWER:
            return (
                f"no departure from {self.claim} seen: one of {self.distance:g} or more in total variation would have "
                f"been missed with probability at most {self.miss:.3g}"
            )
        return (
            f"undecided: no departure from {self.claim} seen, but one of {self.distance:g} in total variation may be "
            "missed by so few users"
        )

    def _repr_html_(self) -> str:
        """The verdict as notebooks show it."""
        return presentation_html(self.presented(None), "A private test")

    def presented(self, truth: Any) -> Presentation:
        """The verdict, how sure it is, and the errors that were declared; the true distance where it is given."""
        facts = [
            ("verdict", self.words),
            ("p-value", f"{self.p_value:.3g}"),
            ("score", f"{self.score:.3f}, rejected above {self.threshold:.3f}"),
            ("chi-square distance", f"about {max(0.0, self.statistic):.3g}"),
            ("declared false alarm", f"{self.false_alarm:.3g} at most"),
            ("declared miss", f"{self.miss:.3g} at most, at total variation {self.distance:g} or more"),
        ]
        if truth is not None:
            facts.append(("in truth", f"the chi-square distance of these users is {truth:.3g}"))
        names = ("claim", "rejected", "p_value", "statistic", "score", "dropped", "simulated")
        figures = {name: getattr(self, name) for name in names}
        return Presentation(tuple(facts), figures={**figures, "verdict": self.words})
