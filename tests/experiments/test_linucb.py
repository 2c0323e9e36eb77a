"""The linear bandits' figures: their order, rows that come back from the cache, and a picture."""

import json
from functools import partial

import pytest

from shuffledp import cli
from shuffledp.errors import ParameterError
from shuffledp.experiments import linucb
from shuffledp.experiments.linucb import figure_tasks, linucb_figure


def test_the_order_of_trust_models() -> None:
    curators, names = ("jdp-buffers", "jdp-sqrt"), ("linucb", "concurrent-4", "independent-4", "shuffle-vec", "ldp")
    tasks = figure_tasks(1, instances=12, users=8000, policies=(*curators, *names))
    rows = {
        row.policy: row.regret_mean for row in linucb_figure([task for task in tasks if task.epsilon in (None, 1.0)])
    }
    regrets = [rows[name] for name in names]
    assert regrets == sorted(regrets) and regrets[0] < min(rows[name] for name in curators)
    # The best curator has the same factorization, and hardly less regret.
    assert regrets[1] < 0.5 * regrets[3] and regrets[1] < 1.1 * min(rows[name] for name in curators)


def test_a_second_run_goes_on(tmp_path) -> None:
    tasks = figure_tasks(2, instances=2, users=300, policies=("linucb", "shuffle-vec"))
    assert [task.dimension for task in tasks] == [10] * 4 + [15] * 4
    cache, told = tmp_path / "rows.json", []
    first = linucb_figure(tasks[:5], cache=cache, progress=lambda done, total: told.append(done / total))
    assert len(told) == 5 and told[-1] == 1.0
    again = linucb_figure(tasks, cache=cache)
    assert again[:5] == first and len(json.loads(cache.read_text())) == 8
    cache.write_text("{")
    with pytest.raises(ParameterError, match="cache must hold rows"):
        linucb_figure(tasks, cache=cache)


def test_bad_requests() -> None:
    for wrong in ({"figure": 3}, {"instances": 1}, {"seed": -1}):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            figure_tasks(**{"figure": 1, "instances": 2, **wrong})


def test_the_command(capsys, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(linucb, "figure_tasks", partial(figure_tasks, users=400))
    monkeypatch.setattr("os.cpu_count", lambda: 1)

    def run(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            cli.main(["papers", "linucb", "--instances", "2", *words])
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    picture = tmp_path / "regret.svg"
    code, out, err = run("--json", "--picture", str(picture))
    rows = json.loads(out)["rows"]
    assert code == 0 and err == "" and len(rows) == 26
    assert list(rows[0])[:7] == [
        "policy",
        "epsilon",
        "dimension",
        "instances",
        "regret_mean",
        "regret_standard_error",
        "seconds",
    ]
    assert picture.read_bytes().startswith(b"<?xml") and (tmp_path / "regret.svg.rows.json").exists()
    code, out, _ = run("--picture", str(picture))
    assert code == 0 and "concurrent-4" in out and "picture:" in out
    assert run("--figure", "3", "--json")[0] == 2
