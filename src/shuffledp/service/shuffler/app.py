"""The shuffler over HTTP."""

import asyncio
import time
from collections import deque
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from shuffledp.service.admission.headers import redeemable
from shuffledp.service.admission.private_tokens import Gate
from shuffledp.service.delivery import LARGEST_MANIFEST_BYTES, LARGEST_PIECE_BYTES, LARGEST_WHOLE_BYTES, Manifest
from shuffledp.service.http import (
    Endpoints,
    build_app,
    problem,
    read_body,
    role_of,
    text_of,
    whole_in_path,
    whole_query,
)
from shuffledp.service.limits import Limits
from shuffledp.service.oblivious.inside import answer_inside, response_inside
from shuffledp.service.oblivious.padding import longest_sealed
from shuffledp.service.openapi import (
    BINARY,
    HTML,
    JSON,
    OHTTP_ANSWER,
    OHTTP_KEYS,
    OHTTP_REQUEST,
    ON_DISK,
    SEAT,
    TEXT,
    TOKEN,
    Operation,
    Query,
    operation,
)
from shuffledp.service.origins import Origins
from shuffledp.service.problems import BAD_REQUEST, NOT_FOUND, TASK_ENDED, TOO_LARGE, RefusedError
from shuffledp.service.rounds import gate_of
from shuffledp.service.routing import Routing
from shuffledp.service.shuffler import door
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.shuffler.uploads import Accepting, Answer, Outcome, Upload
from shuffledp.service.tokens import ADMIN, ENROL, HOP, READ, Tokens
from shuffledp.service.wire import ID_BYTES, MOST_REPORTS_AN_UPLOAD, SentReport, is_id, split_single_body, unpack_upload

if TYPE_CHECKING:
    # A shuffler that is no gateway loads no code that opens anything.
    from shuffledp.service.oblivious.gateway import Gateway

Waiter = asyncio.Future[list[Answer]]

_LARGEST_UPLOAD = 64 << 20
# Of whoever shows no token; one report may be longer.
_LARGEST_OF_STRANGERS = 8 << 20
_FRAME_BYTES = 2 * ID_BYTES + 4
_COUNT = Query("count", "How many.", 1, 1, MOST_REPORTS_AN_UPLOAD)
_SLOTS = Query("slots", "Only in so many first slots, those whose people answer by one model; 0 for all.", 0, 0, 10**12)
# What may be inside a sealed request, and nothing else: no hop's, operator's or reader's business.
_INSIDE = ("take_seats", "put_report", "post_reports", "show_task")
_NOT_KEPT = {"Cache-Control": "no-store"}
_NEW, _KNOWN = b'{"new":true}', b'{"new":false}'


def shuffler_app(
    server: ShufflerServer,
    tokens: Tokens,
    limits: Limits | None = None,
    origins: Origins | None = None,
    gateway: "Gateway | None" = None,
) -> Starlette:
    """The application that serves this shuffler; with a gateway, to relays, too.

    Args:
        server: the shuffler itself.
        tokens: who may do what.
        limits: how large and how many requests may be; moderate ones if left out.
        origins: pages of which browsers may report; none if left out.
        gateway: what opens requests that a relay carries; None for no relay.

    Returns:
        An ASGI application.
    """
    return build_app(ShufflerEndpoints(server, tokens, gateway), tokens, limits, origins)


class ShufflerEndpoints(Endpoints[ShufflerServer]):
    """What a shuffler answers.

    Args:
        server: the shuffler.
        tokens: of the roles.
        gateway: opens what relays bring; None where relays bring nothing.
    """

    def __init__(self, server: ShufflerServer, tokens: Tokens, gateway: "Gateway | None" = None) -> None:
        super().__init__(server)
        self._tokens = tokens
        self._commits: _Commits | None = None
        self._gateway = gateway
        # For how many tasks and campaigns it was computed.
        self._longest = ((-1, -1), 0)
        members = vars(ShufflerEndpoints)
        self._inside = frozenset(members[name].operation.route for name in _INSIDE)

    async def _routing(self, task_id: str) -> Routing:
        """A task's routing; the store is asked for one that another process was given, and nobody waits for it."""
        routings = self.server.desk.routings
        if self.server.knows(task_id):
            return routings[task_id]
        return await asyncio.to_thread(routings.__getitem__, task_id)

    @operation("GET /", {200: "In words."}, gives=(TEXT, HTML))
    async def describe(self, request: Request) -> Response:
        """What this server is, for people; a page if one is accepted."""
        if HTML in request.headers.get("accept", ""):
            return HTMLResponse(door.as_html(), headers=door.HEADERS)
        return PlainTextResponse(door.as_text(), headers=door.HEADERS)

    @operation("GET /metrics", {200: "Metrics."}, gives=(TEXT,), refuses=(401, 403))
    async def metrics(self, request: Request) -> Response:
        """For Prometheus; of a gateway for whoever has a token for read, as a relay could tell requests apart by it."""
        if self._gateway is not None:
            self._tokens.check(request.headers.get("authorization"), READ)
        return await super().metrics(request)

    @operation("GET /v1/tasks/{task_id}", {200: "The task."}, ENROL, READ)
    async def show_task(self, request: Request) -> Response:
        """Its routing; with a token for admin, how far it is, too: exactly, which tells when people come."""
        task_id = request.path_params["task_id"]
        routing = await self._routing(task_id)
        shown: dict[str, Any] = {"task_id": task_id, "routing": routing.document(), "time": time.time()}
        if role_of(request) == ADMIN:
            shown["counts"] = await asyncio.to_thread(self.server.counts, task_id)
        return JSONResponse(shown)

    @operation("GET /v1/tasks/{task_id}/fill", {200: "The fill."}, READ, refuses=(409,))
    async def show_fill(self, request: Request) -> Response:
        """How full each level's newest open batch was at the last full ten seconds of the clock, in tenths."""
        task_id = request.path_params["task_id"]
        await self._routing(task_id)
        return JSONResponse(self.server.fills.of(task_id).document(task_id))

    @operation("POST /v1/tasks/{task_id}/batches/{batch_id}", ON_DISK, HOP, takes=BINARY, refuses=(409, 422, 429))
    async def take_batch(self, request: Request) -> Response:
        """A full batch in random order, to a later hop of a cascade. Repeat it unchanged until it is answered."""
        task_id, batch_id = request.path_params["task_id"], request.path_params["batch_id"]
        # Somewhat too long is a wrong length, which says more than "too large".
        most = min(2 * await asyncio.to_thread(self.server.batch_bytes, task_id, batch_id), LARGEST_WHOLE_BYTES)
        body = await read_body(request, most)
        new = await asyncio.to_thread(self.server.deliver, task_id, batch_id, body)
        return JSONResponse({"new": new}, 201 if new else 200)

    @operation(
        "POST /v1/tasks/{task_id}/batches/{batch_id}/pieces/{piece}",
        ON_DISK,
        HOP,
        takes=BINARY,
        refuses=(409, 422, 429),
    )
    async def take_piece(self, request: Request) -> Response:
        """A piece of a large batch, to a later hop: whole ciphertexts. Repeat it unchanged until it is answered."""
        task_id, batch_id = request.path_params["task_id"], request.path_params["batch_id"]
        number = whole_in_path(request, "piece")
        await asyncio.to_thread(self.server.batch_bytes, task_id, batch_id)
        body = await read_body(request, LARGEST_PIECE_BYTES)
        new = await asyncio.to_thread(self.server.take_piece, task_id, batch_id, number, body)
        return JSONResponse({"new": new}, 201 if new else 200)

    @operation(
        "POST /v1/tasks/{task_id}/batches/{batch_id}/manifest", ON_DISK, HOP, takes=JSON, refuses=(409, 422, 429)
    )
    async def take_manifest(self, request: Request) -> Response:
        """All pieces of a large batch were sent: how many, how many bytes, their digests. The batch is then there."""
        task_id, batch_id = request.path_params["task_id"], request.path_params["batch_id"]
        await asyncio.to_thread(self.server.batch_bytes, task_id, batch_id)
        manifest = Manifest.from_text(text_of(await read_body(request, LARGEST_MANIFEST_BYTES)))
        new = await asyncio.to_thread(self.server.take_manifest, task_id, batch_id, manifest)
        return JSONResponse({"new": new}, 201 if new else 200)

    async def admit(self, request: Request, operation: Operation, tokens: Tokens) -> str:
        """Whose budget a request is spent from: of a task with an issuer a token's, or a seat's; else a role's."""
        gate = await self._gate(request) if operation.issued else None
        if gate is None:
            return await super().admit(request, operation, tokens)
        if operation.issued == TOKEN:
            request.state.token = redeemable(request.headers.get("authorization"), gate).name
        # Forged tokens cost nobody's budget, and reports for seats that nobody has not that of seats.
        return operation.issued

    async def _gate(self, request: Request) -> Gate | None:
        """Whose tokens lead in to the task of a request; None where a role's token does, or there is no such task."""
        task_id = request.path_params["task_id"]
        try:
            return gate_of(await self._routing(task_id), task_id)
        except RefusedError as refused:
            if refused.kind == TASK_ENDED:
                raise
            return None

    @operation(
        "POST /v1/tasks/{task_id}/seats",
        {201: "Seats."},
        ENROL,
        refuses=(409, 429),
        query=(_COUNT, _SLOTS),
        issued=TOKEN,
    )
    async def take_seats(self, request: Request) -> Response:
        """A place in one batch of every level, for a while; the same one again for the same token of an issuer."""
        count, slots = whole_query(request, _COUNT), whole_query(request, _SLOTS)
        task_id, token = request.path_params["task_id"], getattr(request.state, "token", None)
        await self._routing(task_id)
        if token is not None and count > 1:
            raise RefusedError(BAD_REQUEST, "a token is for one seat: leave count out.")
        taking = self.server.take_seats(task_id, count, slots or None, token)
        seats = await asyncio.wrap_future(taking)
        self.server.seats.inc(len(seats))
        return JSONResponse({"seats": [seat.document() for seat in seats]}, 201)

    @operation(
        "PUT /v1/tasks/{task_id}/reports/{report_id}",
        ON_DISK,
        ENROL,
        takes=BINARY,
        refuses=(410, 422, 429),
        issued=SEAT,
    )
    async def put_report(self, request: Request) -> Response:
        """One report: its seat, 16 bytes, then its ciphertexts. Repeat it unchanged until it is answered."""
        task_id, report_id = request.path_params["task_id"], request.path_params["report_id"]
        longest = (await self._routing(task_id)).longest_report_bytes
        if not is_id(report_id):
            raise RefusedError(BAD_REQUEST, f"a report's id is {ID_BYTES} bytes in lower-case hexadecimal: draw one.")
        seat, body = split_single_body(await read_body(request, longest + ID_BYTES))
        [answer] = await self._accept(task_id, [SentReport(report_id, seat, body)])
        if isinstance(answer, RefusedError):
            raise answer
        return Response(*((_NEW, 201) if answer.new else (_KNOWN, 200)), media_type=JSON)

    @operation("POST /v1/tasks/{task_id}/reports", {200: "A status for each."}, ENROL, takes=BINARY, issued=SEAT)
    async def post_reports(self, request: Request) -> Response:
        """Up to 1000 reports: for each its id, its seat, its length in 4 bytes, its ciphertexts."""
        task_id = request.path_params["task_id"]
        routing = await self._routing(task_id)
        longest = routing.longest_report_bytes + _FRAME_BYTES
        most = _LARGEST_UPLOAD if routing.issuer is None else max(_LARGEST_OF_STRANGERS, longest)
        body = await read_body(request, min(most, MOST_REPORTS_AN_UPLOAD * longest))
        reports = list(islice(unpack_upload(body), MOST_REPORTS_AN_UPLOAD + 1))
        if len(reports) > MOST_REPORTS_AN_UPLOAD:
            raise RefusedError(TOO_LARGE, f"an upload holds at most {MOST_REPORTS_AN_UPLOAD} reports: send fewer.")
        answers = await self._accept(task_id, reports)
        results = []
        for report, answer in zip(reports, answers, strict=True):
            result: dict[str, Any] = {"report_id": report.report_id}
            if isinstance(answer, RefusedError):
                result |= {"status": answer.kind.status, "problem": answer.document()}
            else:
                result["status"] = 201 if answer.new else 200
            results.append(result)
        return JSONResponse({"results": results})

    async def _accept(self, task_id: str, reports: list[SentReport]) -> list[Answer]:
        """What becomes of the reports, once that is on disk."""
        loop, commits = asyncio.get_running_loop(), self._commits
        if commits is None or commits.loop is not loop:
            # A loop that was closed can wake nobody up, nor can another loop's thread.
            commits = self._commits = _Commits(self.server, loop)
        return await commits.accept(task_id, reports)

    def _as_gateway(self) -> "Gateway":
        if self._gateway is None:
            words = "this shuffler is no gateway for relays: report to it directly, or ask its operator for one."
            raise RefusedError(NOT_FOUND, words)
        return self._gateway

    def _longest_sealed(self) -> int:
        tasks, campaigns = self.server.tasks, self.server.campaigns
        if self._longest[0] != (known := (len(tasks), len(campaigns))):
            layouts = (layout for campaign in campaigns.values() for layout in campaign.layouts)
            self._longest = known, longest_sealed([*tasks.values(), *layouts])
        return self._longest[1]

    @operation(
        "POST /.well-known/ohttp-gateway",
        {200: "Sealed, whatever the answer is."},
        takes=OHTTP_REQUEST,
        refuses=(404, 422),
        gives=(OHTTP_ANSWER,),
    )
    async def pass_gateway(self, request: Request) -> Response:
        """A sealed request for seats, reports or the task (RFC 9458), which a relay brings: nobody sees who sent it."""
        gateway, app = self._as_gateway(), request.app
        body = await read_body(request, self._longest_sealed())
        sealed = await gateway.answer(
            body,
            lambda inner: answer_inside(app, inner, self._inside),
            lambda refused: response_inside(problem(refused)),
        )
        return Response(sealed, media_type=OHTTP_ANSWER, headers=_NOT_KEPT)

    @operation("GET /.well-known/ohttp-gateway", {200: "Its keys."}, gives=(OHTTP_KEYS,), refuses=(404,))
    async def offer_keys(self, request: Request) -> Response:
        """The gateway's keys, to compare with those that everybody was given: do not take them from here."""
        return Response(self._as_gateway().configs, media_type=OHTTP_KEYS, headers=_NOT_KEPT)

    @operation("GET /ohttp-keys", {200: "Its keys."}, gives=(OHTTP_KEYS,), refuses=(404,))
    async def show_keys(self, request: Request) -> Response:
        """The gateway's keys, under a shorter name."""
        return await self.offer_keys(request)


class _Commits:
    """Hands one event loop's uploads to the store, and to it what became of them: one wake-up for many each way.

    While some are on their way to the disk, others arrive: they are handed in together when those are there.
    """

    def __init__(self, server: ShufflerServer, loop: asyncio.AbstractEventLoop) -> None:
        self._server, self.loop = server, loop
        self._arrived: list[Upload] = []
        self._accepting: Accepting | None = None
        self._done: deque[tuple[Waiter, Outcome]] = deque()
        self._is_handing_in = self._is_waking = False

    async def accept(self, task_id: str, reports: list[SentReport]) -> list[Answer]:
        """What becomes of the reports, once that is on disk; who is gone by then is not told."""
        waiter: Waiter = self.loop.create_future()
        self._arrived.append((task_id, reports, partial(self._answered, waiter)))
        if not self._is_handing_in and self._is_free():
            self.loop.call_soon(self._hand_in)
            self._is_handing_in = True
        return await waiter

    def _hand_in(self) -> None:
        """At the end of the loop's turn: all that arrived in it, and since the last was handed in."""
        self._is_handing_in = False
        if self._arrived and self._is_free():
            arrived, self._arrived = self._arrived, []
            self._accepting = self._server.accept_all(arrived)

    def _is_free(self) -> bool:
        """Whether nothing of this loop is on its way to the disk."""
        return self._accepting is None or self._accepting.is_done

    def _answered(self, waiter: Waiter, answers: Outcome) -> None:
        self._done.append((waiter, answers))
        if not self._is_waking:
            self._is_waking = True
            try:
                self.loop.call_soon_threadsafe(self._hand_over)
            except Exception:
                # The loop was closed, and nobody waits any more; or there is no memory, and the next one wakes it.
                self._is_waking = False

    def _hand_over(self) -> None:
        # Before looking: what is appended from here on wakes the loop again.
        self._is_waking = False
        try:
            # First of all, so that the disk has something to do.
            self._hand_in()
        finally:
            while self._done:
                waiter, answers = self._done.popleft()
                if waiter.done():
                    continue
                if isinstance(answers, BaseException):
                    waiter.set_exception(answers)
                else:
                    waiter.set_result(answers)
