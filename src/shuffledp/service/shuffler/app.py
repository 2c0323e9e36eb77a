"""The shuffler over HTTP."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from shuffledp.service.http import BINARY, JSON, Endpoint, build_app, read_body, text_of, whole_query
from shuffledp.service.openapi import shuffler_openapi
from shuffledp.service.problems import BAD_REQUEST, TOO_LARGE, RefusedError
from shuffledp.service.shuffler.desk import Seat
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.tokens import ADMIN, ENROL, READ, Tokens
from shuffledp.service.wire import ID_BYTES, MOST_REPORTS_AN_UPLOAD, SentReport, is_id, split_single_body, unpack_upload

_LARGEST_TASK = 1 << 20
_LARGEST_UPLOAD = 64 << 20
_FRAME_BYTES = 2 * ID_BYTES + 4


def shuffler_app(server: ShufflerServer, tokens: Tokens) -> Starlette:
    """The application that serves this shuffler."""

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
        answer = await asyncio.wrap_future(server.accept(task_id, SentReport(report_id, seat, body)))
        server.accepted(answer)
        return JSONResponse({"new": answer.new}, 201 if answer.new else 200)

    async def post_reports(request: Request) -> Response:
        task_id = request.path_params["task_id"]
        longest = server.routing(task_id).longest_report_bytes + _FRAME_BYTES
        body = await read_body(request, min(_LARGEST_UPLOAD, MOST_REPORTS_AN_UPLOAD * longest))
        reports = list(unpack_upload(body))
        if len(reports) > MOST_REPORTS_AN_UPLOAD:
            raise RefusedError(TOO_LARGE, f"an upload holds at most {MOST_REPORTS_AN_UPLOAD} reports: send fewer.")
        waiting = [asyncio.wrap_future(server.accept(task_id, report)) for report in reports]
        answers = await asyncio.gather(*waiting, return_exceptions=True)
        results = []
        for report, answer in zip(reports, answers, strict=True):
            result: dict[str, Any] = {"report_id": report.report_id}
            if isinstance(answer, RefusedError):
                result |= {"status": answer.kind.status, "problem": answer.document()}
            elif isinstance(answer, BaseException):
                raise answer
            else:
                server.accepted(answer)
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


def _seat(seat: Seat) -> dict[str, Any]:
    batches = [asdict(batch) for batch in seat.batches]
    return {"seat": seat.seat, "lease_seconds": seat.lease_seconds, "batches": batches}
