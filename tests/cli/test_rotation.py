"""`shuffledp keys rotate|retire`, `store end|purge`, and servers whose keys do not fit: one sentence, nothing lost."""

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from harness.world import OpenerHere, report_of
from shuffledp import BinarySum, Privacy
from shuffledp.cli.foreign_keys import check_task_keys, doubt_of_tokens
from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.service.analyzer.server import AnalyzerServer
from shuffledp.service.key_notes import created_tasks
from shuffledp.service.keys import ANALYZER, load_private_key, load_public_key, load_tokens, make_keys
from shuffledp.service.rotation import retire_keys, rotate_keys
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.store import open_analyzer_store, open_shuffler_store
from shuffledp.service.task import Task

BITS = RandomBits.secure()
TARGET = ["--users", 6, "--epsilon", 4, "--delta", 1e-2, "--method", "coins"]


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    make_keys(tmp_path / "keys", bits=BITS)
    return tmp_path / "keys"


@pytest.fixture
def task(keys: Path, tmp_path: Path) -> Path:
    """A task of the first key, in an analyzer's and in a shuffler's store."""
    plan = BinarySum.plan(users=6, privacy=Privacy(4, 1e-2), method="coins")
    made = Task.create(plan, load_public_key(keys), bits=BITS)
    made.save(tmp_path / "task.json")
    key = load_private_key(keys)
    with closing(open_analyzer_store(tmp_path / "analyzer.db")) as store:
        AnalyzerServer(store, key=key, opener=OpenerHere(key)).add_task(made.text)
    with closing(open_shuffler_store(tmp_path / "shuffler.db")) as store:
        ShufflerServer(store, post=lambda path, body: 500).add_task(made.text)
    return tmp_path / "task.json"


def one_sentence(run: Callable[..., Any], *words: object) -> str:
    code, out, err = run(*words)
    assert code == 2 and out == "" and err.count("\n") == 1 and err.endswith(".\n"), (code, out, err)
    return str(err)


def test_a_key_is_not_retired_before_an_analyzer_has_the_tasks_that_were_created_for_it(
    run: Any, asked: Any, keys: Path, tmp_path: Path
) -> None:
    older = ANALYZER.older(load_private_key(keys))
    create = ("task", "create", "--protocol", "binary-sum", *TARGET, "--keys")
    ids = [asked(*create, keys, "-o", tmp_path / f"{name}.json")["task_id"] for name in ("given", "kept")]
    # Whoever has the public half alone has nothing to write beside it.
    (tmp_path / "elsewhere.pub").write_bytes((keys / "analyzer.pub").read_bytes())
    asked(*create, tmp_path / "elsewhere.pub", "-o", tmp_path / "elsewhere.json")
    assert set(created_tasks(keys)) == set(ids)
    asked("keys", "rotate", keys)
    with closing(open_analyzer_store(tmp_path / "analyzer.db")) as store:
        key = ANALYZER.ring(keys)[1]
        AnalyzerServer(store, key=key, opener=OpenerHere(key)).add_task(Task.load(tmp_path / "given.json").text)
    asked("store", "end", tmp_path / "analyzer.db", ids[0])
    retire = ("keys", "retire", keys, "--store", tmp_path / "analyzer.db")
    held = one_sentence(run, *retire)
    assert f"{older} by task {ids[1][:12]}, which is in none of these stores" in held and "--force" in held
    assert ids[0][:12] not in held and older in {each.name for each in keys.iterdir()}
    assert older in asked(*retire, "--force")["destroyed"]


def test_from_a_rotation_to_the_end_of_the_old_key(
    run: Any, asked: Any, keys: Path, task: Path, tmp_path: Path
) -> None:
    before = load_private_key(keys)
    made = asked("keys", "rotate", keys)
    older = ANALYZER.older(before)
    assert made["public_key"] == load_public_key(keys).text != before.public.text and older in made["older_keys"]
    new = asked("task", "create", "--protocol", "binary-sum", *TARGET, "--keys", keys, "-o", tmp_path / "new.json")
    assert new["public_key"] == made["public_key"]
    checks = {each["name"]: each for each in asked("doctor", "--keys", keys, "--task", task)["checks"]}
    assert checks["task's key"]["found"].endswith("an older one") and older in checks["older keys"]["found"]
    # It is needed: the task goes on.
    stores = ["--store", tmp_path / "analyzer.db"]
    held = one_sentence(run, "keys", "retire", keys, *stores)
    assert f"{older} by task {Task.load(task).id[:12]}" in held and "store end" in held
    assert "must be an older key's file" in one_sentence(run, "keys", "retire", keys, *stores, "--key", "analyzer.key")
    [models] = set(made["older_keys"]) - {older}
    assert asked("keys", "retire", keys, *stores, "--key", models)["destroyed"] == [models]
    assert "must be given: it says which keys are needed" in one_sentence(run, "keys", "retire", keys)
    assert "must be an analyzer's" in one_sentence(run, "keys", "retire", keys, "--store", tmp_path / "shuffler.db")
    assert "must be a file" in one_sentence(run, "keys", "retire", keys, "--store", tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists() and before in ANALYZER.ring(keys)
    # Until its operator ends it, at both servers.
    for role, what in (("analyzer", "unread batches"), ("shuffler", "reports' ids")):
        ended = asked("store", "end", tmp_path / f"{role}.db", task)
        assert ended["role"] == role and ended["task_id"] == Task.load(task).id and ended["deleted"][what] == 0
        assert "that goes on" in one_sentence(run, "store", "end", tmp_path / f"{role}.db", task)
    done = asked("keys", "retire", keys, *stores)
    assert older in done["destroyed"] and not (keys / older).exists()
    code, out, _ = run("keys", "retire", keys, *stores)
    assert code == 0 and "there are no older keys" in out
    # What names the destroyed key is told so, wherever it comes.
    for words in (["doctor", "--keys", keys, "--task", task],):
        found = {each["name"]: each for each in asked(*words, code=3)["checks"]}["task's key"]
        assert found["status"] == "fail" and "was destroyed on 20" in found["found"]
    serve = ["serve", "analyzer", "--store", tmp_path / "other.db", "--keys", keys, "--port", 0]
    said = one_sentence(run, *serve, "--task", task)
    assert "was destroyed on 20" in said and "create the task again" in said and "start the analyzer again" not in said
    # Each of several tasks is looked at.
    checks = asked("doctor", "--keys", keys, "--task", task, "--task", tmp_path / "new.json", code=3)["checks"]
    assert [each["status"] for each in checks if each["name"] == "task's key"] == ["fail", "ok"]
    for words in (["keys", "rotate", keys], ["store", "purge", tmp_path / "analyzer.db"]):
        code, out, _ = run(*words)
        assert code == 0 and out


def test_a_store_that_needs_a_key_which_is_not_there(
    run: Any, asked: Any, keys: Path, task: Path, tmp_path: Path
) -> None:
    """Destroyed by hand, or another folder: the analyzer does not start, and the doctor says which task needs it."""
    rotate_keys(keys, bits=BITS)
    retire_keys(keys, {})
    before = (tmp_path / "analyzer.db").read_bytes()
    serve = ["serve", "analyzer", "--store", tmp_path / "analyzer.db", "--port", 0, "--keys"]
    said = one_sentence(run, *serve, keys)
    assert f"task {Task.load(task).id[:12]} of the store needs it, and was destroyed on 20" in said
    make_keys(tmp_path / "foreign", bits=BITS)
    assert "is unknown in" in one_sentence(run, *serve, tmp_path / "foreign")
    assert (tmp_path / "analyzer.db").read_bytes() == before
    checks = asked("doctor", "--keys", keys, "--store", tmp_path / "analyzer.db", code=3)["checks"]
    [found] = [each for each in checks if each["name"] == "keys of store analyzer.db"]
    assert found["status"] == "fail" and Task.load(task).id[:12] in found["found"] and "store end" in found["to_do"]


def test_tokens(run: Any, asked: Any, keys: Path) -> None:
    before = load_tokens(keys).secrets
    assert asked("keys", "rotate", keys, "--tokens")["older_tokens"] == dict.fromkeys(before, 1)
    checks = {each["name"]: each for each in asked("doctor", "--keys", keys)["checks"]}
    assert checks["older tokens"]["found"] == "5 are taken, too" and checks["enrol token"]["status"] == "ok"
    assert asked("keys", "retire", keys, "--tokens")["tokens"] == 5
    code, out, _ = run("keys", "rotate", keys, "--tokens")
    secrets = [*load_tokens(keys).secrets.values(), *before.values()]
    assert code == 0 and "start the analyzer again, then the shuffler" in " ".join(out.split())
    assert not any(secret in out for secret in secrets)


def test_a_folder_that_others_may_change_fails_the_doctor(asked: Any, keys: Path) -> None:
    """Who can replace analyzer.pub reads whatever is sent to tasks that are created afterwards."""
    keys.chmod(0o755)
    assert asked("doctor", "--keys", keys)["failed"] == 0
    keys.chmod(0o777)
    [check] = [each for each in asked("doctor", "--keys", keys, code=3)["checks"] if each["status"] == "fail"]
    assert check["name"] == "folder of keys" and "chmod 700" in check["to_do"]


def test_a_folder_may_have_a_verbs_name_and_options_come_first(
    run: Any, asked: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert asked("keys", "--json", "./rotate")["folder"] == "rotate"
    assert asked("keys", "make", "plain")["folder"] == "plain"
    for words, said in (([], "rotate"), (["plain"], "A new folder."), (["retire"], "Destroy older keys")):
        code, out, _ = run("keys", *words, "--help")
        assert code == 0 and said in out


# --- keys of another service ---------------------------------------------------------------------


def test_a_shuffler_with_the_keys_of_another_service_is_told(run: Any, keys: Path, task: Path, tmp_path: Path) -> None:
    make_keys(tmp_path / "foreign", bits=BITS)
    text = task.read_text().strip()
    with pytest.raises(ParameterError, match="must be of this folder"):
        check_task_keys(tmp_path / "foreign", [text])
    serve = ["serve", "shuffler", "--store", tmp_path / "new.db", "--analyzer", "http://127.0.0.1:1", "--port", 0]
    said = one_sentence(run, *serve, "--keys", tmp_path / "foreign", "--task", task)
    assert "public_key must be of this folder" in said and "keys of another service?" in said
    assert not (tmp_path / "new.db").exists()
    # Where there are tokens alone nothing can be known; with a public half there is a doubt.
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(tmp_path / "foreign" / "tokens.json", alone)
    assert check_task_keys(alone, [text]) == []
    shutil.copy(tmp_path / "foreign" / "analyzer.pub", alone)
    [doubt] = check_task_keys(alone, [text])
    assert "these are the tokens of another service" in doubt
    shutil.copy(keys / "analyzer.pub", alone)
    assert check_task_keys(alone, [text]) == []
    # A task of an older key is the folder's, too.
    rotate_keys(keys, bits=BITS)
    assert check_task_keys(keys, [text]) == []
    tokens = json.loads((alone / "tokens.json").read_text())
    (alone / "tokens.json").write_text(json.dumps({each: tokens[each] for each in ("version", "read", "enrol")}))
    assert "must have a token for hop" in one_sentence(run, *serve, "--keys", alone)


@pytest.mark.parametrize(("status", "is_doubt"), [(401, True), (403, True), (404, False), (500, False)])
def test_an_analyzer_that_does_not_know_the_token_is_a_doubt(status: int, is_doubt: bool) -> None:
    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        doubt = doubt_of_tokens(url, "t" * 64)
    assert (doubt is not None) == is_doubt and "t" * 64 not in str(doubt)
    assert doubt_of_tokens("http://127.0.0.1:1", "t" * 64) is None


# --- other bad input -----------------------------------------------------------------------------


def test_a_store_of_another_role_is_refused_and_stays_as_it_is(
    run: Any, keys: Path, task: Path, tmp_path: Path
) -> None:
    for role, other in (("analyzer", "shuffler"), ("shuffler", "analyzer")):
        file = tmp_path / f"{other}.db"
        before = file.read_bytes()
        more = ["--analyzer", "http://127.0.0.1:1"] if role == "shuffler" else []
        said = one_sentence(run, "serve", role, "--store", file, "--keys", keys, "--port", 0, *more)
        assert f"must be of {role}" in said and f"a store of {other}" in said
        assert file.read_bytes() == before


@pytest.mark.parametrize("role", ["shuffler", "analyzer"])
def test_a_second_server_on_one_file_does_not_start(
    run: Any, keys: Path, task: Path, tmp_path: Path, role: str
) -> None:
    """It is told which process has the store; what that one keeps is not touched."""
    hold = (
        "import sys, time; from pathlib import Path; from shuffledp.service import store\n"
        "held = getattr(store, f'open_{sys.argv[1]}_store')(sys.argv[2]); print('held', flush=True); time.sleep(60)"
    )
    file = tmp_path / f"{role}.db"
    holding = subprocess.Popen([sys.executable, "-c", hold, role, str(file)], stdout=subprocess.PIPE, text=True)
    try:
        assert holding.stdout is not None and holding.stdout.readline() == "held\n"
        more = ["--analyzer", "http://127.0.0.1:1"] if role == "shuffler" else []
        said = one_sentence(run, "serve", role, "--store", file, "--keys", keys, "--port", 0, *more)
        assert f"must be free, and process {holding.pid} has held it" in said
        for words in (["store", "end", file, task], ["store", "purge", file]):
            assert f"process {holding.pid} has held it" in one_sentence(run, *words)
        if role == "analyzer":
            assert f"process {holding.pid}" in one_sentence(run, "keys", "retire", keys, "--store", file)
    finally:
        holding.kill()
        holding.communicate()


def test_what_is_wrong_with_a_purge_is_said(run: Any, keys: Path, task: Path, tmp_path: Path) -> None:
    front = tmp_path / "shuffler.db"
    assert "leave --answers out" in one_sentence(run, "store", "purge", front, "--answers")
    assert "must be a file or an id of 64 signs" in one_sentence(run, "store", "end", front, "nothing")
    assert "that goes on" in one_sentence(run, "store", "end", front, "ab" * 32)
    assert "must be a file" in one_sentence(run, "store", "purge", tmp_path / "nowhere.db")
    (keys / "tokens.json").chmod(0o644)
    serve = ["serve", "shuffler", "--store", front, "--analyzer", "http://127.0.0.1:1", "--port", 0]
    assert "by its owner only, not have mode 644" in one_sentence(run, *serve, "--keys", keys)


# --- both keys in one server ---------------------------------------------------------------------


def test_a_server_with_real_workers_reads_tasks_of_both_keys(
    keys: Path, task: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    """As `serve analyzer` is made from a folder whose keys were rotated: each key has workers of its own."""
    from shuffledp.cli.serve_making import make_analyzer
    from shuffledp.service.serving import Address

    monkeypatch.setattr("os.cpu_count", lambda: 1)
    rotate_keys(keys, bits=BITS)
    old = Task.load(task)
    new = Task.create(old.plan, load_public_key(keys), bits=BITS)
    made = make_analyzer(str(tmp_path / "analyzer.db"), keys, [new.text], Address(port=0))
    server: AnalyzerServer = made.config.app.state.server  # type: ignore[union-attr]
    try:
        for each in (old, new):
            seats = [each.routing.batches_of(position) for position in range(6)]
            reports = [report_of(each, 1, seat, bits=BITS) for seat in seats]
            assert server.deliver(each.id, seats[0][0].batch_id, b"".join(reports))
        assert server.read_all() == 2
        for each in (old, new):
            release, _ = server.latest(each.id)
            assert release is not None and release.dropped == 0, each.public_key
    finally:
        server.stop()


def test_a_new_key_says_whether_it_has_a_last_day(keys: Path, run: Any) -> None:
    """The older key's is not the new one's: whoever forgets --expires is told so."""
    assert "none: --expires gives a key one" in run("keys", "rotate", keys)[1]
    assert "2999-01-01" in run("keys", "rotate", keys, "--expires", "2999-01-01")[1]
