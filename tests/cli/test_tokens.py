"""Admission without names at the command line: from an issuer's keys to an estimate, and what is refused on the way."""

import io
import json
import re
import socket
import sys
import time
from pathlib import Path

import httpx
import pytest

from harness.children import child

SHUFFLEDP = str(Path(sys.executable).parent / "shuffledp")
USERS = 20


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Keys, an issuer, a task, and invitations for everybody."""
    from shuffledp.cli import main

    folder = tmp_path_factory.mktemp("tokens")
    plan = (
        "binary-sum",
        "--users",
        USERS,
        "--epsilon",
        2,
        "--delta",
        1e-3,
        "--method",
        "coins",
        "--honest-fraction",
        0.9,
    )
    for words in (
        ("keys", folder / "keys"),
        ("keys", "make", folder / "issuer", "--issuer", "issuer.example"),
        ("plan", *plan, "-o", folder / "plan.json"),
        (*_creating(folder, "task.json"), "--issuer", folder / "issuer"),
        _creating(folder, "plain.json"),
        ("token", "invite", USERS, "-o", folder / "invitations.txt"),
    ):
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        assert not ended.value.code
    return folder


def _creating(folder, name):
    return ("task", "create", "--plan", folder / "plan.json", "--keys", folder / "keys", "-o", folder / name)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_for(url, process):
    deadline = time.monotonic() + 60
    while True:
        try:
            if httpx.get(f"{url}/healthz").is_success:
                return
        except httpx.HTTPError:
            pass
        assert process.poll() is None and time.monotonic() < deadline, f"nothing answers at {url}"
        time.sleep(0.1)


def test_from_invitations_to_an_estimate(made, asked, run, monkeypatch, tmp_path):
    """Everybody who is invited is counted once; whoever asks again is refused, at the issuer and at the shuffler."""
    port, other = free_port(), free_port()
    issuer, shuffler, tokens = f"http://127.0.0.1:{other}", f"http://127.0.0.1:{port}", tmp_path / "tokens.txt"
    serving = [SHUFFLEDP, "serve", "issuer", "--keys", made / "issuer", "--store", tmp_path / "issuer.db"]
    signing = [*serving, "--invitations", made / "invitations.txt", "--port", other]
    mixing = [SHUFFLEDP, "serve", "shuffler", "--keys", made / "keys", "--task", made / "task.json", "--task"]
    mixing += [
        made / "plain.json",
        "--store",
        tmp_path / "shuffler.db",
        "--port",
        port,
        "--analyzer",
        "http://127.0.0.1:1",
    ]
    fetching = ("token", "fetch", "--task", made / "task.json", "--issuer", issuer, "--invitations")
    log = (tmp_path / "log").open("wb")
    with log, child([str(word) for word in signing], stderr=log) as first:
        wait_for(issuer, first)
        fetched = asked(*fetching, made / "invitations.txt", "-o", tokens)
        assert (fetched["tokens"], fetched["issuer"]) == (USERS, "issuer.example")
        assert oct(tokens.stat().st_mode & 0o777) == "0o600" and not list(tmp_path.glob("*.pending"))
        # Another token for the same people; what was drawn stays, as the issuer may have signed some.
        code, _, err = run(*fetching, made / "invitations.txt", "-o", tmp_path / "more.txt")
        assert code == 2 and "another token was signed for this person: use the token that was fetched then" in err
        assert (tmp_path / "more.txt.pending").exists() and not (tmp_path / "more.txt").exists()
    with (tmp_path / "log").open("ab") as log, child([str(word) for word in mixing], stderr=log) as second:
        wait_for(shuffler, second)
        reporting = ("--task", made / "task.json", "--shuffler", shuffler)
        monkeypatch.setattr(sys, "stdin", io.StringIO("1\n" * USERS))
        sent = asked("report", "-", *reporting, "--tokens", tokens)
        assert (sent["reports"], sent["new"]) == (USERS, USERS)
        code, _, err = run("report", "1", *reporting, "--tokens", tokens)
        assert code == 2 and "this token gets no other seat" in err
    said = (tmp_path / "log").read_text()
    assert "this issuer knows people by their invitations: it is for trials" in said
    plain = asked("task", "show", made / "plain.json")["task_id"][:12]
    assert f"which is for trials: {plain} (create a task with --issuer" in said


def test_what_a_task_says_of_its_issuer(made, asked, run):
    shown = asked("task", "show", made / "task.json")
    assert shown["issuer"] == json.loads((made / "issuer" / "issuer.pub").read_text())["issuer"]
    assert shown["who_sees_what"][1]["party"] == "the issuer, issuer.example"
    assert asked("task", "show", made / "plain.json")["issuer"] is None
    assert "whoever has a token of issuer.example" in run("task", "show", made / "task.json")[1].replace("\n", " ")
    words = " ".join(run("task", "show", made / "plain.json")[1].split())
    assert "as often as they like: for trials" in words


def test_explain_turns_tokens_into_the_honest_fraction(made, asked, run):
    told = asked("explain", "--plan", made / "plan.json", "--tokens", 50)["tokens"]
    assert (told["batch"], told["honest_least"], told["attacker_most"]) == (20, 18, 2)
    assert told["attacker_share"] == pytest.approx(0.04) and told["fills"]
    assert "tokens" not in asked("explain", "--plan", made / "plan.json")
    words = " ".join(run("explain", "--plan", made / "plan.json", "--tokens", 10)[1].split())
    assert "10 tokens, one a person: must be at least the 20 users" in words
    assert "up to 2 tokens, 20.00% of those issued, change nothing" in words
    assert "19 false people around one needs 19 tokens" in words
    plain = ("--users", 20, "--epsilon", 2, "--delta", 1e-3, "--method", "coins")
    words = " ".join(run("explain", "binary-sum", *plain, "--tokens", 50)[1].split())
    assert "with one token is more than the plan counts on" in words
    code, _, err = run("explain", "--plan", made / "plan.json", "--tokens", 0)
    assert code == 2 and "tokens must be 1 or more" in err


REFUSED = {
    "an enrol token where an issuer's is needed": (
        lambda f: ("report", "1", "--task", f / "task.json", "--token-file", f / "keys" / "enrol.token"),
        "tokens must be given, and no --token-file",
    ),
    "tokens where enrol's is needed": (
        lambda f: ("report", "1", "--task", f / "plain.json", "--tokens", f / "task.json"),
        "token_file must be given, and no --tokens",
    ),
    "nothing at all": (lambda f: ("report", "1", "--task", f / "plain.json"), "token_file must be given"),
    "a file that holds no tokens": (
        lambda f: ("report", "1", "--task", f / "task.json", "--tokens", f / "plan.json"),
        "tokens must hold a token a line",
    ),
    "tokens for a task without an issuer": (
        lambda f: ("token", "fetch", "--task", f / "plain.json", "--invitations", f / "invitations.txt", "-o", f / "t"),
        "task must name an issuer",
    ),
    "tokens for a plan": (
        lambda f: ("token", "fetch", "--task", f / "plan.json", "--invitations", f / "invitations.txt", "-o", f / "t"),
        "task must be a task's or a campaign's file, got a plan: make one with `shuffledp task create`",
    ),
    "a file in the place of a value": (
        lambda f: ("report", f / "plan.json", "--task", f / "plain.json", "--token-file", f / "keys" / "enrol.token"),
        r"value must be a number, .*: for instance 1, or --file .*plan\.json for what is in that file",
    ),
    "nobody": (lambda f: ("token", "invite", 0, "-o", f / "t"), "people must be 1 or more"),
    "a file that is there": (lambda f: ("token", "invite", 1, "-o", f / "task.json"), "out must be a new file"),
    "a hop that is an issuer": (
        lambda f: ("keys", "make", f / "t", "--hop", "--issuer", "issuer.example"),
        "issuer .* must not both be given",
    ),
    "a name that is none": (lambda f: ("keys", "make", f / "t", "--issuer", "two words"), r"issuer\.name must be"),
    "an analyzer's folder as an issuer": (
        lambda f: (*_creating(f, "other.json"), "--issuer", f / "keys"),
        r"keys must be there, got .*issuer\.pub",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_in_one_line(made, run, what):
    words, said = REFUSED[what]
    given = words(made)
    more = {"report": ("--shuffler", "http://127.0.0.1:1"), "token": ("--issuer", "http://127.0.0.1:1")}
    named = more.get(given[0], ()) if given[:2] != ("token", "invite") else ()
    code, out, err = run(*given, *named)
    assert code == 2 and out == "" and err.count("\n") == 1
    assert re.search(said, err), err
    assert not (made / "t").exists()


def test_an_interrupted_fetch_goes_on_with_what_it_drew(made, run, tmp_path):
    """The issuer signs one request a person: what was drawn is kept until it has answered, for this task only."""
    fetching = ("token", "fetch", "--issuer", "http://127.0.0.1:1", "--patience", 0, "-o", tmp_path / "tokens.txt")
    invited = ("--invitations", made / "invitations.txt")
    for _ in range(2):
        code, _, err = run(*fetching, "--task", made / "task.json", *invited)
        assert code == 2 and "cannot be reached" in err
    kept = tmp_path / "tokens.txt.pending"
    drawn = kept.read_text()
    assert oct(kept.stat().st_mode & 0o777) == "0o600" and len(json.loads(drawn)["pending"]) == USERS
    few = tmp_path / "few.txt"
    few.write_text((made / "invitations.txt").read_text().splitlines()[0])
    code, _, err = run(*fetching, "--task", made / "task.json", "--invitations", few)
    assert code == 2 and "must be of this task, for 1 people" in err
    assert kept.read_text() == drawn
