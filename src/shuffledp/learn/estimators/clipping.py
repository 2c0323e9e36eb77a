"""How much of people's data had to be clipped, counted privately among a few who are asked that instead of a gradient.

Each of them is in one count and in no cohort of the solver, and each count has the whole epsilon and delta: what is
seen of anybody is one protocol's, so that nothing is composed (docs/theory/001-convex-optimization.md).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError
from shuffledp.learn.callers import warn_caller
from shuffledp.learn.estimators.declared import Changed
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.protocols.plan import Plan
from shuffledp.randomness import RandomBits

# People of one count: enough to tell a tenth from nothing, and at most this part of all.
_FEWEST, _MOST, _PART = 200, 500, 0.05
# How finely the number is sought from which on a count says something.
_FINER = 50
# How often the people who are asked differ more from all than is said.
_UNLIKE = 0.01
# A model is said to have been declared wrongly from this part on.
TOO_MANY = 0.1
CLIPPED = {
    "rows": "rows were cut off or shortened: declare feature_bounds or feature_norm that hold them",
    "targets": "targets were cut off: declare target_bounds that hold them",
}
"""What is wrong where much of it was clipped, and the way out."""


class ClippedWarning(UserWarning):
    """Data cannot have met what was declared: more than a tenth of it was clipped, by a private count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedShare:
    """About which part of all people had something clipped: private, and covered by the guarantee.

    Attributes:
        what: rows or targets.
        users: how many people were asked.
        share: the estimate, in 0..1.
        low: the part that is not smaller, with this confidence.
        high: the part that is not larger.
        confidence: that the part of all people lies between low and high.
    """

    what: str
    users: int
    share: float
    low: float
    high: float
    confidence: float

    @property
    def is_too_much(self) -> bool:
        """Whether the data cannot have met what was declared: more than a tenth was clipped, with confidence."""
        return self.low > TOO_MANY

    def __str__(self) -> str:
        return f"{self.share:.0%} of {self.what} ({self.low:.0%} to {self.high:.0%}, by a private count)"

    @property
    def complaint(self) -> str:
        """What is wrong, and the way out, in one sentence."""
        return f"At least {self.low:.0%} of people's {CLIPPED[self.what]}."

    def document(self) -> dict[str, Any]:
        """The estimate as JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ClipCounts:
    """Who is asked what was clipped: so many people for each question, by one plan.

    >>> counts = ClipCounts.planned("auto", 20_000, ("rows", "targets"), Privacy(1, 1e-6))
    >>> counts.users, counts.plan.users
    (1000, 500)
    >>> ClipCounts.planned("auto", 2_000, ("rows",), Privacy(1, 1e-6)).users
    0
    """

    questions: tuple[str, ...]
    plan: Plan | None

    @classmethod
    def planned(
        cls, asked: Any, users: int, questions: Sequence[str], privacy: Privacy, honest_fraction: float = 1.0
    ) -> "ClipCounts":
        """The counts of so many users.

        Args:
            asked: people for each question; 0 for none; "auto" for a few hundred where they are at most 5% of all, and
                enough to see a tenth through the noise.
            users: how many people there are.
            questions: what may have been clipped.
            privacy: what everybody is promised.
            honest_fraction: the people who are counted on to add their noise.

        Raises:
            ParameterError: more people than there are, or no number.
        """
        nobody = cls((), None)
        each = asked
        if isinstance(asked, str) and asked == "auto":
            each = min(_MOST, int(_PART * users) // len(questions))
            if each < _FEWEST:
                return nobody
        elif isinstance(asked, bool) or not isinstance(asked, int) or not 0 <= asked * len(questions) < users:
            problem = f"must be auto, or a whole number of people, fewer than {users} in all"
            raise ParameterError("count_clipped", asked, problem, "0 counts nothing")
        if each == 0:
            return nobody
        plan = BinarySum.plan(users=each, privacy=privacy, honest_fraction=honest_fraction)
        is_noise = isinstance(asked, str) and plan.error_bound > TOO_MANY * each
        return nobody if is_noise else cls(tuple(questions), plan)

    @classmethod
    def counted_from(cls, questions: Sequence[str], privacy: Privacy, *, honest_fraction: float = 1.0) -> int | None:
        """From how many people on "auto" counts what was clipped; None where noise hides a tenth of the most it asks.

        >>> ClipCounts.counted_from(("rows",), Privacy(1, 1e-6))
        4000
        """
        for each in range(_FEWEST, _MOST + 1, _FINER):
            users = math.ceil(each * len(questions) / _PART)
            if cls.planned("auto", users, questions, privacy, honest_fraction).plan is not None:
                return users
        return None

    @property
    def users(self) -> int:
        """People who are asked what was clipped, and for no gradient."""
        return 0 if self.plan is None else self.plan.users * len(self.questions)

    def counted(
        self, clipped: Mapping[str, Changed], people: NDArray[np.intp], *, bits: RandomBits
    ) -> tuple[ClippedShare, ...]:
        """What these people say, the first of them to the first question.

        Args:
            clipped: of every question, whose data had to be clipped.
            people: rows of those who are asked, drawn at random.
            bits: where noise is drawn from.
        """
        if self.plan is None:
            return ()
        each, found = self.plan.users, []
        for number, what in enumerate(self.questions):
            own = clipped[what][people[number * each : (number + 1) * each]]
            estimate = self.plan.sample_estimate(own, bits=bits)
            # Hoeffding's bound, which also holds for people who are drawn without replacement.
            unlike = math.sqrt(math.log(2 / _UNLIKE) / (2 * each))
            share, margin = estimate.value / each, estimate.bound / each + unlike
            confidence = estimate.confidence - _UNLIKE
            low, middle, high = np.clip([share - margin, share, share + margin], 0.0, 1.0).tolist()
            found.append(
                ClippedShare(what=what, users=each, share=middle, low=low, high=high, confidence=round(confidence, 6))
            )
        return tuple(found)


def complain(shares: Sequence[ClippedShare]) -> None:
    """Warn where data cannot have met what was declared."""
    for share in shares:
        if share.is_too_much:
            warn_caller(share.complaint, ClippedWarning)
