"""The engine on Spark: parts are tasks of an RDD, and buckets its shuffle."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

from shuffledp.engines.contract import Engine, Exchanged, Gathered, Progress, Rows
from shuffledp.engines.local import GIGABYTE
from shuffledp.engines.spark.ending import forget, unless_gone
from shuffledp.engines.spark.sessions import session_for
from shuffledp.engines.spark.tasks import (
    DealingOut,
    DealtRows,
    Gathering,
    Merging,
    Numbering,
    Raised,
    Tallying,
    without_keys,
)
from shuffledp.engines.spark.watching import Watch
from shuffledp.errors import ParameterError

P = TypeVar("P")
T = TypeVar("T")

# What an interpreter with numpy, pyarrow and pyspark takes before it has any data.
_INTERPRETER = 130 << 20
_LEAST_TASK = 8 << 20
# So many tallies are merged by one task, or in the end here.
_AT_ONCE = 16


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Broadcasted:
    """A secret that travels as a broadcast of Spark's: in no plan, log or page, and encrypted where it is written."""

    broadcast: Any

    def open(self) -> bytes:
        return cast("bytes", self.broadcast.value)

    def __repr__(self) -> str:
        return "Broadcasted()"


class SparkBuckets(Exchanged):
    """The buckets of an exchange: files of Spark's, encrypted, on the disks of its executors."""

    def __init__(self, records: Any, dealt: DealtRows, chosen: Sequence[int] | None = None) -> None:
        self.records, self.dealt, self.chosen = records, dealt, chosen

    @property
    def buckets(self) -> int:
        return len(self.dealt.counts)

    def only(self, buckets: Sequence[int]) -> "SparkBuckets":
        return SparkBuckets(self.records, self.dealt, list(buckets))

    def __exit__(self, *_: Any) -> None:
        if self.records is not None:
            forget(self.records)
            self.records = None


class SparkEngine(Engine):
    """Tasks on Spark; with the same parts it answers what `LocalEngine` does, bit for bit.

    The Spark of this process is used if there is one, and left as it is; else one is started, and stopped by `close`.
    It must encrypt what it writes and, on a cluster, what it sends; one that is started here does.

    Whoever runs the executors sees what tasks see: rows in the order in which they come, and the job's key.

    Args:
        master: the cluster, such as spark://host:7077 or yarn; all cores of this machine if it is left out.
        memory: bytes that the tasks of one executor may take together, beside Java's.
        settings: settings of a new Spark, by their names, such as {"spark.executor.instances": "8"}.
        patience: seconds without any running task after which a job is given up.

    Raises:
        ParameterError: pyspark or Java is missing; the Spark that is there does not encrypt; too little memory.
        WorkLostError: Spark did not start.

    >>> with SparkEngine() as engine:  # doctest: +SKIP
    ...     engine.fold(range(5), abs, sum)
    10
    """

    name: ClassVar[str] = "spark"

    def __init__(
        self,
        *,
        master: str | None = None,
        memory: int = GIGABYTE,
        settings: Mapping[str, str] | None = None,
        patience: float = 600.0,
    ) -> None:
        least = _INTERPRETER + _LEAST_TASK
        if memory < least:
            problem = f"must be at least {-(-least >> 20)}MB"
            raise ParameterError("memory", f"{memory / (1 << 20):.4g}MB", problem, "say for instance --memory 1GB")
        self.memory, self.patience = memory, patience
        self._session = session_for(master, memory, settings or {})
        self._context = self._session.context
        self._entrusted: list[Broadcasted] = []

    @property
    def tasks_at_once(self) -> int:
        return max(1, int(self._context.defaultParallelism))

    @property
    def task_bytes(self) -> int:
        return max(_LEAST_TASK, self.memory // self._tasks_of_an_executor() - _INTERPRETER)

    def _tasks_of_an_executor(self) -> int:
        said = self._context.getConf().get("spark.executor.cores")
        if said is not None and not self._context.master.startswith("local["):
            return max(1, int(said))
        # The driver is in the list, too; on this machine it is all there is.
        executors = max(1, int(self._context._jsc.sc().getExecutorMemoryStatus().size()) - 1)
        return -(-self.tasks_at_once // executors)

    def entrust(self, secret: bytes) -> Broadcasted:
        found = Broadcasted(self._context.broadcast(secret))
        self._entrusted.append(found)
        return found

    def fold(
        self,
        parts: "Sequence[P] | Exchanged",
        tally: Callable[[P], T] | Callable[[Gathered], T],
        merge: Callable[[Iterable[T]], T],
        *,
        progress: Progress | None = None,
    ) -> T:
        if isinstance(parts, SparkBuckets):
            if parts.records is None:
                raise ParameterError("parts", "buckets that are destroyed", "must be there", "fold them in their block")
            asked = parts.buckets if parts.chosen is None else len(parts.chosen)
            watch = Watch(self._context, asked, progress, self.patience)
            gathering = Gathering(cast("Callable[[Gathered], T]", tally), parts.dealt, watch.count, str(Path.cwd()))
            tallies = parts.records.mapPartitionsWithIndex(gathering)
            if parts.chosen is not None:
                some = parts.chosen
                (merged,) = Merging(merge)(watch.run(lambda: self._context.runJob(tallies, list, some)))
                return cast("T", _unless_raised(merged))
        elif isinstance(parts, Exchanged):
            raise ParameterError("parts", type(parts).__name__, "must be of this engine", "exchange them here")
        else:
            watch = Watch(self._context, len(parts), progress, self.patience)
            tallying = Tallying(cast("Callable[[Any], T]", tally), watch.count, str(Path.cwd()))
            tallies = self._numbered(parts).mapPartitions(tallying)
        merging = Merging(merge)
        moved: list[Any] = []
        try:
            (merged,) = merging(watch.run(_fewer(tallies, merging, moved).collect))
        finally:
            for each in moved:
                forget(each)
        return cast("T", _unless_raised(merged))

    def exchange(
        self,
        parts: Sequence[P],
        bucket_of: Callable[[P], Iterable[tuple[int, Rows]]],
        buckets: int,
        *,
        progress: Progress | None = None,
    ) -> SparkBuckets:
        if buckets < 1:
            raise ParameterError("buckets", buckets, "must be >= 1", "one bucket holds everything")
        watch = Watch(self._context, len(parts), progress, self.patience)
        records = self._numbered(parts).mapPartitions(DealingOut(bucket_of, buckets, watch.count, str(Path.cwd())))
        records = records.partitionBy(buckets + 1, int)
        # All parts are dealt before the one task behind the last bucket can know what was dealt.
        told = _Chain(without_keys, Merging(DealtRows.merge))
        try:
            (dealt,) = watch.run(lambda: self._context.runJob(records, told, [buckets]))
            return SparkBuckets(records, cast("DealtRows", _unless_raised(dealt)))
        except BaseException:
            forget(records)
            raise

    def close(self) -> None:
        try:
            while self._entrusted:
                unless_gone(self._context, lambda: self._entrusted.pop().broadcast.destroy(blocking=True))
        finally:
            self._session.stop()

    def _numbered(self, parts: Sequence[P]) -> Any:
        if not len(parts):
            raise ParameterError("parts", 0, "must be at least one", "give the engine something to do")
        return self._context.parallelize(list(enumerate(parts)), len(parts))


@dataclass(frozen=True, slots=True)
class _Chain:
    """One function of what a task has, and then another one."""

    first: Callable[[Any], Any]
    then: Callable[[Any], Any]

    def __call__(self, records: Any) -> Any:
        return self.then(self.first(records))


def _fewer(tallies: Any, merging: Merging, moved: list[Any]) -> Any:
    """Tallies of all parts, merged by tasks until so few are left that they can be merged here.

    Without Spark's own functions for it: they write what memory does not hold to the disk, and do not encrypt it.

    Args:
        tallies: an RDD of them.
        merging: what merges some of them.
        moved: filled with what must be forgotten in the end.
    """
    tasks = tallies.getNumPartitions()
    while tasks > _AT_ONCE:
        tasks = -(-tasks // _AT_ONCE)
        moved.append(tallies.mapPartitionsWithIndex(Numbering(tasks)).partitionBy(tasks, int))
        tallies = moved[-1].mapPartitions(_Chain(without_keys, merging))
    return tallies


def _unless_raised(answer: Any) -> Any:
    if isinstance(answer, Raised):
        raise answer.again()
    return answer
