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


def test_a_person_reads_tables_and_sees_a_picture(run, tmp_path) -> None:
    picture = tmp_path / "regret.svg"
    code, out, _ = run(*ARMS, "--picture", str(picture))
    assert code == 0 and all(word in out for word in ("doubling", "curator", "epsilon 0.2", "Next:"))
    assert picture.read_bytes()[:5] == b"<?xml" and (tmp_path / "regret.svg.rows.json").exists()


def test_rows_are_a_tidy_table_and_a_second_run_goes_on(run, tmp_path, monkeypatch) -> None:
    import pyarrow.parquet as pq

    table = tmp_path / "regret.parquet"
    code, out, _ = run(*ARMS, "--csv", str(table))
    found = pq.read_table(table)
    assert code == 0 and f"table: {table}" in out
    assert found.column_names[:3] == ["policy", "epsilon", "arms"] and found.num_rows > 20
    # Who is not private has no epsilon, and numbers stay numbers.
    assert found["epsilon"].null_count > 0 and str(found["epsilon"].type) == "double"
    assert (tmp_path / "regret.parquet.rows.json").exists()
    monkeypatch.setattr(experiment.RegretTask, "run", lambda task: pytest.fail("measured again"))
    assert run(*ARMS, "--csv", str(table))[0] == 0
    assert pq.read_table(table).equals(found)
    code, out, err = run(*ARMS, "--csv", "regret.txt")
    assert code == 2 and "csv must end in .csv or .parquet" in err


@pytest.mark.parametrize(
    ("words", "parameter"),
    [
        (["--arms", "1"], "arms"),
        (["--largest", "10"], "largest"),
        (["--instances", "0"], "instances"),
        (["--seed", "-1"], "seed"),
        (["--picture", "regret.txt"], "picture"),
    ],
)
def test_bad_input_is_named(run, words, parameter) -> None:
    code, out, err = run(*ARMS, *words)
    assert code == 2 and out == "" and len(err.strip().splitlines()) == 1
    code, out, _ = run(*ARMS, *words, "--json")
    assert code == 2 and json.loads(out)["error"]["parameter"] == parameter
