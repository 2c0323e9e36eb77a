"""Every verb takes every plan of the catalogue, by file and by options; what makes no sense is said in a sentence."""

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from shuffledp import cli
from shuffledp.protocols.binary_sum.coins import Coins
from shuffledp.protocols.catalogue import PROTOCOLS, load_plan
from shuffledp.protocols.family import DomainParameter, Family
from shuffledp.protocols.fields import domain
from shuffledp.protocols.request import Request

TARGET = ["--epsilon", "2", "--delta", "1e-2"]
VALUES = {
    "binary-sum": [],
    "bounded-sum": ["--low", "0", "--high", "2"],
    "vector-sum": ["--dimension", "2", "--radius", "1"],
    "histogram": ["--domain", "a,b,c", "--method", "decoys"],
    "ranges": ["--domain", "0:9"],
    "distinct-elements": ["--domain", "a,b,c"],
    "distribution-test": ["--domain", "a,b,c", "--distance", "0.25"],
    "mean": ["--low", "0", "--high", "2"],
    "moments": ["--low", "0", "--high", "2"],
    "weighted-mean": ["--low", "0", "--high", "2", "--largest-weight", "3"],
    "heavy-hitters": ["--length", "1", "--top", "1", "--alphabet", "ab"],
    # Messages grow with the square of the users.
    "masked-sum": ["--users", "20"],
    "repeated-count": ["--at-most", "3"],
    "repeated-sum": ["--at-most", "3", "--low", "0", "--high", "2"],
    "repeated-histogram": ["--domain", "a,b,c", "--at-most", "2", "--method", "decoys"],
    "grouped-count": ["--groups", "a,b", "--method", "decoys"],
    "grouped-rate": ["--groups", "a,b", "--method", "decoys"],
    "grouped-sum": ["--groups", "a,b", "--low", "0", "--high", "2"],
    "grouped-mean": ["--groups", "a,b", "--low", "0", "--high", "2"],
    "grouped-rows-count": ["--groups", "a,b", "--at-most", "3"],
    "grouped-rows-sum": ["--groups", "a,b", "--at-most", "3", "--low", "0", "--high", "2"],
    "grouped-moments": ["--groups", "a,b", "--low", "0", "--high", "2"],
    "grouped-rows-rate": ["--groups", "a,b", "--at-most", "3"],
    "grouped-rows-mean": ["--groups", "a,b", "--at-most", "3", "--low", "0", "--high", "2"],
    "grouped-rows-moments": ["--groups", "a,b", "--at-most", "3", "--low", "0", "--high", "2"],
    "repeated-mean": ["--at-most", "3", "--low", "0", "--high", "2"],
    "repeated-ranges": ["--at-most", "2", "--domain", "0:3"],
    "repeated-moments": ["--at-most", "3", "--low", "0", "--high", "2"],
    "grouped-histogram": ["--groups", "a,b", "--domain", "x,y", "--method", "decoys"],
    "counter": ["--shufflers", "2", "--method", "coins"],
}
USERS = ["--users", "300"]
# A family of which more than one kind of plan is tried.
PLANS = [*VALUES.items(), ("counter", ["--shufflers", "3", "--method", "carried"])]
NAMES = [*VALUES, "counter-carried"]


def test_every_family_is_here() -> None:
    assert set(PROTOCOLS) <= set(VALUES)


@pytest.mark.parametrize(("protocol", "values"), PLANS, ids=NAMES)
def test_a_plan_by_its_file(asked, tmp_path: Path, protocol: str, values: list[str]) -> None:
    plan, ledger = tmp_path / "plan.json", tmp_path / "ledger.json"
    made = asked("plan", protocol, *USERS, *TARGET, *values, "-o", plan)
    assert made["protocol"] == protocol and load_plan(plan).fingerprint == made["fingerprint"]
    for words in (["explain"], ["simulate", "--synthetic", "--seed", 1], ["audit", "--trials", 100, "--seed", 1]):
        found = asked(*words, "--plan", plan)
        assert found["fingerprint"] == made["fingerprint"] and found["protocol"] == protocol
        refused = asked(*words, "--plan", plan, "--users", 300, code=2)["error"]
        assert refused["parameter"] == "users" and "decided by --plan" in refused["message"]
    asked("ledger", "open", ledger, "--population", "panel", "--epsilon", 2.1, "--delta", "1e-2")
    (entry,) = asked("ledger", "spend", ledger, "--plan", plan)["entries"]
    assert entry["fingerprint"] == made["fingerprint"]
    assert "left" in asked("ledger", "spend", ledger, "--plan", plan, code=2)["error"]["message"]


@pytest.mark.parametrize(("protocol", "values"), PLANS, ids=NAMES)
def test_a_plan_by_options(asked, capsys, protocol: str, values: list[str]) -> None:
    options = [*USERS, *TARGET, *values]
    made = asked("plan", protocol, *options)
    assert asked("explain", protocol, *options)["fingerprint"] == made["fingerprint"]
    run = asked("simulate", "--synthetic", "--protocol", protocol, *options, "--fast", "--seed", 1)
    assert run["fingerprint"] == made["fingerprint"]
    assert asked("audit", protocol, *options, "--trials", 100, "--seed", 1)["fingerprint"] == made["fingerprint"]
    without = [word for word in options if word not in ("--method", "decoys", "coins", "carried")]
    rows = asked("protocols", protocol, *without)
    assert {row["method"] for row in rows["protocols"]} >= set(PROTOCOLS[protocol].methods)
    # No Python in what a machine reads: a domain is an object or a number.
    assert "(" not in json.dumps({name: value for name, value in rows.items() if name != "protocols"})
    for words in (["explain", protocol], ["plan", protocol], ["simulate", "--synthetic", "--protocol", protocol]):
        with pytest.raises(SystemExit) as ended:
            cli.main([*words, *options])
        out, err = capsys.readouterr()
        assert not ended.value.code and err.strip() == "" and protocol in out, (words, err)


def test_the_faults_of_0_1_0(asked, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    # A counter's plan was refused with the advice by which it was made.
    made = asked("plan", "counter", *USERS, *TARGET, "--shufflers", 2, "-o", plan)
    assert load_plan(plan).fingerprint == made["fingerprint"]
    # The domain of ranges was parsed as categories.
    assert asked("explain", "ranges", *USERS, *TARGET, "--domain", "0:9")["users"] == 300
    # A Python repr was printed.
    names = asked("protocols", "distinct-elements", *USERS, *TARGET, "--domain", "a,b")["categories"]
    assert names == {"kind": "names", "names": ["a", "b"]}
    # A column of the domain's own names was refused.
    file = tmp_path / "people.csv"
    file.write_text("colour\n" + "a\nb\nb\n" * 100)
    asked("plan", "distinct-elements", *USERS, *TARGET, "--domain", "a,b,c", "-o", plan)
    assert asked("simulate", file, "--plan", plan, "--column", "colour", "--with-truth")["truth"] == 2


def test_a_column_of_words_is_read_by_options_as_by_a_plan(asked, tmp_path: Path) -> None:
    file, plan = tmp_path / "people.csv", tmp_path / "plan.json"
    file.write_text("word\n" + "a\nb\nb\n" * 100)
    words = [*VALUES["heavy-hitters"], *TARGET]
    # A column of text was refused for not being numbers.
    typed = asked("simulate", file, "--protocol", "heavy-hitters", *words, "--seed", 1, "--with-truth")
    assert typed["truth"] == {"b": 200} and typed["users"] == 300
    asked("plan", "heavy-hitters", *USERS, *words, "-o", plan)
    filed = asked("simulate", file, "--plan", plan, "--seed", 1)
    assert filed["estimate"] == typed["estimate"] and filed["fingerprint"] == typed["fingerprint"]


def test_what_makes_no_sense_is_said(asked, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    asked("plan", "binary-sum", *USERS, *TARGET, "-o", plan)
    np.save(tmp_path / "bits.npy", np.zeros(300))
    for command in (
        ["histogram", tmp_path / "bits.npy"],
        ["quantile", tmp_path / "bits.npy"],
        ["count", "--synthetic"],
    ):
        error = asked(*command, "--plan", plan, code=2)["error"]
        assert error["parameter"] == "plan" and "shuffledp plan" in error["message"]
    error = asked("explain", "nonsense", *USERS, *TARGET, code=2)["error"]
    assert error["parameter"] == "protocol" and "counter" in error["message"]
    error = asked("plan", "counter", *USERS, *TARGET, "--shufflers", 2, "--constants", "paper", code=2)["error"]
    assert "constants" in error["message"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dice(Coins):
    """A protocol of another package: bits, with something of its own to be said."""

    protocol: ClassVar[str] = "dice"
    sides: int = domain()

    @classmethod
    def for_request(cls, request: Request, *, sides: int) -> "Dice":
        coins = Coins.for_request(request)
        return cls(**{each.name: getattr(coins, each.name) for each in fields(coins)}, sides=sides)


@pytest.fixture
def dice():
    parameter = DomainParameter("sides", int, "add --sides", "must be given")
    PROTOCOLS.join(Family.of("dice", "How many dice show a one.", Dice, domain=(parameter,)))
    yield
    PROTOCOLS.leave("dice")


def test_a_family_of_another_package_appears_by_itself(asked, capsys, tmp_path: Path, dice) -> None:
    plan, words = tmp_path / "plan.json", ["plan", "dice", *USERS, *TARGET]
    assert asked(*words, code=2)["error"]["parameter"] == "sides"
    made = asked(*words, "--sides", 6, "-o", plan)
    assert made["protocol"] == "dice" and made["sides"] == 6
    for verb in (["explain"], ["simulate", "--synthetic", "--fast", "--seed", 1], ["audit", "--trials", 100]):
        assert asked(*verb, "--plan", plan)["fingerprint"] == made["fingerprint"]
    # By options, wherever a plan is made by options; they were known to `plan` alone.
    typed = [*USERS, *TARGET, "--sides", 6]
    for verb in (["explain", "dice"], ["simulate", "--synthetic", "--fast", "--seed", 1, "--protocol=dice"]):
        assert asked(*verb, *typed)["fingerprint"] == made["fingerprint"]
    assert asked("protocols", "dice", *typed)["sides"] == 6
    error = asked("explain", "dice", *typed, "--colour", "red", code=2)["error"]
    assert "No such option" in error["message"] and "--colour" in error["message"]
    assert asked("explain", "dice", "--plan", plan, "--sides", 6, code=2)["error"]["parameter"] == "protocol"
    assert "No such option" in asked("explain", "binary-sum", *typed, code=2)["error"]["message"]
    with pytest.raises(SystemExit):
        cli.main(["plan", "--help"])
    assert "How many dice show a one" in capsys.readouterr().out
