"""The contract of a plan: everything that anybody may ask of one, whatever it counts.

A plan is frozen numbers, a client's side, a server's side and a guarantee. Nobody asks a plan for its class: what the
command line, the service, the audit, a simulation or a ledger needs is a member here.
"""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.curves import epsilon_at
from shuffledp.accounting.dropouts import honest_users
from shuffledp.accounting.guarantee import Collusion, DeltaTerm, Guarantee
from shuffledp.accounting.pairs import DominatingPair
from shuffledp.errors import DataError, InfeasibleError, ParameterError, TooFewReportsError
from shuffledp.privacy import Privacy
from shuffledp.protocols.domains.domain import Domain
from shuffledp.protocols.fields import AGAIN, check_fields, read_noise, saved_fields, written
from shuffledp.protocols.learner import BatchMechanism, Learner
from shuffledp.protocols.presentation import (
    Listing,
    Presentation,
    View,
    beside_others,
    present_categories,
    present_numbers,
)
from shuffledp.protocols.request import Common, Request
from shuffledp.protocols.states import fingerprint_of
from shuffledp.randomness import RandomBits
from shuffledp.schedules.layout import BatchLayout

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Common, ABC):
    """A frozen spec that clients and servers read the same numbers from.

    A plan whose noise does not reach its own (epsilon, delta) cannot be made: the accountant is asked on construction,
    so a plan that was edited on disk is refused on loading.
    """

    protocol: ClassVar[str]
    """The name of the family."""
    method: ClassVar[str]
    """The name of the method within its family."""
    theory_page: ClassVar[str]
    law: ClassVar[str] = ""
    """The name of the noise in the plan's document."""
    also_saved: ClassVar[tuple[str, ...]] = ()
    """Derived numbers that the document's noise names, too, and fields that come among or after them."""
    is_labelled: ClassVar[bool] = False
    """Whether messages carry labels beside their payloads."""
    is_unbiased: ClassVar[bool] = True
    """Whether the estimate's mean is the truth; otherwise only its bound is claimed."""
    is_pure: ClassVar[bool] = False
    """Whether delta is 0."""
    keeps_zero: ClassVar[bool] = False
    """Whether a true 0 is always answered with 0."""
    can_be_voided: ClassVar[bool] = False
    """Whether one client that lies, or one lost message, makes a batch say nothing."""
    lists_methods: ClassVar[bool] = False
    """Whether a plan is shown beside all other methods of its family."""
    file_command: ClassVar[str] = "simulate"
    """The command that answers the question for a file's column."""

    def __post_init__(self) -> None:
        Common.__post_init__(self)
        self._check_domain()
        self._check_noise()
        proved = self.guarantee().delta
        if not proved <= self.privacy.delta:  # what is no number proves nothing
            raise InfeasibleError(
                "noise",
                json.dumps(self.noise),
                f"must reach delta {self.privacy.delta:g} at epsilon {self.privacy.epsilon:g} but gives {proved:.3g}",
                "add noise, or choose a larger epsilon or delta",
            )

    def _check_domain(self) -> None:
        """Refuse a domain outside its range; further checks of a plan's own go here."""
        return

    def _check_noise(self) -> None:
        """Refuse fields outside their intervals; further checks of a plan's own go here."""
        check_fields(self)

    # --- planning ----------------------------------------------------------------------------

    @classmethod
    def plan(cls, **asked: Any) -> Self:
        """The plan of this method.

        Args:
            **asked: the fields of a `Request` (users and privacy must be given), and what says which values there are.

        Raises:
            InfeasibleError: no noise of this method meets the request.
        """
        request, domain = Request.split(asked)
        return cls.for_request(request, **domain)

    @classmethod
    def for_request(cls, request: Request, *args: Any, **domain: Any) -> Self:
        """The least noise with which the request is met: a method's own calibration."""
        raise InfeasibleError("method", cls.protocol, "cannot be planned by itself", "ask its family")

    # --- words -------------------------------------------------------------------------------

    @property
    @abstractmethod
    def question(self) -> str:
        """What is asked, in words."""

    @property
    def title(self) -> str:
        """What is made, in words."""
        return "A private sum"

    @property
    def unit(self) -> str:
        """What an error is counted in, with a blank before it; empty where the values have no unit."""
        return ""

    @property
    def sends(self) -> str:
        """What a user sends, in words: messages and their size."""
        most, mean, bits = self.messages_per_user_max, self.messages_per_user_mean, self.bits_per_message
        size = f"of {bits} {'bit' if bits == 1 else 'bits'} each"
        if mean == most:
            return f"{most:,} messages {size}"
        return f"{mean:,.3g} messages on average, at most {most:,}, {size}"

    @property
    def options(self) -> str:
        """The options of the command line that say the same about users' values; empty where nothing is to be said."""
        return self.domain.options

    def facts(self) -> list[tuple[str, str]]:
        """The plan's messages, errors and noise in words, with a name each."""
        return [
            ("each user sends", self.sends),
            ("standard error", f"{self.standard_error:.4g}{self.unit}"),
            ("noise", ", ".join(f"{name} {value}" for name, value in self.noise.items() if value is not None)),
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
        return present_categories(named, estimate, users=users, chart_title=title, truth=truth, view=view)

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
            *((name, error, "one party sees all") for name, error in curators),
            (f"this plan ({self.method})", self.standard_error, "nobody sees any"),
            ("the paper's own constants", reference.get("paper_standard_error"), "as this plan"),
            ("local model", reference.get("local_standard_error"), "no shuffler"),
        ]
        heading = ("who adds it", "standard error")
        return beside_others("Noise beside three references", heading, self.standard_error, rows)

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

    # --- privacy -----------------------------------------------------------------------------

    @abstractmethod
    def pair(self, honest: int) -> DominatingPair:
        """The pair that dominates any two neighbours' views when this many users are honest."""

    @abstractmethod
    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        """Every summand of delta at this epsilon when this many users are honest."""

    @property
    @abstractmethod
    def dominates_because(self) -> str:
        """One sentence: why the pair dominates. The proof is on the theory page."""

    def guarantee(self) -> Guarantee:
        """The proof of the plan's claim, as data."""
        return Guarantee(
            claim=self.privacy,
            pair=self.pair(self.honest_users),
            theory_page=self.theory_page,
            dominates_because=self.dominates_because,
            terms=self.delta_terms(self.privacy.epsilon, self.honest_users),
        )

    @property
    def charged_pair(self) -> DominatingPair:
        """What a ledger composes: all that one user shows in the whole plan."""
        return self.pair(self.honest_users)

    def epsilon_with(self, honest_fraction: float) -> float:
        """The epsilon that is left, at the plan's delta, when only this fraction is honest; inf if none."""
        return self.epsilon_among(honest_users(self.users, honest_fraction))

    def epsilon_among(self, honest: int) -> float:
        """The epsilon that is left, at the plan's delta, when this many users are honest; inf if none."""
        return epsilon_at(TermsCurve(lambda epsilon: self.delta_terms(epsilon, honest)), self.privacy.delta)

    def _paper_epsilon_with(self, honest_fraction: float) -> float | None:
        """What the paper claims for this fraction; None where it claims nothing."""
        return None

    def collusions(self) -> tuple[Collusion, ...]:
        """Who learns what together with whom, in figures."""
        delta = self.privacy.delta
        rows = [Collusion("analyzer alone", self.privacy.epsilon, delta, "sees the permuted messages of a full batch")]
        for fraction in sorted({self.honest_fraction, 0.9, 0.5, 1 / 3}, reverse=True):
            if fraction == 1:
                continue
            epsilon = self.epsilon_with(fraction)
            rows.append(
                Collusion(
                    f"analyzer + {1 - fraction:.3g} of the users",
                    epsilon if math.isfinite(epsilon) else None,
                    delta if math.isfinite(epsilon) else None,
                    f"the other {honest_users(self.users, fraction):,} users' noise is left"
                    if math.isfinite(epsilon)
                    else "too little is left to say anything at this delta",
                    self._paper_epsilon_with(fraction),
                )
            )
        rows.append(
            Collusion(
                "analyzer + shuffler",
                self.local_epsilon,
                self.local_delta,
                "see whose messages are whose: "
                + ("a user's own randomness is left" if self.local_epsilon is not None else "nothing protects a user"),
            )
        )
        return tuple(rows)

    # --- clients that lie --------------------------------------------------------------------

    @property
    @abstractmethod
    def influence(self) -> float | None:
        """How far one client that lies can move a number of the estimate; None if as far as it likes."""

    @property
    def message_influence(self) -> float:
        """How far one message that is missing or malformed moves a number of the estimate, at most."""
        return 1.0

    @property
    @abstractmethod
    def lying_client(self) -> str:
        """What one client that does not follow the protocol can do to the estimate: a clause after "it"."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What an operator must ask for against advice: that one client can spoil the answer of all, for one."""
        can_spoil = self.influence is None or self.can_be_voided
        return (f"One client that lies {self.lying_client}.",) if can_spoil else ()

    # --- values ------------------------------------------------------------------------------

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """The set of values that a user may have."""

    def encode(self, values: ArrayLike) -> NDArray[Any]:
        """People's own values as `check_values` takes them, on their own devices."""
        return self.domain.encode(values)

    def check_values(self, values: ArrayLike) -> Any:
        """Encoded values as an array, or a ParameterError that names the first bad row."""
        return self.domain.check_values(values)

    def clip_values(self, values: ArrayLike) -> tuple[Any, int]:
        """The values brought into the domain, and how many had to be."""
        return self.domain.clip_values(values)

    @abstractmethod
    def true_value(self, values: ArrayLike) -> Any:
        """What would be answered without privacy."""

    @abstractmethod
    def sample_estimate(self, values: ArrayLike, *, bits: RandomBits) -> Any:
        """An answer drawn from the law of the whole protocol on these values, without messages."""

    def check_reports(self, reports: int) -> None:
        """Refuse a batch of another size than the plan's."""
        if reports < self.users:
            raise TooFewReportsError(self.users, reports)
        if reports > self.users:
            raise ParameterError("reports", reports, f"must be the plan's {self.users}", "plan for more users")

    # --- batches -----------------------------------------------------------------------------

    @property
    @abstractmethod
    def layout(self) -> BatchLayout:
        """Which batches there are: all that a shuffler may know of the plan."""

    @property
    def open_batches(self) -> int:
        """Batches that are open at once, each at a shuffler of its own."""
        return self.layout.shufflers

    @abstractmethod
    def mechanism(self, users: int) -> BatchMechanism:
        """What the users of a batch of this size send."""

    @abstractmethod
    def prepare(self, values: ArrayLike, *, bits: RandomBits) -> Any:
        """Checked values as batches take them, rounded once: all of a user's batches get the same."""

    def in_order(self, values: Any, *, bits: RandomBits) -> Any:
        """Checked values in the order in which their owners report: at random where groups are asked different things.

        Most plans ask everybody the same, so that any order will do: the values stay as they are.
        """
        return values

    @abstractmethod
    def learner(self) -> Learner[Any]:
        """The state machine that runs the plan."""

    # --- the audit ---------------------------------------------------------------------------

    @abstractmethod
    def audited_effort(self, honest: int) -> int:
        """What one audited run costs when this many users are honest, in users with two messages each."""

    @abstractmethod
    def views(self, side: int, trials: int, honest: int, *, bits: RandomBits) -> NDArray[np.int64]:
        """What the adversary can use of so many runs on one of two neighbouring inputs: a row of numbers a run.

        Args:
            side: 0 or 1, which of the two inputs that are hardest to tell apart.
            trials: how many runs.
            honest: how many users follow the protocol; the others send nothing, the worst that they can do.
            bits: where the noise comes from.
        """

    @abstractmethod
    def quieter(self, part: float) -> dict[str, Any]:
        """Fields of a twin with this part of the least noise variance that the plan needs."""

    def twin(self, part: float) -> Self:
        """A plan with less noise under the same claim, built past the accountant: for audits, it protects nobody."""
        if not 0 < part <= 1:
            raise ParameterError("sabotage", part, "must lie in (0, 1]", "0.5 halves the noise variance")
        return changed(self, **self.quieter(part))

    # --- the file ----------------------------------------------------------------------------

    @property
    def domain_document(self) -> dict[str, Any]:
        """The fields that say which values there are, as JSON."""
        return written(self, "domain")

    def document(self) -> dict[str, Any]:
        """The plan as JSON: every derived number, a version and a fingerprint."""
        return {
            "schema": SCHEMA,
            "protocol": self.protocol,
            "method": self.method,
            "users": self.users,
            "epsilon": self.privacy.epsilon,
            "delta": self.privacy.delta,
            "honest_fraction": self.honest_fraction,
            "constants": self.constants,
            **self.domain_document,
            "standard_error": self.standard_error,
            **self.further_numbers(),
            "messages_per_user_mean": self.messages_per_user_mean,
            "messages_per_user_max": self.messages_per_user_max,
            "bits_per_message": self.bits_per_message,
            "local_epsilon": self.local_epsilon,
            "local_delta": self.local_delta,
            "noise": self.noise,
            "reference": self.reference(),
            "fingerprint": self.fingerprint,
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """The plan that a JSON document of this method describes; whether all its numbers agree is not looked at."""
        noise = document.get("noise")
        if not isinstance(noise, Mapping):
            raise DataError("plan.noise", noise, "must be an object", AGAIN)
        return cls.from_noise(
            noise,
            users=document.get("users"),
            privacy=Privacy(document.get("epsilon"), document.get("delta")),  # type: ignore[arg-type]
            honest_fraction=document.get("honest_fraction"),
            constants=document.get("constants"),
            **{name: document.get(name) for name, _, _ in saved_fields(cls, "domain")},
        )

    @classmethod
    def from_noise(cls, noise: Mapping[str, Any], **common: Any) -> Self:
        """The plan with these noise parameters."""
        return cls(**read_noise(cls, noise), **common)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of what decides the plan: two plans with one fingerprint are the same."""
        if not hasattr(self, "_fingerprint"):
            object.__setattr__(self, "_fingerprint", fingerprint_of(self._decides()))
        return self._fingerprint

    def _decides(self) -> Any:
        """All that the plan's behaviour and its claim depend on, as JSON."""
        return [
            SCHEMA,
            self.protocol,
            self.method,
            self.users,
            self.privacy.epsilon,
            self.privacy.delta,
            self.honest_fraction,
            self.constants,
            self.noise,
            *([self.domain_document] if self.domain_document else []),
        ]


P = TypeVar("P", bound=Plan)


def changed(plan: P, **changes: Any) -> P:
    """A copy of a plan with other fields, built past the accountant: it may claim what is not true."""
    return unchecked(type(plan), **{field.name: getattr(plan, field.name) for field in fields(plan)} | changes)


def unchecked(kind: type[P], **given: Any) -> P:
    """A plan with these fields, all that it has, built past the accountant: its guarantee may not hold."""
    plan = object.__new__(kind)
    for name, value in given.items():
        object.__setattr__(plan, name, value)
    return plan


@dataclass(frozen=True, slots=True)
class TermsCurve:
    """All terms of a plan's delta together, as a function of epsilon."""

    terms: Callable[[float], tuple[DeltaTerm, ...]]

    def delta(self, epsilon: float) -> float:
        """The sum of the terms at this epsilon."""
        return sum(term.value for term in self.terms(epsilon))
