"""Private policies on a log: the law that they have live, values that are right, and logs that are refused in words."""

import json
from pathlib import Path

import numpy as np
import pytest

from shuffledp import cli
from shuffledp.errors import DataError, ParameterError
from shuffledp.experiments import linucb_log
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.learn.bandits.open_bandit import OpenBanditLog, from_feedback
from shuffledp.learn.bandits.replay import LoggedRounds
from shuffledp.privacy import Privacy
from shuffledp.references.bandits.catalogue import linear_policy
from shuffledp.simulation.environments import linear_logs
from shuffledp.simulation.environments.linear_logs import disjoint_features, evaluate_policies, users_of
from shuffledp.simulation.environments.linear_runs import run_linear_bandit

ARMS = np.array([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5], [0.7, 0.0]])
THETA = np.array([0.8, 0.2])
MEANS = ARMS @ THETA
SHARES = np.array([0.1, 0.5, 0.2, 0.2])
LOGS = 30


def logged(rounds: int, seed: int = 1) -> LoggedRounds:
    generator = np.random.default_rng(seed)
    taken = generator.choice(4, rounds, p=SHARES)
    return LoggedRounds.of(np.ones((rounds, 1)), taken, generator.random(rounds) < MEANS[taken], SHARES[taken], arms=4)


def features(contexts: np.ndarray) -> np.ndarray:
    return np.broadcast_to(ARMS, (len(contexts), *ARMS.shape))


class SameArms:
    """The world that the log is of."""

    def offer(self, users: int, generator: np.random.Generator) -> np.ndarray:
        return np.broadcast_to(ARMS, (users, *ARMS.shape))

    def means(self, offered: np.ndarray) -> np.ndarray:
        return offered @ THETA


@pytest.mark.parametrize("name", ["linucb", "shuffle-vec", "thompson-shuffle-vec"])
def test_a_log_gives_what_the_world_gives(name: str) -> None:
    setting, privacy = LinearSetting(users=120, dimension=2, nonnegative=True), Privacy(4, 0.01)
    policy = linear_policy(name, setting, privacy, batch=30)
    live = run_linear_bandit(policy, SameArms(), seed=1, instances=200).final
    asked = {"privacy": privacy, "smallest": 0.1, "features": features, "policies": (name,), "batch": 30}
    found = [evaluate_policies(logged(1900, seed), setting, seed=seed, **asked)[0] for seed in range(LOGS)]
    assert all(value.estimate.used == 120 and value.slot_users == policy.slot_users for value in found)
    earned = np.array([value.rewards.sum() for value in found])
    # The mean reward of the best arm, less the regret: six standard errors of both, a false alarm of 2e-9.
    expected = 120 * MEANS.max() - live.mean()
    width = 6 * np.sqrt(earned.var() / len(earned) + live.var() / len(live))
    assert abs(earned.mean() - expected) < width < 0.2 * expected
    if "thompson" not in name:
        return
    # A twin that keeps every agreement, whatever its propensity, meets too many who were shown the commonest arm.
    twin = []
    for seed in range(LOGS):
        log = logged(1900, seed)
        object.__setattr__(log, "propensities", np.full(1900, 0.1))
        twin.append(evaluate_policies(log, setting, seed=seed, **asked)[0].rewards.sum())
    assert expected - np.mean(twin) > width


def test_noise_is_that_of_the_plan(monkeypatch) -> None:
    privacy, told = Privacy(4, 0.01), []
    original = linear_logs.linear_policy

    def spied(*words, **options):
        policy = original(*words, **options)
        rule = policy.model_rule
        monkeypatch.setattr(type(rule), "model", lambda self, *sums: told.append(sums) or original_model(self, *sums))
        return policy

    from shuffledp.learn.bandits.linear.confidence import ConfidenceRule

    original_model = ConfidenceRule.model
    monkeypatch.setattr(linear_logs, "linear_policy", spied)
    log = logged(4000)
    evaluate_policies(log, privacy=privacy, smallest=0.1, features=features, policies=("shuffle-vec",))
    matrices = [sums[0] for sums in told]
    users = users_of(log, 0.1)
    assert len(told) == users // 20 + 1 and (matrices[0] == 0).all()
    # All 20 users of a slot take one arm: without noise a step is that of one of the four, but for rounding.
    steps = np.diff([matrix[0] for matrix in matrices], axis=0)
    exact = 20 * np.einsum("ad,ae->ade", ARMS, ARMS)
    nearest = np.linalg.norm(steps[:, np.newaxis] - exact, axis=(2, 3)).min(axis=1)
    assert np.median(nearest) > 0.5


def test_who_cannot_be_planned_for_says_why() -> None:
    found = evaluate_policies(logged(900), privacy=Privacy(0.01, 1e-6), smallest=0.1, features=features)
    refused = {value.policy: value.refused for value in found if value.estimate is None}
    assert "concurrent-4" in refused and "users" in refused["concurrent-4"]
    assert {"linucb", "thompson"} <= {value.policy for value in found if value.estimate is not None}


def test_bad_requests_are_refused_in_words() -> None:
    log, privacy = logged(500), Privacy(1, 1e-6)
    with pytest.raises(DataError, match=r"features must be of shape \(1, 4, 3\), got shape \(1, 3, 3\)"):
        evaluate_policies(log, privacy=privacy, smallest=0.1, features=lambda rows: np.zeros((len(rows), 3, 3)))
    with pytest.raises(ParameterError, match="dimension must be 2 as the features"):
        setting = LinearSetting(users=20, dimension=3)
        evaluate_policies(log, setting, privacy=privacy, smallest=0.1, features=features)
    with pytest.raises(DataError, match="features must have at most 200 numbers"):
        wide = LoggedRounds.of(np.zeros((5, 60)), np.zeros(5), np.zeros(5), np.full(5, 0.5), arms=4)
        evaluate_policies(wide, privacy=privacy, smallest=0.5)
    with pytest.raises(ParameterError, match="smallest"):
        evaluate_policies(log, privacy=privacy, smallest=0.3, features=features)
    with pytest.raises(DataError, match="features must be no longer than 1"):
        evaluate_policies(log, privacy=privacy, smallest=0.1, features=lambda rows: 2 * features(rows))
    with pytest.raises(ParameterError, match=r"world must have the methods offer.* got object: add offer and means"):
        run_linear_bandit(linear_policy("linucb", LinearSetting(users=9, dimension=2), privacy), object(), seed=1)
    with pytest.raises(ParameterError, match="policy must be one of"):
        evaluate_policies(log, privacy=privacy, smallest=0.1, features=features, policies=("thompson-thompson",))
    assert disjoint_features(np.zeros((2, 1)), 3).shape == (2, 3, 6)


HEADER = ",timestamp,item_id,position,click,propensity_score,user_feature_0,user-item_affinity_0,user-item_affinity_1"


def open_bandit(folder: Path, header: str = HEADER) -> Path:
    """A file as the Open Bandit Dataset has them, with two items."""
    generator, lines = np.random.default_rng(1), [header]
    for row in range(400):
        item, place = generator.integers(0, 2), generator.integers(1, 4)
        click = int(generator.random() < 0.2 + 0.5 * item)
        word = "ab"[row % 2] * 8
        lines.append(f"{row},2019-11-24 00:00:{row % 60:02d}+00:00,{item},{place},{click},0.5,{word},0.{row % 7},1.5")
    (folder / "all.csv").write_text("\n".join(lines) + "\n")
    (folder / "item_context.csv").write_text(",item_id,item_feature_0,item_feature_1\n0,0,-0.5,c1\n1,1,0.75,c2\n")
    return folder / "all.csv"


def test_the_open_bandit_format_is_read(tmp_path: Path) -> None:
    path = open_bandit(tmp_path)
    dataset = OpenBanditLog.read(path)
    assert dataset.log.arms == 2 and dataset.log.rounds == 400 and (dataset.log.propensities == 0.5).all()
    assert dataset.columns == (
        "user-item_affinity_0",
        "user-item_affinity_1",
        "user_feature_0=aaaaaaaa",
        "user_feature_0=bbbbbbbb",
    )
    found = dataset.features(dataset.log.contexts[3:4]) * np.sqrt(3)
    assert np.allclose(found, [[[1, 0.3, -0.5], [1, 1, 0.75]]])
    assert 0 < OpenBanditLog.read(path, position=3).log.rounds < 400
    with pytest.raises(DataError, match=r"position must be one of all\.csv, got 9"):
        OpenBanditLog.read(path, position=9)
    with pytest.raises(DataError, match="propensity_score must say with which probability each item was shown"):
        OpenBanditLog.read(open_bandit(tmp_path, HEADER.replace("propensity_score", "score")))
    with pytest.raises(DataError, match="pscore must be an entry of the feedback, got none"):
        from_feedback({"context": [[1.0]], "action": [0], "reward": [1], "n_actions": 1})


@pytest.fixture
def run(capsys, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    monkeypatch.setattr(
        linucb_log.policies_on_log, "__kwdefaults__", {**linucb_log.policies_on_log.__kwdefaults__, "policies": NAMES}
    )

    def call(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            cli.main(["papers", "linucb", *words])
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return call


NAMES = ("linucb", "thompson", "concurrent-4", "shuffle-vec")


def test_the_command(run, tmp_path) -> None:
    path = open_bandit(tmp_path)
    table, picture = tmp_path / "values.csv", tmp_path / "values.svg"
    code, out, _ = run(str(path), "--epsilon", "0.05", "--csv", str(table), "--picture", str(picture))
    assert code == 0 and "thompson" in out and "The log itself" in out and "concurrent-4: users" in out
    assert picture.read_bytes()[:5] == b"<?xml"
    assert table.read_text().splitlines()[0] == "policy,value,low,high,users,slot_users,epsilon,delta,refused"
    code, out, err = run(str(path), "--json")
    document = json.loads(out)
    assert code == 0 and err == "" and [row["policy"] for row in document["rows"]] == list(NAMES)
    assert document["logged"]["low"] < document["logged"]["value"] < document["logged"]["high"]


def test_a_file_of_ones_own_and_what_is_missing(run, tmp_path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    log, path = logged(2000), tmp_path / "log.parquet"
    columns = {"one": log.contexts[:, 0], "arm": log.taken, "reward": log.rewards, "propensity": log.propensities}
    pq.write_table(pa.table(columns), path)
    code, _, err = run(str(path))
    assert code == 2 and "smallest must be named for a log with propensities from 0.1 to 0.5" in err
    code, out, _ = run(str(path), "--smallest", "0.1", "--json")
    assert code == 0 and json.loads(out)["rows"][0]["value"] > 0.3
    for words, said in (
        ((str(path), "--figure", "1"), "figure is for worlds, not for a log"),
        (("--smallest", "0.1"), "smallest is for a log"),
    ):
        code, _, err = run(*words)
        assert code == 2 and said in err
    path.with_name("bare.csv").write_text("one,arm,reward\n1,0,1\n")
    code, _, err = run(str(path.with_name("bare.csv")))
    assert code == 2 and "propensity must say with which probability" in err
