import json

import pytest
import typer
from typer.testing import CliRunner

from shuffledp.cli.amplify import NOTE, amplify
from shuffledp.errors import ParameterError

app = typer.Typer()
app.command()(amplify)

ASKED = ["--local-epsilon", "1", "--users", "10000", "--delta", "1e-6"]


def run(*words: str) -> dict:
    result = CliRunner().invoke(app, [*ASKED, *words, "--json"], catch_exceptions=False)
    assert result.exit_code == 0
    return json.loads(result.stdout)


def epsilons(document: dict) -> dict:
    return {bound["name"]: bound["epsilon"] for bound in document["bounds"]}


def test_json_has_every_bound_and_says_that_it_explores() -> None:
    document = run()
    assert list(document) == [
        *("schema", "note", "local_epsilon", "local_delta", "users", "delta", "rounds", "symbols", "bounds")
    ]
    assert document["schema"] == 1 and document["note"] == "exploration: privacy belongs to a run" == NOTE
    found = epsilons(document)
    assert found == pytest.approx(
        {
            "2021 closed form": 0.21403,
            "2023 closed form": 0.18001,
            "2021 clones": 0.0530053,
            "2023 stronger clones": 0.0432062,
            "shuffled binary randomized response, others all 0": 0.0356588,
        },
        rel=3e-5,
    )
    assert {bound["kind"] for bound in document["bounds"]} == {"upper bound", "lower bound"}
    assert all(set(bound) == {"name", "epsilon", "kind", "why"} for bound in document["bounds"])


def test_symbols_add_the_randomizers_own_bounds_and_lower_is_below_upper() -> None:
    found = epsilons(run("--symbols", "5"))
    upper, lower = found["5-randomized response, blanket"], found["5-randomized response, others all a third symbol"]
    assert lower < upper < found["2023 stronger clones"]
    assert upper == pytest.approx(lower, rel=1e-3)


def test_a_formula_out_of_range_is_null_and_the_numerical_bounds_stay() -> None:
    result = CliRunner().invoke(
        app, ["--local-epsilon", "6", "--users", "1000", "--delta", "1e-6", "--json"], catch_exceptions=False
    )
    document = json.loads(result.stdout)
    found = epsilons(document)
    assert "not applicable" in document["bounds"][0]["why"]
    assert found["2021 closed form"] is None and found["2023 closed form"] is None
    assert found["shuffled binary randomized response, others all 0"] < found["2023 stronger clones"] <= 6


def test_a_local_delta_costs_and_leaves_randomized_response_out() -> None:
    pure, approximate = epsilons(run("--symbols", "2")), epsilons(run("--symbols", "2", "--local-delta", "1e-11"))
    for name in ("2021 closed form", "2023 closed form", "2021 clones", "2023 stronger clones"):
        assert pure[name] < approximate[name]
    assert approximate["2-randomized response, blanket"] is None
    too_much = run("--local-delta", "1e-6")
    assert epsilons(too_much)["2023 stronger clones"] is None
    assert all("not applicable" in bound["why"] for bound in too_much["bounds"] if bound["epsilon"] is None)


def test_rounds_compose() -> None:
    found = epsilons(run("--rounds", "20"))
    assert found["2023 stronger clones"] == pytest.approx(0.2151, abs=2e-4)
    assert found["2023 stronger clones"] < found["2021 clones"] < found["2023 closed form"]


def test_a_person_sees_a_table_with_the_label() -> None:
    result = CliRunner().invoke(app, ASKED, catch_exceptions=False)
    assert NOTE in result.stdout and "0.0432062" in result.stdout and "lower bound" in result.stdout
    out_of_range = ["--local-epsilon", "6", "--users", "1000", "--delta", "1e-6"]
    assert "none" in CliRunner().invoke(app, out_of_range, catch_exceptions=False).stdout


@pytest.mark.parametrize(
    ("words", "parameter"),
    [
        (["--local-epsilon", "0"], "local_epsilon"),
        (["--local-epsilon", "nan"], "local_epsilon"),
        (["--local-epsilon", "101"], "local_epsilon"),
        (["--users", "1"], "users"),
        (["--delta", "0"], "delta"),
        (["--delta", "1"], "delta"),
        (["--local-delta", "-1"], "local_delta"),
        (["--symbols", "1"], "symbols"),
        (["--rounds", "0"], "rounds"),
    ],
)
def test_bad_input_is_named_in_one_sentence(words: list[str], parameter: str) -> None:
    with pytest.raises(ParameterError) as caught:
        CliRunner().invoke(app, [*ASKED, *words], catch_exceptions=False)
    assert caught.value.parameter == parameter and str(caught.value).count("\n") == 0
