"""The contract of a plan: everything that anybody may ask of one, whatever it counts.

A plan is frozen numbers, a client's side, a server's side and a guarantee. Nobody asks a plan for its class: what the
command line, the service, the audit, a simulation or a ledger needs is a member here.
"""

import json
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.curves import epsilon_at
from shuffledp.accounting.dropouts import honest_users
from shuffledp.accounting.guarantee import Collusion, DeltaTerm, Guarantee
from shuffledp.accounting.pairs import DominatingPair
from shuffledp.errors import DataError, InfeasibleError, ParameterError, TooFewReportsError
from shuffledp.privacy import Privacy
from shuffledp.protocols.fields import AGAIN, check_fields, read_noise, saved_fields, written
from shuffledp.protocols.learner import BatchMechanism, Learner
from shuffledp.protocols.request import Common, Request, once
from shuffledp.protocols.states import fingerprint_of
from shuffledp.protocols.streaming import Streaming
from shuffledp.randomness import RandomBits
from shuffledp.schedules.layout import BatchLayout

SCHEMA = 1
# Keys of a document that decide a plan, with those of its domain; the others follow from them.
_DECIDES = (
    *("schema", "protocol", "method", "users", "epsilon", "delta", "honest_fraction", "constants", "noise"),
    "fingerprint",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Streaming):
    """A frozen spec that clients and servers read the same numbers from.

    A plan whose noise does not reach its own (epsilon, delta) cannot be made: the accountant is asked on construction,
    so a plan that was edited on disk is refused on loading.
    """

    def __post_init__(self) -> None:
        Common.__post_init__(self)
        self._check_domain()
        self._check_noise()
        guarantee = self.guarantee()
        if not guarantee.terms:  # a sum of nothing is 0, and no proof
            raise ParameterError("delta_terms", "none", "must have a term of delta or more", "see Plan's contract")
        proved = guarantee.delta
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

    @classmethod
    def least_error(cls, request: Request, **domain: Any) -> float:
        """What no plan of this method for the request can be below, so that one that cannot win is not planned.

        It is the error by which the method's family compares plans, and must be proved: a choice rests on it. A method
        whose calibration takes long says more than this default.

        Args:
            request: what is asked for.
            **domain: what says which values there are, as `for_request` takes it.
        """
        return 0.0

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
        for fraction in sorted({self.honest_fraction, 0.9, 0.5, 1 / 3} - {1}, reverse=True):
            who, epsilon = f"analyzer + {1 - fraction:.3g} of the users", self.epsilon_with(fraction)
            paper = self._paper_epsilon_with(fraction)
            if math.isfinite(epsilon):
                rows.append(Collusion(who, epsilon, delta, self._noise_left(fraction), paper))
            else:
                words = "too little is left to say anything at this delta"
                rows.append(Collusion(who, None, None, words, paper))
        left = "nothing protects a user" if self.local_epsilon is None else "a user's own randomness is left"
        words = f"see whose messages are whose: {left}"
        rows.append(Collusion("analyzer + shuffler", self.local_epsilon, self.local_delta, words))
        return tuple(rows)

    def _noise_left(self, fraction: float) -> str:
        """Whose noise hides a user when this fraction is honest, in words."""
        return f"the other {honest_users(self.users, fraction):,} users' noise is left"

    # --- values ------------------------------------------------------------------------------

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
    def prepare(self, values: ArrayLike, *, bits: RandomBits, positions: NDArray[np.int64] | None = None) -> Any:
        """Checked values as batches take them, drawn once: whatever a user's batches get is of the same draw.

        Args:
            values: encoded, an entry or a row a user.
            bits: where rounding, and all else that a user draws once for all its batches, comes from.
            positions: each user's place among all users of the plan, from 0, in the order in which seats are given. A
                plan whose reports do not depend on the place ignores it; another one refuses to do without.

        Returns:
            An array whose first axis is users: mechanisms are given rows of it, for each batch those of its users in
            the order of their seats. Where batches get different parts of a row, such as windows that share noise, the
            seat in the batch says which part is the batch's.
        """

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

    @property
    def decisive_keys(self) -> frozenset[str]:
        """The keys of its document that decide the plan: what they say must be the same to the last bit."""
        return frozenset(_DECIDES).union(self.domain_document)

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

    @once
    def fingerprint(self) -> str:
        """SHA-256 of what decides the plan: two plans with one fingerprint are the same."""
        return fingerprint_of(self._decides())

    def _decides(self) -> Any:
        """All that the plan's behaviour and its claim depend on, as JSON."""
        domain = self.domain_document
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
            *([domain] if domain else []),
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
