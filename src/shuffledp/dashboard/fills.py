"""How full the shuffler's open batches are, as the shuffler says it: asked for while somebody looks, shown as bars."""

import threading
import time
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field

import httpx

from shuffledp.dashboard.elements import Html, element, section
from shuffledp.errors import ShuffleDPError
from shuffledp.randomness import RandomBits
from shuffledp.service.client.calls import Calls, check_url
from shuffledp.service.fill import EVERY_SECONDS, FULL, Fill
from shuffledp.service.routing import Routing

_TIMEOUT_SECONDS = 5.0
# What nobody has looked at for so long is forgotten.
_KEPT_SECONDS = 6 * EVERY_SECONDS
# Of fewer people a shuffler says only whether a batch is full.
_LEAST_SIZE = 20
# Before the first answer.
_NOT_YET = Fill(())
_NOTE = (
    f"The shuffler says it, renewed every {EVERY_SECONDS} seconds at most and rounded down, in steps of ten people or "
    f"more: a batch of fewer than 100 has fewer steps, and one of fewer than {_LEAST_SIZE} is open or full."
)


def shuffler_at(url: str, token: str) -> Callable[[str], Fill]:
    """Questions to a shuffler about tasks and rounds.

    Args:
        url: its address, or that of the first hop.
        token: its token for read.
    """
    http = httpx.Client(timeout=_TIMEOUT_SECONDS)
    calls = Calls(check_url(url, "fill-from"), token, http, RandomBits.secure(), patience=0.0)
    return lambda task_id: Fill.from_document(calls.json(f"/v1/tasks/{task_id}/fill"))


def in_background(work: Callable[[], None]) -> None:
    """Begin this and do not wait for it."""
    threading.Thread(target=work, name="fill", daemon=True).start()


@dataclass
class _Known:
    """When a shuffler was asked about a task, and what it has answered by now."""

    when: float
    fill: Fill | None = None
    is_under_way: bool = False


@dataclass
class FillWatch:
    """What a shuffler said of tasks that somebody looks at; it is asked every ten seconds, however many look.

    Attributes:
        ask: the shuffler, which may take its time, or fail with a ShuffleDPError.
        clock: seconds that never go back.
        begin: runs what asks it, in the background.
    """

    ask: Callable[[str], Fill]
    clock: Callable[[], float] = time.monotonic
    begin: Callable[[Callable[[], None]], None] = in_background
    _asked: dict[str, _Known] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def of(self, task_id: str) -> Fill | None:
        """What is known now, without waiting: of no level before the first answer; None where there was none.

        Args:
            task_id: a task or a round that somebody looks at.
        """
        with self._lock:
            now, known = self.clock(), self._asked.get(task_id)
            if known is not None and (known.is_under_way or now - known.when < EVERY_SECONDS):
                return known.fill
            self._asked = {each: one for each, one in self._asked.items() if now - one.when < _KEPT_SECONDS}
            # Longer ago than this nobody looked, and what was said then is not so any more.
            known = self._asked.get(task_id)
            self._asked[task_id] = asked = _Known(now, _NOT_YET if known is None else known.fill, is_under_way=True)
        self.begin(lambda: self._ask(task_id, asked))
        return asked.fill

    def _ask(self, task_id: str, asked: _Known) -> None:
        found = None
        try:
            found = self.ask(task_id)
        except ShuffleDPError:
            # It does not answer, or does not know the task or the token: the page says that it is not known.
            pass
        finally:
            asked.fill, asked.is_under_way = found, False


def fill_part(fill: Fill | None, routing: Routing) -> Html:
    """A bar and a sentence for each level's shuffler.

    Args:
        fill: what the shuffler has said; None where it was asked and has not answered.
        routing: of the task or the round.
    """
    sizes = routing.sizes_by_level
    known: tuple[int | None, ...] | None = None
    if fill is not None and len(fill.tenths) in (0, len(sizes)):
        known = fill.tenths or (None,) * len(sizes)
    rows = []
    for level, of_level in enumerate(sizes, 1):
        name = f"shuffler {level}" if len(sizes) > 1 else "the shuffler"
        tenths = None if known is None else known[level - 1]
        bar = None
        if tenths is not None:
            bar = element("meter", min=0, max=FULL, value=tenths, aria_label=f"{name}, tenths of a batch")
        words = "not known: the shuffler does not answer" if known is None else _words(tenths, of_level)
        rows.append(element("li", bar, element("span", f"{name}: {words}")))
    return section(
        "How full the open batches are", element("ul", rows, class_="fills"), element("p", _NOTE, class_="note"),
        id="fills",
    )  # fmt: skip


def said(fill: Fill | None) -> Sequence[int | None] | None:
    """What an event says of a fill."""
    return None if fill is None else list(fill.tenths)


def _words(tenths: int | None, sizes: Set[int]) -> str:
    if tenths is None:
        return "not known yet"
    if tenths == FULL:
        return "full, and about to be mixed and sent"
    if max(sizes) < _LEAST_SIZE:
        return "open"
    return f"about {tenths} {'tenth' if tenths == 1 else 'tenths'} full"
