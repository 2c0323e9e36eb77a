"""The analyzer over HTTP."""

import asyncio
import io
import time
from dataclasses import asdict
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from shuffledp.service.analyzer.server import AnalyzerServer
from shuffledp.service.http import Handler, build_app, read_body, whole_query
from shuffledp.service.openapi import AFTER, ANALYZER, ARROW, LIMIT
from shuffledp.service.store.contract import Progress, Release
from shuffledp.service.task import Task
from shuffledp.service.tokens import Tokens


def analyzer_app(server: AnalyzerServer, tokens: Tokens) -> Starlette:
    """The application that serves this analyzer."""

    async def show_task(request: Request) -> Response:
        task = server.desk.task(request.path_params["task_id"])
        progress = await asyncio.to_thread(server.progress, task.id)
        return JSONResponse({"task_id": task.id, "task": task.document, **asdict(progress), "time": time.time()})

    async def take_batch(request: Request) -> Response:
        task_id, batch_id = request.path_params["task_id"], request.path_params["batch_id"]
        # Somewhat too long is a wrong length, which says more than "too large".
        body = await read_body(request, 2 * server.desk.batch_bytes(task_id, batch_id))
        new = await asyncio.to_thread(server.deliver, task_id, batch_id, body)
        return JSONResponse({"new": new}, 201 if new else 200)

    async def show_estimate(request: Request) -> Response:
        task = server.desk.task(request.path_params["task_id"])
        release, progress = await asyncio.to_thread(server.latest, task.id)
        return JSONResponse(_estimate(task, release, progress))

    async def show_history(request: Request) -> Response:
        task_id = request.path_params["task_id"]
        server.desk.task(task_id)
        after = whole_query(request, AFTER)
        most = whole_query(request, LIMIT)
        releases = await asyncio.to_thread(server.history, task_id, after, most)
        if ARROW in request.headers.get("accept", ""):
            return Response(await asyncio.to_thread(_as_arrow, releases), media_type=ARROW)
        return JSONResponse({"task_id": task_id, "releases": releases})

    handlers: dict[str, Handler] = {
        "showTask": show_task,
        "takeBatch": take_batch,
        "showEstimate": show_estimate,
        "showHistory": show_history,
    }
    return build_app(server, ANALYZER, handlers, tokens)


def _estimate(task: Task, release: Release | None, progress: Progress) -> dict[str, Any]:
    """The newest release, or nothing known yet, with the privacy that it cost."""
    nothing = dict.fromkeys(("time", "estimate", "standard_error", "bound", "confidence"))
    known = nothing | {"dropped": 0, "void": 0} if release is None else asdict(release)
    return {
        "task_id": task.id,
        **known,
        "users": task.plan.users,
        "epsilon": task.plan.privacy.epsilon,
        "delta": task.plan.privacy.delta,
        "released_batches": progress.batches_read,
        "void_batches": progress.batches_void,
    }


def _as_arrow(releases: list[dict[str, Any]]) -> bytes:
    import pyarrow as pa

    names = ("time", "estimate", "standard_error", "bound", "confidence", "dropped", "void")
    table = pa.table({name: [release[name] for release in releases] for name in names})
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()
