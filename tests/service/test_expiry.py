"""Keys that expire: nobody creates a task for one after its last day, or seals to it; what was sealed is opened."""

import json
from collections.abc import Callable
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from harness.world import report_of
from shuffledp import BinarySum, Privacy, cli
from shuffledp.errors import DataError, ParameterError
from shuffledp.learn.bandits.arms.fixed_batches import FixedBatches
from shuffledp.randomness import RandomBits
from shuffledp.service import expiry
from shuffledp.service.campaign import Campaign
from shuffledp.service.client.client import Client
from shuffledp.service.client.making import make_reports
from shuffledp.service.crypto import PrivateKey, SigningKey
from shuffledp.service.expiry import EXPIRING_VERSION, check_not_expired, last_day
from shuffledp.service.key_notes import load_expiries
from shuffledp.service.keys import ANALYZER, load_public_key, make_hop_keys, make_keys
from shuffledp.service.openapi import BINARY
from shuffledp.service.rotation import current_public_key, rotate_keys
from shuffledp.service.task import Task, canonical
from shuffledp.service.wire import SentReport, new_id, pack_upload

BITS = RandomBits.secure()
LAST, AFTER = "2030-06-30", date(2030, 7, 1)

Today = Callable[[date], None]


@pytest.fixture
def today(monkeypatch: pytest.MonkeyPatch) -> Today:
    return lambda day: monkeypatch.setattr(expiry, "today", lambda: day)


def plan() -> Any:
    return BinarySum.plan(users=4, privacy=Privacy(8, 0.1), method="coins")


def test_a_key_serves_on_its_last_day_and_not_on_the_next(today: Today) -> None:
    for day in (date(2030, 1, 1), date.fromisoformat(LAST)):
        today(day)
        check_not_expired({"a key": LAST})
    today(AFTER)
    with pytest.raises(
        ParameterError, match=r"public_key must not have expired, and its last day was 2030-06-30"
    ) as no:
        check_not_expired({"another": "2031-01-01", "a key": LAST})
    assert no.value.value == "a key" and "`shuffledp keys rotate`" in no.value.way_out
    assert last_day("30") == "2030-07-31" and last_day("2030-07-01") == "2030-07-01"


@pytest.mark.parametrize("asked", ["2030-06-30", "yesterday", "-1", "1.5", "2030-7-1", "20300801", "", "99999999"])
def test_a_last_day_that_is_over_or_none_is_refused(today: Today, asked: str) -> None:
    today(AFTER)
    with pytest.raises(ParameterError, match="expires must"):
        last_day(asked)


def test_a_folder_says_which_of_its_keys_expire_until_they_are_rotated(tmp_path: Path, today: Today) -> None:
    today(date(2030, 1, 1))
    folder, hop = tmp_path / "keys", tmp_path / "hop"
    key, own = make_keys(folder, bits=BITS, expires=LAST), make_hop_keys(hop, bits=BITS, expires="2030-12-31")
    assert load_expiries(folder, [hop / "hop.pub"]) == {key.text: LAST, own.text: "2030-12-31"}
    assert current_public_key(folder) == key == load_public_key(folder)
    assert json.loads((folder / "analyzer.pub").read_text())["version"] == 2
    today(AFTER)
    with pytest.raises(ParameterError, match="must not have expired"):
        current_public_key(folder)
    # The way out that it names; the older key is still there for what was sealed to it.
    new = rotate_keys(folder, bits=BITS)
    assert current_public_key(folder) == new and load_expiries(folder) == {}
    assert [each.public for each in ANALYZER.ring(folder)] == [new, key]
    assert json.loads((folder / "analyzer.pub").read_text())["version"] == 1
    (folder / "analyzer.pub").write_text(json.dumps({"version": 2, "public_key": new.text, "expires": "soon"}))
    with pytest.raises(DataError, match="expires"):
        load_expiries(folder)


def some_campaign(key: PrivateKey) -> Campaign:
    policy = FixedBatches(arms=2, horizon=40, privacy=Privacy(4, 1e-2), batch=10, method="coins")
    signing = SigningKey.generate().public
    return Campaign.create(policy, key.public, signing, bits=BITS, expires={key.public.text: LAST})


def test_a_task_carries_the_last_day_and_nobody_seals_after_it(today: Today) -> None:
    """Whoever has the task's file knows it, without the folder of keys; programs that do not know it refuse it."""
    today(date(2030, 1, 1))
    key = PrivateKey.generate()
    task = Task.create(plan(), key.public, bits=BITS, expires={key.public.text: LAST})
    campaign = some_campaign(key)
    assert task.document["version"] == campaign.document["version"] == EXPIRING_VERSION
    assert Task.from_text(task.text).expires == Campaign.from_text(campaign.text).expires == {key.public.text: LAST}
    round_task = campaign.round_task(0, 0)
    assert round_task is not None
    for served in (task, round_task):
        today(date.fromisoformat(LAST))
        seats = [served.routing.batches_of(0)]
        value = served.plan.encode([1]) if served is task else None
        if value is not None:
            assert len(make_reports(served, value, seats, bits=BITS)) == 1
        today(AFTER)
        with pytest.raises(ParameterError, match="must not have expired"):
            make_reports(served, value, seats, bits=BITS)
    for make in (lambda: some_campaign(key), lambda: Task.create(plan(), key.public, bits=BITS, expires=task.expires)):
        with pytest.raises(ParameterError, match="must not have expired"):
            make()


@pytest.mark.parametrize("expires", [{}, {"another key": LAST}, [LAST], LAST, {"own": "soon"}, {"own": 7}])
def test_last_days_of_other_keys_or_none_are_refused(expires: Any) -> None:
    key = PrivateKey.generate()
    task = Task.create(plan(), key.public, bits=BITS, expires={key.public.text: "2999-12-31"})
    if isinstance(expires, dict) and "own" in expires:
        expires = {key.public.text: expires["own"]}
    for version in (1, EXPIRING_VERSION):
        with pytest.raises(DataError):
            Task.from_text(canonical({**task.document, "version": version, "expires": expires}))


def test_what_was_sealed_before_is_sent_and_opened_after(make_service: Any, today: Today) -> None:
    """Whoever comes too late is refused before a seat is taken, so that nobody waits for it."""
    today(date(2030, 1, 1))
    service = make_service()
    key = service.key.public
    task = service.add(Task.create(plan(), key, bits=BITS, expires={key.text: LAST}))
    service.send(task, [1, 0, 1])
    [seat] = service.shuffler.take_seats(task.id, 1).result(timeout=10)
    body = report_of(task, 1, seat.batches, bits=BITS)
    today(AFTER)
    wire = service.wire("shuffler")
    client = Client(task, "http://localhost", service.tokens.secrets["enrol"], http=wire.client, patience=0.0)
    with closing(client), pytest.raises(ParameterError, match="must not have expired"):
        client.report(1)
    assert wire.requests == []
    headers = {"Content-Type": BINARY}
    upload = pack_upload([SentReport(new_id(bits=BITS), seat.seat, body)])
    posted = service.at("shuffler", "enrol").post(f"/v1/tasks/{task.id}/reports", content=upload, headers=headers)
    assert [each["status"] for each in posted.json()["results"]] == [201]
    service.work()
    assert service.analyzer.latest(task.id)[1].batches_read == 1


def test_the_command_line_makes_such_keys_and_refuses_them_when_they_are_over(
    tmp_path: Path, today: Today, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: Any) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            cli.main([str(word) for word in words])
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out + captured.err

    keys, task = tmp_path / "keys", tmp_path / "task.json"
    create = (
        "task",
        "create",
        "--protocol",
        "binary-sum",
        "--users",
        10,
        "--epsilon",
        4,
        "--delta",
        0.01,
        "--method",
        "coins",
        "--keys",
    )
    today(date(2030, 1, 1))
    code, said = run("keys", keys, "--expires", "2029-12-31")
    assert code == 2 and "must not be over today" in said and not keys.exists()
    assert run("keys", keys, "--expires", 30)[0] == 0
    assert run(*create, keys, "-o", task)[0] == 0
    assert list(Task.load(task).expires.values()) == ["2030-01-31"]
    today(date(2030, 2, 1))
    code, said = run(*create, keys, "-o", tmp_path / "late.json")
    assert code == 2 and "its last day was 2030-01-31" in said and "keys rotate" in said
    assert not (tmp_path / "late.json").exists()
    assert run("keys", "rotate", keys, "--expires", "2030-12-31")[0] == 0
    assert run(*create, keys, "-o", tmp_path / "late.json")[0] == 0
    assert list(Task.load(tmp_path / "late.json").expires.values()) == ["2030-12-31"]
    code, said = run("keys", "rotate", keys, "--tokens", "--expires", "30")
    assert code == 2 and "tokens have no last day" in said
