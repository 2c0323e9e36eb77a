"""The list of tasks and campaigns, and the page of a task."""

import threading
from collections import deque
from dataclasses import asdict, dataclass, field
from typing import Any

from shuffledp.dashboard.charts import chart_of, line_of
from shuffledp.dashboard.elements import Html, element, facts, joined, listing_table, section, table
from shuffledp.dashboard.knowledge import about_a_person, collusions_table, costs, spending
from shuffledp.dashboard.layout import warnings_of
from shuffledp.dashboard.pages import AnalyzerPages
from shuffledp.protocols.presentation import View
from shuffledp.service.cost import TaskCost
from shuffledp.service.presenting import counted, error_in_words, in_words, presented
from shuffledp.service.store.contract import Progress, Release
from shuffledp.service.task import Task

MOST_RELEASES = 100_000
_LAST_RELEASES = 10
_COLUMNS = ("time", "estimate", "standard_error", "bound", "confidence", "dropped", "void")


@dataclass
class TaskPages(AnalyzerPages):
    """Pages of an analyzer's tasks; what never changes of one is made once."""

    _fixed: dict[str, Html] = field(default_factory=dict, repr=False)
    _tails: dict[str, deque[dict[str, Any]]] = field(default_factory=dict, repr=False)
    _reading: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def listed(self) -> Html:
        """All tasks, with how far each is."""
        rows = []
        for task_id, task in sorted(self.server.tasks.items()):
            plan = task.plan
            release, progress = self.server.latest(task_id)
            rows.append(
                (
                    element("a", plan.question, href=f"/tasks/{task_id}"),
                    task_id[:12],
                    f"{plan.users:,}",
                    f"{plan.privacy.epsilon:g}",
                    "none yet" if release is None else f"{release.time:,}",
                    f"{progress.batches_read:,}",
                )
            )
        if not rows:
            return section("Tasks", element("p", "No task is served here: `shuffledp task create`, then --task FILE."))
        headings = ("asked", "task", "people", "epsilon", "counted", "batches read")
        return section("Tasks", table("Tasks", headings, rows, left=(True, True, False, False, False, False)))

    def whole(self, task: Task) -> Html:
        """The page of a task: first what moves, then what never does."""
        figure = element(
            "figure",
            element(
                "div",
                id="chart",
                class_="chart",
                role="img",
                aria_label="The estimate as a picture; the same numbers are in the tables",
            ),
            element("figcaption", "", id="chart-words"),
            id="figure",
            hidden=True,
        )
        live = element(
            "div",
            self.part(task),
            id="live",
            data_part=f"/tasks/{task.id}/part",
            data_events=f"/tasks/{task.id}/events",
            data_chart=f"/tasks/{task.id}/chart.json",
            data_name=f"task-{task.id[:12]}",
        )
        state = element("p", "", id="state", class_="note", role="status")
        return joined([warnings_of(*task.warnings), live, state, figure, _downloads(task), self._rest(task)])

    def part(self, task: Task) -> Html:
        """What changes with every release."""
        release, progress = self.server.latest(task.id)
        newest = None if release is None else asdict(release)
        said = _under_way(progress)
        rows: list[tuple[str, Any]] = [
            ("Counted", "nobody yet" if newest is None else counted(task.plan, newest["time"])),
            ("Pending", _pending(task, 0 if newest is None else newest["time"], progress)),
            ("Batches", f"{progress.batches_received:,} delivered, {progress.batches_read:,} read"),
            ("Under way", said),
            ("Dropped", f"{progress.dropped:,} malformed messages; the estimate is of the others"),
            ("Void", f"{progress.batches_void:,} batches that said nothing"),
        ]
        if newest is None:
            words = said or "No batch is full. A batch is never released before it is."
            return section("The estimate", element("p", words, class_="number"), facts(rows), id="estimate")
        shown = presented(task.plan, newest, View(top=40))
        number = None
        if isinstance(newest["estimate"], int | float):
            number = element(
                "p",
                element(
                    "span",
                    f"{newest['estimate']:,.0f}" if abs(newest["estimate"]) >= 100 else in_words(newest["estimate"]),
                    class_="big",
                    id="number",
                ),
                element("span", error_in_words(newest), class_="error"),
                class_="number",
            )
        names = [] if number is not None else [(name.capitalize(), words) for name, words in shown.facts]
        return section(
            "The estimate",
            number,
            element("div", id="picture"),
            facts([*names, *rows]),
            [listing_table(each) for each in shown.listings],
            self._recent(task) if number is not None and is_running(task) else None,
            id="estimate",
        )

    def _recent(self, task: Task) -> Html:
        """The newest releases, the newest first."""
        with self._reading:
            tail = self._tails.setdefault(task.id, deque(maxlen=_LAST_RELEASES))
            tail.extend(self.server.history(task.id, tail[-1]["time"] if tail else 0, MOST_RELEASES))
            found = list(tail)
        rows = [
            (
                f"{each['time']:,}",
                in_words(each["estimate"]),
                in_words(each["bound"]),
                f"{each['dropped']:,}",
                f"{each['void']:,}",
            )
            for each in reversed(found)
        ]
        headings = ("people", "estimate", "within", "dropped", "void")
        return table("The newest releases", headings, rows, id="releases")

    def _rest(self, task: Task) -> Html:
        made = self._fixed.get(task.id)
        if made is None:
            made = self._fixed[task.id] = _fixed(task)
        return joined([spending(task.plan.privacy, self.ledger, "task"), made])

    # --- data --------------------------------------------------------------------------------

    def newest(self, task: Task) -> dict[str, Any]:
        """What an event says: the newest release, and how far the task is."""
        release, progress = self.server.latest(task.id)
        return {"release": _brief(release), **asdict(progress)}

    def chart(self, task: Task, after: int = 0) -> dict[str, Any] | None:
        """The picture as data; of a line, only what came after a time."""
        if is_running(task):
            line = line_of(self.server.history(task.id, after, MOST_RELEASES))
            if line is not None or after:
                return line
        release, _ = self.server.latest(task.id)
        return None if release is None else chart_of(presented(task.plan, asdict(release)))

    def download(self, task: Task) -> dict[str, Any]:
        """All that is known of a task, as JSON."""
        release, progress = self.server.latest(task.id)
        named = task.plan.domain.named
        return {
            "schema": 1,
            "task_id": task.id,
            "question": task.plan.question,
            "epsilon": task.plan.privacy.epsilon,
            "delta": task.plan.privacy.delta,
            "users": task.plan.users,
            **({} if named is None else {"categories": named.names()}),
            "newest": None if release is None else asdict(release),
            "progress": asdict(progress),
            "releases": self.server.history(task.id, 0, MOST_RELEASES),
        }

    def rows(self, task: Task) -> tuple[tuple[str, ...], list[list[Any]]]:
        """A table of a task for a file: of numbers every release, of names the newest one."""
        release, _ = self.server.latest(task.id)
        if release is not None and isinstance(release.estimate, list):
            columns = presented(task.plan, asdict(release)).columns
            return tuple(columns), [
                list(row) for row in zip(*(each.tolist() for each in columns.values()), strict=True)
            ]
        found = self.server.history(task.id, 0, MOST_RELEASES)
        return _COLUMNS, [[each[name] for name in _COLUMNS] for each in found]


def is_running(task: Task) -> bool:
    """Whether a task has several releases, one after another."""
    return bool(task.routing.schedule.slots > 1)


def _brief(release: Release | None) -> dict[str, Any] | None:
    """A release without its numbers where there are many: an event is short."""
    if release is None:
        return None
    found = asdict(release)
    return found | {"estimate": release.estimate if isinstance(release.estimate, int | float) else None}


def _under_way(progress: Progress) -> str | None:
    if progress.batches_read == progress.batches_received:
        return None
    return f"opening batch {progress.batches_read + 1:,} of {progress.batches_received:,}"


def _pending(task: Task, time: int, progress: Progress) -> str:
    """What the analyzer can say of people who are in no release: not whether they have come."""
    left = task.plan.users - task.plan.uncounted - time
    waiting = progress.batches_received - progress.batches_read
    if left <= 0:
        return "nobody: all that will be counted are"
    opened = f"; {waiting:,} delivered batches wait to be opened" if waiting else ""
    return f"{left:,} people are in no released batch: they have not come, or their batch is not full{opened}"


def _downloads(task: Task) -> Html:
    path = f"/tasks/{task.id}"
    return element(
        "p",
        "Download: ",
        element("a", "CSV", href=f"{path}/data.csv", download=True),
        " ",
        element("a", "JSON", href=f"{path}/data.json", download=True),
        " ",
        element("button", "PNG", id="png", type="button", hidden=True),
        class_="downloads",
    )


def _fixed(task: Task) -> Html:
    plan, cost = task.plan, TaskCost.of(task.routing)
    about = [
        ("Asked", plan.question),
        ("Method", f"{plan.protocol} by {plan.method}"),
        ("In the end", plan.in_the_end),
        ("One lying client", plan.lying_client),
        ("Task", task.id),
        *(("Take care", each) for each in plan.cautions),
    ]
    return joined(
        [
            about_a_person(plan, plan.users, plan.privacy),
            section(
                "What a person sends", costs(cost.report_messages_max, cost.report_bytes_max, cost.report_bytes_mean)
            ),
            section("Beside a trusted curator and the local model", listing_table(plan.compared())),
            collusions_table(plan),
            section("About the task", facts(about)),
        ]
    )
