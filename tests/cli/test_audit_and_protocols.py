"""`shuffledp audit` and `shuffledp protocols` under the command line's contract."""

import json

import pytest

TARGET = ["--epsilon", "1", "--delta", "1e-6"]


AUDIT = ["audit", "binary-sum", "--users", "10", *TARGET, "--method", "shares", "--trials", "50000", "--seed", "1"]


def test_an_honest_plan_stands_with_exit_code_0(run) -> None:
    code, out, err = run(*AUDIT, "--json")
    document = json.loads(out)
    assert code == 0 and err == "" and document["verdict"] == "stands"
    assert document.keys() >= {
        "schema", "verdict", "epsilon_claimed", "epsilon_lower_bound", "delta", "trials", "confidence"
    }  # fmt: skip
    assert document["epsilon_lower_bound"] <= document["epsilon_exact"] <= document["epsilon_claimed"] == 1


def test_a_sabotaged_plan_is_refuted_with_exit_code_3(run) -> None:
    code, out, _ = run(*AUDIT, "--sabotage", "0.5", "--json")
    assert code == 3 and json.loads(out)["verdict"] == "refuted"
    code, out, _ = run(*AUDIT, "--sabotage", "0.5")
    assert code == 3 and "the claim is false" in out
    told = " ".join(out.split())
    assert "noise 0.5 of the variance needed, as asked (--sabotage): not the plan's own" in told
    assert "nothing is said against the plan with its own noise" in told
    _, honest, _ = run(*AUDIT)
    assert "sabotage" not in honest and "as asked" not in honest


def test_an_audit_in_a_pipe_shows_that_it_lives(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shuffledp.cli.progress._SILENT_SECONDS", 0.002)
    code, _, err = run(*AUDIT)
    assert code == 0 and "running the randomizer: " in err and "s so far)" in err
    assert run(*AUDIT, "--json")[2] == ""


def test_a_plan_from_a_file_is_audited_with_dropouts(run, tmp_path) -> None:
    plan = str(tmp_path / "plan.json")
    run("plan", "binary-sum", "--users", "10", *TARGET, "--method", "shares", "-o", plan)
    words = ["audit", "--plan", plan, "--trials", "50000", "--seed", "1", "--json"]
    assert run(*words)[0] == 0
    code, out, _ = run(*words, "--honest-fraction", "0.3")
    assert code == 3 and json.loads(out)["honest_fraction"] == 0.3


def test_an_audit_tells_a_person_what_it_means(run) -> None:
    code, out, _ = run(*AUDIT)
    assert code == 0 and "that is no proof" in " ".join(out.split())


def test_coins_at_80_users_as_the_docs_say(run) -> None:
    words = ["audit", "binary-sum", "--users", "80", *TARGET, "--method", "coins", "--seed", "1", "--json"]
    code, out, _ = run(*words, "--sabotage", "0.5", "--trials", "1000000")
    assert code == 3 and json.loads(out)["epsilon_lower_bound"] > 1
    assert run(*words, "--trials", "500000")[0] == 0


def test_all_methods_side_by_side(run) -> None:
    code, out, err = run("protocols", "--users", "300", *TARGET, "--json")
    document = json.loads(out)
    rows = {row["method"]: row for row in document["protocols"]}
    assert code == 0 and err == "" and set(rows) == {
        "coins", "shares", "rr", "zsum", "poisson-bits", "correlated", "pure"
    }  # fmt: skip
    for row in rows.values():
        assert row["standard_error"] > 1 and row["epsilon_at_honest_fraction"]["1"] <= 1 + 1e-9
    assert rows["pure"]["pure"] and rows["zsum"]["zero_kept"] and rows["shares"]["influence_of_a_lying_client"] is None
    assert rows["rr"]["local_epsilon"] > 1 and rows["coins"]["local_epsilon"] is None


def test_methods_that_cannot_say_why(run) -> None:
    document = json.loads(run("protocols", "--users", "30", *TARGET, "--json")[1])
    zsum = next(row for row in document["protocols"] if row["method"] == "zsum")
    assert not zsum["available"] and "too few" in zsum["why"]


def test_a_person_reads_a_table(run) -> None:
    code, out, _ = run("protocols", "--users", "300", *TARGET)
    assert code == 0 and all(word in out for word in ("correlated", "liar", "delta = 0", "Next:"))


@pytest.mark.parametrize(
    ("words", "parameter"),
    [
        (["protocols", "--users", "10"], "epsilon"),
        (["protocols", "--users", "0", *TARGET], "users"),
        ([*AUDIT, "--confidence", "2"], "confidence"),
        ([*AUDIT, "--trials", "3"], "trials"),
        ([*AUDIT, "--sabotage", "7"], "sabotage"),
        (["papers", "amplify", "--local-epsilon", "-1", "--users", "10", "--delta", "1e-6"], "local_epsilon"),
        (["ledger", "show", "missing.json"], None),
        (["audit", "--plan", "missing.json", "--method", "coins"], "method"),
        (["explain", "--plan", "missing.json", "--method", "coins"], "method"),
    ],
)
def test_bad_input_is_named(run, words, parameter) -> None:
    code, out, err = run(*words)
    assert code == 2 and out == "" and len(err.strip().splitlines()) == 1
    code, out, _ = run(*words, "--json")
    error = json.loads(out)["error"]
    assert code == 2 and (parameter is None or error["parameter"] == parameter)


def test_the_registered_commands_answer(run) -> None:
    code, out, _ = run("papers", "amplify", "--local-epsilon", "1", "--users", "10000", "--delta", "1e-6", "--json")
    document = json.loads(out)
    assert code == 0 and document["note"] == "exploration: privacy belongs to a run"


def test_a_budget_is_kept(run, tmp_path) -> None:
    ledger, plan = str(tmp_path / "people.json"), str(tmp_path / "plan.json")
    assert run("ledger", "open", ledger, "--population", "people", *TARGET)[0] == 0
    run("plan", "binary-sum", "--users", "1000", *TARGET, "--method", "coins", "-o", plan)
    assert run("ledger", "spend", ledger, "--plan", plan)[0] == 0
    code, _, err = run("ledger", "spend", ledger, "--plan", plan)
    assert code == 2 and "left" in err
    assert run("ledger", "close", ledger)[0] == 0
