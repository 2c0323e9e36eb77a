"""`shuffledp papers arms` under the command line's contract."""

import json

import pytest

from shuffledp import cli
from shuffledp.experiments import arms as experiment

ARMS = ["papers", "arms", "--arms", "3", "--largest", "100000", "--instances", "5"]


@pytest.fixture
def run(capsys, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    # The experiment's own test measures every point; here, fewer of each kind are printed.
    points = [point for point in experiment._extra_points() if point[1] <= 9 and point[2] <= 10**7]
    monkeypatch.setattr(experiment, "_extra_points", lambda: points)
    monkeypatch.setattr(experiment, "FIXED", (100,))

    def call(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            cli.main(list(words))
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return call


def test_one_object_and_nothing_else(run) -> None:
    code, out, err = run(*ARMS, "--json")
    document = json.loads(out)
    assert code == 0 and err == "" and document["schema"] == 1
    keys = {"policy", "epsilon", "arms", "horizon", "instances", "regret_mean", "regret_standard_error", "seconds"}
    assert all(row.keys() == keys and row["regret_mean"] > 0 for row in document["rows"])
    assert [row["against"] for row in document["exponents"]] == ["arms", "log horizon", "1 / epsilon"]


def test_a_seed_makes_it_repeatable(run) -> None:
    def regrets(seed: str) -> list[float]:
        return [row["regret_mean"] for row in json.loads(run(*ARMS, "--json", "--seed", seed)[1])["rows"]]

    assert regrets("4") == regrets("4") != regrets("5")


def test_a_person_reads_tables_sees_a_picture_and_keeps_the_rows(run, tmp_path, monkeypatch) -> None:
    import pyarrow.parquet as pq

    picture, table = tmp_path / "regret.svg", tmp_path / "regret.parquet"
    code, out, _ = run(*ARMS, "--picture", str(picture), "--csv", str(table))
    assert code == 0 and all(word in out for word in ("doubling", "curator", "epsilon 0.2", "Next:"))
    assert picture.read_bytes()[:5] == b"<?xml" and (tmp_path / "regret.svg.rows.json").exists()
    found = pq.read_table(table)
    assert f"table: {table}" in out and found.column_names[:3] == ["policy", "epsilon", "arms"]
    # Who is not private has no epsilon, and numbers stay numbers.
    assert 0 < found["epsilon"].null_count < found.num_rows and str(found["epsilon"].type) == "double"
    # A second run goes on from the rows that are kept.
    monkeypatch.setattr(experiment.RegretTask, "run", lambda task: pytest.fail("measured again"))
    assert run(*ARMS, "--picture", str(picture), "--csv", str(tmp_path / "again.csv"))[0] == 0
    lines = (tmp_path / "again.csv").read_text().splitlines()
    assert len(lines) == found.num_rows + 1 and lines[0].split(",") == found.column_names


@pytest.mark.parametrize(
    ("words", "parameter"),
    [
        (["--arms", "1"], "arms"),
        (["--largest", "10"], "largest"),
        (["--instances", "0"], "instances"),
        (["--seed", "-1"], "seed"),
        (["--picture", "regret.txt"], "picture"),
        (["--csv", "regret.txt"], "csv"),
    ],
)
def test_bad_input_is_named(run, words, parameter) -> None:
    code, out, err = run(*ARMS, *words)
    assert code == 2 and out == "" and len(err.strip().splitlines()) == 1
    code, out, _ = run(*ARMS, *words, "--json")
    assert code == 2 and json.loads(out)["error"]["parameter"] == parameter
