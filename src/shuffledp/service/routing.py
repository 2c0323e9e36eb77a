"""All that a shuffler may know of a task: batch sizes in their order, messages a report, a ciphertext's length."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any, Self

from shuffledp.errors import DataError, ParameterError
from shuffledp.schedules.batches import BatchSchedule
from shuffledp.schedules.combinatorial import combinatorial_schedule, ending_schedule, slots, whole_slots
from shuffledp.schedules.joined import joined_batches
from shuffledp.schedules.layout import BatchLayout
from shuffledp.schedules.windows import window_schedule
from shuffledp.service.wire import CIPHERTEXT_BYTES, LARGEST_BATCH_BYTES, VERSION, is_id

# A schedule's table of slots is held in memory.
_MOST_SLOTS = 1 << 24
# Slots whose batches are remembered.
_MOST_REMEMBERED = 1000


@dataclass(frozen=True, slots=True)
class SeatInBatch:
    """One batch that a seat belongs to.

    Attributes:
        level: the batch's level in the schedule, from 1.
        batch_id: its level, first slot and end slot, as in 2.0.15.
        size: how many users it has.
        seat: which of them this is, from 0.
        messages: how many messages each of them sends to it.
    """

    level: int
    batch_id: str
    size: int
    seat: int
    messages: int


_OF_BATCH = fields(SeatInBatch)
# What a document says of the batches beside their messages.
_SHAPE = ("users", "budget", "shufflers", "slot_users", "every_slot")
# What documents of earlier tasks do not say, as it is false there.
_LATER = ("counts_everybody", "windows")


@dataclass(frozen=True, slots=True)
class Seat:
    """A place in one batch of every level, for a while.

    Attributes:
        seat: its id, which nobody can guess.
        lease_seconds: how long it waits for its report.
        batches: the batches that it belongs to, lowest level first.
    """

    seat: str
    lease_seconds: float
    batches: tuple[SeatInBatch, ...]

    def document(self) -> dict[str, Any]:
        """The seat as JSON."""
        batches = [{each.name: getattr(batch, each.name) for each in _OF_BATCH} for batch in self.batches]
        return {"seat": self.seat, "lease_seconds": self.lease_seconds, "batches": batches}

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """The seat that a JSON document describes; whether a task has such a seat is another question."""
        try:
            batches = tuple(SeatInBatch(*(batch[each.name] for each in _OF_BATCH)) for batch in document["batches"])
            seat = cls(document["seat"], float(document["lease_seconds"]), batches)
            fits = is_id(seat.seat) and seat.lease_seconds > 0
            fits &= all(type(getattr(batch, each.name)) is each.type for batch in batches for each in _OF_BATCH)
        except (LookupError, TypeError, ValueError, ArithmeticError):
            fits = False
        if not fits:
            raise DataError("seat", "something else", "must be a seat", "ask a shuffler of this version")
        return seat


@dataclass(frozen=True, slots=True)
class Slot:
    """People who are in the same batches.

    Attributes:
        batches: those of the first of them; the others differ in their seats only.
        columns: which bytes of a report each batch gets, from and to.
        length: how long a report is.
    """

    batches: tuple[SeatInBatch, ...]
    columns: tuple[tuple[SeatInBatch, int, int], ...]
    length: int


@dataclass(frozen=True)
class Routing(BatchLayout):
    """Who goes into which batch: position t of the task's users, one batch a level.

    A one-round task is the schedule with one batch. The fields are those of the plan's layout.

    >>> messages = {10: 3, 20: 2, 30: 2}
    >>> routing = Routing(users=60, budget=2, shufflers=2, slot_users=10, every_slot=False, messages=messages)
    >>> [(b.level, b.batch_id, b.size, b.seat) for b in routing.batches_of(12)]
    [(1, '1.1.2', 10, 2), (2, '2.0.3', 30, 12)]
    >>> routing.report_bytes(12) == (3 + 2) * 77
    True
    """

    @classmethod
    def of(cls, layout: BatchLayout) -> Self:
        """The routing of a plan's batches.

        Args:
            layout: `plan.layout`.

        Raises:
            ParameterError: a batch is too large to travel.
        """
        return cls(**vars(layout))

    def is_of(self, layout: BatchLayout) -> bool:
        """Whether this is the routing of a plan's batches.

        Args:
            layout: `plan.layout`.
        """
        return all(getattr(self, name) == value for name, value in vars(layout).items())

    def __post_init__(self) -> None:
        if not isinstance(self.windows, bool):
            raise DataError("routing.windows", self.windows, "must be true or false", "create the task again")
        for name in ("users", "budget", "shufflers", "slot_users"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise DataError(f"routing.{name}", value, "must be a whole number >= 1", "create the task again")
        most = self.budget if self.windows else slots(self.budget, self.shufflers)
        if self.shufflers > 64 or most > _MOST_SLOTS:
            raise DataError(
                "routing.budget", self.budget, f"must give at most {_MOST_SLOTS} slots", "plan for fewer users"
            )
        if self.users > most * self.slot_users or (self.windows and self.users < most):
            raise DataError("routing.users", self.users, "must fit into the schedule's slots", "create the task again")
        if not isinstance(self.counts_everybody, bool) or (
            self.counts_everybody and self.slot_users != self._whole_slot_users
        ):
            problem = "must be true only where the last slot ends with the last user"
            raise DataError("routing.counts_everybody", self.counts_everybody, problem, "create the task again")
        if self.windows and (self.every_slot or not self.counts_everybody):
            problem = "must be true only where everybody is counted and slots have no batches of their own"
            raise DataError("routing.windows", self.windows, problem, "create the task again")
        sizes = {size for sizes in self.sizes_by_level for size in sizes}
        counts_are_whole = all(type(count) is int and count >= 1 for count in self.messages.values())
        if not isinstance(self.every_slot, bool) or set(self.messages) != sizes or not counts_are_whole:
            raise DataError(
                "routing.messages", sorted(self.messages), f"must be for {sorted(sizes)}", "create it again"
            )
        largest = max(size * count for size, count in self.messages.items()) * CIPHERTEXT_BYTES
        if largest > LARGEST_BATCH_BYTES:
            raise ParameterError(
                "users",
                self.users,
                f"make a batch of {largest >> 20} MB, more than {LARGEST_BATCH_BYTES >> 20}",
                "plan for fewer users, more shufflers, or a method with fewer messages",
            )

    @property
    def _whole_slot_users(self) -> int:
        """The users of a slot where the last one ends with the last user."""
        if self.windows:
            return -(-self.users // self.budget)
        return whole_slots(self.budget, self.shufflers, self.users).users

    @cached_property
    def schedule(self) -> BatchSchedule:
        """Which batch covers which slots."""
        if self.windows:
            return window_schedule(self.budget, self.shufflers, self.users)
        if self.counts_everybody:
            return ending_schedule(self.budget, self.shufflers, self.users)
        return combinatorial_schedule(self.budget, self.shufflers, self.slot_users)

    @cached_property
    def sizes_by_level(self) -> list[set[int]]:
        """The sizes that batches of each level have."""
        return self.schedule.sizes_with(every_slot=self.every_slot)

    @cached_property
    def slot(self) -> Callable[[int], Slot]:
        """The batches of a slot's people, by its number; remembered for a while, as people sit side by side."""
        return lru_cache(_MOST_REMEMBERED)(self._slot)

    def _slot(self, number: int) -> Slot:
        batches = []
        for level, first, end in self._joined(number):
            size, seat = self.schedule.batch_users(first, end), self.schedule.batch_users(first, number)
            batches.append(SeatInBatch(level, batch_id(level, first, end), size, seat, self.messages[size]))
        ends = list(accumulate((batch.messages * CIPHERTEXT_BYTES for batch in batches), initial=0))
        columns = tuple(zip(batches, ends[:-1], ends[1:], strict=True))
        return Slot(tuple(batches), columns, ends[-1])

    def batches_of(self, position: int) -> tuple[SeatInBatch, ...]:
        """The batches of the user who takes this position, lowest level first."""
        if not 0 <= position < self.users:
            raise ParameterError("position", position, f"must lie in 0..{self.users - 1}", "the task is full")
        number, within = self.schedule.place_of(position)
        return tuple(
            SeatInBatch(batch.level, batch.batch_id, batch.size, batch.seat + within, batch.messages)
            for batch in self.slot(number).batches
        )

    def position_of(self, batches: tuple[SeatInBatch, ...]) -> int | None:
        """The position of the user whose seat is in exactly these batches, lowest level first; None if nobody's is.

        Those who are in no batch at all are not told apart: they came last.

        >>> routing = Routing(users=9, budget=1, shufflers=1, slot_users=5, every_slot=False, messages={5: 2})
        >>> [routing.position_of(routing.batches_of(position)) for position in (0, 4, 5, 8)]
        [0, 4, 8, 8]
        """
        position = self.users - 1
        if batches:
            place = self._found(batches[0].batch_id)
            position = -1 if place is None else int(self.schedule.users_by(place[1])) + batches[0].seat
        is_seat = 0 <= position < self.users and self.batches_of(position) == batches
        return position if is_seat else None

    @cached_property
    def _found(self) -> Callable[[str], tuple[int, int, int] | None]:
        """As `find`, remembered for a while."""
        return lru_cache(_MOST_REMEMBERED)(self.find)

    def users_by(self, slots: int) -> int:
        """How many users sit in the first so many slots."""
        return int(self.schedule.users_by(min(slots, self.schedule.slots)))

    def report_bytes(self, position: int) -> int:
        """How long the report of this position is."""
        return self.slot(self.schedule.place_of(position)[0]).length

    @cached_property
    def longest_report_bytes(self) -> int:
        """No report is longer."""
        return sum(max(self.messages[size] for size in sizes) for sizes in self.sizes_by_level) * CIPHERTEXT_BYTES

    def batch_bytes(self, size: int) -> int:
        """How long a full batch of this size is."""
        return size * self.messages[size] * CIPHERTEXT_BYTES

    def find(self, name: str) -> tuple[int, int, int] | None:
        """Level, first slot and end of the batch with this id; None where there is none."""
        parts = name.split(".")
        if len(parts) != 3 or not all(part.isascii() and part.isdigit() and len(part) < 12 for part in parts):
            return None
        level, first, end = (int(part) for part in parts)
        if not first < end < self.schedule.slots or batch_id(level, first, end) != name:
            return None
        return (level, first, end) if (level, first, end) in self._joined(end - 1) else None

    def _joined(self, slot: int) -> list[tuple[int, int, int]]:
        return joined_batches(self.schedule, slot, every_slot=self.every_slot)

    def document(self) -> dict[str, Any]:
        """The routing as JSON."""
        shape = {name: getattr(self, name) for name in _SHAPE}
        shape |= {name: True for name in _LATER if getattr(self, name)}
        messages = {str(size): count for size, count in sorted(self.messages.items())}
        return {"version": VERSION, **shape, "messages": messages, "ciphertext_bytes": CIPHERTEXT_BYTES}

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """The routing that a JSON document describes."""
        again = "create the task again with this version"
        if not isinstance(document, Mapping) or document.get("version") != VERSION:
            version = document.get("version") if isinstance(document, Mapping) else None
            raise DataError("routing.version", version, f"must be {VERSION}", again)
        if document.get("ciphertext_bytes") != CIPHERTEXT_BYTES:
            problem = f"must be {CIPHERTEXT_BYTES}"
            raise DataError("routing.ciphertext_bytes", document.get("ciphertext_bytes"), problem, again)
        try:
            messages = {int(size): count for size, count in document["messages"].items()}
            if [str(size) for size in messages] != list(document["messages"]):
                raise ValueError("messages must be by plain sizes")
            later = {name: document.get(name, False) for name in _LATER}
            return cls(**{name: document[name] for name in _SHAPE}, messages=messages, **later)
        except (KeyError, TypeError, ValueError, AttributeError) as broken:
            raise DataError("routing", str(broken), "must have all its fields", again) from None


@dataclass(frozen=True)
class RoundsRouting:
    """Who goes into which batch, where a campaign has several rounds: each is routed like a task of its own.

    A round's id is that of the campaign, its number and which of the layouts it has: whoever was shown the newest model
    can say it, and no server has to be told of a new round.

    Attributes:
        rounds: no round has this number, or a larger one.
        layouts: the routings that rounds may have.
        drops: whether a round that does not fill is dropped when a later one is full.

    >>> layout = Routing(users=5, budget=1, shufflers=1, slot_users=5, every_slot=False, messages={5: 2})
    >>> routing = RoundsRouting(3, (layout,))
    >>> name = round_id("ab", 2, 0)
    >>> split_round(name), routing.of_round(2, 0).users, routing.of_round(3, 0)
    (('ab', 2, 0), 5, None)
    """

    rounds: int
    layouts: tuple[Routing, ...]
    drops: bool = False

    def of_round(self, number: int, layout: int) -> Routing | None:
        """The routing of a round; None where there is none."""
        return self.layouts[layout] if number < self.rounds and layout < len(self.layouts) else None

    def document(self) -> dict[str, Any]:
        """The routing as JSON."""
        layouts = [each.document() for each in self.layouts]
        return {"version": VERSION, "rounds": self.rounds, "layouts": layouts, "drops": self.drops}

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """The routing that a JSON document describes."""
        again = "create the campaign again with this version"
        layouts = document.get("layouts") if isinstance(document, Mapping) else None
        if not isinstance(layouts, list) or not layouts or document.get("version") != VERSION:
            raise DataError("routing.layouts", type(layouts).__name__, "must be a list of routings", again)
        rounds = document.get("rounds")
        if type(rounds) is not int or not 1 <= rounds < 10**15:
            raise DataError("routing.rounds", rounds, "must be a whole number >= 1", again)
        if not isinstance(document.get("drops"), bool):
            raise DataError("routing.drops", document.get("drops"), "must be true or false", again)
        return cls(rounds, tuple(map(Routing.from_document, layouts)), document["drops"])


def round_id(campaign_id: str, number: int, layout: int) -> str:
    """The id under which a round of a campaign is served."""
    return f"{campaign_id}.{number}.{layout}"


def split_round(task_id: str) -> tuple[str, int, int] | None:
    """The campaign, the number and the layout that a round's id says; None where it is no such id."""
    parts = task_id.split(".")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() and len(part) < 16 for part in parts[1:]):
        return None
    campaign, number, layout = parts[0], int(parts[1]), int(parts[2])
    return (campaign, number, layout) if round_id(campaign, number, layout) == task_id else None


def routing_from(document: Any) -> Routing | RoundsRouting:
    """The routing of a task or of a campaign that a JSON document describes."""
    is_rounds = isinstance(document, Mapping) and "layouts" in document
    return RoundsRouting.from_document(document) if is_rounds else Routing.from_document(document)


def routing_of_task(text: str) -> tuple[str, Routing | RoundsRouting]:
    """A task's or a campaign's id and its routing: all that a shuffler reads of its text."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise DataError("task", "no JSON", "must be a JSON document", "send the task's file unchanged") from None
    part = document.get("routing") if isinstance(document, Mapping) else None
    return hashlib.sha256(text.encode()).hexdigest(), routing_from(part)


def batch_id(level: int, first: int, end: int) -> str:
    """The id of the batch of this level over these slots."""
    return f"{level}.{first}.{end}"
