"""What a plan says of itself: which values it takes, its numbers, and all of it in words."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.protocols.domains.domain import Domain
from shuffledp.protocols.fields import written
from shuffledp.protocols.notebook import answer_html, plan_html
from shuffledp.protocols.presentation import (
    ALONE,
    APART,
    CURATOR,
    Listing,
    Presentation,
    View,
    beside_others,
    noise_in_words,
    numbered,
    present_categories,
    present_numbers,
)
from shuffledp.protocols.request import Common


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedPlan(Common, ABC):
    """The part of a plan's contract that people read: what it protects, and how it runs, are `Plan`'s to say."""

    protocol: ClassVar[str]
    """The name of the family."""
    method: ClassVar[str]
    """The name of the method within its family."""
    theory_page: ClassVar[str]
    law: ClassVar[str] = ""
    """The name of the noise in the plan's document."""
    also_saved: ClassVar[tuple[str, ...]] = ()
    """Derived numbers that the document's noise names, too, and fields that come among or after them."""
    later_numbers: ClassVar[tuple[str, ...]] = ()
    """Derived numbers of the document that documents of earlier versions may lack."""
    is_labelled: ClassVar[bool] = False
    """Whether messages carry labels beside their payloads."""
    is_unbiased: ClassVar[bool] = True
    """Whether the estimate's mean is the truth; otherwise only its bound is claimed."""
    is_pure: ClassVar[bool] = False
    """Whether delta is 0."""
    keeps_zero: ClassVar[bool] = False
    """Whether a true 0 is always answered with 0."""
    trades_messages: ClassVar[bool] = False
    """Whether a limit of messages changes what is planned: fewer of them for a larger error."""
    can_be_voided: ClassVar[bool] = False
    """Whether one client that lies, or one lost message, makes a batch say nothing."""
    uncounted: ClassVar[int] = 0
    """How many users are in no batch that fills when everybody has reported."""
    lists_methods: ClassVar[bool] = False
    """Whether a plan is shown beside all other methods of its family."""
    file_command: ClassVar[str] = "simulate"
    """The command that answers the question for a file's column."""

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """The set of values that a user may have."""

    # --- numbers -----------------------------------------------------------------------------

    @property
    def noise(self) -> dict[str, Any]:
        """The noise's parameters: with users, privacy, honest fraction and domain they make the plan again."""
        found = written(self, "noise")
        first = {name: value for name, value in found.items() if name not in self.also_saved}
        later = {name: found[name] if name in found else getattr(self, name) for name in self.also_saved}
        return {"law": self.law, **first, **later}

    @property
    @abstractmethod
    def standard_error(self) -> float:
        """The standard error of each number of the estimate when all users follow the protocol, at most."""

    def standard_errors_for(self, values: ArrayLike) -> Any:
        """The standard error of each number of the estimate, exactly, with these values."""
        return self.standard_error

    @property
    @abstractmethod
    def error_bound(self) -> float:
        """All numbers of the estimate are off by at most this, with the estimate's confidence, whatever the data."""

    @property
    def messages_per_user_mean(self) -> float:
        """Messages a user sends on average: always as many as at most, unless a plan says otherwise."""
        return float(self.messages_per_user_max)

    def mean_messages(self, values: ArrayLike) -> float:
        """Messages a user sends on average with these values."""
        return self.messages_per_user_mean

    @property
    def least_mean_messages(self) -> float:
        """Messages a user sends on average whose value has the fewest: as all others, unless a plan says otherwise."""
        return self.messages_per_user_mean

    @property
    @abstractmethod
    def messages_per_user_max(self) -> int:
        """Messages a user sends at most."""

    @property
    @abstractmethod
    def bits_per_message(self) -> int:
        """The size of one message before encryption."""

    @property
    def alphabet_size(self) -> int:
        """Messages are integers in 0..alphabet_size-1."""
        return int(2**self.bits_per_message)

    @property
    def local_epsilon(self) -> float | None:
        """What a user's own messages satisfy alone; None where nothing."""
        return None

    @property
    def local_delta(self) -> float | None:
        """Goes with local_epsilon."""
        return None

    def further_numbers(self) -> dict[str, Any]:
        """Derived numbers beside the standard error, for the plan's document."""
        return {}

    def reference(self) -> dict[str, float | None]:
        """Errors of the paper's constants, of a trusted curator and of the local model; None where none is known."""
        return dict.fromkeys(("paper_standard_error", "central_standard_error", "local_standard_error"))

    # --- clients that lie --------------------------------------------------------------------

    @property
    @abstractmethod
    def influence(self) -> float | None:
        """How far one client that lies can move a number of the estimate; None if as far as it likes.

        It is the largest difference between two answers to batches that differ in one client's report, whatever it
        sends in at most `messages_per_user_max` messages; never counted from an honest report's mean. Near a cut, as
        where small counts are answered with 0, the cut is taken to be where it is when the others follow the protocol.
        """

    @property
    def message_influence(self) -> float:
        """How far one message that is missing or malformed moves a number of the estimate, at most."""
        return 1.0

    @property
    @abstractmethod
    def lying_client(self) -> str:
        """What one client that does not follow the protocol can do to the estimate: a clause after "it"."""

    @property
    def can_be_spoiled(self) -> bool:
        """Whether one client that lies decides the answer of all: the live service takes no such plan unasked."""
        return self.influence is None or self.can_be_voided

    @property
    def warnings(self) -> tuple[str, ...]:
        """What an operator must ask for against advice: that one client can spoil the answer of all, for one."""
        return (f"One client that lies {self.lying_client}.",) if self.can_be_spoiled else ()

    @property
    def spoiled(self) -> str:
        """Why the live service refuses a plan that can be spoiled, as a clause after its method's name."""
        return f"must not let one client spoil it for everybody ({' '.join(self.warnings).rstrip('.')})"

    @property
    def rests_on(self) -> str | None:
        """What the guarantee rests on beside a silent shuffler and honest people, in words; mostly nothing."""
        return None

    @property
    def unchecked_claims(self) -> tuple[str, ...]:
        """What whoever made the plan says of it and its file cannot show, a sentence each."""
        return ()

    # --- words -------------------------------------------------------------------------------

    @property
    @abstractmethod
    def question(self) -> str:
        """What is asked, in words."""

    @property
    def replaced(self) -> str:
        """What two neighbours differ in, in words: one value, or everything that one person has."""
        most = self.domain.most_rows
        return "one value" if most is None else f"all rows of one person, of which at most {most:,} count"

    @property
    def in_the_end(self) -> str:
        """Who is counted when everybody has reported, in words."""
        if self.uncounted == 0:
            return f"all {self.users:,} are counted"
        return (
            f"the last {self.uncounted:,} of {self.users:,} are in no batch that fills, and count by the others' rate"
        )

    @property
    def title(self) -> str:
        """What is made, in words."""
        return "A private sum"

    @property
    def trusted(self) -> str:
        """Who is trusted with what, in words, where values stay on people's own devices."""
        honest = "all" if self.honest_fraction == 1 else f"{self.honest_fraction:.3g}"
        return (
            f"the shuffler, not to tell the analyzer who sent what; {honest} of the people, to follow the protocol; "
            "the analyzer with no one's value. Here, whoever holds the file sees it all."
        )

    @property
    def unit(self) -> str:
        """What an error is counted in, with a blank before it; empty where the values have no unit."""
        return ""

    @property
    def sends(self) -> str:
        """What a user sends, in words: messages and their size."""
        most, mean, bits = self.messages_per_user_max, self.messages_per_user_mean, self.bits_per_message
        size = f"of {numbered(bits, 'bit')} each"
        if mean == most:
            return f"1 message of {numbered(bits, 'bit')}" if most == 1 else f"{most:,} messages {size}"
        return f"{numbered(f'{mean:,.3g}', 'message')} on average, at most {most:,}, {size}"

    @property
    def options(self) -> str:
        """The options of the command line that say the same about users' values; empty where nothing is to be said."""
        return self.domain.options

    def facts(self) -> list[tuple[str, str]]:
        """The plan's messages, errors and noise in words, with a name each."""
        return [
            ("each user sends", self.sends),
            ("standard error", f"{self.standard_error:.4g}{self.unit}"),
            ("noise", noise_in_words(self.noise)),
            ("one lying client", self.lying_client),
        ]

    def beside(self) -> dict[str, Any]:
        """Figures of others that stand beside a new plan as JSON and are not in its document."""
        return {}

    def methods_compared(self, rows: Sequence[Mapping[str, Any]]) -> Listing:
        """The family's methods side by side, where `lists_methods` says that a plan is shown so.

        Args:
            rows: for each method its name, whether it is available, why it is not, and its errors and messages.
        """
        return self.compared()

    def present(self, estimate: Any, truth: Any = None, view: View | None = None) -> Presentation:
        """How an answer is shown and drawn, as data.

        Args:
            estimate: an answer of this plan.
            truth: what `true_value` says, where it may be shown.
            view: which part to show; the largest categories and the quartiles if left out.
        """
        named = self.domain.named
        if named is None or np.ndim(estimate.value) == 0:
            return present_numbers(estimate, truth)
        users = self.users if view is None or view.users is None else view.users
        title = f"{self.title} of {users:,} users: {self.method}, epsilon {self.privacy.epsilon:g}"
        return present_categories(
            named, estimate, users=users, chart_title=self.cautioned(title), truth=truth, view=view
        )

    def off_by(self, estimate: Any, truth: Any) -> float | None:
        """How far an answer is from the truth, in root mean square over its numbers; None where it is no number."""
        value = getattr(estimate, "value", None)
        return None if value is None else float(np.sqrt(np.mean(np.square(value - truth))))

    def compared(self) -> Listing:
        """The plan's error beside a trusted curator's, the paper's constants' and the local model's."""
        reference = self.reference()
        laplace = reference.get("central_laplace_standard_error")
        curators = [("trusted curator", reference.get("central_standard_error"))]
        if laplace is not None:
            curators = [("trusted curator, Laplace", laplace), ("trusted curator, Gaussian", curators[0][1])]
        rows = [
            *((name, error, CURATOR) for name, error in curators),
            (f"this plan ({self.method})", self.standard_error, APART),
            ("the paper's own constants", reference.get("paper_standard_error"), "as this plan"),
            ("local model", reference.get("local_standard_error"), ALONE),
        ]
        heading = ("who adds it", "standard error")
        return beside_others("Noise beside three references", heading, self.standard_error, rows)

    def answer_html(self, estimate: Any) -> str:
        """An answer of this plan as a notebook shows it.

        Args:
            estimate: what the plan answered.
        """
        return answer_html(self, estimate)

    def _repr_html_(self) -> str:
        """The plan as a notebook shows it: a table, and its error beside others'."""
        return plan_html(self)

    def __str__(self) -> str:
        """The plan in a sentence; `repr` has every number that decides it."""
        target = f"epsilon {self.privacy.epsilon:g}, delta {self.privacy.delta:g}"
        return f"{self.question} by {self.method}: {target}, standard error {self.standard_error:.3g}{self.unit}"
