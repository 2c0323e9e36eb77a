"""Plans of one round: everybody reports once, to one shuffler, and one batch is the answer."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.errors import ParameterError
from shuffledp.estimates import AnyEstimate
from shuffledp.messages import Batch, Reports
from shuffledp.protocols.fields import forwarded
from shuffledp.protocols.learner import BatchMechanism, Cohort, Learner, OpenBatch, Part, PlanLearner
from shuffledp.protocols.plan import Plan
from shuffledp.protocols.states import RESTORE, State, inner, whole
from shuffledp.protocols.tallies import Tallier, Tally
from shuffledp.randomness import RandomBits
from shuffledp.schedules.layout import BatchLayout


@dataclass(frozen=True, slots=True, kw_only=True)
class InteractivePlan(Plan):
    """A plan of several rounds, each of which depends on the one before: its learner runs it in one process."""

    asked: ClassVar[str]
    """Who is asked in its rounds, in words after "is asked in"."""
    run_by: ClassVar[str] = "simulate"
    """The commands that run it."""
    open_batches: ClassVar[int] = 1

    def _not_scheduled(self, way_out: str) -> ParameterError:
        problem = f"is asked in {self.asked}; the live service serves plans of one schedule"
        return ParameterError("protocol", self.protocol, problem, way_out)

    @property
    def layout(self) -> BatchLayout:
        raise self._not_scheduled(f"run it in one process: {self.run_by}")

    def mechanism(self, users: int) -> BatchMechanism:
        raise self._not_scheduled("ask its learner")

    def prepare(self, values: ArrayLike, *, bits: RandomBits, positions: NDArray[np.int64] | None = None) -> Any:
        return self.check_values(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundPlan(Plan):
    """A plan of one round: a randomizer, a tally that adds up, and an estimate from the tally."""

    in_pieces: ClassVar[bool] = True

    # --- the two sides -----------------------------------------------------------------------

    @abstractmethod
    def randomize(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        """The clients' side: a report for each value."""

    @abstractmethod
    def tally(self, batch: Batch, malformed: int = 0) -> Tally:
        """The server's side, first half: what is left of the messages of a batch, or of a piece of one.

        Args:
            batch: permuted messages.
            malformed: messages of the piece that could not be read at all.
        """

    @property
    def tallier(self) -> Tallier:
        """What tallies as this plan does, for processes elsewhere: what is sent to them is as little as it can be."""
        return self.tally

    @abstractmethod
    def estimate(self, tally: Tally, *, simulated: bool = False) -> Any:
        """The server's side, second half: the answer from the tally of a whole batch.

        Raises:
            BatchError: the batch is too small, or was spoiled.
        """

    def merge(self, tallies: Iterable[Tally]) -> Tally:
        """One tally of all pieces of a batch: any way to cut the batch gives the same bits."""
        return Tally.merge(tallies)

    def check_tally(self, tally: Tally) -> None:
        """Refuse a tally that is none of a whole batch of this plan: it may come from another machine.

        Raises:
            BatchError: of too few reports.
            ParameterError: of too many, or of other counts than this plan's.
        """
        own = self.tally(Batch(np.empty(0, dtype=np.uint64), 0)).counts
        if (tally.counts.shape, tally.counts.dtype.kind) != (own.shape, own.dtype.kind):
            found, wanted = (f"{each.dtype} of shape {each.shape}" for each in (tally.counts, own))
            raise ParameterError("tally", found, f"must be {wanted}, as this plan counts", RESTORE)
        self.check_reports(tally.reports)

    @property
    def tally_bytes(self) -> int:
        return self.tally(Batch(np.empty(0, dtype=np.uint64), 0)).counts.nbytes

    def analyze(self, batch: Batch) -> Any:
        """The estimate from a whole permuted batch."""
        return self.estimate(self.tally(batch))

    def prepare(self, values: ArrayLike, *, bits: RandomBits, positions: NDArray[np.int64] | None = None) -> Any:
        return self.check_values(values)

    def parts(self, values: Any, messages: int) -> Iterator[Part]:
        """The reports in parts of about so many messages each, which may be shuffled apart.

        Labels are in the clear, so permuting each label's messages by themselves has the law of permuting all.
        """
        yield Part(lambda rows, bits: self.randomize(values[rows], bits=bits), self.messages_per_user_max)

    # --- batches -----------------------------------------------------------------------------

    @property
    def layout(self) -> BatchLayout:
        return BatchLayout.single(self.users, self.messages_per_user_max)

    def mechanism(self, users: int) -> BatchMechanism:
        return WholeRound(self)

    @property
    def batches(self) -> tuple[OpenBatch, ...]:
        """The one batch, where a learner runs the plan as one of its rounds and is told the estimate."""
        return (OpenBatch(1, 0, EstimatedRound(self), 0),)

    def learner(self) -> "OneRound":
        return OneRound(self)

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

    def audited_effort(self, honest: int) -> int:
        return honest * max(1, self.audited_messages // 2)

    def views(self, side: int, trials: int, honest: int, *, bits: RandomBits) -> NDArray[np.int64]:
        target, other = self.neighbours[side], self.neighbours[2]
        values = np.concatenate((target, np.repeat(other, honest - 1, axis=0)))
        repeated = np.tile(values, (trials, *[1] * (values.ndim - 1)))
        return self.summaries(self.audited_reports(repeated, bits=bits), trials)


class ExactRound(RoundPlan):
    """A round whose noise is drawn exactly: the curve of its pair is all of delta."""

    __slots__ = ()
    curve: ClassVar[str]
    """What the noise term of delta is, in words."""
    drawn: ClassVar[str] = "coins are drawn exactly"
    """Why sampling costs nothing, in words."""

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        noise = DeltaTerm("noise", self.pair(honest).delta(epsilon), self.curve)
        return noise, DeltaTerm("sampling", 0.0, self.drawn)


@dataclass(frozen=True, slots=True)
class WholeRound(BatchMechanism):
    """The one batch of a plan of one round."""

    plan: RoundPlan

    users = forwarded("plan.users")
    messages_max = forwarded("plan.messages_per_user_max")

    def randomize(self, prepared: Any, first_seat: int, *, bits: RandomBits) -> Reports:
        return self.plan.randomize(prepared, bits=bits)

    def parts(self, prepared: Any, first_seat: int, messages: int) -> Iterator[Part]:
        return self.plan.parts(prepared, messages)

    def tally(self, batch: Batch, malformed: int = 0) -> Tally:
        return self.plan.tally(batch, malformed)

    @property
    def tallier(self) -> Tallier:
        return self.plan.tallier

    def read(self, tally: Tally) -> tuple[Tally, int]:
        return tally, self.plan.estimate(tally).dropped


@dataclass(frozen=True, slots=True)
class EstimatedRound(WholeRound):
    """The one batch of a plan of one round, of which a learner is told the estimate."""

    def read(self, tally: Tally) -> tuple[Any, int]:
        estimate = self.plan.estimate(tally)
        return estimate, estimate.dropped


S = TypeVar("S")


class RoundsLearner(Learner[S]):
    """A learner of rounds, each by a plan of one round: it is told estimates, and goes on without one that is void."""

    __slots__ = ()
    takes_void: ClassVar[bool] = True

    def told_document(self, told: Tally) -> Any:
        return told.document()

    def told_from(self, document: Any, mechanism: BatchMechanism) -> Any:
        return mechanism.read(Tally.from_document(document))[0]


@dataclass(frozen=True, slots=True, eq=False)
class RoundState(State):
    """How many users came, and the tally of their batch once it closed."""

    users: int = whole("whole users")
    tally: Tally | None = inner("the tally of its batch, or none", Tally.from_document, default=None)


@dataclass(frozen=True, slots=True)
class OneRound(PlanLearner[RoundState]):
    """One batch of everybody, asked once."""

    states: ClassVar[type[State] | None] = RoundState

    plan: RoundPlan

    def start(self) -> RoundState:
        return RoundState(self.fingerprint, 0)

    def ask(self, state: RoundState) -> Cohort | None:
        state.belongs_to(self.fingerprint, "plan")
        left = self.plan.users - state.users
        if not 0 <= left <= self.plan.users or (state.tally is None) != (left > 0):
            problem = f"must be one of 0..{self.plan.users}, with a tally at the end and not before"
            raise ParameterError("users", state.users, problem, "restore the state from a copy")
        if state.tally is not None:
            self.plan.check_tally(state.tally)
        return Cohort(left, (OpenBatch(1, 0, WholeRound(self.plan), state.users),)) if left else None

    def tell(self, state: RoundState, users: int, closed: Mapping[int, Tally]) -> RoundState:
        time = state.users + users
        if time > self.plan.users or (time == self.plan.users) != (1 in closed):
            raise ParameterError("users", users, f"must be the {self.plan.users} of the batch", "tell it once, full")
        if 1 in closed:
            self.plan.check_tally(closed[1])
        return replace(state, users=time, tally=closed.get(1))

    def estimate(self, state: RoundState, *, simulated: bool = False) -> AnyEstimate | None:
        return None if state.tally is None else self.plan.estimate(state.tally, simulated=simulated)

    def told_document(self, told: Tally) -> Any:
        return told.document()

    def told_from(self, document: Any, mechanism: BatchMechanism | None = None) -> Tally:
        return Tally.from_document(document)
