"""The Spark that tasks run on: one that is there already, or one that is started and stopped here; encrypted, or none.

Spark writes what it moves between machines, and what it hands to every task, on the disks of its executors. So an
engine works only where all of that is encrypted, and on a cluster also what goes over the network.
"""

import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shuffledp.engines.keyed import JobKey
from shuffledp.engines.spark.failing import broken, is_of_spark
from shuffledp.errors import ParameterError

ON_DISK = "spark.io.encryption.enabled"
WHO_IT_IS = "spark.authenticate"
ON_THE_NETWORK = "spark.network.crypto.enabled"
_TLS = "spark.ssl.rpc.enabled"
_SECRET = "spark.authenticate.secret"
# Where a cluster's own manager makes a secret for each application.
_MAKE_SECRETS = ("yarn", "k8s")
_SECONDS_TO_END = 20.0
# All cores of this machine; and so that a task that dies is tried again, as it is on a cluster.
_ANYWHERE, _HERE = "local[*]", "local[*,4]"

_ENCRYPTED = {ON_DISK: "true", WHO_IT_IS: "true", ON_THE_NETWORK: "true"}
_UNLESS_SAID = {
    "spark.app.name": "shuffledp",
    "spark.io.encryption.keySizeBits": "256",
    "spark.log.level": "ERROR",
    # What travels looks random: it does not get shorter.
    "spark.shuffle.compress": "false",
    "spark.ui.enabled": "false",
}


@dataclass(slots=True)
class RunningSpark:
    """A Spark context, and what of it must be ended.

    Attributes:
        context: pyspark's `SparkContext`.
        gateway: the way to a Java process that was started here; None if context and process are somebody else's.
        log: where that process writes.
    """

    context: Any
    gateway: Any = None
    log: Path | None = None

    def stop(self) -> None:
        """End what was started here, and nothing else."""
        if self.gateway is not None:
            _stop(self.context, self.gateway)
            self.gateway = None
            logging.getLogger().removeFilter(_not_of_py4j)
        if self.log is not None:
            self.log.unlink(missing_ok=True)


def session_for(master: str | None, memory: int, settings: Mapping[str, str]) -> RunningSpark:
    """The Spark of this process if there is one, else a new one.

    Args:
        master: where it must be; None for the one that is there, or where Spark's own settings say, or this machine.
        memory: bytes that Python's processes on one executor take together, beside Java's.
        settings: what else a new one is started with.

    Raises:
        ParameterError: pyspark or Java is missing, the one that is there is elsewhere, or does not encrypt.
        WorkLostError: it did not start.
    """
    pyspark = _pyspark()
    there = pyspark.SparkContext._active_spark_context
    if there is not None:
        if master not in (None, there.master):
            raise ParameterError("master", master, f"must be {there.master}, where this process's Spark is", "stop it")
        if settings:
            raise ParameterError("settings", ", ".join(settings), "are for a new Spark", "stop the one that is there")
        require_encryption(dict(there.getConf().getAll()), there.master)
        return RunningSpark(there)
    require_encryption(_ENCRYPTED | dict(settings), master or _HERE)
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        raise ParameterError("engine", "spark", "needs Java 17 or later, which is not installed", "install it")
    with warnings.catch_warnings():
        # pyspark looks at the versions of what it does not need here.
        warnings.simplefilter("ignore")
        return _started(pyspark, master, memory, dict(settings))


def require_encryption(settings: Mapping[str, str], master: str) -> None:
    """Refuse a Spark that would write, or on a cluster send, in the clear what tasks are given and what they deal.

    Raises:
        ParameterError: a setting that must be on is not.
    """
    needed = [ON_DISK] if master.startswith("local") else [ON_DISK, WHO_IT_IS, ON_THE_NETWORK]
    for name in needed:
        said = settings.get(name, "false")
        if said.lower() != "true" and not (name == ON_THE_NETWORK and settings.get(_TLS, "").lower() == "true"):
            why = "must be true for what Spark writes or sends says who came when, and the job's key"
            raise ParameterError(name, said, why, "set it where Spark is started, as docs/howto/run-on-spark.md says")


def _pyspark() -> Any:
    try:
        import pyspark
    except ModuleNotFoundError as missing:
        way_out = "pip install 'shuffledp[spark]', or leave it out for this machine's cores"
        raise ParameterError("engine", "spark", f"needs {missing.name}, which is not installed", way_out) from None
    if os.environ.get("SPARK_REMOTE") or "pyspark.sql.connect.session" in sys.modules:
        raise ParameterError("engine", "spark", "cannot work over Spark Connect", "give --master, and no SPARK_REMOTE")
    return pyspark


def _started(pyspark: Any, asked: str | None, memory: int, settings: dict[str, str]) -> RunningSpark:
    from pyspark.java_gateway import launch_gateway

    handle, name = tempfile.mkstemp(prefix="shuffledp-spark-", suffix=".log")
    log, gateway, master = Path(name), pyspark.SparkContext._gateway, asked or _HERE
    ours = gateway is None
    try:
        if gateway is None:
            # What Java must know when it starts; the rest goes another way, as everybody can read a command line.
            first = pyspark.SparkConf(loadDefaults=False)
            first.set("spark.ui.showConsoleProgress", "false")
            first.setAll([each for each in settings.items() if each[0].startswith("spark.driver.")])
            gateway = launch_gateway(first, popen_kwargs={"stdout": handle, "stderr": handle})
        conf = pyspark.SparkConf(_jvm=gateway.jvm)
        # A file of settings, or spark-submit, may say where; if nobody does, Spark says that it is all cores of here.
        known = conf.get("spark.master", _ANYWHERE)
        master = asked or (_HERE if known == _ANYWHERE else known)
        _fill(conf, master, memory, settings)
        require_encryption(dict(conf.getAll()), master)
        before = _interrupted_by()
        context = pyspark.SparkContext(gateway=gateway, conf=conf)
        if before is not None:
            signal.signal(signal.SIGINT, before)
    except BaseException as error:
        said = log.read_text("utf-8", "replace")
        if gateway is not None and ours:
            _stop(None, gateway)
        log.unlink(missing_ok=True)
        if isinstance(error, ParameterError) or not isinstance(error, Exception):
            raise
        raise broken(f"Spark could not be started on {master}", error, said) from None
    finally:
        os.close(handle)
    if master.startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        # The same as here: what is first in the path may know nothing of this package.
        context.pythonExec = sys.executable
    if not ours:
        return RunningSpark(context, None, log)
    logging.getLogger().addFilter(_not_of_py4j)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    return RunningSpark(context, gateway, log)


def _fill(conf: Any, master: str, memory: int, settings: dict[str, str]) -> None:
    """All settings of a new Spark: what must be, what was said, and what is sensible where nothing was said."""
    conf.setMaster(master)
    for name, value in (_ENCRYPTED | settings).items():
        conf.set(name, value)
    for name, value in _UNLESS_SAID.items():
        conf.setIfMissing(name, value)
    if master.startswith("local["):
        # Nobody else's machine has to reach this one.
        conf.setIfMissing("spark.driver.host", "127.0.0.1")
        conf.setIfMissing("spark.driver.bindAddress", "127.0.0.1")
    elif master.startswith("local-cluster"):
        conf.setIfMissing(_SECRET, JobKey.generate().raw.hex())
    elif not master.startswith(_MAKE_SECRETS) and not conf.contains(_SECRET):
        way_out = f"give it to the master, to its workers and here, in a file conf/spark-defaults.conf with {_SECRET}"
        raise ParameterError("master", master, "must share a secret with whoever uses it", way_out)
    conf.setIfMissing("spark.executor.memoryOverhead", f"{memory >> 20}m")


def _not_of_py4j(record: logging.LogRecord) -> bool:
    """Whether somebody else than the way to Java says it: an interrupt has one sentence, and no stack beside it."""
    return "py4j" not in Path(record.pathname).parts


def _interrupted_by() -> Any:
    """What is done at an interrupt: Spark would put something of its own in its place, for good."""
    return signal.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None


def _stop(context: Any, gateway: Any) -> None:
    from pyspark import SparkContext

    process = gateway.proc
    try:
        with warnings.catch_warnings():
            # It says so where Java's process is gone already.
            warnings.simplefilter("ignore", RuntimeWarning)
            if context is not None:
                context.stop()
        gateway.shutdown()
    except Exception as error:
        if not is_of_spark(error):
            raise
    finally:
        if SparkContext._gateway is gateway:
            SparkContext._gateway = SparkContext._jvm = None
        if process is not None:
            process.stdin.close()
            try:
                process.wait(_SECONDS_TO_END)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(_SECONDS_TO_END)
