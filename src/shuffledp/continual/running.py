"""What every running sum says of itself, however its noise is made: values, slots, estimates, and words."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.continual.request import ROUNDING_FAILURE
from shuffledp.errors import DataError, ParameterError, ShuffleDPError
from shuffledp.estimates import AnyEstimate
from shuffledp.privacy import Privacy
from shuffledp.protocols.domains.kinds import domain_from
from shuffledp.protocols.domains.summed import BITS, SummedDomain
from shuffledp.protocols.fields import forwarded
from shuffledp.protocols.plan import SCHEMA, Plan
from shuffledp.protocols.presentation import Listing, listed, numbered
from shuffledp.randomness import RandomBits
from shuffledp.schedules.batches import BatchSchedule
from shuffledp.schedules.courses import Course

FIRST_SAVED = ("users", "shufflers", "epsilon", "delta", "honest_fraction", "confidence", "shufflers_used")
"""What the document of every running sum says first."""
# Keys of a document that are no field under their own names.
_READ_APART = ("method", "epsilon", "delta", "noise", "domain")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningPlan(Plan):
    """A sum that is estimated after every user: of bits (a count), numbers, vectors or categories.

    Time is cut into slots of `slot_users`; with every slot a batch closes, and the estimate is made anew. `shufflers`
    may work concurrently, and `shufflers_used` of them do.

    Attributes:
        shufflers: how many may work concurrently.
        shufflers_used: how many of them are worth their part of epsilon.
        confidence: the probability with which all estimates are within the bound.
        domain: what is added up: bits, numbers in [0, 1], vectors or categories.
    """

    protocol: ClassVar[str] = "counter"
    is_independent: ClassVar[bool] = True
    """Whether every batch has noise of its own."""
    file_command: ClassVar[str] = "count"
    saved: ClassVar[tuple[str, ...]]
    """What decides it, by the keys of its document and in their order."""

    shufflers: int
    shufflers_used: int
    confidence: float = 0.95
    domain: SummedDomain = BITS
    certified_noise_bound: float | None = None
    """A bound on all noise, in steps, that runs of the noise certify; None where the proved one counts."""

    # --- values ------------------------------------------------------------------------------

    @property
    def question(self) -> str:
        return f"a running {self.domain.total} of {self.users:,} {self.domain.people}, estimated as they come"

    @property
    def title(self) -> str:
        return f"A private {self.domain.running}"

    unit = forwarded("domain.each")

    def true_value(self, values: ArrayLike) -> Any:
        total = self.domain.numbers(self.check_values(values)).sum(axis=0)
        return float(total) if np.ndim(total) == 0 else np.asarray(total, dtype=np.float64)

    def check_reports(self, reports: int) -> None:
        """Any number of users up to the plan's may have come."""
        if not 1 <= reports <= self.users:
            raise ParameterError("values", reports, f"must be at most {self.users}", "plan for more users")

    # --- slots -------------------------------------------------------------------------------

    @property
    @abstractmethod
    def slot_users(self) -> int:
        """The users of a slot; the first ones may have a user less."""

    @property
    @abstractmethod
    def schedule(self) -> BatchSchedule:
        """Which batch covers which slots."""

    @property
    @abstractmethod
    def course(self) -> Course:
        """Which batch covers which slots, a stretch at a time."""

    @abstractmethod
    def batches_by(self, slots: int) -> int:
        """How many batches have closed by the end of the first so many slots."""

    def spans(self) -> dict[int, list[tuple[int, int]]]:
        """The first and the last user of every batch, by the level of its shuffler."""
        found = {}
        for level, ends in enumerate(self.schedule.ends_by_level, 1):
            edges = (self.schedule.users_by(slots).tolist() for slots in (self.schedule.parents[ends], ends))
            found[level] = list(zip(*edges, strict=True))
        return found

    def window_parts(self) -> dict[str, list[float]]:
        """What one user adds to each of its batches, part by part, where they overlap and share what it draws."""
        return {}

    @property
    def table_bytes(self) -> int:
        """About how many bytes tables of all slots take while the sum runs, in the process that reads batches."""
        return 0

    # --- numbers -----------------------------------------------------------------------------

    @property
    @abstractmethod
    def surplus(self) -> float:
        """How much more noise there is, at most, when everybody follows the protocol."""

    @property
    def rounding_bound(self) -> float:
        """No estimate is further off by rounding."""
        return self.domain.rounding_bound(self.users, ROUNDING_FAILURE * (1 - self.confidence))

    @property
    @abstractmethod
    def proved_noise_bound(self) -> float:
        """No prefix's noise is larger, in steps, with probability `confidence`, over the whole horizon."""

    @property
    def noise_bound(self) -> float:
        """The bound on every prefix's noise, in steps, that estimates are given: the certified one where there is."""
        return self.proved_noise_bound if self.certified_noise_bound is None else self.certified_noise_bound

    @property
    def error_bound(self) -> float:
        """Every estimate of the horizon is off by at most this with probability `confidence`, whatever the data.

        Where there are several coordinates it holds for all of them at once.
        """
        return self.domain.step * self.noise_bound + (self.slot_users - 1) * self.domain.reach + self.rounding_bound

    @property
    @abstractmethod
    def standard_error_max(self) -> float:
        """The standard error by noise, and by rounding at its worst, of the worst estimate of the horizon."""

    standard_error = forwarded("standard_error_max")

    @property
    @abstractmethod
    def draws_a_run(self) -> int:
        """Noises that one run over the whole horizon draws."""

    @abstractmethod
    def noise_maxima(self, runs: int, *, bits: RandomBits) -> NDArray[Any]:
        """The largest |noise| of any prefix, in steps, in each of so many runs.

        Args:
            runs: how many.
            bits: where the noise comes from.
        """

    @property
    @abstractmethod
    def is_near_gaussian(self) -> bool:
        """Whether `gaussian_noise` knows the noise of every slot's sum."""

    @abstractmethod
    def gaussian_noise(self, slots: int, failure: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The sums of the first 0, 1, ... slots: deviations of Gaussian noise, and how far theirs is off, in steps.

        There is Gaussian noise, independent between coordinates, from which that of no sum is further off in any
        coordinate, but for `failure`. Probabilities under its law are right up to one part in 1e9, of which a
        thousandth of `failure` is kept back: enough for all that is asked up to a probability of a million failures.

        Args:
            slots: how many there are.
            failure: the probability with which any coordinate of any sum may be further off.
        """

    @abstractmethod
    def sample_slot_noise(self, slots: int, shape: tuple[int, ...], *, bits: RandomBits) -> Iterator[NDArray[Any]]:
        """The noise of the sums of the first 1, 2, ... slots in turn, in steps, by the law of everybody's noise.

        Args:
            slots: how many there are.
            shape: of the noise of one sum: coordinates, or independent runs.
            bits: where the noise comes from.
        """

    @abstractmethod
    def visit_terms(self, visits: int, epsilon: float) -> tuple[DeltaTerm, ...]:
        """Every summand of delta at this epsilon for a user who comes so often, never twice in one slot."""

    @property
    def users_must(self) -> str:
        """What users must do so that they are protected."""
        return "users of a batch add their noise"

    @abstractmethod
    def standard_error_of(self, slot: int) -> float:
        """The standard error by noise, and by rounding at its worst, of the estimate of the first so many slots."""

    @property
    def _rounding_variance(self) -> float:
        """The variance by rounding of a slot, in steps: a quarter a user at most."""
        return self.slot_users / 4 if self.domain.rounds else 0.0

    def sample_estimate(self, values: ArrayLike, *, bits: RandomBits) -> AnyEstimate:
        learner: Any = self.learner()
        estimates = learner.run(values, bits=bits, fast=True)
        return cast(AnyEstimate, estimates.at(estimates.users))

    message_influence = forwarded("domain.step")

    @property
    @abstractmethod
    def reference_noise(self) -> str:
        """The family of noise in which others' bounds are told beside this plan's."""

    # --- words -------------------------------------------------------------------------------

    @property
    def options(self) -> str:
        kind, shufflers = self.domain.kind, f"--shufflers {self.shufflers}"
        if self.domain.named is not None:
            return f"{shufflers} {self.domain.options}"
        own = {"bits": "", "reals": " --values reals"}
        return shufflers + own.get(kind, f" --values {kind} {self.domain.options}")

    @property
    def sends(self) -> str:
        mean, most = numbered(f"{self.messages_per_user_mean:.3g}", "message"), self.messages_per_user_max
        return f"{mean} on average, at most {most}, of up to {numbered(self.bits_per_message, 'bit')}"

    def beside(self) -> dict[str, Any]:
        return {"values": self.domain.kind, "reference": self.reference()}

    def compared(self) -> Listing:
        """The largest error over all times beside others'; only the plan's own where it has several numbers."""
        reference, several = self.reference(), self.domain.coordinates > 1
        rows = [
            ("trusted curator, the strongest known", reference["central_error_bound"]),
            (f"this plan, {self.shufflers_used} shufflers", self.error_bound),
            ("as many shufflers, independent noise", reference["independent_error_bound"]),
            (f"the best uniform tree, {self.reference_noise}", reference["uniform_tree_error_bound"]),
            (f"one shuffler, {self.reference_noise}", reference["sequential_error_bound"]),
            ("the paper's algorithm and constants", reference["paper_error_bound"]),
            ("local model, no shuffler", reference["local_error_bound"]),
        ]
        cells = [
            (
                name,
                "-" if bound is None else f"{bound:,.4g}",
                "" if bound is None or bound == self.error_bound else f"{bound / self.error_bound:,.3g}x",
            )
            for name, bound in rows
            if bound is not None or not (several or name.startswith("as many"))
        ]
        title = f"Largest error over all {self.users:,} times, {self.confidence:.0%}"
        caption = "Others are not computed for several numbers at once." if several else ""
        return listed(title, ("who", "bound", "beside this plan"), cells, caption=caption)

    def standard_errors(self) -> NDArray[np.float64]:
        """`standard_error_of` the first 0, 1, 2, ... slots."""
        return np.array([self.standard_error_of(slot) for slot in range(self.schedule.slots)])

    # --- the file ----------------------------------------------------------------------------

    def _decides(self) -> dict[str, Any]:
        privacy, domain = self.privacy, self.domain.document()
        apart = {"epsilon": privacy.epsilon, "delta": privacy.delta, "domain": domain}
        said = {key: apart[key] if key in apart else getattr(self, key) for key in self.saved}
        return {"schema": SCHEMA, "protocol": self.protocol, **said}

    @property
    def decisive_keys(self) -> frozenset[str]:
        return frozenset(self._decides())

    @abstractmethod
    def _further_sizes(self) -> dict[str, Any]:
        """What the document says of its batches, beside what that of every running sum does."""

    def document(self) -> dict[str, Any]:
        return {
            **self._decides(),
            "error_bound": self.error_bound,
            "bound": "proved" if self.certified_noise_bound is None else "certified",
            "standard_error_max": self.standard_error_max,
            **self._further_sizes(),
            "messages_per_user_mean": self.messages_per_user_mean,
            "messages_per_user_max": self.messages_per_user_max,
            "bits_per_message": self.bits_per_message,
            "uncounted": self.uncounted,
            "fingerprint": self.fingerprint,
        }

    @classmethod
    @abstractmethod
    def _noise_from(cls, noise: Any, document: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that a document's noise, and what it says beside it, stand for."""

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        again = "make it again with `shuffledp plan counter ... -o FILE`"
        try:
            return cls(
                **{key: document[key] for key in cls.saved if key not in _READ_APART},
                privacy=Privacy(document["epsilon"], document["delta"]),
                domain=domain_from(document["domain"]),
                **cls._noise_from(document["noise"], document),
            )
        except ShuffleDPError:
            raise
        except (KeyError, TypeError, ValueError) as missing:
            raise DataError("plan", str(missing), "must have all its fields", again) from None
