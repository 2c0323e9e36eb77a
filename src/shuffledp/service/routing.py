"""All that a shuffler may know of a task: batch sizes, messages a report, a ciphertext's length where it stands."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any, Self

from shuffledp.errors import DataError, ParameterError
from shuffledp.files import other_version
from shuffledp.schedules.batches import BatchSchedule
from shuffledp.schedules.combinatorial import combinatorial_schedule, ending_schedule, slots, whole_slots
from shuffledp.schedules.joined import joined_batches
from shuffledp.schedules.layout import BatchLayout
from shuffledp.schedules.windows import window_schedule
from shuffledp.service.admission.private_tokens import Issuer
from shuffledp.service.hops import ADMISSION_VERSION, CASCADE_VERSION, MOST_HOPS, version_with
from shuffledp.service.wire import CIPHERTEXT_BYTES, LARGEST_BATCH_BYTES, OVERHEAD_BYTES, VERSION, is_id

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
# What only the documents of a cascade say.
_CASCADE = ("layers", "hop")


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

    A one-round task is the schedule with one batch. The fields are those of the plan's layout, and three more.

    Attributes:
        layers: how many layers for hops of a cascade a message has when it comes to whoever reads this; 0 where one
            shuffler mixes and takes nothing off.
        hop: which hop of the cascade reads this, from 1.
        issuer: whose tokens seats are given for, one each; None where they are given to whoever is enrolled, and at
            later hops, which give no seats.

    >>> messages = {10: 3, 20: 2, 30: 2}
    >>> routing = Routing(users=60, budget=2, shufflers=2, slot_users=10, every_slot=False, messages=messages)
    >>> [(b.level, b.batch_id, b.size, b.seat) for b in routing.batches_of(12)]
    [(1, '1.1.2', 10, 2), (2, '2.0.3', 30, 12)]
    >>> routing.report_bytes(12) == (3 + 2) * 77
    True
    >>> cascade = replace(routing, layers=3)
    >>> [(cascade.at_hop(number).ciphertext_bytes, cascade.at_hop(number).left_bytes) for number in (1, 2, 3)]
    [(221, 173), (173, 125), (125, 77)]
    """

    layers: int = 0
    hop: int = 1
    issuer: Issuer | None = None

    @classmethod
    def of(cls, layout: BatchLayout, layers: int = 0, issuer: Issuer | None = None) -> Self:
        """The routing of a plan's batches.

        Args:
            layout: `plan.layout`.
            layers: how many hops a cascade has; 0 for one shuffler.
            issuer: whose tokens seats are given for; None for whoever is enrolled.

        Raises:
            ParameterError: a batch is too large to travel.
        """
        return cls(**vars(layout), layers=layers, issuer=issuer)

    def is_of(self, layout: BatchLayout) -> bool:
        """Whether this is the routing of a plan's batches.

        Args:
            layout: `plan.layout`.
        """
        return all(getattr(self, name) == value for name, value in vars(layout).items())

    def __post_init__(self) -> None:
        if not (_is_whole(self.layers, 0) and _is_whole(self.hop, 1) and self.layers + self.hop - 1 <= MOST_HOPS):
            found, problem = f"{self.layers} layers at hop {self.hop}", f"must be of at most {MOST_HOPS} hops"
            raise DataError("routing.layers", found, problem, "create the task again")
        if not isinstance(self.windows, bool):
            raise DataError("routing.windows", self.windows, "must be true or false", "create the task again")
        for name in ("users", "budget", "shufflers", "slot_users"):
            value = getattr(self, name)
            if not _is_whole(value, 1):
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
        largest = max(size * count for size, count in self.messages.items()) * self.ciphertext_bytes
        if largest > LARGEST_BATCH_BYTES:
            raise ParameterError(
                "users",
                self.users,
                f"make a batch of {largest >> 20} MB, more than {LARGEST_BATCH_BYTES >> 20}",
                "plan for fewer users, more shufflers, or a method with fewer messages",
            )

    @property
    def hops(self) -> int:
        """How many shufflers a message passes, one after another."""
        return max(1, self.layers + self.hop - 1)

    @property
    def ciphertext_bytes(self) -> int:
        """How long every message is when it comes here."""
        return CIPHERTEXT_BYTES + self.layers * OVERHEAD_BYTES

    @property
    def left_bytes(self) -> int:
        """How long every message is when it leaves: a hop of a cascade has taken its layer off."""
        return self.ciphertext_bytes - (OVERHEAD_BYTES if self.layers else 0)

    def at_hop(self, number: int) -> Self:
        """What the hop of this number may know: the same batches, with messages of the length that they have there.

        Args:
            number: from 1; one shuffler alone is hop 1.

        Raises:
            ParameterError: the task has no such hop.
        """
        if not 1 <= number <= self.hops:
            problem = f"must be one of the task's hops, 1 to {self.hops}" if self.layers else "must be 1 in this task"
            raise ParameterError("hop", number, problem, "serve it at the shuffler that its file names")
        if number == self.hop:
            return self
        # Tokens are for the first hop: nothing that two hops see is of one person.
        issuer = self.issuer if number == 1 else None
        return replace(self, layers=self.hops - number + 1, hop=number, issuer=issuer)

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
        ends = list(accumulate((batch.messages * self.ciphertext_bytes for batch in batches), initial=0))
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
        return self.longest_report_messages * self.ciphertext_bytes

    @cached_property
    def longest_report_messages(self) -> int:
        """No report has more messages."""
        return sum(max(self.messages[size] for size in sizes) for sizes in self.sizes_by_level)

    def batch_bytes(self, size: int) -> int:
        """How long a full batch of this size is when it is here."""
        return size * self.messages[size] * self.ciphertext_bytes

    def opened_bytes(self, size: int) -> int:
        """How long a full batch of this size is when the analyzer gets it, whatever layers it had before."""
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

    @cached_property
    def batches(self) -> int:
        """How many batches there are when everybody has reported; those that would need more people never fill.

        >>> messages = {10: 3, 20: 2, 30: 2}
        >>> routing = Routing(users=60, budget=2, shufflers=2, slot_users=10, every_slot=False, messages=messages)
        >>> routing.batches, replace(routing, users=25).batches
        (5, 2)
        """
        # Each is counted at its last slot.
        full = self.schedule.place_of(self.users)[0]
        return sum(end - 1 == slot for slot in range(full) for _, _, end in self._joined(slot))

    def _joined(self, slot: int) -> list[tuple[int, int, int]]:
        return joined_batches(self.schedule, slot, every_slot=self.every_slot)

    def document(self) -> dict[str, Any]:
        """The routing as JSON."""
        shape = {name: getattr(self, name) for name in _SHAPE}
        shape |= {name: True for name in _LATER if getattr(self, name)}
        messages = {str(size): count for size, count in sorted(self.messages.items())}
        shape |= {name: getattr(self, name) for name in _CASCADE if self.layers}
        shape |= {"issuer": self.issuer.document()} if self.issuer is not None else {}
        version = version_with(range(self.layers), VERSION, issuer=self.issuer is not None)
        return {"version": version, **shape, "messages": messages, "ciphertext_bytes": self.ciphertext_bytes}

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """The routing that a JSON document describes."""
        again = "create the task again with this version"
        version = document.get("version") if isinstance(document, Mapping) else None
        if version not in (VERSION, CASCADE_VERSION, ADMISSION_VERSION) or isinstance(version, bool):
            known = f"{VERSION}, {CASCADE_VERSION} in a cascade, or {ADMISSION_VERSION} with an issuer"
            raise other_version("routing.version", version, known, again)
        issuer = issuer_in(document)
        is_cascade = version == CASCADE_VERSION or (issuer is not None and "layers" in document)
        place = {name: document.get(name) for name in _CASCADE if is_cascade}
        length = CIPHERTEXT_BYTES
        if place:
            if not _is_whole(place["layers"], 1):
                raise DataError("routing.layers", place["layers"], "must be a whole number >= 1", again)
            length += place["layers"] * OVERHEAD_BYTES
        if document.get("ciphertext_bytes") != length:
            problem = f"must be {length}"
            raise DataError("routing.ciphertext_bytes", document.get("ciphertext_bytes"), problem, again)
        try:
            messages = {int(size): count for size, count in document["messages"].items()}
            if [str(size) for size in messages] != list(document["messages"]):
                raise ValueError("messages must be by plain sizes")
            later = {name: document.get(name, False) for name in _LATER}
            return cls(**{name: document[name] for name in _SHAPE}, messages=messages, **later, **place, issuer=issuer)
        except (KeyError, TypeError, ValueError, AttributeError) as broken:
            raise DataError("routing", str(broken), "must have all its fields", again) from None


def issuer_in(document: Mapping[str, Any]) -> Issuer | None:
    """The issuer that a routing's document names; None in the versions that name none."""
    if (document["version"] == ADMISSION_VERSION) != ("issuer" in document):
        problem = f"must be {ADMISSION_VERSION} where an issuer is named, and nowhere else"
        raise DataError("routing.version", document["version"], problem, "create the task again with this version")
    return Issuer.from_document(document["issuer"]) if "issuer" in document else None


def _is_whole(value: Any, least: int) -> bool:
    return type(value) is int and value >= least


def batch_id(level: int, first: int, end: int) -> str:
    """The id of the batch of this level over these slots."""
    return f"{level}.{first}.{end}"
