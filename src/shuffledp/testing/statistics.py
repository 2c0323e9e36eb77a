"""Statistical assertions that state their false-alarm rate."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

# Cells are pooled until each expects this many samples, so that chi-square's law is close to its limit.
_SMALLEST_CELL = 50.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether samples follow a law: the smaller of two tests' p-values, doubled."""

    p_value: float
    samples: int

    def stands(self, false_alarm: float) -> bool:
        """Whether the law is not refuted at this false-alarm rate."""
        return self.p_value >= false_alarm


def _pool(expected: NDArray[np.float64]) -> NDArray[np.intp]:
    """Starts of runs of cells that each expect enough samples."""
    starts, total = [0], 0.0
    for cell, count in enumerate(expected):
        if total >= _SMALLEST_CELL:
            starts.append(cell)
            total = 0.0
        total += float(count)
    if total < _SMALLEST_CELL and len(starts) > 1:
        starts.pop()
    return np.array(starts, dtype=np.intp)


def judge_law(samples: ArrayLike, low: int, masses: ArrayLike) -> Verdict:
    """Hold integer samples against exact masses on low, low+1, ...; anything outside refutes at once.

    Two tests: chi-square over pooled cells, which sees many small differences, and an exact binomial
    test of every cell with Bonferroni's correction, whose false-alarm rate holds for any sample size.
    """
    values = np.asarray(samples, dtype=np.int64) - low
    weights = np.asarray(masses, dtype=np.float64)
    size = values.size
    if size == 0 or values.min() < 0 or values.max() >= weights.size:
        return Verdict(0.0, size)
    observed = np.bincount(values, minlength=weights.size).astype(np.float64)
    rest = max(0.0, 1.0 - float(weights.sum()))
    starts = _pool(weights * size)
    seen, expected = np.add.reduceat(observed, starts), np.add.reduceat(weights, starts) * size
    expected[-1] += rest * size
    chi_square = float(np.sum((seen - expected) ** 2 / expected))
    p_chi = float(special.chdtrc(seen.size - 1, chi_square)) if seen.size > 1 else 1.0
    p_cells = min(1.0, weights.size * float(_two_sided_binomial(observed, size, weights).min()))
    return Verdict(min(1.0, 2 * min(p_chi, p_cells)), size)


def _two_sided_binomial(observed: NDArray[np.float64], size: int, p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Twice the smaller exact tail of Bin(size, p) at the observed count."""
    at_least = np.where(observed > 0, special.betainc(np.maximum(observed, 1), size - observed + 1, p), 1.0)
    at_most = np.where(observed < size, special.betaincc(observed + 1, np.maximum(size - observed, 1), p), 1.0)
    return np.asarray(np.minimum(1.0, 2 * np.minimum(at_least, at_most)))


def assert_law(samples: ArrayLike, low: int, masses: ArrayLike, *, false_alarm: float = 1e-9) -> None:
    """Fail unless integer samples follow the law with these masses on low, low+1, ..."""
    verdict = judge_law(samples, low, masses)
    assert verdict.stands(false_alarm), f"{verdict.samples} samples refute the law: p-value {verdict.p_value:.3g}"


def assert_not_law(samples: ArrayLike, low: int, masses: ArrayLike, *, false_alarm: float = 1e-9) -> None:
    """Fail unless the samples refute the law: what a wrong twin must do."""
    verdict = judge_law(samples, low, masses)
    assert not verdict.stands(false_alarm), f"a wrong law passed {verdict.samples} samples: p {verdict.p_value:.3g}"


def assert_mean(samples: ArrayLike, mean: float, standard_deviation: float, *, false_alarm: float = 1e-9) -> None:
    """Fail unless the average is as near to `mean` as so many samples with this deviation should be."""
    values = np.asarray(samples, dtype=np.float64)
    score = abs(float(values.mean()) - mean) * math.sqrt(values.size) / standard_deviation
    limit = float(special.ndtri(1 - false_alarm / 2))
    assert score <= limit, f"mean {values.mean():.6g} is {score:.1f} standard errors from {mean:.6g}, limit {limit:.1f}"


def assert_deviation(samples: ArrayLike, standard_deviation: float, *, false_alarm: float = 1e-9) -> None:
    """Fail unless the samples' spread is as claimed, by the variance of their own squares."""
    values = np.asarray(samples, dtype=np.float64)
    squares = (values - values.mean()) ** 2
    score = abs(float(squares.mean()) - standard_deviation**2) * math.sqrt(values.size) / float(squares.std())
    limit = float(special.ndtri(1 - false_alarm / 2))
    assert score <= limit, (
        f"deviation {math.sqrt(float(squares.mean())):.6g} is not the {standard_deviation:.6g} claimed: "
        f"{score:.1f} standard errors, limit {limit:.1f}"
    )


def assert_same_law(first: ArrayLike, second: ArrayLike, *, false_alarm: float = 1e-9) -> None:
    """Fail unless two samples of numbers have one law, by chi-square over cells of equal joint counts."""
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    both = np.concatenate((a, b))
    # Two cells at least: in one, any two samples are alike.
    edges = np.unique(np.quantile(both, np.linspace(0, 1, max(3, int(both.size / 200)))[1:-1]))
    cells = edges.size + 1
    counts = np.stack([np.bincount(np.searchsorted(edges, x, side="right"), minlength=cells) for x in (a, b)])
    counts = counts[:, counts.sum(axis=0) > 0].astype(np.float64)
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    statistic = float(np.sum((counts - expected) ** 2 / expected))
    p_value = float(special.chdtrc(max(1, counts.shape[1] - 1), statistic))
    assert p_value >= false_alarm, f"two laws differ: p-value {p_value:.3g} over {counts.shape[1]} cells"
