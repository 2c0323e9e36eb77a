"""Private policies on logged rounds: what each would have earned, with the exact noise it would have live.

A round of the log is a policy's next user where a fair coin keeps it and the policy takes the logged arm (rejection,
Li et al. 2011): then the policy learns from just the people it would have met, slot by slot, and its releases have the
noise of its plan. Every policy meets as many, whatever it does: a round is kept with the probability `smallest`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from shuffledp.errors import DataError, InfeasibleError, ParameterError
from shuffledp.learn.bandits.linear.guarantee import LinearGuarantee
from shuffledp.learn.bandits.linear.observations import LARGEST_DIMENSION, Floats
from shuffledp.learn.bandits.linear.policy import LinearPolicy
from shuffledp.learn.bandits.linear.setting import LinearSetting, check_setting
from shuffledp.learn.bandits.replay import LoggedRounds, ReplayEstimate
from shuffledp.learn.spec import as_floats, check_number
from shuffledp.privacy import Privacy
from shuffledp.randomness import RandomBits
from shuffledp.references.bandits.catalogue import POLICIES, linear_policy

Features = Callable[[Floats], Any]
"""Features of all arms for contexts: (rounds, arms, dimension), none longer than 1."""

# The part of logs that are too short for the people planned for.
_SHORT = 0.001
_AT_A_TIME = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyValue:
    """What a policy earned on a log, or why it could not be run.

    Attributes:
        policy: its name.
        estimate: its mean reward a round, with an interval for this run; None where it was refused.
        rewards: of its users, in the order in which they came.
        slot_users: users between two releases.
        guarantee: whom it protects; None where it was refused.
        refused: why it could not be run.
    """

    policy: str
    estimate: ReplayEstimate | None
    rewards: Floats
    slot_users: int = 0
    guarantee: LinearGuarantee | None = None
    refused: str = ""


def disjoint_features(contexts: Floats, arms: int) -> Floats:
    """A block of features for each arm: 1 and the context, shortened to 1, over sqrt(2); 0 in the other arms' blocks.

    >>> disjoint_features(np.array([[3.0, 4.0]]), 2).round(2).tolist()
    [[[0.71, 0.42, 0.57, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.71, 0.42, 0.57]]]
    """
    rounds, size = contexts.shape
    short = contexts / np.maximum(1.0, np.linalg.norm(contexts, axis=1, keepdims=True))
    rows = np.hstack([np.ones((rounds, 1)), short]) / np.sqrt(2)
    found = np.zeros((rounds, arms, arms, size + 1))
    every = np.arange(arms)
    found[:, every, every] = rows[:, np.newaxis]
    return found.reshape(rounds, arms, arms * (size + 1))


def users_of(log: LoggedRounds, smallest: float) -> int:
    """How many users every policy meets at least, in all but one log of a thousand.

    >>> log = LoggedRounds.of(np.zeros((1000, 1)), np.zeros(1000), np.zeros(1000), np.full(1000, 0.5), arms=2)
    >>> users_of(log, 0.5)
    451
    """
    return int(stats.binom.ppf(_SHORT, log.rounds, smallest))


def evaluate_policies(
    log: LoggedRounds,
    setting: LinearSetting | None = None,
    *,
    privacy: Privacy,
    smallest: float,
    features: Features | None = None,
    policies: Sequence[str] = POLICIES,
    batch: int = 20,
    confidence: float = 0.95,
    seed: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> list[PolicyValue]:
    """Run every policy on a log, each with the noise of its own plan.

    Args:
        log: rounds with propensities; rewards are scaled from their declared range to [0, 1] for the policies.
        setting: users, dimension and the rest; without it, as many users as the log has for sure.
        privacy: what every private policy promises its users.
        smallest: the least probability that any arm ever had while the log was written.
        features: features of all arms for contexts; without it a block for each arm (`disjoint_features`).
        policies: names that `linear_policy` knows.
        batch: users of a batch of shuffle-vec, shuffle-amp and ldp.
        confidence: of each policy's interval, by itself.
        seed: of coins, draws and noise.
        progress: called with how many policies are done, and of how many.

    Returns:
        A value for each policy, in this order; one that cannot be planned for so few users says why.

    Raises:
        ParameterError: no policy has this name, or the setting does not fit the features.
        DataError: features have another shape, or the log leaves no user to learn from.

    >>> generator = np.random.default_rng(1)
    >>> taken, contexts = generator.integers(0, 2, 3000), generator.random((3000, 1))
    >>> paid = generator.random(3000) < np.where(taken == 1, 0.8, 0.2)
    >>> log = LoggedRounds.of(contexts, taken, paid, np.full(3000, 0.5), arms=2)
    >>> found = evaluate_policies(log, privacy=Privacy(4, 1e-3), smallest=0.5, policies=("linucb", "shuffle-vec"))
    >>> [value.policy for value in found], found[0].estimate.value > 0.7
    (['linucb', 'shuffle-vec'], True)
    """
    coins, *_ = RandomBits.seeded(seed).spawn(3)
    fair = np.flatnonzero(log.fair_rounds(bits=coins, smallest=smallest))
    offered = _Offered(log, (lambda rows: disjoint_features(rows, log.arms)) if features is None else features)
    if setting is None:
        users = users_of(log, check_number("smallest", smallest, 0, 1, "name the least that any arm ever had"))
        if users < 2:
            raise DataError("log", f"{log.rounds} rounds", "leaves no users for a policy", "log more rounds")
        setting = LinearSetting(users=users, dimension=offered.dimension, confidence=confidence)
    check_setting("setting", setting)
    if setting.dimension != offered.dimension or setting.lowest_reward != 0:
        wanted = f"must be {offered.dimension} as the features, with rewards from 0"
        raise ParameterError("dimension", setting.dimension, wanted, "make both alike")
    found = []
    for place, name in enumerate(policies):
        try:
            policy = linear_policy(name, setting, privacy, batch=min(batch, setting.users))
        except InfeasibleError as refused:
            found.append(PolicyValue(policy=name, estimate=None, rewards=np.zeros(0), refused=str(refused)))
        else:
            rewards = np.array(list(_replayed(policy, log, offered, fair, seed)))
            estimate = log.mean_of_kept(rewards, learns=True, confidence=confidence)
            told: dict[str, Any] = {"slot_users": policy.slot_users, "guarantee": policy.guarantee()}
            found.append(PolicyValue(policy=name, estimate=estimate, rewards=rewards, **told))
        if progress is not None:
            progress(place + 1, len(policies))
    return found


class _Offered:
    """Features of the arms in a log's rounds, checked."""

    def __init__(self, log: LoggedRounds, features: Features) -> None:
        self._log, self._features = log, features
        self.dimension = 0
        self.dimension = int(self.of(np.arange(1)).shape[2])
        if self.dimension > LARGEST_DIMENSION:
            problem = f"must have at most {LARGEST_DIMENSION} numbers"
            raise DataError("features", self.dimension, problem, "name features that arms share")

    def of(self, rows: NDArray[np.int64]) -> Floats:
        found = as_floats("features", self._features(self._log.contexts[rows]))
        wanted = (len(rows), self._log.arms, self.dimension or found.shape[-1])
        if found.shape != wanted:
            problem = f"must be of shape {wanted}"
            raise DataError("features", f"shape {found.shape}", problem, "give features of every arm in every round")
        return found


def _replayed(
    policy: LinearPolicy, log: LoggedRounds, offered: _Offered, fair: NDArray[np.int64], seed: int
) -> Iterator[float]:
    """The rewards of the policy's users, slot by slot, until all have come or the log ends."""
    joint, generator = policy.setting.joint, np.random.default_rng((seed, 2))
    _, bits, rounding = RandomBits.seeded(seed).spawn(3)
    shape, place = (1, joint.length), 0
    sums: NDArray[Any] = np.zeros(shape, dtype=np.int64 if policy.is_counted else np.float64)
    noise: Iterator[NDArray[Any]] = iter(())
    if policy.releases:
        noise = policy.sample_noise(shape, bits=bits, generator=generator.spawn(1)[0])
    most = max(1, _AT_A_TIME // (log.arms * joint.dimension))
    for release in range(policy.releases + 1):
        released = np.asarray((sums + next(noise)) * policy.step) if release else np.zeros(shape)
        model = policy.model_rule.model(*joint.unpack(released), release)
        users = min(policy.slot_users, policy.setting.users - release * policy.slot_users)
        while users and place < len(fair):
            rows = fair[place : place + min(most, 2 * users * log.arms)]
            arms = offered.of(rows)
            normals = generator.standard_normal((1, len(rows), model.draws))
            chosen = model.choose_each(arms[np.newaxis], normals)[0]
            met = np.flatnonzero(chosen == log.taken[rows])[:users]
            # Rounds after the slot's last user are offered anew, to the next slot's model.
            place += int(met[-1]) + 1 if len(met) == users else len(rows)
            users -= len(met)
            if len(met):
                scaled = (log.rewards[rows[met]] - log.lowest) / log.span
                vectors = joint.pack(*joint.check(arms[met, chosen[met]], scaled))
                sums += policy.to_steps(vectors, bits=rounding).sum(axis=0)
                yield from log.rewards[rows[met]].tolist()
