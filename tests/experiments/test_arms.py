"""What private arms cost: the growth of the extra regret, and who is better where."""

import json

import pytest

from shuffledp.errors import ParameterError
from shuffledp.experiments.arms import ExtraTask, arms_regret


@pytest.fixture(scope="module")
def result():
    return arms_regret(arms=5, largest=100_000, instances=60, seed=1)


def test_every_policy_has_a_row(result) -> None:
    assert {row.horizon for row in result.rows} == {10_000, 31_623, 100_000}
    names = {row.policy for row in result.rows if row.epsilon == 1.0}
    assert names >= {"doubling", "doubling paper", "growing 1.25", "fixed 100", "curator", "curator 1.25", "local"}
    free = {row.policy for row in result.rows if row.epsilon is None}
    assert free == {"non-private", "non-private doubling", "ucb1", "thompson"}
    assert not any(row.policy == "doubling paper" for row in result.rows if row.epsilon == 10)


def test_privacy_costs_less_than_the_local_model_and_the_papers_constants(result) -> None:
    found = {(row.policy, row.epsilon): row.regret_mean for row in result.rows if row.horizon == 100_000}
    for epsilon in (0.2, 1.0):
        ours = found["doubling", epsilon]
        assert 0.9 * found["non-private doubling", None] < ours < found["local", epsilon] / 1.5
        assert ours < found["doubling paper", epsilon] / 2
        # The curator's batches may grow as slowly as ours: shuffling then costs no regret either.
        assert found["curator 1.25", epsilon] == pytest.approx(found["growing 1.25", epsilon], rel=0.15)
    # What privacy costs is said of elimination: without it, sampling has less than half the regret.
    assert found["thompson", None] < 0.6 * found["non-private", None]
    assert result.best_fixed(1.0, 100_000).regret_mean > 0.7 * found["doubling", 1.0]


def test_the_extra_regret_grows_as_the_theorem_says(result) -> None:
    found = {row.against: row for row in result.exponents}
    assert found.keys() == {"arms", "log horizon", "1 / epsilon"}
    for row in found.values():
        assert row.low < row.exponent < row.high and 0.7 < row.exponent < 1.4


def test_small_gaps_cost_no_more_than_the_theorem() -> None:
    row = ExtraTask(arms=3, horizon=10**6, epsilon=2.0, instances=100, seed=1).run()
    assert row.extra_mean < 2 * 14 / 2.0 * 3


def test_a_second_run_goes_on(tmp_path, monkeypatch) -> None:
    cache, told = tmp_path / "rows.json", []
    asked = {"arms": 3, "largest": 100_000, "instances": 4, "epsilons": (1.0,), "cache": cache}
    first = arms_regret(progress=lambda done, total: told.append(done / total), **asked)
    assert told == sorted(told) and told[-1] == 1.0
    # What stopped half way: some rows of both kinds are missing.
    kept = json.loads(cache.read_text())
    cache.write_text(json.dumps(dict(list(kept.items())[::2])))
    again = arms_regret(**asked)
    assert again.extra == first.extra and again.exponents == first.exponents
    assert [row.regret_mean for row in again.rows] == [row.regret_mean for row in first.rows]
    monkeypatch.setattr("shuffledp.experiments.arms.simulate_arms", None)
    assert arms_regret(**asked) == again
    for broken in ("{", "[]", json.dumps(dict.fromkeys(kept, 1))):
        cache.write_text(broken)
        with pytest.raises(ParameterError, match="cache must hold rows"):
            arms_regret(**asked)


@pytest.mark.parametrize(
    "asked", [{"arms": 1}, {"instances": 1}, {"largest": 10}, {"seed": -1}], ids=lambda asked: next(iter(asked))
)
def test_bad_input_is_named(asked) -> None:
    with pytest.raises(ParameterError) as error:
        arms_regret(**asked)
    assert error.value.parameter == next(iter(asked))
