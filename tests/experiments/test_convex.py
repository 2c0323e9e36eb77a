"""Table 1 of [001], small: slopes in the theory's order, rows that come back, and the command's contract."""

import json

import pytest

from shuffledp import cli
from shuffledp.errors import ParameterError
from shuffledp.experiments import convex
from shuffledp.experiments.convex import SETTINGS, convex_rates

ONCE = ("agd", "sgd")


def test_acceleration_and_curvature_make_slopes_steeper() -> None:
    rates = convex_rates(largest=31_623, instances=8, solvers=ONCE)
    slopes = {row.solver: row.slope.slope for row in rates.rows}
    curved = convex_rates(largest=10_000, instances=4, solvers=("phased-agd",)).rows[0].slope.slope
    assert curved < -1.3 < slopes["agd"] < slopes["sgd"] < -0.2
    for row in rates.rows:
        points = rates.points_of(row)
        assert [point.users for point in points] == [1000, 3162, 10_000, 31_623]
        assert all(0 < point.extra_mean + point.twin < point.bound for point in points)
        near = row.slope.low <= row.theory <= row.slope.high and abs(row.slope.slope - row.theory) <= 0.1
        assert (row.because is None) == near


def test_the_table_of_the_paper() -> None:
    assert [(setting.name, round(setting.theory, 3)) for setting in SETTINGS] == [
        ("convex", -0.667),
        ("convex smooth", -0.8),
        ("convex smooth", -0.5),
        ("strongly convex", -1.333),
        ("strongly convex smooth", -2.0),
        ("convex, full", -1.0),
        ("strongly convex, full", -2.0),
    ]


def test_a_second_run_goes_on(tmp_path, monkeypatch) -> None:
    cache = tmp_path / "rows.json"
    first = convex_rates(largest=10_000, instances=2, solvers=("agd",), cache=cache)
    monkeypatch.setattr(convex, "plan", None)
    assert convex_rates(largest=10_000, instances=2, solvers=("agd",), cache=cache) == first


@pytest.mark.parametrize("wrong", [{"largest": 100}, {"instances": 1}, {"seed": -1}])
def test_bad_requests(wrong) -> None:
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        convex_rates(**wrong)


def test_the_command(capsys, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(convex, "SETTINGS", tuple(each for each in SETTINGS if each.solver in ONCE))
    monkeypatch.setattr("os.cpu_count", lambda: 1)

    def run(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            cli.main(["papers", "convex", "--largest", "10000", "--instances", "3", *words])
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    picture = tmp_path / "rates.svg"
    code, out, err = run("--json", "--picture", str(picture))
    document = json.loads(out)
    assert code == 0, out
    assert err == "" and document["schema"] == 1
    assert list(document["rows"][0])[:6] == ["setting", "solver", "slope", "slope_low", "slope_high", "theory"]
    assert picture.read_bytes().startswith(b"<?xml") and (tmp_path / "rates.svg.rows.json").exists()
    code, out, _ = run("--picture", str(picture))
    assert code == 0 and "convex smooth" in out and "agd" in out and "picture:" in out and "Next:" in out
    for row in document["rows"]:
        assert (row["because"] is None) == (f"{row['solver']} has" not in out)
    for words, parameter in ((["--largest", "9"], "largest"), (["--picture", "rates.txt"], "picture")):
        code, out, _ = run(*words, "--json")
        assert code == 2 and json.loads(out)["error"]["parameter"] == parameter
