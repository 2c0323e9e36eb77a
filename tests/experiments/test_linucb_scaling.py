"""How regret grows: the local model fastest, bounds with the theory's slopes, runs that go on, and the command."""

import json

import numpy as np
import pytest

from shuffledp import cli
from shuffledp.errors import ParameterError
from shuffledp.experiments import linucb_scaling
from shuffledp.experiments.linucb_scaling import POLICIES, jackknife_slope, regret_growth, theory_of


def test_slopes_fall_with_trust(tmp_path, monkeypatch) -> None:
    cache = tmp_path / "rows.json"
    result = regret_growth(largest=10_000, instances=6, cache=cache)
    assert len(result.rows) == 9 and [slope.policy for slope in result.slopes] == list(POLICIES)
    local, one, several = result.slopes
    assert local.regret.slope > one.regret.slope and local.regret.slope > several.regret.slope
    assert local.bound.slope > one.bound.slope > several.bound.slope
    for row in result.rows:
        assert row.regret_mean < row.bound and row.instances == 6 and 0 < row.first_slot_part < 1
    for slope in result.slopes:
        differs = not slope.regret.low <= slope.theory <= slope.regret.high
        assert differs == any(sentence.startswith(f"{slope.policy}:") for sentence in result.sentences())
    # Two tasks were measured for each row; a second run measures none.
    assert len(json.loads(cache.read_text())) == 18
    monkeypatch.setattr(linucb_scaling, "run_linear_bandit", None)
    assert regret_growth(largest=10_000, instances=6, cache=cache) == result


def test_best_k_is_the_one_with_the_smallest_bound() -> None:
    names = ("concurrent", "concurrent-1", "concurrent-2", "concurrent-4")
    rows = {row.policy: row for row in regret_growth(largest=10_000, instances=2, policies=names).rows}
    assert rows["concurrent"].bound <= 1.01 * min(row.bound for row in rows.values())
    assert rows["concurrent"].shufflers > 1 and rows["concurrent-1"].shufflers == 1


def test_the_jackknife_knows_the_error() -> None:
    generator, users = np.random.default_rng(1), [10, 100, 1000]
    found = [jackknife_slope(users, np.array([3.0, 9.0, 27.0]) * generator.gamma(10, 0.1, (12, 3))) for _ in range(300)]
    covered = sum(slope.low <= np.log10(3) <= slope.high for slope in found)
    # 95% of 300 within five standard errors.
    assert 266 <= covered <= 300


def test_bad_requests() -> None:
    for wrong in ({"largest": 100}, {"largest": 10**9}, {"instances": 1}, {"seed": -1}):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            regret_growth(**wrong)
    with pytest.raises(ParameterError, match="policy must be one of"):
        theory_of("linucb")


def test_the_command(capsys, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 1)

    def run(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            cli.main(["papers", "linucb", "--scaling", "--largest", "10000", "--instances", "4", *words])
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    picture = tmp_path / "growth.svg"
    code, out, err = run("--json", "--picture", str(picture))
    document = json.loads(out)
    assert code == 0 and err == "" and len(document["rows"]) == 9 and document["notes"]
    outside = [
        slope for slope in document["slopes"] if not slope["slope_low"] <= slope["theory"] <= slope["slope_high"]
    ]
    assert len(document["notes"]) == (len(outside) + 1 if outside else 0)
    assert document["slopes"][0].keys() >= {"policy", "theory", "slope", "slope_low", "slope_high", "bound_slope"}
    assert picture.read_bytes().startswith(b"<?xml") and (tmp_path / "growth.svg.rows.json").exists()
    code, out, _ = run("--picture", str(picture))
    assert code == 0 and all(word in out for word in ("shuffle-vec", "last decade", "worst case", "picture:", "Next:"))
    for words, parameter in (
        (["--figure", "1"], "figure"),
        (["--seed", "-1"], "seed"),
        (["--picture", "a"], "picture"),
    ):
        code, out, _ = run(*words, "--json")
        assert code == 2 and json.loads(out)["error"]["parameter"] == parameter
    with pytest.raises(SystemExit):
        cli.main(["papers", "linucb", "--largest", "10000", "--json"])
    assert json.loads(capsys.readouterr()[0])["error"]["parameter"] == "largest"
