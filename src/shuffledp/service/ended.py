"""Tasks that have ended: what a store keeps in the place of their documents, for good.

A task ends when all its batches were read, or when its operator says so. Its id stays known: whoever would serve the
same task again would ask the same people twice.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from shuffledp.files import other_version

VERSION = 1


def today() -> str:
    """The day, as a store keeps it: a time of day would say when the last person reported."""
    return datetime.now(UTC).date().isoformat()


@dataclass(frozen=True, slots=True)
class Purged:
    """What was deleted of a task that has ended.

    Attributes:
        task_id: the task, a campaign, or a round of one.
        what: how many of each kind of record, by the kind.
    """

    task_id: str
    what: dict[str, int]


@dataclass(frozen=True, slots=True)
class Ended:
    """What is left of a task or a campaign that has ended.

    Attributes:
        when: the day, as YYYY-MM-DD.
        task: its document, where its answers can still be read; None where nothing is kept.

    >>> Ended.of(Ended("2026-01-31").text), Ended.of("{}")
    (Ended(when='2026-01-31', task=None), None)
    """

    when: str
    task: str | None = None

    @property
    def text(self) -> str:
        """What a store keeps."""
        return json.dumps({"version": VERSION, "ended": self.when, "task": self.task})

    @classmethod
    def of(cls, text: str) -> "Ended | None":
        """What a store's text says of a task that has ended; None where it has not."""
        if '"ended"' not in text:
            return None
        document: Any = json.loads(text)
        if not isinstance(document, dict) or set(document) != {"version", "ended", "task"}:
            return None
        if document["version"] != VERSION:
            raise other_version("ended.version", document["version"], VERSION)
        return cls(document["ended"], document["task"])
