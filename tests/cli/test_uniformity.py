"""`shuffledp test-uniform` and `papers pointer-chasing` under the command line's contract."""

import json

import numpy as np
import pytest

from shuffledp.cli.domains import parse_domain
from shuffledp.errors import ParameterError

TARGET = ["--distance", "0.25", "--epsilon", "1", "--delta", "1e-6"]


@pytest.fixture
def people(tmp_path) -> str:
    generator = np.random.default_rng(1)
    colours = np.array(["red", "green", "blue", "pink"])[generator.choice(4, 2000, p=[0.1, 0.2, 0.3, 0.4])]
    file = tmp_path / "people.csv"
    lines = zip(colours, generator.integers(20, size=2000), strict=True)
    file.write_text("colour,number\n" + "".join(f"{colour},{number}\n" for colour, number in lines))
    return str(file)


def test_one_object_and_nothing_else(run, people) -> None:
    words = ["test-uniform", people, "--column", "number", "--domain", "0:19", *TARGET, "--seed", "1", "--json"]
    code, out, err = run(*words)
    document = json.loads(out)
    assert code == 0 and err == "" and document["schema"] == 1
    assert document.keys() >= {"verdict", "p_value", "statistic", "threshold", "false_alarm", "miss", "users_needed"}
    assert document["rejected"] is False and document["simulated"] is True and document["users"] == 2000
    assert document["delta_proved"] <= 1e-6 and document["users_needed"] < 2000
    assert json.loads(run(*words)[1]) == document


def test_names_and_a_given_distribution(run, people, tmp_path) -> None:
    listed = tmp_path / "colours.txt"
    listed.write_text("red\ngreen\nblue\npink\n")
    assert parse_domain(str(listed)) == parse_domain("red,green,blue,pink")
    claim = tmp_path / "claim.csv"
    claim.write_text("probability\n0.1\n0.2\n0.3\n0.4\n")
    words = ["test-uniform", people, "--column", "colour", "--domain", str(listed), *TARGET, "--seed", "2", "--json"]
    assert json.loads(run(*words)[1])["rejected"] is True
    true = json.loads(run(*words, "--against", str(claim))[1])
    assert true["rejected"] is False and true["claim"] == "the given distribution" and true["distance_kept"] == 1


def test_a_person_reads_the_verdict(run, people) -> None:
    code, out, _ = run("test-uniform", people, "--column", "number", "--domain", "0:19", *TARGET)
    assert code == 0
    for said in ("verdict", "p-value", "declared false alarm", "declared miss", "messages a user", "Next:"):
        assert said in out


def test_how_many_users_it_takes(run) -> None:
    words = ["test-uniform", "--users-needed", "--domain", "0:99", *TARGET]
    code, out, _ = run(*words, "--json")
    document = json.loads(out)
    assert code == 0 and document["method"] == "decoys"
    assert document["miss"] <= document["miss_allowed"] and 1000 < document["users_needed"] < 4000
    assert "users needed" in run(*words)[1]


@pytest.mark.parametrize(
    ("words", "parameter"),
    [
        ([], "file"),
        (["--users-needed", "--domain", "magic"], "domain"),
        (["--users-needed", "--distance", "2"], "distance"),
        (["--users-needed", "--method", "magic"], "method"),
        (["--users-needed", "--against", "nowhere.csv"], "against"),
        (["--users-needed", "--epsilon", "-1"], "epsilon"),
    ],
)
def test_bad_input_is_one_line(run, words, parameter: str) -> None:
    given = {"--domain": "0:9", "--distance": "0.25", "--epsilon": "1", "--delta": "1e-6"}
    given |= dict(zip(words[1::2], words[2::2], strict=True)) if words else {}
    line = ["test-uniform", *words[:1], *(word for pair in given.items() for word in pair)]
    code, out, _ = run(*line, "--json")
    assert code == 2 and json.loads(out)["error"]["parameter"] == parameter
    assert run(*line)[2].count("\n") == 1


def test_a_claim_with_a_word_in_it_is_refused(run, tmp_path) -> None:
    claim = tmp_path / "claim.csv"
    claim.write_text("p\n0.5\nhalf\n")
    words = ["test-uniform", "--users-needed", "--domain", "a,b", *TARGET, "--against", str(claim), "--json"]
    code, out, _ = run(*words)
    assert code == 2 and "half in line 3" in json.loads(out)["error"]["message"]


def test_domains() -> None:
    assert parse_domain("-3:3").encode([0]).tolist() == [3]
    assert parse_domain("a, b").names() == ["a", "b"]
    for bad in ("", "a", "5:1", "x:y", "a,a"):
        with pytest.raises(ParameterError):
            parse_domain(bad)


def test_pointer_chasing_is_measured(run) -> None:
    words = ["papers", "pointer-chasing", "--lengths", "2,3", "--runs", "12"]
    code, out, err = run(*words, "--json")
    document = json.loads(out)
    assert code == 0 and err == ""
    assert [(row["model"], row["length"]) for row in document["rows"]] == [
        ("shuffle", 2), ("shuffle", 3), ("local", 2), ("local", 3),
    ]  # fmt: skip
    assert all(row["success"] >= 2 / 3 and row["success_low"] < row["success"] for row in document["rows"])
    assert "Theorem 17" in run("papers", "pointer-chasing", "--lengths", "2", "--runs", "3")[1]
    assert run("papers", "pointer-chasing", "--lengths", "x")[0] == 2


def test_a_claim_by_names_and_with_a_mark_in_front(run, people, tmp_path) -> None:
    words = ["test-uniform", people, "--column", "colour", "--domain", "red,green,blue,pink", *TARGET, "--seed", "2"]
    plain, named = tmp_path / "plain.txt", tmp_path / "named.csv"
    plain.write_text("\ufeff0.1\r\n0.2\r\n0.3\r\n0.4\r\n", encoding="utf-8")
    named.write_text("colour,probability\npink,0.4\nblue,0.3\ngreen,0.2\nred,0.1\n")
    seen = [json.loads(run(*words, "--against", str(claim), "--json")[1]) for claim in (plain, named)]
    assert seen[0] == seen[1] and seen[0]["rejected"] is False
    for text, problem in (
        ("red,1\nred,0\n", "once"),
        ("red,0.5\n0.5\n", "every line"),
        ("red,0.5\nteal,0.5\n", "teal"),
    ):
        named.write_text(text)
        code, _, err = run(*words, "--against", str(named))
        assert code == 2 and problem in err and len(err.strip().splitlines()) == 1


def test_the_domain_is_not_the_data_and_nothing_is_ignored(run, people, tmp_path) -> None:
    alone = tmp_path / "alone.csv"
    alone.write_text("c\n" + "\n".join(f"n{place}" for place in range(50)) + "\n")
    code, _, err = run("test-uniform", str(alone), "--column", "c", "--domain", str(alone), *TARGET)
    assert code == 2 and "must not be read from the data" in err
    code, _, err = run("test-uniform", "--users-needed", "--column", "c", "--domain", "0:9", *TARGET)
    assert code == 2 and "column" in err
    code, out, _ = run(
        "test-uniform", people, "--column", "colour", "--domain", "red,green", "--other", "rest", *TARGET
    )
    assert code == 0 and "verdict" in out
