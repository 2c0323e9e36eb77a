"""What a task costs before it begins: bytes that follow from its routing, seconds from what a message took here."""

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from shuffledp.service.crypto import PrivateKey, binding, open_all
from shuffledp.service.routing import Routing
from shuffledp.service.wire import CIPHERTEXT_BYTES, MESSAGE_BYTES

LARGE_REPORT_BYTES = 16_000
"""A larger report is worth a warning: phones send it over networks that are paid for by the byte."""

# Messages that are sealed and opened to see how long one takes; the quickest of some rounds, as others may disturb.
_MEASURED, _ROUNDS = 64, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCost:
    """Bytes of ciphertexts, when everybody reports once; HTTP's own headers come on top.

    Attributes:
        report_messages_max: messages of the longest report.
        report_bytes_max: its bytes.
        report_bytes_mean: bytes of a report on average.
        upload_bytes: of all reports together.
        shuffler_bytes_max: what a shuffler keeps at one time at most: an open batch of every level, and a full one's
            permuted copy.
        largest_batch_bytes: what an analyzer keeps until it is read.
        messages: ciphertexts of all reports together.
        layers: how many layers each has for the hops of a cascade; 0 for one shuffler.
    """

    report_messages_max: int
    report_bytes_max: int
    report_bytes_mean: float
    upload_bytes: int
    shuffler_bytes_max: int
    largest_batch_bytes: int
    messages: int
    layers: int = 0

    @classmethod
    def of(cls, routing: Routing) -> Self:
        """The cost of a task with this routing.

        >>> one_round = Routing(users=100, budget=1, shufflers=1, slot_users=100, every_slot=False, messages={100: 3})
        >>> cost = TaskCost.of(one_round)
        >>> cost.report_bytes_max, cost.upload_bytes, cost.messages
        (231, 23100, 300)
        """
        messages, length = _all_messages(routing), routing.ciphertext_bytes
        largest = [max(map(routing.batch_bytes, sizes), default=0) for sizes in routing.sizes_by_level]
        return cls(
            report_messages_max=routing.longest_report_messages,
            report_bytes_max=routing.longest_report_bytes,
            report_bytes_mean=messages * length / routing.users,
            upload_bytes=messages * length,
            shuffler_bytes_max=sum(largest) + max(largest, default=0),
            largest_batch_bytes=max(largest, default=0) // length * CIPHERTEXT_BYTES,
            messages=messages,
            layers=routing.layers,
        )

    @classmethod
    def of_rounds(cls, routings: Sequence[Routing], reports: int) -> Self:
        """The most that a campaign can cost whose rounds have these routings, with so many reports in all.

        Which rounds there will be is known when they begin: every report is counted like one of the dearest.

        >>> small, large = (Routing(users=users, budget=1, shufflers=1, slot_users=users, every_slot=False,
        ...                         messages={users: 3}) for users in (10, 100))
        >>> cost = TaskCost.of_rounds([small, large], 1000)
        >>> cost.messages, cost.largest_batch_bytes == TaskCost.of(large).largest_batch_bytes
        (3000, True)
        """
        each = [cls.of(routing) for routing in routings]
        messages = max(
            math.ceil(cost.messages / routing.users * reports) for cost, routing in zip(each, routings, strict=True)
        )
        return cls(
            report_messages_max=max(cost.report_messages_max for cost in each),
            report_bytes_max=max(cost.report_bytes_max for cost in each),
            report_bytes_mean=max(cost.report_bytes_mean for cost in each),
            upload_bytes=messages * max(routing.ciphertext_bytes for routing in routings),
            shuffler_bytes_max=max(cost.shuffler_bytes_max for cost in each),
            largest_batch_bytes=max(cost.largest_batch_bytes for cost in each),
            messages=messages,
            layers=max(cost.layers for cost in each),
        )

    def document(self) -> dict[str, Any]:
        """The cost as JSON."""
        return asdict(self)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is dear, a sentence each."""
        if self.report_bytes_max <= LARGE_REPORT_BYTES:
            return ()
        words = f"A report has up to {self.report_messages_max:,} messages, {self.report_bytes_max:,} bytes"
        return (f"{words}: more than {LARGE_REPORT_BYTES:,}. Plan with --max-messages for a method that sends fewer.",)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCost:
    """Seconds of this machine's CPU that encryption takes, from what one message took here and now.

    Attributes:
        seal_seconds: a device's, for one layer of a message; a message has one for the analyzer, and one for each hop.
        open_seconds: the analyzer's, or a hop's, for its layer of a message.
        device_seconds_a_report: for the longest report.
        device_seconds: of all devices together.
        analyzer_seconds: for all messages.
        hop_seconds: of each hop of a cascade, for all messages; 0 for one shuffler, which takes no layer off.
    """

    seal_seconds: float
    open_seconds: float
    device_seconds_a_report: float
    device_seconds: float
    analyzer_seconds: float
    hop_seconds: float = 0.0

    @classmethod
    def of(cls, cost: TaskCost) -> Self:
        """What the messages of a task take, after some were sealed and opened with a key that is thrown away."""
        seal, opened = _seconds_a_message()
        # A message is sealed for the analyzer and once more for every hop.
        sealed = seal * (1 + cost.layers)
        return cls(
            seal_seconds=seal,
            open_seconds=opened,
            device_seconds_a_report=sealed * cost.report_messages_max,
            device_seconds=sealed * cost.messages,
            analyzer_seconds=opened * cost.messages,
            hop_seconds=opened * cost.messages if cost.layers else 0.0,
        )

    def speed_in_words(self, cost: TaskCost) -> str:
        """How long a device takes for one message of a task, all its layers together.

        >>> routing = Routing(users=100, budget=1, shufflers=1, slot_users=100, every_slot=False, messages={100: 3},
        ...                   layers=2)
        >>> seconds = {"device_seconds_a_report": 0.0009, "device_seconds": 0.09, "analyzer_seconds": 0.02}
        >>> MeasuredCost(seal_seconds=0.0001, open_seconds=0.0001, **seconds).speed_in_words(TaskCost.of(routing))
        'at 0.3 ms a message with its 3 layers, measured on this machine'
        """
        layers = f" with its {1 + cost.layers} layers" if cost.layers else ""
        return f"at {1e3 * self.seal_seconds * (1 + cost.layers):.2g} ms a message{layers}, measured on this machine"

    def document(self) -> dict[str, Any]:
        """The measured cost as JSON."""
        return asdict(self)


def _all_messages(routing: Routing) -> int:
    """Messages of all users, those to batches that never fill included."""
    schedule = routing.schedule
    found = 0
    for level, ends in enumerate(schedule.ends_by_level, 1):
        firsts = schedule.parents[ends]
        if level == 1 and routing.every_slot:
            ends = np.arange(1, schedule.slots)
            firsts = ends - 1
        begins = schedule.users_by(firsts)
        sizes = schedule.users_by(ends) - begins
        came = np.clip(routing.users - begins, 0, sizes)
        kinds, which = np.unique(sizes, return_inverse=True)
        each = np.array([routing.messages[size] for size in kinds.tolist()], dtype=np.int64)
        found += int((came * each[which]).sum())
    return found


def _seconds_a_message() -> tuple[float, float]:
    key, info = PrivateKey.generate(), binding("measured", "1.0.1")
    messages = [bytes(MESSAGE_BYTES)] * _MEASURED
    rounds = []
    for _ in range(_ROUNDS):
        begun = time.process_time()
        sealed = key.public.seal(messages, info)
        between = time.process_time()
        open_all(key.raw, sealed, info)
        rounds.append((between - begun, time.process_time() - between))
    seal, opened = (min(seconds) / _MEASURED for seconds in zip(*rounds, strict=True))
    return seal, opened
