"""Releases reach whoever follows a task, on a real server, within two seconds; and only so many may follow."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from shuffledp.dashboard.events import LOOK_SECONDS, News
from shuffledp.service.problems import RefusedError

WITHIN = 2.0


def heard(lines: Iterator[str]) -> dict[str, Any]:
    """The next event."""
    line = next(line for line in lines if line.startswith("data: "))
    found: dict[str, Any] = json.loads(line.removeprefix("data: "))
    return found


def test_a_release_is_heard_of_within_two_seconds(analyzer: Any, address: str) -> None:
    task = analyzer.served["moving"]
    with httpx.stream("GET", f"{address}/tasks/{task.id}/events", timeout=30) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = stream.iter_lines()
        before = heard(lines)["release"]
        people = 1 if before is None else before["time"] + 1
        said: list[float] = []

        def publish() -> None:
            said.append(time.monotonic())
            analyzer.release("moving", people, 41.5)

        later = threading.Timer(0.2, publish)
        later.start()
        found = heard(lines)
        seconds = time.monotonic() - said[0]
        later.join()
    assert found["release"] == {
        "time": people,
        "estimate": 41.5,
        "standard_error": 3.0,
        "bound": 7.5,
        "confidence": 0.95,
        "dropped": 2,
        "void": 0,
    }
    assert seconds < WITHIN and LOOK_SECONDS < WITHIN / 2
    assert "41.5" in httpx.get(f"{address}/tasks/{task.id}/part").text


def test_a_model_is_heard_of(analyzer: Any, address: str) -> None:
    campaign = analyzer.served["campaign"]
    with httpx.stream("GET", f"{address}/campaigns/{campaign.id}/events", timeout=30) as stream:
        lines = stream.iter_lines()
        first = heard(lines)["model"]
        analyzer.learn()
        assert heard(lines)["model"] == first + 1


def test_however_many_follow_the_store_is_asked_once() -> None:
    asked = [0]

    def look() -> int:
        asked[0] += 1
        return asked[0]

    async def follow() -> None:
        news = News(most=3)
        streams = [news.follow("a task", look).body_iterator for _ in range(3)]  # type: ignore[attr-defined]
        firsts = await asyncio.gather(*(anext(each) for each in streams))
        assert set(firsts) == {"data: 1\n\n"} and asked[0] == 1
        with pytest.raises(RefusedError, match="3 pages are followed already"):
            news.follow("a task", look)
        await streams[0].aclose()
        news.follow("a task", look)
        for each in streams[1:]:
            await each.aclose()

    asyncio.run(follow())


def test_a_server_that_is_told_to_stop_is_not_held_up() -> None:
    told = [False]

    async def follow() -> list[str]:
        stream = News(is_over=lambda: told[0]).follow("a task", lambda: 1).body_iterator  # type: ignore[attr-defined]
        first = await anext(stream)
        told[0] = True
        return [first, *[event async for event in stream]]

    assert asyncio.run(follow()) == ["data: 1\n\n"]


def test_a_store_that_is_closed_ends_the_stream() -> None:
    from shuffledp.service.problems import NO_ROOM

    def look() -> int:
        raise RefusedError(NO_ROOM, "the store is closed: start the server again.")

    async def follow() -> list[str]:
        return [event async for event in News().follow("a task", look).body_iterator]  # type: ignore[attr-defined]

    assert asyncio.run(follow()) == []
