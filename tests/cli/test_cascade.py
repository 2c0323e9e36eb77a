"""Cascades from the command line: keys for hops, tasks that name them, servers, the doctor, and who learns what."""

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from harness.world import PeelerHere
from shuffledp import BinarySum, Privacy
from shuffledp.cli.foreign_keys import check_next_hop
from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.service.campaign import Campaign
from shuffledp.service.coalitions import looking, replacing
from shuffledp.service.keys import (
    load_hop_key,
    load_hop_public_key,
    load_public_key,
    load_token,
    load_tokens,
    make_hop_keys,
    make_keys,
)
from shuffledp.service.shuffler.layers import Layer
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.store import open_shuffler_store
from shuffledp.service.task import Task

SHUFFLEDP = str(Path(sys.executable).parent / "shuffledp")
USERS = 20
PLAN = ("--protocol", "binary-sum", "--users", USERS, "--epsilon", 4, "--delta", 1e-2, "--method", "coins")


class Folders(NamedTuple):
    keys: Path
    hops: list[Path]

    @property
    def named(self) -> list[Any]:
        return [word for hop in self.hops for word in ("--hop", hop)]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    place, bits = tmp_path_factory.mktemp("cascade"), RandomBits.secure()
    make_keys(place / "keys", bits=bits)
    for number in (1, 2, 3):
        make_hop_keys(place / f"hop-{number}", bits=bits)
    return Folders(place / "keys", [place / f"hop-{number}" for number in (1, 2, 3)])


def test_a_hops_keys(run, asked, tmp_path: Path) -> None:
    made = asked("keys", tmp_path / "hop", "--hop")
    assert {file.name for file in (tmp_path / "hop").iterdir()} == set(made["files"])
    assert set(made["files"]) == {
        *("hop.key", "hop.pub", "tokens.json"),
        *(f"{role}.token" for role in ("enrol", "hop", "read", "admin")),
    }
    public = load_hop_public_key(tmp_path / "hop")
    assert made["public_key"] == public.text == load_hop_key(tmp_path / "hop").public.text
    assert (tmp_path / "hop" / "hop.key").stat().st_mode & 0o077 == 0
    code, out, _ = run("keys", tmp_path / "more", "--hop")
    assert code == 0 and "this hop only" in out and "task create" in out
    assert load_token(tmp_path / "more" / "hop.token") not in out


def test_a_task_names_its_hops_and_who_learns_what(run, asked, folders: Folders, tmp_path: Path) -> None:
    made = asked("task", "create", *PLAN, "--keys", folders.keys, *folders.named, "-o", tmp_path / "task.json")
    task = Task.load(tmp_path / "task.json")
    assert task.hops == tuple(map(load_hop_public_key, folders.hops)) and made["routing"]["layers"] == 3
    assert made["cascade"]["hops"] == 3 and len([row for row in made["cascade"]["looking"] if not row["users"]]) == 31
    assert made["measured"]["hop_seconds"] > 0 and made["cost"]["layers"] == 3
    code, out, _ = run("task", "show", tmp_path / "task.json")
    said = " ".join(out.split())
    assert code == 0 and "hop 3" in said and "one honest hop is enough" in said and "hops 1 2 3, analyzer" in said
    # The file of a public key will do, and one hop will not.
    pub = folders.hops[0] / "hop.pub"
    error = asked(*("task", "create", *PLAN, "--keys", folders.keys, "--hop", pub, "-o", tmp_path / "one.json"), code=2)
    assert "must be 2 or 3 in a cascade" in error["error"]["message"]
    error = asked(
        *("task", "create", *PLAN, "--keys", folders.keys, "--hop", folders.keys, "-o", tmp_path / "x"), code=2
    )
    assert "hop.pub" in error["error"]["message"]


def test_a_campaign_names_its_hops(asked, folders: Folders, tmp_path: Path) -> None:
    words = ("--arms", 2, "--users", 200, "--epsilon", 8, "--delta", 1e-2, "--batches", "fixed", "--batch", 50)
    out = tmp_path / "campaign.json"
    asked("campaign", "create", "arms", "--keys", folders.keys, *folders.named[:4], *words, "-o", out)
    assert len(Campaign.load(out).hops) == 2


def test_explain_lists_every_set_of_parties(run, asked) -> None:
    words = ("explain", "binary-sum", "--users", 200, "--epsilon", 1, "--delta", 1e-3, "--method", "coins", "--hops")
    told = asked(*words, 2)["cascade"]
    assert {tuple(row["parties"]) for row in told["looking"]} >= {("analyzer",), ("hop 1", "hop 2", "analyzer")}
    assert told["replacing"][0]["epsilon"] == 1
    code, out, _ = run(*words, 3)
    assert code == 0 and "hops 1 2 3, analyzer" in out and "honest share" in out
    assert "hops must be 2 or 3" in asked(*words, 4, code=2)["error"]["message"]


def test_the_pages_figures_are_the_accountants() -> None:
    page = (Path(__file__).parents[2] / "docs" / "howto" / "run-a-cascade.md").read_text("utf-8")
    plan = BinarySum.plan(users=1000, privacy=Privacy(1, 1e-6), live=True)
    by_users = {row.users: row.epsilon for row in looking(plan, 3) if row.users}
    assert f"epsilon {by_users[0.1]:.3g} with a tenth of the users, {by_users[0.5]:.3g} with a half" in page
    tenth, half = (replacing(plan, count).epsilon for count in (100, 500))
    assert f"epsilon {tenth:.3g} after 100 replaced messages" in page and f"{half:.3g} after 500" in page


def test_the_doctor_knows_a_hops_folder(asked, folders: Folders, tmp_path: Path) -> None:
    asked("task", "create", *PLAN, "--keys", folders.keys, *folders.named[:4], "-o", tmp_path / "task.json")
    checks = {
        each["name"]: each
        for each in asked("doctor", "--keys", folders.hops[1], "--task", tmp_path / "task.json")["checks"]
    }
    assert checks["task's hop"]["found"] == "hop 2 of 2" and checks["hop's private key"]["status"] == "ok"
    found = asked("doctor", "--keys", folders.hops[2], "--task", tmp_path / "task.json", code=3)
    wrong = {each["name"]: each for each in found["checks"]}["task's hop"]
    assert wrong["status"] == "fail" and wrong["found"] == "none of its hops"
    # Keys of two pairs do not fit together.
    shutil.copytree(folders.hops[0], tmp_path / "mixed")
    shutil.copy(folders.hops[1] / "hop.pub", tmp_path / "mixed" / "hop.pub")
    found = asked("doctor", "--keys", tmp_path / "mixed", code=3)
    assert {each["name"]: each for each in found["checks"]}["hop's public key"]["status"] == "fail"


def test_a_hops_store_is_looked_at_ended_and_purged_as_any_shufflers(
    run, asked, folders: Folders, tmp_path: Path
) -> None:
    task, file = tmp_path / "task.json", tmp_path / "hop.db"
    asked("task", "create", *PLAN, "--keys", folders.keys, *folders.named, "-o", task)
    own = load_hop_key(folders.hops[1])
    layer = Layer(2, own.public, PeelerHere(own))
    server = ShufflerServer(open_shuffler_store(file), post=lambda path, body: 503, layer=layer)
    server.add_task(Task.load(task).text)
    server.stop()
    for folder, code in ((folders.hops[1], 0), (folders.hops[0], 3)):
        checks = asked("doctor", "--keys", folder, "--task", task, "--store", file, code=code)["checks"]
        found = {each["name"]: each for each in checks}
        assert "of 0 batches that left no table is there" in found["remains in store hop.db"]["found"]
        assert found["store hop.db key"]["found"] == own.public.text
        assert found["store hop.db key"]["status"] == ("fail" if code else "ok")
    ended = asked("store", "end", file, task)
    assert ended["role"] == "shuffler" and ended["task_id"] == Task.load(task).id
    assert asked("store", "purge", file)["role"] == "shuffler"


def test_keys_of_a_hop_are_not_taken_for_an_analyzers(run, asked, tmp_path: Path) -> None:
    hop, keys = tmp_path / "hop", tmp_path / "keys"
    make_hop_keys(hop, bits=RandomBits.secure())
    make_keys(keys, bits=RandomBits.secure())
    before = {file.name for file in hop.iterdir()}
    code, _, err = run("keys", "rotate", hop)
    assert code == 2 and "a hop's key is not rotated" in err and "keys FOLDER --hop" in err
    roles = {"enrol", "hop", "read", "admin"}
    assert set(asked("keys", "rotate", hop, "--tokens")["older_tokens"]) == roles
    assert {file.name for file in hop.iterdir()} - before == {"keys.lock"} and set(load_tokens(hop).secrets) == roles
    code, out, _ = run("keys", "rotate", hop, "--tokens")
    assert code == 0 and "start this hop again" in out and "analyzer" not in out
    served = ("--port", 0, "--store", tmp_path / "s.db", "--keys")
    code, _, err = run("serve", "analyzer", *served, hop)
    assert code == 2 and "name the analyzer's folder, as this one is a hop's" in err
    code, _, err = run("serve", "shuffler", "--hop", 1, "--next", "http://127.0.0.1:9", *served, keys)
    assert code == 2 and "name a hop's folder, as this one is an analyzer's" in err


def test_a_hop_serves_no_task_for_one_shuffler(run, asked, folders: Folders, tmp_path: Path) -> None:
    """The next hop would take none of its batches: they would wait for ever."""
    asked("task", "create", *PLAN, "--keys", folders.keys, "-o", tmp_path / "task.json")
    served = ("--store", tmp_path / "hop.db", "--next", "http://127.0.0.1:9", "--task", tmp_path / "task.json")
    code, _, err = run("serve", "shuffler", "--hop", 1, "--keys", folders.hops[0], *served, "--port", free_ports(1)[0])
    assert code == 2 and "hop must be left out: the task is for one shuffler" in err and "Traceback" not in err


@pytest.mark.parametrize(
    ("hop", "keys", "words"),
    [
        (2, 0, "must be the task's hop 2"),
        (4, 0, "hop must lie in 1..3"),
        (None, 0, "must be given: the task is for a cascade of 3"),
    ],
)
def test_a_hop_that_is_none_of_the_tasks_is_told_so(
    run, asked, folders: Folders, tmp_path: Path, hop: int | None, keys: int, words: str
) -> None:
    asked("task", "create", *PLAN, "--keys", folders.keys, *folders.named, "-o", tmp_path / "task.json")
    own = () if hop is None else ("--hop", hop)
    served = ("--store", tmp_path / "hop.db", "--next", "http://127.0.0.1:9", "--task", tmp_path / "task.json")
    code, _, err = run("serve", "shuffler", *own, "--keys", folders.hops[keys], *served, "--port", free_ports(1)[0])
    assert code == 2 and words in err and "Traceback" not in err


# --- all of it as processes -----------------------------------------------------------------------


class Serving(NamedTuple):
    task: Path
    folder: Path
    port: int


def free_ports(count: int) -> list[int]:
    """Ports that follow each other and are free."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            first = probe.getsockname()[1]
        try:
            for port in range(first, first + count):
                with socket.create_server(("127.0.0.1", port)):
                    pass
        except OSError:
            continue
        return list(range(first, first + count))


@pytest.fixture(scope="module")
def serving(folders: Folders, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    place = tmp_path_factory.mktemp("serving")
    plan = BinarySum.plan(users=USERS, privacy=Privacy(4, 1e-2), method="coins")
    hops = [load_hop_public_key(each) for each in folders.hops]
    Task.create(plan, load_public_key(folders.keys), bits=RandomBits.secure(), hops=hops).save(place / "task.json")
    port = free_ports(4)[0]
    words = [SHUFFLEDP, "serve", "cascade", "--folder", place / "stores", "--keys", folders.keys, *folders.named]
    words += ["--task", place / "task.json", "--port", port]
    with (place / "log").open("wb") as log:
        process = subprocess.Popen([str(word) for word in words], stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 60
        ready: set[int] = set()
        while len(ready) < 4:
            assert process.poll() is None and time.monotonic() < deadline, (place / "log").read_text()
            time.sleep(0.1)
            for each in range(port, port + 4):
                try:
                    ready |= {each} if httpx.get(f"http://127.0.0.1:{each}/readyz").is_success else set()
                except httpx.HTTPError:
                    continue
        yield Serving(place / "task.json", place / "stores", port)
    finally:
        process.terminate()
        process.wait(30)


def test_reports_go_through_all_hops(asked, folders: Folders, serving: Serving, tmp_path: Path) -> None:
    values = tmp_path / "values.csv"
    values.write_text("v\n" + "1\n0\n" * (USERS // 2))
    task, port = serving.task, serving.port
    told = asked(
        *("report", "--file", values, "--column", "v", "--task", task, "--shuffler", f"http://127.0.0.1:{port}"),
        *("--token-file", folders.hops[0] / "enrol.token"),
    )
    assert told["reports"] == USERS
    read = ("estimate", "--task", task, "--analyzer", f"http://127.0.0.1:{port + 3}", "--token-file")
    deadline = time.monotonic() + 60
    while (found := asked(*read, folders.keys / "read.token"))["released_batches"] == 0:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert found["dropped"] == 0 and found["time"] == USERS
    metrics = httpx.get(f"http://127.0.0.1:{port + 1}/metrics").text
    messages = USERS * Task.load(task).routing.longest_report_messages
    assert f"shuffledp_shuffler_messages_peeled_total {float(messages)}" in metrics
    checks = asked(
        *("doctor", "--keys", folders.hops[1], "--task", task, "--shuffler", f"http://127.0.0.1:{port + 1}"),
        *("--store", serving.folder / "hop-2.db"),
    )["checks"]
    found = {each["name"]: each["found"] for each in checks}
    assert "hop 2 of 3" in found["shuffler serves the task"] and "hop 2" in found["store hop-2.db"]


def test_a_hop_is_not_sent_to_another_than_the_next_one(
    run, folders: Folders, serving: Serving, tmp_path: Path
) -> None:
    """Its batches would be refused there for ever; of a server that does not answer nothing is known."""
    urls = [f"http://127.0.0.1:{serving.port + place}" for place in range(4)]
    tokens = [load_tokens(each).secrets["hop"] for each in (*folders.hops, folders.keys)]
    texts = [Task.load(serving.task).text]
    for hop, place, words in (
        (1, 2, "must be hop 2, and is hop 3"),
        (1, 3, "must be hop 2, and is the analyzer"),
        (2, 1, "must be hop 3, and is hop 2"),
        (3, 0, "must be the analyzer, and is hop 1"),
        (None, 0, "must be the analyzer, and is hop 1"),
    ):
        with pytest.raises(ParameterError, match=words):
            check_next_hop(urls[place], tokens[place], hop, texts if hop else [])
    for hop in (1, 2, 3):
        check_next_hop(urls[hop], tokens[hop], hop, texts)
    check_next_hop(f"http://127.0.0.1:{free_ports(1)[0]}", tokens[1], 1, texts)
    check_next_hop(urls[2], "a token of somebody else", 1, texts)
    served = ("--store", tmp_path / "hop.db", "--next", urls[2], "--next-token", folders.hops[2] / "hop.token")
    served += ("--task", serving.task, "--port", free_ports(1)[0])
    code, _, err = run("serve", "shuffler", "--hop", 1, "--keys", folders.hops[0], *served)
    assert code == 2 and "must be hop 2, and is hop 3" in err and not list(tmp_path.iterdir())


def test_a_hop_takes_batches_from_whoever_has_its_token_only(folders: Folders, serving: Serving) -> None:
    url = f"http://127.0.0.1:{serving.port + 1}/v1/tasks/{Task.load(serving.task).id}/batches/1.0.1"
    binary = {"Content-Type": "application/octet-stream"}

    def post(token: str | None) -> httpx.Response:
        header = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.post(url, content=b"nothing", headers=binary | header)

    # Nobody's, the first hop's own, and one of this hop's for another role.
    assert post(None).status_code == post(load_token(folders.hops[0] / "hop.token")).status_code == 401
    assert post(load_token(folders.hops[1] / "enrol.token")).status_code == 403
    refused = post(load_token(folders.hops[1] / "hop.token"))
    assert refused.status_code == 422 and json.loads(refused.text)["detail"].startswith("the batch has 7 bytes")


def test_the_demo_runs_every_hop_as_a_process_of_its_own(asked, tmp_path: Path) -> None:
    words = ("--users", 40, "--shufflers", 2, "--epsilon", 8, "--delta", 1e-2, "--clients", 1, "--hops", 2)
    told = asked("demo", "--folder", tmp_path, *words)
    assert told["hops"] == 2 and told["reports_acknowledged"] == told["users"] and told["batches_released"] > 0
    assert {file.name for file in (tmp_path / "run-1").glob("*.db")} >= {"hop-1.db", "hop-2.db", "analyzer.db"}
    logs = b"".join(log.read_bytes() for log in (tmp_path / "run-1").glob("*.log"))
    assert b"Traceback" not in logs
