"""The shuffler over HTTP."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import fields
from itertools import islice
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from shuffledp.service.http import BINARY, JSON, Endpoint, build_app, read_body, text_of, whole_query
from shuffledp.service.openapi import shuffler_openapi
from shuffledp.service.problems import BAD_REQUEST, TOO_LARGE, RefusedError
from shuffledp.service.routing import SeatInBatch
from shuffledp.service.shuffler.desk import Seat
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.tokens import ADMIN, ENROL, READ, Tokens
from shuffledp.service.wire import ID_BYTES, MOST_REPORTS_AN_UPLOAD, SentReport, is_id, split_single_body, unpack_upload

T = TypeVar("T")

_LARGEST_TASK = 1 << 20
_LARGEST_UPLOAD = 64 << 20
_FRAME_BYTES = 2 * ID_BYTES + 4
_NEW, _KNOWN = b'{"new":true}', b'{"new":false}'
_BATCH = tuple(each.name for each in fields(SeatInBatch))


def shuffler_app(server: ShufflerServer, tokens: Tokens) -> Starlette:
    """The application that serves this shuffler."""
    commits = _Commits()

    async def create_task(request: Request) -> Response:
        body = await read_body(request, _LARGEST_TASK)
        task_id, new = await asyncio.to_thread(server.add_task, text_of(body))
        return JSONResponse({"task_id": task_id}, 201 if new else 200)

    async def show_task(request: Request) -> Response:
        task_id = request.path_params["task_id"]
        routing = server.routing(task_id)
        counts = await asyncio.to_thread(server.counts, task_id)
        return JSONResponse({"task_id": task_id, "routing": routing.document(), "counts": counts, "time": time.time()})

    async def take_seats(request: Request) -> Response:
        count = whole_query(request, "count", 1, 1, MOST_REPORTS_AN_UPLOAD)
        seats = await asyncio.wrap_future(server.take_seats(request.path_params["task_id"], count))
        server.seats.inc(len(seats))
        return JSONResponse({"seats": [_seat(seat) for seat in seats]}, 201)

    async def put_report(request: Request) -> Response:
        task_id, report_id = request.path_params["task_id"], request.path_params["report_id"]
        longest = server.routing(task_id).longest_report_bytes
        if not is_id(report_id):
            raise RefusedError(BAD_REQUEST, f"a report's id is {ID_BYTES} bytes in lower-case hexadecimal: draw one.")
        seat, body = split_single_body(await read_body(request, longest + ID_BYTES))
        [answer] = await commits.result(server.accept(task_id, [SentReport(report_id, seat, body)]))
        if isinstance(answer, RefusedError):
            raise answer
        return Response(*((_NEW, 201) if answer.new else (_KNOWN, 200)), media_type=JSON)

    async def post_reports(request: Request) -> Response:
        task_id = request.path_params["task_id"]
        longest = server.routing(task_id).longest_report_bytes + _FRAME_BYTES
        body = await read_body(request, min(_LARGEST_UPLOAD, MOST_REPORTS_AN_UPLOAD * longest))
        reports = list(islice(unpack_upload(body), MOST_REPORTS_AN_UPLOAD + 1))
        if len(reports) > MOST_REPORTS_AN_UPLOAD:
            raise RefusedError(TOO_LARGE, f"an upload holds at most {MOST_REPORTS_AN_UPLOAD} reports: send fewer.")
        answers = await commits.result(server.accept(task_id, reports))
        results = []
        for report, answer in zip(reports, answers, strict=True):
            result: dict[str, Any] = {"report_id": report.report_id}
            if isinstance(answer, RefusedError):
                result |= {"status": answer.kind.status, "problem": answer.document()}
            else:
                result["status"] = 201 if answer.new else 200
            results.append(result)
        return JSONResponse({"results": results})

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        server.start()
        yield
        await asyncio.to_thread(server.stop)

    endpoints = [
        Endpoint("POST", "/v1/tasks", create_task, (ADMIN,), JSON),
        Endpoint("GET", "/v1/tasks/{task_id}", show_task, (ENROL, READ)),
        Endpoint("POST", "/v1/tasks/{task_id}/seats", take_seats, (ENROL,)),
        Endpoint("PUT", "/v1/tasks/{task_id}/reports/{report_id}", put_report, (ENROL,), BINARY),
        Endpoint("POST", "/v1/tasks/{task_id}/reports", post_reports, (ENROL,), BINARY),
    ]
    return build_app(endpoints, tokens, server.metrics, shuffler_openapi(), lifespan=lifespan)


class _Commits:
    """Hands what the store's thread has done to the event loop: one wake-up for all that one commit answers."""

    def __init__(self) -> None:
        self._done: deque[asyncio.Future[None]] = deque()
        self._is_waking = False

    async def result(self, future: "Future[T]") -> T:
        """Its result, once it is there."""
        await self.until_done(future)
        return future.result()

    async def until_done(self, future: "Future[Any]") -> None:
        """Wait for it; who is cancelled meanwhile gives it up."""
        if future.done():
            return
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        future.add_done_callback(lambda _: self._wake(loop, waiter))
        try:
            await waiter
        except asyncio.CancelledError:
            future.cancel()
            raise

    def _wake(self, loop: asyncio.AbstractEventLoop, waiter: "asyncio.Future[None]") -> None:
        self._done.append(waiter)
        if not self._is_waking:
            self._is_waking = True
            try:
                loop.call_soon_threadsafe(self._hand_over)
            except RuntimeError:
                # The loop was closed: nobody waits any more.
                self._is_waking = False

    def _hand_over(self) -> None:
        # Before looking: what is appended from here on wakes the loop again.
        self._is_waking = False
        while self._done:
            waiter = self._done.popleft()
            if not waiter.done():
                waiter.set_result(None)


def _seat(seat: Seat) -> dict[str, Any]:
    batches = [{name: getattr(batch, name) for name in _BATCH} for batch in seat.batches]
    return {"seat": seat.seat, "lease_seconds": seat.lease_seconds, "batches": batches}
