"""Replaying a log: estimates that agree with the truth, and logs that are refused in words."""

from pathlib import Path

import numpy as np
import pytest

from shuffledp.errors import DataError, ParameterError
from shuffledp.learn.bandits.replay import LoggedRounds
from shuffledp.randomness import RandomBits

ARMS = 3
# Six standard errors: a false alarm of 2e-9.
WIDTH = 6.0


def logged(rounds: int, seed: int = 1) -> tuple[LoggedRounds, float]:
    """A log of a policy that is not uniform, and the true value of taking the best arm."""
    generator = np.random.default_rng(seed)
    contexts = generator.random((rounds, 2))
    shares = np.where(contexts[:, :1] > 0.5, [[0.6, 0.3, 0.1]], [[0.2, 0.3, 0.5]])
    taken = (generator.random((rounds, 1)) > np.cumsum(shares, axis=1)).sum(axis=1)
    means = np.stack([contexts[:, 0], contexts[:, 1], np.full(rounds, 0.4)], axis=1)
    rewards = generator.random(rounds) < means[np.arange(rounds), taken]
    log = LoggedRounds.of(contexts, taken, rewards, shares[np.arange(rounds), taken], arms=ARMS)
    return log, float(means[np.arange(rounds), best(contexts)].mean())


def best(contexts: np.ndarray) -> np.ndarray:
    return np.stack([contexts[:, 0], contexts[:, 1], np.full(len(contexts), 0.4)], axis=1).argmax(axis=1)


def test_three_estimates_of_one_value() -> None:
    log, truth = logged(40_000)
    found = [
        log.by_rejection(best, bits=RandomBits.seeded(1), smallest=0.1),
        log.by_inverse_propensity(best),
        log.by_inverse_propensity(best, normalized=True),
    ]
    for estimate in found:
        assert abs(estimate.value - truth) < WIDTH * estimate.standard_error, estimate
        assert 0 < estimate.used < estimate.rounds == 40_000
    assert found[2].standard_error < found[1].standard_error < found[0].standard_error
    # A twin that forgets the propensities must fail.
    agree = best(log.contexts) == log.taken
    naive = float((agree * log.rewards).mean() * ARMS)
    assert abs(naive - truth) > WIDTH * found[1].standard_error


def test_a_policy_that_learns_is_told_the_rounds_that_it_agreed_with() -> None:
    log, _ = logged(3000)
    told: list[tuple[int, float]] = []
    estimate = log.by_rejection(
        lambda contexts: np.full(len(contexts), 2 if len(told) < 50 else 0),
        bits=RandomBits.seeded(2),
        smallest=0.1,
        learn=lambda context, arm, reward: told.append((arm, reward)),
    )
    assert estimate.used == len(told) > 100
    assert {arm for arm, _ in told[:50]} == {2} and {arm for arm, _ in told[50:]} == {0}


def test_standard_errors_are_honest() -> None:
    values = [logged(400, seed)[0].by_inverse_propensity(best) for seed in range(200)]
    spread = np.std([estimate.value for estimate in values], ddof=1)
    said = np.mean([estimate.standard_error for estimate in values])
    assert 0.75 < spread / said < 1.3


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"log.{kind}"
    columns = {"age": [0.1, 0.9, 0.4], "arm": [0, 1, 2], "reward": [1.0, 0.0, 0.5], "propensity": [0.5, 0.25, 1.0]}
    if kind == "csv":
        lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
        path.write_text("\n".join(lines) + "\n")
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table(columns), path)
    log = LoggedRounds.read(path, ["age"], arms=3)
    assert log.taken.tolist() == [0, 1, 2] and log.contexts.shape == (3, 1)
    with pytest.raises(DataError, match=r"column must be a column of .*, got height: it has age, arm"):
        LoggedRounds.read(path, ["height"], arms=3)
    with pytest.raises(DataError, match=r"arm must be one of 0\.\.1, got something else in row 3"):
        LoggedRounds.read(path, ["age"], arms=2)


def test_bad_logs_are_refused_in_words() -> None:
    with pytest.raises(DataError, match=r"propensity must lie in \[1e-09, 1\], got something else in row 1"):
        LoggedRounds.of([[1.0]], [0], [1], [0], arms=1)
    # One round would outweigh all others, or everything would overflow.
    for reward, propensity in ((1, 5e-324), (1, 1e-10), (1, 1.5), (1e308, 0.5)):
        with pytest.raises(DataError, match=r"reward must be finite|propensity must lie in"):
            LoggedRounds.of([[1.0]], [0], [reward], [propensity], arms=1)
    good = {"contexts": [[0.1], [0.2]], "taken": [0, 1], "rewards": [1, 0], "propensities": [0.5, 0.5], "arms": 2}
    for wrong in (
        {"arms": 2.5},
        {"arms": "2"},
        {"taken": ["a", "b"]},
        {"propensities": [0.5j, 1]},
        {"contexts": [[0.1], [0.2, 3]]},
    ):
        with pytest.raises(ParameterError, match="must be a"):
            LoggedRounds.of(**{**good, **wrong})
    with pytest.raises(DataError, match="reward must be finite"):
        LoggedRounds.of([[1.0]], [0], [np.nan], [1], arms=1)
    with pytest.raises(DataError, match="as many of each"):
        LoggedRounds.of([[1.0]], [0, 0], [1], [1], arms=1)
    with pytest.raises(ParameterError, match="arms"):
        LoggedRounds.of([[1.0]], [0], [1], [1], arms=0)
    log = LoggedRounds.of([[1.0]] * 3, [0] * 3, [1] * 3, [0.5] * 3, arms=2)
    with pytest.raises(DataError, match="must agree with the policy"):
        log.by_rejection(lambda contexts: np.ones(len(contexts), dtype=int), bits=RandomBits.seeded(1), smallest=0.5)
    with pytest.raises(DataError, match="policy agrees"):
        log.by_inverse_propensity(lambda contexts: np.ones(len(contexts), dtype=int), normalized=True)
    with pytest.raises(ParameterError, match="choose"):
        log.by_inverse_propensity(lambda contexts: np.full(len(contexts), 2))
    with pytest.raises(ParameterError, match="one arm a context"):
        log.by_inverse_propensity(lambda contexts: np.zeros(2))


def test_a_known_smallest_probability_removes_the_bias_of_short_logs() -> None:
    # Arm 1 had probability 0.2, arm 0 the rest. In three rounds the rare arm is often missing.
    # A twin takes the least that it sees, and then keeps the common arm too often.
    generator, kept = np.random.default_rng(1), {None: [], 0.2: []}
    for trial in range(4000):
        taken = (generator.random(6) < 0.2).astype(int)
        log = LoggedRounds.of(np.zeros((6, 1)), taken, taken, np.where(taken, 0.2, 0.8), arms=2)
        for smallest, found in kept.items():
            try:
                estimate = log.by_rejection(
                    lambda contexts: np.zeros(len(contexts), dtype=int),
                    bits=RandomBits.seeded(trial),
                    smallest=float(log.propensities.min()) if smallest is None else smallest,
                )
            except DataError:
                found.append(0)
            else:
                found.append(estimate.used)
    # Each round is kept with probability 0.2; estimates need two, so 0 and 1 count as 0.
    wanted = 6 * 0.2 - 6 * 0.2 * 0.8**5
    spread = 5 * np.std(kept[0.2]) / np.sqrt(4000)
    assert abs(np.mean(kept[0.2]) - wanted) < spread < np.mean(kept[None]) - wanted
    for wrong in (0.9, 0, "a", None):
        with pytest.raises(ParameterError, match="smallest"):
            log.by_rejection(
                lambda contexts: np.zeros(len(contexts), dtype=int), bits=RandomBits.seeded(1), smallest=wrong
            )
    with pytest.raises(DataError, match="context must be finite, got a number in row 2"):
        LoggedRounds.of([[0.0], [np.nan]], [0, 1], [1, 1], [0.5, 0.5], arms=2)


def test_a_log_without_propensities_or_beyond_its_range_is_refused_in_words(tmp_path: Path) -> None:
    good = {"contexts": [[0.1], [0.2]], "taken": [0, 1], "rewards": [1, 0], "propensities": [0.5, 0.5], "arms": 2}
    with pytest.raises(DataError, match=r"propensity must say with which probability each arm was taken, got none"):
        LoggedRounds.of(**{**good, "propensities": None})
    path = tmp_path / "log.csv"
    path.write_text("age,arm,reward\n0.1,0,1\n0.2,1,0\n")
    with pytest.raises(DataError, match=r"got no column propensity in log\.csv: log it when choosing"):
        LoggedRounds.read(path, ["age"], arms=2)
    path.write_text("age,arm,reward,propensity\n1,0,,0.5\n2,1,1,0.5\n")
    with pytest.raises(
        DataError, match=r"reward of log.csv must have a value in every row, .*: leave those rounds out"
    ):
        LoggedRounds.read(path, ["age"], arms=2)
    with pytest.raises(DataError, match=r"reward must lie in \[0, 1\], the declared range, got .* in row 1"):
        LoggedRounds.of(**{**good, "rewards": [3, 0]})
    with pytest.raises(ParameterError, match="highest must be above lowest"):
        LoggedRounds.of(**good, lowest=1, highest=1)
    log = LoggedRounds.of(**{**good, "rewards": [3, -1]}, lowest=-2, highest=4)
    found = log.by_inverse_propensity(lambda contexts: np.arange(2))
    assert log.span == 6 and found.value == 2 and -2 <= found.low < 2 < found.high <= 4
    with pytest.raises(ParameterError, match="confidence"):
        log.by_inverse_propensity(lambda contexts: np.arange(2), confidence=1.5)
    with pytest.raises(DataError, match="got 1 rounds of arm 0: log more"):
        log.by_direct_method(lambda contexts: np.arange(2))


def test_features_of_which_one_in_a_group_is_always_1_have_a_direct_value_and_unseen_ones_have_none() -> None:
    """As in the Open Bandit Dataset: one-hot features beside a constant, whose lines are many and say the same."""
    rng = np.random.default_rng(5)
    kind, taken = rng.integers(0, 3, 900), rng.integers(0, 2, 900)
    rewards = np.array([0.2, 0.5, 0.8])[kind] * (1 + taken) / 2
    log = LoggedRounds.of(np.eye(3)[kind], taken, rewards, np.full(900, 0.5), arms=2)
    found = log.by_direct_method(lambda contexts: np.ones(len(contexts), dtype=np.int64))
    assert found.value == pytest.approx(np.array([0.2, 0.5, 0.8])[kind].mean())
    alone = log.contexts[:, 2] == 1
    unseen = LoggedRounds.of(log.contexts, np.where(alone, 0, taken), rewards, np.full(900, 0.5), arms=2)
    with pytest.raises(DataError, match="must fit a line of 4 numbers"):
        unseen.by_direct_method(lambda contexts: np.ones(len(contexts), dtype=np.int64))
    # Where the policy takes the arm in contexts of the other kinds only, those say enough.
    found = unseen.by_direct_method(lambda contexts: np.where(contexts[:, 2] == 1, 0, 1))
    assert found.value == pytest.approx(np.array([0.2, 0.5, 0.4])[kind].mean(), abs=0.1)
