"""Sums of numbers and of vectors under the command line's contract."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

USERS = 60
TARGET = ["--epsilon", "1", "--delta", "1e-6"]
NUMBERS = ["--low", "-1", "--high", "4"]
VECTORS = ["--dimension", "3", "--radius", "2"]
DOMAINS = {"bounded-sum": NUMBERS, "vector-sum": VECTORS}
BOTH = [(protocol, method) for protocol in DOMAINS for method in ("bits", "shares")]


@pytest.fixture
def data(tmp_path) -> dict[str, str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = {"x": numbers(), **dict(zip("abc", vectors().T, strict=True))}
    files = {name: str(tmp_path / f"data.{name}") for name in ("csv", "parquet")}
    rows = zip(*table.values(), strict=True)
    Path(files["csv"]).write_text("x,a,b,c\n" + "".join(",".join(map(repr, map(float, row))) + "\n" for row in rows))
    pq.write_table(pa.table(table), files["parquet"])
    for name, values in (("numbers", numbers()), ("vectors", vectors())):
        files[name] = str(tmp_path / f"{name}.npy")
        np.save(files[name], values)
    return files


def numbers() -> np.ndarray:
    return np.linspace(-1, 4, USERS)


def vectors() -> np.ndarray:
    angle = np.arange(USERS)
    return np.stack([1 + 0.5 * np.cos(angle), 0.5 * np.sin(angle), np.full(USERS, -0.25)], axis=1)


def plan_words(protocol: str, *more: str, users: int = USERS) -> list[str]:
    return ["plan", protocol, "--users", str(users), *TARGET, *DOMAINS[protocol], *more]


def simulate_words(protocol: str, *more: str) -> list[str]:
    domain = NUMBERS if protocol == "bounded-sum" else ["--radius", "2"]
    return ["simulate", "--protocol", protocol, *TARGET, *domain, *more]


def strict(text: str) -> Any:
    """JSON that any reader takes: neither NaN nor Infinity."""
    return json.loads(text, parse_constant=lambda word: pytest.fail(word))


def save(folder: Path, values: np.ndarray) -> str:
    np.save(folder / "bad.npy", values)
    return str(folder / "bad.npy")


KEYS = {
    "schema", "protocol", "method", "users", "epsilon", "delta", "honest_fraction", "constants", "standard_error",
    "messages_per_user_mean", "messages_per_user_max", "bits_per_message", "local_epsilon", "local_delta", "noise",
    "reference", "why", "more_messages", "warnings", "fingerprint",
}  # fmt: skip
REFERENCES = {"paper_standard_error", "central_standard_error", "local_standard_error"}


@pytest.mark.parametrize(("protocol", "method"), [*BOTH, ("bounded-sum", "auto"), ("vector-sum", "auto")])
def test_a_plan_as_json_has_its_keys(run, protocol: str, method: str) -> None:
    code, out, err = run(*plan_words(protocol, "--method", method, "--json"))
    document = strict(out)
    domain = {"low": -1.0, "high": 4.0} if protocol == "bounded-sum" else {"dimension": 3, "radius": 2.0}
    assert code == 0 and err == "" and document.keys() == KEYS | domain.keys()
    assert {name: document[name] for name in domain} == domain
    assert (document["schema"], document["protocol"], document["users"]) == (1, protocol, USERS)
    assert document["method"] == ("shares" if method == "auto" else method)
    extra = {"central_laplace_standard_error"} if protocol == "bounded-sum" else set()
    assert document["reference"].keys() == REFERENCES | extra
    assert document["noise"]["law"] in ("binomial", "discrete-laplace", "skellam")
    assert 0 < document["messages_per_user_mean"] <= document["messages_per_user_max"]


def test_figures_of_plans_as_json(run) -> None:
    def plan(*words: str) -> dict:
        return strict(run("plan", *words, "--users", "10000", *TARGET, "--json")[1])

    unit = ["bounded-sum", "--low", "0", "--high", "1"]
    assert plan(*unit, "--method", "shares")["standard_error"] <= 1.5
    bits = plan(*unit, "--method", "bits")
    assert bits["standard_error"] <= 1.1 * bits["reference"]["central_standard_error"] <= 1.1 * 4.226
    assert bits["messages_per_user_max"] <= 40 and bits["bits_per_message"] == 1
    paper = plan(*unit, "--method", "bits", "--constants", "paper")
    assert paper["standard_error"] == pytest.approx(paper["reference"]["paper_standard_error"])
    few = plan(*unit, "--max-messages", "10")
    assert few["method"] == "bits" and few["messages_per_user_max"] <= 10
    ball = ["vector-sum", "--dimension", "10", "--radius", "1"]
    shares = plan(*ball)
    assert shares["method"] == "shares"
    assert shares["standard_error"] <= 1.005 * shares["reference"]["central_standard_error"]
    rotated = plan(*ball, "--method", "bits", "--rotation", "7")
    assert rotated["noise"]["rotation"] == 7 and rotated["messages_per_user_max"] % 16 == 0
    assert plan(*ball, "--honest-fraction", "0.5")["standard_error"] > 1.3 * shares["standard_error"]


@pytest.mark.parametrize("protocol", DOMAINS)
def test_gaussian_is_compared_and_not_run(run, data, tmp_path, protocol: str) -> None:
    code, out, err = run(*plan_words(protocol, "--method", "gaussian", "--json"))
    document = strict(out)
    assert code == 0 and err == "" and document["comparison_only"] and "fingerprint" not in document
    assert document["local_epsilon"] >= 1 and document["messages_per_user_max"] == 1
    assert document["reference"] == {"paper_standard_error": None}
    code, out, _ = run(*plan_words(protocol, "--method", "gaussian"))
    assert code == 0 and "For comparison only" in out and "Next:" in out
    file = tmp_path / "plan.json"
    code, out, err = run(*plan_words(protocol, "--method", "gaussian", "-o", str(file)))
    assert code == 2 and out == "" and "out" in err and str(file) in err and not file.exists()
    for words in (["explain", protocol], ["audit", protocol], ["simulate", "--synthetic", "--protocol", protocol]):
        code, out, _ = run(*words, "--users", "60", *TARGET, *DOMAINS[protocol], "--method", "gaussian", "--json")
        assert code == 2 and strict(out)["error"]["parameter"] == "method"


@pytest.mark.parametrize("protocol", DOMAINS)
def test_a_person_reads_what_how_accurate_and_what_next(run, protocol: str) -> None:
    code, out, _ = run(*plan_words(protocol))
    assert code == 0
    for said in ("standard error", "trusted curator", "local model", "own constants", "lying client", "Next:"):
        assert said in out
    assert ("in every coordinate" in out) == (protocol == "vector-sum")


@pytest.mark.parametrize("kind", ["csv", "parquet", "npy"])
@pytest.mark.parametrize("fast", [[], ["--fast"]])
def test_numbers_from_every_kind_of_file(run, data, kind: str, fast: list[str]) -> None:
    source = [data["numbers"]] if kind == "npy" else [data[kind], "--column", "x"]
    code, out, err = run(*simulate_words("bounded-sum", *source, *fast, "--seed", "1", "--with-truth", "--json"))
    document = strict(out)
    assert code == 0 and err == "" and document["users"] == USERS and document["simulated"]
    assert document["truth"] == pytest.approx(numbers().sum()) and document["clipped"] == 0
    assert document["error"] == pytest.approx(abs(document["estimate"] - document["truth"]))
    assert document["error"] <= 3 * document["bound"]
    assert (document["low"], document["high"]) == (-1, 4)
    assert document["fidelity"] == ("law" if fast else "messages") and (document["messages"] == 0) == bool(fast)


@pytest.mark.parametrize("kind", ["csv", "parquet", "npy"])
@pytest.mark.parametrize("more", [[], ["--fast"], ["--rotation", "5"], ["--method", "bits", "--fast"]])
def test_vectors_from_every_kind_of_file(run, data, kind: str, more: list[str]) -> None:
    source = [data["vectors"]] if kind == "npy" else [data[kind], "--columns", "a, b,c"]
    code, out, err = run(*simulate_words("vector-sum", *source, *more, "--seed", "1", "--with-truth", "--json"))
    document = strict(out)
    estimate, truth = np.array(document["estimate"]), np.array(document["truth"])
    assert code == 0 and err == "" and document["dimension"] == 3 and document["radius"] == 2
    assert truth == pytest.approx(vectors().sum(axis=0)) and estimate.shape == (3,)
    assert document["error"] == pytest.approx(float(np.sqrt(np.mean((estimate - truth) ** 2))))
    assert np.abs(estimate - truth).max() <= 3 * document["bound"]
    assert (document["messages"] == 0) == ("--fast" in more)


def test_columns_may_be_chosen_and_ordered(run, data) -> None:
    words = simulate_words("vector-sum", data["csv"], "--fast", "--with-truth", "--json", "--columns", "c,a")
    assert strict(run(*words)[1])["truth"] == pytest.approx(vectors()[:, [2, 0]].sum(axis=0))
    code, out, _ = run(*simulate_words("vector-sum", data["csv"], "--fast", "--json", "--radius", "10"))
    assert code == 0 and strict(out)["dimension"] == 4, "all columns if none are named"


def test_a_seed_repeats_and_its_absence_does_not(run, data) -> None:
    for protocol, source in (("bounded-sum", "numbers"), ("vector-sum", "vectors")):
        words = simulate_words(protocol, data[source], "--json")
        seeded = [strict(run(*words, "--seed", "3")[1]) for _ in range(2)]
        assert seeded[0]["estimate"] == seeded[1]["estimate"] and seeded[0]["simulated"]
        assert not strict(run(*words)[1])["simulated"]


def test_clipping_is_asked_for_and_counted(run, tmp_path) -> None:
    outside = numbers() * 2
    words = simulate_words("bounded-sum", save(tmp_path, outside), "--fast", "--with-truth", "--seed", "1")
    assert run(*words)[0] == 2
    document = strict(run(*words, "--clip", "--json")[1])
    assert document["clipped"] == np.count_nonzero((outside < -1) | (outside > 4)) > 0
    assert document["truth"] == pytest.approx(np.clip(outside, -1, 4).sum())
    code, out, _ = run(*words, "--clip")
    assert code == 0 and "values were brought into the range" in " ".join(out.split())

    long = vectors()
    long[[4, 9]] *= 10
    words = simulate_words("vector-sum", save(tmp_path, long), "--fast", "--with-truth", "--seed", "1")
    assert run(*words)[0] == 2
    document = strict(run(*words, "--clip", "--json")[1])
    long[[4, 9]] *= 2 / np.linalg.norm(long[[4, 9]], axis=1)[:, np.newaxis]
    assert document["clipped"] == 2 and document["truth"] == pytest.approx(long.sum(axis=0))


@pytest.mark.parametrize(("protocol", "method"), BOTH)
def test_made_up_data_tell_a_person_the_story(run, protocol: str, method: str) -> None:
    users = ["--users", "200", "--method", method]
    words = ["simulate", "--synthetic", "--protocol", protocol, *TARGET, *DOMAINS[protocol], *users]
    code, out, _ = run(*words, "--seed", "2")
    assert code == 0
    for said in ("estimate", "±", "true value", "messages made, shuffled and read", "local model", "Next:"):
        assert said in out
    document = strict(run(*words, "--fast", "--json")[1])
    assert document["users"] == 200 and document["method"] == method and document["fidelity"] == "law"


CHANGES = {
    "bounded-sum": {"low": 0.0, "high": 5.0, "users": 61, "epsilon": 0.5, "standard_error": 1.0},
    "vector-sum": {"dimension": 2, "radius": 1.0, "epsilon": 0.5, "fingerprint": "0"},
}


@pytest.mark.parametrize(("protocol", "method"), BOTH)
def test_a_plan_goes_through_its_file(run, data, tmp_path, protocol: str, method: str) -> None:
    file = tmp_path / "plan.json"
    rotation = ["--rotation", "4"] if protocol == "vector-sum" else []
    code, out, _ = run(*plan_words(protocol, "--method", method, *rotation, "-o", str(file), "--json"))
    document = strict(file.read_text())
    assert code == 0 and strict(out) == document | {"why": f"{method}: as asked", "more_messages": None, "warnings": []}
    for command in (["explain"], ["audit", "--trials", "200", "--seed", "1"], ["simulate", "--synthetic", "--fast"]):
        code, out, err = run(*command, "--plan", str(file), "--json")
        assert code == 0 and err == "" and strict(out)["fingerprint"] == document["fingerprint"]
    source = [data["numbers"]] if protocol == "bounded-sum" else [data["csv"], "--columns", "a,b,c"]
    assert strict(run("simulate", "--plan", str(file), *source, "--json")[1])["method"] == method

    for name, value in CHANGES[protocol].items():
        file.write_text(json.dumps(document | {name: value}))
        code, out, _ = run("explain", "--plan", str(file), "--json")
        assert code == 2 and "error" in strict(out), name
    finer = document["noise"] | {"grid": 2 * document["noise"]["grid"]}
    file.write_text(json.dumps(document | {"noise": finer}))
    code, out, _ = run("explain", "--plan", str(file), "--json")
    assert code == 2 and strict(out)["error"]["parameter"] == "noise", "a finer grid needs more noise"


@pytest.mark.parametrize(("protocol", "method"), BOTH)
def test_explain_has_the_pair_the_terms_and_the_collusions(run, protocol: str, method: str) -> None:
    words = ["explain", protocol, "--users", "200", *TARGET, *DOMAINS[protocol], "--method", method]
    document = strict(run(*words, "--json")[1])
    assert document["pair"].startswith("P = ")
    assert sum(term["value"] for term in document["delta_terms"]) == pytest.approx(document["delta_proved"])
    assert document["delta_proved"] <= 1e-6 and {"noise", "sampling"} <= {t["name"] for t in document["delta_terms"]}
    assert document["theory_page"] == f"docs/theory/{'001-sums' if protocol == 'bounded-sum' else 'vector-sums'}.md"
    collusions = {row["parties"]: row["epsilon"] for row in document["collusions"]}
    assert collusions["analyzer alone"] == 1 and collusions["analyzer + shuffler"] is None
    if method == "bits":
        assert 1 < collusions["analyzer + 0.1 of the users"] < 1 / 0.9
        assert 1 < collusions["analyzer + 0.5 of the users"] < 2
    code, out, _ = run(*words)
    assert code == 0 and "Every term of delta" in out and "What each collusion reveals" in out


AUDITED = {"bounded-sum": ["--low", "0", "--high", "1"], "vector-sum": ["--dimension", "2", "--radius", "1"]}


def audit_words(protocol: str, method: str) -> list[str]:
    few = ["--users", "5", "--trials", "8000", "--seed", "1"]
    return ["audit", protocol, *TARGET, *AUDITED[protocol], "--method", method, *few]


@pytest.mark.parametrize(("protocol", "method"), BOTH)
def test_an_honest_plan_stands_and_a_sabotaged_one_exits_3(run, protocol: str, method: str) -> None:
    words = audit_words(protocol, method)
    code, out, err = run(*words, "--json")
    document = strict(out)
    assert code == 0 and err == "" and document["verdict"] == "stands" and document["protocol"] == protocol
    assert document["epsilon_lower_bound"] <= document["epsilon_exact"] <= document["epsilon_claimed"] == 1
    code, out, err = run(*words, "--sabotage", "0.02", "--json")
    document = strict(out)
    assert code == 3 and err == "" and document["verdict"] == "refuted" and document["epsilon_lower_bound"] > 2


def test_a_refutation_in_words(run) -> None:
    code, out, _ = run(*audit_words("vector-sum", "shares"), "--rotation", "3", "--sabotage", "0.02")
    assert code == 3 and "the claim is false" in " ".join(out.split())


@pytest.mark.parametrize("protocol", DOMAINS)
def test_methods_side_by_side(run, protocol: str) -> None:
    words = ["protocols", protocol, "--users", "200", *TARGET, *DOMAINS[protocol]]
    code, out, err = run(*words, "--json")
    document = strict(out)
    rows = {row["method"]: row for row in document["protocols"]}
    assert code == 0 and err == "" and set(rows) == {"bits", "shares", "gaussian"}
    errors = [row["standard_error"] for row in document["protocols"]]
    assert errors == sorted(errors) and document["protocols"][0]["method"] == "shares"
    assert rows["gaussian"]["comparison_only"] and "comparison_only" not in rows["bits"]
    assert rows["shares"]["influence_of_a_lying_client"] is None and rows["bits"]["influence_of_a_lying_client"] > 0
    assert 1 < rows["bits"]["epsilon_at_honest_fraction"]["0.5"] < 2
    assert document.keys() >= ({"low", "high"} if protocol == "bounded-sum" else {"dimension", "radius"})
    code, out, _ = run(*words)
    assert code == 0 and all(word in out for word in ("bits", "shares", "gaussian", "liar", "Next:"))


BOUNDED, VECTOR = plan_words("bounded-sum"), plan_words("vector-sum")
SYNTHETIC = ["simulate", "--synthetic", "--users", "60", *TARGET]
BAD = [
    ([*BOUNDED, "--epsilon", "0"], "epsilon", 0),
    ([*BOUNDED, "--low", "nan"], "low", "nan"),
    ([*BOUNDED, "--high", "inf"], "high", "inf"),
    ([*BOUNDED, "--high", "-1"], "high", -1),
    ([*BOUNDED, "--method", "coins"], "method", "coins"),
    ([*BOUNDED, "--method", "bits", "--max-messages", "1"], "max_messages", 1),
    ([*BOUNDED, "--method", "shares", "--constants", "paper"], "constants", "paper"),
    ([*VECTOR, "--dimension", "0"], "dimension", 0),
    ([*VECTOR, "--radius", "0"], "radius", 0),
    ([*VECTOR, "--radius", "-2"], "radius", -2),
    ([*VECTOR, "--radius", "nan"], "radius", "nan"),
    ([*VECTOR, "--rotation", "-1"], "rotation", -1),
    ([*VECTOR, "--max-messages", "3"], "max_messages", 3),
    ([*VECTOR, "--honest-fraction", "0"], "honest_fraction", 0),
    ([*VECTOR, "--constants", "paper", "--rotation", "1", "--method", "bits"], "constants", "paper"),
    (["plan", "bounded-sum", "--users", "60", *TARGET, "--high", "1"], "low", None),
    (["plan", "bounded-sum", "--users", "60", *TARGET, "--low", "1"], "high", None),
    (["plan", "bounded-sum", "--users", "60", *TARGET, "--low", "1", "--method", "gaussian"], "high", None),
    (["plan", "vector-sum", "--users", "60", *TARGET, "--radius", "1"], "dimension", None),
    (["plan", "vector-sum", "--users", "60", *TARGET, "--dimension", "1"], "radius", None),
    (["plan", "vector-sum", *TARGET, *VECTORS], "users", None),
    ([*SYNTHETIC, "--low", "0"], "low", 0),
    ([*SYNTHETIC, "--protocol", "bounded-sum", *NUMBERS, "--radius", "1"], "radius", 1),
    ([*SYNTHETIC, "--protocol", "vector-sum", *VECTORS, "--high", "1"], "high", 1),
    ([*SYNTHETIC, "--protocol", "vector-sum", "--radius", "1"], "dimension", None),
    (["explain", "bounded-sum", "--users", "60", *TARGET, *NUMBERS, "--rotation", "1"], "rotation", 1),
    (["explain", "vector-sum", "--users", "60", *TARGET, *VECTORS, "--low", "0"], "low", 0),
    (["explain", "bounded-sum", "--users", "60", *TARGET], "low", None),
    (["audit", "vector-sum", "--users", "60", *TARGET, *NUMBERS], "low", -1),
    (["audit", "vector-sum", "--users", "60", *TARGET, "--dimension", "2"], "radius", None),
    (["protocols", "bounded-sum", "--users", "60", *TARGET, *NUMBERS, "--dimension", "2"], "dimension", 2),
    (["protocols", "vector-sum", "--users", "60", *TARGET, "--radius", "2"], "dimension", None),
    (["protocols", "magic", "--users", "60", *TARGET], "protocol", "magic"),
    (["explain", "--plan", "missing.json", "--low", "0"], "low", 0),
    (["simulate", "--synthetic", "--plan", "missing.json", "--radius", "3"], "radius", 3),
]


@pytest.mark.parametrize(
    ("words", "parameter", "value"), BAD, ids=lambda value: " ".join(value) if isinstance(value, list) else str(value)
)
def test_bad_input_is_one_sentence_and_exit_code_2(run, words: list[str], parameter: str, value: Any) -> None:
    code, out, err = run(*words)
    lines = err.strip().splitlines()
    assert code == 2 and out == "" and len(lines) == 1, err
    assert lines[0].startswith("shuffledp: ") and lines[0].endswith(".") and parameter in lines[0].replace("-", "_")
    assert value is None or str(value) in lines[0]
    code, out, err = run(*words, "--json")
    error = strict(out)["error"]
    assert code == 2 and err == "" and error["parameter"] == parameter and error["value"] == value


def test_what_is_no_number_is_named(run) -> None:
    for words, parameter, value in (
        (["plan", "bounded-sum", "--users", "60", *TARGET, "--low", "much", "--high", "1"], "low", "much"),
        (["plan", "vector-sum", "--users", "60", *TARGET, "--dimension", "2.5", "--radius", "1"], "dimension", "2.5"),
    ):
        code, out, err = run(*words)
        assert code == 2 and out == "" and len(err.strip().splitlines()) == 1 and parameter in err
        error = strict(run(*words, "--json")[1])["error"]
        assert (error["parameter"], error["value"]) == (parameter, value)


def test_options_of_another_protocol_do_not_exist_in_plan(run) -> None:
    for words, option in (
        ([*BOUNDED, "--dimension", "3"], "dimension"),
        ([*BOUNDED, "--rotation", "3"], "rotation"),
        ([*VECTOR, "--low", "0"], "low"),
        (["plan", "binary-sum", "--users", "60", *TARGET, "--radius", "1"], "radius"),
    ):
        code, out, err = run(*words)
        assert code == 2 and out == "" and len(err.strip().splitlines()) == 1
        assert f"--{option}" in err and "--help" in err


def with_entry(values: np.ndarray, place: Any, entry: Any) -> np.ndarray:
    changed = values.copy()
    changed[place] = entry
    return changed


BAD_DATA = [
    ("bounded-sum", with_entry(numbers(), 4, 7), ("must lie in [-1, 4]", "7 in row 5", "--clip")),
    ("bounded-sum", with_entry(numbers(), 4, np.nan), ("bad.npy", "--missing")),
    ("bounded-sum", with_entry(numbers(), 4, np.inf), ("inf in row 5", "finite")),
    ("bounded-sum", vectors(), ("shape (60, 3)",)),
    ("bounded-sum", np.array(["a"] * 60), ("bad.npy",)),
    ("bounded-sum", numbers()[:0], ("bad.npy",)),
    ("vector-sum", with_entry(vectors(), 6, [3, 0, 4]), ("length 5 in row 7", "radius 2", "--clip")),
    ("vector-sum", with_entry(vectors(), (6, 1), np.nan), ("column 2", "--missing")),
    ("vector-sum", with_entry(vectors(), (6, 1), -np.inf), ("-inf in row 7, column 2", "finite")),
    ("vector-sum", vectors()[:, :2], ("3 columns", "shape (60, 2)")),
    ("vector-sum", numbers() / 4, ("3 columns", "shape (60, 1)")),
    ("vector-sum", vectors()[:59], ("rows must be the plan's 60 users, got 59",)),
]


@pytest.mark.parametrize(("protocol", "values", "said"), BAD_DATA, ids=lambda value: str(value)[:40])
def test_bad_data_are_named_with_their_row(run, tmp_path, protocol: str, values, said: tuple[str, ...]) -> None:
    file = save(tmp_path, values)
    words = ["simulate", file, "--protocol", protocol, "--users", "60", *TARGET, *DOMAINS[protocol], "--fast"]
    code, out, err = run(*words)
    assert code == 2 and out == "" and len(err.strip().splitlines()) == 1, err
    assert all(part in err for part in said), err
    assert strict(run(*words, "--json")[1])["error"]["parameter"] is not None
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        assert run(*words, "--clip")[0] == 2, "clipping is no cure for what is not finite"


@pytest.mark.parametrize(
    ("protocol", "content", "more", "said"),
    [
        ("bounded-sum", "x\n1\n\n0\n", [], ("column x", "--missing")),
        ("bounded-sum", "x\n1\nnan\n0\n", [], ("column x", "--missing")),
        ("bounded-sum", "x\n1\nfoo\n0\n", [], ("column x", "'foo' in row 2")),
        ("bounded-sum", "x,y\n1,2\n", [], ("column", "x, y")),
        ("bounded-sum", "x,y\n1,2\n", ["--columns", "x"], ("columns", "--column")),
        ("vector-sum", "a,b\n1,0\n0,\n", [], ("column b", "--missing")),
        ("vector-sum", "a,b\n1,0\n0,nan\n", [], ("column b", "--missing")),
        ("vector-sum", "a,b\n1,0\n0,1\n", ["--columns", "a,z"], ("z", "a, b")),
        ("vector-sum", "a,b\n1,0\n0,1\n", ["--columns", "a,a"], ("columns", "a 2 times")),
        ("vector-sum", "a,b\n1,0\n0,1\n", ["--column", "a"], ("column", "--columns")),
        ("vector-sum", "1,0\n0,1\n", [], ("first line",)),
    ],
)
def test_bad_files_are_named(run, tmp_path, protocol: str, content: str, more: list[str], said) -> None:
    file = tmp_path / "bad.csv"
    file.write_text(content)
    code, out, err = run(*simulate_words(protocol, str(file), *more))
    assert code == 2 and out == "" and len(err.strip().splitlines()) == 1 and all(part in err for part in said), err


def test_nothing_half_written_after_a_failure(run, tmp_path) -> None:
    file = tmp_path / "plan.json"
    file.write_text("old")
    assert run(*plan_words("vector-sum", "--radius", "-1", "-o", str(file)))[0] == 2
    assert file.read_text() == "old" and list(tmp_path.iterdir()) == [file]
