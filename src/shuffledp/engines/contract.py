"""The contract of an engine: `fold` and `exchange`, and a way to hand a secret to the tasks.

Everything big is written on these two verbs. A task may be run again after a crash, on another machine, by any number
of processes: so what it does must depend on its part alone, its randomness on a job's key and the rows
(`shuffledp.engines.keyed`), and what is merged must not depend on the order.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError

P = TypeVar("P")
T = TypeVar("T")

Rows = NDArray[np.uint8]
"""Messages of one length, a row each."""

Progress = Callable[[int], None]
"""Called with the number of parts that are done so far."""


class Entrusted(Protocol):
    """A secret in the hands of an engine's tasks: it can be pickled into a function, and shows itself in no log."""

    def open(self) -> bytes:
        """The secret; to be called in a task."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """What one bucket holds after an exchange: all rows that were dealt to it, in the order of the parts.

    Attributes:
        bucket: its number, from 0.
        rows: all rows that were dealt to it.
    """

    bucket: int
    rows: Rows


class Exchanged(AbstractContextManager["Exchanged"], ABC):
    """The buckets of an exchange, to be folded once or several times; leaving its block destroys them."""

    @property
    @abstractmethod
    def buckets(self) -> int:
        """How many buckets there are; some may be empty."""

    def only(self, buckets: Sequence[int]) -> "Exchanged":
        """These buckets alone, for one fold or several; they last as long as all of them do.

        Raises:
            ParameterError: this engine folds all buckets or none.
        """
        problem = "must be able to fold some buckets of an exchange"
        raise ParameterError("engine", type(self).__name__, problem, "take --engine local")


class Engine(ABC):
    """Runs functions of parts, wherever its tasks are.

    Functions and parts must be picklable: functions of a module, or frozen objects that can be called.
    """

    name: ClassVar[str]

    @abstractmethod
    def entrust(self, secret: bytes) -> Entrusted:
        """Hand a secret to the tasks, outside of what an engine plans, shows or logs."""

    @abstractmethod
    def fold(
        self,
        parts: "Sequence[P] | Exchanged",
        tally: Callable[[P], T] | Callable[[Gathered], T],
        merge: Callable[[Iterable[T]], T],
        *,
        progress: Progress | None = None,
    ) -> T:
        """The tally of every part, merged.

        Args:
            parts: what there is to do, at least one; or the buckets of an exchange, of which tasks get `Gathered`.
            tally: what is left of one part.
            merge: one tally of several; neither order nor grouping may matter.
            progress: called with the number of parts done.

        Raises:
            ParameterError: there is no part.
            WorkLostError: tasks died again and again.
        """

    @abstractmethod
    def exchange(
        self,
        parts: Sequence[P],
        bucket_of: Callable[[P], Iterable[tuple[int, Rows]]],
        buckets: int,
        *,
        progress: Progress | None = None,
    ) -> Exchanged:
        """Deal the rows of all parts to buckets, through the disk where memory does not hold them.

        Args:
            parts: what there is to deal, at least one.
            bucket_of: the rows of a part, by bucket: each bucket at most once, rows of one width everywhere.
            buckets: how many buckets there are.
            progress: called with the number of parts done.

        Raises:
            ParameterError: there is no part, or a bucket outside 0..buckets-1.
            WorkLostError: tasks died again and again.
        """

    @property
    @abstractmethod
    def tasks_at_once(self) -> int:
        """How many tasks run side by side."""

    @property
    @abstractmethod
    def task_bytes(self) -> int:
        """How many bytes one task may use for its data: parts and buckets should be cut so."""

    def spill_to(self, folder: Path) -> None:  # noqa: B027
        """Write what memory does not hold into this folder from now on, if the engine writes on this machine's disk."""

    def get_ready(self, *needed: Any) -> None:  # noqa: B027
        """Begin to start what takes a while to start, and return: a plan can be made in the meantime.

        Args:
            needed: classes and functions that tasks will use, so that their modules are loaded already.
        """

    @abstractmethod
    def close(self) -> None:
        """End what the engine has started."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
