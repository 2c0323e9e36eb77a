"""The estimate of a plan on an engine: every message made and tallied in parts, or its law's summary added up.

The randomness of a row is keyed by the job and by the stream that the row is in: so many consecutive rows, by the plan
alone. How rows are dealt to tasks, how many there are and which engine runs them changes nothing, to the last bit.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.engines.contract import Engine, Entrusted, Progress
from shuffledp.engines.keyed import JobKey
from shuffledp.engines.sources import Source, Stretch, Stretches
from shuffledp.errors import ParameterError
from shuffledp.messages import Batch, Reports
from shuffledp.protocols.learner import BatchMechanism, OpenBatch
from shuffledp.protocols.plan import Plan
from shuffledp.protocols.tallies import Tally
from shuffledp.randomness import RandomBits
from shuffledp.sampling.permutation import uniform_permutation
from shuffledp.sampling.split import random_split

STREAM_MESSAGES = 1 << 18
"""About how many messages, or values, have one stream of randomness."""

BLOCK_ROWS = 1 << 16
"""Rows of which a random order is drawn at once, where people are asked in one."""

# Messages that are tallied at once: a tally of many categories is not made for each stream.
_TALLIED = 1 << 20
# Work, in messages that are made, for which no other process is started: it takes a second to start.
_LITTLE = 1 << 24
# What a row costs where answers come from their law, in messages.
_LAW_COST = 0.25
# Tasks that each process gets, so that none waits long for the last one.
_TASKS_EACH = 8


@dataclass(frozen=True, slots=True)
class Tallied:
    """What tasks leave of their parts.

    Attributes:
        tally: of the messages, or the law's summary.
        clipped: values that were brought into the range.
        noticed: what was noticed of the rows.
        parts: how many parts it is of.
    """

    tally: Tally
    clipped: int = 0
    noticed: frozenset[Any] = frozenset()
    parts: int = 1

    @classmethod
    def merge(cls, several: "Iterable[Tallied]") -> "Tallied":
        """One of several."""
        every = list(several)
        return cls(
            Tally.merge(each.tally for each in every),
            sum(each.clipped for each in every),
            frozenset().union(*(each.noticed for each in every)),
            sum(each.parts for each in every),
        )


@dataclass(frozen=True, slots=True)
class Keyed:
    """Where tasks take randomness from: the job's key, in an engine's hands.

    Attributes:
        secret: the key's bytes.
        is_secure: whether it came from the operating system.
        fingerprint: of the plan: another plan has other bits.
    """

    secret: Entrusted
    is_secure: bool
    fingerprint: bytes

    @classmethod
    def of(cls, engine: Engine, key: JobKey, plan: Plan) -> "Keyed":
        """The key in the hands of this engine's tasks."""
        return cls(engine.entrust(key.raw), key.is_secure, bytes.fromhex(plan.fingerprint))

    def bits(self, purpose: str, row: int) -> RandomBits:
        """The stream of the rows that begin with this one."""
        return JobKey(self.secret.open(), self.is_secure).bits(purpose, 0, self.fingerprint, row)


@dataclass(frozen=True, slots=True)
class MessagesOf:
    """The task of a part: its people's messages are made and tallied.

    Attributes:
        plan: what people's values are prepared by.
        mechanism: what they send.
        keyed: where their noise comes from.
        purpose: names the round, so that no two rounds share noise.
        rows: of a stream.
        first: the row of the batch's first person.
    """

    plan: Plan
    mechanism: BatchMechanism
    keyed: Keyed
    purpose: str
    rows: int
    first: int = 0

    def __call__(self, part: Stretch) -> Tallied:
        waiting: list[tuple[Reports, int]] = []
        tallies: list[Tally] = []
        messages = 0
        for row, values in part.blocks(self.rows):
            for reports, people in self._made(row, values):
                waiting.append((reports, people))
                messages += reports.payloads.size
                if messages >= _TALLIED:
                    tallies = [self._tally(waiting, tallies)]
                    waiting, messages = [], 0
        if waiting or not tallies:
            tallies = [self._tally(waiting, tallies)]
        return Tallied(tallies[0], part.clipped, part.noticed)

    def _made(self, row: int, values: Any) -> Iterable[tuple[Reports, int]]:
        """The reports of one stream; of parts that hold messages of the same people, the first counts them."""
        bits = self.keyed.bits(self.purpose, row)
        prepared = self.plan.prepare(values, bits=bits, positions=np.arange(row, row + len(values)))
        if len(values) * self.mechanism.messages_max <= _TALLIED or len(values) > 1:
            yield self.mechanism.randomize(prepared, row - self.first, bits=bits), len(values)
            return
        people = len(values)
        for part in self.mechanism.parts(prepared, row - self.first, STREAM_MESSAGES):
            yield part.make(slice(0, len(values)), bits), people
            people = 0

    def _tally(self, waiting: list[tuple[Reports, int]], before: list[Tally]) -> Tally:
        # In the order in which they were made: permuted ones have the same tally (docs/theory/estimates-in-pieces.md).
        none = np.empty(0, dtype=np.uint64)
        payloads = np.concatenate([reports.payloads for reports, _ in waiting]) if waiting else none
        labels = [reports.labels for reports, _ in waiting if reports.labels is not None]
        batch = Batch(payloads, sum(people for _, people in waiting), np.concatenate(labels) if labels else None)
        return Tally.merge((*before, self.mechanism.tally(batch)))


@dataclass(frozen=True, slots=True)
class GroupMessagesOf(MessagesOf):
    """The task of a part where people are asked in a random order: of every block some are in this round's group.

    Attributes:
        taken: people of each block who were in earlier groups, and then those who are in this one or an earlier one.
    """

    taken: tuple[NDArray[np.int64], NDArray[np.int64]] = field(default=(np.zeros(0, np.int64), np.zeros(0, np.int64)))

    def _made(self, row: int, values: Any) -> Iterable[tuple[Reports, int]]:
        before, after = (int(each[row // self.rows]) for each in self.taken)
        # A block's own order is the same in every round: who was asked is not asked again.
        order = uniform_permutation(len(values), bits=self.keyed.bits("order", row))
        chosen = values[np.sort(order[before:after])]
        return MessagesOf._made(self, row, chosen) if len(chosen) else ()


@dataclass(frozen=True, slots=True)
class SummaryOf:
    """The task of a part where answers come from their law: what the law needs to know of its people."""

    plan: Plan
    keyed: Keyed
    rows: int

    def __call__(self, part: Stretch) -> Tallied:
        found: Tally | None = None
        for row, values in part.blocks(self.rows):
            more = self.plan.summary(values, bits=self.keyed.bits("law", row))
            found = more if found is None else Tally.merge((found, more))
        if found is None:
            raise ParameterError("part", 0, "must have rows", "cut parts that have some")
        return Tallied(found, part.clipped, part.noticed)


@dataclass(frozen=True, slots=True)
class Estimated:
    """An answer, and how it came about.

    Attributes:
        answer: the plan's estimate.
        clipped: values that were brought into the range.
        parts: in how many parts it was made.
        tasks: how many were worked on at once, at most.
    """

    answer: Any
    clipped: int
    parts: int
    tasks: int


def stream_rows(plan: Plan) -> int:
    """Rows that share a stream of randomness: about as many as make 2^18 messages, by the plan alone."""
    wanted = STREAM_MESSAGES / max(1.0, plan.messages_per_user_mean)
    return 1 << max(0, int(wanted).bit_length() - 1)


def estimate_on(
    engine: Engine,
    plan: Plan,
    source: Source,
    *,
    key: JobKey,
    fast: bool = False,
    progress: Progress | None = None,
    told: Callable[[Any], None] | None = None,
) -> Estimated:
    """The answer of a plan over people who come in parts.

    Args:
        engine: where the work is done.
        plan: one whose people may come in pieces (`in_pieces`), or by law whose law adds up (`adds_up`).
        source: everybody's values.
        key: from which all randomness comes; a seeded one labels the answer a simulation.
        fast: draw the answer from its own law instead of making and reading every message.
        progress: called with the number of people whose part of a round is done.
        told: called before every round with the state of the plan's learner.

    Raises:
        ParameterError: values outside the domain, of another number of users, or a plan that cannot run in parts.
    """
    plan.check_reports(source.rows)
    run = _Run(engine, plan, source, Keyed.of(engine, key, plan), progress)
    answer = run.by_law() if fast else run.by_messages(told)
    # How many values were clipped is a fact about people: it is in no answer, which is shown to whoever asks.
    labelled = answer.labelled(simulated=not key.is_secure)
    # An answer knows its plan, unless it is of a kind of another package that does not.
    labelled = labelled.made_by(plan) if hasattr(labelled, "made_by") else labelled
    return Estimated(labelled, run.clipped, run.parts, min(run.parts, engine.tasks_at_once))


class _Run:
    """One run: what is counted on the way."""

    def __init__(self, engine: Engine, plan: Plan, source: Source, keyed: Keyed, progress: Progress | None) -> None:
        self.engine, self.plan, self.source, self.keyed = engine, plan, source, keyed
        self.progress, self.parts, self.clipped = progress, 0, 0
        self.taken: NDArray[np.int64] | None = None

    def by_law(self) -> Any:
        if not self.plan.adds_up:
            raise ParameterError("plan", self.plan.method, "must have a law that adds up", "hold its values whole")
        task = SummaryOf(self.plan, self.keyed, STREAM_MESSAGES)
        found = self._folded(task, 0, self.source.rows, STREAM_MESSAGES, _LAW_COST)
        return self.plan.sample_from(found, bits=self.keyed.bits("noise", 0))

    def by_messages(self, told: Callable[[Any], None] | None) -> Any:
        if not self.plan.in_pieces:
            raise ParameterError("plan", self.plan.method, "must take people in pieces", "hold its values whole")
        learner = self.plan.learner()
        state: Any = learner.start()
        rounds = 0
        while (cohort := learner.ask(state)) is not None:
            if told is not None:
                told(state)
            (batch,) = cohort.batches
            tally = (self._group if self.plan.is_mixed else self._batch)(batch, state.users, rounds)
            state = learner.tell(state, cohort.users, {batch.level: batch.mechanism.read(tally)[0]})
            rounds += 1
        return learner.estimate(state)

    def _group(self, batch: OpenBatch, first: int, rounds: int) -> Tally:
        """The tally of a group: of those who were in none yet, every set of people is as likely to be this one."""
        sizes = np.full(-(-self.source.rows // BLOCK_ROWS), BLOCK_ROWS)
        sizes[-1] = self.source.rows - BLOCK_ROWS * (sizes.size - 1)
        if self.taken is None or not first:
            self.taken = np.zeros_like(sizes)
        bits = self.keyed.bits("groups", rounds)
        after = self.taken + random_split(sizes - self.taken, batch.mechanism.users, bits=bits)
        task = GroupMessagesOf(
            self.plan, batch.mechanism, self.keyed, f"randomize {rounds}", BLOCK_ROWS, taken=(self.taken, after)
        )
        self.taken = after
        cost = self.plan.messages_per_user_mean * batch.mechanism.users / self.source.rows
        return self._folded(task, 0, self.source.rows, BLOCK_ROWS, cost)

    def _batch(self, batch: OpenBatch, first: int, rounds: int) -> Tally:
        mechanism, rows, purpose = batch.mechanism, stream_rows(self.plan), f"randomize {rounds}"
        task = MessagesOf(self.plan, mechanism, self.keyed, purpose, rows, first)
        return self._folded(task, first, first + mechanism.users, rows, self.plan.messages_per_user_mean)

    def _folded(self, task: Callable[[Stretch], Tallied], first: int, last: int, rows: int, cost: float) -> Tally:
        """What all parts of some rows leave; again where parts turn out to have been read in different ways."""
        people = last - first
        each = part_rows(self.engine, people, max(rows, self.source.unit), cost)

        def tell(done: int) -> None:
            if self.progress is not None:
                self.progress(min(people, done * each))

        while True:
            parts = Stretches(self.source, first, last, each)
            found = self.engine.fold(parts, task, Tallied.merge, progress=tell)
            agreeing = self.source.agreeing(found.noticed)
            if agreeing is None:
                break
            # The same rows with the same bits: nobody has seen what was made of them before.
            self.source = agreeing
        self.parts += found.parts
        self.clipped = max(self.clipped, found.clipped)
        return found.tally


def part_rows(engine: Engine, people: int, rows: int, cost: float = 1.0) -> int:
    """Rows of a part: a multiple of a stream's, so that every process gets several parts; all where work is little.

    Args:
        engine: whose tasks work on them.
        people: how many rows there are.
        rows: of a stream.
        cost: of a row, in messages that are made.
    """
    if people * cost <= _LITTLE:
        return people
    wanted = -(-people // (_TASKS_EACH * engine.tasks_at_once))
    return max(1, -(-wanted // rows)) * rows
