"""Where big work of a command runs: the options --engine, --memory, --processes and --master, and their engine."""

import inspect
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from shuffledp.errors import ParameterError

if TYPE_CHECKING:
    from shuffledp.engines import Engine

EngineName = Literal["local", "spark"]
DEFAULT_MEMORY = "1GB"

_UNITS = {"": 0, "B": 0, "KB": 1, "MB": 2, "GB": 3, "TB": 4}

ENGINE: dict[str, tuple[Any, Any]] = {
    "engine": (
        Annotated[EngineName, typer.Option(help="Where big work runs: all cores here, or Spark.")],
        "local",
    ),
    "memory": (
        Annotated[str, typer.Option(help="What all processes together may take, such as 500MB.", metavar="SIZE")],
        DEFAULT_MEMORY,
    ),
    "processes": (
        Annotated[int | None, typer.Option(help="local: how many work at once; one a core if left out.", metavar="N")],
        None,
    ),
    "master": (
        Annotated[str | None, typer.Option(help="spark: the cluster, such as spark://host:7077.", metavar="URL")],
        None,
    ),
}
"""The options of an engine, by the names of their parameters, each with what it is if it is left out."""


def memory_of(text: str) -> int:
    """How many bytes a size is, as people type it.

    Raises:
        ParameterError: it is none.

    >>> memory_of("1GB"), memory_of("1.5 mb"), memory_of("4096")
    (1073741824, 1572864, 4096)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(I?B)?", text.strip().upper())
    if found is None:
        raise ParameterError("memory", text, "must be a size", "write for instance 500MB or 4GB")
    return int(float(found[1]) * 1024 ** _UNITS[f"{found[2]}B"])


def in_words(size: int) -> str:
    """A size as it is typed after --memory, rounded up so that typing it is enough.

    >>> in_words(3 << 29), in_words(900 << 20), in_words(10)
    ('1.5GB', '900MB', '1MB')
    """
    if size >= 1 << 30:
        return f"{math.ceil(size / (1 << 30) * 10) / 10:g}GB"
    return f"{max(1, math.ceil(size / (1 << 20)))}MB"


@dataclass(frozen=True, slots=True)
class EngineAsked:
    """The engine that the options ask for; it is started when it is opened, and not before.

    Attributes:
        engine: its name.
        memory: bytes that it may take.
        processes: how many work at once, on this machine; None for one a core.
        master: where Spark is; None for this machine.
    """

    engine: EngineName = "local"
    memory: int = 1 << 30
    processes: int | None = None
    master: str | None = None

    @classmethod
    def of(cls, words: dict[str, Any]) -> "EngineAsked":
        """Take the options of an engine out of a command's.

        Raises:
            ParameterError: they contradict each other.
        """
        found = {name: words.pop(name) for name in ENGINE}
        asked = cls(found["engine"], memory_of(found["memory"]), found["processes"], found["master"])
        if asked.engine != "spark" and asked.master is not None:
            raise ParameterError("master", asked.master, "is Spark's", "add --engine spark, or leave it out")
        if asked.engine != "local" and asked.processes is not None:
            raise ParameterError("processes", asked.processes, "is this machine's", "leave it out beside Spark")
        return asked

    def open(self) -> "Engine":
        """The engine, to be closed by whoever opens it."""
        return engine_of(self.engine, self.memory, self.master, self.processes)


HERE = EngineAsked()
"""What nobody has said anything about: all cores of this machine, and a gigabyte."""


def engine_of(
    engine: EngineName = "local", memory: int = 1 << 30, master: str | None = None, processes: int | None = None
) -> "Engine":
    """The engine of this name.

    Args:
        engine: local or spark.
        memory: bytes that it may take.
        master: where Spark is; this machine if left out.
        processes: how many tasks run at once on this machine; one a core if left out.

    Raises:
        ParameterError: too little memory, or Spark is not installed.
    """
    if engine == "local":
        from shuffledp.engines import LocalEngine

        return LocalEngine(processes=processes, memory=memory)
    try:
        from shuffledp.engines.spark import SparkEngine  # type: ignore[import-not-found, unused-ignore]
    except ModuleNotFoundError as missing:
        way_out = "pip install 'shuffledp[spark]', or leave it out for this machine's cores"
        raise ParameterError("engine", engine, f"needs {missing.name}, which is not installed", way_out) from None
    found: Engine = SparkEngine(master=master, memory=memory)
    return found


def on_engine(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of an engine: its parameter `engine` is filled with an `EngineAsked`.

    Goes below `options.takes_plan` or `options.reads_file`, which see the options as the command's own.
    """

    @wraps(command)
    def run(*given: Any, **words: Any) -> None:
        asked = EngineAsked.of(words)
        command(*given, **words, engine=asked)

    kind = inspect.Parameter.KEYWORD_ONLY
    own = list(inspect.signature(command).parameters.values())
    asked = [
        inspect.Parameter(name, kind, default=default, annotation=each) for name, (each, default) in ENGINE.items()
    ]
    taking = [*(each for each in own if each.name != "engine"), *asked]
    taking.sort(key=lambda each: (each.kind == kind, each.name == "as_json"))
    run.__signature__ = inspect.Signature(taking)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in taking}
    del run.__wrapped__
    return run
