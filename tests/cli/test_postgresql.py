"""Servers on PostgreSQL from the command line: serve, report, doctor, store migrate; and without the driver."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from harness.postgresql import Server, free_port
from shuffledp.privacy import Privacy
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.randomness import RandomBits
from shuffledp.service.keys import load_public_key, make_keys
from shuffledp.service.store import open_shuffler_store
from shuffledp.service.store.postgresql.migrating import files_of
from shuffledp.service.task import Task

SHUFFLEDP = str(Path(sys.executable).parent / "shuffledp")
USERS = 20


@pytest.fixture
def stores(postgresql: Server, tmp_path: Path) -> dict[str, str]:
    """The address of a new store for each role."""
    return {role: postgresql.address(tmp_path / "keys", postgresql.new_schema()) for role in ("shuffler", "analyzer")}


def checks(asked: Any, *stores: str, code: int = 0) -> dict[str, Any]:
    words = [word for store in stores for word in ("--store", store)]
    found = asked("doctor", *words, code=code)["checks"]
    return {check["name"]: check for check in found}


@pytest.fixture
def task(tmp_path: Path) -> Iterator[Path]:
    make_keys(tmp_path / "service keys", bits=RandomBits.secure())
    plan = PROTOCOLS["binary-sum"].plan(users=USERS, privacy=Privacy(4, 1e-2), method="coins")
    file = tmp_path / "task.json"
    Task.create(plan, load_public_key(tmp_path / "service keys"), bits=RandomBits.secure()).save(file)
    yield file


def test_two_shufflers_and_an_analyzer_serve_a_task_that_one_of_them_was_given(
    run: Any, asked: Any, stores: dict[str, str], task: Path, tmp_path: Path
) -> None:
    keys = tmp_path / "service keys"
    ports = {name: free_port() for name in ("analyzer", "first", "second")}
    urls = {name: f"http://127.0.0.1:{port}" for name, port in ports.items()}
    mixing = ["serve", "shuffler", "--store", stores["shuffler"], "--keys", keys, "--analyzer", urls["analyzer"]]
    commands: dict[str, list[Any]] = {
        "analyzer": ["serve", "analyzer", "--store", stores["analyzer"], "--keys", keys, "--task", task],
        "first": [*mixing, "--task", task],
        "second": mixing,
    }
    with ExitStack() as opened:
        log = opened.enter_context((tmp_path / "log").open("wb"))
        running = []
        for name, words in commands.items():
            command = [SHUFFLEDP, *map(str, words), "--port", str(ports[name])]
            running.append(subprocess.Popen(command, stdout=log, stderr=log))
            opened.callback(running[-1].wait, 30)
            opened.callback(running[-1].terminate)
        deadline = time.monotonic() + 60
        for url in urls.values():
            while True:
                try:
                    if httpx.get(f"{url}/readyz").is_success:
                        break
                except httpx.HTTPError:
                    assert time.monotonic() < deadline, (tmp_path / "log").read_text()
                    time.sleep(0.1)
        people = tmp_path / "people.csv"
        for name, count in (("second", 12), ("first", USERS - 12)):
            people.write_text("x\n" + "1\n" * count)
            words = ["--file", people, "--column", "x", "--task", task, "--shuffler", urls[name]]
            assert asked("report", *words, "--token-file", keys / "enrol.token")["new"] == count
        to_analyzer = ["--task", task, "--analyzer", urls["analyzer"], "--token-file", keys / "read.token"]
        while asked("estimate", *to_analyzer)["estimate"] is None:
            assert time.monotonic() < deadline, (tmp_path / "log").read_text()
            time.sleep(0.1)
        found = checks(asked, *stores.values())
        held = [check["found"] for name, check in found.items() if name.endswith("held")]
        kinds = [check["found"] for name, check in found.items() if name.startswith("store ") and "held" not in name]
        assert kinds == [f"{role} postgresql {max(files_of(role))}, ok" for role in ("shuffler", "analyzer")]
        assert held[0].count("shuffledp shuffler, process") == 2 and held[1].count("shuffledp analyzer, process") == 1
        code, _, err = run("store", "migrate", stores["shuffler"])
        assert code == 2 and "must be free: it is held by shuffledp shuffler, process" in err
    assert [process.returncode for process in running] == [0, 0, 0]
    newest = max(files_of("shuffler"))
    expected = {"schema": 1, "role": "shuffler", "before": newest, "after": newest}
    assert asked("store", "migrate", stores["shuffler"]) == expected
    assert "nothing was to be done" in run("store", "migrate", stores["analyzer"])[1]


def test_a_store_with_missing_keys_fails_the_doctor(asked: Any, stores: dict[str, str], tmp_path: Path) -> None:
    from shuffledp.service.store.contract import BatchPart

    with closing(open_shuffler_store(stores["shuffler"])) as store:
        store.write(lambda inside: inside.add_task("t", "{}"))
        store.write(lambda inside: inside.keep("t", ["ab" * 16], [], [BatchPart("b", 0, 1, 2, bytes(77))]))
    ids, batch = sorted((tmp_path / "keys").iterdir(), key=lambda file: not file.name.endswith("-ids"))
    batch.unlink()
    [check] = [each for each in checks(asked, stores["shuffler"], code=3).values() if each["status"] == "fail"]
    assert "1 keys of its batches are missing" in check["found"] and ids.exists()


@pytest.mark.parametrize("words", [["store", "migrate"], ["doctor", "--store"]])
def test_no_password_is_printed(run: Any, postgresql: Server, tmp_path: Path, words: list[str]) -> None:
    where = f"postgresql://locked:hunter2@127.0.0.1:{postgresql.port}/postgres?batch_keys={tmp_path / 'keys'}"
    code, out, err = run(*words, where)
    assert code in (2, 3) and "password" in out + err and "hunter2" not in out + err


def test_without_the_driver_a_sentence_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from shuffledp import cli\n"
        "cli.main(['store', 'migrate', 'postgresql://here/db?batch_keys=keys'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 2 and "needs the driver psycopg" in done.stderr
    assert "pip install 'shuffledp[postgres]'" in done.stderr and "Traceback" not in done.stderr
