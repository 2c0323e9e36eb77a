"""What both servers are: the tasks of a store, and a chore in the background."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from shuffledp.errors import ParameterError
from shuffledp.service.chores import Chores
from shuffledp.service.delivery import check_same
from shuffledp.service.ended import Ended
from shuffledp.service.problems import TASK_ENDED, TASK_UNKNOWN, RefusedError
from shuffledp.service.store.contract import Store, TaskRecords
from shuffledp.service.telemetry import Metrics, log

R = TypeVar("R", bound=TaskRecords)
T = TypeVar("T")
C = TypeVar("C")


class Served(dict[str, T]):
    """What a server knows of its tasks, by their ids; to ask for another is refused.

    Args:
        found: its tasks.
        of_round: what it knows of a round of one of its campaigns, by the round's id; None where it serves none such.
    """

    def __init__(self, found: dict[str, T], of_round: Callable[[str], T | None] = lambda task_id: None) -> None:
        super().__init__(found)
        self._of_round = of_round

    def __missing__(self, task_id: str) -> T:
        known = self._of_round(task_id)
        if known is None:
            raise RefusedError(TASK_UNKNOWN, f"task {task_id[:12]} is not served here: check the task's file.")
        return known


class TaskServer(ABC, Generic[R, T, C]):
    """One process's server of tasks, and of campaigns, whose rounds are served like tasks.

    Args:
        role: what it is, in metrics and in the names of threads.
        store: where everything is kept; closed by `stop`.
        load: what the server knows of a task or a campaign, from the text that the store has of it.
        of_round: what it knows of a round, by its id.
        chore: what it does in the background; answers whether nothing is left to do.
    """

    def __init__(
        self,
        role: str,
        store: Store[R],
        load: Callable[[str], T | C],
        of_round: Callable[[C, str], T | None],
        chore: Callable[[], bool],
    ) -> None:
        self._store = store
        self._chores = Chores(role, chore)
        self.metrics = Metrics(role)
        self.left: str | None = None
        self.campaigns: dict[str, C] = {}
        self._of_round = of_round
        self._load = load
        self.tasks: Served[T] = Served({}, self._found)
        self.ended: set[str] = set()
        for task_id, text in store.read(lambda records: records.tasks()).items():
            ended = Ended.of(text)
            if ended is not None:
                self.ended.add(task_id)
            kept = text if ended is None else ended.task
            if kept is not None:
                self._hold(task_id, load(kept))

    @property
    def hop(self) -> int | None:
        """Which hop of cascades it is, from 1; None where it is none."""
        return None

    def has_ended(self, task_id: str) -> bool:
        """Whether a task has ended here, or the campaign that a round is of."""
        return task_id in self.ended or task_id.partition(".")[0] in self.ended

    def check_goes_on(self, task_id: str) -> None:
        """Refuse what is sent to a task that has ended, or to a round of a campaign that has.

        Raises:
            RefusedError: it has ended (`task-ended`).
        """
        if self.has_ended(task_id):
            raise RefusedError(TASK_ENDED, f"task {task_id[:12]} has ended here: nothing is taken for it any more.")

    @abstractmethod
    def _taken(self, records: R, task_id: str, batch_id: str) -> str | None:
        """The SHA-256 of a batch that was taken here; None if it was not."""

    def was_taken(self, task_id: str, batch_id: str, digest: str | None = None) -> bool:
        """Whether a batch comes again whose task has ended here, and that was taken before it did.

        Whoever sends it was not told, and would send it for ever: it may be deleted there, too.

        Args:
            task_id: its task.
            batch_id: its id.
            digest: its SHA-256, where it has come whole.

        Raises:
            RefusedError: the task has ended, and this batch was never taken (`task-ended`), or with other bytes.
        """
        if not self.has_ended(task_id):
            return False
        known = self._store.read(lambda records: self._taken(records, task_id, batch_id))
        if known is None:
            self.check_goes_on(task_id)
        elif digest is not None:
            check_same(batch_id, known, digest)
            log("batch of an ended task came again: it was taken", task=task_id[:12], batch=batch_id)
        return True

    def _round(self, task_id: str) -> T | None:
        self.check_goes_on(task_id)
        campaign = self.campaigns.get(task_id.partition(".")[0])
        return None if campaign is None else self._of_round(campaign, task_id)

    def _found(self, task_id: str) -> T | None:
        """What it knows of a task that is not among `tasks`, if anything."""
        return self._round(task_id)

    @abstractmethod
    def _is_campaign(self, known: T | C) -> bool:
        """Whether this is of a campaign, and not of a task."""

    def _hold(self, task_id: str, known: Any) -> None:
        (self.campaigns if self._is_campaign(known) else self.tasks)[task_id] = known

    def start(self) -> None:
        """Begin the chore; what an earlier process left is done first."""
        self._chores.start()

    def stop(self) -> None:
        """End the chore at hand and let go of the store."""
        self._chores.stop()
        self.left = self.leaves()
        self._store.close()

    @property
    def cautions(self) -> list[str]:
        """What whoever starts the server should know, a sentence each."""
        return []

    def leaves(self) -> str:
        """What the server would leave on disk if it ended now, in words."""
        if self.left is not None:
            return self.left
        try:
            return f"the {self.metrics.role} leaves {'; '.join(self._leaves())}"
        except Exception as failed:
            return f"the {self.metrics.role} cannot read what it leaves ({type(failed).__name__})"

    @abstractmethod
    def _leaves(self) -> list[str]:
        """What is on disk and not done, a phrase each."""

    @abstractmethod
    def add_task(self, text: str) -> tuple[str, bool]:
        """Serve the task of this text from now on; answers its id and whether it is new."""

    def _serve(
        self, task_id: str, text: str, known: T | C, begin: Callable[[R], None] = lambda records: None
    ) -> tuple[str, bool]:
        """Keep a text of a task or a campaign and serve it; answers its id and whether it is new.

        Args:
            task_id: its id.
            text: what the store keeps of it.
            known: what the server knows of it.
            begin: what must be in the store as soon as the text is: a kill leaves both or neither.
        """
        if task_id in self.ended:
            problem, way_out = "must not have ended here: its people would be asked twice", "create a new one"
            raise ParameterError("task", task_id[:12], problem, way_out)

        def keep(records: R) -> None:
            records.add_task(task_id, text)
            begin(records)

        self._store.write(keep)
        new = task_id not in self.tasks and task_id not in self.campaigns
        self._hold(task_id, known)
        return task_id, new
