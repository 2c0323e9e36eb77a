"""The page as routes of an analyzer's application: who may look, what is answered, and under which headers."""

import asyncio
import csv
import io
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from shuffledp.dashboard.access import Access
from shuffledp.dashboard.campaigns import CampaignPages
from shuffledp.dashboard.elements import joined
from shuffledp.dashboard.events import News
from shuffledp.dashboard.fills import FillWatch
from shuffledp.dashboard.layout import login_page, page, refusal_page
from shuffledp.dashboard.plan_page import answer_part, plan_page
from shuffledp.dashboard.planner import PlanAnswer, Planner, PlanWish
from shuffledp.dashboard.tasks import TaskPages
from shuffledp.errors import ParameterError
from shuffledp.files import plain
from shuffledp.service.analyzer.server import AnalyzerServer
from shuffledp.service.http import problem, whole_query
from shuffledp.service.limits import Limits
from shuffledp.service.openapi import Query
from shuffledp.service.problems import BAD_REQUEST, BROKEN, NOT_FOUND, RefusedError
from shuffledp.service.telemetry import LOG
from shuffledp.service.tokens import READ

Handler = Callable[[Request], Awaitable[Response]]

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""What every answer of the page says to a browser: run and show nothing but what this server sends as files."""

STATIC = {
    "dashboard.css": "text/css",
    "dashboard.js": "text/javascript",
    "planner.js": "text/javascript",
    "icon.svg": "image/svg+xml",
    "vendor/uplot/uPlot.min.css": "text/css",
    "vendor/uplot/uPlot.iife.min.js": "text/javascript",
    "vendor/uplot/LICENSE": "text/plain",
}
"""The files of the page, and what each is; there are no others."""

_AFTER = Query("after", "Only later times.", 0, 0, 10**12)
# A spreadsheet would run a text that begins like this.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def with_dashboard(
    app: Starlette,
    access: Access,
    *,
    ledger: Path | None = None,
    limits: Limits | None = None,
    is_over: Callable[[], bool] = lambda: False,
    fills: FillWatch | None = None,
) -> Starlette:
    """An analyzer's application that answers people's browsers, too.

    Args:
        app: the analyzer's.
        access: who may look.
        ledger: the budget that the analyzer charges, to show what is left of it.
        limits: what one role's token may ask for.
        is_over: whether the server was told to stop.
        fills: asks the shuffler how full its batches are; None where nobody does.
    """
    app.state.dashboard = Dashboard(app.state.server, access, ledger, limits or Limits(), fills)
    app.state.dashboard.news.is_over = is_over
    app.router.routes.extend(app.state.dashboard.routes())
    return app


@dataclass
class Dashboard:
    """What a browser is answered.

    Attributes:
        server: the analyzer.
        access: who may look.
        ledger: the budget that the analyzer charges.
        limits: what one role's token may ask for.
        fills: asks the shuffler how full its batches are; None where nobody does.
    """

    server: AnalyzerServer
    access: Access
    ledger: Path | None = None
    limits: Limits = field(default_factory=Limits)
    fills: FillWatch | None = None

    def __post_init__(self) -> None:
        self.tasks = TaskPages(self.server, self.ledger, self.fills)
        self.campaigns = CampaignPages(self.server, self.ledger, self.fills)
        self.planner, self.news = Planner(), News()

    def routes(self) -> list[Route]:
        """Pages for people, which lead to the form for the token; data for their scripts, which is refused; files."""
        pages = {
            "/": self.index,
            "/tasks/{task_id}": self.task,
            "/campaigns/{campaign_id}": self.campaign,
            "/plan": self.plan,
        }
        data = {
            "/tasks/{task_id}/part": self.task_part,
            "/tasks/{task_id}/events": self.task_events,
            "/tasks/{task_id}/chart.json": self.task_chart,
            "/tasks/{task_id}/data.json": self.task_json,
            "/tasks/{task_id}/data.csv": self.task_csv,
            "/campaigns/{campaign_id}/part": self.campaign_part,
            "/campaigns/{campaign_id}/events": self.campaign_events,
            "/campaigns/{campaign_id}/data.json": self.campaign_json,
            "/plan/part": self.plan_part,
            "/plan.json": self.plan_json,
            "/plan/file": self.plan_file,
        }
        return [
            *(Route(path, self._guarded(path, handler, is_page=True)) for path, handler in pages.items()),
            *(Route(path, self._guarded(path, handler)) for path, handler in data.items()),
            Route("/login", self._answered("/login", self.ask_token, is_page=True)),
            Route("/login", self._answered("/login", self.log_in, is_page=True), methods=["POST"]),
            Route("/logout", self._answered("/logout", self.log_out, is_page=True), methods=["POST"]),
            Route("/static/{name:path}", self._answered("/static", self.static)),
        ]

    # --- what every answer goes through ------------------------------------------------------

    def _guarded(self, path: str, handler: Handler, *, is_page: bool = False) -> Handler:
        async def admitted(request: Request) -> Response:
            try:
                self.access.check(request)
            except RefusedError as refused:
                if is_page and refused.kind.status == 401 and "authorization" not in request.headers:
                    return RedirectResponse("/login", 303)
                raise
            with self.limits.spent(READ):
                return await handler(request)

        return self._answered(path, admitted, is_page=is_page)

    def _answered(self, path: str, handler: Handler, *, is_page: bool = False) -> Handler:
        """The handler's answer, or a refusal in its place, with the headers of all."""

        async def answer(request: Request) -> Response:
            try:
                response = await handler(request)
            except RefusedError as refused:
                response = _refused(refused, is_page=is_page)
            except ParameterError as bad:
                response = _refused(RefusedError(BAD_REQUEST, str(bad)), is_page=is_page)
            except Exception:
                LOG.exception("failed", extra={"facts": {"route": path}})
                response = _refused(
                    RefusedError(BROKEN, "this is a bug: the server's log says where."), is_page=is_page
                )
            response.headers.update(HEADERS)
            response.headers.setdefault("Cache-Control", "no-store")
            self.server.metrics.requests.labels(f"{request.method} {path}", str(response.status_code)).inc()
            return response

        return answer

    def _page(self, request: Request, title: str, *children: Any, status: int = 200, **more: Any) -> Response:
        if not self.access.is_logged_in(request):
            return HTMLResponse(page(title, *children, **more), status)
        secret = self.access.form_secret(request)
        response = HTMLResponse(page(title, *children, form=secret, **more), status)
        self.access.keep_form_secret(response, secret)
        return response

    # --- logging in --------------------------------------------------------------------------

    async def ask_token(self, request: Request) -> Response:
        """The form for the token."""
        return self._login_page(request)

    async def log_in(self, request: Request) -> Response:
        """Begin a session for whoever typed the token for read."""
        given = await self.access.form(request)
        try:
            self.access.log_in(given.get("token", ""))
        except RefusedError as refused:
            return self._login_page(request, str(refused), refused.kind.status)
        response = RedirectResponse("/", 303)
        self.access.begin(response)
        return response

    def _login_page(self, request: Request, complaint: str = "", status: int = 200) -> Response:
        secret = self.access.form_secret(request)
        response = HTMLResponse(login_page(secret, complaint), status)
        self.access.keep_form_secret(response, secret)
        return response

    async def log_out(self, request: Request) -> Response:
        """End the browser's session."""
        await self.access.form(request)
        response = RedirectResponse("/login", 303)
        self.access.end(response)
        return response

    # --- tasks and campaigns -----------------------------------------------------------------

    async def index(self, request: Request) -> Response:
        """All tasks and campaigns."""
        both = await asyncio.to_thread(lambda: [self.tasks.listed(), self.campaigns.listed()])
        return self._page(request, "Tasks and campaigns", both, here="/")

    async def task(self, request: Request) -> Response:
        """One task."""
        task = self.server.task(request.path_params["task_id"])
        whole = await asyncio.to_thread(self.tasks.whole, task)
        scripts = ("vendor/uplot/uPlot.iife.min.js", "dashboard.js")
        return self._page(request, task.plan.title, whole, scripts=scripts)

    async def task_part(self, request: Request) -> Response:
        """What has changed on a task's page."""
        task = self.server.task(request.path_params["task_id"])
        return HTMLResponse(await asyncio.to_thread(self.tasks.part, task))

    async def task_events(self, request: Request) -> Response:
        """Releases, as they happen."""
        task = self.server.task(request.path_params["task_id"])
        return self.news.follow(task.id, partial(self.tasks.newest, task))

    async def task_chart(self, request: Request) -> Response:
        """The picture of a task, as data."""
        task = self.server.task(request.path_params["task_id"])
        return JSONResponse(await asyncio.to_thread(self.tasks.chart, task, whole_query(request, _AFTER)))

    async def task_json(self, request: Request) -> Response:
        """All that is known of a task."""
        task = self.server.task(request.path_params["task_id"])
        found = await asyncio.to_thread(self.tasks.download, task)
        return _attached(_json(found), "application/json", f"task-{task.id[:12]}.json")

    async def task_csv(self, request: Request) -> Response:
        """The releases of a task, or the names of its newest one, as a table."""
        task = self.server.task(request.path_params["task_id"])
        headings, rows = await asyncio.to_thread(self.tasks.rows, task)
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(headings)
        writer.writerows([_harmless(cell) for cell in row] for row in rows)
        return _attached(out.getvalue().encode(), "text/csv; charset=utf-8", f"task-{task.id[:12]}.csv")

    async def campaign(self, request: Request) -> Response:
        """One campaign."""
        campaign = self.server.campaign(request.path_params["campaign_id"])
        whole = await asyncio.to_thread(self.campaigns.whole, campaign)
        return self._page(request, "A campaign", whole, scripts=("dashboard.js",))

    async def campaign_part(self, request: Request) -> Response:
        """What has changed on a campaign's page."""
        campaign = self.server.campaign(request.path_params["campaign_id"])
        return HTMLResponse(await asyncio.to_thread(self.campaigns.part, campaign))

    async def campaign_events(self, request: Request) -> Response:
        """Models, as they are published."""
        campaign = self.server.campaign(request.path_params["campaign_id"])
        return self.news.follow(campaign.id, partial(self.campaigns.newest, campaign))

    async def campaign_json(self, request: Request) -> Response:
        """All models of a campaign."""
        campaign = self.server.campaign(request.path_params["campaign_id"])
        found = await asyncio.to_thread(self.campaigns.download, campaign)
        return _attached(_json(found), "application/json", f"campaign-{campaign.id[:12]}.json")

    # --- the planner -------------------------------------------------------------------------

    async def plan(self, request: Request) -> Response:
        """The planner, with the plan for what was asked."""
        query = request.query_params
        try:
            answer: PlanAnswer | None = await self._planned(request)
            complaint = ""
        except ParameterError as refused:
            answer, complaint = None, str(refused)
        whole = plan_page(query, answer, complaint)
        status = 200 if answer is not None else 400
        return self._page(request, "Planner", whole, here="/plan", scripts=("planner.js",), status=status)

    async def plan_part(self, request: Request) -> Response:
        """The plan alone, for the page's script."""
        try:
            answer: PlanAnswer | None = await self._planned(request)
            complaint = ""
        except ParameterError as refused:
            answer, complaint = None, str(refused)
        return HTMLResponse(joined([answer_part(request.query_params, answer, complaint)]))

    async def plan_json(self, request: Request) -> Response:
        """The plan's numbers."""
        return Response((await self._planned(request)).as_json(), media_type="application/json")

    async def plan_file(self, request: Request) -> Response:
        """The plan's file."""
        return _attached((await self._planned(request)).file, "application/json", "plan.json")

    async def _planned(self, request: Request) -> PlanAnswer:
        return await self.planner.answer(PlanWish.read(request.query_params))

    # --- files -------------------------------------------------------------------------------

    @cached_property
    def _files(self) -> dict[str, bytes]:
        folder = files("shuffledp.dashboard").joinpath("static")
        return {name: folder.joinpath(name).read_bytes() for name in STATIC}

    async def static(self, request: Request) -> Response:
        """One of the page's own files."""
        name = request.path_params["name"]
        if name not in STATIC:
            raise RefusedError(NOT_FOUND, "the page has no such file.")
        headers = {"Cache-Control": "public, max-age=300"}
        return Response(self._files[name], media_type=STATIC[name], headers=headers)


def _refused(refused: RefusedError, *, is_page: bool) -> Response:
    """A refusal: a page for people, a problem document for programs."""
    if not is_page:
        return problem(refused)
    headers = {} if refused.retry_after is None else {"Retry-After": str(refused.retry_after)}
    return HTMLResponse(refusal_page(refused.kind.title, refused.detail), refused.kind.status, headers)


def _json(document: Any) -> bytes:
    return (json.dumps(plain(document), indent=2, allow_nan=False) + "\n").encode()


def _attached(body: bytes, media_type: str, name: str) -> Response:
    return Response(body, media_type=media_type, headers={"Content-Disposition": f'attachment; filename="{name}"'})


def _harmless(cell: Any) -> Any:
    """A cell that no spreadsheet takes for a formula.

    >>> _harmless("=1+1"), _harmless(-3.5), _harmless("-3")
    ("'=1+1", -3.5, '-3')
    """
    if not isinstance(cell, str) or not cell.startswith(_FORMULA):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell
