"""What a shuffler says of itself to whoever opens its address."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

from shuffledp.service.shuffler import door


def test_it_says_what_it_is_as_text_and_as_a_page(make_service: Callable[..., Any]) -> None:
    client = make_service().at("shuffler")
    text = client.get("/", headers={"Accept": "*/*"})
    page = client.get("/", headers={"Accept": "text/html,application/xhtml+xml"})
    assert text.status_code == page.status_code == 200
    assert text.headers["content-type"].startswith("text/plain") and page.headers["content-type"].startswith(
        "text/html"
    )
    for answer in (text, page):
        assert "cannot read them" in answer.text and "/openapi.json" in answer.text
        assert {name: answer.headers[name] for name in door.HEADERS} == door.HEADERS
    assert page.text.startswith("<!doctype html>") and "<script" not in page.text and "style=" not in page.text


def test_a_shuffler_never_sees_the_page_of_an_analyzer() -> None:
    code = "import sys, shuffledp.service.shuffler.app; print([m for m in sys.modules if m.startswith({})])"
    rooms = ("shuffledp.dashboard", "shuffledp.protocols", "shuffledp.accounting")
    out = subprocess.run([sys.executable, "-c", code.format(rooms)], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"
