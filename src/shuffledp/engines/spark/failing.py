"""What Spark says when it gives up, in a sentence: its own words are stacks of several languages."""

import os
import re

from shuffledp.errors import ParameterError, ShuffleDPError, WorkLostError

_INSTALL = "install the same versions of this package and of Python on all machines: docs/howto/run-on-spark.md"
_TRACE = "Traceback (most recent call last):"
_LOST = re.compile(r"Lost task \S+ in stage \S+ \(TID \d+\)[^:]*: (.+)")
_SAID = re.compile(r"(?:Caused by: \S+|\S+(?:Exception|Error)|.* ERROR \S+): (.+)")


def reason(words: str) -> str:
    """The one line of what Spark says that tells why.

    >>> reason("Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent failure: Lost task "
    ...        "0.3 in stage 1.0 (TID 3) (host executor 1): ExecutorLostFailure (executor 1 exited) Reason: killed")
    'ExecutorLostFailure (executor 1 exited) Reason: killed'
    """
    _, found, trace = words.rpartition(_TRACE)
    if found:
        # After the lines of the trace, which are indented, comes the error itself.
        return next((line for line in trace.splitlines() if line[:1].strip()), trace).strip()
    for pattern in (_LOST, _SAID):
        told = pattern.search(words)
        if told:
            return told[1].strip()
    return words.strip().partition("\n")[0] or "it did not say why"


def broken(what: str, error: BaseException, more: str = "") -> ShuffleDPError:
    """What to raise where Spark has given up.

    Args:
        what: what failed, as the beginning of a sentence.
        error: what pyspark raised.
        more: what Java's process has written.
    """
    words = f"{error}\n{more}"
    if "No module named 'shuffledp" in words:
        return ParameterError("PYSPARK_PYTHON", "one that cannot", "must import shuffledp on all machines", _INSTALL)
    if "PYTHON_VERSION_MISMATCH" in words or "different minor version" in words:
        return ParameterError("PYSPARK_PYTHON", "another version of Python", "must be as here", _INSTALL)
    if "JAVA_GATEWAY_EXITED" in words and (home := os.environ.get("JAVA_HOME")):
        return ParameterError("JAVA_HOME", home, "must be a Java that runs, 17 or later", "mend it, or unset it")
    return WorkLostError(f"{what}: {reason(words).rstrip('.')}. Nothing was released.")


def is_of_spark(error: BaseException) -> bool:
    """Whether it was raised by pyspark or on the way to Java, and not by what a task does."""
    return type(error).__module__.partition(".")[0] in ("pyspark", "py4j") or isinstance(error, ConnectionError)
