"""Wait for a job of Spark: with progress, with an end if nobody takes its tasks, and cancelled if it is interrupted."""

import itertools
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from shuffledp.engines.contract import Progress
from shuffledp.engines.spark.ending import is_gone
from shuffledp.engines.spark.failing import broken, is_of_spark
from shuffledp.errors import WorkLostError

T = TypeVar("T")

_GROUPS = itertools.count()
_LOOK_EVERY = 0.1
_ASK_EVERY = 2.0


class Watch:
    """One job, run beside whoever waits for it.

    Args:
        context: pyspark's `SparkContext`.
        parts: how many there are.
        progress: called with the number of parts that are done.
        patience: for how many seconds no task may run before the job is given up.
    """

    def __init__(self, context: Any, parts: int, progress: Progress | None, patience: float) -> None:
        self._context, self._parts, self._progress, self._patience = context, parts, progress, patience
        self._group = f"shuffledp-{next(_GROUPS)}"
        self._done = context.accumulator(0)
        self._told = 0

    @property
    def count(self) -> Callable[[int], None]:
        """For the tasks: say that so many parts are done."""
        counted: Callable[[int], None] = self._done.add
        return counted

    def run(self, action: Callable[[], T]) -> T:
        """Run the job.

        Raises:
            WorkLostError: Spark gave up, or nobody took a task.
        """
        answers: list[T] = []
        errors: list[BaseException] = []
        ended = threading.Event()

        def work() -> None:
            try:
                self._context.setJobGroup(self._group, "shuffledp", interruptOnCancel=True)
                answers.append(action())
            except BaseException as error:
                errors.append(error)
            finally:
                ended.set()

        from pyspark import InheritableThread

        # Java's side of a job belongs to a thread: with one of its own it can be cancelled from here.
        thread = InheritableThread(target=work, daemon=True)
        thread.start()
        try:
            self._wait(ended)
        except BaseException:
            self._context.cancelJobGroup(self._group)
            thread.join(self._patience)
            raise
        thread.join()
        if errors:
            if not is_of_spark(errors[0]):
                raise errors[0]
            if is_gone(self._context):
                raise WorkLostError(
                    f"Spark at {self._context.master} has stopped while it worked: its cluster has ended, or has never "
                    "answered; look whether it is there. Nothing was released."
                ) from None
            raise broken("Spark gave the job up", errors[0]) from None
        self._tell(self._parts)
        return answers[0]

    def _wait(self, ended: threading.Event) -> None:
        asked = alive = time.monotonic()
        while not ended.wait(_LOOK_EVERY):
            self._tell(min(self._parts, self._done.value))
            now = time.monotonic()
            if now - asked >= _ASK_EVERY:
                asked = now
                alive = now if self._is_running() else alive
                if now - alive > self._patience:
                    raise WorkLostError(
                        f"No task has run on {self._context.master} for {self._patience:g} seconds: look whether it "
                        "has executors, and these the memory and cores that are asked for. Nothing was released."
                    )

    def _is_running(self) -> bool:
        tracker = self._context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        return any(stage is not None and stage.numActiveTasks > 0 for stage in stages)

    def _tell(self, done: int) -> None:
        if self._progress is not None and done > self._told:
            self._told = done
            self._progress(done)
