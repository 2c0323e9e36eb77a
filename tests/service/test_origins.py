"""Pages in browsers: what is answered to those whose origins are named, and to all others."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from shuffledp.errors import ParameterError
from shuffledp.service.analyzer.app import analyzer_app
from shuffledp.service.origins import Origins
from shuffledp.service.shuffler.app import shuffler_app

PAGE, OTHER = "https://page.example", "https://other.example"
SERVERS = ("shuffler", "analyzer")


@pytest.fixture
def named(make_service: Callable[..., Any]) -> Any:
    """Both servers, which one page may call."""
    service = make_service()
    origins = Origins.of([PAGE])
    service.apps["shuffler"] = shuffler_app(service.shuffler, service.tokens, origins=origins)
    service.apps["analyzer"] = analyzer_app(service.analyzer, service.tokens, origins=origins)
    return service


def preflight(service: Any, server: str, origin: str, method: str = "PUT", headers: str = "authorization") -> Any:
    asked = {"Origin": origin, "Access-Control-Request-Method": method, "Access-Control-Request-Headers": headers}
    return service.at(server).options("/v1/tasks", headers=asked)


def allowed(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name.startswith("access-control-")}


@pytest.mark.parametrize("server", SERVERS)
def test_a_named_page_is_told_what_it_may_send(named: Any, server: str) -> None:
    answer = preflight(named, server, PAGE, headers="authorization,content-type")
    said = allowed(answer)
    assert answer.status_code == 200 and said["access-control-allow-origin"] == PAGE
    assert "authorization" in said["access-control-allow-headers"].lower()
    assert set(said["access-control-allow-methods"].split(", ")) == {"GET", "POST", "PUT"}
    # No cookie goes along, and nothing is for everybody.
    assert "access-control-allow-credentials" not in said and "*" not in said.values()
    assert "Origin" in answer.headers["vary"]


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize(
    "asked",
    [
        {"origin": OTHER},
        {"origin": "null"},
        {"origin": PAGE + ".evil.example"},
        {"origin": "http://page.example"},
        {"origin": PAGE, "method": "DELETE"},
        {"origin": PAGE, "headers": "x-device-id"},
    ],
)
def test_anything_else_is_refused(named: Any, server: str, asked: dict[str, str]) -> None:
    answer = preflight(named, server, **asked)
    assert answer.status_code == 400
    assert asked["origin"] == PAGE or "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("server", SERVERS)
def test_answers_and_refusals_can_be_read_by_a_named_page_only(named: Any, server: str) -> None:
    for origin, header in ((PAGE, PAGE), (OTHER, None), (None, None)):
        headers = {} if origin is None else {"Origin": origin}
        healthy = named.at(server).get("/healthz", headers=headers)
        refused = named.at(server).get("/v1/tasks/any", headers=headers)
        unknown = named.at(server).get("/nowhere", headers=headers)
        assert [each.status_code for each in (healthy, refused, unknown)] == [200, 401, 404]
        for answer in (healthy, refused, unknown):
            assert answer.headers.get("access-control-allow-origin") == header
        assert header is None or "Retry-After" in healthy.headers["access-control-expose-headers"]


@pytest.mark.parametrize("server", SERVERS)
def test_a_page_still_needs_a_token(named: Any, server: str) -> None:
    answer = named.at(server).post(
        "/v1/tasks", content="{}", headers={"Origin": PAGE, "Content-Type": "application/json"}
    )
    assert answer.status_code == 401


@pytest.mark.parametrize("server", SERVERS)
def test_without_names_no_page_is_let_through(make_service: Callable[..., Any], server: str) -> None:
    service = make_service()
    answer = preflight(service, server, PAGE)
    assert answer.status_code == 405 and not allowed(answer)
    assert not allowed(service.at(server).get("/healthz", headers={"Origin": PAGE}))


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("https://Page.example/", PAGE),
        ("https://page.example:443", PAGE),
        ("https://page.example:8443", "https://page.example:8443"),
        ("http://localhost:8000", "http://localhost:8000"),
        ("http://[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_origins_are_written_as_browsers_do(typed: str, written: str) -> None:
    assert Origins.of([typed, typed]).named == (written,)


@pytest.mark.parametrize(
    "typed",
    ["*", "null", "", "page.example", "https://*.example", "https://page.example/path", "https://page.example?x",
     "https://me@page.example", "http://page.example", "ftp://page.example", "https://page.example:port"],
)  # fmt: skip
def test_what_is_no_origin_is_refused(typed: str) -> None:
    with pytest.raises(ParameterError, match="allow_origin"):
        Origins.of([typed])
