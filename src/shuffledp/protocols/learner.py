"""The contract of a learner: ask what the next users do, tell what their batches showed.

A learner does no input or output and draws no noise. One round of a protocol, a running sum, a search and a model are
learners alike, so that one driver runs them all, in a simulation, on an engine or behind the live service.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from shuffledp.errors import DataError, ParameterError
from shuffledp.estimates import answer_document
from shuffledp.messages import Batch, Reports
from shuffledp.protocols.states import State
from shuffledp.protocols.tallies import Tallier, Tally
from shuffledp.protocols.tally_rows import TallyRows, Whole
from shuffledp.randomness import RandomBits


@dataclass(frozen=True, slots=True)
class Part:
    """Some of the messages of all users of a cohort: those of some labels, or all."""

    make: Callable[[slice, RandomBits], Reports]
    """The reports of these users, by their places in the cohort."""
    messages: int
    """Messages that each user sends in this part at most."""


class BatchMechanism(ABC):
    """What the users of one batch send, and what its messages say: frozen, and the same for clients and server.

    Reference: [000], the encoder and the size (E, m).
    """

    users: int

    @property
    @abstractmethod
    def messages_max(self) -> int:
        """Messages that a user sends to this batch at most."""

    @abstractmethod
    def randomize(self, prepared: Any, first_seat: int, *, bits: RandomBits) -> Reports:
        """Reports of consecutive users, the first of whom has this seat in the batch, from 0.

        Args:
            prepared: the users' rows of what the plan's `prepare` made; which part of a row is this batch's, the seat
                says where batches get different ones.
            first_seat: the seat of the first user.
            bits: where the noise comes from.
        """

    def parts(self, prepared: Any, first_seat: int, messages: int) -> Iterator[Part]:
        """The users' reports in parts of about so many messages each, which may be shuffled apart; one if they may not.

        Args:
            prepared: what the plan's `prepare` made of the users' values.
            first_seat: the seat of the first user.
            messages: how many messages a part should have.
        """

        def make(rows: slice, bits: RandomBits) -> Reports:
            return self.randomize(prepared[rows], first_seat + rows.start, bits=bits)

        yield Part(make, self.messages_max)

    @abstractmethod
    def tally(self, batch: Batch, malformed: int = 0) -> Tally:
        """What is left of the messages of the batch, or of a piece of it; `malformed` ones could not be read."""

    @property
    def tallier(self) -> Tallier:
        """What tallies as `tally` does, for processes elsewhere: what is sent to them is as little as it can be."""
        return self.tally

    @abstractmethod
    def read(self, tally: Tally) -> tuple[Any, int]:
        """What the learner is told of the whole batch, and how many messages were missing or malformed.

        Raises:
            BatchError: the batch was spoiled and says nothing.
        """

    # What follows is the same for users of many small batches at once, which a mechanism may do together.

    def tally_runs(self, prepared: Any, first_seat: int, starts: Whole, *, bits: RandomBits) -> TallyRows:
        """What is left of the messages of consecutive users of several such batches, batch by batch.

        Every message is made and counted; nobody mixes them, as a tally does not depend on the order.

        Args:
            prepared: the users' rows of what the plan's `prepare` made.
            first_seat: the seat of the first user; the first user of every other batch has seat 0.
            starts: the place of each batch's first user, from 0 on.
            bits: where the noise comes from.
        """
        ends = [*starts[1:].tolist(), len(prepared)]
        found = []
        for place, (start, end) in enumerate(zip(starts.tolist(), ends, strict=True)):
            sent = self.randomize(prepared[start:end], 0 if place else first_seat, bits=bits)
            found.append(self.tally(Batch(sent.payloads, end - start, sent.labels)))
        return TallyRows.of(found)

    def read_rows(self, rows: TallyRows) -> Any:
        """What the learner is told of each of several whole batches, along the first axis.

        Raises:
            BatchError: one of them was spoiled and says nothing.
        """
        return np.array([self.read(rows.row(place))[0] for place in range(len(rows))])


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """A batch that the next users join: its shuffler, its mechanism, and the seat of the first of them."""

    level: int
    first_slot: int
    mechanism: BatchMechanism
    first_seat: int

    @property
    def opens(self) -> bool:
        """Whether the batch begins with the next user."""
        return self.first_seat == 0


@dataclass(frozen=True, slots=True)
class DeviceStep:
    """What a device computes from its own data, as data: a name that every device knows, and parameters.

    The step "report" sends the user's value as it is; `shuffledp.learn.steps` has the others. Parameters are what JSON
    can hold, so that a device elsewhere computes what a simulation does.

    >>> DeviceStep.from_document({"name": "pull", "parameters": {"arm": 2}}).parameters["arm"]
    2
    """

    name: str = "report"
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """The step as JSON."""
        return {"name": self.name, "parameters": dict(self.parameters)}

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """The step that a JSON document describes; whether its name is known is not looked at.

        Raises:
            DataError: the document does not name a step and its parameters.
        """
        parts = (document.get("name"), document.get("parameters")) if isinstance(document, Mapping) else (None, None)
        if not isinstance(parts[0], str) or not isinstance(parts[1], Mapping):
            raise DataError("step", type(document).__name__, "must name a step and its parameters", "ask again")
        return cls(parts[0], parts[1])


@dataclass(frozen=True, slots=True)
class Cohort:
    """The next users: how many are alike, the batches that all of them join, and what each computes first.

    Users who join no batch compute their step and report nothing.

    Attributes:
        users: how many are alike.
        batches: those that all of them join.
        step: what each computes first, on its device.
    """

    users: int
    batches: tuple[OpenBatch, ...] = ()
    step: DeviceStep = DeviceStep()

    def closing(self, users: int) -> dict[int, OpenBatch]:
        """The batches, by level, that are full when so many users of the cohort have come."""
        return {batch.level: batch for batch in self.batches if batch.first_seat + users == batch.mechanism.users}


@dataclass(frozen=True, slots=True)
class Seating:
    """A plan that rounds of a learner run, and how often one user may take part: what the guarantee counts on.

    Attributes:
        plan: what users of such a round report by.
        visits: in how many slots of rounds with this seating one user may take part, never twice in one slot.
        group: a user who takes part in rounds of one group takes part in no other.
        in_all: in how many slots of rounds of its group one user may take part, whichever their seating.
    """

    plan: Any
    visits: int = 1
    group: int = 0
    in_all: int = 1


@dataclass(frozen=True, slots=True)
class Round:
    """Where a cohort's users sit: people of one round share a plan's batches.

    Attributes:
        number: of the round: larger than that of every earlier one, and below the learner's `most_rounds`. A running
            sum is one round from its first user to its last.
        seating: the place of its seating in the learner's `seatings`.
        first: users of the round who came before the cohort.
    """

    number: int
    seating: int
    first: int


S = TypeVar("S")


class Learner(ABC, Generic[S]):
    """A state machine over a plan: `start`, then `ask` and `tell` until nobody is asked any more."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """SHA-256 of what decides the learner: a state of another one is refused."""

    @abstractmethod
    def start(self) -> S:
        """The state before anybody came."""

    @abstractmethod
    def ask(self, state: S) -> Cohort | None:
        """The users until something closes, at most, and the batches that they join; None when all have come."""

    @abstractmethod
    def tell(self, state: S, users: int, closed: Mapping[int, Any]) -> S:
        """The state after so many users of the cohort.

        Args:
            state: where the learner stood when it asked.
            users: how many users of the cohort came.
            closed: what the mechanisms read of those batches that closed, by their levels; None where a batch was void.
        """

    @abstractmethod
    def estimate(self, state: S, *, simulated: bool = False) -> Any:
        """What is known by now, with its error; None where nothing is."""

    @abstractmethod
    def guarantee(self) -> Any:
        """What every user is promised and its proof, as data."""

    # What follows is asked by whoever runs a learner over days, on people's devices: everything is kept as JSON.

    states: ClassVar[type[State] | None] = None
    """What its states are; None where they cannot be saved, as devices hold a part of them."""

    def resume(self, document: Any) -> S:
        """The state that `document()` of a state wrote.

        Raises:
            ParameterError: no state, of another version, or of another learner.
        """
        if self.states is None:
            problem = "must have states that can be saved"
            raise ParameterError("learner", type(self).__name__, problem, "run it in one process")
        state: Any = self.states.from_document(document)
        state.belongs_to(self.fingerprint, "plan")
        self.ask(state)  # refuses what this learner cannot come to
        return state  # type: ignore[no-any-return]

    def told_document(self, told: Any) -> Any:
        """What a mechanism read from a batch, as JSON: it waits until every batch that closes with it is read."""
        return told

    def told_from(self, document: Any, mechanism: BatchMechanism) -> Any:
        """What a mechanism read, from the JSON of `told_document`.

        Args:
            document: what `told_document` wrote.
            mechanism: that of the batch in the cohort that it closes with.
        """
        return document

    takes_void: ClassVar[bool] = False
    """Whether it may be told None of a batch that was spoiled, or that never filled, and goes on without it."""

    @property
    def seatings(self) -> tuple[Seating, ...]:
        """What rounds may run, and how often one user may take part; empty where the learner cannot run live."""
        return ()

    @property
    def most_rounds(self) -> int:
        """No round has this number, or a larger one."""
        return 1

    @property
    def model_age(self) -> int:
        """How many slots older than the newest a model may be that a user answers by."""
        return 0

    def known(self, state: S) -> Any:
        """What is known by now, as JSON, for whoever reads what is published."""
        answer = self.estimate(state)
        return answer.document() if hasattr(answer, "document") else answer_document(answer)

    def last_step(self, state: S) -> DeviceStep | None:
        """What devices compute when nobody is asked to report any more, as those of a bandit who still choose."""
        return None

    def round_of(self, state: S, cohort: Cohort) -> Round | None:
        """Where this cohort, which `ask` said for this state, sits; None where nobody reports.

        Raises:
            ParameterError: the learner cannot run live.
        """
        problem = "must say where its users sit"
        raise ParameterError("learner", type(self).__name__, problem, "run it in one process")

    def may_ask(self, step: DeviceStep, seating: int) -> bool:
        """Whether people of this seating may be asked for this step, whatever was learned by now.

        Whoever signs models chooses what they say of what was learned, and nothing else: by a longest length or a range
        of its own making some people's devices would refuse to report and others' would not, and that a batch fills
        would tell what they have.

        Args:
            step: what a model says, as JSON had it.
            seating: the place of its round's seating in `seatings`.
        """
        return step == DeviceStep()

    def stand_in(self, mechanism: BatchMechanism) -> Any:
        """What a batch that was spoiled counts as; None where nothing can stand in for it, and no answer comes."""
        return None

    def widening(self, mechanism: BatchMechanism, dropped: int, void: bool) -> float:
        """How much further off the estimates may be because of this batch, where they do not say so themselves.

        Args:
            mechanism: the batch's.
            dropped: messages of it that were missing or malformed.
            void: whether it was spoiled, so that `stand_in` counts instead.
        """
        return 0.0


class PlanLearner(Learner[S]):
    """A learner that runs one plan: what decides it and what it promises are the plan's."""

    __slots__ = ()
    plan: Any

    @property
    def fingerprint(self) -> str:
        return str(self.plan.fingerprint)

    def guarantee(self) -> Any:
        return self.plan.guarantee()

    @property
    def seatings(self) -> tuple[Seating, ...]:
        return (Seating(self.plan),)

    def round_of(self, state: Any, cohort: Cohort) -> Round | None:
        return Round(0, 0, state.users)
