"""`shuffledp plan counter` and `shuffledp count` under the command line's contract."""

import json
from pathlib import Path

import numpy as np
import pytest

from shuffledp import cli

TARGET = ["--shufflers", "3", "--epsilon", "1", "--delta", "1e-6"]
PLAN = ["plan", "counter", "--users", "5000", *TARGET]
PNG = b"\x89PNG"


@pytest.fixture
def run(capsys):
    def call(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            cli.main(list(words))
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return call


@pytest.fixture
def stream(tmp_path) -> dict[str, str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    bits = (np.arange(3000) % 4 == 0).astype(np.int64)
    files = {name: str(tmp_path / f"clicks.{name}") for name in ("csv", "parquet", "npy")}
    Path(files["csv"]).write_text("clicked\n" + "".join(f"{bit}\n" for bit in bits))
    pq.write_table(pa.table({"clicked": bits}), files["parquet"])
    np.save(files["npy"], bits)
    return files


def test_a_plan_has_the_keys_of_the_contract(run) -> None:
    code, out, err = run(*PLAN, "--json")
    document = json.loads(out)
    assert code == 0 and err == ""
    assert document.keys() >= {
        "schema", "error_bound", "standard_error_max", "shufflers_used", "budget", "smallest_batch", "noise",
        "messages_per_user_mean", "messages_per_user_max", "reference", "confidence", "fingerprint",
    }  # fmt: skip
    assert document["reference"].keys() == {
        "paper_error_bound", "uniform_tree_error_bound", "central_error_bound", "sequential_error_bound",
        "local_error_bound",
    }  # fmt: skip
    assert document["reference"]["central_error_bound"] <= document["error_bound"]
    assert document["estimator"] in ("completed", "combined")
    assert document["error_bound"] < document["reference"]["paper_error_bound"] / 10


@pytest.mark.parametrize("noise", ["laplace", "coins", "skellam"])
def test_noise_confidence_and_honest_fraction_are_options(run, noise: str) -> None:
    words = [*PLAN, "--noise", noise, "--confidence", "0.9", "--honest-fraction", "0.8", "--json"]
    document = json.loads(run(*words)[1])
    assert document["noise"]["family"] == noise and document["confidence"] == 0.9
    assert document["honest_fraction"] == 0.8


def test_a_person_sees_what_it_is_and_what_next(run, tmp_path) -> None:
    picture = tmp_path / "schedule.png"
    code, out, _ = run(*PLAN, "--picture", str(picture))
    assert code == 0 and picture.read_bytes()[:4] == PNG
    assert all(word in out for word in ("running count", "trusted curator", "Next:", "shufflers"))


@pytest.mark.parametrize("kind", ["csv", "parquet", "npy"])
def test_a_file_is_counted_into_a_table_and_a_picture(run, stream, tmp_path, kind: str) -> None:
    out_file, picture = tmp_path / "estimates.csv", tmp_path / "count.svg"
    words = ["count", stream[kind], *TARGET, "--out", str(out_file), "--picture", str(picture), "--seed", "1", "--json"]
    code, out, err = run(*words, "--with-truth")
    document = json.loads(out)
    assert code == 0 and err == "" and document["truth"] == 750 and document["simulated"]
    assert document["largest_error"] <= 2 * document["bound"] and document["fidelity"] == "messages"
    lines = out_file.read_text().splitlines()
    assert lines[0].replace('"', "") == "time,estimate,lower,upper" and len(lines) == document["rows"] + 1
    first, estimate, lower, upper = (float(cell) for cell in lines[5].split(","))
    assert upper - estimate == estimate - lower == document["bound"] and first > 0
    assert b"<svg" in picture.read_bytes()


def test_every_user_has_a_row_if_asked(run, stream, tmp_path) -> None:
    import pyarrow.parquet as pq

    out_file = tmp_path / "estimates.parquet"
    words = ["count", stream["csv"], "--column", "clicked", *TARGET, "--out", str(out_file), "--every", "--fast"]
    assert run(*words)[0] == 0
    table = pq.read_table(out_file)
    assert table.num_rows == 3000 and table.column("time").to_pylist()[:2] == [1, 2]
    assert table.column("estimate").to_pylist()[0] == 0.5


def test_a_plan_file_is_used_and_options_beside_it_refused(run, tmp_path) -> None:
    plan = str(tmp_path / "plan.json")
    assert run(*PLAN, "-o", plan)[0] == 0
    code, out, _ = run("count", "--synthetic", "--plan", plan, "--fast", "--json")
    assert code == 0 and json.loads(out)["users"] == 5000
    code, out, _ = run("count", "--synthetic", "--plan", plan, "--shufflers", "2", "--json")
    assert code == 2 and json.loads(out)["error"]["parameter"] == "shufflers"
    document = json.loads(Path(plan).read_text())
    Path(plan).write_text(json.dumps(document | {"epsilon": 0.5}))
    assert run("count", "--synthetic", "--plan", plan)[0] == 2


def test_a_plan_is_explained(run, tmp_path) -> None:
    plan = str(tmp_path / "plan.json")
    run(*PLAN, "-o", plan)
    code, out, err = run("explain", "--plan", plan, "--json")
    document = json.loads(out)
    assert code == 0 and err == "" and document["protocol"] == "counter"
    assert {term["name"] for term in document["delta_terms"]} == {"noise", "transport", "sampling"}
    assert document["delta_proved"] <= 1e-6 and document["collusions"][1]["epsilon"] > 1
    code, out, _ = run("explain", "--plan", plan)
    assert code == 0 and "batches" in out and "docs/theory/running-sums.md" in out


def test_a_certified_bound(run) -> None:
    words = ["plan", "counter", "--users", "2000", *TARGET, "--json"]
    proved, certified = (json.loads(run(*words, "--bound", kind)[1]) for kind in ("proved", "certified"))
    assert certified["bound"] == "certified" and certified["error_bound"] <= proved["error_bound"]


@pytest.mark.parametrize(
    ("words", "parameter"),
    [
        (["plan", "counter", "--users", "5000", "--epsilon", "1", "--delta", "1e-6"], "shufflers"),
        (["plan", "counter", "--users", "5000", *TARGET[2:], "--shufflers", "0"], "shufflers"),
        (["plan", "counter", *TARGET], "users"),
        ([*PLAN, "--confidence", "1"], "confidence"),
        ([*PLAN, "--picture", "schedule.pdf"], "picture"),
        (["count", *TARGET], "file"),
        (["count", "missing.csv", *TARGET], "file"),
        (["count", "--synthetic", "--users", "500", *TARGET, "--out", "estimates.txt"], "out"),
        (["count", "--synthetic", "--users", "500", "--plan", "missing.json"], "users"),
        (["count", "--synthetic", "--plan", "missing.json"], "plan"),
        (["count", "--synthetic", "--plan", "missing.json", "--noise", "coins"], "noise"),
        (["count", "--synthetic", "--plan", "missing.json", "--bound", "certified"], "bound"),
        (["count", "--synthetic", "--users", "500", *TARGET, "--picture", "no/such/folder.png"], "picture"),
        (["count", "--synthetic", "--users", "500", *TARGET, "--out", "no/such/folder.csv"], "out"),
        (["count", "--synthetic", "--users", "500", *TARGET, "--column", "x"], "column"),
    ],
)
def test_bad_input_is_named(run, words, parameter: str) -> None:
    code, out, err = run(*words)
    assert code == 2 and out == "" and len(err.strip().splitlines()) == 1
    code, out, _ = run(*words, "--json")
    assert code == 2 and json.loads(out)["error"]["parameter"] == parameter


def test_values_that_are_no_bits_are_named(run, tmp_path) -> None:
    file = tmp_path / "bad.csv"
    file.write_text("x\n0\n1\n7\n" + "1\n" * 500)
    code, _, err = run("count", str(file), *TARGET)
    assert code == 2 and "7 in row 3" in err


def test_the_estimator_is_an_option_and_shown(run, tmp_path) -> None:
    documents = {}
    for name in ("auto", "completed", "combined"):
        picture = tmp_path / f"{name}.png"
        code, out, _ = run(*PLAN, "--estimator", name, "--picture", str(picture), "--json")
        assert code == 0 and picture.read_bytes().startswith(PNG)
        documents[name] = json.loads(out)
    assert documents["completed"]["estimator"] == "completed" and documents["combined"]["estimator"] == "combined"
    assert documents["auto"]["error_bound"] == min(documents[name]["error_bound"] for name in ("completed", "combined"))
    counted = ["count", "--synthetic", "--users", "5000", *TARGET, "--estimator", "combined", "--fast", "--seed", "1"]
    code, out, _ = run(*counted)
    assert code == 0 and "second opinions" in out
    code, out, _ = run(*counted, "--json")
    assert code == 0 and json.loads(out)["batches"] > 5000 // documents["combined"]["smallest_batch"]
