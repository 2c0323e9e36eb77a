"""What the pages show: the analyzer's own numbers, every name escaped, and nothing from elsewhere."""

import csv
import gzip
import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from harness.names import HOSTILE
from shuffledp import Privacy
from shuffledp.accounting.ledger import Ledger
from shuffledp.dashboard.access import Access
from shuffledp.dashboard.app import STATIC
from shuffledp.dashboard.charts import MOST_BARS, MOST_POINTS, chart_of, line_of
from shuffledp.dashboard.elements import element, table
from shuffledp.service.charging import charge
from shuffledp.service.problems import MEDIA_TYPE

MOST_BYTES = 100_000


class Seen(HTMLParser):
    """What a browser makes of a page: its elements and attributes, and its texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def seen(analyzer: Any, path: str, **more: Any) -> Seen:
    answer = analyzer.open(**more).get(path)
    assert answer.status_code == 200, answer.text
    return Seen(answer.text)


def harmless(page: Seen) -> None:
    """Nothing runs, loads or leads anywhere but to this server's own files and pages."""
    for tag, attributes in page.elements:
        assert not any(name.startswith("on") or name in ("style", "srcdoc", "formaction") for name in attributes), (
            attributes
        )
        assert tag not in ("img", "svg", "iframe", "object", "embed", "base", "style"), tag
        for name in ("src", "href", "action"):
            assert (attributes.get(name) or "/").startswith(("/", "#")), attributes
            assert not (attributes.get(name) or "").startswith("//"), attributes
        if tag == "script":
            assert (attributes.get("src") or "").removeprefix("/static/") in STATIC
    assert sum(tag == "title" for tag, _ in page.elements) == 1


@pytest.mark.parametrize("name", ["count", "running", "histogram", "empty"])
def test_a_tasks_page_is_harmless_whatever_names_it_has(name: str, analyzer: Any) -> None:
    harmless(seen(analyzer, f"/tasks/{analyzer.served[name].id}"))


def test_hostile_names_are_shown_as_they_are(analyzer: Any) -> None:
    task = analyzer.served["histogram"]
    page = seen(analyzer, f"/tasks/{task.id}")
    for name in HOSTILE:
        assert name in page.texts, name
    chart = analyzer.open().get(f"/tasks/{task.id}/chart.json").json()
    assert set(chart["names"]) == set(HOSTILE) and chart["kind"] == "bars"
    harmless(seen(analyzer, "/"))
    # In an address, a name is no page and no element either.
    for name in HOSTILE:
        for path in (f"/tasks/{quote(name)}", f"/plan?protocol={quote(name)}", f"/plan?users={quote(name)}"):
            answer = analyzer.open().get(path)
            assert answer.status_code in (400, 404)
            if answer.headers["content-type"].startswith("text/html"):
                harmless(Seen(answer.text))
            else:
                assert answer.headers["content-type"] == MEDIA_TYPE


def test_elements_escape_what_they_are_given() -> None:
    for name in HOSTILE:
        found = Seen(element("p", name, element("b", [name]), title=name) + table(name, [name], [[name]], note=name))
        assert [tag for tag, _ in found.elements] == [
            "p",
            "b",
            "div",
            "table",
            "caption",
            "thead",
            "tr",
            "th",
            "tbody",
            "tr",
            "th",
            "p",
        ]
        assert found.elements[0][1] == {"title": name} and found.texts.count(name) == 6


def test_the_list_names_every_task_and_campaign(analyzer: Any) -> None:
    links = {each["href"] for tag, each in seen(analyzer, "/").elements if tag == "a"}
    campaign = analyzer.served["campaign"]
    tasks = {f"/tasks/{each.id}" for name, each in analyzer.served.items() if name != "campaign"}
    assert tasks | {f"/campaigns/{campaign.id}", "/plan"} <= links


def test_a_count_says_its_number_its_error_and_what_it_costs(analyzer: Any) -> None:
    task = analyzer.served["count"]
    words = " ".join(seen(analyzer, f"/tasks/{task.id}").texts)
    for expected in (
        "12.25",
        "± 3 (within 7.5 with 95% confidence)",
        "all 20 users",
        "malformed messages",
        "epsilon 4, delta 0.01",
        "no ledger is served",
        f"at most {task.routing.longest_report_bytes:,}",
        "What this page can and cannot know about a person",
        "trusted curator",
        "local model",
        "analyzer + shuffler",
    ):
        assert expected in words, expected


def test_before_the_first_release_it_says_why_there_is_none(analyzer: Any) -> None:
    task = analyzer.served["empty"]
    assert "A batch is never released before it is." in " ".join(seen(analyzer, f"/tasks/{task.id}").texts)
    assert analyzer.open().get(f"/tasks/{task.id}/chart.json").json() is None
    assert analyzer.open().get(f"/tasks/{task.id}/data.csv").text.count("\n") == 1


def test_a_running_count_is_a_line_a_table_and_files(analyzer: Any) -> None:
    task, client = analyzer.served["running"], analyzer.open()
    chart = client.get(f"/tasks/{task.id}/chart.json").json()
    assert chart["x"] == [3, 9, 15] and chart["y"] == [1.5, 4.5, 7.5] and chart["high"] == [9.0, 12.0, 15.0]
    later = client.get(f"/tasks/{task.id}/chart.json?after=9").json()
    assert later["x"] == [15] and client.get(f"/tasks/{task.id}/chart.json?after=15").json() is None
    rows = list(csv.DictReader(client.get(f"/tasks/{task.id}/data.csv").text.splitlines()))
    assert [(row["time"], row["estimate"], row["bound"]) for row in rows] == [
        ("3", "1.5", "7.5"),
        ("9", "4.5", "7.5"),
        ("15", "7.5", "7.5"),
    ]
    answer = client.get(f"/tasks/{task.id}/data.json")
    assert "attachment" in answer.headers["content-disposition"]
    document = answer.json()
    assert document["newest"]["estimate"] == 7.5 and len(document["releases"]) == 3 and document["users"] == 30
    assert document["releases"] == analyzer.server.history(task.id, 0, 10)
    part = Seen(client.get(f"/tasks/{task.id}/part").text).texts
    assert [text for text in part if text in ("15", "9", "3")] == ["15", "9", "3"]


def test_files_with_names_run_in_no_spreadsheet(analyzer: Any) -> None:
    rows = list(csv.reader(analyzer.open().get(f"/tasks/{analyzer.served['histogram'].id}/data.csv").text.splitlines()))
    names = [row[0] for row in rows[1:]]
    assert len(names) == len(HOSTILE) and not any(name.startswith(("=", "+", "-", "@")) for name in names)
    assert "'" + HOSTILE[5] in names and HOSTILE[0] in names


def test_a_budget_is_shown_with_what_is_left(analyzer: Any, tmp_path: Path) -> None:
    ledger = tmp_path / "panel.json"
    Ledger.open(ledger, "<b>panel</b>", Privacy(10, 0.1))
    task = analyzer.served["count"]
    charge(ledger, task)
    page = seen(analyzer, f"/tasks/{task.id}", ledger=ledger)
    words = " ".join(page.texts)
    left = Ledger.load(ledger).left()
    assert (
        f"epsilon {left.epsilon_spent:.4g}, by 1 questions" in words
        and f"epsilon {left.epsilon:.4g}: one more" in words
    )
    assert "<b>panel</b>" in page.texts
    ledger.write_text("broken")
    assert "cannot be read now" in " ".join(seen(analyzer, f"/tasks/{task.id}", ledger=ledger).texts)


def test_a_campaign_lists_its_models_by_number(analyzer: Any) -> None:
    campaign = analyzer.served["campaign"]
    page = seen(analyzer, f"/campaigns/{campaign.id}")
    harmless(page)
    words = " ".join(page.texts)
    for expected in (
        "which of 2 arms has the best reward",
        "means: [0.25, -]",
        "round 0",
        "the best arm is dropped with",
    ):
        assert expected in words, expected
    document = analyzer.open().get(f"/campaigns/{campaign.id}/data.json").json()
    assert [model["number"] for model in document["models"]][:2] == [0, 1]
    assert document["models"][1]["estimate"]["means"] == [0.25, None]


def test_what_is_not_served_is_refused_in_a_sentence(analyzer: Any) -> None:
    round_of_a_campaign = f"{analyzer.served['campaign'].id}.0.0"
    for path in ("/tasks/nobody", "/campaigns/nobody", f"/tasks/{round_of_a_campaign}"):
        answer = analyzer.open().get(path)
        assert answer.status_code == 404 and "What to do" in answer.text


def test_a_bug_is_a_page_and_says_nothing_of_itself(analyzer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(analyzer.server), "latest", lambda *_: 1 / 0)
    for path in ("", "/part"):
        answer = analyzer.open().get(f"/tasks/{analyzer.served['count'].id}{path}")
        assert answer.status_code == 500 and "ZeroDivision" not in answer.text and "this is a bug" in answer.text


def test_all_files_of_a_page_are_small_and_from_here(analyzer: Any) -> None:
    """Under 100 kB gzipped with the largest page, uPlot and its licence included; none names another host."""
    client = analyzer.open()
    sizes = {name: len(gzip.compress(client.get(f"/static/{name}").content)) for name in STATIC}
    pages = [f"/tasks/{analyzer.served['histogram'].id}", "/plan", f"/campaigns/{analyzer.served['campaign'].id}"]
    largest = max(len(gzip.compress(client.get(path).content)) for path in pages)
    assert sum(sizes.values()) + largest < MOST_BYTES, sizes
    folder = files("shuffledp.dashboard").joinpath("static")
    own = [name for name in STATIC if not name.startswith("vendor")]
    for name in own:
        assert not re.search(r"(?<!xmlns=\")https?://|\"//", folder.joinpath(name).read_text("utf-8")), name
    on_disk = {str(path.relative_to(Path(str(folder)))) for path in Path(str(folder)).rglob("*") if path.is_file()}
    assert on_disk == set(STATIC)


def test_long_pictures_are_thinned_and_keep_their_ends() -> None:
    one = {"estimate": 1.0, "bound": 2.0, "confidence": 0.95}
    line = line_of([{"time": time, **one} for time in range(1, 3 * MOST_POINTS)])
    assert (
        line is not None
        and len(line["x"]) == MOST_POINTS
        and line["x"][0] == 1
        and line["x"][-1] == 3 * MOST_POINTS - 1
    )
    assert line_of([{"time": 1, "estimate": [1.0], "bound": 1.0, "confidence": 0.95}]) is None and line_of([]) is None


def test_of_many_bars_the_largest_are_drawn(analyzer: Any) -> None:
    from shuffledp import Histogram
    from shuffledp.service.presenting import presented

    plan = Histogram.plan(users=400, privacy=Privacy(4, 1e-2), categories=100, method="decoys")
    newest = {
        "time": 400,
        "estimate": [float(code % 50) for code in range(100)],
        "standard_error": 1.0,
        "bound": 3.0,
        "confidence": 0.95,
    }
    chart = chart_of(presented(plan, newest))
    assert chart is not None and len(chart["y"]) == MOST_BARS and min(chart["y"]) >= 30
    assert f"{100 - MOST_BARS} smaller ones are not drawn" in chart["note"] and json.dumps(chart)


def test_a_page_behind_a_login_shows_the_same(analyzer: Any) -> None:
    access = Access(analyzer.tokens, is_open=False)
    headers = {"Authorization": f"Bearer {analyzer.tokens.secrets['read']}"}
    path = f"/tasks/{analyzer.served['running'].id}"
    assert analyzer.open(access=access).get(path, headers=headers).text == analyzer.open().get(path).text
