"""Which Spark an engine takes, starts or refuses, and when it gives up: without any Spark, by what stands in for it."""

import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from shuffledp.engines.spark import SparkEngine, watching
from shuffledp.engines.spark.failing import broken, reason
from shuffledp.engines.spark.sessions import require_encryption
from shuffledp.engines.spark.watching import Watch
from shuffledp.errors import ParameterError, WorkLostError

ENCRYPTED = {"spark.io.encryption.enabled": "true"}
SENT = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}


@pytest.fixture
def pyspark(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What stands in for pyspark: no Spark is there, and none can be started."""
    context = SimpleNamespace(_active_spark_context=None, _gateway=None)
    module = SimpleNamespace(SparkContext=context, InheritableThread=threading.Thread)
    monkeypatch.setitem(sys.modules, "pyspark", module)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "pyspark.java_gateway", None)
    monkeypatch.delitem(sys.modules, "pyspark.sql.connect.session", raising=False)
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    return module


def test_pyspark_and_java_are_asked_for_in_a_sentence(
    pyspark: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(ParameterError, match="needs Java 17 or later"):
        SparkEngine()
    monkeypatch.setenv("SPARK_REMOTE", "sc://host")
    with pytest.raises(ParameterError, match="cannot work over Spark Connect"):
        SparkEngine()
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(ParameterError, match=r"needs pyspark, which is not installed.*shuffledp\[spark\]"):
        SparkEngine()
    with pytest.raises(ParameterError, match="memory must be at least"):
        SparkEngine(memory=1 << 20)


def test_a_spark_that_is_there_and_does_not_encrypt_is_refused(pyspark: SimpleNamespace) -> None:
    settings: dict[str, str] = {}
    there = SimpleNamespace(master="local[2]", getConf=lambda: SimpleNamespace(getAll=settings.items))
    pyspark.SparkContext._active_spark_context = there
    with pytest.raises(ParameterError, match=r"spark\.io\.encryption\.enabled must be true .* got false"):
        SparkEngine()
    settings.update(ENCRYPTED)
    SparkEngine()
    there.master = "spark://host:7077"
    with pytest.raises(ParameterError, match=r"spark\.authenticate must be true"):
        SparkEngine()


@pytest.mark.parametrize(
    ("master", "settings", "missing"),
    [
        ("local[*]", {}, "spark.io.encryption.enabled"),
        ("local-cluster[2,1,512]", SENT, "spark.io.encryption.enabled"),
        ("yarn", SENT | {"spark.io.encryption.enabled": "no"}, "spark.io.encryption.enabled"),
        ("yarn", ENCRYPTED, "spark.authenticate"),
        ("k8s://host", ENCRYPTED | {"spark.authenticate": "true"}, "spark.network.crypto.enabled"),
        ("k8s://host", ENCRYPTED | {"spark.ssl.rpc.enabled": "true"}, "spark.authenticate"),
        ("local[2]", ENCRYPTED, None),
        ("yarn", ENCRYPTED | SENT, None),
        ("yarn", ENCRYPTED | {"spark.authenticate": "TRUE", "spark.ssl.rpc.enabled": "true"}, None),
    ],
)
def test_what_is_written_and_sent_must_be_encrypted(master: str, settings: dict[str, str], missing: str | None) -> None:
    if missing is None:
        require_encryption(settings, master)
        return
    with pytest.raises(ParameterError) as refused:
        require_encryption(settings, master)
    assert refused.value.parameter == missing


def test_a_new_spark_that_would_not_encrypt_is_not_even_started(pyspark: SimpleNamespace) -> None:
    with pytest.raises(ParameterError, match="encryption"):
        SparkEngine(settings={"spark.io.encryption.enabled": "false"})
    with pytest.raises(ParameterError, match="crypto"):
        SparkEngine(master="yarn", settings={"spark.network.crypto.enabled": "false"})


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (": org.apache.spark.SparkException: All masters are unresponsive! Giving up.\n\tat a.b", "All masters are"),
        (
            "Job aborted due to stage failure: Task 0 in stage 7.0 failed 4 times, most recent failure: Lost task 0.3 "
            "in stage 7.0 (TID 9) (host executor 1): org.apache.spark.api.PythonException: Traceback (most recent "
            'call last):\n  File "a.py", line 1, in f\n    raise e\nValueError: first\n\nDuring handling:\n\nTraceback '
            '(most recent call last):\n  File "b.py", line 2, in g\nOSError: disk\n\n\tat org.apache.spark.api.python',
            "OSError: disk",
        ),
        ("java.lang.OutOfMemoryError: Java heap space", "Java heap space"),
        ("26/11/17 21:06:47 ERROR SparkContext: Error initializing.\n", "Error initializing."),
        ("", "it did not say why"),
    ],
)  # fmt: skip
def test_one_line_of_what_spark_says_tells_why(words: str, why: str) -> None:
    assert why in reason(words)
    assert "\n" not in reason(words)


def test_workers_without_this_package_are_said_to_be_so() -> None:
    missing = RuntimeError("Traceback (most recent call last):\nModuleNotFoundError: No module named 'shuffledp'\n")
    assert "must import shuffledp on all machines, got one that cannot" in str(broken("Spark gave up", missing))
    assert "PYSPARK_PYTHON" in str(broken("Spark gave up", RuntimeError("[PYTHON_VERSION_MISMATCH] 3.11 and 3.12")))
    assert str(broken("Spark gave up", RuntimeError("Why not."))) == "Spark gave up: Why not. Nothing was released."


def test_a_java_that_does_not_run_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    exited = RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.")
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert str(broken("Spark gave up", exited)).startswith("JAVA_HOME must be a Java that runs, 17 or later, got /now")
    monkeypatch.delenv("JAVA_HOME")
    assert "Spark gave up: [JAVA_GATEWAY_EXITED]" in str(broken("Spark gave up", exited))


class _NoExecutors:
    """A context whose jobs wait until they are cancelled."""

    master = "spark://nowhere"

    def __init__(self) -> None:
        self.cancelled = threading.Event()
        self.counted = SimpleNamespace(value=0, add=lambda more: None)

    def accumulator(self, _: int) -> Any:
        return self.counted

    def setJobGroup(self, *_: Any, **__: Any) -> None:  # noqa: N802
        pass

    def cancelJobGroup(self, _: str) -> None:  # noqa: N802
        self.cancelled.set()

    def statusTracker(self) -> Any:  # noqa: N802
        return SimpleNamespace(getJobIdsForGroup=lambda _: [])


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> Iterator[_NoExecutors]:
    monkeypatch.setattr(watching, "_ASK_EVERY", 0.01)
    monkeypatch.setattr(watching, "_LOOK_EVERY", 0.01)
    found = _NoExecutors()
    yield found
    found.cancelled.set()


def test_a_job_whose_tasks_nobody_takes_is_given_up(pyspark: SimpleNamespace, hurried: _NoExecutors) -> None:
    with pytest.raises(WorkLostError, match=r"No task has run on spark://nowhere for 0\.05 seconds"):
        Watch(hurried, 1, None, 0.05).run(lambda: hurried.cancelled.wait(10))
    assert hurried.cancelled.is_set()


def test_a_job_that_is_interrupted_is_cancelled(pyspark: SimpleNamespace, hurried: _NoExecutors) -> None:
    def stop(done: int) -> None:
        raise KeyboardInterrupt(done)

    hurried.counted.value = 7
    with pytest.raises(KeyboardInterrupt, match="3"):
        Watch(hurried, 3, stop, 10).run(lambda: hurried.cancelled.wait(10))
    assert hurried.cancelled.is_set()


class _AwayError(Exception):
    """As pyspark raises them."""

    __module__ = "py4j.protocol"


@pytest.mark.parametrize(
    ("stopped", "said"), [(True, r"spark://nowhere has stopped"), (False, "Spark gave the job up: why not")]
)
def test_a_spark_that_has_stopped_is_told_from_one_that_gave_up(
    pyspark: SimpleNamespace, hurried: _NoExecutors, stopped: bool, said: str
) -> None:
    java = SimpleNamespace(isStopped=lambda: stopped)
    hurried._jsc = SimpleNamespace(sc=lambda: java)  # type: ignore[attr-defined]

    def fail() -> None:
        raise _AwayError("why not")

    with pytest.raises(WorkLostError, match=said):
        Watch(hurried, 1, None, 10).run(fail)
