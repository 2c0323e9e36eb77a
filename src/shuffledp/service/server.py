"""What both servers are: the tasks of a store, and a chore in the background."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, NoReturn, TypeVar

from shuffledp.service.chores import Chores
from shuffledp.service.problems import TASK_UNKNOWN, RefusedError
from shuffledp.service.store.contract import Store, TaskRecords
from shuffledp.service.telemetry import Metrics

R = TypeVar("R", bound=TaskRecords)
T = TypeVar("T")


class Served(dict[str, T]):
    """What a server knows of its tasks, by their ids; to ask for another is refused."""

    def __missing__(self, task_id: str) -> NoReturn:
        raise RefusedError(TASK_UNKNOWN, f"task {task_id[:12]} is not served here: check the task's file.")


class TaskServer(ABC, Generic[R, T]):
    """One process's server of tasks.

    Args:
        role: what it is, in metrics and in the names of threads.
        store: where everything is kept; closed by `stop`.
        load: what the server knows of a task, from the text that the store has of it.
        chore: what it does in the background; answers whether nothing is left to do.
    """

    def __init__(self, role: str, store: Store[R], load: Callable[[str], T], chore: Callable[[], bool]) -> None:
        self._store = store
        self._chores = Chores(role, chore)
        self.metrics = Metrics(role)
        self.left: str | None = None
        kept = store.read(lambda records: records.tasks())
        self.tasks = Served({task_id: load(text) for task_id, text in kept.items()})

    def start(self) -> None:
        """Begin the chore; what an earlier process left is done first."""
        self._chores.start()

    def stop(self) -> None:
        """End the chore at hand and let go of the store."""
        self._chores.stop()
        self.left = self.leaves()
        self._store.close()

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

    def _serve(self, task_id: str, text: str, task: T) -> tuple[str, bool]:
        """Keep a text of a task and serve it; answers its id and whether it is new."""
        self._store.write(lambda records: records.add_task(task_id, text))
        new = task_id not in self.tasks
        self.tasks[task_id] = task
        return task_id, new
