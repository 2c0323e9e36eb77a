"""The planner's numbers are the command line's, byte for byte where it writes a file."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from shuffledp import cli
from shuffledp.dashboard import planner as planner_module
from shuffledp.dashboard.planner import KINDS, WISHES, Planner, PlanWish
from shuffledp.protocols.catalogue import load_plan
from shuffledp.service.problems import RefusedError
from shuffledp.service.routing import Routing

WISHED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "count": ({}, []),
    "sum": ({"low": -1, "high": 3}, ["--low", "-1", "--high", "3"]),
    "histogram": ({"categories": 6}, ["--categories", "6"]),
    "running": ({"shufflers": 2}, ["--shufflers", "2"]),
}
TARGET = {"users": 200, "epsilon": 2, "delta": 1e-4}


def asked(kind: str, **more: Any) -> str:
    return urlencode({"protocol": kind, **TARGET, **WISHED[kind][0], **more})


def typed(kind: str, *more: str) -> list[str]:
    words = [word for name, value in TARGET.items() for word in (f"--{name}", str(value))]
    return ["plan", KINDS[kind].family, *words, *WISHED[kind][1], *more]


def run(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert not ended.value.code
    return capsys.readouterr().out


@pytest.mark.parametrize("live", [False, True], ids=["any", "live"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_page_and_the_command_line_plan_the_same(
    kind: str, live: bool, analyzer: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    more = ["--live"] if live else []
    printed = json.loads(run(typed(kind, *more, "-o", str(tmp_path / "plan.json"), "--json"), capsys))
    client, query = analyzer.open(), asked(kind, **({"live": 1} if live else {}))
    found = client.get(f"/plan.json?{query}").json()
    assert found["plan"] == {name: value for name, value in printed.items() if name != "methods"}
    assert client.get(f"/plan/file?{query}").content == (tmp_path / "plan.json").read_bytes()
    plan = load_plan(tmp_path / "plan.json")
    assert found["messages_per_user_max"] == plan.messages_per_user_max
    assert found["bytes_per_user_max"] == Routing.of(plan.layout).longest_report_bytes
    assert [row[0] for row in found["collusions"]] == [each.parties for each in plan.collusions()]
    assert found["compared"]["rows"] == [list(row.cells) for row in plan.compared().rows]
    page = client.get(f"/plan?{query}").text
    assert all(cell in page for row in found["compared"]["rows"] for cell in row[1:2])
    assert client.get(f"/plan/part?{query}").text in page


def test_a_plan_that_is_known_is_answered_at_once(analyzer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client, query = analyzer.open(), asked("running")
    first = client.get(f"/plan.json?{query}").content
    monkeypatch.setattr(planner_module.PROTOCOLS, "family", lambda name: pytest.fail("it is planned again"))
    begun = time.process_time()
    for path in ("/plan.json", "/plan/part", "/plan", "/plan/file"):
        answer = client.get(f"{path}?{query}")
        assert answer.status_code == 200
    assert time.process_time() - begun < 4 * 0.3
    assert client.get(f"/plan.json?{query}").content == first


def test_only_so_many_plans_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[PlanWish] = []
    monkeypatch.setattr(planner_module, "_planned", planned.append)
    found, wishes = Planner(most=2), [PlanWish.read({"users": str(users)}) for users in (10, 20, 30)]
    for wish in (*wishes, *wishes[1:], wishes[0]):
        asyncio.run(found.answer(wish))
    assert planned == [*wishes, wishes[0]]


def test_wishes_wait_for_one_another_and_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread plans, however many ask: the others are the analyzer's, for batches."""
    at_once, most = [0], [0]

    def slowly(wish: PlanWish) -> PlanWish:
        at_once[0] += 1
        most[0] = max(most[0], at_once[0])
        time.sleep(0.02)
        at_once[0] -= 1
        return wish

    async def ask(planner: Planner) -> list[Any]:
        wishes = [PlanWish.read({"users": str(users)}) for users in (10, 10, 20, 30, 40)]
        return await asyncio.gather(*map(planner.answer, wishes), return_exceptions=True)

    monkeypatch.setattr(planner_module, "_planned", slowly)
    answers = asyncio.run(ask(Planner(most_waiting=4)))
    assert most == [1] and answers[0] is answers[1] and isinstance(answers[4], RefusedError)
    assert [type(each) for each in answers[:4]] == [PlanWish] * 4


@pytest.mark.parametrize(
    "wrong",
    [
        {"protocol": "everything"},
        {"users": "many"},
        {"users": "0"},
        {"users": "1.5"},
        {"users": "1e400"},
        {"users": "nan"},
        {"users": 10**12},
        {"epsilon": "-1"},
        {"delta": "0"},
        {"protocol": "running", "shufflers": "99"},
        {"protocol": "histogram", "categories": "10000000"},
        {"protocol": "sum", "low": "3", "high": "1"},
        {"honest_fraction": "2"},
    ],
)
def test_what_cannot_be_planned_is_said_in_a_sentence(wrong: dict[str, Any], analyzer: Any) -> None:
    client, query = analyzer.open(), urlencode({**TARGET, **wrong})
    page, part, data = (client.get(f"{path}?{query}") for path in ("/plan", "/plan/part", "/plan.json"))
    assert page.status_code == data.status_code == 400 and 'role="alert"' in page.text and part.text in page.text
    assert data.json()["detail"].split()[0] in {"protocol", *WISHES} and ":" in data.json()["detail"]


def test_an_empty_wish_is_the_defaults(analyzer: Any) -> None:
    wish = PlanWish.read({"users": " ", "epsilon": "", "live": "off"})
    assert dict(wish.numbers) == {
        name: WISHES[name].default for name in ("users", "epsilon", "delta", "honest_fraction")
    }
    assert not wish.live and PlanWish.read({"users": "10,000"}) == wish
    assert "People" in analyzer.open().get("/plan").text
