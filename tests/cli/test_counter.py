"""`shuffledp plan counter` and `shuffledp count` under the command line's contract."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

TARGET = ["--shufflers", "3", "--epsilon", "1", "--delta", "1e-6"]
PLAN = ["plan", "counter", "--users", "5000", *TARGET]
PNG = b"\x89PNG"


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
    shared = {
        "schema", "error_bound", "standard_error_max", "shufflers_used", "smallest_batch", "noise", "estimator",
        "messages_per_user_mean", "messages_per_user_max", "reference", "confidence", "fingerprint",
    }  # fmt: skip
    assert document.keys() >= shared | {"slot_users", "method"}
    beside = {
        "paper_error_bound", "uniform_tree_error_bound", "central_error_bound", "sequential_error_bound",
        "local_error_bound", "independent_error_bound",
    }  # fmt: skip
    assert document["reference"].keys() == beside
    assert document["reference"]["central_error_bound"] <= document["error_bound"]
    assert document["method"] == document["estimator"] == document["noise"]["family"] == "carried"
    assert document["error_bound"] < document["reference"]["independent_error_bound"]
    assert document["error_bound"] < document["reference"]["paper_error_bound"] / 20
    independent = json.loads(run(*PLAN, "--noise", "laplace", "--json")[1])
    assert independent.keys() >= shared | {"budget"} and independent["reference"].keys() == beside
    assert independent["error_bound"] == document["reference"]["independent_error_bound"]
    assert independent["reference"]["independent_error_bound"] is None
    assert independent["estimator"] in ("completed", "combined")
    assert independent["error_bound"] < independent["reference"]["paper_error_bound"] / 10


@pytest.mark.parametrize("noise", ["carried", "laplace", "coins", "skellam"])
def test_noise_confidence_and_honest_fraction_are_options(run, noise: str) -> None:
    words = [*PLAN, "--noise", noise, "--confidence", "0.9", "--honest-fraction", "0.8", "--json"]
    document = json.loads(run(*words)[1])
    assert document["noise"]["family"] == noise and document["confidence"] == 0.9
    assert document["honest_fraction"] == 0.8


@pytest.mark.parametrize("more", ["", "--values reals", "--max-messages 40", "--silent-slots 1"])
def test_what_is_live_never_carries_noise_unasked(run, more: str) -> None:
    document = json.loads(run(*PLAN, "--live", *more.split(), "--json")[1])
    assert document["noise"]["family"] == "coins" and document["estimator"] in ("completed", "combined")
    for asked in (["--noise", "carried"], ["--estimator", "carried"]):
        code, out, _ = run(*PLAN, "--live", *asked, "--json")
        error = json.loads(out)["error"]
        assert code == 2 and error["parameter"] == "noise" and "false people in a row" in error["message"]


def test_limits_of_carried_noise_are_named(run) -> None:
    carried = [*PLAN, "--noise", "carried", "--json"]
    code, out, _ = run(*carried, "--max-messages", "10")
    error = json.loads(out)["error"]
    assert code == 2 and error["parameter"] == "max_messages" and "must be at least" in error["message"]
    least = int(error["message"].split("at least ")[1].split(",")[0])
    assert run(*carried, "--max-messages", least - 1)[0] == 2
    document = json.loads(run(*carried, "--max-messages", least)[1])
    assert document["messages_per_user_max"] <= least and document["noise"]["family"] == "carried"
    code, out, _ = run("plan", "counter", "--users", 5000, "--shufflers", 1, *TARGET[2:], *carried[-3:])
    assert code == 2 and json.loads(out)["error"]["parameter"] == "shufflers"


def test_a_picture_of_windows(run, tmp_path) -> None:
    picture = tmp_path / "schedule.svg"
    assert run(*PLAN, "-o", picture)[0] == 0
    drawn = picture.read_text()
    # Letters are drawn as paths, with the words beside them.
    said = ("the first 36 of 313 windows", "one step of its value", "noise 1, a deviation", "noise 2, a deviation")
    assert [words for words in said if words not in drawn] == []
    assert "noise 3" not in drawn


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
    for line in (lines[5], lines[-1]):
        time, estimate, lower, upper = (float(cell) for cell in line.split(","))
        assert (lower, upper) == (max(0, estimate - document["bound"]), min(time, estimate + document["bound"]))
    assert lower > 0 and upper < time
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
    assert {term["name"] for term in document["delta_terms"]} == {"noise", "transport", "smoothing"}
    assert document["delta_proved"] <= 1e-6 and document["collusions"][1]["epsilon"] > 1
    exposed = "false people in a row show a weighed sum of everybody before them, without noise"
    assert document["rests_on"].endswith(exposed)
    assert any(each["epsilon"] is None and each["in_words"].endswith(exposed) for each in document["collusions"])
    code, out, _ = run("explain", "--plan", plan)
    said = " ".join(out.split())
    assert code == 0 and "it rests on every slot's people adding their noise" in said and "windows" in said
    assert "docs/theory/carried-noise.md" in out
    run(*PLAN, "--noise", "laplace", "-o", plan)
    document = json.loads(run("explain", "--plan", plan, "--json")[1])
    assert {term["name"] for term in document["delta_terms"]} == {"noise", "transport", "sampling"}
    assert document["rests_on"] is None
    assert document["delta_proved"] <= 1e-6 and document["collusions"][1]["epsilon"] > 1
    code, out, _ = run("explain", "--plan", plan)
    assert code == 0 and "batches" in out and "docs/theory/running-sums.md" in out and "rests on" not in out


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
        ([*PLAN, "--noise", "carried", "--estimator", "combined"], "estimator"),
        ([*PLAN, "--noise", "laplace", "--estimator", "carried"], "estimator"),
        ([*PLAN, "--live", "--noise", "carried"], "noise"),
        ([*PLAN, "--picture", "schedule.bmp"], "picture"),
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
    for name in ("auto", "completed", "combined", "carried"):
        picture = tmp_path / f"{name}.png"
        code, out, _ = run(*PLAN, "--estimator", name, "--picture", str(picture), "--json")
        assert code == 0 and picture.read_bytes().startswith(PNG)
        documents[name] = json.loads(out)
    assert {name: documents[name]["estimator"] for name in documents if name != "auto"} == {
        "completed": "completed", "combined": "combined", "carried": "carried"
    }  # fmt: skip
    assert documents["auto"]["error_bound"] == min(document["error_bound"] for document in documents.values())
    assert documents["auto"]["fingerprint"] == documents["carried"]["fingerprint"]
    counted = ["count", "--synthetic", "--users", "5000", *TARGET, "--estimator", "combined", "--fast", "--seed", "1"]
    code, out, _ = run(*counted)
    assert code == 0 and "second opinions" in out
    code, out, _ = run(*counted, "--json")
    assert code == 0 and json.loads(out)["batches"] > 5000 // documents["combined"]["smallest_batch"]


# --- numbers, vectors, categories ------------------------------------------------------------

EASY = ["--users", "1000", "--shufflers", "2", "--epsilon", "4", "--delta", "1e-3"]
KINDS = {
    "bits": [],
    "reals": ["--values", "reals"],
    "vectors": ["--values", "vectors", "--dimension", "3", "--radius", "2"],
    "categories": ["--values", "categories", "--categories", "12"],
}
TITLES = {
    "bits": "running count",
    "reals": "running sum",
    "vectors": "running sum of vectors",
    "categories": "running histogram",
}
COLUMNS = {
    "bits": ["time", "estimate", "lower", "upper"],
    "reals": ["time", "estimate", "lower", "upper"],
    "vectors": ["time", "estimate_1", "estimate_2", "estimate_3", "bound"],
    "categories": ["time", *(f"estimate_{number}" for number in range(12)), "bound"],
}


def table_of(path: Path) -> tuple[list[str], np.ndarray]:
    with path.open() as file:
        names, *rows = csv.reader(file)
    return names, np.array(rows, dtype=float)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_from_the_plan_to_the_picture(run, tmp_path, kind: str) -> None:
    plan = str(tmp_path / "plan.json")
    code, out, err = run("plan", "counter", *EASY, *KINDS[kind], "-o", plan, "--json")
    planned = json.loads(out)
    assert code == 0 and err == "" and planned["values"] == planned["domain"]["kind"] == kind
    assert 0 < planned["reference"]["central_error_bound"] <= planned["error_bound"]
    known = {name for name, bound in planned["reference"].items() if bound is not None}
    several = kind in ("vectors", "categories")
    assert ("paper_error_bound" in known, "local_error_bound" in known) == (kind == "bits", not several)
    counted = ["count", "--synthetic", "--fast", "--seed", "1", "--with-truth"]
    for every in ([], ["--every"]):
        table, picture = tmp_path / "t.csv", tmp_path / "p.png"
        words = [*counted, "--plan", plan, *every, "--out", str(table), "--picture", str(picture), "--json"]
        code, out, err = run(*words)
        document = json.loads(out)
        assert code == 0 and err == "" and document["values"] == kind and picture.read_bytes().startswith(PNG)
        names, rows = table_of(table)
        assert names == COLUMNS[kind] and len(rows) == document["rows"]
        estimates = rows[:, 1:-1] if several else rows[:, 1:2]
        # In the values' own unit, not in steps of a grid: within the bound of the truth, and as the JSON has it.
        assert np.abs(estimates[-1] - document["truth"]).max() <= document["bound"] + planned["smallest_batch"] * 2
        assert document["largest_error"] <= document["bound"]
        if every:
            assert estimates[-1] == pytest.approx(document["estimate"], abs=1e-9) and len(rows) == 1000
        assert np.shape(document["estimate"]) == np.shape(document["truth"]) == ((len(names) - 2,) if several else ())
    again = json.loads(run(*counted, *EASY, *KINDS[kind], "--json")[1])
    assert again["estimate"] == document["estimate"] and again["fingerprint"] == document["fingerprint"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_in_words_and_message_by_message(run, kind: str) -> None:
    small = ["--users", "300", "--shufflers", "2", "--epsilon", "8", "--delta", "1e-2"]
    code, out, _ = run("count", "--synthetic", *small, *KINDS[kind], "--seed", "1", "--with-truth")
    assert code == 0 and f"A private {TITLES[kind]}" in out and "the largest error" in out
    assert (kind == "bits") == ("count at the end" in out) and all(word in out for word in KINDS[kind])
    code, out, _ = run("plan", "counter", *EASY, *KINDS[kind])
    assert code == 0 and f"A private {TITLES[kind]}" in out and "trusted curator" in out


def test_vectors_and_categories_from_files(run, tmp_path) -> None:
    rng = np.random.default_rng(1)
    matrix = rng.uniform(-1, 1, size=(1000, 3))
    np.save(tmp_path / "v.npy", matrix)
    lines = ["who,a,b,c", *(f"{row},{a},{b},{c}" for row, (a, b, c) in enumerate(matrix.tolist()))]
    (tmp_path / "v.csv").write_text("\n".join(lines) + "\n")
    asked = [*EASY[2:], "--values", "vectors", "--radius", "2", "--fast", "--seed", "1", "--with-truth", "--json"]
    by_name = json.loads(run("count", str(tmp_path / "v.csv"), "--columns", "a, b,c", *asked)[1])
    whole = json.loads(run("count", str(tmp_path / "v.npy"), *asked)[1])
    assert by_name["truth"] == pytest.approx(matrix.sum(axis=0).tolist()) and by_name["estimate"] == whole["estimate"]
    two = json.loads(run("count", str(tmp_path / "v.csv"), "--columns", "c,a", *asked)[1])
    assert two["truth"] == pytest.approx(matrix.sum(axis=0)[[2, 0]].tolist())
    visits = rng.integers(4, size=1000)
    (tmp_path / "c.csv").write_text("page\n" + "".join(f"{page}\n" for page in visits))
    words = [*EASY[2:], "--values", "categories", "--categories", "4", "--fast", "--with-truth", "--json"]
    document = json.loads(run("count", str(tmp_path / "c.csv"), "--column", "page", *words)[1])
    assert document["truth"] == np.bincount(visits, minlength=4).tolist()


@pytest.mark.parametrize(
    ("noise", "terms"),
    [
        ("carried", ["noise", "transport", "smoothing"]),
        ("skellam", ["noise", "cut-off", "rounding", "transport", "sampling"]),
    ],
)
def test_a_vector_plan_is_explained(run, tmp_path, noise: str, terms: list[str]) -> None:
    plan = str(tmp_path / "plan.json")
    run("plan", "counter", *EASY, *KINDS["vectors"], "--noise", noise, "-o", plan)
    code, out, _ = run("explain", "--plan", plan, "--json")
    document = json.loads(out)
    names = [term["name"] for term in document["delta_terms"]]
    assert code == 0 and names == terms
    assert document["delta_proved"] <= 1e-3
    code, out, _ = run("explain", "--plan", plan)
    assert code == 0 and all(name in out for name in names)
    code, out, _ = run("explain", "--plan", plan, "--dimension", "3", "--json")
    assert code == 2 and json.loads(out)["error"]["parameter"] == "dimension"


@pytest.mark.parametrize(
    ("words", "parameter"),
    [
        (["--radius", "2"], "radius"),
        (["--values", "reals", "--dimension", "3"], "dimension"),
        (["--values", "reals", "--bound", "certified"], "bound"),
        (["--values", "categories"], "categories"),
        (["--values", "categories", "--categories", "1"], "categories"),
        (["--values", "categories", "--categories", "3", "--radius", "1"], "radius"),
        (["--values", "vectors", "--dimension", "3"], "radius"),
        (["--values", "vectors", "--radius", "1"], "dimension"),
        (["--values", "vectors", "--radius", "-1", "--dimension", "3"], "radius"),
        (["--values", "vectors", "--radius", "1", "--dimension", "3", "--categories", "2"], "categories"),
        (["--values", "vectors", "--radius", "1", "--dimension", "3", "--noise", "laplace"], "noise"),
    ],
)
def test_an_option_of_another_kind_is_refused(run, words, parameter: str) -> None:
    for command in (["plan", "counter"], ["count", "--synthetic"]):
        code, out, err = run(*command, *EASY, *words)
        assert code == 2 and out == "" and len(err.strip().splitlines()) == 1
        code, out, _ = run(*command, *EASY, *words, "--json")
        assert code == 2 and json.loads(out)["error"]["parameter"] == parameter


@pytest.mark.parametrize(
    ("kind", "lines", "words", "says"),
    [
        ("reals", ["x", "0.5", "1.5"], [], "1.5 in row 2"),
        ("reals", ["x", "0.5", "nan"], [], "--missing"),
        ("reals", ["x", "0.5"], ["--columns", "x"], "columns"),
        ("categories", ["x", "0", "11", "12"], [], "12 in row 3"),
        ("categories", ["x", "0.5"], [], "0.5 in row 1"),
        ("vectors", ["a,b,c", "1,1,1", "2,2,2"], [], "length 3.4641 in row 2"),
        ("vectors", ["a,b,c", "1,1,1", "1,nan,1"], [], "--missing"),
        ("vectors", ["a,b,c", "1,1,1"], ["--columns", "a,b"], "3 columns"),
        ("vectors", ["a,b,c", "1,1,1"], ["--column", "a"], "--columns"),
    ],
)
def test_bad_values_of_every_kind_are_named(run, tmp_path, kind, lines, words, says: str) -> None:
    file = tmp_path / "bad.csv"
    file.write_text("\n".join(lines) + "\n")
    code, out, err = run("count", str(file), *EASY, *KINDS[kind], *words)
    assert code == 2 and out == "" and says in err


def test_a_plan_decides_the_kind(run, tmp_path) -> None:
    plan = str(tmp_path / "plan.json")
    run("plan", "counter", *EASY, *KINDS["categories"], "-o", plan)
    for word, value in (("--values", "reals"), ("--categories", "12"), ("--radius", "1")):
        code, out, _ = run("count", "--synthetic", "--plan", plan, word, value, "--json")
        assert code == 2 and json.loads(out)["error"]["parameter"] == word.strip("-")
