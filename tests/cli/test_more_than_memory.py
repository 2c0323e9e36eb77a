"""`shuffledp count` and `shuffledp fit` on files in pieces: one answer for every format, memory and process."""

import csv
import errno
import json
from pathlib import Path

import numpy as np
import pytest

from shuffledp.cli import count_runs, fit_pieces
from shuffledp.cli.asked import Asked
from shuffledp.continual.shape import CountShape
from shuffledp.engines import LocalEngine

COUNT = [
    "--shufflers",
    "3",
    "--noise",
    "laplace",
    "--epsilon",
    "1",
    "--delta",
    "1e-6",
    "--seed",
    "1",
    "--processes",
    "1",
    "--json",
]
FIT = ["--target", "4", "--classes", "0,1", "--bounds", "0:1", "--epsilon", "4", "--delta", "1e-5", "--seed", "1"]


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand are many."""
    monkeypatch.setattr(count_runs, "SMALL", 1000)
    monkeypatch.setattr(fit_pieces, "HELD", 1000)


@pytest.fixture(scope="module")
def clicks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder, bits = tmp_path_factory.mktemp("clicks"), (np.arange(4000) % 4 == 0).astype(np.int64)
    files = {name: str(folder / f"clicks.{name}") for name in ("csv", "parquet", "npy")}
    Path(files["csv"]).write_text("clicked\n" + "".join(f"{bit}\n" for bit in bits))
    pq.write_table(pa.table({"clicked": bits}), files["parquet"])
    np.save(files["npy"], bits)
    return files


def test_a_count_is_the_same_from_every_file_and_knows_its_truth(run, clicks, many) -> None:
    found = {}
    for name, file in clicks.items():
        column = [] if name == "npy" else ["--column", "clicked"]
        code, out, _ = run("count", file, *column, *COUNT, "--with-truth")
        document = json.loads(out)
        assert code == 0 and document["engine"] == "local" and document["truth"] == 1000
        assert document["largest_error"] <= document["bound"] and document["simulated"]
        found[name] = (document["estimate"], document["largest_error"], document["batches"])
    assert len(set(found.values())) == 1
    held = json.loads(run("count", clicks["npy"], *COUNT, "--with-truth", "--fast")[1])
    assert held.keys() == document.keys() - {"engine"} and held["estimate"] != document["estimate"]


@pytest.mark.parametrize("every", [True, False])
def test_a_table_in_pieces_has_all_rows(run, clicks, many, every: bool, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("shuffledp.engines.counting._GRAINS", 1)
    monkeypatch.setattr("shuffledp.engines.counting._PARTS", 1)
    monkeypatch.setattr("shuffledp.engines.counting._GRAIN_MESSAGES", 1 << 14)
    table, picture = tmp_path / "table.csv", tmp_path / "picture.png"
    often = ["--every"] if every else []
    document = json.loads(
        run("count", clicks["npy"], *COUNT, "--csv", str(table), "--picture", str(picture), *often)[1]
    )
    rows = list(csv.DictReader(table.read_text().splitlines()))
    times = [int(row["time"]) for row in rows]
    assert len(rows) == document["rows"] and float(rows[-1]["estimate"]) == pytest.approx(document["estimate"])
    assert times == (list(range(1, 4001)) if every else sorted(set(times))) and times[-1] == 4000
    # As many as where all people are in memory.
    held = json.loads(run("count", clicks["npy"], *COUNT, "--fast", "--csv", str(tmp_path / "held.csv"), *often)[1])
    assert times[0] == int(every) and len(times) == held["rows"]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_plans_own_tables_count_towards_memory(run, clicks, many, monkeypatch) -> None:
    def refused(*words: str) -> str:
        code, out, _ = run("count", clicks["npy"], *COUNT, "--memory", "300MB", *words)
        return json.loads(out)["error"]["message"] if code else ""

    assert not refused()
    monkeypatch.setattr(CountShape, "table_bytes", 200 << 20)
    assert "memory must be enough for a running sum with the tables of its plan" in refused()
    assert "say --memory" in refused()


def test_processes_start_while_the_plan_is_made_and_none_is_left(run, clicks, many, monkeypatch) -> None:
    begun, done = [], []
    monkeypatch.setattr(LocalEngine, "get_ready", lambda engine, *needed: begun.append(engine))
    monkeypatch.setattr(LocalEngine, "close", lambda engine: done.append(engine))
    document = json.loads(run("count", clicks["npy"], *COUNT)[1])
    assert document["engine"] == "local" and len(begun) == 1 and begun[0] is done[-1]
    # Whoever makes the plan refuses: what has been started is ended.
    monkeypatch.setattr(Asked, "_plan_for", lambda *_: 1 / 0)
    assert run("count", clicks["npy"], *COUNT)[0] == 1
    assert len(begun) == 2 and begun[1] is done[-1]


def test_what_the_system_refuses_in_the_middle_is_a_sentence(run, clicks, many, tmp_path: Path, monkeypatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "clicks.npy")

    monkeypatch.setattr("shuffledp.engines.counting.read_closed", refuse)
    code, out, err = run("count", clicks["npy"], *COUNT, "--csv", str(tmp_path / "table.csv"))
    said = "file must be usable (Permission denied), got clicks.npy: mend that, then run it again."
    assert code == 2 and json.loads(out)["error"]["message"] == said and not err
    assert not list(tmp_path.iterdir())


def test_nothing_true_is_told_unasked(run, clicks, many) -> None:
    document = json.loads(run("count", clicks["npy"], *COUNT)[1])
    assert document["truth"] is None and document["largest_error"] is None


def test_made_up_people_are_counted_in_parts(run, many) -> None:
    asked = ["count", "--synthetic", "--users", "3000", *COUNT]
    document, again = (json.loads(run(*asked)[1]) for _ in range(2))
    assert document["engine"] == "local" and abs(document["truth"] - 900) < 200
    assert document["estimate"] == again["estimate"] and document["truth"] == again["truth"]


def test_a_model_is_learned_in_pieces_and_what_needs_all_rows_says_so(run, many, tmp_path: Path) -> None:
    features = np.arange(1, 3001)[:, np.newaxis] * np.sqrt([2, 3, 5]) % 1
    table = np.column_stack((features, features @ [1, -1, 0] > 0))
    file, ledger = tmp_path / "rows.csv", str(tmp_path / "budget.json")
    np.savetxt(file, table, delimiter=",", header="1,2,3,4", comments="")
    run("ledger", "open", ledger, "--population", "people", "--epsilon", "100", "--delta", "1e-3")
    how = ["--solver", "agd", "--count-clipped", "0", "--processes", "1", "--ledger", ledger, "--json"]
    code, out, _ = run("fit", str(file), *FIT, *how)
    document = json.loads(out)
    assert code == 0 and document["users"] == 3000 and document["score"] is None
    assert document["coefficients"][0] > 0.5 > -0.5 > document["coefficients"][1]
    assert len(json.loads(Path(ledger).read_text())["entries"]) == 1
    refused = run("fit", str(file), *FIT, "--with-truth", "--memory", "200000")
    assert refused[0] != 0 and "must hold all rows beside --with-truth, about 1MB" in refused[2]
