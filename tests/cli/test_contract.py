"""The command line's contract: exit codes, one JSON object, errors in one sentence, help everywhere."""

import json
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from shuffledp.cli.app import app

SHUFFLEDP = str(Path(sys.executable).parent / "shuffledp")
TARGET = ["--epsilon", "1", "--delta", "1e-6"]
PLAN = ["plan", "binary-sum", "--users", "1000", *TARGET]


@pytest.fixture
def data(tmp_path) -> dict[str, str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    bits = (np.arange(1000) % 4 == 0).astype(np.int64)
    files = {name: str(tmp_path / f"data.{name}") for name in ("csv", "parquet", "npy")}
    Path(files["csv"]).write_text("x,y\n" + "".join(f"{bit},{i}\n" for i, bit in enumerate(bits)))
    pq.write_table(pa.table({"x": bits.astype(bool), "y": bits}), files["parquet"])
    np.save(files["npy"], bits)
    return files


def test_help_answers_in_half_a_second() -> None:
    subprocess.run([SHUFFLEDP, "--help"], capture_output=True, check=True)
    seconds: list[float] = []
    # The rest of the suite keeps the machine busy: counted is the time that the command itself takes.
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        out = subprocess.run([SHUFFLEDP, "--help"], capture_output=True, check=True, text=True).stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(seconds) < 0.5, seconds
    assert all(word in out for word in ("plan", "simulate", "explain"))


def test_nothing_asked_shows_the_commands(run) -> None:
    code, out, _ = run()
    assert code == 0 and "simulate" in out
    assert run("--version")[1].startswith("shuffledp 0.")


def test_every_command_and_option_has_a_help_text() -> None:
    import typer

    def walk(command, path: str) -> None:
        assert command.help or command.callback.__doc__, path
        for parameter in command.params:
            if parameter.name not in ("help",):
                assert parameter.help, f"{path} {parameter.name}"
        for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
            walk(command.get_command(None, name), f"{path} {name}")

    walk(typer.main.get_command(app), "shuffledp")


KEYS = {
    "schema", "protocol", "method", "users", "epsilon", "delta", "honest_fraction", "standard_error",
    "messages_per_user_mean", "messages_per_user_max", "bits_per_message", "local_epsilon", "local_delta",
    "noise", "reference",
}  # fmt: skip


@pytest.mark.parametrize("method", ["auto", "coins", "shares"])
def test_a_plan_as_json_has_its_keys(run, method: str) -> None:
    code, out, err = run(*PLAN, "--method", method, "--json")
    document = json.loads(out)
    assert code == 0 and err == "" and document.keys() >= KEYS
    assert document["reference"].keys() == {"paper_standard_error", "central_standard_error", "local_standard_error"}
    assert (document["schema"], document["protocol"], document["users"]) == (1, "binary-sum", 1000)
    assert document["local_epsilon"] is None and isinstance(document["noise"], dict)


def test_figures_of_plans_as_json(run) -> None:
    def plan(users: int, *more: str) -> dict:
        return json.loads(run("plan", "binary-sum", "--users", str(users), *TARGET, *more, "--json")[1])

    assert plan(10_000, "--method", "shares")["standard_error"] <= 1.45
    assert plan(10_000, "--method", "coins")["standard_error"] <= 5.85
    assert 4.47 <= plan(60, "--method", "coins")["standard_error"] <= 5.48
    assert plan(60, "--method", "coins", "--constants", "paper")["standard_error"] == pytest.approx(18.7, rel=0.02)
    assert plan(10_000)["method"] == "shares" and plan(10_000, "--max-messages", "2")["method"] == "rr"
    assert plan(1000, "--honest-fraction", "0.5")["honest_fraction"] == 0.5


def test_a_person_reads_what_how_accurate_and_what_next(run) -> None:
    code, out, _ = run(*PLAN)
    assert code == 0
    for said in ("standard error", "trusted curator", "local model", "own constants", "Next:", "explain"):
        assert said in out


@pytest.mark.parametrize("kind", ["csv", "parquet", "npy"])
@pytest.mark.parametrize("fast", [[], ["--fast"]])
def test_simulate_reads_every_kind_of_file(run, data, tmp_path, kind: str, fast: list[str]) -> None:
    plan = str(tmp_path / "plan.json")
    assert run(*PLAN, "-o", plan)[0] == 0
    column = [] if kind == "npy" else ["--column", "x"]
    code, out, err = run("simulate", "--plan", plan, data[kind], *column, *fast, "--with-truth", "--json")
    document = json.loads(out)
    assert code == 0 and err == "" and document["truth"] == 250 and not document["simulated"]
    assert abs(document["estimate"] - 250) < 40
    assert document["fidelity"] == ("law" if fast else "messages")


def test_simulate_with_the_options_in_place_takes_the_users_from_the_file(run, data) -> None:
    code, out, _ = run("simulate", data["csv"], "--column", "x", *TARGET, "--seed", "3", "--json")
    first = json.loads(out)
    assert code == 0 and first["users"] == 1000 and first["simulated"]
    second = json.loads(run("simulate", data["csv"], "--column", "x", *TARGET, "--seed", "3", "--json")[1])
    assert first["estimate"] == second["estimate"]


def test_simulate_tells_a_person_the_story(run) -> None:
    code, out, _ = run("simulate", "--synthetic", "--users", "5000", *TARGET)
    assert code == 0
    for said in ("estimate", "±", "true value", "messages made, shuffled and read", "local model", "Next:"):
        assert said in out


@pytest.mark.parametrize("method", ["coins", "shares"])
def test_explain_has_the_pair_the_terms_and_the_collusions(run, method: str) -> None:
    words = ["explain", "binary-sum", "--users", "1000", *TARGET, "--method", method]
    document = json.loads(run(*words, "--json")[1])
    assert document["pair"].startswith("P = Z, Q = Z + 1")
    assert sum(term["value"] for term in document["delta_terms"]) == pytest.approx(document["delta_proved"])
    assert document["delta_proved"] <= 1e-6
    assert (Path(__file__).parents[2] / document["theory_page"]).is_file()
    assert {row["parties"] for row in document["collusions"]} >= {"analyzer alone", "analyzer + shuffler"}
    code, out, _ = run(*words)
    assert code == 0 and "Every term of delta" in out and "What each collusion reveals" in out


def test_explain_takes_a_plan(run, tmp_path) -> None:
    plan = str(tmp_path / "plan.json")
    run(*PLAN, "-o", plan)
    assert json.loads(run("explain", "--plan", plan, "--json")[1])["users"] == 1000


def test_json_printed_to_a_file_is_a_plan_too(run, tmp_path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(run(*PLAN, "--json")[1])
    assert run("explain", "--plan", str(file), "--json")[0] == 0


BAD = [
    ([*PLAN, "--epsilon", "0"], "epsilon"),
    ([*PLAN, "--epsilon", "-1"], "epsilon"),
    ([*PLAN, "--epsilon", "nan"], "epsilon"),
    ([*PLAN, "--epsilon", "inf"], "epsilon"),
    ([*PLAN, "--epsilon", "much"], "epsilon"),
    ([*PLAN, "--delta", "0"], "delta"),
    ([*PLAN, "--delta", "1"], "delta"),
    ([*PLAN, "--delta", "-0.5"], "delta"),
    ([*PLAN, "--users", "0"], "users"),
    ([*PLAN, "--users", "-3"], "users"),
    ([*PLAN, "--users", "1.5"], "users"),
    ([*PLAN, "--method", "magic"], "method"),
    ([*PLAN, "--honest-fraction", "0"], "honest_fraction"),
    ([*PLAN, "--honest-fraction", "2"], "honest_fraction"),
    ([*PLAN, "--max-messages", "1", "--method", "coins"], "max_messages"),
    ([*PLAN, "--max-messages", "0"], "max_messages"),
    ([*PLAN, "--constants", "guess"], "constants"),
    ([*PLAN, "-o", "nowhere/at/all/plan.json"], "out"),
    (["plan", "binary-sum", *TARGET], "users"),
    (["plan", "binary-sum", "--users", "10", "--epsilon", "1"], "delta"),
    (["simulate", *TARGET], "file"),
    (["simulate", "missing.csv", "--column", "x", *TARGET], "file"),
    (["simulate", "--synthetic", "--users", "10", *TARGET, "--seed", "-1"], "seed"),
    (["simulate", "--synthetic", "--users", "10", *TARGET, "--protocol", "magic"], "protocol"),
    (["simulate", "--synthetic", "--plan", "missing.json"], "plan"),
    (["simulate", "--synthetic", "--plan", "missing.json", "--users", "4"], "users"),
    (["explain", "magic", "--users", "10", *TARGET], "protocol"),
    (["explain"], "users"),
]


@pytest.mark.parametrize(
    ("words", "parameter"), BAD, ids=lambda value: " ".join(value) if isinstance(value, list) else value
)
def test_bad_input_is_one_sentence_and_exit_code_2(run, words: list[str], parameter: str) -> None:
    code, out, err = run(*words)
    assert code == 2 and out == ""
    lines = err.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("shuffledp: ") and lines[0].endswith("."), err
    assert parameter in lines[0].replace("-", "_")
    code, out, err = run(*words, "--json")
    error = json.loads(out)["error"]
    assert code == 2 and err == "" and error.keys() == {"message", "parameter", "value"}
    assert error["parameter"] == parameter


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("x\n", "row"),
        ("", "empty"),
        ("z\n1\n0\n", "column"),
        ("x\n1\n2\n0\n", "2 in row 2"),
        ("x\n1\n\n0\n", "--missing"),
        ("x\n0.5\n1\n0\n", "0.5 in row 1"),
        ("x\nyes\nno\nno\n", "yes"),
        ("x\n1\n0\n", "rows must be the plan's 3 users, got 2"),
    ],
)
def test_bad_files_are_named(run, tmp_path, content: str, said: str) -> None:
    file = tmp_path / "bad.csv"
    file.write_text(content)
    words = ["simulate", str(file), "--column", "x", "--users", "3", *TARGET]
    code, out, err = run(*words)
    assert code == 2 and out == "" and said in err and len(err.strip().splitlines()) == 1, err


def test_no_users_are_not_the_rows_of_the_file(run, data) -> None:
    code, out, _ = run("simulate", data["csv"], "--column", "x", "--users", "0", *TARGET, "--json")
    assert code == 2 and json.loads(out)["error"]["parameter"] == "users"


def test_nothing_half_written_after_a_failure(run, tmp_path) -> None:
    file = tmp_path / "plan.json"
    file.write_text("old")
    assert run("plan", "binary-sum", "--users", "0", *TARGET, "-o", str(file))[0] == 2
    assert file.read_text() == "old" and list(tmp_path.iterdir()) == [file]


def test_unknown_words_are_usage_errors(run) -> None:
    for words in (["fly"], ["plan", "magic"], [*PLAN, "--wings"], ["plan"]):
        code, out, err = run(*words)
        assert code == 2 and out == "" and "--help" in err
        assert len(err.strip().splitlines()) == 1
        assert "error" in json.loads(run(*words, "--json")[1])


def test_a_bug_exits_1_and_says_where_to_report_it(run, monkeypatch) -> None:
    from shuffledp.cli.asked import Asked

    def broken(*_):
        raise RuntimeError("oh")

    monkeypatch.setattr(Asked, "choice", broken)
    code, out, err = run(*PLAN)
    assert code == 1 and out == "" and "CONTRIBUTING.md" in err and "RuntimeError" in err


def test_json_has_neither_nan_nor_infinity(run) -> None:
    document = json.loads(
        run("explain", "--users", "20", *TARGET, "--method", "coins", "--json")[1],
        parse_constant=lambda word: pytest.fail(word),
    )
    assert None in [row["epsilon"] for row in document["collusions"]]
