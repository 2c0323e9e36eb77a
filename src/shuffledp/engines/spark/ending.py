"""Ends of what Spark holds: the files of what was moved between tasks, and what was broadcast."""

from collections.abc import Callable
from typing import Any

from shuffledp.engines.spark.failing import is_of_spark


def forget(moved: Any) -> None:
    """Delete what an RDD that comes out of `partitionBy` has written on the disks of all executors that are alive.

    Spark would do so when its garbage is collected, which may be never; and its own `cleanShuffleDependencies` also
    deletes what others still need. Files of an executor that was killed stay where they are until its folder is
    removed: encrypted with a key that only Spark's memory has, and that ends with it.
    """

    def delete() -> None:
        # Python's records, and below them Java's, which were moved.
        moving = moved._jrdd.rdd().dependencies().head().rdd().dependencies().head()
        moved.context._jsc.sc().cleaner().get().doCleanupShuffle(moving.shuffleId(), True)

    unless_gone(moved.context, delete)


def unless_gone(context: Any, destroy: Callable[[], None]) -> None:
    """Destroy something, unless Spark is gone and has taken it along."""
    try:
        destroy()
    except Exception as error:
        if not (is_of_spark(error) and is_gone(context)):
            raise


def is_gone(context: Any) -> bool:
    """Whether a context was stopped, or its Java process has ended."""
    try:
        return context._jsc is None or bool(context._jsc.sc().isStopped())
    except Exception as error:
        if not is_of_spark(error):
            raise
        return True
