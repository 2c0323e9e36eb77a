"""`shuffledp campaign`, `serve --campaign` and what `doctor` says of models: from an idea to a file that predicts."""

import json
import re
import shlex
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np
import pytest

from harness.world import OpenerHere
from shuffledp import Privacy, RandomBits
from shuffledp.continual.plan import CounterPlan
from shuffledp.learn.estimators.models import load_model
from shuffledp.service.analyzer.app import analyzer_app
from shuffledp.service.analyzer.server import AnalyzerServer
from shuffledp.service.campaign import Campaign
from shuffledp.service.device import Device
from shuffledp.service.keys import load_private_key, load_signing_key, load_tokens, make_keys
from shuffledp.service.serving import Address, uvicorn_server
from shuffledp.service.shuffler.app import shuffler_app
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.store import open_analyzer_store, open_shuffler_store
from shuffledp.service.task import canonical

PRIVATE = ["--epsilon", 8, "--delta", 1e-2]
ARMS = ["arms", "--arms", 2, "--users", 60, *PRIVATE, "--batches", "fixed", "--batch", 5]
LINEAR = ["--dimension", 2, "--users", 60, "--epsilon", 50, "--delta", 0.1, "--allow-unbounded"]
ROWS = ["--features", "age,city", "--bounds", "0:100", "--categories", "city=Ulm,Bonn"]
FIT = ["fit", *ROWS, "--classes", "no,yes", "--users", 24, "--epsilon", 60, "--delta", 0.1, "--rounds", 2]
CREATED = {
    "schema", "campaign_id", "kind", "learns", "users", "reports", "rounds", "most_rounds", "epsilon", "delta",
    "proved_delta", "because", "trusted", "accurate", "bound", "model_age", "model_bytes", "drop_after", "seatings",
    "public_key", "signing_key", "fingerprint", "who_sees_what", "collusions", "lying_client", "rests_on", "warnings",
    "cost", "bound_proves_nothing",
}  # fmt: skip


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys") / "keys"
    make_keys(folder, bits=RandomBits.secure())
    return folder


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plan = CounterPlan.plan(users=30, shufflers=2, privacy=Privacy(4, 1e-2), noise="coins")
    file = tmp_path_factory.mktemp("plans") / "plan.json"
    file.write_text(json.dumps(plan.document()))
    return file


@pytest.fixture
def create(asked: Callable[..., Any], keys: Path, tmp_path: Path) -> Callable[..., Any]:
    """Make a campaign of these options."""

    def call(*words: object, out: str = "campaign.json", code: int = 0) -> Any:
        return asked("campaign", "create", *words, "--keys", keys, "-o", tmp_path / out, code=code)

    return call


# --- create and show -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "kind", "people"),
    [
        (ARMS, "arms", 60),
        ([*ARMS[:-4], "--method", "shares", "--allow-unbounded", "--visits", 3], "arms", 60),
        (["linucb", *LINEAR, "--shufflers", 2, "--model-age", 2], "linear-bandit", 60),
        (["linucb", *LINEAR, "--batch", 20, "--visits", 2], "linear-bandit", 60),
        (["thompson", *LINEAR, "--shufflers", 2, "--nonnegative"], "linear-bandit", 60),
        ([*FIT, "--solver", "sgd", "--drop-after", 60], "fit", 24),
    ],
    ids=["arms", "arms that come back", "concurrent", "shuffle-vec", "thompson", "fit"],
)
def test_a_campaign_of_every_kind(run, asked, create, tmp_path: Path, words: list[object], kind: str, people: int):
    made = create(*words)
    file = tmp_path / "campaign.json"
    shown = asked("campaign", "show", file)
    assert made.pop("measured")["device_seconds"] > 0
    assert shown.keys() == CREATED and made == shown | {"out": str(file), "ledger": None}
    campaign = Campaign.load(file)
    assert (shown["campaign_id"], shown["kind"], shown["users"]) == (campaign.id, kind, people)
    assert shown["proved_delta"] <= shown["delta"] and shown["reports"] >= people
    assert {each["party"] for each in shown["who_sees_what"]} >= {"everybody", "the shuffler", "the analyzer"}
    code, out, _ = run("campaign", "show", file, "--all")
    said = " ".join(out.split())
    assert code == 0 and "Who sees what" in said and shown["accurate"][:30] in said
    assert "device." in said and ("Warning" in said) == bool(shown["warnings"])
    # The first screen: what it is, how accurate, who is trusted, what next.
    code, out, _ = run("campaign", "show", file)
    short = " ".join(out.split())
    assert code == 0 and "Who sees what" not in short and "models signed by" not in short
    for words in (
        shown["learns"],
        shown["accurate"][:30],
        shown["trusted"][:30],
        "campaign show",
        "--all",
        "serve all",
    ):
        assert words in short, words
    assert ("Warning" in short) == bool(shown["warnings"]) and len(out.splitlines()) < 40


def test_what_is_asked_of_a_learner_arrives(create, tmp_path: Path) -> None:
    create("linucb", *LINEAR, "--shufflers", 2, "--model-age", 2, out="a.json")
    create("linucb", *LINEAR, "--shufflers", 2, out="b.json")
    create("thompson", *LINEAR, "--batch", 20, "--visits", 2, out="c.json")
    old, new, drawn = (Campaign.load(tmp_path / f"{name}.json").learner for name in "abc")
    assert (old.model_age, new.model_age, old.name, drawn.name) == (2, 0, "concurrent-2", "shuffle-vec")
    assert (drawn.choice, drawn.visits, drawn.slot_users) == ("posterior", 2, 20)
    assert old.rule.regret_bound > new.rule.regret_bound
    create(*ARMS, "--visits", 2, "--drop-after", 5, out="d.json")
    arms = Campaign.load(tmp_path / "d.json")
    assert (arms.seatings[0].in_all, arms.waiting.seconds, arms.learner.batch) == (2, 5.0, 5)


def test_the_default_is_one_that_no_liar_can_spoil(create) -> None:
    assert create(*ARMS[:-4], out="arms.json")["warnings"] == []
    assert create(*FIT, out="fit.json")["seatings"][0]["method"] == "bits"
    for words in (["linucb", *LINEAR[:-1]], [*FIT, "--method", "shares"], [*ARMS, "--method", "shares"]):
        error = create(*words, out="no.json", code=2)["error"]
        assert error["parameter"] == "method" and "--allow-unbounded" in error["message"]


def test_people_who_are_left_out_are_not_counted_as_asked(run, create, tmp_path: Path) -> None:
    """Rounds of equal size: of the people of --users some are never asked."""
    words = [*ROWS, "--classes", "no,yes", "--users", 25, "--epsilon", 60, "--delta", 0.1, "--rounds", 2]
    assert create("fit", *words, "--solver", "sgd")["users"] == 24
    said = " ".join(run("campaign", "show", tmp_path / "campaign.json")[1].split())
    assert "people 24 are asked, of 25 (--users): rounds are of equal size, and 1 are left out" in said
    create(*ARMS, out="arms.json")
    assert "people 60 are asked " in " ".join(run("campaign", "show", tmp_path / "arms.json")[1].split())


def test_any_statistic(create, plan_file: Path) -> None:
    made = create("statistic", "--plan", plan_file)
    assert made["kind"] == "statistic" and made["users"] == 30 and made["bound"] > 0
    error = create("statistic", "--plan", plan_file, "--drop-after", 9, out="other.json", code=2)["error"]
    assert error["parameter"] == "drop_after"


def test_a_regression_with_numbers(create, tmp_path: Path) -> None:
    words = ["--task", "regression", "--target-bounds", "0:50", "--users", 24, "--epsilon", 60, "--delta", 0.1]
    made = create("fit", *ROWS, *words, "--rounds", 2)
    rows = Campaign.load(tmp_path / "campaign.json").rows
    assert made["bound"] is None and rows.classes is None and rows.targets.half == 25.0
    assert "clipped" in made["accurate"]


def test_the_cost_is_said_before_anything_is_written_or_spent(run, asked, keys: Path, tmp_path: Path) -> None:
    ledger, out = tmp_path / "ledger.json", tmp_path / "campaign.json"
    asked("ledger", "open", ledger, "--population", "people", "--epsilon", 10, "--delta", 0.015)
    words = ["campaign", "create", *ARMS, "--keys", keys, "--ledger", ledger, "-o"]
    code, text, _ = run(*words, out)
    assert code == 0 and text.index("What it will cost") < text.index("A campaign") < text.index("Next:")
    [entry] = asked("ledger", "show", ledger)["entries"]
    assert Campaign.load(out).id[:12] in entry["description"] and (entry["epsilon"], entry["delta"]) == (8.0, 0.01)
    before = ledger.read_bytes()
    code, text, err = run(*words, tmp_path / "second.json")
    assert code == 2 and "What it will cost" in text and "budget must have" in err
    assert ledger.read_bytes() == before and sorted(tmp_path.glob("*.json")) == [out, ledger]
    assert not list(tmp_path.glob(".shuffledp*"))


def test_all_visits_are_charged(asked, create, tmp_path: Path) -> None:
    """One visit has a part of epsilon; the ledger is charged what all of a person's visits together have."""
    ledger = tmp_path / "ledger.json"
    asked("ledger", "open", ledger, "--population", "people", "--epsilon", 10, "--delta", 0.02)
    create(*ARMS, "--visits", 3, "--ledger", ledger)
    assert Campaign.load(tmp_path / "campaign.json").seatings[0].plan.privacy.epsilon < 8
    [entry] = asked("ledger", "show", ledger)["entries"]
    assert (entry["epsilon"], entry["delta"]) == (8.0, 0.01)


@pytest.mark.parametrize(
    ("words", "parameter", "said"),
    [
        (["arms", "--users", 60, *PRIVATE], "arms", "must be given"),
        (["arms", "--arms", 2, *PRIVATE], "users", "must be given"),
        (["arms", "--arms", 1, "--users", 60, *PRIVATE], "arms", "one arm needs no bandit"),
        ([*ARMS, "--drop-after", -1], "drop_after", "seconds"),
        (["linucb", "--users", 60, *PRIVATE], "dimension", "must be given"),
        (["linucb", *LINEAR, "--batch", 20, "--shufflers", 2], "batch", "must not both be given"),
        (["linucb", *LINEAR, "--shufflers", 2, "--model-age", 2000], "model_age", "1000"),
        (["linucb", *LINEAR, "--shufflers", 2, "--drop-after", 9], "drop_after", "cannot go on"),
        (["fit", *FIT[5:]], "features", "must be given"),
        (["fit", "--features", "a,a", *FIT[7:]], "features", "once"),
        (["fit", "--features", "a", *FIT[7:]], "bounds", "must say what a may be"),
        ([*FIT[:7], *FIT[9:]], "classes", "must say which labels"),
        ([*FIT, "--estimator", "ridge"], "estimator", "logistic"),
        ([*FIT, "--task", "regression"], "classes", "is for labels"),
        ([*FIT, "--target-bounds", "0:1"], "target_bounds", "is for numbers"),
        ([*FIT[:7], "--classes", "a,b,c", *FIT[9:], "--estimator", "svc"], "classes", "two"),
        ([*FIT, "--solver", "nothing"], "solver", "must be auto"),
        ([*FIT, "--solver", "gd"], "solver", "every round"),
        ([*FIT, "--solver", "pan-private-agd"], "learner", "devices"),
        ([*FIT, "--visits", 2, "--interactive"], "visits", "must not both"),
        (["statistic", "--plan", "missing.json"], "plan", "must be"),
        ([*ARMS, "--method", "carrier-pigeon"], "method", "carrier-pigeon"),
        ([*ARMS, "--colour", "red"], None, "--colour"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_written(create, tmp_path, words, parameter, said) -> None:
    error = create(*words, code=2)["error"]
    assert said in error["message"] and "\n" not in error["message"]
    assert parameter is None or error["parameter"] == parameter, error
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_or_keys_that_are_not(asked, create, keys: Path, tmp_path: Path) -> None:
    create(*ARMS)
    kept = (tmp_path / "campaign.json").read_bytes()
    assert create(*ARMS, code=2)["error"]["parameter"] == "out"
    assert (tmp_path / "campaign.json").read_bytes() == kept
    nowhere = ["--keys", tmp_path, "-o", tmp_path / "other.json"]
    assert asked("campaign", "create", *ARMS, *nowhere, code=2)["error"]["parameter"] == "keys"
    old = tmp_path / "old"
    old.mkdir()
    (old / "analyzer.pub").write_bytes((keys / "analyzer.pub").read_bytes())
    error = asked("campaign", "create", *ARMS, "--keys", old, "-o", tmp_path / "other.json", code=2)["error"]
    assert "models.pub" in error["message"] and not (tmp_path / "other.json").exists()


def edited(file: Path, **fields: Any) -> Path:
    """The same campaign with other fields, in its one spelling."""
    other = file.with_name("edited.json")
    other.write_text(canonical({**json.loads(file.read_text()), **fields}) + "\n")
    return other


def test_a_campaign_whose_parts_disagree_is_refused(asked, create, plan_file: Path, keys: Path, tmp_path) -> None:
    create(*ARMS)
    file = tmp_path / "campaign.json"
    document = json.loads(file.read_text())
    learner, [seating], routing = document["learner"], document["seatings"], document["routing"]
    plan = json.loads(plan_file.read_text())
    for fields in (
        {"learner": {**learner, "arms": 3}},
        {"learner": {**learner, "epsilon": 80.0}},
        {"learner": {**learner, "kind": "dowsing"}},
        {"learner": {**learner, "horizon": "many"}},
        {"learner": {"kind": "arms"}},
        {"seatings": "none"},
        {"seatings": [{**seating, "more": 1}]},
        {"seatings": [{**seating, "plan": plan}]},
        {"seatings": [{**seating, "visits": 2}]},
        {"routing": {**routing, "rounds": 10**6}},
        {"warnings": ["all is well"]},
        {"waiting": {"seconds": -1}},
    ):
        error = asked("campaign", "show", edited(file, **fields), code=2)["error"]
        assert error["parameter"] and "\n" not in error["message"], fields
        # One sentence, and none of another inside of it; nor Python's own words.
        assert error["message"].count(", got ") == 1 and "Error(" not in error["message"], error
    # Another spelling of the same document has another id.
    (tmp_path / "edited.json").write_text(json.dumps(document, indent=2))
    assert "unchanged" in asked("campaign", "show", tmp_path / "edited.json", code=2)["error"]["message"]


def test_a_task_is_no_campaign_and_a_campaign_no_task(
    run, asked, create, plan_file: Path, keys: Path, tmp_path
) -> None:
    create(*ARMS)
    campaign, task = tmp_path / "campaign.json", tmp_path / "task.json"
    asked("task", "create", "--plan", plan_file, "--keys", keys, "-o", task)
    assert "must be a campaign" in asked("campaign", "show", task, code=2)["error"]["message"]
    assert asked("task", "show", campaign, code=2)["error"]["parameter"].startswith("task")
    for option, file, other in (("--task", campaign, "--campaign"), ("--campaign", task, "--task")):
        code, _, err = run("serve", "all", "--folder", tmp_path / "served", "--keys", keys, option, file, "--port", 0)
        assert code == 2 and f"give it as {other}" in err and not (tmp_path / "served").exists()


# --- a live campaign -----------------------------------------------------------------------------


class Live(NamedTuple):
    """Both servers in threads, and campaigns that people came to."""

    folder: Path
    shuffler: str
    analyzer: str
    fit: Path
    arms: Path

    def model(self, file: Path) -> list[object]:
        return ["campaign", "model", "--campaign", file, "--analyzer", self.analyzer]


def started(app: Any) -> tuple[Any, threading.Thread, str]:
    server = uvicorn_server(app, Address(port=0))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    return server, thread, f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"


def make_file(folder: Path, keys: Path, name: str, *words: object) -> Path:
    from shuffledp import cli

    file = folder / f"{name}.json"
    given = ["campaign", "create", *words, "--keys", keys, "-o", file, "--json"]
    with pytest.raises(SystemExit) as ended:
        cli.main([str(word) for word in given])
    assert not ended.value.code
    return file


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("live")
    fit = make_file(folder, keys, "fit", *FIT, "--method", "shares", "--allow-unbounded", "--solver", "sgd")
    arms = make_file(folder, keys, "arms", *ARMS)
    key, tokens = load_private_key(keys), load_tokens(keys)
    store = open_analyzer_store(folder / "analyzer.db")
    analyzer = AnalyzerServer(store, key=key, opener=OpenerHere(key), signing=load_signing_key(keys))

    def post(path: str, body: bytes) -> int:
        return 201 if analyzer.deliver(path.split("/")[3], path.split("/")[5], body) else 200

    shuffler = ShufflerServer(open_shuffler_store(folder / "shuffler.db"), post=post)
    for server in (analyzer, shuffler):
        server.add_task(fit.read_text().strip())
    running = started(analyzer_app(analyzer, tokens)), started(shuffler_app(shuffler, tokens))
    made = Live(folder, running[1][2], running[0][2], fit, arms)
    campaign, generator = Campaign.load(fit), np.random.default_rng(1)
    try:
        with httpx.Client() as reports, httpx.Client() as models:
            where = {"shuffler": made.shuffler, "analyzer": made.analyzer, "token": tokens.secrets["enrol"]}
            deadline = time.monotonic() + 60
            status = ""
            while status != "not asked":
                assert time.monotonic() < deadline
                age = generator.uniform(0, 100)
                with Device(campaign, **where, http=reports, models_http=models) as device:
                    label = "yes" if age > 50 else "no"
                    status = device.contribute({"age": age, "city": "Ulm"}, label).status
                time.sleep(0.02 if status == "late" else 0)
        yield made
    finally:
        for server, thread, _ in running:
            server.should_exit = True
            thread.join()


def test_a_model_that_was_learned_live_predicts(run, asked, live: Live, tmp_path: Path) -> None:
    out = tmp_path / "model.json"
    found = asked(*live.model(live.fit), "-o", out)
    campaign = Campaign.load(live.fit)
    assert (found["number"], found["round"], found["written"]) == (campaign.learner.rounds, None, str(out))
    model = load_model(out)
    assert model.features == ("age", "city") and model.users == campaign.learner.users and not model.simulated
    # The file's model is the published numbers, whichever way a row's score is computed.
    row = np.array([[70.0, "Bonn"]], dtype=object)
    prepared, _ = campaign.rows.prepared(row[0], "yes")
    assert model.scores(row)[0] == pytest.approx(float(prepared[0] @ np.array(found["estimate"])))
    (tmp_path / "people.csv").write_text("age,city\n70,Bonn\n30,Ulm\n")
    assert asked("predict", tmp_path / "people.csv", "--model", out)["rows"] == 2
    code, text, _ = run(*live.model(live.fit))
    assert code == 0 and "city=Bonn" in text and "nobody is asked any more" in text
    first = asked(*live.model(live.fit), "--number", 0)
    assert first["number"] == 0 and first["round"]["number"] == 0


def test_a_regression_has_its_targets_own_units(create, tmp_path: Path) -> None:
    from shuffledp.learn.live.linear_models import linear_model

    words = ["--task", "regression", "--target-bounds", "0:50", "--users", 24, "--epsilon", 60, "--delta", 0.1]
    create("fit", *ROWS, *words, "--rounds", 2)
    campaign = Campaign.load(tmp_path / "campaign.json")
    model = linear_model(campaign.learner, campaign.rows, np.zeros(4), rounds=2)
    assert model.predict(np.array([[70.0, "Bonn"]], dtype=object)).tolist() == [25.0]


def test_more_classes_have_a_row_each(create, tmp_path: Path) -> None:
    from shuffledp.learn.live.linear_models import linear_model

    words = ["--classes", "a,b,c", "--users", 60, "--epsilon", 60, "--delta", 0.1, "--rounds", 2]
    create("fit", *ROWS, *words)
    campaign = Campaign.load(tmp_path / "campaign.json")
    model = linear_model(campaign.learner, campaign.rows, np.eye(12)[3], rounds=2)
    assert model.coefficients.shape == (3, 3) and model.intercept[0] > 0 == model.intercept[1]


def test_sending_a_campaign_and_a_model_of_nobody(run, asked, live: Live, keys: Path, tmp_path: Path) -> None:
    servers = ["--shuffler", live.shuffler, "--analyzer", live.analyzer, "--token-file"]
    unknown = asked(*live.model(live.arms), code=2)["error"]["message"]
    assert "not served here" in unknown
    words = ["campaign", "send", live.arms, *servers]
    assert "403" in asked(*words, keys / "enrol.token", code=2)["error"]["message"]
    sent = asked(*words, keys / "admin.token")
    assert sent["new"] == {"analyzer": True, "shuffler": True} and sent["campaign_id"] == Campaign.load(live.arms).id
    assert "has it already" in run(*words, keys / "admin.token")[1]
    code, text, _ = run(*live.model(live.arms))
    assert code == 0 and "arm 0" in text and "no arm was compared yet" in text
    kept = asked(*live.model(live.arms), "-o", tmp_path / "signed.json")
    assert json.loads((tmp_path / "signed.json").read_text())["signature"] == kept["signature"]
    assert asked(*words[:3], "--token-file", keys / "admin.token", code=2)["error"]["parameter"] == "shuffler"


def test_what_is_wrong_with_a_model_is_said(asked, live: Live, tmp_path: Path) -> None:
    for words, parameter in (
        (["--number", 99], None),
        (["--number", -1], "number"),
        (["-o", tmp_path / "nowhere" / "m.json"], "out"),
        (["-o", live.fit], "out"),
    ):
        error = asked(*live.model(live.fit), *words, code=2)["error"]
        assert error["parameter"] == parameter and "\n" not in error["message"]
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_somebody_else_signed_is_refused(asked, live: Live, tmp_path: Path, monkeypatch) -> None:
    from shuffledp.cli import campaign_model

    forged: Any = campaign_model._fetched

    def fetched(*words: Any) -> Any:
        found = forged(*words)
        return type(found)(found.text.replace('"number":', '"number": '), found.signature)

    monkeypatch.setattr(campaign_model, "_fetched", fetched)
    error = asked(*live.model(live.fit), "-o", tmp_path / "m.json", code=2)["error"]
    assert "must be signed by the campaign's analyzer" in error["message"] and list(tmp_path.iterdir()) == []


def test_the_doctor_computes_every_model_again(asked, live: Live, keys: Path, tmp_path: Path) -> None:
    store, copy = live.folder / "analyzer.db", tmp_path / "analyzer.db"
    name = f"models of {Campaign.load(live.fit).id[:12]}"
    words = ["doctor", "--keys", keys, "--campaign", live.fit, "--analyzer", live.analyzer, "--store"]
    checks = {each["name"]: each for each in asked(*words, store)["checks"]}
    assert {checks[each]["status"] for each in (name, "models' keys", "campaign's keys", "analyzer's model")} == {"ok"}
    assert "each signed and what its batches say" in checks[name]["found"]
    with sqlite3.connect(store) as kept, sqlite3.connect(copy) as taken:
        kept.backup(taken)
        model = json.loads(taken.execute("SELECT text FROM models WHERE number = 1").fetchone()[0])
        model["estimate"][0] += 0.125
        taken.execute("UPDATE models SET text = ? WHERE number = 1", (canonical(model),))
    for each in (kept, taken):
        each.close()
    refuted = {each["name"]: each for each in asked("doctor", "--store", copy, code=3)["checks"]}
    assert refuted[name]["status"] == "fail" and "signature" in refuted[name]["found"]


def test_the_doctor_says_that_keys_are_others(asked, live: Live, tmp_path: Path) -> None:
    make_keys(tmp_path / "others", bits=RandomBits.secure())
    checks = asked("doctor", "--keys", tmp_path / "others", "--campaign", live.fit, code=3)["checks"]
    assert [each["status"] for each in checks if each["name"] == "campaign's keys"] == ["fail"]
    (tmp_path / "others" / "models.pub").unlink()
    found = {each["name"]: each["status"] for each in asked("doctor", "--keys", tmp_path / "others")["checks"]}
    assert found["models' keys"] == "warn"


def test_an_analyzer_with_other_keys_serves_no_campaign(run, live: Live, tmp_path: Path) -> None:
    make_keys(tmp_path / "others", bits=RandomBits.secure())
    words = ["serve", "analyzer", "--store", tmp_path / "a.db", "--keys", tmp_path / "others", "--port", 0]
    code, _, err = run(*words, "--campaign", live.fit)
    assert code == 2 and "public_key must be this analyzer's" in err and err.count("\n") == 1


# --- help ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [(), ("create",), *(("create", kind) for kind in ("arms", "linucb", "thompson"))])
def test_help_names_what_there_is(run, words: tuple[str, ...]) -> None:
    code, out, _ = run("campaign", *words, "--help")
    assert code == 0
    expected = {
        (): ("create", "show", "send", "model"),
        ("create",): ("arms", "linucb", "thompson", "fit", "statistic"),
    }.get(words, ("--keys", "--users", "--epsilon", "--visits", "--ledger", "--json"))
    assert all(each in out for each in expected)


# --- pages ---------------------------------------------------------------------------------------

HOWTO = Path(__file__).parents[2] / "docs" / "howto"


def commands(page: str) -> list[list[str]]:
    """Every command of a page, a list of words each."""
    text = (HOWTO / page).read_text("utf-8")
    return [shlex.split(line)[1:] for line in re.findall(r"^    (shuffledp .*)$", text, re.M)]


@pytest.mark.parametrize("page", ["recommend-live.md", "train-live.md"])
def test_the_commands_of_a_page_can_be_typed(run, keys: Path, tmp_path: Path, monkeypatch, page: str) -> None:
    """Campaigns are made as written; what would run for ever, or ask a server, has the options that are written."""
    (tmp_path / "keys").symlink_to(keys)
    monkeypatch.chdir(tmp_path)
    made = [words for words in commands(page) if words[:2] == ["campaign", "create"]]
    assert made and len(commands(page)) > len(made) + 2
    for words in made:
        code, out, err = run(*words)
        assert code == 0 and "Next:" in out, err
    for words in commands(page):
        if words[:2] in (["campaign", "show"],):
            assert run(*words)[0] == 0
        name = words[: next(at for at, word in enumerate((*words, "--")) if "." in word or word[0] == "-")]
        told = run(*(name if name[0] != "keys" else ["keys"]), "--help")[1]
        missing = [word for word in words if word.startswith("--") and word not in told]
        assert not missing, (words, missing)
