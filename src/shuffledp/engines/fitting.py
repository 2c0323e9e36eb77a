"""Models from more rows than memory holds: prepared rows wait on the disk in a random order, and rounds fold over them.

First every task reads some rows, prepares them, and deals each to a bucket of its own choice; a bucket is permuted when
it is read: together a uniform order of all people (docs/theory/sampling.md). A round's cohort is some buckets, or parts
of them. What people send is rounded to whole steps by bits of the round and the place, and whole steps add up: however
many tasks there are, the model is the same to the last bit. The noise of a round is drawn once, by its law.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.engines.contract import Engine, Entrusted, Exchanged, Gathered
from shuffledp.engines.keyed import JobKey
from shuffledp.engines.sources import Source, Stretches
from shuffledp.errors import ParameterError
from shuffledp.learn.optimize.losses import gradient_of, moments_of
from shuffledp.protocols.tallies import Tally
from shuffledp.randomness import RandomBits
from shuffledp.sampling.permutation import uniform_permutation
from shuffledp.sampling.uniform import uniform_below

Floats = NDArray[np.float64]
Maker = Callable[[Any], tuple[Floats, Floats, NDArray[np.bool_]]]
"""Makes prepared rows, scaled targets, and for each question whose were clipped, of people as they came."""

# A bucket has about so many bytes: by the data alone, as people's order is that of buckets.
_BUCKET_BYTES = 1 << 22
# A task holds a bucket, its permuted copy and what people send.
_HELD_BUCKETS = 5
# Numbers that people send at a time.
_AT_A_TIME = 1 << 18


@dataclass(frozen=True, slots=True)
class Streams:
    """Where tasks take randomness from: the job's key, in an engine's hands."""

    secret: Entrusted
    is_secure: bool
    fingerprint: bytes

    def bits(self, purpose: str, bucket: int, row: int) -> RandomBits:
        """The stream of some rows of a bucket, or of the file."""
        return JobKey(self.secret.open(), self.is_secure).bits(f"fit, {purpose}", bucket, self.fingerprint, row)


@dataclass(frozen=True, slots=True)
class _Dealing:
    """The task of a part: its people are prepared, and each goes to a bucket of its own."""

    make: Maker
    streams: Streams
    buckets: int
    rows: int

    def __call__(self, part: Any) -> list[tuple[int, NDArray[np.uint8]]]:
        dealt: dict[int, list[NDArray[np.uint8]]] = {}
        for first, people in part.blocks(self.rows):
            rows, targets, clipped = self.make(people)
            packed = np.column_stack((rows, targets, clipped.astype(np.float64)))
            chosen = uniform_below(self.buckets, len(packed), bits=self.streams.bits("deal", 0, first))
            order = np.argsort(chosen, kind="stable")
            raw = np.ascontiguousarray(packed[order]).view(np.uint8).reshape(len(packed), -1)
            ends = np.cumsum(np.bincount(chosen, minlength=self.buckets))
            for bucket in np.unique(chosen).tolist():
                dealt.setdefault(bucket, []).append(raw[(ends[bucket - 1] if bucket else 0) : ends[bucket]])
        return [(bucket, np.concatenate(some)) for bucket, some in sorted(dealt.items())]


@dataclass(frozen=True, slots=True)
class _Sizes:
    """How many people are in each bucket, and how many of all had something clipped, for each question."""

    people: Mapping[int, int]
    clipped: NDArray[np.int64]

    @classmethod
    def merge(cls, several: "Iterable[_Sizes]") -> "_Sizes":
        every = list(several)
        people = {bucket: count for each in every for bucket, count in each.people.items()}
        return cls(people, np.sum([each.clipped for each in every], axis=0))


@dataclass(frozen=True, slots=True)
class _Sizing:
    questions: int

    def __call__(self, gathered: Gathered) -> _Sizes:
        packed = gathered.rows.reshape(-1).view(np.float64).reshape(len(gathered.rows), -1)
        flags = packed[:, packed.shape[1] - self.questions :] if len(packed) else np.zeros((0, self.questions))
        return _Sizes({gathered.bucket: len(gathered.rows)}, flags.sum(axis=0).astype(np.int64))


@dataclass(frozen=True, slots=True)
class _Reading:
    """A bucket's people in their random order, and which of them are asked."""

    streams: Streams
    parts: Mapping[int, tuple[int, int]]

    def of(self, gathered: Gathered) -> tuple[int, Floats]:
        """The place in the bucket of the first who is asked, and everybody's packed row from there on."""
        order = uniform_permutation(len(gathered.rows), bits=self.streams.bits("order", gathered.bucket, 0))
        first, end = self.parts[gathered.bucket]
        chosen = np.ascontiguousarray(gathered.rows[order[first:end]])
        return first, chosen.reshape(-1).view(np.float64).reshape(len(chosen), -1)


@dataclass(frozen=True, slots=True)
class _Answers:
    """What is left of some people's gradients: a sum in whole steps, and how many had to be clipped."""

    tally: Tally
    clipped: int
    gradients: int

    @classmethod
    def merge(cls, several: "Iterable[_Answers]") -> "_Answers":
        every = list(several)
        numbers = (sum(getattr(each, name) for each in every) for name in ("clipped", "gradients"))
        return cls(Tally.merge(each.tally for each in every), *numbers)


@dataclass(frozen=True, slots=True)
class _Asking:
    """The task of a bucket in a round: the device's step, rounded to steps and added up."""

    reading: _Reading
    loss: Any
    parameters: Mapping[str, Any]
    asks_moments: bool
    plan: Any
    width: int
    numbers: int
    purpose: str

    def __call__(self, gathered: Gathered) -> _Answers:
        first, packed = self.reading.of(gathered)
        size = max(1, _AT_A_TIME // self.numbers)
        found: list[_Answers] = []
        for start in range(0, len(packed), size):
            some = packed[start : start + size]
            step = moments_of if self.asks_moments else gradient_of
            sent, clipped = step(self.loss, self.parameters, some[:, : self.width], some[:, self.width])
            bits = self.reading.streams.bits(self.purpose, gathered.bucket, first + start)
            counted = (0, 0) if self.asks_moments else (clipped, len(sent))
            found.append(_Answers(self.plan.summary(sent, bits=bits), *counted))
        return _Answers.merge(found)


@dataclass(frozen=True, slots=True)
class _Flagging:
    """The task that reads which of some people had something clipped, by their places."""

    reading: _Reading
    starts: Mapping[int, int]
    questions: int

    def __call__(self, gathered: Gathered) -> dict[int, Any]:
        _, packed = self.reading.of(gathered)
        return {self.starts[gathered.bucket]: packed[:, packed.shape[1] - self.questions :] != 0}


def _both(several: Iterable[dict[int, Any]]) -> dict[int, Any]:
    return {place: flags for each in several for place, flags in each.items()}


class DealtPeople:
    """Everybody's prepared rows in a random order, on the disk, for as long as its block lasts.

    Args:
        engine: where tasks run.
        source: everybody's rows as they came; its blocks are what `make` takes.
        make: prepares them.
        key: where all randomness comes from.
        fingerprint: of what is learned.
        width: numbers of a prepared row.
        questions: what may have been clipped of a person.

    Raises:
        ParameterError: one task may not take as much memory as it needs.
    """

    def __init__(
        self,
        engine: Engine,
        source: Source,
        make: Maker,
        *,
        key: JobKey,
        fingerprint: str,
        width: int,
        questions: Sequence[str],
    ) -> None:
        self._engine, self._width, self._questions, self._key = engine, width, tuple(questions), key
        self.users, self._rounds = source.rows, 0
        row_bytes = 8 * (width + 1 + len(self._questions))
        needs = _HELD_BUCKETS * max(_BUCKET_BYTES, row_bytes) + 2 * source.unit * source.row_bytes
        if needs > engine.task_bytes:
            more = -(-(needs - engine.task_bytes) * (engine.tasks_at_once + 1) >> 20)
            problem = f"is all that one task has, and rows of {width:,} numbers need {needs:,}"
            raise ParameterError("memory", engine.task_bytes, problem, f"allow {more:,} MB more with --memory")
        self._streams = Streams(engine.entrust(key.raw), key.is_secure, bytes.fromhex(fingerprint))
        self._buckets = max(1, -(-source.rows * row_bytes // _BUCKET_BYTES))
        part = max(source.unit, engine.task_bytes // 4 // (row_bytes + source.row_bytes) // source.unit * source.unit)
        dealing = _Dealing(make, self._streams, self._buckets, source.unit)
        self._exchanged: Exchanged = engine.exchange(Stretches(source, 0, source.rows, part), dealing, self._buckets)
        found = engine.fold(self._exchanged, _Sizing(len(self._questions)), _Sizes.merge)
        self._ends = np.cumsum([found.people.get(bucket, 0) for bucket in range(self._buckets)])
        self.clipped = dict(zip(self._questions, found.clipped.tolist(), strict=True))

    def close(self) -> None:
        """Destroy what is on the disk."""
        self._exchanged.__exit__(None, None, None)

    @property
    def is_simulated(self) -> bool:
        """Whether nobody is protected, as the key can be repeated."""
        return not self._key.is_secure

    def _between(self, first: int, end: int) -> dict[int, tuple[int, int]]:
        """The buckets that hold these people of the order, and which places of each."""
        begins = np.concatenate(([0], self._ends[:-1]))
        inside = np.flatnonzero((self._ends > first) & (begins < end) & (self._ends > begins))
        return {
            int(bucket): (
                int(max(first, begins[bucket]) - begins[bucket]),
                int(min(end, self._ends[bucket]) - begins[bucket]),
            )
            for bucket in inside
        }

    def flags(self, users: int) -> dict[str, NDArray[np.bool_]]:
        """Which of the first so many people of the order had something clipped, for each question."""
        if not users:
            return {name: np.zeros(0, dtype=np.bool_) for name in self._questions}
        parts = self._between(0, users)
        task = _Flagging(_Reading(self._streams, parts), {each: each for each in parts}, len(self._questions))
        found = self._engine.fold(self._exchanged.only(list(parts)), task, _both)
        every = np.concatenate([found[bucket] for bucket in sorted(found)])
        return {name: every[:, place] for place, name in enumerate(self._questions)}

    def sums(self, loss: Any, behind: int) -> "DealtSums":
        """Cohorts' sums of gradients of a loss, of all but the first so many people of the order."""
        return DealtSums(self, loss, behind)

    def asked(self, cohort: Any, loss: Any, first: int) -> tuple[Any, _Answers]:
        """A cohort's noisy sum, and what was clipped; the noise is drawn once, whoever added up."""
        # No two sums of these people have one stream, whoever asks for them.
        self._rounds += 1
        purpose = f"round {self._rounds}"
        parts = self._between(first, first + cohort.users)
        task = _Asking(
            _Reading(self._streams, parts),
            loss,
            dict(cohort.step.parameters),
            cohort.asks_moments,
            cohort.plan,
            self._width,
            cohort.width,
            purpose,
        )
        found = self._engine.fold(self._exchanged.only(list(parts)), task, _Answers.merge)
        return cohort.plan.sample_from(found.tally, bits=self._streams.bits(f"{purpose}, noise", 0, 0)), found


class DealtSums:
    """What `run_solver` asks: one cohort after another, each a fold."""

    def __init__(self, people: DealtPeople, loss: Any, behind: int) -> None:
        self._people, self._loss, self._behind = people, loss, behind
        self.people = people.users - behind
        self.clipped, self.gradients = 0, 0

    @property
    def is_simulated(self) -> bool:
        """Whether nobody is protected."""
        return self._people.is_simulated

    def of(self, cohort: Any) -> Any:
        """The estimate of a cohort's sum."""
        first = self._behind + cohort.first
        told, found = self._people.asked(cohort, self._loss, first)
        self.clipped += found.clipped
        self.gradients += found.gradients
        return told
