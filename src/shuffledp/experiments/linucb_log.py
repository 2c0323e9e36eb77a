"""Every linear policy on a log of one's own, or of the Open Bandit Dataset: what each would have earned."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shuffledp.errors import ParameterError
from shuffledp.experiments.common import Progress, check_seed
from shuffledp.learn.bandits.logged import Floats, read_rounds
from shuffledp.learn.bandits.open_bandit import OpenBanditLog, is_open_bandit
from shuffledp.learn.bandits.replay import LoggedRounds, ReplayEstimate
from shuffledp.privacy import Privacy
from shuffledp.references.bandits.catalogue import POLICIES
from shuffledp.simulation.environments.linear_logs import Features, PolicyValue, evaluate_policies
from shuffledp.tables.reading import Reading

_OWN = ("arm", "reward", "propensity")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRow:
    """One policy's mean reward a round, with the interval of this run; None where it could not be run."""

    policy: str
    value: float | None
    low: float | None
    high: float | None
    users: int
    slot_users: int
    epsilon: float | None
    delta: float | None
    refused: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogResult:
    """The whole experiment: the rewards that were logged, and every policy's."""

    rows: tuple[LogRow, ...]
    logged: ReplayEstimate
    arms: int
    dimension_of_context: int
    smallest: float
    confidence: float
    rewards: dict[str, Floats]


def read_log(path: Path, arms: int | None) -> tuple[LoggedRounds, Features | None]:
    """Read a log: the Open Bandit Dataset's by its columns, otherwise `arm`, `reward`, `propensity` and features.

    Args:
        path: CSV or Parquet.
        arms: how many there were; the largest number seen and one more if left out.
    """
    if is_open_bandit(path):
        dataset = OpenBanditLog.read(path)
        return dataset.log, dataset.features
    names = [name for name in Reading().open(path).names if name not in _OWN]
    if not names:
        raise ParameterError("file", path.name, "must have a column of features beside its arms", "add a column of 1")
    if arms is None:
        arms = int(read_rounds(path, ["arm"]).max()) + 1
    return LoggedRounds.read(path, names, arms=arms), None


def known_smallest(log: LoggedRounds, smallest: float | None) -> float:
    """The least probability that any arm ever had: what is named, or that of a log whose arms were all alike.

    Raises:
        ParameterError: arms were not all alike, and nobody said how unlike.
    """
    if smallest is not None:
        return smallest
    low, high = float(log.propensities.min()), float(log.propensities.max())
    if high - low > 1e-6 * high:
        problem = f"must be named for a log with propensities from {low:.3g} to {high:.3g}"
        raise ParameterError("smallest", "nothing", problem, "name the least that any arm ever had")
    return low


def policies_on_log(
    path: Path,
    *,
    privacy: Privacy,
    arms: int | None = None,
    smallest: float | None = None,
    seed: int = 1,
    policies: Sequence[str] = POLICIES,
    progress: Progress | None = None,
) -> LogResult:
    """Run every policy on a log's file, each with the exact noise it would have live.

    Args:
        path: CSV or Parquet; see `read_log`.
        privacy: what private policies promise.
        arms: how many there were, if the log does not show the last one.
        smallest: the least probability that any arm ever had; needless where all were alike.
        seed: of coins, draws and noise.
        policies: their names.
        progress: called with how many policies are done, and of how many.
    """
    check_seed(seed)
    log, features = read_log(path, arms)
    least = known_smallest(log, smallest)
    asked = {"privacy": privacy, "smallest": least, "features": features, "policies": policies, "seed": seed}
    found = evaluate_policies(log, progress=progress, **asked)  # type: ignore[arg-type]
    logged = log.mean_of_kept(log.rewards, learns=False)
    return LogResult(
        rows=tuple(_row(value) for value in found),
        logged=logged,
        arms=log.arms,
        dimension_of_context=log.contexts.shape[1],
        smallest=least,
        confidence=logged.confidence,
        rewards={value.policy: value.rewards for value in found if value.estimate is not None},
    )


def _row(value: PolicyValue) -> LogRow:
    estimate, guarantee = value.estimate, value.guarantee
    promise = None if guarantee is None else guarantee.privacy
    return LogRow(
        policy=value.policy,
        value=None if estimate is None else estimate.value,
        low=None if estimate is None else estimate.low,
        high=None if estimate is None else estimate.high,
        users=len(value.rewards),
        slot_users=value.slot_users,
        epsilon=None if promise is None else promise.epsilon,
        delta=None if promise is None else promise.delta,
        refused=value.refused,
    )
