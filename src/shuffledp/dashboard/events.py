"""News as it happens, as server-sent events: a page hears of a release within a second."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.responses import Response, StreamingResponse

from shuffledp.service.problems import TOO_MANY, RefusedError

LOOK_SECONDS = 0.5
"""How often the store is looked at for everybody who follows one task."""
_QUIET_SECONDS = 15.0
MOST_FOLLOWERS = 64
"""Streams at once: a server has few connections, and shufflers need some."""


@dataclass
class News:
    """Followers of tasks and campaigns; however many follow one, the store is asked once.

    Attributes:
        most: streams that are open at once at most.
        is_over: whether the server was told to stop: streams then end by themselves, and hold nobody up.
    """

    most: int = MOST_FOLLOWERS
    is_over: Callable[[], bool] = lambda: False
    _followers: int = 0
    _looks: dict[str, "asyncio.Task[str]"] = field(default_factory=dict, repr=False)

    def follow(self, name: str, look: Callable[[], Any]) -> Response:
        """A stream of what `look` answers, now and whenever it answers something else.

        Args:
            name: the same for all who follow the same.
            look: answers JSON; runs in a thread.

        Raises:
            RefusedError: too many follow already.
        """
        if self._followers >= self.most:
            raise RefusedError(TOO_MANY, f"{self.most} pages are followed already: close one.", retry_after=5)
        headers = {"X-Accel-Buffering": "no"}
        return StreamingResponse(self._stream(name, look), media_type="text/event-stream", headers=headers)

    async def _stream(self, name: str, look: Callable[[], Any]) -> AsyncIterator[str]:
        self._followers += 1
        try:
            loop = asyncio.get_running_loop()
            known, said = "", loop.time()
            while not self.is_over():
                try:
                    found = await asyncio.shield(self._look(name, look))
                except RefusedError:
                    # The store is closed, or the task is not served any more: a browser asks again by itself.
                    return
                if found != known:
                    known, said = found, loop.time()
                    yield f"data: {found}\n\n"
                elif loop.time() - said > _QUIET_SECONDS:
                    said = loop.time()
                    # Whoever is gone is noticed by writing to it.
                    yield ": quiet\n\n"
        finally:
            self._followers -= 1

    def _look(self, name: str, look: Callable[[], Any]) -> "asyncio.Task[str]":
        """What is known half a second from now at most, looked up once for all who wait for it."""
        waiting = self._looks.get(name)
        if waiting is None or waiting.done():
            waiting = self._looks[name] = asyncio.ensure_future(self._later(look))
        return waiting

    async def _later(self, look: Callable[[], Any]) -> str:
        await asyncio.sleep(LOOK_SECONDS)
        return json.dumps(await asyncio.to_thread(look), sort_keys=True)
