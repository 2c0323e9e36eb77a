"""Histograms under the command line's contract."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from shuffledp import Histogram, Privacy

USERS = 300
TARGET = ["--epsilon", "1", "--delta", "1e-6"]
NAMES = ["red", "green", "blue"]
COUNTS = [200, 90, 10]
COLOURS = ["--domain", "red,green,blue"]
PLAN = ["plan", "histogram", "--users", str(USERS), *TARGET]


@pytest.fixture
def people(tmp_path: Path) -> dict[str, Path]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    colours = np.repeat(NAMES, COUNTS)
    ages = np.arange(USERS) % 50 + 20
    files = {kind: tmp_path / f"people.{kind}" for kind in ("csv", "parquet", "npy")}
    files["csv"].write_text("colour,age\n" + "".join(f"{c},{a}\n" for c, a in zip(colours, ages, strict=True)))
    pq.write_table(pa.table({"colour": pa.array(colours).dictionary_encode(), "age": ages}), files["parquet"])
    np.save(files["npy"], colours)
    return files


# --- plans ---------------------------------------------------------------------------------------

KEYS = {
    "schema", "protocol", "method", "users", "epsilon", "delta", "honest_fraction", "constants", "categories",
    "standard_error", "l_inf_error", "l2_error", "messages_per_user_mean", "messages_per_user_max",
    "bits_per_message", "local_epsilon", "local_delta", "noise", "reference", "why", "local_method", "methods",
    "fingerprint",
}  # fmt: skip


def test_a_plan_as_json_has_its_keys(asked) -> None:
    document = asked(*PLAN, *COLOURS)
    assert document.keys() >= KEYS and document["categories"] == {"kind": "names", "names": NAMES}
    assert document["reference"].keys() >= {"central_l_inf_error", "local_l_inf_error", "central_standard_error"}
    assert {row["method"] for row in document["methods"]} == set(Histogram.methods)
    available = [row for row in document["methods"] if row["available"]]
    errors = [row["l_inf_error"] for row in available]
    few = [row["l_inf_error"] for row in available if row["messages_per_user_max"] <= 32]
    assert errors == sorted(errors) and document["l_inf_error"] <= 1.02 * min(few)
    assert document["more_messages"].startswith("correlated would send up to ") and document["warnings"] == []
    assert all("why" in row for row in document["methods"] if not row["available"])
    (own,) = (row for row in available if row["method"] == document["method"])
    assert own["l_inf_error"] == document["l_inf_error"] and own["l2_error"] == document["l2_error"]
    assert document["l_inf_error"] < document["reference"]["local_l_inf_error"]
    assert document["local_method"] in ("k-rr", "rappor", "optimized-unary", "hadamard-response")
    assert asked(*PLAN, "--categories", 3)["l_inf_error"] == document["l_inf_error"]


def test_a_limit_on_messages_shows_what_would_pass_it(asked) -> None:
    wide = asked(*PLAN, "--categories", 100, "--method", "decoys")
    few = wide["messages_per_user_max"] - 1
    refused = asked(*PLAN, "--categories", 100, "--method", "decoys", "--max-messages", few, code=2)
    assert refused["error"]["parameter"] == "max_messages"


def test_a_person_reads_every_method_between_two_extremes(run) -> None:
    code, out, err = run(*PLAN, *COLOURS)
    assert code == 0 and err == ""
    for said in (
        "trusted curator",
        "no shuffler: ",
        "worst bin",
        "this plan",
        "95%",
        "Next:",
        "--domain red,green,blue",
    ):
        assert said in out, said
    assert all(method in out for method in Histogram.methods) and "{'kind'" not in out


def test_a_plan_is_kept_read_and_made_again(run, asked, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    words = [*PLAN, *COLOURS, "--other", "rest", "-o", file]
    made = asked(*words)
    assert json.loads(file.read_text())["fingerprint"] == made["fingerprint"]
    assert asked("explain", "--plan", file)["fingerprint"] == made["fingerprint"]
    simulated = asked("simulate", "--plan", file, "--synthetic", "--seed", 1)
    assert simulated["categories"]["other"] == "rest" and len(simulated["estimate"]) == 4
    # What is printed under "keep the plan" makes the same plan.
    printed = next(line for line in run(*words[:-2])[1].splitlines() if "keep the plan" in line)
    again = asked(*printed.split("shuffledp ")[1].removesuffix(" -o plan.json").split())
    assert again["fingerprint"] == made["fingerprint"]


def test_the_other_commands_take_histograms(run, asked) -> None:
    same = ["histogram", *PLAN[2:], *COLOURS]
    easy = ["histogram", "--users", 1000, "--epsilon", 2, "--delta", 1e-2, *COLOURS]
    code, out, _ = run("protocols", *easy)
    assert code == 0 and "error of the worst bin" in out and "--domain red,green,blue" in out
    assert all(method in out for method in Histogram.methods)
    explained = asked("explain", *same, "--method", "decoys")
    assert explained["delta_proved"] <= 1e-6 and explained["lying_client"]
    small = ["histogram", "--users", 30, "--epsilon", 1, "--delta", 1e-3, "--categories", 3, "--method", "decoys"]
    assert asked("audit", *small, "--trials", 20_000, "--seed", 1)["verdict"] == "stands"


# --- one command ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "parquet", "npy"])
def test_a_file_of_every_kind(asked, people, kind: str) -> None:
    column = [] if kind == "npy" else ["--column", "colour"]
    found = asked("histogram", people[kind], *column, *COLOURS, *TARGET)
    assert [row["category"] for row in found["histogram"]] == NAMES
    estimates = np.array([row["estimate"] for row in found["histogram"]])
    # Three times a 95% bound, with secure bits.
    assert np.abs(estimates - COUNTS).max() <= 3 * found["bound"]
    assert found["users"] == USERS and found["fidelity"] == "messages" and found["messages"] >= USERS
    # Nobody asked for the truth: what is printed is private.
    assert not found["simulated"] and found["largest_error"] is None
    assert all(row.keys() == {"category", "estimate", "lower", "upper"} for row in found["histogram"])
    assert all(0 <= row["lower"] <= row["upper"] <= USERS for row in found["histogram"])


@pytest.mark.parametrize("fast", [[], ["--fast"]])
def test_with_a_seed_it_is_repeatable_and_the_truth_is_asked_for(asked, people, fast: list[str]) -> None:
    words = ["histogram", people["csv"], "--column", "colour", *COLOURS, *TARGET, "--seed", 3, *fast]
    assert asked(*words)["largest_error"] is None
    first, second = ({**asked(*words, "--with-truth"), "seconds": 0} for _ in range(2))
    assert first == second and first["simulated"] and first["fidelity"] == ("law" if fast else "messages")
    assert [row["truth"] for row in first["histogram"]] == COUNTS
    errors = [abs(row["truth"] - row["estimate"]) for row in first["histogram"]]
    assert first["largest_error"] == pytest.approx(max(errors)) and max(errors) <= 3 * first["bound"]


def test_a_person_reads_categories_with_error_bars(run, people, tmp_path: Path) -> None:
    chart, table = tmp_path / "chart.png", tmp_path / "out.csv"
    words = ["histogram", people["csv"], "--column", "colour", *COLOURS, *TARGET, "--with-truth", "--seed", 1]
    code, out, err = run(*words, "-o", chart, "--csv", table)
    out = re.sub(r"\s+", " ", out)
    assert code == 0 and err.strip() == ""
    assert out.index("red") < out.index("green") < out.index("blue") < out.index("how far off")
    for said in (
        "█",
        "truth",
        "95%",
        "for all at once",
        "trusted curator",
        "protects",
        "nobody",
        "Next:",
        "explain histogram",
    ):
        assert said in out, said
    assert chart.read_bytes().startswith(b"\x89PNG") and chart.stat().st_size > 10_000
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert [row["category"] for row in rows] == NAMES and [float(row["truth"]) for row in rows] == COUNTS
    code, out, _ = run(*words[:-3])
    assert code == 0 and "truth" not in out and "draw it (spends epsilon 1 again)" in out
    assert "--picture chart.png" in out
    assert {file.name for file in tmp_path.iterdir()} == {p.name for p in (*people.values(), chart, table)}


def test_the_rest_is_added_up(run, people) -> None:
    code, out, _ = run("histogram", people["csv"], "--column", "age", "--domain", "0:99", *TARGET, "--top", 7)
    assert code == 0 and "93 others together" in out


def test_values_outside_go_to_the_catch_all_and_nobody_is_dropped(asked, people) -> None:
    words = ["histogram", people["csv"], "--column", "colour", "--domain", "red,green", *TARGET]
    error = asked(*words, code=2)["error"]
    assert error["parameter"] == "values" and "'blue' in row 291" in error["message"] and "--other" in error["message"]
    found = asked(*words, "--other", "rest", "--with-truth")
    assert {row["category"]: row["truth"] for row in found["histogram"]} == {"red": 200, "green": 90, "rest": 10}
    assert found["users"] == USERS and not found["simulated"]


def test_a_plan_decides_and_must_fit_the_file(asked, people, tmp_path: Path) -> None:
    file, wrong = tmp_path / "plan.json", tmp_path / "wrong.json"
    asked(*PLAN, *COLOURS, "-o", file)
    words = ["histogram", people["csv"], "--column", "colour", "--plan"]
    assert asked(*words, file)["fingerprint"] == json.loads(file.read_text())["fingerprint"]
    for more, parameter in (
        (["--epsilon", 1], "epsilon"),
        (["--domain", "a,b"], "domain"),
        (["--method", "decoys"], "method"),
    ):
        assert asked(*words, file, *more, code=2)["error"]["parameter"] == parameter
    asked("plan", "histogram", "--users", 7, "--epsilon", 5, "--delta", 0.1, *COLOURS, "-o", wrong)
    assert asked(*words, wrong, code=2)["error"]["parameter"] == "rows"
    asked("plan", "binary-sum", "--users", 300, *TARGET, "--method", "coins", "-o", wrong)
    assert asked(*words, wrong, code=2)["error"]["parameter"] == "plan"


def test_names_are_looked_up_in_hashed_cells(run, asked, people, tmp_path: Path) -> None:
    words = ["histogram", people["csv"], "--column", "colour", "--domain", "hash:5000", *TARGET, "--seed", 1]
    words.append("--with-truth")
    found = asked(*words, "--names", "blue,red")
    assert [(row["category"], row["truth"]) for row in found["histogram"]] == [("blue", 10), ("red", 200)]
    assert found["names_in_use"] == 100 and found["collision_probability"] == pytest.approx(99 / 5000, rel=0.02)
    names = tmp_path / "names.txt"
    names.write_text("red\ngreen\n")
    assert len(asked(*words, "--names", names)["histogram"]) == 2
    code, out, _ = run(*words)
    assert code == 0 and "cell " in out and "--names" in out and "probability 0.02" in " ".join(out.split())
    # Names that share a cell are said to.
    two = ["histogram", people["csv"], "--column", "colour", "--domain", "hash:2", *TARGET, "--names", "red,green,blue"]
    assert "counted together" in run(*two)[1]
    plain = ["histogram", people["csv"], "--column", "colour", *COLOURS, *TARGET, "--names", "red"]
    assert asked(*plain, code=2)["error"]["parameter"] == "names"


def test_more_messages_than_fit_are_not_made(run, asked, people, monkeypatch) -> None:
    from shuffledp.cli import answering

    monkeypatch.setattr(answering, "MOST_MESSAGES", USERS - 1)
    words = ["histogram", people["csv"], "--column", "colour", *COLOURS, *TARGET]
    assert asked(*words)["fidelity"] == "law"
    assert "would take more than a minute" in " ".join(run(*words)[1].split())


BAD = [
    (["--domain", "red"], "domain"),
    (["--domain", "red,red"], "domain"),
    (["--domain", "data"], "domain"),
    (["--domain", "PEOPLE"], "domain"),
    (["--domain", "9:1"], "domain"),
    ([], "domain"),
    (["--categories", "1"], "domain"),
    (["--categories", "3", "--domain", "a,b"], "categories"),
    (["--other", "x"], "other"),
    (["--domain", "1:9", "--other", "x"], "other"),
    ([*COLOURS, "--top", "0"], "top"),
    ([*COLOURS, "-o", "chart.bmp"], "out"),
    ([*COLOURS, "-o", "nowhere/chart.png"], "out"),
    ([*COLOURS, "--csv", "out.xls"], "csv"),
    ([*COLOURS, "--csv", "PEOPLE"], "csv"),
    (["--domain", "hash:9", "--names", "a,b,a"], "names"),
    ([*COLOURS, "--method", "magic"], "method"),
    ([*COLOURS, "--epsilon", "-1"], "epsilon"),
    ([*COLOURS, "--column", "size"], "column"),
    (["--domain", "20:30", "--column", "colour"], "column"),
    (["--domain", "20:30", "--column", "age"], "values"),
]


@pytest.mark.parametrize(("words", "parameter"), BAD, ids=lambda value: " ".join(value) if value else "nothing")
def test_bad_input_is_one_sentence_and_exit_code_2(run, asked, people, words: list[str], parameter: str) -> None:
    given = [str(people["csv"]) if word == "PEOPLE" else word for word in words]
    column = [] if "--column" in words else ["--column", "colour"]
    command = ["histogram", people["csv"], *column, *TARGET, *given]
    code, out, err = run(*command)
    lines = err.strip().splitlines()
    assert code == 2 and out == "" and len(lines) == 1 and lines[0].startswith("shuffledp: ") and lines[0][-1] == "."
    assert asked(*command, code=2)["error"]["parameter"] == parameter


def test_options_of_one_protocol_are_refused_by_others(asked) -> None:
    for words, parameter in (
        (["simulate", "--synthetic", "--users", 10, *TARGET, *COLOURS], "domain"),
        (["explain", "histogram", "--users", 10, *TARGET, "--low", 1], "low"),
        (["explain", "histogram", "--users", 10, *TARGET], "domain"),
        (["plan", "histogram", "--users", 10, *TARGET, "--domain", "data"], "domain"),
        (["plan", "histogram", "--users", 10, *TARGET, *COLOURS, "--method", "gaussian"], "method"),
    ):
        assert asked(*words, code=2)["error"]["parameter"] == parameter, words


def test_simulate_reads_values_by_name(run, asked, people, tmp_path: Path) -> None:
    words = ["simulate", people["csv"], "--column", "colour", "--protocol", "histogram", *TARGET]
    found = asked(*words, *COLOURS, "--seed", 1, "--with-truth")
    assert found["truth"] == COUNTS and found["largest_error"] <= 3 * found["bound"]
    assert asked(*words, "--domain", people["csv"], code=2)["error"]["parameter"] == "domain"
    code, out, _ = run(*words, *COLOURS)
    assert code == 0 and "red" in out and "explain histogram" in out
    plan = tmp_path / "plan.json"
    asked(*PLAN, *COLOURS, "-o", plan)
    assert asked("simulate", people["npy"], "--plan", plan, "--with-truth")["truth"] == COUNTS


# --- as people come ------------------------------------------------------------------------------


def test_a_running_histogram_by_names(run, asked, people, tmp_path: Path) -> None:
    table, picture, plan = tmp_path / "run.csv", tmp_path / "run.png", tmp_path / "plan.json"
    words = ["--domain", "red,green", "--other", "rest", "--shufflers", 2, "--epsilon", 4, "--delta", 1e-3]
    code, out, _ = run(
        "count", people["csv"], "--column", "colour", *words, "--out", table, "--picture", picture, "--with-truth"
    )
    assert code == 0 and "by name" in out and "--domain red,green --other rest" in out
    header = table.read_text().splitlines()[0]
    assert header == "time,estimate_red,estimate_green,estimate_rest,bound" and picture.stat().st_size > 9000
    made = asked("plan", "counter", "--users", USERS, *words, "-o", plan)
    assert made["domain"]["named"] == {"kind": "names", "names": ["red", "green", "rest"], "other": "rest"}
    found = asked("count", people["csv"], "--column", "colour", "--plan", plan, "--with-truth")
    assert found["fingerprint"] == made["fingerprint"] and found["truth"] == COUNTS
    for more, parameter in (
        (["--domain", "data"], "domain"),
        (["--domain", "red,green"], "values"),
        (["--domain", "a,b", "--values", "reals"], "domain"),
        (["--values", "categories"], "categories"),
        (["--values", "categories", "--categories", 3, "--other", "x"], "other"),
    ):
        asking = ["count", people["csv"], "--column", "colour", *words[4:], *more]
        assert asked(*asking, code=2)["error"]["parameter"] == parameter, more


def test_a_plan_of_very_many_cells(asked) -> None:
    found = asked("plan", "histogram", "--users", 100_000, *TARGET, "--domain", "hash:100000:x", "--method", "decoys")
    assert found["categories"] == {"kind": "hashed", "cells": 100_000, "salt": "x"}
    plan = Histogram.plan(users=100_000, privacy=Privacy(1, 1e-6), categories=100_000, method="decoys")
    assert found["l_inf_error"] == plan.error_bound


def test_names_are_words_not_markup_nor_formulas(run, tmp_path) -> None:
    names = ["[bold]x[/bold]", "[/]", ":smile:", "$\\frac$", "a\nb", 'say "hi"', "日本"]
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    data, domain, picture = tmp_path / "data.csv", tmp_path / "names.csv", tmp_path / "chart.png"
    data.write_text("c\n" + "\n".join(quoted * 100) + "\n")
    domain.write_text("\n".join(quoted) + "\n")
    words = ["histogram", str(data), "--domain", str(domain), "--epsilon", "1", "--delta", "1e-4", "--method", "decoys"]
    code, out, err = run(*words, "-o", str(picture))
    assert (code, err.strip()) == (0, "") and picture.stat().st_size > 1000
    assert all(name in out for name in names if "\n" not in name)


def test_extreme_targets_end_with_an_answer_or_a_sentence(run, tmp_path) -> None:
    data, names = tmp_path / "data.csv", tmp_path / "names.txt"
    data.write_text("c\n" + "a\nb\n" * 500)
    words = ["histogram", str(data), "--domain", "a,b", "--json"]
    code, out, _ = run(*words, "--epsilon", "20", "--delta", "1e-6")
    assert code == 0 and json.loads(out)["bound"] >= 0
    code, out, _ = run(*words, "--epsilon", "1", "--delta", "1e-200", "--method", "decoys")
    assert code == 2 and json.loads(out)["error"]["parameter"] == "delta"
    names.write_text("a\nb\n")
    target = ["--users", "1000", "--epsilon", "1", "--delta", "1e-6", "--method", "decoys"]
    code, _, err = run("plan", "histogram", "--domain", str(names), *target, "-o", str(names))
    assert code == 2 and "own file" in err and names.read_text() == "a\nb\n"
