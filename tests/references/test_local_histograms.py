"""Local histograms report by report: exactly private, unbiased, as far off as claimed."""

import itertools
import math
import runpy
from pathlib import Path

import numpy as np
import pytest

from shuffledp.privacy import Privacy
from shuffledp.references.local_histograms import ENCODINGS, LocalHistogram
from shuffledp.testing.statistics import assert_deviation, assert_law, assert_mean, assert_not_law

REPORTS = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "local_reports.py"))
"""Reports themselves, which a benchmark measures."""


def _report_law(plan: LocalHistogram, code: int) -> np.ndarray:
    """Masses of all reports of one user, by the mechanism's definition; rows of bits are read as numbers."""
    own, other = plan.support
    if plan.encoding == "k-rr":
        return np.where(np.arange(plan.bins) == code, own, other)
    if plan.encoding == "hadamard-response":
        columns = REPORTS["columns"](plan)
        signs = np.array([(-1) ** int(j & (code + 1)).bit_count() for j in range(columns)])
        return np.where(signs > 0, own, 1 - own) / (columns / 2)
    chances = np.where(np.arange(plan.bins) == code, own, other)
    rows = itertools.product((0, 1), repeat=plan.bins)
    return np.array([np.prod([p if bit else 1 - p for bit, p in zip(row, chances, strict=True)]) for row in rows])


def _numbers(plan: LocalHistogram, reports: np.ndarray) -> np.ndarray:
    return reports if reports.ndim == 1 else reports @ (1 << np.arange(plan.bins)[::-1])


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("bins", [3, 4])
def test_every_report_is_exactly_private(encoding: str, bins: int) -> None:
    """Reports have the enumerated law (false alarm 1e-9; another code's must fail), whose ratios are e^eps."""
    plan = LocalHistogram(encoding=encoding, users=20_000, privacy=Privacy(1, 1e-6), bins=bins)
    laws = [_report_law(plan, code) for code in range(bins)]
    ratios = [float(np.max(one / other)) for one, other in itertools.permutations(laws, 2)]
    assert max(ratios) == pytest.approx(math.e, rel=1e-12)
    reports = REPORTS["sample_reports"](plan, np.full(plan.users, 1), np.random.default_rng(1))
    assert_law(_numbers(plan, reports), 0, laws[1], false_alarm=1e-9)
    assert_not_law(_numbers(plan, reports), 0, laws[0], false_alarm=1e-9)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_unbiased_and_as_far_off_as_claimed(encoding: str) -> None:
    """One bin in each of many runs, so that errors are independent; false alarm 1e-9."""
    plan = LocalHistogram(encoding=encoding, users=400, privacy=Privacy(1, 1e-6), bins=10)
    codes = np.arange(400) % 7  # nobody has 7, 8 or 9
    rng = np.random.default_rng(2)
    estimates = np.array([REPORTS["simulate"](plan, codes, rng) for _ in range(1500)])
    own, other = plan.support
    spread = math.sqrt(58 * own * (1 - own) + 342 * other * (1 - other)) / (own - other)
    assert_mean(estimates[:, 0], 58.0, spread, false_alarm=1e-9)
    assert_deviation(estimates[:, 0], spread, false_alarm=1e-9)
    assert_mean(estimates[:, 8], 0.0, plan.standard_error, false_alarm=1e-9)
    assert_deviation(estimates[:, 8], plan.standard_error, false_alarm=1e-9)


def test_the_transform_counts_what_supports_each_category() -> None:
    plan = LocalHistogram(encoding="hadamard-response", users=300, privacy=Privacy(1, 1e-6), bins=21)
    reports = REPORTS["sample_reports"](plan, np.arange(300) % 21, np.random.default_rng(3))
    naive = [sum(int(j & (x + 1)).bit_count() % 2 == 0 for j in reports) for x in range(21)]
    assert REPORTS["supporters"](plan, reports).tolist() == naive
