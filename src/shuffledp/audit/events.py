"""Choosing an event on one half of the trials, testing it on the other."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from shuffledp.errors import ParameterError

Counts = NDArray[np.int64]
Cells = NDArray[np.bool_]

# Thousands of events compete on the choosing half: one that was only lucky must not win.
_CHOOSING_ERROR = 1e-9


def lower_limit(successes: Counts, trials: int, error: float) -> NDArray[np.float64]:
    """Clopper-Pearson: the probability is at least this, with probability 1 - error."""
    k = np.asarray(successes, dtype=np.float64)
    return np.where(k > 0, special.betaincinv(np.maximum(k, 1.0), trials - k + 1, error), 0.0)


def upper_limit(successes: Counts, trials: int, error: float) -> NDArray[np.float64]:
    """Clopper-Pearson: the probability is at most this, with probability 1 - error."""
    k = np.asarray(successes, dtype=np.float64)
    return np.where(k < trials, special.betainccinv(k + 1, np.maximum(trials - k, 1.0), error), 1.0)


def epsilon_lower_bound(p: Counts, q: Counts, trials: int, delta: float, error: float) -> NDArray[np.float64]:
    """log((P[E] - delta) / Q[E]) from counts, wrong with probability at most `error`; 0 if nothing is shown."""
    low, high = lower_limit(p, trials, error / 2), upper_limit(q, trials, error / 2)
    with np.errstate(divide="ignore"):
        return np.where(low > delta, np.maximum(np.log(np.maximum(low - delta, 1e-300) / high), 0.0), 0.0)


@dataclass(frozen=True, slots=True)
class Finding:
    """The lower bound on epsilon, and the event that showed it."""

    epsilon_lower_bound: float
    event_probability: float
    other_probability: float


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Distinct outcomes of many runs on one input, and how often each came in either half of them."""

    rows: Counts
    counts: Counts  # (2, outcomes): the half that chooses, the half that tests

    @classmethod
    def of(cls, rows: Counts) -> "Outcomes":
        """All runs at once: the first half chooses."""
        half = len(rows) // 2
        return cls.merge([cls._one(rows[:half], 0), cls._one(rows[half:], 1)])

    @classmethod
    def _one(cls, rows: Counts, half: int) -> "Outcomes":
        distinct, times = np.unique(rows, axis=0, return_counts=True)
        counts = np.zeros((2, len(distinct)), dtype=np.int64)
        counts[half] = times
        return cls(distinct, counts)

    @classmethod
    def merge(cls, parts: "Sequence[Outcomes]") -> "Outcomes":
        """The tallies of several pieces as one."""
        rows, index = np.unique(np.concatenate([part.rows for part in parts]), axis=0, return_inverse=True)
        every = np.concatenate([part.counts for part in parts], axis=1)
        counts = [np.bincount(index.reshape(-1), half, len(rows)).astype(np.int64) for half in every]
        return cls(rows, np.stack(counts))

    @property
    def trials(self) -> tuple[int, int]:
        """Runs in each half."""
        return int(self.counts[0].sum()), int(self.counts[1].sum())


def _aligned(first: Outcomes, second: Outcomes) -> tuple[Counts, Counts, Counts]:
    """All outcomes, and each side's counts of them."""
    rows, index = np.unique(np.concatenate((first.rows, second.rows)), axis=0, return_inverse=True)
    index = index.reshape(-1)
    sides = []
    for tally, places in ((first, index[: len(first.rows)]), (second, index[len(first.rows) :])):
        counts = np.zeros((2, len(rows)), dtype=np.int64)
        counts[:, places] = tally.counts
        sides.append(counts)
    return rows, sides[0], sides[1]


def _orders(rows: Counts, p: Counts, q: Counts) -> list[NDArray[np.intp]]:
    """Ways to line up the outcomes, most telling first; every event tried is a beginning of one of them."""
    columns = [rows[:, i].astype(np.float64) for i in range(rows.shape[1])]
    scores = [*columns]
    if len(columns) == 2:
        first, second = columns
        scores += [first - second, (first + 0.5) / (second + 0.5), np.minimum(first, second)]
    orders = [np.argsort(sign * score, kind="stable") for score in scores for sign in (1, -1)]
    # By the ratio seen, smoothed so that outcomes hardly seen come last.
    orders.append(np.argsort(-(p + 1) / (q + 3.0), kind="stable"))
    return orders


def find(first: Outcomes, second: Outcomes, *, delta: float, confidence: float) -> Finding:
    """The best lower bound on epsilon that the views on two neighbouring inputs show.

    Half of the trials choose an event and a direction, the other half test it once: the bound is
    wrong with probability at most 1 - confidence, however the event was chosen.
    """
    if first.trials != second.trials:
        raise ParameterError(
            "trials", first.trials, f"must be {second.trials} on both inputs", "run both equally often"
        )
    rows, *sides = _aligned(first, second)
    choosing, testing = first.trials
    best: tuple[float, int, Cells] = (-1.0, 0, np.zeros(len(rows), dtype=np.bool_))
    for direction in (0, 1):
        p, q = sides[direction][0], sides[1 - direction][0]
        for order in _orders(rows, p, q):
            bounds = epsilon_lower_bound(np.cumsum(p[order]), np.cumsum(q[order]), choosing, delta, _CHOOSING_ERROR)
            at = int(np.argmax(bounds))
            if bounds[at] > best[0]:
                cells = np.zeros(len(rows), dtype=np.bool_)
                cells[order[: at + 1]] = True
                best = (float(bounds[at]), direction, cells)
    _, direction, cells = best
    p_seen, q_seen = (int(sides[side][1][cells].sum()) for side in (direction, 1 - direction))
    bound = epsilon_lower_bound(np.array(p_seen), np.array(q_seen), testing, delta, 1 - confidence)
    return Finding(float(bound), p_seen / testing, q_seen / testing)
