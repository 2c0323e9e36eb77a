"""The page in a real Chromium: it moves, it is quiet, it can be read by everybody and worked without a mouse."""

from collections.abc import Iterator
from typing import Any

import pytest

from harness.chromium import axe, chromium, tab
from shuffledp.dashboard.access import Access

WITHIN_MS = 2000


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One browser for all tests of this file."""
    with chromium() as found:
        yield found


def paths(analyzer: Any) -> list[str]:
    tasks = [f"/tasks/{analyzer.served[name].id}" for name in ("running", "histogram")]
    return ["/", *tasks, f"/campaigns/{analyzer.served['campaign'].id}", "/plan", "/login"]


def test_the_estimate_moves_while_one_looks(analyzer: Any, address: str, browser: Any) -> None:
    task = analyzer.served["moving"]
    newest, _ = analyzer.server.latest(task.id)
    people = 1 if newest is None else newest.time + 1
    with tab(browser, address) as page:
        analyzer.release("moving", people, 50.0)
        page.goto(f"{address}/tasks/{task.id}")
        page.wait_for_selector("#state:text('Live')")
        page.wait_for_selector("#chart canvas")
        before = page.text_content("#number")
        assert page.get_by_role("meter", name="shuffler 2").is_visible()
        assert "shuffler 2: full" in page.inner_text("#fills")
        analyzer.release("moving", people + 1, 77.25)
        page.wait_for_selector("#number:text-is('77.25')", timeout=WITHIN_MS)
        assert before == "50" and page.text_content("#releases tbody tr th") == str(people + 1)
        # The picture is still there, and can be kept.
        assert page.is_visible("#picture figure canvas")
        with page.expect_download() as kept:
            page.click("#png")
        assert kept.value.path().read_bytes().startswith(b"\x89PNG") and kept.value.suggested_filename.endswith(".png")


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nobody_is_kept_out(theme: str, width: int, analyzer: Any, address: str, browser: Any) -> None:
    script = axe()
    with tab(browser, address, width=width, theme=theme) as page:
        for path in paths(analyzer):
            page.goto(f"{address}{path}")
            if "/tasks/" in path:
                page.wait_for_selector("#chart canvas")
            page.evaluate(script)
            found = page.evaluate("axe.run({resultTypes: ['violations']}).then(found => found.violations)")
            grave = [
                (each["id"], [node["html"] for node in each["nodes"]])
                for each in found
                if each["impact"] in ("serious", "critical")
            ]
            assert not grave, (path, grave)
            # Nothing is wider than the screen.
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
            dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
            assert dark == (theme == "dark")


CONTROLS = "a[href], button, input:not([type=hidden]), select, [tabindex='0']"
VISIBLE = f"""[...document.querySelectorAll({CONTROLS!r})].filter(each => each.checkVisibility())
    .map((each, place) => {{ each.dataset.place = place; return place; }})"""
FOCUSED = """(() => { const each = document.activeElement, style = getComputedStyle(each);
    return [each.dataset.place, style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0]; })()"""


def test_every_control_is_reached_by_the_keyboard(analyzer: Any, address: str, browser: Any) -> None:
    with tab(browser, address) as page:
        for path in paths(analyzer)[:5]:
            page.goto(f"{address}{path}")
            if "/tasks/" in path:
                page.wait_for_selector("#png:not([hidden])")
                page.wait_for_timeout(1000)
            places, reached = page.evaluate(VISIBLE), []
            page.evaluate("document.body.tabIndex = -1, document.body.focus()")
            for _ in places:
                page.keyboard.press("Tab")
                place, outlined = page.evaluate(FOCUSED)
                assert outlined, (path, place)
                reached.append(place)
            assert reached == [str(place) for place in places], path


def test_the_planner_is_worked_by_keys(analyzer: Any, address: str, browser: Any) -> None:
    with tab(browser, address) as page:
        page.goto(f"{address}/plan?users=300&epsilon=2&delta=1e-4&live=1")
        assert page.is_hidden("#shufflers") and page.is_hidden("#categories")
        page.focus("#epsilon-slider")
        with page.expect_response(lambda answer: "/plan/part" in answer.url):
            page.keyboard.press("ArrowRight")
            page.keyboard.press("PageDown")
        typed = page.input_value("#epsilon")
        page.wait_for_selector(f"#answer dd:has-text('epsilon {typed},')")
        assert float(typed) != 2 and f"epsilon={typed}&" in page.url
        page.focus("#protocol")
        with page.expect_response(lambda answer: "protocol=histogram" in answer.url):
            page.select_option("#protocol", "histogram")
        page.wait_for_selector("#answer dd:has-text('categories')")
        assert page.is_visible("#categories") and page.is_hidden("#low")
        with page.expect_download() as kept:
            page.click("#answer a[download]")
        assert (
            kept.value.suggested_filename == "plan.json"
            and b'"protocol": "histogram"' in kept.value.path().read_bytes()
        )


def test_a_token_is_typed_in(analyzer: Any, browser: Any, a_port: Any) -> None:
    access = Access(analyzer.tokens, is_open=False, is_secure=False)
    with a_port(analyzer.app(access)) as address, tab(browser, address) as page:
        page.goto(address)
        assert page.url == f"{address}/login"
        # The field has the focus by itself, as soon as the page is there.
        page.wait_for_selector("#token:focus")
        page.keyboard.type(analyzer.tokens.secrets["read"])
        page.keyboard.press("Enter")
        page.wait_for_selector("text=Tasks and campaigns")
        assert page.url == f"{address}/" and page.evaluate("document.cookie") == ""
        page.click("text=Log out")
        page.wait_for_selector("#token")


def test_hostile_names_run_nothing(analyzer: Any, address: str, browser: Any) -> None:
    with tab(browser, address) as page:
        page.on("dialog", lambda dialog: pytest.fail("a name has run"))
        page.goto(f"{address}/tasks/{analyzer.served['histogram'].id}")
        page.wait_for_selector("#chart canvas")
        assert page.evaluate("document.querySelectorAll('main img, main svg, main script').length") == 0
