"""What every protocol's plan is: frozen numbers, a client's side, a server's side and a guarantee."""

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.curves import epsilon_at
from shuffledp.accounting.dropouts import check_honest_fraction, honest_users
from shuffledp.accounting.guarantee import Collusion, DeltaTerm, Guarantee
from shuffledp.accounting.pairs import DominatingPair
from shuffledp.errors import InfeasibleError, ParameterError, TooFewReportsError
from shuffledp.estimates import AnyEstimate
from shuffledp.messages import Batch, Reports
from shuffledp.privacy import Privacy
from shuffledp.randomness import RandomBits

Constants = Literal["exact", "paper"]
SCHEMA = 1
LARGEST_USERS = 10**12


def check_users(users: int) -> int:
    """The number of users as an int >= 1."""
    if isinstance(users, bool) or not isinstance(users, int) or users < 1:
        raise ParameterError("users", users, "must be a whole number >= 1", "count the people who will report")
    if users > LARGEST_USERS:
        raise ParameterError("users", users, f"must be <= {LARGEST_USERS:.0e}", "plan smaller batches")
    return users


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(ABC):
    """A frozen spec of one round: client and server read the same numbers.

    A plan whose noise does not reach its own (epsilon, delta) cannot be made: the accountant is asked
    on construction, so a plan that was edited on disk is refused on loading.
    """

    protocol: ClassVar[str]
    method: ClassVar[str]
    theory_page: ClassVar[str]
    domain_names: ClassVar[tuple[str, ...]] = ()
    """Fields that say which values there are, such as low and high."""
    is_labelled: ClassVar[bool] = False
    """Whether messages carry labels beside their payloads."""
    is_unbiased: ClassVar[bool] = True
    """Whether the estimate's mean is the truth; otherwise only its bound is claimed."""

    users: int
    privacy: Privacy
    honest_fraction: float = 1.0
    constants: Constants = "exact"

    def __post_init__(self) -> None:
        check_users(self.users)
        check_honest_fraction(self.honest_fraction)
        if self.constants not in ("exact", "paper"):
            raise ParameterError("constants", self.constants, "must be exact or paper", "exact is the default")
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

    # --- words -------------------------------------------------------------------------------

    @property
    @abstractmethod
    def question(self) -> str:
        """What is asked, in words."""

    @property
    def title(self) -> str:
        """What is made, in words."""
        return "A private sum"

    # --- numbers -----------------------------------------------------------------------------

    @property
    def honest_users(self) -> int:
        """The users assumed to follow the protocol, in every batch."""
        return honest_users(self.users, self.honest_fraction)

    @property
    def domain(self) -> dict[str, Any]:
        """Which values there are, by the names of the fields that say so."""
        return {name: getattr(self, name) for name in self.domain_names}

    def _check_domain(self) -> None:
        """Refuse a domain outside its range."""
        return

    @property
    @abstractmethod
    def noise(self) -> dict[str, Any]:
        """The noise's parameters: with users, privacy and honest fraction they make the plan again."""

    @classmethod
    @abstractmethod
    def from_noise(cls, noise: Mapping[str, Any], **common: Any) -> Self:
        """The plan with these noise parameters."""

    @abstractmethod
    def _check_noise(self) -> None:
        """Refuse noise parameters outside their range."""

    @property
    @abstractmethod
    def standard_error(self) -> float:
        """Of the estimate when all users follow the protocol."""

    def standard_errors_for(self, values: ArrayLike) -> Any:
        """Of each number of the estimate, exactly, with these values; `standard_error` is the largest there can be."""
        return self.standard_error

    @property
    @abstractmethod
    def messages_per_user_mean(self) -> float:
        """Messages a user sends on average."""

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

    @abstractmethod
    def reference(self) -> dict[str, float | None]:
        """Standard errors of the paper's constants, of a trusted curator and of the local model."""

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

    @property
    @abstractmethod
    def lying_client(self) -> str:
        """What one client that does not follow the protocol can do to the estimate."""

    def guarantee(self) -> Guarantee:
        """The proof of the plan's claim, as data."""
        return Guarantee(
            claim=self.privacy,
            pair=self.pair(self.honest_users),
            theory_page=self.theory_page,
            dominates_because=self.dominates_because,
            terms=self.delta_terms(self.privacy.epsilon, self.honest_users),
        )

    def epsilon_with(self, honest_fraction: float) -> float:
        """The epsilon that is left, at the plan's delta, when only this fraction is honest; inf if none."""
        return epsilon_at(_CurveWith(self, honest_users(self.users, honest_fraction)), self.privacy.delta)

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

    # --- the two sides -----------------------------------------------------------------------

    @abstractmethod
    def check_values(self, values: ArrayLike) -> Any:
        """The values as an array, or a ParameterError that names the first bad row."""

    def clip_values(self, values: ArrayLike) -> tuple[Any, int]:
        """The values brought into the domain, and how many had to be; none can where values are bits."""
        return self.check_values(values), 0

    @abstractmethod
    def true_value(self, values: ArrayLike) -> Any:
        """What would be answered without privacy."""

    def mean_messages(self, values: ArrayLike) -> float:
        """Messages a user sends on average with these values."""
        return self.messages_per_user_mean

    @abstractmethod
    def randomize(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        """The clients' side: a report for each value."""

    @abstractmethod
    def analyze(self, batch: Batch) -> AnyEstimate:
        """The server's side: the estimate from a permuted batch."""

    @abstractmethod
    def sample_estimate(self, values: ArrayLike, *, bits: RandomBits) -> AnyEstimate:
        """An estimate drawn from the law of analyze(shuffle(randomize(values))), without messages."""

    # --- the audit ---------------------------------------------------------------------------

    @property
    @abstractmethod
    def neighbours(self) -> tuple[Any, Any, Any]:
        """Two values of one user, the hardest to hide, and what all others have: arrays with one row each."""

    @abstractmethod
    def summaries(self, reports: Reports, trials: int) -> NDArray[np.int64]:
        """What the adversary can use of each of `trials` equal runs: a row of numbers a run."""

    @property
    def audited_messages(self) -> int:
        """Messages a user that an audit makes."""
        return self.messages_per_user_max

    def audited_reports(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        """The reports, or those parts of them that depend on which of the neighbours it is."""
        return self.randomize(values, bits=bits)

    def check_reports(self, reports: int) -> None:
        """Refuse a batch of another size than the plan's."""
        if reports < self.users:
            raise TooFewReportsError(self.users, reports)
        if reports > self.users:
            raise ParameterError("reports", reports, f"must be the plan's {self.users}", "plan for more users")

    # --- the file ----------------------------------------------------------------------------

    def document(self) -> dict[str, Any]:
        """The plan as JSON: every derived number, a version and a fingerprint."""
        body = {
            "schema": SCHEMA,
            "protocol": self.protocol,
            "method": self.method,
            "users": self.users,
            "epsilon": self.privacy.epsilon,
            "delta": self.privacy.delta,
            "honest_fraction": self.honest_fraction,
            "constants": self.constants,
            **self.domain,
            "standard_error": self.standard_error,
            **self.further_numbers(),
            "messages_per_user_mean": self.messages_per_user_mean,
            "messages_per_user_max": self.messages_per_user_max,
            "bits_per_message": self.bits_per_message,
            "local_epsilon": self.local_epsilon,
            "local_delta": self.local_delta,
            "noise": self.noise,
            "reference": self.reference(),
        }
        return body | {"fingerprint": _fingerprint(self)}

    @property
    def fingerprint(self) -> str:
        """SHA-256 of what decides the plan: two plans with one fingerprint are the same."""
        return _fingerprint(self)


def _fingerprint(plan: Plan) -> str:
    decides = [
        SCHEMA,
        plan.protocol,
        plan.method,
        plan.users,
        plan.privacy.epsilon,
        plan.privacy.delta,
        plan.honest_fraction,
        plan.constants,
        plan.noise,
        *([plan.domain] if plan.domain else []),
    ]
    return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class _CurveWith:
    """A plan's whole delta as a function of epsilon, with a given number of honest users."""

    plan: Plan
    honest: int

    def delta(self, epsilon: float) -> float:
        return sum(term.value for term in self.plan.delta_terms(epsilon, self.honest))
