"""`shuffledp fit` and `shuffledp plan optimize` under the command line's contract."""

import json
from pathlib import Path

import numpy as np
import pytest

from shuffledp.learn import (
    ShuffleHuberRegressor,
    ShuffleLinearSVC,
    ShuffleLogisticRegression,
    ShuffleRidge,
    load_model,
)

TARGET = ["--epsilon", "1", "--delta", "1e-6"]
PLAN = ["plan", "optimize", "--users", "20000", "--dimension", "5", "--radius", "3", *TARGET]
PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def people(tmp_path_factory) -> dict[str, str]:
    """Two features in 0..10, a label (the last column), and in another file a number."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path_factory.mktemp("people")
    rng = np.random.default_rng(2)
    features = rng.uniform(0, 10, (4000, 2))
    scores = features @ [1.0, -1.0]
    label = (scores + rng.logistic(size=4000) / 4 > 0).astype(np.int64)
    files = {name: str(folder / f"people.{name}") for name in ("csv", "parquet", "npy")} | {
        "numbers": str(folder / "n.csv")
    }
    columns = {"age": features[:, 0], "height": features[:, 1]}
    header = "age,height,{}\n"
    lines = [f"{a:.4f},{b:.4f}," for a, b in features]
    Path(files["csv"]).write_text(
        header.format("bought") + "".join(f"{x}{y}\n" for x, y in zip(lines, label, strict=True))
    )
    Path(files["numbers"]).write_text(
        header.format("spent") + "".join(f"{x}{y:.4f}\n" for x, y in zip(lines, scores, strict=True))
    )
    pq.write_table(pa.table({**columns, "bought": label.astype(bool)}), files["parquet"])
    np.save(files["npy"], np.column_stack((features, label)))
    return files


KEYS = {
    "chosen_by", "warnings", "bound_proves_nothing", "expected", "beside_noise",
    "clipped_counted_from",
    "schema", "task", "estimator", "target", "features", "columns", "classes", "users", "held_out", "solver", "bound",
    "model", "epsilon", "delta", "delta_proved", "honest_fraction", "rounds", "rounds_per_user", "users_per_round",
    "messages_per_user", "coefficients", "intercept", "clipped_shares", "score", "baseline", "clipped", "curve",
    "unprotected", "simulated", "seconds", "fingerprint", "written", "picture", "report",
    "ledger",
}  # fmt: skip


@pytest.mark.parametrize("kind", ["csv", "parquet", "npy"])
def test_a_file_becomes_a_model_and_a_report(run, people, tmp_path, kind: str) -> None:
    model, report = tmp_path / "model.json", tmp_path / "report.html"
    target = "3" if kind == "npy" else "bought"
    words = ["fit", people[kind], "--target", target, "--classes", "0,1", "--bounds", "0:10", *TARGET, "--seed", "1"]
    words.append("--with-truth")
    code, out, err = run(*words, "-o", str(model), "--report", str(report), "--json")
    document = json.loads(out)
    assert code == 0 and err == "" and document.keys() == KEYS
    assert document["users"] == 3600 and document["held_out"] == 400 and document["simulated"]
    assert document["score"] > 0.85 and 0.4 < document["baseline"] < 0.6
    assert document["delta_proved"] <= document["delta"] == 1e-6
    assert set(document["unprotected"]) == {"score", "baseline", "clipped", "curve"}
    loaded = load_model(model)
    assert loaded.fingerprint == document["fingerprint"] and loaded.coefficients.tolist() == document["coefficients"]
    assert loaded.predict([[9.0, 1.0], [1.0, 9.0]]).tolist() == [1, 0]
    page = report.read_text()
    assert "<svg" in page and "epsilon 1" in page and "does not cover them" in page


@pytest.mark.parametrize("kind", ["svg", "html"])
def test_pictures_say_that_no_guarantee_covers_them(run, people, tmp_path, kind: str) -> None:
    report = tmp_path / f"curve.{kind}"
    words = ["fit", people["csv"], "--target", "bought", "--bounds", "0:10", "--rounds-allowed", "3", *TARGET]
    asked = ["--picture" if kind == "svg" else "--report", str(report), "--with-truth"]
    assert run(*words, *asked)[0] == 0
    assert "no guarantee covers these curves. Not for publication" in report.read_text()


def test_labels_that_were_not_declared_are_said_to_be_uncovered(run, people, tmp_path) -> None:
    model = tmp_path / "model.json"
    words = [
        "fit",
        people["csv"],
        "--target",
        "bought",
        "--bounds",
        "0:10",
        "--rounds-allowed",
        "3",
        *TARGET,
        "--with-truth",
    ]
    assert "not covered: which labels there are" in " ".join(run(*words)[1].split())
    assert "not covered" not in run(*words, "--classes", "0,1")[1]
    document = json.loads(run(*words, "-o", str(model), "--json")[1])
    assert "classes" in document["unprotected"] and load_model(model).unprotected == ("classes",)
    code, out, _ = run(*words, "--classes", "0,7", "--json")
    assert code == 2 and json.loads(out)["error"]["parameter"] == "target"


def test_a_person_reads_what_happened_how_accurate_how_private_and_what_next(run, people, tmp_path) -> None:
    picture = tmp_path / "curve.png"
    words = ["fit", people["csv"], "--target", "bought", "--bounds", "age=0:10,height=0:10", *TARGET, "--with-truth"]
    code, out, _ = run(*words, "-o", str(picture))
    assert code == 0 and picture.read_bytes()[:4] == PNG
    for said in ("learned", "how accurate", "kept out", "epsilon 1", "not for publication", "asked once", "Next:"):
        assert said in out
    assert "--bounds age=0:10,height=0:10" in out and "a simulation" not in out


def test_what_comes_next_has_the_same_options_and_says_what_it_spends(run, people) -> None:
    asked = [
        "--honest-fraction 0.5",
        "--rounds-allowed 7",
        "--holdout 0.2 --with-truth",
        "--classes 0,1",
        "--solver sgd",
    ]
    words = ["fit", people["csv"], "--target", "bought", "--bounds", "0:10", *" ".join(asked).split(), *TARGET]
    steps = {line.split("shuffledp")[0].strip(): line for line in run(*words)[1].partition("Next:")[2].splitlines()}
    compared, kept, often, seen = (steps[name] for name in steps if name)
    assert all(option in line for option in asked for line in (seen, kept))
    assert all(option in often for option in asked[:4]) and "--interactive" in often
    assert all("spends epsilon 1 again" in line for line in (often, seen, kept)) and "spend" not in compared
    for option in ("--visits 1 ", "--honest-fraction 0.5", "--rounds-allowed 7", "--users 3200"):
        assert option in compared
    again = run(*compared[compared.index("plan optimize") :].split(), "--solver", "sgd", "--json")[1]
    assert json.loads(again)["bound"] == json.loads(run(*words, "--json")[1])["bound"]
    more = run(*words[:-6], "--solver", "gd", "--interactive", *TARGET)[1].partition("Next:")[2]
    assert "ask people often" not in more
    assert len([line for line in more.splitlines() if "--solver gd" in line and "--interactive" in line]) == 2


@pytest.mark.parametrize("estimator", ["ridge", "huber"])
def test_numbers_are_fitted_too(run, people, estimator: str) -> None:
    words = ["fit", people["numbers"], "--target", "spent", "--task", "regression", "--estimator", estimator]
    code, out, _ = run(
        *words, "--bounds", "0:10", "--target-bounds", "-10:10", *TARGET, "--seed", "1", "--with-truth", "--json"
    )
    document = json.loads(out)
    assert code == 0 and document["score"] > 0.7 and document["classes"] is None
    assert (document["bound"] is None) == (estimator == "ridge")


@pytest.mark.parametrize(
    "estimator", [ShuffleLogisticRegression, ShuffleLinearSVC, ShuffleRidge, ShuffleHuberRegressor]
)
def test_what_is_not_asked_for_is_left_to_the_estimator(run, people, tmp_path, estimator) -> None:
    """As if fitted from Python with no more than target, bounds and seed: the same noise, the same model."""
    numbers = estimator in (ShuffleRidge, ShuffleHuberRegressor)
    named = {"ShuffleRidge": "ridge", "ShuffleHuberRegressor": "huber", "ShuffleLinearSVC": "svc"}
    words = ["--target", "bought"]
    if numbers:
        words = ["--task", "regression", "--target", "spent", "--target-bounds", "-10:10"]
    words += [
        "--estimator",
        named.get(estimator.__name__, "logistic"),
        "--bounds",
        "0:10",
        "--holdout",
        "0",
        "--with-truth",
    ]
    file = people["numbers" if numbers else "csv"]
    document = json.loads(run("fit", file, *words, *TARGET, "--seed", "1", "--json")[1])
    table = np.loadtxt(file, delimiter=",", skiprows=1)
    declared = {"target_bounds": (-10, 10)} if numbers else {}
    model = estimator(epsilon=1, delta=1e-6, feature_bounds=(0, 10), random_state=1, **declared)
    model.fit(table[:, :2], table[:, 2])
    assert document["coefficients"] == np.ravel(model.coef_).tolist() and document["solver"] == model.solver_.name


def test_words_are_categories_and_labels_of_several_classes(run, tmp_path) -> None:
    """A file with a column of words and labels of three words becomes a model that predicts such files."""
    rng = np.random.default_rng(3)
    file, model, table = tmp_path / "people.csv", tmp_path / "model.json", tmp_path / "said.csv"
    cities, label = rng.choice(["Oslo", "Rome", "Lima"], 6000), np.array(["free", "basic", "pro"])
    ages = rng.integers(0, 100, 6000)
    chosen = label[np.where(cities == "Oslo", 0, np.where(ages > 50, 1, 2))]
    lines = [f"{age},{city},{plan}\n" for age, city, plan in zip(ages, cities, chosen, strict=True)]
    file.write_text("age,city,plan\n" + "".join(lines))
    words = ["fit", str(file), "--target", "plan", "--classes", "free,basic,pro", "--bounds", "age=0:100", *TARGET]
    words += ["--categories", "city=Oslo,Rome", "--other", "elsewhere", "--seed", "1", "--interactive"]
    words += ["--solver", "full-agd", "--rounds-allowed", "20"]
    document = json.loads(run(*words, "-o", str(model), "--json")[1])
    assert document["columns"] == ["age", "city=Oslo", "city=Rome", "city=elsewhere"]
    assert document["classes"] == ["basic", "free", "pro"] and np.shape(document["coefficients"]) == (3, 4)
    assert [share["what"] for share in document["clipped_shares"]] == ["rows"]
    code, out, _ = run(*words)
    assert code == 0 and "cut or shortened" in out and "--categories city=Oslo,Rome" in out
    found = ["predict", str(file), "--model", str(model), "--with-truth", "--target", "plan", "--csv", str(table)]
    assert json.loads(run(*found, "--json")[1])["score"] > 0.6
    assert table.read_text().splitlines()[0] == "prediction,probability_basic,probability_free,probability_pro"


def test_what_a_column_of_words_with_gaps_needs_is_said_and_goes_into_what_comes_next(run, tmp_path) -> None:
    file, model = tmp_path / "people.csv", tmp_path / "model.json"
    rows = [
        f"{'' if place % 9 == 4 else place % 90},{('Oslo', 'Rome', '')[place % 3]},{place % 2}\n"
        for place in range(300)
    ]
    file.write_text("age,city,bought\n" + "".join(rows))
    words = [
        "fit",
        str(file),
        "--target",
        "bought",
        "--classes",
        "0,1",
        "--bounds",
        "age=0:100",
        *TARGET,
        "--seed",
        "1",
    ]
    words += ["--missing", "default=0", "--interactive", "--solver", "full-agd", "--rounds-allowed", "5"]
    code, _, err = run(*words)
    assert code == 2 and "column city" in err and "--categories COLUMN=A,B" in err and "--features" in err
    words += ["--categories", "city=Oslo,Rome"]
    code, _, err = run(*words)
    assert code == 2 and "in column city" in err and "--other NAME" in err
    code, out, _ = run(*words, "--other", "elsewhere", "-o", str(model))
    asked = [
        line.split("shuffledp ")[1].split()
        for line in out.splitlines()
        if "shuffledp predict" in line or "shuffledp evaluate" in line
    ]
    assert code == 0 and [line[0] for line in asked] == ["predict", "evaluate"]
    for line in asked:
        given = [
            str(file) if word == "YOUR.csv" else str(tmp_path / word) if word == "said.csv" else word for word in line
        ]
        assert run(*given)[0] == 0


def test_counts_of_a_file_are_fitted(run, people) -> None:
    words = ["fit", people["csv"], "--target", "bought", "--task", "regression", "--estimator", "poisson", *TARGET]
    document = json.loads(run(*words, "--bounds", "0:10", "--target-bounds", "0:3", "--seed", "1", "--json")[1])
    assert document["estimator"] == "ShufflePoissonRegressor" and document["delta_proved"] <= 1e-6


def test_what_was_clipped_is_reported(run, people) -> None:
    words = ["fit", people["csv"], "--target", "bought", *TARGET, "--seed", "1", "--with-truth"]
    code, out, _ = run(*words, "--bounds", "0:2", "--count-clipped", "300")
    assert code == 0 and "many rows were clipped" in out and "a simulation" in out
    said = " ".join(out.split())
    assert "a private count of 300 people" in said and "rows cannot have met what was declared" in said
    document = json.loads(run(*words, "--bounds", "0:10", "--gradient-bound", "0.1", "--json")[1])
    assert document["clipped"]["gradients"] > 100 and document["clipped"]["rows"] == 0


def test_people_may_be_asked_in_every_round(run, people) -> None:
    words = ["fit", people["csv"], "--target", "bought", "--bounds", "0:10", *TARGET, "--seed", "1", "--holdout", "0"]
    words += [
        "--with-truth",
        "--interactive",
        "--solver",
        "gd",
        "--rounds-allowed",
        "30",
        "--honest-fraction",
        "0.9",
        "--json",
    ]
    document = json.loads(run(*words)[1])
    assert document["rounds_per_user"] == 30 and document["users"] == 4000
    # The others are asked what was clipped.
    assert document["users_per_round"] == 3800
    assert document["held_out"] == 0 and document["honest_fraction"] == 0.9


PLAN_KEYS = {
    "schema", "protocol", "users", "epsilon", "delta", "honest_fraction", "visits", "dimension", "radius", "lipschitz",
    "smooth", "strong", "proximal", "linear", "rounds_allowed", "smallest_batch", "solver", "why", "bound", "rounds",
    "chosen_by", "rehearsed", "warnings", "bound_proves_nothing", "expected",
    "users_per_round", "rounds_per_user", "messages_per_user", "delta_proved", "rows", "fingerprint",
}  # fmt: skip


@pytest.mark.parametrize(
    ("more", "solver"),
    [
        (["--smooth", "0.25"], "agd"),
        ([], "smoothed-agd"),
        (["--no-proximal"], "sgd"),
        (["--smooth", "1", "--strong", "0.5"], "phased-agd"),
        (["--solver", "sgd", "--smooth", "0.25"], "sgd"),
        (["--solver", "full-agd", "--smooth", "0.25", "--linear", "--visits", "20"], "full-agd"),
    ],
)
def test_a_plan_compares_every_solver_and_chooses_the_least(run, more: list[str], solver: str) -> None:
    code, out, err = run(*PLAN, "--visits", "1", *more, "--json")
    document = json.loads(out, parse_constant=lambda word: pytest.fail(word))
    assert code == 0 and err == "" and document.keys() == PLAN_KEYS
    assert document["solver"] == solver and document["delta_proved"] <= 1e-6
    rows = document["rows"]
    assert {row["solver"] for row in rows} >= {"sgd", "agd", "smoothed-agd", "phased-agd", "gd", "phased-gd"}
    assert all((row["bound"] is None) == (row["refusal"] is not None) for row in rows)
    bounds = [row["bound"] for row in rows if row["bound"] is not None]
    assert bounds == sorted(bounds)
    assert rows[0]["solver"] == solver or "--solver" in more


def test_a_plan_rehearses_a_loss_that_is_named_and_tells_the_few(run) -> None:
    words = [
        "plan",
        "optimize",
        "--users",
        "60",
        "--dimension",
        "12",
        "--radius",
        "10",
        "--epsilon",
        "1",
        "--delta",
        "1e-6",
    ]
    document = json.loads(run(*words, "--smooth", "0.25", "--visits", "1", "--loss", "logistic", "--json")[1])
    # So few people learn next to nothing by any of them; which is least is told by the rehearsal.
    assert document["solver"] in ("sgd", "agd") and document["chosen_by"] == "simulation"
    assert set(document["rehearsed"]) == {"clear", "table", "rare", "faint", "mixed"}
    (few,) = document["warnings"]
    assert "60 people are too few" in few and "people on there is something to learn" in few
    assert "60 people are too few" in " ".join(
        run(*words, "--smooth", "0.25", "--visits", "1", "--loss", "logistic")[1].split()
    )
    code, _, err = run(*words, "--loss", "loud")
    assert code == 2 and "loss must be one of logistic" in err


def test_a_person_sees_the_comparison(run) -> None:
    code, out, _ = run(*PLAN, "--smooth", "0.25", "--rounds-allowed", "20")
    assert code == 0
    for said in ("excess loss", "agd", "phased-gd", "needs a strongly convex loss", "Theorem 4.3", "Next:"):
        assert said in out


FIT = ["fit", "people.csv", "--target", "bought", "--bounds", "0:10", "--with-truth", *TARGET]
UNBOUND = [word for word in FIT if word not in ("--bounds", "0:10")]
BAD = [
    ([*FIT[:2], *TARGET], "target"),
    ([*FIT, "--target", "age"], "target"),
    ([*FIT, "--target", "sold"], "target"),
    ([*FIT, "--features", "age,sold"], "features"),
    ([*FIT, "--features", "age,bought"], "features"),
    ([*FIT, "--features", "age,age"], "features"),
    ([*FIT, "--bounds", "0"], "bounds"),
    ([*FIT, "--bounds", "sold=0:1"], "bounds"),
    ([*FIT, "--bounds", "age=0:1"], "bounds"),
    ([*FIT, "--bounds", "1:0"], "feature_bounds"),
    ([*FIT, "--target-bounds", "0:1"], "target_bounds"),
    ([*FIT, "--classes", "0"], "classes"),
    ([*FIT, "--classes", "0,no"], "classes"),
    (UNBOUND, "bounds"),
    ([*FIT, "--task", "regression"], "target_bounds"),
    ([*FIT, "--task", "regression", "--estimator", "poisson", "--target-bounds", "1:2"], "target_bounds"),
    ([*FIT, "--categories", "0,1"], "categories"),
    ([*FIT, "--categories", "sold=0,1"], "categories"),
    ([*FIT, "--bounds", "age=0:10", "--categories", "height=0,1"], "categories"),
    ([*FIT, "--count-clipped", "-1"], "count_clipped"),
    ([*FIT, "--classes", "0,1", "--task", "regression"], "classes"),
    ([*FIT, "--task", "clustering"], "task"),
    ([*FIT, "--estimator", "ridge"], "estimator"),
    ([*FIT, "--solver", "agd", "--estimator", "svc"], "solver"),
    ([*FIT, "--solver", "newton"], "solver"),
    ([*FIT, "--epsilon", "0"], "epsilon"),
    ([*FIT, "--epsilon", "0.0001"], "users"),
    ([*FIT, "--delta", "2"], "delta"),
    ([*FIT, "--radius", "0"], "radius"),
    ([*FIT, "--radius", "1e200"], "radius"),
    ([*FIT, "--alpha", "1e200"], "alpha"),
    ([*FIT, "--feature-norm", "1e-320"], "feature_norm"),
    ([*FIT, "--holdout", "1"], "holdout"),
    ([*FIT, "--holdout", "0.9999"], "holdout"),
    ([*FIT, "--seed", "-1"], "seed"),
    ([*FIT, "--report", "report.txt"], "report"),
    ([*FIT, "--report", "nowhere/report.html"], "report"),
    ([*FIT, "-o", "nowhere/model.json"], "out"),
    ([*FIT[:1], "none.csv", *FIT[2:]], "file"),
    ([word for word in FIT if word != "--with-truth"], "classes"),
    *(
        ([*(word for word in FIT if word != "--with-truth"), "--classes", "0,1", *words], words[0][2:])
        for words in (["--holdout", "0.1"], ["--report", "report.html"], ["--picture", "curve.png"])
    ),
    ([*FIT, "-o", "curve.png", "--picture", "curve.svg"], "out"),
    (["fit", "people.csv", "--target", "bought", "--epsilon", "1"], "delta"),
    (["plan", "optimize", "--users", "1000", *TARGET], "dimension"),
    ([*PLAN, "--smooth", "0"], "smoothness"),
    ([*PLAN, "--lipschitz", "-1"], "lipschitz"),
    ([*PLAN, "--radius", "1e200"], "radius"),
    ([*PLAN, "--lipschitz", "1e200"], "lipschitz"),
    ([*PLAN, "--smooth", "1e-200"], "smoothness"),
    ([*PLAN, "--strong", "1e300"], "strong_convexity"),
    ([*PLAN, "--users", "5"], "users"),
    ([*PLAN, "--rounds-allowed", "0"], "rounds"),
    ([*PLAN, "--solver", "agd"], "solver"),
]


@pytest.mark.parametrize(
    ("words", "parameter"), BAD, ids=lambda value: " ".join(value) if isinstance(value, list) else value
)
def test_bad_input_is_one_sentence_and_leaves_nothing_behind(run, tmp_path, monkeypatch, words, parameter: str) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i % 50},{i % 7},{i % 2}\n" for i in range(200))
    Path("people.csv").write_text("age,height,bought\n" + rows)
    code, out, err = run(*words)
    assert code == 2 and out == ""
    lines = err.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("shuffledp: ") and lines[0].endswith("."), err
    error = json.loads(run(*words, "--json")[1])["error"]
    assert error.keys() == {"message", "parameter", "value"} and error["parameter"] == parameter
    assert [file.name for file in tmp_path.iterdir()] == ["people.csv"]


@pytest.mark.parametrize("way", ["itself", "symbolic", "hard"])
def test_nothing_is_written_over_the_data_or_over_the_model(run, tmp_path, monkeypatch, way: str) -> None:
    monkeypatch.chdir(tmp_path)
    data, other = Path("people.html"), Path("other.html")
    data.write_text("age,bought\n" + "1,0\n2,1\n" * 500)
    before = data.read_text()
    if way != "itself":
        other.symlink_to(data) if way == "symbolic" else other.hardlink_to(data)
    written = str(data.absolute() if way == "itself" else other)
    for words in (["-o", written], ["--report", written], ["-o", "new.html", "--report", "./new.html"]):
        code, out, err = run("fit", str(data), "--target", "bought", "--bounds", "0:9", *TARGET, "--with-truth", *words)
        assert code == 2 and out == "" and "must be another file than" in err
    assert data.read_text() == before and not Path("new.html").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("age,bought\n1,0\ninf,1\n", "age of bad.csv must be finite, got inf in row 2"),
        ("age,bought\n1,0\n,1\n", "rows without one"),
        ("age,bought\n1,0\nold,1\n", "old"),
        ("age,bought\n1,1\n2,1\n", "only one class"),
        ("age,bought\n1,1\n2,2\n3,3\n", "would do, got 3"),
        ("age,bought\n1,0.5\n2,1.25\n3,0.75\n", "take a regression (--task regression)"),
        ("age,bought\n1,1\n2,0\n", "would do, got 2"),
        ("bought\n1\n0\n", "features"),
        ("age,bought\n", "row"),
    ],
)
def test_bad_files_are_named(run, tmp_path, content: str, said: str) -> None:
    file, model = tmp_path / "bad.csv", tmp_path / "model.json"
    file.write_text(content)
    model.write_text("old")
    code, out, err = run(
        *["fit", str(file), "--target", "bought", "--bounds", "0:9", *TARGET],
        *["--with-truth", "--holdout", "0", "-o", str(model)],
    )
    assert code == 2 and out == "" and said in err and len(err.strip().splitlines()) == 1, err
    assert model.read_text() == "old" and len(list(tmp_path.iterdir())) == 2


def test_one_row_is_refused_in_words(run, tmp_path) -> None:
    file = tmp_path / "one.csv"
    file.write_text("age,spent\n1,1\n")
    words = ["--task", "regression", "--bounds", "0:9", "--target-bounds", "0:9"]
    code, out, err = run("fit", str(file), "--target", "spent", *words, *TARGET)
    assert code == 2 and out == "" and "a minimum of 2 is required" in err and len(err.strip().splitlines()) == 1


def test_without_scikit_learn_it_says_what_to_install(run, people, monkeypatch) -> None:
    import shuffledp.learn

    def missing(name: str):
        raise ImportError("no scikit-learn")

    for name in ("ShuffleLogisticRegression",):
        monkeypatch.delitem(shuffledp.learn.__dict__, name, raising=False)
    monkeypatch.setattr(shuffledp.learn, "__getattr__", missing)
    code, _, err = run("fit", people["csv"], "--target", "bought", "--classes", "0,1", *TARGET)
    assert code == 2 and "pip install 'shuffledp[learn]'" in err


def test_what_a_look_at_the_rows_says_is_told_with_the_truth_only(run, tmp_path, monkeypatch) -> None:
    """Whether a column ends at exactly 0 and 1 is one person's value."""
    monkeypatch.chdir(tmp_path)
    rows = np.linspace(0, 1, 400)
    Path("p.csv").write_text("a,y\n" + "".join(f"{a},{int(a > 0.5)}\n" for a in rows))
    asked = ["fit", "p.csv", "--target", "y", "--bounds", "0:1", "--classes", "0,1", "--epsilon", "4"]
    asked += ["--delta", "1e-4", "--seed", "1", "--solver", "agd", "--json"]
    code, out, _ = run(*asked)
    assert code == 0 and not any("scaler" in words for words in json.loads(out)["warnings"])
    assert any(
        "scaler" in words for words in json.loads(run(*asked, "--with-truth", "--holdout", "0.01")[1])["warnings"]
    )


def test_who_is_near_the_limit_is_told_on_standard_error_before_anything_is_spent(run, tmp_path) -> None:
    generator = np.random.default_rng(5)
    rows = [",".join(f"{value:.3f}" for value in row) for row in generator.uniform(0, 1, (300, 12))]
    labels = generator.integers(0, 2, 300)
    path = tmp_path / "few.csv"
    names = ",".join(f"x{place}" for place in range(12))
    path.write_text(f"{names},y\n" + "".join(f"{row},{label}\n" for row, label in zip(rows, labels, strict=True)))
    words = ["fit", path, "--target", "y", "--classes", "0,1", "--bounds", "0:1", "--epsilon", "1", "--delta", "1e-6"]
    code, out, err = run(*words, "--seed", "1")
    assert code == 0 and "Before anything is spent: 300 people are" in err and "runs learn nothing" in err
    said = " ".join(out.split())
    assert "cannot be told from noise" in said and "runs learn nothing" in said
    document = json.loads(run(*words, "--seed", "1", "--json")[1])
    assert document["beside_noise"]["cannot_be_told_from_noise"] and document["expected"]["in_vain"] > 5
