"""`shuffledp evaluate`: a model on people who were kept out, under the command line's contract."""

from pathlib import Path

import numpy as np
import pytest

from shuffledp.learn import LinearModel
from shuffledp.learn.estimators.preparation import Preparation

TARGET = ["--epsilon", "1", "--delta", "1e-6"]
KEYS = {
    "schema", "users", "epsilon", "delta", "metrics", "confidence", "calibration", "roc", "bins", "messages_per_user",
    "fingerprint", "simulated", "warnings", "caveats", "estimator", "target", "classes", "truth", "model_fingerprint",
    "out", "picture", "csv", "ledger",
}  # fmt: skip
USERS = 3000


def _model(path: Path, estimator: str = "ShuffleLogisticRegression", **change) -> Path:
    fields = {"classes": (0, 1), "users": 5000, "coefficients": np.array([1.0, -1.0]), "intercept": 0.0} | change
    LinearModel(
        estimator=estimator, features=("age", "height"), solver="gd", guarantee={}, declared={},
        simulated=False, preparation=Preparation.of(["age", "height"], bounds=(0, 3), norm=None), **fields,
    ).save(path)  # fmt: skip
    return path


@pytest.fixture(scope="module")
def people(tmp_path_factory) -> Path:
    rng = np.random.default_rng(1)
    features = rng.uniform(0, 3, (USERS, 2))
    bought = (features @ [1.0, -1.0] + rng.logistic(size=USERS) > 0).astype(int)
    file = tmp_path_factory.mktemp("kept-out") / "others.csv"
    rows = "".join(f"{a:.4f},{b:.4f},{y}\n" for (a, b), y in zip(features, bought, strict=True))
    file.write_text("age,height,bought\n" + rows)
    return file


def test_metrics_intervals_files_and_the_truth_only_when_asked(asked, run, people: Path, tmp_path: Path) -> None:
    model = _model(tmp_path / "model.json")
    words = ["evaluate", model, people, "--target", "bought", "--bins", 16, *TARGET]
    found = asked(*words, "--with-truth", "-o", tmp_path / "answer.json", "--picture", tmp_path / "p.png")
    assert set(found) == KEYS and found["users"] == USERS and found["warnings"] == []
    assert set(found["metrics"]) == set(found["truth"])
    for name, metric in found["metrics"].items():
        assert metric["lower"] <= found["truth"][name] <= metric["upper"]
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG") and (tmp_path / "answer.json").exists()
    assert asked(*words, "--csv", tmp_path / "metrics.csv")["truth"] is None
    assert (tmp_path / "metrics.csv").read_text().splitlines()[0] == "metric,value,lower,upper"
    told = " ".join(run(*words)[1].split())
    planned = told.partition("why it is private")[2].partition("explain")[2].partition("keep the plan")[0].split()[:9]
    assert asked("plan", *planned)["fingerprint"] == found["fingerprint"]
    assert "AUC" in told and "hold together with 95% confidence" in told and "who were kept out" in told
    assert "true" not in told.split("Calibration")[0].replace("true positive", "")


def test_a_few_people_are_told_that_an_interval_says_nothing(asked, run, people: Path, tmp_path: Path) -> None:
    model, few = _model(tmp_path / "model.json"), tmp_path / "few.csv"
    few.write_text("".join(people.read_text().splitlines(keepends=True)[:229]))
    words = ["evaluate", model, few, "--target", "bought", *TARGET, "--seed", 1]
    found = asked(*words)["metrics"]["auc"]
    assert found["says_nothing"] and found["people_needed"] > 1000
    told = " ".join(run(*words)[1].split())
    assert "What they say" in told and "says nothing" in told and f"{found['people_needed']:,}" in told
    assert "no better than chance, 0.500" in told and found["remark"].endswith("no better than chance, 0.500")
    assert "says nothing" not in run("evaluate", model, people, "--target", "bought", *TARGET)[1]


def test_scores_that_are_no_probabilities_on_as_many_people_as_it_learned_from(asked, run, people, tmp_path) -> None:
    model = _model(tmp_path / "svc.json", "ShuffleLinearSVC", users=USERS)
    words = ["evaluate", model, people, "--target", "bought", "--bins", 4, *TARGET]
    found = asked(*words)
    assert set(found["metrics"]) == {"auc", "accuracy", "positive_rate"} and found["calibration"] == []
    assert "were they kept out" in found["warnings"][0] and "were they kept out" in " ".join(run(*words)[1].split())
    asked(*words, "-o", tmp_path / "roc.svg")
    assert "<svg" in (tmp_path / "roc.svg").read_text()


def test_three_classes_in_words(asked, run, tmp_path: Path) -> None:
    weights = {"coefficients": np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]), "intercept": np.array([0.0, 0.0, 2.0])}
    model = _model(tmp_path / "three.json", classes=("a", "b", "c"), **weights)
    rng = np.random.default_rng(3)
    features = rng.uniform(0, 3, (2000, 2))
    scores = features @ weights["coefficients"].T + weights["intercept"]
    said = np.array(["a", "b", "c"])[(scores + rng.gumbel(size=scores.shape)).argmax(axis=1)]
    file = tmp_path / "three.csv"
    rows = "".join(f"{a:.4f},{b:.4f},{y}\n" for (a, b), y in zip(features, said, strict=True))
    file.write_text("age,height,bought\n" + rows)
    words = ["evaluate", model, file, "--target", "bought", "--bins", 4, *TARGET]
    found = asked(*words, "--with-truth", "-o", tmp_path / "three.svg")
    assert set(found["metrics"]) == {"accuracy", "mean_confidence"} and found["roc"] is None
    for name, metric in found["metrics"].items():
        assert metric["lower"] <= found["truth"][name] <= metric["upper"]
    assert "<svg" in (tmp_path / "three.svg").read_text()
    assert "had the class that was predicted" in " ".join(run(*words)[1].split())


def test_bad_input_is_a_sentence(asked, people: Path, tmp_path: Path) -> None:
    model = _model(tmp_path / "model.json")
    other = tmp_path / "other.csv"
    for text, words in (
        ("age,height,bought\n1,2,0\n1,2,7\n", "classes 0, 1, got something else in row 2"),
        ("age,height,bought\n1,2,0\n1,2,nan\n", "must have a value in every row"),
        ("age,bought\n1,0\n", "must be a column"),
    ):
        other.write_text(text)
        refused = asked("evaluate", model, other, "--target", "bought", *TARGET, code=2)["error"]
        assert words in refused["message"]
    number = _model(tmp_path / "ridge.json", "ShuffleRidge", classes=None)
    assert (
        "must be a classifier"
        in asked("evaluate", number, people, "--target", "bought", *TARGET, code=2)["error"]["message"]
    )
    assert asked("evaluate", model, people, "--target", "bought", code=2)["error"]["parameter"] == "epsilon"
    assert asked("evaluate", model, people, "--target", "sold", *TARGET, code=2)["error"]["message"].startswith("file")
    for bins in (3, 0):
        words = ["evaluate", model, people, "--target", "bought", "--bins", bins, *TARGET]
        assert asked(*words, code=2)["error"]["parameter"] == "bins"


def test_a_ledger_is_charged_before_anybody_is_asked_and_may_refuse(asked, run, people: Path, tmp_path: Path) -> None:
    model, ledger = _model(tmp_path / "model.json"), tmp_path / "panel.json"
    asked("ledger", "open", ledger, "--population", "panel", "--epsilon", 1.5, "--delta", "1e-5")
    words = ["evaluate", model, people, "--target", "bought", "--bins", 4, *TARGET, "--ledger", ledger]
    told = " ".join(run(*words, "-o", tmp_path / "answer.json")[1].split())
    assert "charged to the ledger of panel: epsilon" in told
    spent = asked("ledger", "show", ledger)
    assert [entry["users"] for entry in spent["entries"]] == [USERS]
    before = ledger.read_bytes()
    refused = asked(*words, "-o", tmp_path / "again.json", code=2)["error"]
    assert refused["parameter"] == "budget" and not (tmp_path / "again.json").exists()
    # What fails before is not charged, nor is the ledger written over.
    asked(*words, "--target", "sold", code=2)
    assert asked(*words, "-o", ledger, code=2)["error"]["parameter"] == "out"
    assert ledger.read_bytes() == before
