"""`shuffledp keys`, `task`, `report`, `estimate` and `doctor`, against both servers in a process of their own."""

import io
import json
import re
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np
import pytest

from shuffledp import BinarySum, Histogram, Privacy, VectorSum
from shuffledp.accounting.curves import epsilon_at
from shuffledp.continual.carried.planner import plan_carried
from shuffledp.continual.plan import CounterPlan
from shuffledp.randomness import RandomBits
from shuffledp.service.keys import load_public_key, make_hop_keys, make_keys
from shuffledp.service.store import open_outbox, open_shuffler_store
from shuffledp.service.task import Task
from shuffledp.service.wire import SentReport

SHUFFLEDP = str(Path(sys.executable).parent / "shuffledp")
PAGE = "http://localhost:8000"
USERS = 120
TARGET = ["--epsilon", 4, "--delta", 1e-2]


def written(path: Path, plan: Any) -> Path:
    path.write_text(json.dumps(plan.document()))
    return path


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("plans")
    privacy = Privacy(2, 1e-3)
    return {
        "coins": written(folder / "coins.json", BinarySum.plan(users=USERS, privacy=privacy, method="coins")),
        "shares": written(folder / "shares.json", BinarySum.plan(users=USERS, privacy=privacy, method="shares")),
        "vectors": written(
            folder / "vectors.json",
            VectorSum.plan(users=40, privacy=privacy, dimension=2, radius=1.0, method="bits"),
        ),
        "histogram": written(
            folder / "histogram.json",
            Histogram.plan(users=40, privacy=Privacy(4, 1e-2), categories=["red", "green", "blue"], method="decoys"),
        ),
        "counter": written(
            folder / "counter.json", CounterPlan.plan(users=USERS, shufflers=2, privacy=Privacy(4, 1e-2), noise="coins")
        ),
        "carried": written(
            folder / "carried.json", plan_carried(users=40, shufflers=2, privacy=Privacy(4, 1e-2), confidence=1 - 1e-9)
        ),
    }


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys") / "keys"
    make_keys(folder, bits=RandomBits.secure())
    return folder


# --- keys ----------------------------------------------------------------------------------------


def test_keys(run, asked, tmp_path: Path) -> None:
    made = asked("keys", tmp_path / "keys")
    assert made.keys() == {"schema", "folder", "public_key", "files"} and made["schema"] == 1
    assert made["public_key"] == load_public_key(tmp_path / "keys").text
    assert {file.name for file in (tmp_path / "keys").iterdir()} == set(made["files"])
    error = asked("keys", tmp_path / "keys", code=2)["error"]
    assert error["parameter"] == "folder" and "never overwritten" in error["message"]
    code, out, _ = run("keys", tmp_path / "more")
    assert code == 0 and "never the shuffler" in out and "Next:" in out
    secrets = [(tmp_path / "more" / name).read_text().strip() for name in ("enrol.token", "admin.token")]
    assert not any(secret in out for secret in secrets)


# --- tasks ---------------------------------------------------------------------------------------


TASK_KEYS = {
    "uncounted", "cost", "cost_warnings",
    "schema", "task_id", "protocol", "method", "question", "users", "epsilon", "delta", "honest_fraction",
    "fingerprint", "public_key", "routing", "longest_report_bytes", "who_sees_what", "collusions", "lying_client",
    "warnings", "rests_on", "issuer",
}  # fmt: skip


@pytest.mark.parametrize("kind", ["coins", "counter", "vectors", "histogram"])
def test_a_task_of_any_plan(run, asked, plans, keys: Path, tmp_path: Path, kind: str) -> None:
    file = tmp_path / "task.json"
    made = asked("task", "create", "--plan", plans[kind], "--keys", keys, "-o", file)
    shown = asked("task", "show", file)
    measured = made.pop("measured")
    assert shown.keys() == TASK_KEYS and made == shown | {"out": str(file), "ledger": None}
    cost = shown["cost"]
    assert cost["report_bytes_max"] == shown["longest_report_bytes"] and shown["cost_warnings"] == []
    assert measured["device_seconds"] == pytest.approx(measured["seal_seconds"] * cost["messages"])
    task = Task.load(file)
    weak = list(task.plan.privacy.cautions(task.plan.users))
    assert shown["task_id"] == task.id and shown["warnings"] == weak and bool(weak) == (kind == "counter")
    assert shown["collusions"][0]["parties"] == "analyzer alone"
    code, out, _ = run("task", "show", file)
    assert code == 0
    for said in (shown["task_id"][:40], "Who sees what", "the shuffler", "analyzer + ", "epsilon"):
        assert said in out, said
    error = asked("task", "create", "--plan", plans[kind], "--keys", keys, "-o", file, code=2)["error"]
    assert error["parameter"] == "out" and Task.load(file).id == shown["task_id"]


def test_the_cost_is_said_before_anything_is_written(run, plans, keys: Path, tmp_path: Path) -> None:
    """Also where nothing is written, as the budget is spent: the cost stands above the refusal."""
    create = ["task", "create", "--plan", plans["counter"], "--keys", keys, "-o", tmp_path / "task.json"]
    opened = ["ledger", "open", tmp_path / "ledger.json", "--population", "people"]
    assert run(*opened, "--epsilon", "0.001", "--delta", "1e-9")[0] == 0
    code, out, err = run(*create, "--ledger", tmp_path / "ledger.json")
    assert code == 2 and "budget must have" in err and not (tmp_path / "task.json").exists()
    for said in ("What it will cost", "a report", "all reports", "devices' CPU", "a shuffler stores"):
        assert said in out, said
    code, out, _ = run(*create)
    assert code == 0 and out.index("What it will cost") < out.index("A task")


def test_a_large_report_is_warned_of(run, asked, keys: Path, tmp_path: Path) -> None:
    words = ["--protocol", "histogram", "--users", 1000, "--categories", 50, "--epsilon", 1, "--delta", 1e-6]
    words += ["--method", "correlated"]
    create = ["task", "create", *words, "--keys", keys, "-o"]
    [warning] = asked(*create, tmp_path / "a.json")["cost_warnings"]
    assert "16,000" in warning
    code, out, _ = run(*create, tmp_path / "b.json")
    assert code == 0 and "Warning: A report has up to" in out and "16,000" in out


def test_two_tasks_of_one_plan_are_different(asked, plans, keys: Path, tmp_path: Path) -> None:
    first, second = (
        asked("task", "create", "--plan", plans["coins"], "--keys", keys / "analyzer.pub", "-o", tmp_path / name)
        for name in ("a.json", "b.json")
    )
    assert first["task_id"] != second["task_id"] and first["fingerprint"] == second["fingerprint"]


def test_methods_that_one_client_can_spoil_must_be_asked_for(run, asked, plans, keys: Path, tmp_path: Path) -> None:
    words = ["task", "create", "--plan", plans["shares"], "--keys", keys, "-o", tmp_path / "task.json"]
    error = asked(*words, code=2)["error"]
    assert error["parameter"] == "method" and "--allow-unbounded" in error["message"]
    assert list(tmp_path.iterdir()) == []
    assert len(asked(*words, "--allow-unbounded")["warnings"]) == 1
    assert "Warning: One client that lies" in run("task", "show", tmp_path / "task.json")[1].replace("\n", " ")


def test_carried_noise_must_be_asked_for_and_says_what_it_rests_on(
    run, asked, plans, keys: Path, tmp_path: Path
) -> None:
    file, exposed = tmp_path / "task.json", "5 false people in a row show a weighed sum of everybody before them"
    words = ["task", "create", "--plan", plans["carried"], "--keys", keys, "-o", file]
    error = asked(*words, code=2)["error"]
    assert error["parameter"] == "method" and exposed in error["message"] and "--allow-unbounded" in error["message"]
    assert "choose coins, what plan --live takes" in error["message"] and list(tmp_path.iterdir()) == []
    made = asked(*words, "--allow-unbounded")
    assert made["rests_on"] == f"every slot's people adding their noise: {exposed}, without noise"
    assert [exposed in warning for warning in made["warnings"]] == [False, True]
    assert made["warnings"] == json.loads(file.read_text())["warnings"]
    assert [each["parties"] for each in made["collusions"] if exposed in each["in_words"]] == [
        "analyzer + a whole slot"
    ]
    said = " ".join(run("task", "show", file)[1].split())
    assert f"it rests on every slot's people adding their noise: {exposed}" in said
    assert f"Warning: Noise is carried from slot to slot: {exposed}, without noise." in said
    # By options, as by a file.
    asked_for = ["--protocol", "counter", "--method", "carried", "--users", 40, "--shufflers", 2, *TARGET]
    by_options = ["task", "create", *asked_for, "--keys", keys, "-o", tmp_path / "other.json"]
    assert asked(*by_options, code=2)["error"]["parameter"] == "method"
    assert asked(*by_options, "--allow-unbounded")["rests_on"] == made["rests_on"]


@pytest.mark.parametrize("kind", ["coins", "counter"])
def test_a_task_spends_its_budget(asked, plans, keys: Path, tmp_path: Path, kind: str) -> None:
    ledger = tmp_path / "ledger.json"
    plan = cli_plan(plans[kind])
    epsilon, delta = plan.privacy.epsilon, plan.privacy.delta
    asked("ledger", "open", ledger, "--population", "panel", "--epsilon", 1.05 * epsilon, "--delta", delta)
    words = ["task", "create", "--plan", plans[kind], "--keys", keys, "--ledger", ledger, "-o"]
    made = asked(*words, tmp_path / "first.json")
    spent = asked("ledger", "show", ledger)
    (entry,) = spent["entries"]
    assert made["task_id"][:12] in entry["description"] and spent["version"] == 2
    if kind == "counter":
        # One batch's pair would say too little: what all of a user's batches show together is spent.
        assert epsilon_at(plan.pair(plan.honest_users), delta) < spent["spent"]["epsilon"] <= epsilon
        assert spent["spent"]["epsilon"] == pytest.approx(epsilon_at(plan.charged_pair, delta))
    before = ledger.read_bytes()
    error = asked(*words, tmp_path / "second.json", code=2)["error"]
    assert error["parameter"] == "budget" and "left" in error["message"]
    assert ledger.read_bytes() == before
    assert not (tmp_path / "second.json").exists() and not list(tmp_path.glob(".shuffledp*"))
    assert (
        asked(*words[:-2], tmp_path / "none.json", "-o", tmp_path / "x.json", code=2)["error"]["parameter"] == "ledger"
    )
    asked(*words[:-3], "--ledger", ledger, "-o", tmp_path / "nowhere" / "x.json", code=2)
    assert ledger.read_bytes() == before


def test_what_is_wrong_with_a_task_is_said(asked, plans, keys: Path, tmp_path: Path) -> None:
    words = ["task", "create", "-o", tmp_path / "t.json"]
    assert asked(*words, "--plan", "missing.json", "--keys", keys, code=2)["error"]["parameter"] == "plan"
    assert asked(*words, "--plan", plans["coins"], "--keys", tmp_path, code=2)["error"]["parameter"] == "keys"
    assert asked("task", "show", "missing.json", code=2)["error"]["parameter"] == "task"
    assert asked("task", "show", plans["coins"], code=2)["error"]["parameter"] == "task.version"
    assert not (tmp_path / "t.json").exists()


# --- a running service ---------------------------------------------------------------------------


class Running(NamedTuple):
    """Both servers, with a task of each kind."""

    folder: Path
    keys: Path
    tasks: dict[str, Path]
    shuffler: str
    analyzer: str
    process: int

    def to_shuffler(self, kind: str = "counter") -> list[object]:
        return ["--task", self.tasks[kind], "--shuffler", self.shuffler, "--token-file", self.keys / "enrol.token"]

    def to_analyzer(self, kind: str = "counter") -> list[object]:
        return ["--task", self.tasks[kind], "--analyzer", self.analyzer, "--token-file", self.keys / "read.token"]


def two_free_ports() -> int:
    for port in range(18_000 + int(time.time() * 10) % 20_000, 60_000, 2):
        try:
            for each in (port, port + 1):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", each))
        except OSError:
            continue
        return port
    raise AssertionError("no ports")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, plans, keys: Path) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("service")
    tasks = {}
    # The spare one is nobody's but its test's: the others may be full.
    for kind in ("coins", "counter", "vectors", "histogram", "carried", "spare"):
        plan = cli_plan(plans["coins" if kind == "spare" else kind])
        tasks[kind] = folder / f"{kind}.task.json"
        allowed = {"allow_unbounded": kind == "carried"}
        Task.create(plan, load_public_key(keys), bits=RandomBits.secure(), **allowed).save(tasks[kind])
    port = two_free_ports()
    words = [SHUFFLEDP, "serve", "all", "--folder", folder, "--keys", keys, "--port", port, "--allow-origin", PAGE]
    for task in tasks.values():
        words += ["--task", task]
    log = (folder / "log").open("wb")
    process = subprocess.Popen([str(word) for word in words], stdout=log, stderr=log)
    made = Running(folder, keys, tasks, f"http://127.0.0.1:{port}", f"http://127.0.0.1:{port + 1}", process.pid)
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                if all(httpx.get(f"{url}/readyz").is_success for url in (made.shuffler, made.analyzer)):
                    break
            except httpx.HTTPError:
                pass
            assert process.poll() is None and time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.1)
        yield made
    finally:
        process.terminate()
        process.wait(30)
        log.close()


def cli_plan(file: Path) -> Any:
    from shuffledp.protocols.catalogue import load_plan

    return load_plan(file)


REPORT_KEYS = {"schema", "task_id", "values", "reports", "new", "retried", "refused", "waiting", "seconds"}


def test_report_and_estimate_from_one_value_to_the_end(
    run, asked, service: Running, tmp_path: Path, monkeypatch
) -> None:
    before = asked("estimate", *service.to_analyzer())
    assert before["schema"] == 1 and before["estimate"] is None and before["time"] is None
    assert "none yet" in run("estimate", *service.to_analyzer())[1]

    one = asked("report", "1", *service.to_shuffler())
    assert one.keys() == REPORT_KEYS and (one["values"], one["reports"], one["new"]) == (1, 1, 1)
    assert "acknowledged" in run("report", "0", *service.to_shuffler())[1]

    monkeypatch.setattr(sys, "stdin", io.StringIO("1\n0\ntrue\nfalse\n"))
    assert asked("report", "-", *service.to_shuffler())["new"] == 4

    data = tmp_path / "clicks.csv"
    data.write_text("clicked,age\n" + "".join(f"{row % 2},{row}\n" for row in range(USERS - 6)))
    outbox = ["--outbox", tmp_path / "outbox.db"]
    sent = asked("report", "--file", data, "--column", "clicked", *outbox, *service.to_shuffler())
    assert (sent["new"], sent["waiting"], sent["refused"]) == (USERS - 6, 0, 0)
    # The same file again reports nothing again, and says so.
    assert asked("report", "--file", data, "--column", "clicked", *outbox, *service.to_shuffler())["reports"] == 0
    code, out, _ = run("report", "--file", data, "--column", "clicked", *outbox, *service.to_shuffler())
    assert code == 0 and "were reported before" in re.sub(r"\s+", " ", out)
    full = asked("report", "1", *service.to_shuffler(), code=2)["error"]
    assert "seats are taken" in full["message"]

    deadline = time.monotonic() + 60
    while (
        not (found := asked("estimate", *service.to_analyzer(), "--history"))["releases"] or found["time"] < USERS / 2
    ):
        assert time.monotonic() < deadline, found
        time.sleep(0.2)
    plan = Task.load(service.tasks["counter"]).plan
    assert abs(found["estimate"] - found["time"] / 2) <= found["bound"] + 3 and found["epsilon"] == plan.privacy.epsilon
    assert [release["time"] for release in found["releases"]] == sorted({r["time"] for r in found["releases"]})
    code, out, _ = run("estimate", *service.to_analyzer(), "--history")
    assert code == 0 and "±" in out and "So far" in out and "confidence" in out


def test_a_task_is_handed_to_servers_that_run(run, asked, service: Running, plans, tmp_path: Path) -> None:
    file = tmp_path / "task.json"
    Task.create(cli_plan(plans["coins"]), load_public_key(service.keys), bits=RandomBits.secure()).save(file)
    words = ["task", "send", file, "--shuffler", service.shuffler, "--analyzer", service.analyzer, "--token-file"]
    assert "403" in asked(*words, service.keys / "enrol.token", code=2)["error"]["message"]
    words.append(service.keys / "admin.token")
    assert asked(*words) == {"schema": 1, "task_id": Task.load(file).id, "new": {"analyzer": True, "shuffler": True}}
    assert asked(*words)["new"] == {"analyzer": False, "shuffler": False}
    assert "has it already" in run(*words)[1]
    token = ["--token-file", service.keys / "enrol.token"]
    assert asked("report", "1", "--task", file, "--shuffler", service.shuffler, *token)["new"] == 1
    nowhere = ["task", "send", file, "--token-file", service.keys / "admin.token"]
    assert asked(*nowhere, code=2)["error"]["parameter"] == "shuffler"


def test_vectors(asked, service: Running, tmp_path: Path, monkeypatch) -> None:
    to = service.to_shuffler("vectors")
    assert asked("report", "0.5,-0.5", *to)["new"] == 1
    monkeypatch.setattr(sys, "stdin", io.StringIO("0.1,0.2\n-0.3,0\n"))
    assert asked("report", "-", *to)["new"] == 2
    np.save(tmp_path / "v.npy", np.full((5, 2), 0.1))
    assert asked("report", "--file", tmp_path / "v.npy", *to)["new"] == 5
    (tmp_path / "v.csv").write_text("a,b,c\n0.1,0.2,9\n")
    assert asked("report", "--file", tmp_path / "v.csv", "--columns", "a,b", *to)["new"] == 1
    assert asked("report", "1", *to, code=2)["error"]["message"]
    assert asked("report", "--file", tmp_path / "v.csv", "--column", "a", *to, code=2)["error"]["parameter"] == "column"
    assert asked("report", "0.9,0.9", *to, code=2)["error"]["parameter"] == "values"


def test_a_histogram_by_names(run, asked, service: Running, tmp_path: Path, monkeypatch) -> None:
    to, at = service.to_shuffler("histogram"), service.to_analyzer("histogram")
    assert asked("report", "red", *to)["new"] == 1
    monkeypatch.setattr(sys, "stdin", io.StringIO("green\nred\n"))
    assert asked("report", "-", *to)["new"] == 2
    data = tmp_path / "people.csv"
    data.write_text("colour,age\n" + "".join(f"{'red' if row < 30 else 'green'},{row}\n" for row in range(37)))
    for value, said in (("purple", "purple"), ("1", "1")):
        error = asked("report", value, *to, code=2)["error"]
        assert error["parameter"] == "values" and said in error["message"] and "3 categories" in error["message"]
    error = asked("report", "--file", data, "--column", "age", *to, code=2)["error"]
    assert error["parameter"] == "values" and "'0' in row 1" in error["message"]
    outbox = ["--outbox", tmp_path / "outbox.db"]
    assert asked("report", "--file", data, "--column", "colour", *outbox, *to)["new"] == 37
    deadline = time.monotonic() + 60
    while (found := asked("estimate", *at))["estimate"] is None:
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
    assert found["categories"] == ["red", "green", "blue"] and found["time"] == 40
    # Four times a 95% bound: a false alarm is less likely than 1e-9.
    assert np.abs(np.array(found["estimate"]) - [32, 8, 0]).max() <= 4 * found["bound"]
    assert found["estimate"][0] > found["estimate"][2]
    code, out, _ = run("estimate", *at)
    assert code == 0 and out.index("red") < out.index("every category") and "confidence" in out


def test_a_running_count_with_carried_noise(run, asked, service: Running, tmp_path: Path) -> None:
    to, at = service.to_shuffler("carried"), service.to_analyzer("carried")
    assert asked("report", "1", *to)["new"] == 1
    np.save(tmp_path / "people.npy", np.arange(39) % 2)
    assert asked("report", "--file", tmp_path / "people.npy", "--outbox", tmp_path / "outbox.db", *to)["new"] == 39
    deadline = time.monotonic() + 60
    # The estimate and its history are two questions: what is released between them is in one answer only.
    while (found := asked("estimate", *at, "--history"))["time"] != 40 or found["releases"][-1]["time"] != 40:
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
    plan = Task.load(service.tasks["carried"]).plan
    edges = plan.schedule.users_by(np.arange(1, plan.weights.slots + 1)).tolist()
    assert [release["time"] for release in found["releases"]] == edges and found["void_batches"] == 0
    truth = np.cumsum([1, *(np.arange(39) % 2)])
    # The bound fails with probability 1e-9.
    assert all(abs(each["estimate"] - truth[each["time"] - 1]) <= plan.error_bound for each in found["releases"])
    code, out, _ = run("estimate", *at)
    said = " ".join(out.split())
    assert code == 0 and "it rests on every slot's people adding their noise: 5 false people in a row" in said
    assert "it rests on" not in run("estimate", *service.to_analyzer("counter"))[1]


def test_the_outbox_alone_is_flushed(asked, service: Running, tmp_path: Path) -> None:
    task = Task.load(service.tasks["coins"])
    box = tmp_path / "outbox.db"
    with open_outbox(box) as outbox:
        outbox.put(task.id, [SentReport("ab" * 16, "cd" * 16, bytes(task.routing.longest_report_bytes))])
    sent = asked("report", "--outbox", box, *service.to_shuffler("coins"))
    assert (sent["values"], sent["reports"], sent["refused"], sent["waiting"]) == (0, 0, 1, 0)


def bad_words(service: Running, folder: Path) -> list[tuple[list[object], str]]:
    to, at = service.to_shuffler("coins"), service.to_analyzer("coins")
    (folder / "short").write_text("abc")
    (folder / "bad.csv").write_text("x\n1\n2\n")
    (folder / "gaps.csv").write_text("x\n1\n\n")
    other = ["--task", service.tasks["coins"], "--token-file", service.keys / "enrol.token"]
    return [
        (["report", *to], "value"),
        (["report", "1", "--file", "x.csv", *to], "value"),
        (["report", "2", *to], "values"),
        (["report", "much", *to], "value"),
        (["report", "1", "--column", "x", *to], "column"),
        (["report", "--file", "missing.csv", "--column", "x", *to], "file"),
        (["report", "--file", folder / "bad.csv", *to], "values"),
        (["report", "--file", folder / "gaps.csv", *to], "column"),
        (["report", "--file", folder / "gaps.csv", "--missing", "default=2", *to], "missing"),
        (["report", "--file", folder / "gaps.csv", "--missing", "other", *to], "missing"),
        (["report", "1", "--missing", "default=0", *to], "missing"),
        (["report", "1", "--delimiter", ";", *to], "delimiter"),
        (["report", "1", *other, "--shuffler", "nowhere"], "shuffler"),
        (["report", "1", *to, "--patience", "-1"], "patience"),
        (["report", "1", *to[:-1], folder / "short"], "token_file"),
        (["report", "1", *to[:-1], folder / "missing"], "token_file"),
        (["report", "1", *to, "--outbox", folder / "no" / "box.db"], "outbox"),
        (["report", "1", "--task", "missing.json", *to[2:]], "task"),
        (["estimate", "--task", "missing.json", *at[2:]], "task"),
        (["estimate", *at[:2], "--analyzer", "nowhere", *at[4:]], "analyzer"),
        (["doctor", "--shuffler", "nowhere"], "shuffler"),
    ]


def test_bad_input_is_one_sentence_and_exit_code_2(run, asked, service: Running, tmp_path: Path) -> None:
    for words, parameter in bad_words(service, tmp_path):
        code, out, err = run(*words)
        lines = err.strip().splitlines()
        assert code == 2 and out == "" and len(lines) == 1 and lines[0].endswith("."), (words, code, out, err)
        error = asked(*words, code=2)["error"]
        assert error.keys() == {"message", "parameter", "value"} and error["parameter"] == parameter, (words, error)


def test_servers_that_refuse_or_are_not_there(asked, run, service: Running) -> None:
    task = ["--task", service.tasks["coins"]]
    wrong = ["--token-file", service.keys / "hop.token"]
    error = asked("report", "1", *task, "--shuffler", service.shuffler, *wrong, code=2)["error"]
    assert "403 role-wrong" in error["message"] and "0 acknowledged" in error["message"]
    error = asked("estimate", *task, "--analyzer", service.analyzer, *wrong, code=2)["error"]
    assert "403" in error["message"]
    nobody = f"http://127.0.0.1:{two_free_ports()}"
    right = ["--token-file", service.keys / "enrol.token"]
    error = asked("report", "1", *task, "--shuffler", nobody, *right, "--patience", "0", code=2)["error"]
    assert "cannot be reached" in error["message"]
    code, _, err = run("report", "1", *task, "--shuffler", nobody, *right, "--patience", "0.5")
    waits, ends = err.splitlines()
    assert code == 2 and waits == f"no answer from {nobody} yet: trying for 0.5 s (--patience)"
    assert "cannot be reached" in ends
    error = asked("estimate", *task, "--analyzer", nobody, *right, "--patience", "0", code=2)["error"]
    assert "cannot be reached" in error["message"]


@pytest.mark.parametrize("role", ["analyzer", "shuffler", "all"])
def test_a_port_that_is_taken_is_one_sentence_and_nothing_is_written(
    run, keys: Path, tmp_path: Path, role: str
) -> None:
    port, store = two_free_ports() + 1, tmp_path / "new" / "store.db"
    with socket.create_server(("127.0.0.1", port)):
        more = {
            "analyzer": ["--store", store, "--port", port],
            "shuffler": ["--store", store, "--port", port, "--analyzer", "http://127.0.0.1:1"],
            # The second of its two ports is the one that is taken.
            "all": ["--folder", tmp_path / "new", "--port", port - 1],
        }[role]
        code, out, err = run("serve", role, "--keys", keys, *more)
    assert code == 2 and out == "" and err.count("\n") == 1, err
    assert err.startswith("shuffledp: port must be one that is free on 127.0.0.1") and f"got {port}" in err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("role", ["analyzer", "shuffler", "all", "cascade"])
def test_a_start_that_is_refused_leaves_nothing(run, keys: Path, plans, tmp_path: Path, role: str) -> None:
    """A task is taken and the next one is not, or the analyzer is made and a hop is not: no store, lock or folder."""
    first, second, new = tmp_path / "first.json", tmp_path / "second.json", tmp_path / "new"
    Task.create(cli_plan(plans["coins"]), load_public_key(keys), bits=RandomBits.secure()).save(first)
    second.write_text(first.read_text().replace('"slot_users"', '"slots"'))
    assert second.read_text() != first.read_text()
    hops = [tmp_path / "hop-1", tmp_path / "hop-2"]
    for each in hops:
        make_hop_keys(each, bits=RandomBits.secure())
    more = {
        "analyzer": ["--store", new, "--task", second],
        "shuffler": ["--store", new, "--analyzer", "http://127.0.0.1:1", "--task", second],
        "all": ["--folder", new, "--task", second],
        "cascade": ["--folder", new, "--hop", hops[0], "--hop", hops[1]],
    }[role]
    code, out, err = run("serve", role, "--keys", keys, "--port", two_free_ports(), "--task", first, *more)
    assert code == 2 and out == "" and "Traceback" not in err, err
    assert not list(tmp_path.glob("new*")), list(tmp_path.glob("new*"))


def test_a_store_of_another_role_is_left_as_it_was(run, keys: Path, tmp_path: Path) -> None:
    store = tmp_path / "shuffler.db"
    open_shuffler_store(store).close()
    (tmp_path / "shuffler.db.lock").unlink()
    before = store.read_bytes()
    code, _, err = run("serve", "analyzer", "--keys", keys, "--store", store, "--port", two_free_ports())
    assert code == 2 and "must be of analyzer" in err
    assert store.read_bytes() == before and {each.name for each in tmp_path.iterdir()} >= {"shuffler.db"}
    assert not (tmp_path / "shuffler.db.lock").exists()


@pytest.mark.parametrize("role", ["analyzer", "shuffler", "all", "cascade"])
def test_pages_are_named_one_by_one(run, keys: Path, tmp_path: Path, role: str) -> None:
    more = {
        "analyzer": ["--store", tmp_path / "new.db"],
        "shuffler": ["--store", tmp_path / "new.db", "--analyzer", "http://127.0.0.1:1"],
        "all": ["--folder", tmp_path / "new"],
        "cascade": ["--folder", tmp_path / "new", "--hop", keys, "--hop", keys],
    }[role]
    code, out, err = run("serve", role, "--keys", keys, *more, "--allow-origin", "*")
    assert code == 2 and out == "" and err.startswith("shuffledp: allow_origin must be one page's origin"), err
    assert not list(tmp_path.glob("new*"))


def test_a_page_that_is_named_may_ask_both_servers(service: Running) -> None:
    for url in (service.shuffler, service.analyzer):
        for origin, header in ((PAGE, PAGE), ("https://other.example", None)):
            answer = httpx.get(f"{url}/healthz", headers={"Origin": origin})
            assert answer.headers.get("access-control-allow-origin") == header


# --- the doctor ----------------------------------------------------------------------------------


def by_name(document: dict[str, Any]) -> dict[str, dict[str, str]]:
    assert document.keys() == {"schema", "checks", "failed"}
    assert all(check.keys() == {"name", "status", "found", "to_do"} for check in document["checks"])
    assert document["failed"] == sum(check["status"] == "fail" for check in document["checks"])
    assert all(check["to_do"] for check in document["checks"] if check["status"] == "fail")
    return {check["name"]: check for check in document["checks"]}


def test_a_healthy_service(run, asked, service: Running) -> None:
    words = ["doctor", "--keys", service.keys, "--task", service.tasks["coins"], "--shuffler", service.shuffler]
    words += ["--analyzer", service.analyzer, "--store", service.folder / "shuffler.db"]
    words += ["--store", service.folder / "analyzer.db"]
    checks = by_name(asked(*words))
    assert {check["status"] for name, check in checks.items() if "disk" not in name and "mode" not in name} == {"ok"}
    for role, label in (("shuffler", "shuffler 3"), ("analyzer", "analyzer 1")):
        assert f"by process {service.process}" in checks[f"store {role}.db held"]["found"]
        assert checks[f"{role} clock"]["found"].startswith("off by 0.")
        assert f"{role} serves the task" in checks and checks[f"store {role}.db"]["found"] == f"{label}, ok"
    assert {"shuffler refuses nobody", "shuffler refuses hop", "analyzer refuses enrol"} <= checks.keys()
    code, out, _ = run(*words)
    assert code == 0 and "All is well." in out
    assert by_name(asked("doctor")).keys() == {"python", "shuffledp", "sqlite", "cryptography"}


def test_addresses_of_stores_reach_the_doctor_and_an_outbox_as_they_were_typed(
    asked, service: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As paths, sqlite:///x.db became sqlite:/x.db, a file in a folder of that name."""
    monkeypatch.chdir(tmp_path)
    outbox = f"sqlite://{tmp_path}/outbox.db"
    assert asked("report", "1", "--outbox", outbox, *service.to_shuffler("spare"))["new"] == 1
    assert {each.name for each in tmp_path.iterdir()} >= {"outbox.db"} and not (tmp_path / "sqlite:").exists()
    checks = by_name(asked("doctor", "--store", outbox, "--store", f"sqlite://{service.folder}/shuffler.db"))
    assert (
        checks["store outbox.db"]["found"] == "outbox 1, ok" and checks["store outbox.db held"]["found"] == "by nobody"
    )
    assert f"by process {service.process}" in checks["store shuffler.db held"]["found"]
    unknown = by_name(asked("doctor", "--store", "redis://here", code=3))["store here"]
    assert unknown["status"] == "fail" and "sqlite://" in unknown["found"]


def test_the_doctor_finds_what_is_wrong(run, asked, service: Running, plans, tmp_path: Path) -> None:
    other = tmp_path / "keys"
    make_keys(other, bits=RandomBits.secure())
    (other / "analyzer.key").chmod(0o644)
    (other / "read.token").write_text("x" * 64)
    (other / "hop.token").chmod(0o644)
    (tmp_path / "notes.db").write_text("no database")
    with sqlite3.connect(tmp_path / "foreign.db") as db:
        db.execute("CREATE TABLE t (x)")
    db.close()
    unknown = tmp_path / "task.json"
    Task.create(cli_plan(plans["coins"]), load_public_key(service.keys), bits=RandomBits.secure()).save(unknown)
    words = ["doctor", "--keys", other, "--task", unknown, "--shuffler", service.shuffler]
    words += ["--analyzer", f"http://127.0.0.1:{two_free_ports()}", "--store", tmp_path / "notes.db"]
    words += ["--store", tmp_path / "foreign.db", "--store", tmp_path / "none.db"]
    checks = by_name(asked(*words, code=3))
    failed = {name for name, check in checks.items() if check["status"] == "fail"}
    assert failed >= {
        "private key", "read token", "hop token", "task's key", "analyzer", "store notes.db", "store foreign.db",
        "store none.db", "shuffler refuses hop", "shuffler serves the task",
    }  # fmt: skip
    assert "chmod 600" in checks["private key"]["to_do"]
    assert "another tokens.json" in checks["shuffler refuses hop"]["to_do"]
    code, out, _ = run(*words)
    assert code == 3 and "checks failed" in out
    secret = json.loads((other / "tokens.json").read_text())["admin"]
    assert secret not in out
    # With the right keys, the task is what the shuffler does not have.
    checks = by_name(asked("doctor", "--keys", service.keys, "--task", unknown, "--shuffler", service.shuffler, code=3))
    assert (
        "404" in checks["shuffler serves the task"]["found"] and "--task" in checks["shuffler serves the task"]["to_do"]
    )
    checks = by_name(asked("doctor", "--shuffler", "http://shuffler.invalid", code=3))
    assert checks["shuffler TLS"]["status"] == checks["shuffler"]["status"] == "fail"
    assert by_name(asked("doctor", "--task", plans["coins"], code=3))["task"]["status"] == "fail"


def test_a_clock_that_is_off_is_found(asked, service: Running, monkeypatch) -> None:
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 60)
    words = ["--keys", service.keys, "--task", service.tasks["coins"], "--shuffler", service.shuffler]
    checks = by_name(asked("doctor", *words, code=3))
    assert checks["shuffler clock"]["status"] == "fail" and "NTP" in checks["shuffler clock"]["to_do"]
