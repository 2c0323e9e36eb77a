"""A Spark of the tests' own: two executors, each a Java process, and everything that they write in one folder."""

import contextlib
import importlib.util
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness.dealing import Dealing, rows_of, seen
from shuffledp.engines import Entrusted, Gathered
from shuffledp.engines.contract import Rows
from shuffledp.engines.spark import SparkEngine
from shuffledp.randomness import RandomBits
from shuffledp.sampling.uniform import uniform_below

MASTER = "local-cluster[2,1,512]"
# Short lives: no time for what a Java process learns only after a while.
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
_SECONDS = 20.0
_A_MOMENT = 2.0


def require_spark() -> Path:
    """The folder of pyspark; without it or Java a test is skipped, but never where everything must be tested."""
    found = importlib.util.find_spec("pyspark")
    words = "" if found else "pyspark is not installed here: make spark"
    if shutil.which("java") is None:
        words = words or "Java is not installed here: apt-get install openjdk-17-jre-headless"
    if words and os.environ.get("CI") == "true":
        pytest.fail(words)
    if words or found is None or found.origin is None:
        pytest.skip(words)
    return Path(found.origin).parent


@dataclass
class Cluster:
    """A running cluster of this machine's.

    Attributes:
        engine: on it.
        folder: everything that it writes: logs, the events' log, what is spilled.
    """

    engine: SparkEngine
    folder: Path
    marks: int = field(default=0)

    def new_mark(self) -> Path:
        """A file that is not there yet."""
        self.marks += 1
        return self.folder / f"mark-{self.marks}"

    @property
    def driver(self) -> int:
        """The Java process that hands out the tasks."""
        from pyspark import SparkContext

        return int(SparkContext._gateway.proc.pid)

    @property
    def secret(self) -> str:
        """What its processes know each other by."""
        from pyspark import SparkContext

        found = SparkContext.getOrCreate().getConf().get("spark.authenticate.secret")
        assert len(found) == 64
        return str(found)

    def command_lines(self) -> list[bytes]:
        """How the processes of Java's were started, as everybody on this machine can read it."""
        return [(Path("/proc") / str(each) / "cmdline").read_bytes() for each in _of_java(self.folder / "home")]

    def shuffled(self) -> list[Path]:
        """The files that hold what tasks move to others."""
        return list(self.folder.rglob("shuffle_*.data"))

    def files(self) -> Iterator[tuple[Path, bytes]]:
        """All files that it has written so far."""
        for file in sorted(self.folder.rglob("*")):
            if file.is_file() and not file.is_symlink():
                with contextlib.suppress(FileNotFoundError):
                    yield file, file.read_bytes()


def settings_in(folder: Path) -> dict[str, str]:
    """Settings with which Spark writes nothing outside of a folder."""
    events = folder / "events"
    events.mkdir()
    return {
        "spark.driver.extraJavaOptions": f"{_JAVA} -Djava.io.tmpdir={folder}",
        "spark.driver.memory": "512m",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.enabled": "true",
        "spark.executor.extraJavaOptions": f"{_JAVA} -Djava.io.tmpdir={folder}",
        "spark.executor.memory": "512m",
        "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[1]),
        # The worst that Spark may say.
        "spark.log.level": "INFO",
        # A block of somebody who was killed is not asked for again and again.
        "spark.shuffle.io.maxRetries": "1",
        "spark.shuffle.io.retryWait": "1s",
    }


@contextlib.contextmanager
def running_cluster(pyspark: Path, folder: Path) -> Iterator[Cluster]:
    """Two executors that end with the block, whatever happens in it."""
    home, local = folder / "home", folder / "local"
    home.mkdir()
    local.mkdir()
    # Executors write their logs to a folder `work` of Spark's home.
    for each in (each for each in pyspark.iterdir() if each.name != "work"):
        (home / each.name).symlink_to(each)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_HOME", str(home))
        patch.setenv("SPARK_LOCAL_DIRS", str(local))
        for name in ("PYSPARK_PYTHON", "SPARK_CONF_DIR", "SPARK_REMOTE"):
            patch.delenv(name, raising=False)
        try:
            with SparkEngine(master=MASTER, settings=settings_in(folder), patience=200) as engine:
                yield Cluster(engine, folder)
        finally:
            left = _of_java(home)
            deadline = time.monotonic() + _SECONDS
            while left and time.monotonic() < deadline:
                time.sleep(0.1)
                left = _of_java(home)
            for process in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
    assert not left, "Java's processes outlived their engine"


def _of_java(home: Path) -> list[int]:
    """Java's processes that were started from a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"{home}/".encode() in (process / "cmdline").read_bytes():
                found.append(int(process.name))
    return found


def _kill_my_executor(mark: Path) -> None:
    """The Java process above this worker ends, and with it all that it has dealt; once."""
    if not mark.exists():
        mark.touch()
        # A worker's parent is a daemon of Python's, and that one's parent is the executor.
        above = (Path("/proc") / str(os.getppid()) / "stat").read_text().rpartition(")")[2].split()[1]
        os.kill(int(above), signal.SIGKILL)
        time.sleep(_A_MOMENT)


@dataclass(frozen=True)
class KillsItsExecutor(Dealing):
    """Deals as `Dealing` does, but the executor of one part is killed while it is dealt."""

    mark: Path | None = None

    def __call__(self, part: tuple[int, int]) -> Iterable[tuple[int, Rows]]:
        if self.mark is not None and part[0] == 4:
            _kill_my_executor(self.mark)
        return super().__call__(part)


@dataclass(frozen=True)
class Says:
    """A tally that raises, and writes down that it was asked."""

    error: Exception
    asked: Path

    def __call__(self, part: int) -> int:
        with self.asked.open("a") as file:
            file.write(f"{part}\n")
        raise self.error


@dataclass(frozen=True)
class KillsTheDriver:
    """A tally that ends the Java process of whoever asks."""

    driver: int

    def __call__(self, _: int) -> int:
        os.kill(self.driver, signal.SIGKILL)
        time.sleep(_A_MOMENT)
        return 0


@dataclass(frozen=True)
class Whispering(Dealing):
    """Deals as `Dealing` does, and leaves a word in the executor's log."""

    word: str = ""

    def __call__(self, part: tuple[int, int]) -> Iterable[tuple[int, Rows]]:
        print(self.word, file=sys.stderr, flush=True)
        return super().__call__(part)


@dataclass(frozen=True)
class KeyedByTheAttempt:
    """A wrong twin of `Dealing`: the bits are new whenever a task is run."""

    key: Entrusted

    def __call__(self, part: tuple[int, int]) -> Iterable[tuple[int, Rows]]:
        rows = rows_of(part)
        chosen = uniform_below(5, part[1], bits=RandomBits.secure())
        return [(bucket, rows[chosen == bucket]) for bucket in range(5)]


@dataclass(frozen=True)
class SeenOverAKill:
    """What a bucket holds; the executor of one bucket is killed, and with it what others have not gathered yet."""

    mark: Path

    def __call__(self, gathered: Gathered) -> dict[int, bytes]:
        if gathered.bucket == 1:
            _kill_my_executor(self.mark)
        return seen(gathered)
