"""Intervals of what another policy would have earned: how often they hold where the truth is known, and how wide."""

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from report import figure, report

from shuffledp.errors import DataError
from shuffledp.learn.bandits.replay import LoggedRounds, ReplayEstimate
from shuffledp.randomness import RandomBits

CONTEXTS = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
NOMINAL, LEAST = 0.95, 0.93


@dataclass(frozen=True, eq=False)
class World:
    """Four contexts, equally likely: the mean reward and the log's probability of each arm in each."""

    name: str
    means: np.ndarray
    shares: np.ndarray
    rounds: int
    is_click: bool = True

    @property
    def smallest(self) -> float:
        return float(self.shares.min())

    @property
    def target(self) -> np.ndarray:
        """The best arm of each context: the policy that is evaluated."""
        return self.means.argmax(axis=1)

    @property
    def truth(self) -> float:
        return float(self.means.max(axis=1).mean())

    def log(self, generator: np.random.Generator) -> LoggedRounds:
        kinds = generator.integers(0, 4, self.rounds)
        taken = (generator.random((self.rounds, 1)) > np.cumsum(self.shares[kinds], axis=1)).sum(axis=1)
        taken = np.minimum(taken, self.means.shape[1] - 1)
        means = self.means[kinds, taken]
        rewards = generator.random(self.rounds) < means if self.is_click else generator.beta(8 * means, 8 - 8 * means)
        return LoggedRounds.of(CONTEXTS[kinds], taken, rewards, self.shares[kinds, taken], arms=self.means.shape[1])


def kinds_of(contexts: np.ndarray) -> np.ndarray:
    """The number of each context."""
    return (contexts @ [1, 2]).astype(np.int64)


def worlds() -> list[World]:
    """Common and rare clicks and fractions, logged evenly and by skewed probabilities, in lines and not."""
    # In lines: a + b x1 + c x2 for each of five arms.
    lines = np.array([[0.3, 0.2, 0.1], [0.2, 0.3, -0.1], [0.5, -0.3, 0.1], [0.1, 0.1, 0.5], [0.4, 0.0, 0.0]])
    straight = np.hstack([np.ones((4, 1)), CONTEXTS]) @ lines.T
    # Not in lines: the exclusive or of the two features.
    bent = np.where(np.arange(5) % 2 == (CONTEXTS.sum(axis=1) % 2)[:, np.newaxis], 0.6, 0.2)
    even, skewed = np.full((4, 5), 0.2), np.tile([0.9, 0.04, 0.03, 0.02, 0.01], (4, 1))
    skewed = np.stack([np.roll(row, place) for place, row in enumerate(skewed)])
    return [
        World("even", straight, even, 400),
        World("skewed", straight, skewed, 4000),
        World("rare clicks", straight / 50, even, 4000),
        World("rare clicks, skewed", straight / 50, skewed, 10_000),
        World("few rare clicks", straight / 50, even, 300),
        World("fractions, skewed", straight, skewed, 4000, is_click=False),
        World("no lines, skewed", bent, skewed, 4000),
    ]


class Learner:
    """Takes the arm with the best mean in a context so far, or any with probability 1/5; it learns as it is told."""

    def __init__(self, world: World, seed: int) -> None:
        self.world, self.generator = world, np.random.default_rng((seed, 7))
        self.sums, self.counts = np.zeros(world.means.shape), np.zeros(world.means.shape)
        self.worth: list[float] = []

    def choose(self, contexts: np.ndarray) -> np.ndarray:
        kinds = kinds_of(contexts)
        greedy = ((self.sums + 0.5) / (self.counts + 1)).argmax(axis=1)
        self.expected = float(
            (0.8 * self.world.means[np.arange(4), greedy] + 0.2 * self.world.means.mean(axis=1)).mean()
        )
        any_arm = self.generator.integers(0, 5, len(kinds))
        return np.where(self.generator.random(len(kinds)) < 0.2, any_arm, greedy[kinds])

    def learn(self, context: np.ndarray, arm: int, reward: float) -> None:
        # What the next round was worth on average, as it was known before it.
        self.worth.append(self.expected)
        kind = int(kinds_of(context[np.newaxis])[0])
        self.sums[kind, arm] += reward
        self.counts[kind, arm] += 1


Estimator = Callable[[World, LoggedRounds, int], tuple[ReplayEstimate, float]]


def _fixed(estimate: Callable[[LoggedRounds, Callable, World, int], ReplayEstimate]) -> Estimator:
    def run(world: World, log: LoggedRounds, seed: int) -> tuple[ReplayEstimate, float]:
        target = world.target
        return estimate(log, lambda contexts: target[kinds_of(contexts)], world, seed), world.truth

    return run


def _learning(world: World, log: LoggedRounds, seed: int) -> tuple[ReplayEstimate, float]:
    learner = Learner(world, seed)
    found = log.by_rejection(learner.choose, bits=RandomBits.seeded(seed), smallest=world.smallest, learn=learner.learn)
    return found, float(np.mean(learner.worth))


ESTIMATORS: dict[str, Estimator] = {
    "rejection": _fixed(
        lambda log, best, world, seed: log.by_rejection(best, bits=RandomBits.seeded(seed), smallest=world.smallest)
    ),
    "rejection, learning": _learning,
    "inverse propensity": _fixed(lambda log, best, world, seed: log.by_inverse_propensity(best)),
    "inverse propensity, smallest known": _fixed(
        lambda log, best, world, seed: log.by_inverse_propensity(best, smallest=world.smallest)
    ),
    "normalized": _fixed(
        lambda log, best, world, seed: log.by_inverse_propensity(best, normalized=True, smallest=world.smallest)
    ),
    "doubly robust": _fixed(lambda log, best, world, seed: log.by_doubly_robust(best, smallest=world.smallest)),
    "direct": _fixed(lambda log, best, world, seed: log.by_direct_method(best)),
}


def coverage(world: World, name: str, trials: int, seed: int = 1) -> tuple[float, float, float, int]:
    """How often the interval holds, that of plus and minus two standard errors, its width in those, and refusals."""
    held, usual, widths, refused = 0, 0, [], 0
    for trial in range(trials):
        log = world.log(np.random.default_rng((seed, trial)))
        try:
            found, truth = ESTIMATORS[name](world, log, trial)
        except DataError:
            refused += 1
            continue
        held += found.low <= truth <= found.high
        usual += abs(found.value - truth) <= 1.96 * found.standard_error
        widths.append((found.high - found.low) / (2 * 1.96 * found.standard_error))
    done = max(1, trials - refused)
    return held / done, usual / done, float(np.mean(widths)) if widths else math.nan, refused


def measured(trials: int) -> list[dict]:
    """All estimators in all worlds."""
    rows = []
    for world in worlds():
        for name in ESTIMATORS:
            count = max(100, trials // 8) if "learning" in name else trials
            held, usual, width, refused = coverage(world, name, count)
            note = f"{world.rounds} rounds; two errors {usual:.1%}; {width:.2f} times as wide; {refused} refused"
            if name == "direct" and world.name.startswith("no lines"):
                # The direct method's interval is for lines that are right, and says so.
                rows.append(figure(f"{world.name}: {name} is not to hold", held, "<=", 0.5, note))
                continue
            rows.append(figure(f"{world.name}: {name} holds", held, ">=", LEAST, note))
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer logs")
    sys.exit(report("Off-policy intervals", measured(100 if parser.parse_args().quick else 1000)))
