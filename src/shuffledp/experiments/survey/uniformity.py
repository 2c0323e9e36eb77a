"""Uniformity testing in three models: how many users tell a uniform distribution from one that is alpha away.

The shuffle's and the curator's tests are post-processings of a private histogram: the sum of squared distances from the
uniform counts. What it is under the uniform distribution is known, so that the threshold is its quantile there, found
by simulation. The distribution that is away has half of its bins higher and half lower (Paninski), in a random order.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InfeasibleError
from shuffledp.experiments.survey.measuring import Arm, Setting, fewest_users, lines_of
from shuffledp.experiments.survey.results import Line, Measured
from shuffledp.privacy import Privacy
from shuffledp.protocols.distribution_test import UniformityTest
from shuffledp.protocols.histogram import Histogram
from shuffledp.protocols.histogram.base import HistogramPlan
from shuffledp.references.curator_histogram import CuratorHistogram
from shuffledp.references.local import LocalRandomizedResponse

DISTANCE = 0.25
"""In total variation."""
TARGET = 2 / 3
"""The part of the runs, on either side, that must end with the right answer."""
_LOCAL_GROUPS = 5
_ARMS: dict[str, Arm] = {
    "local": ("local", "a noisy bit about a random half of the bins", 1.0),
    "shuffle": ("shuffle", "squares of the histogram by {}", 2 / 3),
    "central": ("central", "a curator's distance from uniform", 0.5),
    "central_histogram": ("central", "the same, of a curator's histogram", None),
}

Floats = NDArray[np.float64]


@lru_cache(maxsize=64)
def quietest_method(users: int, privacy: Privacy, bins: int) -> str:
    """The unbiased histogram with the least noise in a bin: what a sum of squares wants."""
    errors = {}
    for name, method in Histogram.methods.items():
        if method.is_unbiased and not method.keeps_zero:
            try:
                plan = method.plan(users=users, privacy=privacy, categories=bins)
            except InfeasibleError:
                continue
            errors[name] = plan.standard_error
    return min(errors, key=lambda name: errors[name])


@dataclass(frozen=True, slots=True)
class UniformityContest:
    """How a statistic is drawn in each model, for so many bins."""

    setting: Setting
    bins: int

    def _weights(self, generator: np.random.Generator, uniform: bool) -> Floats:
        signs = np.where(np.arange(self.bins) % 2 == 0, 1.0, -1.0)
        return np.asarray((1 + (0 if uniform else 2 * DISTANCE) * generator.permutation(signs)) / self.bins)

    def _drawn(
        self, generator: np.random.Generator, users: int, runs: int, uniform: bool, score: Callable[[Any], float]
    ) -> Floats:
        """The score of each run's counts."""
        laws = (self._weights(generator, uniform) for _ in range(runs))
        return np.array([score(generator.multinomial(users, law)) for law in laws])

    def _squares(self, estimates: Any, users: int) -> float:
        return float(np.sum((estimates - users / self.bins) ** 2))

    def shuffle_method(self) -> str:
        """The histogram that the shuffle's test is made from."""
        return quietest_method(1000 * math.ceil(self.bins**0.5), self.setting.privacy, self.bins)

    def shuffle(self, users: int, runs: int, uniform: bool) -> Floats:
        """From the estimates of a shuffled histogram, by their own law."""
        plan: HistogramPlan = Histogram.methods[self.shuffle_method()].plan(
            users=users, privacy=self.setting.privacy, categories=self.bins
        )
        words = ("uniformity", self.bins, users, uniform)
        generator, bits = self.setting.generator(*words), self.setting.bits(*words)

        def score(counts: Any) -> float:
            estimate = plan.sample_estimate(np.repeat(np.arange(self.bins), counts), bits=bits)
            return self._squares(estimate.value, users)

        return self._drawn(generator, users, runs, uniform, score)

    def central(self, users: int, runs: int, uniform: bool) -> Floats:
        """A curator's own statistic: the distance of the counts from uniform, which one user moves by at most 1.

        Reference: Acharya, Sun, Zhang 2018, [4] in the survey.
        """
        generator = self.setting.generator("central distance", self.bins, users, uniform)
        share = users / self.bins
        drawn = self._drawn(generator, users, runs, uniform, lambda counts: float(np.abs(counts - share).sum() / 2))
        return drawn + generator.laplace(scale=1 / self.setting.privacy.epsilon, size=runs)

    def central_histogram(self, users: int, runs: int, uniform: bool) -> Floats:
        """From a curator's histogram, by the statistic of the shuffle model."""
        curator = CuratorHistogram(privacy=self.setting.privacy, bins=self.bins)
        generator = self.setting.generator("central uniformity", self.bins, users, uniform)

        def score(counts: Any) -> float:
            return self._squares(curator.sample_estimate(counts, generator=generator), users)

        return self._drawn(generator, users, runs, uniform, score)

    def local(self, users: int, runs: int, uniform: bool) -> Floats:
        """From randomized responses to "are you in this half of the bins?", a public random half a group of users.

        Reference: Acharya, Canonne, Freitag, Tyagi 2019 (RAPTOR), whose sample size grows like d.
        """
        generator = self.setting.generator("local uniformity", self.bins, users, uniform)
        lie = LocalRandomizedResponse(users=users, privacy=self.setting.privacy).lie_probability
        half = self.bins // 2
        # Of a random half of the bins so many are higher ones: each adds 2 alpha / d more than a fair share.
        higher = generator.hypergeometric(half, self.bins - half, half, (runs, _LOCAL_GROUPS))
        above = (0 if uniform else 2 * DISTANCE) * (2 * higher - half) / self.bins
        yes = (1 - 2 * lie) * (half / self.bins + above) + lie
        group = max(1, users // _LOCAL_GROUPS)
        expected = (1 - 2 * lie) * half / self.bins + lie
        return np.asarray(((generator.binomial(group, yes) / group - expected) ** 2).sum(axis=1))


@lru_cache(maxsize=256)
def users_needed(setting: Setting, bins: int, test: str, runs: int) -> Measured:
    """The fewest users with which both answers of a test are right in TARGET of the runs."""
    contest = UniformityContest(setting, bins)
    draw: Callable[[int, int, bool], Floats] = getattr(contest, test)

    def rejected(users: int) -> int:
        threshold = float(np.quantile(draw(users, 2 * runs, True), TARGET))
        return int(np.count_nonzero(draw(users, runs, False) > threshold))

    return _fewest(setting, rejected, runs, 30 * bins if test == "local" else 15 * bins**0.75)


def sizes_and_runs(setting: Setting) -> tuple[list[int], int]:
    """The numbers of bins that are tried, and how often."""
    bins = setting.pick([4, 8, 16], [16, 64, 256, 1024], [16, 64, 256, 1024, 4096])
    return bins, setting.pick(20, 60, 300)


def contest_lines(setting: Setting, *tests: str) -> tuple[Line, ...]:
    """The users that each of these tests of a contest needs, against the bins."""
    bins_tried, runs = sizes_and_runs(setting)
    method = UniformityContest(setting, bins_tried[-1]).shuffle_method()
    found = ([users_needed(setting, bins, test, runs) for test in tests] for bins in bins_tried)
    arms: list[Arm] = [(model, name.format(method), claimed) for model, name, claimed in (_ARMS[t] for t in tests)]
    return lines_of("bins", bins_tried, found, arms, "users needed")


def _fewest(setting: Setting, rejected: Callable[[int], int], runs: int, guess: float) -> Measured:
    start = round(guess / min(1.0, setting.privacy.epsilon))
    return fewest_users(rejected, runs, target=TARGET, start=start, smallest=8, steps=setting.steps)


def declared_users_needed(setting: Setting, bins: int, runs: int) -> Measured:
    """The fewest users with which this package's test, whose false alarms are declared before, is right enough."""

    def rejected(users: int) -> int:
        test = UniformityTest.plan(
            users=users, privacy=setting.privacy, categories=bins, distance=DISTANCE, false_alarm=1 - TARGET
        )
        missed = test.simulated_miss(runs=runs, seed=setting.number("declared", bins, users) % 2**31)
        return round((1 - missed) * runs)

    return _fewest(setting, rejected, runs, 15 * bins**0.75)
