"""Numbers by group, and the difference of two: --by, --groups and `difference`."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shuffledp import cli

TARGET = ["--epsilon", "4", "--delta", "1e-6"]
BY = ["--by", "variant", "--groups", "A,B"]


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    """600 people: a quarter of A clicked and three quarters of B, who spent twice as much."""
    generator = np.random.default_rng(1)
    lines = ["variant,clicked,spent,city"]
    for person in range(600):
        is_b = person % 2
        clicked = int(generator.random() < 0.25 + 0.5 * is_b)
        lines.append(f"{'AB'[is_b]},{clicked},{2 + 2 * is_b}.5,{['Oslo', 'Rome'][clicked]}")
    path = tmp_path / "trial.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_difference_of_rates(asked: Any, trial: Path, tmp_path: Path) -> None:
    picture = tmp_path / "rates.png"
    words = ("difference", trial, "--column", "clicked", *BY, *TARGET, "--method", "decoys")
    found = asked(*words, "--seed", 1, "--with-truth", "-o", picture)
    assert found["protocol"] == "grouped-rate" and (found["first"], found["second"]) == ("A", "B")
    assert abs(found["difference"] - found["truth"]) <= found["bound"]
    for inner, outer in (("people", "population"),):
        assert found[outer][0] < found[inner][0] < found[inner][1] < found[outer][1]
    assert found["differs"] is True and [row["group"] for row in found["by_group"]] == ["A", "B"]
    assert picture.stat().st_size > 1000
    turned = asked(*words, "--seed", 1, "--between", "B,A")
    assert turned["difference"] == pytest.approx(-found["difference"]) and turned["truth"] is None


def test_a_difference_of_means(asked: Any, trial: Path) -> None:
    found = asked(
        "difference", trial, "--column", "spent", "--low", 0, "--high", 10, *BY, *TARGET, "--fast", "--with-truth"
    )
    assert found["protocol"] == "grouped-moments" and found["truth"] == pytest.approx(2.0)
    assert abs(found["difference"] - 2.0) <= found["bound"]


def test_the_difference_in_words(capsys: Any, trial: Path) -> None:
    with pytest.raises(SystemExit):
        cli.main([*map(str, ("difference", trial, "--column", "clicked", *BY, *TARGET, "--method", "decoys"))])
    out = " ".join(capsys.readouterr().out.split())
    for words in ("for these people", "for the population", "do they differ", "explain grouped-rate"):
        assert words in out


def test_where_it_cannot_be_told_the_reason_is(asked: Any, run: Any, trial: Path, tmp_path: Path) -> None:
    """Numbers count with their own variance; a kept plan without squares with the largest that they may have."""
    words = ("difference", trial, "--column", "spent", *BY[:2], "--fast")
    plan = tmp_path / "plan.json"
    asked("plan", "grouped-mean", "--users", 600, *TARGET, "--groups", "A,B", "--low", 0, "--high", 400, "-o", plan)
    said = " ".join(run(*words, "--plan", plan)[1].split())
    assert "cannot be told: 0 lies in the population's interval, as sampling leaves it open by" in said
    assert "noise by" in said and "largest variance" in said and "narrower range" in said
    said = " ".join(run(*words, *BY[2:], *TARGET, "--low", 0, "--high", 400)[1].split())
    assert "largest variance" not in said and "numbers spread by" in said


def test_the_picture_of_a_difference_draws_it_with_both_intervals(asked: Any, trial: Path, tmp_path: Path) -> None:
    picture = tmp_path / "rates.svg"
    words = ("difference", trial, "--column", "clicked", *BY, *TARGET, "--method", "decoys", "--with-truth")
    asked(*words, "-o", picture)
    drawn = picture.read_text()
    for text in ("A", "B", "B less A", "for these people", "for the population", "variant", "rate", "truth"):
        assert f"<!-- {text} -->" in drawn
    assert "95% for all groups at once" in drawn and "95% each" in drawn


def test_numbers_by_group(asked: Any, trial: Path) -> None:
    count = asked("simulate", trial, "--column", "clicked", *BY, *TARGET, "--method", "decoys", "--seed", 1)
    assert count["protocol"] == "grouped-count" and len(count["estimate"]) == 2
    for protocol in ("bounded-sum", "mean"):
        words = ("--protocol", protocol, "--low", 0, "--high", 10, "--column", "spent", "--fast")
        assert len(asked("simulate", trial, *words, *BY, *TARGET)["by_group"]) == 2
    found = asked(
        "histogram", trial, "--column", "city", "--domain", "Oslo,Rome", *BY, *TARGET, "--method", "decoys", "--seed", 1
    )
    assert [row["category"] for row in found["histogram"]] == ["A: Oslo", "A: Rome", "B: Oslo", "B: Rome"]
    assert sum(row["estimate"] for row in found["histogram"]) == pytest.approx(600)


def test_a_plan_s_file_knows_the_groups(asked: Any, trial: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    made = asked("plan", "binary-sum", "--users", 600, *TARGET, "--groups", "A,B", "--method", "decoys", "-o", plan)
    assert made["protocol"] == "grouped-count"
    again = asked("simulate", trial, "--plan", plan, "--column", "clicked", "--by", "variant")
    assert again["fingerprint"] == made["fingerprint"]


def test_people_of_no_group(asked: Any, trial: Path) -> None:
    words = ("simulate", trial, "--column", "clicked", "--by", "variant", *TARGET, "--method", "decoys")
    found = asked(*words, "--groups", "A,C", "--other-group", "rest", "--seed", 1)
    assert [row["group"] for row in found["by_group"]] == ["A", "C", "rest"]
    assert asked(*words, "--groups", "A,C", code=2)["error"]["parameter"] == "by"


@pytest.mark.parametrize(
    ("words", "parameter"),
    [
        (["--by", "variant"], "groups"),
        (["--groups", "A,B"], "by"),
        (["--by", "nothing", "--groups", "A,B"], "by"),
        (["--by", "variant", "--groups", "A"], "groups"),
        (["--by", "variant", "--groups", "A,A"], "groups"),
        (["--by", "variant", "--other-group", "x"], "groups"),
        (["--by", "variant", "--groups", "A,B", "--user", "city", "--at-most", "2"], "method"),
    ],
)
def test_what_is_missing_is_asked_for(asked: Any, trial: Path, words: list[str], parameter: str) -> None:
    found = asked("simulate", trial, "--column", "clicked", *words, *TARGET, "--method", "decoys", code=2)
    assert found["error"]["parameter"] == parameter


@pytest.mark.parametrize("between", ["A", "A,A", "A,Z", ",", "A,B,A"])
def test_two_groups_are_compared(asked: Any, trial: Path, between: str) -> None:
    words = ("difference", trial, "--column", "clicked", *BY, *TARGET, "--method", "decoys", "--between", between)
    assert asked(*words, code=2)["error"]["parameter"] == "between"


def test_a_row_without_a_group_is_told_the_way_out(asked: Any, tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    path.write_text("variant,clicked\n" + "A,1\n,0\nB,1\n" * 100)
    words = ("simulate", path, "--column", "clicked", *BY, *TARGET, "--method", "decoys")
    refused = asked(*words, code=2)["error"]
    assert refused["parameter"] == "by" and "--other-group" in refused["message"]
    assert asked(*words, "--other-group", "rest")["by_group"][2]["group"] == "rest"


def test_pictures_of_groups_name_the_groups_and_draw_every_interval(asked: Any, trial: Path, tmp_path: Path) -> None:
    picture = tmp_path / "means.svg"
    words = ["mean", str(trial), "--column", "spent", "--low", "0", "--high", "60", "--by", "variant"]
    asked(*words, "--groups", "A,B,nobody", *TARGET, "--clip", "-o", str(picture))
    said = picture.read_text()
    assert all(f"<!-- {words} -->" in said for words in ("variant", "mean", "nobody"))
    assert "interval, 95% for all at once" in said and "users -->" not in said
