"""People with several rows in a file: --user and --at-most."""

from pathlib import Path
from typing import Any

import pytest

TARGET = ["--epsilon", "4", "--delta", "1e-6"]
PEOPLE = ["--user", "who", "--at-most", "2"]


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    """200 people: those with an even number have one row, the others five."""
    lines = ["who,city,clicked,spent"]
    for person in range(200):
        visits = range(1 if person % 2 == 0 else 5)
        lines += [f"u{person},{'Oslo' if visit % 2 else 'Rome'},{1 - visit % 2},{visit}.5" for visit in visits]
    path = tmp_path / "visits.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_histogram_counts_at_most_so_many_rows_of_a_person(asked: Any, visits: Path) -> None:
    found = asked(
        *("histogram", visits, "--column", "city", "--domain", "Rome,Oslo,Lima", *PEOPLE, *TARGET),
        *("--seed", 1, "--method", "decoys", "--with-truth"),
    )
    truth = {row["category"]: row["truth"] for row in found["histogram"]}
    assert sum(truth.values()) == 100 + 200 and truth["Lima"] == 0
    assert found["users"] == 200 and found["at_most"] == 2


def test_a_count_and_a_sum(asked: Any, visits: Path) -> None:
    count = asked("simulate", visits, "--column", "clicked", *PEOPLE, *TARGET, "--seed", 1, "--with-truth")
    assert count["protocol"] == "repeated-count" and 100 + 100 <= count["truth"] <= 300
    total = asked(
        *("simulate", visits, "--protocol", "bounded-sum", "--low", 0, "--high", 5, "--column", "spent"),
        *(*PEOPLE, *TARGET, "--seed", 1, "--with-truth"),
    )
    assert total["protocol"] == "repeated-sum" and total["users"] == 200
    assert abs(total["estimate"] - total["truth"]) <= total["bound"]


def test_a_running_count(asked: Any, visits: Path) -> None:
    found = asked("count", visits, "--column", "clicked", "--shufflers", 2, *PEOPLE, *TARGET, "--seed", 1)
    assert found["values"] == "counts" and found["users"] == 200


def test_a_plan_s_file_says_how_many_rows_count(asked: Any, visits: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    made = ("plan", "histogram", "--users", 200, *TARGET, "--domain", "Rome,Oslo", "--at-most", 2, "--method", "decoys")
    document = asked(*made, "-o", plan)
    assert document["protocol"] == "repeated-histogram"
    found = asked("histogram", visits, "--plan", plan, "--column", "city", "--user", "who")
    assert found["fingerprint"] == document["fingerprint"]
    assert asked("explain", "--plan", plan)["protocol"] == "repeated-histogram"
    refused = asked("histogram", visits, "--plan", plan, "--column", "city", code=2)["error"]
    assert refused["parameter"] == "user"


@pytest.mark.parametrize(
    ("words", "parameter"),
    [
        (["--user", "who"], "at_most"),
        (["--at-most", "2"], "user"),
        (["--user", "nobody", "--at-most", "2"], "user"),
        (["--user", "who", "--at-most", "0"], "at_most"),
    ],
)
def test_what_is_missing_is_asked_for(asked: Any, visits: Path, words: list[str], parameter: str) -> None:
    for command in (["simulate"], ["count", "--shufflers", 2]):
        found = asked(command[0], visits, *command[1:], "--column", "clicked", *words, *TARGET, code=2)
        assert found["error"]["parameter"] == parameter


def test_a_protocol_without_repeat_users_says_so(asked: Any, visits: Path) -> None:
    words = ("--protocol", "distinct-elements", "--domain", "Rome,Oslo", "--column", "city", *PEOPLE, *TARGET)
    assert asked("simulate", visits, *words, code=2)["error"]["parameter"] == "at_most"


def test_a_mean_of_rows(asked: Any, run: Any, visits: Path) -> None:
    words = ("mean", visits, "--low", 0, "--high", 5, "--column", "spent", *PEOPLE, *TARGET)
    found = asked(*words, "--with-truth")
    assert found["protocol"] == "repeated-mean" and found["users"] == 200 and found["rows_left_out"] == 300
    assert abs(found["estimate"] - found["truth"]) <= 3 * found["bound"]
    said = " ".join(run(*words)[1].split())
    assert "the first 2 rows of everybody" in said and "left out" not in said and "200 rows in all" in said


def test_a_variance_of_rows(asked: Any, run: Any, visits: Path, tmp_path: Path) -> None:
    """Half of the people have a row of 0.5, the others count with 0.5 and 1.5."""
    words = ("variance", visits, "--low", 0, "--high", 2, "--clip", "--column", "spent", *PEOPLE, *TARGET)
    found = asked(*words, "--with-truth", "-o", tmp_path / "answer.json")
    assert found["protocol"] == "repeated-moments" and found["users"] == 200 and found["rows_left_out"] == 300
    assert found["truth"] == pytest.approx(2 / 9) and found["mean"]["truth"] == pytest.approx(5 / 6)
    assert abs(found["estimate"] - found["truth"]) <= 3 * found["bound"] and 0 <= found["lower"] <= found["upper"] <= 1
    said = " ".join(run(*words)[1].split())
    assert "the first 2 rows of everybody" in said and "left out" not in said and "standard deviation" in said
    plan = tmp_path / "plan.json"
    made = asked("plan", "moments", "--users", 200, *TARGET, "--low", 0, "--high", 5, "--at-most", 2, "-o", plan)
    kept = asked("variance", visits, "--plan", plan, "--column", "spent", "--user", "who")
    assert made["protocol"] == "repeated-moments" and kept["fingerprint"] == made["fingerprint"]


def test_the_same_rows_count_in_every_run_and_the_screen_says_which(asked: Any, run: Any, visits: Path) -> None:
    words = ("simulate", visits, "--column", "clicked", *PEOPLE, *TARGET)
    truths = [asked(*words, *more, "--with-truth")["truth"] for more in ((), ("--seed", 1), ("--seed", 2))]
    assert truths == [200, 200, 200]
    for command in (words, ("count", *words[1:], "--shufflers", 2)):
        said = " ".join(run(*command)[1].split())
        assert "the first 2 rows of everybody, in the file's order" in said and "left out" not in said
        assert "300 of 600 rows were left out" in " ".join(run(*command, "--with-truth")[1].split())


def test_how_many_rows_were_left_out_is_a_fact_without_noise(asked: Any, visits: Path) -> None:
    words = ("simulate", visits, "--column", "clicked", *PEOPLE, *TARGET)
    assert asked(*words)["rows_left_out"] is None and asked(*words, "--with-truth")["rows_left_out"] == 300


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    """120 people with three rows each, in both groups: the third is in none that is listed, or left out."""
    lines = ["who,variant,clicked,spent"]
    for person in range(120):
        lines += [f"u{person},A,1,2.5", f"u{person},B,{person % 2},1", f"u{person},C,1,5"]
    path = tmp_path / "trial.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


GROUPED = ["--by", "variant", "--groups", "A,B", "--other-group", "rest"]


def test_rows_of_repeat_users_by_group(asked: Any, run: Any, trial: Path) -> None:
    words = ("sum", trial, "--column", "clicked", *GROUPED, *PEOPLE, *TARGET)
    found = asked(*words, "--with-truth")
    assert found["protocol"] == "grouped-rows-count" and found["users"] == 120 and found["at_most"] == 2
    assert found["truth"] == [120, 60, 0] and found["rows_left_out"] == 120
    assert all(abs(number - true) <= 30 for number, true in zip(found["estimate"], found["truth"], strict=True))
    said = " ".join(run(*words)[1].split())
    assert "the first 2 rows of everybody" in said
    total = asked(
        *(
            "sum",
            trial,
            "--column",
            "spent",
            "--low",
            0,
            "--high",
            5,
            *GROUPED,
            "--user",
            "who",
            "--at-most",
            3,
            *TARGET,
        ),
        "--with-truth",
    )
    assert total["protocol"] == "grouped-rows-sum" and total["truth"] == [300, 120, 600]


def test_a_plan_s_file_of_rows_by_group(asked: Any, trial: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    made = asked("plan", "binary-sum", "--users", 120, *TARGET, *GROUPED[2:], "--at-most", 2, "-o", plan)
    assert made["protocol"] == "grouped-rows-count"
    found = asked("sum", trial, "--plan", plan, "--column", "clicked", "--by", "variant", "--user", "who")
    assert found["fingerprint"] == made["fingerprint"]
    for missing, words in (("by", ["--user", "who"]), ("user", ["--by", "variant"])):
        refused = asked("sum", trial, "--plan", plan, "--column", "clicked", *words, code=2)["error"]
        assert refused["parameter"] == missing


def test_nobody_is_advised_to_make_a_person_of_every_row(run: Any, trial: Path) -> None:
    more = ["--protocol", "weighted-mean", "--low", 0, "--high", 5, "--largest-weight", 2, "--columns", "spent,clicked"]
    code, _, said = run("simulate", trial, *more, *PEOPLE, *TARGET)
    assert code == 2 and "leave" not in " ".join(said.split())
    assert "make one row a person first" in " ".join(said.split())


def test_quantiles_of_rows(asked: Any, run: Any, visits: Path, tmp_path: Path) -> None:
    """200 rows of 0.5 and 100 of 1.5 count; those beyond the second of a person would be larger."""
    domain = ("--domain", "0:5", "--steps", 10)
    words = ("quantile", visits, *domain, "--column", "spent", "--quantiles", "0.5,0.9", *PEOPLE, *TARGET)
    found = asked(*words, "--with-truth", "-o", tmp_path / "cdf.png")
    assert found["protocol"] == "repeated-ranges" and found["users"] == 200 and found["rows_left_out"] == 300
    assert [row["truth"] for row in found["quantiles"]] == [0.75, 1.75]
    assert all(row["lower"] <= row["truth"] <= row["upper"] for row in found["quantiles"])
    said = " ".join(run(*words)[1].split())
    assert "the first 2 rows of everybody" in said and "left out" not in said and "--at-most 2" in said
    plan = tmp_path / "plan.json"
    made = asked("plan", "ranges", "--users", 200, *TARGET, *domain, "--at-most", 2, "-o", plan)
    kept = asked("quantile", visits, "--plan", plan, "--column", "spent", "--user", "who")
    assert made["protocol"] == "repeated-ranges" and kept["fingerprint"] == made["fingerprint"]
    refused = asked("quantile", visits, *domain, "--column", "spent", "--at-most", 2, *TARGET, code=2)["error"]
    assert refused["parameter"] == "user"


def test_means_and_differences_of_rows_by_group(asked: Any, run: Any, trial: Path) -> None:
    rows = ("--user", "who", "--at-most", 3)
    mean = asked("mean", trial, "--column", "spent", "--low", 0, "--high", 5, *GROUPED, *rows, *TARGET, "--with-truth")
    assert mean["protocol"] == "grouped-rows-mean" and mean["truth"] == pytest.approx([2.5, 1, 5])
    rate = asked("difference", trial, "--column", "clicked", *GROUPED, *rows, *TARGET, "--with-truth")
    assert rate["protocol"] == "grouped-rows-rate" and rate["truth"] == pytest.approx(-0.5)
    assert rate["standard_deviations"] is None and abs(rate["difference"] + 0.5) <= 3 * rate["bound"]
    words = ("difference", trial, "--column", "spent", "--low", 0, "--high", 5, *GROUPED, *rows, *TARGET)
    apart = asked(*words, "--with-truth")
    assert apart["protocol"] == "grouped-rows-moments" and apart["truth"] == pytest.approx(-1.5)
    assert len(apart["standard_deviations"]) == 2
    said = " ".join(run(*words)[1].split())
    assert "numbers spread by" in said and "the first 3 rows of everybody" in said
