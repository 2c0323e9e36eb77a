"""How full the shuffler's batches are, on the page: asked while somebody looks, in tenths, or said not to be known."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from shuffledp.cli.servers import fill_watch
from shuffledp.dashboard.fills import FillWatch, fill_part, shuffler_at
from shuffledp.dashboard.knowledge import FILL
from shuffledp.errors import ParameterError, ShuffleDPError
from shuffledp.service.fill import EVERY_SECONDS, Fill
from shuffledp.service.routing import Routing


class Asked:
    """A shuffler that notes what it is asked, and a watch that waits for its answers, on a clock that tests move."""

    def __init__(self, answer: Callable[[str], Fill]) -> None:
        self.answer, self.ids, self.now = answer, list[str](), 0.0
        self.watch = FillWatch(self, clock=lambda: self.now, begin=lambda work: work())

    def __call__(self, task_id: str) -> Fill:
        self.ids.append(task_id)
        return self.answer(task_id)


def silent(task_id: str) -> Fill:
    raise ShuffleDPError("it cannot be reached.")


def test_a_page_has_a_bar_and_a_sentence_for_each_shuffler(analyzer: Any) -> None:
    task, asked = analyzer.served["moving"], Asked(lambda task_id: Fill((10, 4)))
    client = analyzer.open(fills=asked.watch)
    page = client.get(f"/tasks/{task.id}").text
    for level, tenths, words in ((1, 10, "full, and about to be mixed and sent"), (2, 4, "about 4 tenths full")):
        bar = f'<meter min="0" max="10" value="{tenths}" aria-label="shuffler {level}, tenths of a batch"></meter>'
        assert f"<li>{bar}<span>shuffler {level}: {words}</span></li>" in page
    assert page.count("<meter") == 2 and "is not told the exact number" in page and "is not shown" not in page
    # What the page's script fetches anew has them, too.
    asked.answer, asked.now = lambda task_id: Fill((None, 1)), EVERY_SECONDS
    part = client.get(f"/tasks/{task.id}/part").text
    assert "shuffler 1: not known yet" in part and "shuffler 2: about 1 tenth full" in part


@pytest.mark.parametrize("answer", [silent, lambda task_id: Fill((4,)), lambda task_id: Fill((4, 4, 4))])
def test_where_the_shuffler_does_not_answer_the_page_says_so(answer: Any, analyzer: Any) -> None:
    page = analyzer.open(fills=Asked(answer).watch).get(f"/tasks/{analyzer.served['running'].id}").text
    for level in (1, 2):
        assert f"shuffler {level}: not known: the shuffler does not answer" in page
    assert "<meter" not in page


def test_a_page_that_is_not_told_says_why_not(analyzer: Any) -> None:
    page = analyzer.open().get(f"/tasks/{analyzer.served['running'].id}").text
    assert "is not shown: the analyzer hears of a batch when" in page and "<meter" not in page
    assert "is not told the exact number" in FILL and "is not told the exact number" not in page
    assert "fill" not in analyzer.app().state.dashboard.tasks.newest(analyzer.served["running"])


def test_a_campaign_shows_its_open_round(analyzer: Any) -> None:
    campaign, asked = analyzer.served["campaign"], Asked(analyzer.filled)
    pages = analyzer.app(fills=asked.watch).state.dashboard.campaigns
    open_round = pages._newest(campaign).round
    assert ": full, and about to be mixed and sent" in pages.part(campaign)
    assert asked.ids == [f"{campaign.id}.{open_round.number}.{open_round.seating}"]
    assert pages.newest(campaign)["fill"] == list(analyzer.filled(asked.ids[0]).tenths)


def test_before_the_first_answer_it_is_not_known_yet(analyzer: Any) -> None:
    watch = FillWatch(silent, begin=lambda work: None)
    page = analyzer.open(fills=watch).get(f"/tasks/{analyzer.served['running'].id}").text
    assert "shuffler 2: not known yet<" in page and "does not answer" not in page


def test_of_small_batches_it_says_open_or_full() -> None:
    routing = Routing(users=19, budget=1, shufflers=1, slot_users=19, every_slot=False, messages={19: 1})
    assert "the shuffler: open<" in fill_part(Fill((0,)), routing)
    assert "the shuffler: full, " in fill_part(Fill((10,)), routing)


def test_it_is_asked_every_ten_seconds_while_somebody_looks_and_never_otherwise(analyzer: Any) -> None:
    task, asked = analyzer.served["running"], Asked(lambda task_id: Fill((2, 3)))
    client, pages = analyzer.open(fills=asked.watch), analyzer.app(fills=asked.watch).state.dashboard.tasks
    for path in ("/", "/plan", f"/tasks/{task.id}/data.json", f"/tasks/{task.id}/data.csv"):
        assert client.get(path).status_code == 200
    assert asked.ids == []
    # What followers look at twice a second, however many there are.
    for place in range(200):
        asked.now = place / 20
        assert pages.newest(task)["fill"] == [2, 3]
    client.get(f"/tasks/{task.id}")
    assert asked.ids == [task.id]
    asked.now, asked.answer = EVERY_SECONDS, lambda task_id: Fill((3, 3))
    assert pages.newest(task)["fill"] == [3, 3] and asked.ids == [task.id] * 2
    # Nobody has looked for minutes: what was said then is not shown.
    asked.now, asked.answer = asked.now + 600, silent
    assert pages.newest(task)["fill"] is None and len(asked.ids) == 3


def test_a_shuffler_that_takes_its_time_holds_nobody_up_and_is_not_asked_twice() -> None:
    begun: list[Callable[[], None]] = []
    now = [0.0]
    watch = FillWatch(lambda task_id: Fill((7,)), clock=lambda: now[0], begin=begun.append)
    assert watch.of("a") == watch.of("a") == Fill(()) and len(begun) == 1
    now[0] = 3.0 * EVERY_SECONDS
    assert watch.of("a") == Fill(()) and len(begun) == 1
    begun.pop()()
    # What it said is shown while it is asked again.
    assert watch.of("a") == Fill((7,)) and len(begun) == 1
    begun.pop()()
    # It was said minutes ago, when somebody looked last.
    now[0] += 600
    assert watch.of("a") == Fill(()) and len(begun) == 1


def test_it_is_asked_in_the_background() -> None:
    here, asked_in = threading.get_ident(), list[int]()
    answered = threading.Event()

    def answer(task_id: str) -> Fill:
        asked_in.append(threading.get_ident())
        answered.set()
        return Fill((5,))

    FillWatch(answer).of("a")
    assert answered.wait(10) and here not in asked_in


def test_a_shuffler_is_asked_over_http_with_its_token(a_port: Any) -> None:
    answers: dict[str, Any] = {"good": Fill((4, None)).document("good"), "strange": {"levels": [4]}}
    given: list[str] = []

    async def show(request: Request) -> Response:
        given.append(request.headers["authorization"])
        name = request.path_params["name"]
        return JSONResponse(answers[name]) if name in answers else Response(status_code=503)

    with a_port(Starlette(routes=[Route("/v1/tasks/{name}/fill", show)])) as url:
        ask = shuffler_at(url, "a-token")
        assert ask("good") == Fill((4, None))
        for name in ("strange", "none"):
            with pytest.raises(ShuffleDPError):
                ask(name)
    assert given == ["Bearer a-token"] * 3
    with pytest.raises(ShuffleDPError):
        ask("good")


def test_where_to_ask_is_an_address_that_keeps_the_token(tmp_path: Path) -> None:
    token = tmp_path / "read.token"
    token.write_text("f" * 64)
    assert fill_watch(None, tmp_path) is None
    assert fill_watch("http://127.0.0.1:8001", tmp_path, token) is not None
    with pytest.raises(ParameterError, match="add --fill-from"):
        fill_watch(None, tmp_path, token)
    with pytest.raises(ParameterError, match="fill-from"):
        fill_watch("http://shuffler.example", tmp_path, token)


def test_events_tell_of_tenths(analyzer: Any, address: str) -> None:
    task = analyzer.served["running"]
    with httpx.stream("GET", f"{address}/tasks/{task.id}/events", timeout=30) as stream:
        line = next(line for line in stream.iter_lines() if line.startswith("data: "))
    assert json.loads(line.removeprefix("data: "))["fill"] == list(analyzer.filled(task.id).tenths)
