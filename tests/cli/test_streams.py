"""Commands on files that are read in pieces: the whole file's values, one answer however it is cut, and refusals."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shuffledp.cli import answering, heavy_hitters, running
from shuffledp.engines import estimating

TARGET = ["--epsilon", "1", "--delta", "1e-6"]
PEOPLE = 400


@pytest.fixture
def messy(tmp_path: Path) -> Path:
    """A file of everything that data may be: quoted line's ends, blank lines, values left out, days and times."""
    draw = np.random.default_rng(3)
    rows = ["colour,age,day,group,x,y\r\n"]
    for place in range(PEOPLE):
        colour = draw.choice(['"r,ed"', "blue", '"two\nlines"', "", "NA", '"say ""hi"""', "odd"])
        age = draw.choice(["7", "41", "99", "", "NA"])
        day = draw.choice(["2026-01-05", "2026-03-01T12:00", "", "2026-12-31"])
        x, y = draw.choice(["1", "0.5", "", "-2"], 2)
        rows.append(f"{colour},{age},{day},{draw.choice(['a', 'b', 'c'])},{x},{y}\r\n")
        if place % 50 == 49:
            rows.append("\n")
    path = tmp_path / "people.csv"
    path.write_text("".join(rows), newline="")
    return path


COMMANDS = {
    name: words.split()
    for name, words in {
        "names": "histogram --column colour --domain r,ed,blue --other rest",
        "names and nobody": "histogram --column colour --domain NA,blue --other rest --missing other",
        "numbers as categories": "histogram --column age --domain 0:120 --missing default=50",
        "hashed": "histogram --column colour --domain hash:50 --missing default=none",
        "clipped": "mean --column age --low 10 --high 90 --clip --missing default=30",
        "days": "mean --column day --low 2026-01-01 --high 2026-06-30 --clip --missing default=2026-02-02",
        "groups": "mean --column age --low 0 --high 99 --missing default=3.5 --by group --groups a,b --other-group z",
        "vectors": "sum --columns x,y --radius 2 --clip --missing x=1,y=0.25",
        "ranges": "quantile --column age --domain 0:63 --clip --missing default=1",
    }.items()
}


@pytest.mark.parametrize("name", COMMANDS)
def test_pieces_have_the_values_of_the_whole(name: str, messy: Path, asked: Any, monkeypatch: Any) -> None:
    command, *words = COMMANDS[name]
    caught: list[tuple[Any, Any]] = []
    real = running.run_plan

    def catch(plan: Any, source: Any, *given: Any, **how: Any) -> Any:
        caught.append((plan, source))
        return real(plan, source, *given, **how)

    monkeypatch.setattr(answering, "run_plan", catch)
    monkeypatch.setattr("shuffledp.cli.file_values._BYTES", 900)
    whole = asked(command, messy, *words, *TARGET, "--seed", 1)
    monkeypatch.setattr(answering, "SMALL", 10)
    found = asked(command, messy, *words, *TARGET, "--seed", 1, "--processes", 1)
    (plan, held), (same, source) = caught
    assert plan == same and source.cut.pieces > 5 and source.rows == PEOPLE
    assert found["engine"] == "local" and found["pieces"] == 1 and "pieces" not in whole
    part = source.part(0, source.rows)
    blocks = [values for _, values in part.blocks(64)]
    if (agreeing := source.agreeing(part.noticed)) is not None:
        blocks = [values for _, values in agreeing.part(0, source.rows).blocks(64)]
    assert [len(each) for each in blocks] == [64] * 6 + [16]
    assert np.array_equal(np.concatenate(blocks), held.values)


def test_however_it_is_cut_the_answer_is_the_same(messy: Path, asked: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(answering, "SMALL", 10)
    monkeypatch.setattr(estimating, "_LITTLE", 0)
    monkeypatch.setattr(estimating, "STREAM_MESSAGES", 16)
    monkeypatch.setattr("shuffledp.cli.file_values._CELLS", 32)
    command, *words = COMMANDS["names"]
    found = []
    for tasks, memory in ((1, "1GB"), (7, "300MB"), (100, "1GB")):
        monkeypatch.setattr(estimating, "_TASKS_EACH", tasks)
        for fast in ([], ["--fast"]):
            how = ["--seed", 1, "--processes", 1, "--memory", memory, *fast]
            found.append(asked(command, messy, *words, *TARGET, *how))
    assert len({each["pieces"] for each in found}) > 2
    for one, other in zip(found, found[2:], strict=False):
        assert one["histogram"] == other["histogram"] and one["fidelity"] == other["fidelity"]


def test_searches_and_words_on_the_screen(tmp_path: Path, run: Any, asked: Any, monkeypatch: Any) -> None:
    path = tmp_path / "words.csv"
    path.write_text("word\n" + "ab\n" * 700 + "b\n" * 500 + "\n")
    monkeypatch.setattr(heavy_hitters, "SMALL", 10)
    monkeypatch.setattr(answering, "SMALL", 10)
    words = ["--column", "word", "--length", 2, "--top", 1, "--alphabet", "ab", "--missing", "default=a"]
    for method in ("everybody", "prefixes"):
        found = asked("heavy-hitters", path, *words, "--epsilon", 5, "--delta", 1e-6, "--method", method, "--seed", 2)
        assert [each["string"] for each in found["found"]] == ["ab"] and found["pieces"] == 1
    _, out, _ = run("histogram", path, "--column", "word", "--domain", "ab,b", "--other", "c", *TARGET, "--seed", 1)
    told = " ".join(out.split())
    assert "messages made and tallied in 1 piece" in told and "which no mix changes" in told


def test_what_memory_cannot_hold_is_refused_before_it_is_read(messy: Path, asked: Any, monkeypatch: Any) -> None:
    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("values were read")

    words = ["histogram", messy, "--column", "age", *TARGET, "--missing", "default=1"]
    error = asked(*words, "--domain", "0:900000", code=2)["error"]
    assert error["parameter"] == "memory" and "--memory 1.6GB" in error["message"]
    monkeypatch.setattr(answering, "SMALL", 10)
    monkeypatch.setattr(running, "SMALL", 10)
    monkeypatch.setattr(estimating, "estimate_on", never)
    for more, said in (
        (["--domain", "0:120", "--memory", "140MB"], "with a tally of"),
        (["--domain", "0:120", "--with-truth", "--memory", "125MB"], "all rows of people.csv at once"),
        (["--domain", "0:120", "--user", "colour", "--at-most", "2", "--memory", "125MB"], "a row a person"),
    ):
        error = asked(*words, *more, code=2)["error"]
        assert error["parameter"] == "memory" and said in error["message"], error
    made_up = ["simulate", "--synthetic", "--users", "1e8", *TARGET]
    assert "read in pieces" in asked(*made_up, code=2)["error"]["message"]


def test_a_bad_row_is_named_by_its_place_in_the_file(tmp_path: Path, asked: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(answering, "SMALL", 10)
    monkeypatch.setattr("shuffledp.cli.file_values._CELLS", 16)
    path = tmp_path / "people.csv"
    path.write_text("age\n" + "7\n" * 90 + "120\n" + "7\n" * 9)
    words = ["mean", path, "--column", "age", "--low", 0, "--high", 99, *TARGET]
    error = asked(*words, code=2)["error"]
    monkeypatch.setattr(answering, "SMALL", 1 << 20)
    assert error == asked(*words, code=2)["error"] and "row 91" in error["message"]


@pytest.mark.parametrize("more", [[], ["--fast"], ["--seed", 1]])
def test_how_many_were_clipped_is_not_said_unasked(
    more: list[Any], tmp_path: Path, run: Any, asked: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(answering, "SMALL", 10)
    path = tmp_path / "people.csv"
    path.write_text("age\n" + "7\n" * 900 + "777\n" * 137)
    words = ["mean", path, "--column", "age", "--low", 0, "--high", 99, "--clip", *TARGET, *more]
    _, out, err = run(*words)
    assert "in 1 piece" in out or more == ["--fast"]
    assert "clipped" not in out + err and "137" not in out + err
    assert asked(*words)["clipped"] is None
