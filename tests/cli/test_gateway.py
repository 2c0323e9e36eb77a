"""The commands of gateways and relays: what they say, and what they refuse in a sentence."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.randomness import RandomBits
from shuffledp.service.keys import load_public_key, make_keys
from shuffledp.service.oblivious.key_config import load_configs
from shuffledp.service.task import Task

ROLES = ("shuffler", "analyzer", "issuer", "relay")


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    make_keys(tmp_path / "keys", bits=RandomBits.secure())
    return tmp_path / "keys"


def test_gateway_keys_are_made_rotated_and_retired(keys: Path, run: Any, asked: Any) -> None:
    made = asked("keys", "gateway", keys)
    (config,) = load_configs(keys / made["file"])
    assert (made["public_key"], made["key_id"], made["older_keys"]) == (config.public.text, config.key_id, [])
    _, said, _ = run("keys", "rotate", keys, "--gateway")
    assert "gateway.ohttp-keys" in said and "older keys" in said and "retire" in said and "serve relay" in said
    again = asked("keys", "rotate", keys, "--gateway")
    assert len(again["older_keys"]) == 2
    looked = {check["name"]: check for check in asked("doctor", "--keys", keys)["checks"]}
    assert looked["older gateway's keys"]["found"] == ", ".join(sorted(again["older_keys"]))
    assert (looked["gateway's key"]["status"], looked["gateway's key"]["found"]) == ("ok", f"number {again['key_id']}")
    done = asked("keys", "retire", keys, "--gateway")
    assert sorted(done["destroyed"]) == sorted(again["older_keys"])
    assert "none: there are no older keys" in run("keys", "retire", keys, "--gateway")[1]
    assert not list(keys.glob("analyzer-*.key"))
    # Another server's file: nobody who has it would be understood.
    make_keys(keys.parent / "other", bits=RandomBits.secure())
    asked("keys", "gateway", keys.parent / "other")
    (keys / made["file"]).write_bytes((keys.parent / "other" / made["file"]).read_bytes())
    code, said, _ = run("doctor", "--keys", keys, "--json")
    looked = {check["name"]: check for check in json.loads(said)["checks"]}
    assert (code, looked["gateway's key"]["status"]) == (3, "fail")
    assert looked["gateway's key"]["found"] == "gateway.ohttp-keys is of another key"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["keys", "rotate", "KEYS", "--gateway", "--tokens"], "gateway and --tokens are two things"),
        (["keys", "retire", "KEYS", "--gateway", "--tokens"], "gateway and --tokens are two things"),
        (["keys", "rotate", "KEYS", "--gateway"], "folder must have gateway.pub"),
        (["serve", "relay", "--gateway", "http://shuffler.example"], "gateway must be https unless it is this machine"),
        (["serve", "relay", "--gateway", "shuffler"], "gateway must be a gateway's or a shuffler's address"),
        (["serve", "relay", "--gateway", "https://s.example", "--host", "0.0.0.0"], "host must be this machine itself"),
        (
            ["report", "1", "--task", "t", "--shuffler", "u", "--token-file", "f", "--relay", "https://r.example"],
            "relay and gateway_keys go together",
        ),
        (
            ["report", "1", "--task", "t", "--shuffler", "u", "--token-file", "f", "--gateway-keys", "f"],
            "relay and gateway_keys go together",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(keys: Path, run: Any, words: list[str], sentence: str) -> None:
    code, out, err = run(*(keys if word == "KEYS" else word for word in words))
    assert (code, out) == (2, "") and sentence in err and err.count("\n") == 1


@pytest.mark.parametrize(("hops", "first"), [([], "the shuffler"), (["--hops", "2"], "hop 1")])
def test_what_a_relay_changes_is_explained(run: Any, hops: list[str], first: str) -> None:
    code, out, _ = run("explain", "binary-sum", "--users", "500", "--epsilon", "2", "--delta", "1e-4", *hops)
    said = " ".join(out.split())
    assert code == 0 and f"Behind a relay {first} does not see where reports come from" in said
    assert f"a relay and {first} together do" in said


def test_a_task_says_what_a_relay_sees(keys: Path, tmp_path: Path, asked: Any) -> None:
    plan = BinarySum.plan(users=100, privacy=Privacy(2, 1e-4), method="coins")
    task = Task.create(plan, load_public_key(keys), bits=RandomBits.secure())
    (tmp_path / "task.json").write_text(task.text)
    seen = {row["party"]: row["sees"] for row in asked("task", "show", tmp_path / "task.json")["who_sees_what"]}
    assert "addresses" in seen["a relay, if it is used"] and "no address" in seen["the shuffler behind a relay"]
    assert "which device reports" in seen["a relay and the shuffler"]


def test_a_shuffler_says_whether_it_is_a_gateway(
    keys: Path, tmp_path: Path, asked: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Keys are read when it starts: whoever made them later sees that it was not started since."""
    from shuffledp.cli.serve_making import make_shuffler
    from shuffledp.service.serving import Address

    said = {}
    for kind in ("plain", "gateway"):
        if kind == "gateway":
            asked("keys", "gateway", keys)
        made = make_shuffler(str(tmp_path / f"{kind}.db"), keys, "http://127.0.0.1:1", [], Address(port=0), 60.0)
        said[kind] = capsys.readouterr().err
        made.config.app.state.server.stop()  # type: ignore[union-attr]
    assert said["plain"] == ""
    assert said["gateway"].startswith("a gateway, too: ") and said["gateway"].endswith("gateway.ohttp-keys\n")


def test_a_relay_and_an_issuer_may_be_tried_on_one_machine(run: Any) -> None:
    """Beside a shuffler and an analyzer, each by its default port."""
    ports = [re.findall(r"default: (80\d\d)", run("serve", role, "--help")[1]) for role in ROLES]
    assert ports == [["8001"], ["8002"], ["8003"], ["8004"]]
