"""`shuffledp papers counter` under the command line's contract."""

import json

import pytest

COUNTER = ["papers", "counter", "--largest", "10000", "--runs", "4"]


@pytest.fixture
def alone(monkeypatch) -> None:
    """Rows are measured in this process: to start others takes longer than they do."""
    monkeypatch.setattr("os.cpu_count", lambda: 1)


def test_one_object_and_nothing_else(run) -> None:
    code, out, err = run(*COUNTER, "--json")
    document = json.loads(out)
    assert code == 0 and err == "" and document["schema"] == 1
    assert [row["users"] for row in document["rows"]] == 3 * [1000, 1778, 3162, 5623, 10_000]
    for row in document["rows"]:
        assert row.keys() >= {"shufflers", "users", "bound", "error_mean", "error_quantile", "lower_shape"}
        assert row["lower_shape"] < row["error_mean"] < row["bound"]
    assert [row["shufflers"] for row in document["slopes"]] == [1, 2, 3]
    for row in document["slopes"]:
        assert row.keys() >= {"shufflers", "slope", "slope_low", "slope_high", "theory", "bound_slope"}
        assert row["slope_low"] < row["slope"] < row["slope_high"]


@pytest.mark.usefixtures("alone")
def test_a_seed_makes_it_repeatable(run) -> None:
    words = [*COUNTER, "--shufflers", "2", "--json", "--seed"]
    assert run(*words, "4")[1] == run(*words, "4")[1] != run(*words, "5")[1]


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("kind", ["png", "svg"])
def test_a_person_reads_tables_and_sees_a_picture(run, tmp_path, kind) -> None:
    picture = tmp_path / f"slopes.{kind}"
    code, out, _ = run(*COUNTER, "--shufflers", "1,3", "--picture", str(picture))
    assert code == 0 and all(word in out for word in ("hard input", "less log", "0.143", "10,000", "Next:"))
    assert picture.read_bytes()[:5] in (b"\x89PNG\r", b"<?xml")


@pytest.mark.parametrize(
    ("words", "parameter"),
    [
        (["--shufflers", "one"], "shufflers"),
        (["--shufflers", "1,99"], "shufflers"),
        (["--largest", "10"], "largest"),
        (["--runs", "0"], "runs"),
        (["--seed", "-1"], "seed"),
        (["--picture", "slopes.txt"], "picture"),
        (["--picture", "missing-folder/slopes.png"], "picture"),
    ],
)
def test_bad_input_is_named(run, words, parameter) -> None:
    code, out, err = run(*COUNTER, *words)
    assert code == 2 and out == "" and len(err.strip().splitlines()) == 1
    code, out, _ = run(*COUNTER, *words, "--json")
    assert code == 2 and json.loads(out)["error"]["parameter"] == parameter
