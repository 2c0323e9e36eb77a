"""How many users pointer chasing needs, in the shuffle and in the local model.

Each of n users holds (1, a) or (2, b) with probability 1/2, and b[a[1]] is wanted with probability 2/3. Theorem 18 of
[004] needs a number of users that does not depend on the length l; every one-round local protocol needs Omega(l)
(Theorem 17, no constant given). Histograms by additive noise, as decoys, pay a root of log(l!) on top, since the
fullest of l! noisy empty bins grows; local ones pay log(l!) ~ l log l.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.experiments.common import Progress
from shuffledp.experiments.pointer_chasing import PointerChasing, chased, fullest, universe_size
from shuffledp.privacy import Privacy
from shuffledp.protocols.histogram.decoys import Decoys
from shuffledp.randomness import RandomBits
from shuffledp.references.local_histograms import LocalHistogram

SUCCESS = 2 / 3
PRIVACY = Privacy(1.0, 1e-6)
MODELS = ("shuffle", "local")
_STEP = 1.1
# Those whose joint law is simple to draw from.
_LOCAL = ("k-rr", "rappor", "optimized-unary")


@dataclass(frozen=True, slots=True, kw_only=True)
class PointerRow:
    """The fewest users, on a grid of steps of a tenth, with which at least two thirds of the runs succeed."""

    model: str
    method: str
    length: int
    universe: int
    users: int
    success: float
    success_low: float
    success_high: float
    messages_per_user: float
    local_success_with_as_many: float | None


def interval(successes: int, runs: int) -> tuple[float, float]:
    """Clopper and Pearson's exact 95% interval.

    >>> tuple(round(end, 3) for end in interval(90, 100))
    (0.824, 0.951)
    """
    low = 0.0 if successes == 0 else float(stats.beta.ppf(0.025, successes, runs - successes + 1))
    high = 1.0 if successes == runs else float(stats.beta.ppf(0.975, successes + 1, runs - successes))
    return low, high


def measured_success(plan: PointerChasing, *, runs: int, seed: int) -> int:
    """How many of so many runs of a planned histogram give the right answer, by its own law."""
    generator, bits = np.random.default_rng(seed), RandomBits.seeded(seed)
    right = 0
    for _ in range(runs):
        values, truth = _instance(plan.histogram.users, plan.length, generator)
        right += plan.sample_answer(values, bits=bits).answer == truth
    return right


def measured_shuffle_success(
    length: int, users: int, privacy: Privacy, method: str, *, runs: int, seed: int
) -> tuple[int, float]:
    """Right answers of runs with a histogram by this method, and its messages a user; none if users are too few."""
    try:
        plan = PointerChasing.plan(users=users, privacy=privacy, length=length, method=method)
    except InfeasibleError:
        return 0, 0.0
    return measured_success(plan, runs=runs, seed=seed), plan.histogram.messages_per_user_mean


def measured_local_success(length: int, users: int, privacy: Privacy, *, runs: int, seed: int) -> tuple[int, str]:
    """Right answers of runs with the best local histogram whose joint law is simple, and which that is."""
    generator = np.random.default_rng(seed)
    size = universe_size(length)
    plans = [LocalHistogram(encoding=name, users=users, privacy=privacy, bins=size) for name in _LOCAL]
    best = min(plans, key=lambda plan: plan.l_inf_error)
    own, other = best.support
    right = 0
    for _ in range(runs):
        values, truth = _instance(users, length, generator)
        counts = np.bincount(values, minlength=size)
        if best.encoding == "k-rr":
            seen = np.zeros(size, dtype=np.int64)
            for code in np.flatnonzero(counts):
                law = np.full(size, other)
                law[code] = own
                seen += generator.multinomial(counts[code], law / law.sum())
        else:
            seen = generator.binomial(counts, own) + generator.binomial(users - counts, other)
        # Ties are broken at random: counts of few local reports have many.
        right += chased(*fullest(seen + generator.random(size) * 0.5), length).answer == truth
    return right, best.encoding


def _instance(users: int, length: int, generator: np.random.Generator) -> tuple[NDArray[np.int64], int]:
    """What each user holds, one of two codes, and where they lead."""
    half = universe_size(length) // 2
    codes = np.array([generator.integers(half), half + generator.integers(half)])
    return codes[generator.integers(2, size=users)], chased(int(codes[0]), int(codes[1]), length).answer


def fewest_users(
    length: int, model: str, *, privacy: Privacy = PRIVACY, method: str = "decoys", runs: int = 200, seed: int = 1
) -> PointerRow:
    """The first number of users on the grid with which at least SUCCESS of the runs are right.

    Steps of four until one succeeds, then those in between.
    """

    def attempt(users: int) -> tuple[int, str, float]:
        if model == "local":
            return *measured_local_success(length, users, privacy, runs=runs, seed=seed + users), 1.0
        right, messages = measured_shuffle_success(length, users, privacy, method, runs=runs, seed=seed + users)
        return right, method, messages

    place = 0
    while attempt(_grid(place))[0] < SUCCESS * runs:
        place += 4
    for users in map(_grid, range(max(0, place - 3), place + 1)):
        right, name, messages = attempt(users)
        if right >= SUCCESS * runs:
            break
    low, high = interval(right, runs)
    beside = None
    if model == "shuffle":
        beside = measured_local_success(length, users, privacy, runs=runs, seed=seed)[0] / runs
    return PointerRow(
        model=model,
        method=name,
        length=length,
        universe=universe_size(length),
        users=users,
        success=right / runs,
        success_low=low,
        success_high=high,
        messages_per_user=messages,
        local_success_with_as_many=beside,
    )


def _grid(place: int) -> int:
    return math.ceil(8 * _STEP**place)


def pointer_chasing(
    *,
    lengths: Sequence[int],
    method: str = Decoys.method,
    runs: int = 200,
    seed: int = 1,
    progress: Progress | None = None,
) -> list[PointerRow]:
    """Rows for every length and both models."""
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
        raise ParameterError("runs", runs, "must be >= 1", "200 give intervals of ± 0.07")
    for length in lengths:
        universe_size(length)
    rows = []
    for model in MODELS:
        for length in lengths:
            rows.append(fewest_users(length, model, method=method, runs=runs, seed=seed))
            if progress is not None:
                progress(len(rows), len(MODELS) * len(lengths))
    return rows
