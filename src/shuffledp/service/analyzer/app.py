"""The analyzer over HTTP."""

import asyncio
import io
import time
from dataclasses import asdict
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from shuffledp.service.analyzer.leasing import pack_lease
from shuffledp.service.analyzer.results import LARGEST_RESULT_BYTES, PieceResult
from shuffledp.service.analyzer.server import AnalyzerServer
from shuffledp.service.delivery import LARGEST_MANIFEST_BYTES, LARGEST_PIECE_BYTES, LARGEST_WHOLE_BYTES, Manifest
from shuffledp.service.http import Endpoints, build_app, read_body, text_of, whole_in_path, whole_query
from shuffledp.service.limits import Limits
from shuffledp.service.openapi import ARROW, BINARY, JSON, ON_DISK, Query, operation
from shuffledp.service.origins import Origins
from shuffledp.service.store.contract import Progress, Release
from shuffledp.service.task import Task
from shuffledp.service.tokens import HOP, OPEN, READ, Tokens
from shuffledp.tables.reading import is_installed

_AFTER = Query("after", "Only later times.", 0, 0, 10**12)
_AFTER_MODEL = Query("from", "Only from this number on.", 0, 0, 10**12)
_LIMIT = Query("limit", "At most so many.", 1000, 1, 100_000)


NEWEST_SECONDS = 1
"""For so long a cache may answer with the newest model without asking again."""


def analyzer_app(
    server: AnalyzerServer, tokens: Tokens, limits: Limits | None = None, origins: Origins | None = None
) -> Starlette:
    """The application that serves this analyzer.

    Args:
        server: the analyzer itself.
        tokens: who may do what.
        limits: how large and how many requests may be; moderate ones if left out.
        origins: pages of which browsers may read; none if left out.

    Returns:
        An ASGI application.
    """
    return build_app(AnalyzerEndpoints(server), tokens, limits, origins)


class AnalyzerEndpoints(Endpoints[AnalyzerServer]):
    """What an analyzer answers."""

    @operation("GET /v1/tasks/{task_id}", {200: "The task."}, OPEN, READ)
    async def show_task(self, request: Request) -> Response:
        """Its document and how far it is."""
        task = self.server.task(request.path_params["task_id"])
        progress = await asyncio.to_thread(self.server.progress, task.id)
        known = {"task_id": task.id, "task": task.document, "ended": self.server.has_ended(task.id)}
        return JSONResponse({**known, **asdict(progress), "time": time.time()})

    @operation("POST /v1/tasks/{task_id}/batches/{batch_id}", ON_DISK, HOP, takes=BINARY, refuses=(409, 422))
    async def take_batch(self, request: Request) -> Response:
        """A full batch in random order. Repeat it unchanged until it is answered."""
        task_id, batch_id = request.path_params["task_id"], request.path_params["batch_id"]
        # Somewhat too long is a wrong length, which says more than "too large".
        most = min(2 * await asyncio.to_thread(self.server.batch_bytes, task_id, batch_id), LARGEST_WHOLE_BYTES)
        body = await read_body(request, most)
        new = await asyncio.to_thread(self.server.deliver, task_id, batch_id, body)
        return JSONResponse({"new": new}, 201 if new else 200)

    @operation(
        "POST /v1/tasks/{task_id}/batches/{batch_id}/pieces/{piece}", ON_DISK, HOP, takes=BINARY, refuses=(409, 422)
    )
    async def take_piece(self, request: Request) -> Response:
        """A piece of a large batch: whole ciphertexts, a megabyte at most. Repeat it unchanged until it is answered."""
        task_id, batch_id = request.path_params["task_id"], request.path_params["batch_id"]
        number = whole_in_path(request, "piece")
        await asyncio.to_thread(self.server.batch_bytes, task_id, batch_id)
        body = await read_body(request, LARGEST_PIECE_BYTES)
        new = await asyncio.to_thread(self.server.take_piece, task_id, batch_id, number, body)
        return JSONResponse({"new": new}, 201 if new else 200)

    @operation("POST /v1/tasks/{task_id}/batches/{batch_id}/manifest", ON_DISK, HOP, takes=JSON, refuses=(409, 422))
    async def take_manifest(self, request: Request) -> Response:
        """All pieces of a large batch were sent: how many, how many bytes, their digests. The batch is then there."""
        task_id, batch_id = request.path_params["task_id"], request.path_params["batch_id"]
        await asyncio.to_thread(self.server.batch_bytes, task_id, batch_id)
        manifest = Manifest.from_text(text_of(await read_body(request, LARGEST_MANIFEST_BYTES)))
        new = await asyncio.to_thread(self.server.take_manifest, task_id, batch_id, manifest)
        return JSONResponse({"new": new}, 201 if new else 200)

    @operation("GET /v1/keys", {200: "Public halves, the current one first."}, OPEN)
    async def show_keys(self, request: Request) -> Response:
        """Which keys pieces may be encrypted to."""
        return JSONResponse({"public_keys": self.server.public_keys})

    @operation("POST /v1/openings", {200: "A piece; nothing where there is none."}, OPEN, gives=(BINARY,))
    async def lease_piece(self, request: Request) -> Response:
        """A piece of a large batch to open, for a while: a header, ids of copies, ciphertexts."""
        taken = await asyncio.to_thread(self.server.work.take)
        if taken is None:
            return Response(media_type=BINARY)
        lease, body = taken
        return Response(pack_lease(lease, self.server.work.openings.seconds, body), media_type=BINARY)

    @operation("POST /v1/openings/{lease}", {200: "It is counted."}, OPEN, takes=BINARY, refuses=(409,))
    async def count_piece(self, request: Request) -> Response:
        """What was found in a leased piece: a tally, and the ids of its messages."""
        lease = request.path_params["lease"]
        body = await read_body(request, LARGEST_RESULT_BYTES)
        self.server.work.openings.held(lease)
        result = PieceResult.from_bytes(body)
        await asyncio.to_thread(self.server.work.count, lease, result)
        return JSONResponse({"counted": True})

    @operation("DELETE /v1/openings/{lease}", {200: "Somebody else may have it."}, OPEN)
    async def give_piece_back(self, request: Request) -> Response:
        """A leased piece will not be opened by its holder."""
        given_back = await asyncio.to_thread(self.server.work.openings.give_back, request.path_params["lease"])
        return JSONResponse({"given_back": given_back})

    @operation("GET /v1/tasks/{task_id}/estimate", {200: "The estimate, null before the first release."}, READ)
    async def show_estimate(self, request: Request) -> Response:
        """The newest estimate with its bound."""
        task = self.server.task(request.path_params["task_id"])
        release, progress = await asyncio.to_thread(self.server.latest, task.id)
        return JSONResponse(_estimate(task, release, progress))

    @operation(
        "GET /v1/tasks/{task_id}/history",
        {200: "Releases, oldest first."},
        READ,
        query=(_AFTER, _LIMIT),
        gives=(JSON, ARROW),
    )
    async def show_history(self, request: Request) -> Response:
        """Every estimate, oldest first; Arrow if it is accepted."""
        task = self.server.task(request.path_params["task_id"])
        after, most = whole_query(request, _AFTER), whole_query(request, _LIMIT)
        releases = await asyncio.to_thread(self.server.history, task.id, after, most)
        # Arrow needs an extra; where that is not installed the same comes as JSON, and says so.
        if ARROW in request.headers.get("accept", "") and is_installed("pyarrow"):
            return Response(await asyncio.to_thread(_as_arrow, releases), media_type=ARROW)
        return JSONResponse({"task_id": task.id, "releases": releases})

    @operation("GET /v1/campaigns/{campaign_id}", {200: "The campaign."}, OPEN, READ)
    async def show_campaign(self, request: Request) -> Response:
        """Its document, how far it is, and its newest model."""
        campaign = self.server.campaign(request.path_params["campaign_id"])
        progress = await asyncio.to_thread(self.server.progress, campaign.id)
        newest = self.server.newest_model(campaign.id)
        known = {"campaign_id": campaign.id, "campaign": campaign.document, "newest": newest.document()}
        return JSONResponse({**known, **asdict(progress), "time": time.time()})

    @operation("GET /v1/campaigns/{campaign_id}/models/newest", {200: "It is signed.", 304: "It has not changed."})
    async def show_newest_model(self, request: Request) -> Response:
        """The newest model: public, so that any cache may keep it for a moment."""
        newest = self.server.newest_model(request.path_params["campaign_id"])
        tag = f'"{newest.signature}"'
        headers = {"ETag": tag, "Cache-Control": f"public, max-age={NEWEST_SECONDS}"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return JSONResponse(newest.document(), headers=headers)

    @operation(
        "GET /v1/campaigns/{campaign_id}/models/{number}", {200: "It is signed, and never changes."}, refuses=(400,)
    )
    async def show_model(self, request: Request) -> Response:
        """The model of a number: public, and the same for ever."""
        number = whole_in_path(request, "number")
        model = await asyncio.to_thread(self.server.model, request.path_params["campaign_id"], number)
        return JSONResponse(model.document(), headers={"Cache-Control": "public, max-age=31536000, immutable"})

    @operation("GET /v1/campaigns/{campaign_id}/models", {200: "Models, oldest first."}, query=(_AFTER_MODEL, _LIMIT))
    async def show_models(self, request: Request) -> Response:
        """Models from a number on, oldest first."""
        campaign = self.server.campaign(request.path_params["campaign_id"])
        after, most = whole_query(request, _AFTER_MODEL), whole_query(request, _LIMIT)
        found = await asyncio.to_thread(self.server.models, campaign.id, after - 1, most)
        return JSONResponse({"campaign_id": campaign.id, "models": [model.document() for model in found]})


def _estimate(task: Task, release: Release | None, progress: Progress) -> dict[str, Any]:
    """The newest release, or nothing known yet, with the privacy that it cost."""
    nothing = dict.fromkeys(("time", "estimate", "standard_error", "bound", "confidence"))
    known = nothing | {"dropped": 0, "void": 0} if release is None else asdict(release)
    return {
        "task_id": task.id,
        **known,
        "users": task.plan.users,
        "uncounted": task.plan.uncounted,
        "epsilon": task.plan.privacy.epsilon,
        "delta": task.plan.privacy.delta,
        "released_batches": progress.batches_read,
        "opening": _opening(progress),
        "void_batches": progress.batches_void,
    }


def _opening(progress: Progress) -> dict[str, int] | None:
    """Which batch is being opened, of how many that were delivered; None where all were read."""
    if progress.batches_read == progress.batches_received:
        return None
    return {"batch": progress.batches_read + 1, "of": progress.batches_received}


def _as_arrow(releases: list[dict[str, Any]]) -> bytes:
    import pyarrow as pa

    names = ("time", "estimate", "standard_error", "bound", "confidence", "dropped", "void")
    table = pa.table({name: [release[name] for release in releases] for name in names})
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()
