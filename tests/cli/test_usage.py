"""A command line that cannot be read: one sentence in the words that were typed, and the way out."""

from pathlib import Path

import pytest

from shuffledp.cli.usage import whole_number

TARGET = ["--epsilon", "1", "--delta", "1e-6"]
SAID = [
    (["serve"], "say one of shuffler, analyzer, all, cascade, relay, issuer: see `shuffledp serve --help`"),
    (["task"], "say one of create, show, send: see `shuffledp task --help`"),
    (["batch"], "say one of shuffle, collect, open, analyze: see `shuffledp batch --help`"),
    (["ledger"], "say one of open, show, spend, close"),
    (["plan"], "or another: see `shuffledp plan --help`"),
    (["papers"], "papers must be told what"),
    (["plan", "bnary-sum"], "Did you mean 'binary-sum'?"),
    (["plan", "binary-sum", "--user", "1000", *TARGET], "--user, got 1000: did you mean --users?"),
    (["plan", "binary-sum", "--user", "who", *TARGET], "make one row a person first"),
    (["plan", "counter", "--nosie", "coins"], "did you mean --noise?"),
    (["plan", "binary-sum", "--epsilon", "1,5"], "epsilon must be a number, got 1,5: write 1.5"),
    (["plan", "binary-sum", "--epsilon=much"], "epsilon must be a number, got much: see"),
    (["plan", "binary-sum", "--users", "1.5", *TARGET], "users must be a whole number, got 1.5"),
    (
        ["plan", "counter", "--values", "real"],
        "bits, counts, reals, vectors, categories, got real: did you mean reals?",
    ),
    (["report", "1"], "task must be given: add --task FILE --shuffler URL, see"),
    (["report", "1", "--task", "t"], "shuffler must be given: add --shuffler URL"),
    (["keys"], "folder must be given: add FOLDER"),
    (["task", "create", "plan.json"], "plan.json is a file: write --plan plan.json"),
    (["task", "create", "--keys", "k", "-o", "t", "plan.json"], "plan.json is a file: write --plan plan.json"),
    (["explain", "plan.json"], "got plan.json: write --plan plan.json"),
    (["ledger", "spend", "panel.json"], "users must be given, got nothing: add --plan FILE, or --users"),
]


@pytest.mark.parametrize(("words", "said"), SAID, ids=lambda each: " ".join(each) if isinstance(each, list) else "")
def test_the_way_out_is_said_in_one_sentence(
    run, words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("plan.json", "panel.json"):
        Path(name).write_text("{}")
    code, out, err = run(*words)
    assert code == 2 and out == "" and said in err, err
    assert len(err.splitlines()) == 1 and "Error" not in err and "Input should" not in err and "got None" not in err


def test_the_way_out_for_a_missing_option_is_in_json_by_the_name_that_is_typed(asked) -> None:
    assert asked("report", "1", code=2)["error"]["parameter"] == "task"


def test_large_numbers_of_people_are_typed_as_people_write_them(asked) -> None:
    assert asked("plan", "binary-sum", "--users", "1e3", "--method", "rr", *TARGET)["users"] == 1000
    for text in ("1.5", "1e-3", "1.23e1", "many", ""):
        with pytest.raises(ValueError, match="valid integer"):
            whole_number(text)
