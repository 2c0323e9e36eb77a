"""Who may look at the page: roles, sessions, forms, hosts, and what every answer tells a browser."""

import re
from typing import Any

import httpx
import pytest

from shuffledp.dashboard.access import FORM, SESSION, SESSION_SECONDS, Access
from shuffledp.dashboard.app import HEADERS, STATIC, Dashboard
from shuffledp.service.serving import Address
from shuffledp.service.tokens import ROLES

PAGES = ["/", "/tasks/{task}", "/campaigns/{campaign}", "/plan"]
DATA = [
    *(f"/tasks/{{task}}/{name}" for name in ("part", "chart.json", "data.json", "data.csv")),
    *(f"/campaigns/{{campaign}}/{name}" for name in ("part", "data.json")),
    *("/plan/part", "/plan.json", "/plan/file"),
]
STREAMS = ["/tasks/{task}/events", "/campaigns/{campaign}/events"]


def at(path: str, analyzer: Any) -> str:
    return path.format(task=analyzer.served["running"].id, campaign=analyzer.served["campaign"].id)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def typed_in(client: httpx.Client, token: str) -> httpx.Response:
    """The form, filled in as a browser does it."""
    form = re.search(r'name="form" value="(\w+)"', client.get("/login").text)
    assert form is not None
    return client.post("/login", data={"form": form[1], "token": token})


def test_these_are_all_routes(analyzer: Any) -> None:
    """Whatever is added is tried below."""
    routes = {route.path for route in Dashboard(analyzer.server, Access(analyzer.tokens, is_open=False)).routes()}
    named = {
        path.replace("{task}", "{task_id}").replace("{campaign}", "{campaign_id}") for path in PAGES + DATA + STREAMS
    }
    assert routes == named | {"/login", "/logout", "/static/{name:path}"}


@pytest.mark.parametrize("path", PAGES + DATA + STREAMS)
def test_nobody_looks_without_the_token_for_read(path: str, analyzer: Any) -> None:
    client, url = analyzer.far(), at(path, analyzer)
    answer = client.get(url)
    if path in PAGES:
        assert answer.status_code == 303 and answer.headers["location"] == "/login"
    else:
        assert answer.status_code == 401
    wrong = {"nonsense": 401, **{role: 403 for role in ROLES if role not in ("read", "admin")}}
    for role, status in wrong.items():
        token = analyzer.tokens.secrets.get(role, "nonsense")
        assert client.get(url, headers=bearer(token)).status_code == status, role
        assert client.get(url, headers={"Cookie": f"{SESSION}={token}"}).status_code in (303, 401), role
    for refused in (answer, client.get(url, headers=bearer("nonsense"))):
        assert analyzer.served["running"].plan.question not in refused.text


@pytest.mark.parametrize("path", PAGES + DATA)
def test_the_token_lets_in_by_a_header_and_by_a_session(path: str, analyzer: Any) -> None:
    client, url = analyzer.far(), at(path, analyzer)
    for role in ("read", "admin"):
        assert client.get(url, headers=bearer(analyzer.tokens.secrets[role])).status_code == 200
    assert typed_in(client, analyzer.tokens.secrets["read"]).status_code == 303
    assert client.get(url).status_code == 200


@pytest.mark.parametrize(("role", "status"), [("enrol", 403), ("hop", 403), (None, 401)])
def test_the_form_takes_no_other_token(role: str | None, status: int, analyzer: Any) -> None:
    client = analyzer.far()
    answer = typed_in(client, analyzer.tokens.secrets.get(role, "nonsense"))
    assert answer.status_code == status and SESSION not in client.cookies and 'role="alert"' in answer.text


def test_a_session_is_the_browsers_own_and_ends(analyzer: Any) -> None:
    now = [1e9]
    client = analyzer.far(clock=lambda: now[0])
    answer = typed_in(client, analyzer.tokens.secrets["read"])
    [cookie] = [each for each in answer.headers.get_list("set-cookie") if each.startswith(SESSION)]
    for word in ("HttpOnly", "SameSite=strict", "Secure", "Path=/", f"Max-Age={SESSION_SECONDS}"):
        assert word in cookie
    assert analyzer.tokens.secrets["read"] not in cookie and "Domain" not in cookie
    assert client.get("/").status_code == 200
    ends, _, code = client.cookies[SESSION].partition(".")
    for forged in (f"{int(ends) + 1}.{code}", f"{ends}.{code[:-1]}", f"{ends}.", ends, "", ".", "é.é"):
        assert (
            analyzer.far(clock=lambda: now[0]).get("/", headers={"Cookie": f"{SESSION}={forged}".encode()}).status_code
            == 303
        )
    now[0] += SESSION_SECONDS
    assert client.get("/").status_code == 303


def test_another_token_ends_all_sessions(analyzer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client = analyzer.far()
    typed_in(client, analyzer.tokens.secrets["read"])
    secrets = {**analyzer.tokens.secrets, "read": "another secret of the same role, long enough"}
    with monkeypatch.context() as other:
        other.setattr(analyzer, "tokens", type(analyzer.tokens)(secrets))
        changed = analyzer.far()
    assert client.get("/").status_code == 200
    changed.cookies.update(client.cookies)
    assert changed.get("/").status_code == 303


def test_a_folder_without_a_token_for_read_lets_nobody_in_by_mistake(
    analyzer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = analyzer.tokens.secrets
    for kept, status in ((("enrol", "hop"), 401), (("hop", "admin"), 303)):
        with monkeypatch.context() as other:
            other.setattr(analyzer, "tokens", type(analyzer.tokens)({role: secrets[role] for role in kept}))
            client = analyzer.far()
        assert client.get("/").status_code == 303
        assert client.get("/", headers={"Cookie": f"{SESSION}=1.{'0' * 64}"}).status_code in (303, 401)
        assert typed_in(client, secrets["admin"]).status_code == status
        assert client.get("/").status_code == (200 if status == 303 else 303)


def test_logging_out_is_a_form_too(analyzer: Any) -> None:
    client = analyzer.far()
    typed_in(client, analyzer.tokens.secrets["read"])
    assert client.get("/logout").status_code == 405
    assert client.post("/logout", data={"form": "0" * 32}).status_code == 403
    form = re.search(r'action="/logout".*?name="form" value="(\w+)"|name="form" value="(\w+)"', client.get("/").text)
    assert client.post("/logout", data={"form": form[1] or form[2]}).status_code == 303
    assert client.get("/").status_code == 303


@pytest.mark.parametrize(
    "wrong",
    [
        {"cookies": {}},
        {"form": "0" * 32},
        {"form": ""},
        {"headers": {"Origin": "https://elsewhere.example"}},
        {"headers": {"Origin": "null"}},
        {"headers": {"Sec-Fetch-Site": "cross-site"}},
        {"headers": {"Sec-Fetch-Site": "same-site"}},
    ],
)
def test_forms_of_other_sites_are_refused(wrong: dict[str, Any], analyzer: Any) -> None:
    client = analyzer.far()
    client.get("/login")
    form = client.cookies[FORM]
    if "cookies" in wrong:
        client.cookies.clear()
    token = analyzer.tokens.secrets["read"]
    answer = client.post("/login", data={"form": wrong.get("form", form), "token": token}, headers=wrong.get("headers"))
    assert answer.status_code == 403 and SESSION not in client.cookies


def test_a_form_of_another_type_or_too_long_is_refused(analyzer: Any) -> None:
    client = analyzer.far()
    client.get("/login")
    given = {"form": client.cookies[FORM], "token": analyzer.tokens.secrets["read"]}
    assert client.post("/login", json=given).status_code == 400
    assert client.post("/login", data={**given, "more": "x" * 5000}).status_code == 413
    assert SESSION not in client.cookies


@pytest.mark.parametrize("path", [*PAGES, *DATA, "/login", "/static/dashboard.css", "/static/nothing", "/tasks/nobody"])
def test_every_answer_is_strict_with_browsers(path: str, analyzer: Any) -> None:
    for client in (analyzer.open(), analyzer.far()):
        answer = client.get(at(path, analyzer))
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        assert answer.headers["cache-control"] == (
            "public, max-age=300" if path in map("/static/{}".format, STATIC) else "no-store"
        )
    policy = HEADERS["Content-Security-Policy"]
    assert "unsafe" not in policy and "*" not in policy and "http" not in policy and "frame-ancestors 'none'" in policy


@pytest.mark.parametrize("name", ["../app.py", "vendor/../../app.py", "%2e%2e/app.py", "vendor", ""])
def test_only_the_pages_own_files_are_there(name: str, analyzer: Any) -> None:
    answer = analyzer.open().get(f"/static/{name}")
    assert answer.status_code == 404 and "import" not in answer.text


@pytest.mark.parametrize("host", ["elsewhere.example", "127.0.0.1.elsewhere.example", "10.1.2.3:8002", "[", ""])
def test_on_this_machine_only_its_own_names_are_answered(host: str, analyzer: Any) -> None:
    """A page of the web whose name leads to 127.0.0.1 sees nothing."""
    client = analyzer.open()
    for path in (*PAGES, *DATA):
        assert client.get(at(path, analyzer), headers={"Host": host}).status_code == 403
    for own in ("localhost:8002", "127.0.0.1:8002", "[::1]:8002"):
        assert client.get("/", headers={"Host": own}).status_code == 200


@pytest.mark.parametrize("path", ["/", "/plan.json"])
def test_other_sites_may_link_here_and_load_nothing(path: str, analyzer: Any) -> None:
    client = analyzer.open()
    for site, mode, status in (
        ("cross-site", "no-cors", 403),
        ("cross-site", "cors", 403),
        ("cross-site", "navigate", 200),
        ("same-origin", "cors", 200),
        ("none", "navigate", 200),
    ):
        assert client.get(path, headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode}).status_code == status


@pytest.mark.parametrize(
    ("where", "always", "is_open"),
    [
        ({}, False, True),
        ({"host": "localhost"}, False, True),
        ({}, True, False),
        ({"behind_proxy": True}, False, False),
        ({"host": "0.0.0.0", "behind_proxy": True}, False, False),
        ({"uds": "page.sock"}, False, False),
    ],
)
def test_only_this_machine_itself_needs_no_token(
    where: dict[str, Any], always: bool, is_open: bool, analyzer: Any
) -> None:
    access = Access.at(analyzer.tokens, Address(port=8002, **where), always=always)
    assert access.is_open == is_open
    assert access.is_secure == (where not in ({}, {"host": "localhost"}))


def test_no_token_is_ever_in_an_address(analyzer: Any) -> None:
    client = analyzer.far()
    assert client.get(f"/?token={analyzer.tokens.secrets['read']}").status_code == 303
    typed_in(client, analyzer.tokens.secrets["read"])
    for path in PAGES:
        page = client.get(at(path, analyzer)).text
        assert not any(secret in page for secret in analyzer.tokens.secrets.values())
        assert all("token" not in link for link in re.findall(r'href="([^"]*)"', page))


def test_the_interface_for_programs_is_as_it_was(analyzer: Any) -> None:
    client = analyzer.open()
    assert client.get(f"/v1/tasks/{analyzer.served['count'].id}").status_code == 401
    assert client.get("/nothing").status_code == 404 and client.get("/healthz").text == "ok\n"
