"""An engine whose processes start while a plan is being made: both take a second, on different cores."""

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from shuffledp.cli.engine_options import EngineAsked

if TYPE_CHECKING:
    from shuffledp.engines import Engine


class EarlyEngine(AbstractContextManager["EarlyEngine"]):
    """The engine that is asked for; leaving its block ends what nobody took.

    Args:
        asked: which one, and how much it may take.
        needed: a function of the module that works on it.
        least: rows from which on processes are sure to be needed.
    """

    def __init__(self, asked: EngineAsked, needed: Any, least: int) -> None:
        self._asked, self._needed, self._least = asked, needed, least
        self._engine: Engine | None = None

    def begin(self, rows: int, *needed: Any) -> None:
        """Start the processes, if there are rows enough.

        Args:
            rows: how many there are.
            needed: classes and functions that tasks will use.
        """
        if self._asked.engine == "local" and rows >= self._least and self._engine is None:
            self._engine = self._asked.open()
            self._engine.get_ready(self._needed, *needed)

    def open(self, asked: EngineAsked) -> "Engine":
        """The engine, to be closed by whoever opens it: the one that has begun, where it has as many processes.

        Args:
            asked: which one, now that it is known how much its tasks take.
        """
        engine = asked.open()
        begun, self._engine = self._engine, None
        if begun is None:
            return engine
        if begun.tasks_at_once == engine.tasks_at_once:
            return begun
        begun.close()
        return engine

    def __exit__(self, *_: Any) -> None:
        if self._engine is not None:
            self._engine.close()
