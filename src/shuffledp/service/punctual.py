"""HTTP connections on which a request's head must end in time: who sends a byte now and then holds one of few."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 10.0


class PunctualProtocol(HttpToolsProtocol):
    """Closes a connection whose request's head has not ended in time; bodies have limits of their own."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """From here on the first head is waited for."""
        super().connection_made(transport)
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        """Between two requests the first byte of the next begins its time; more bytes do not begin it again."""
        if self._late is None and (self.cycle is None or self.cycle.response_complete):
            self._expect_head()
        super().data_received(data)

    def on_headers_complete(self) -> None:
        """The head is here."""
        self._heard()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody waits any more."""
        self._heard()
        super().connection_lost(exc)

    def _expect_head(self) -> None:
        self._late = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _heard(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
