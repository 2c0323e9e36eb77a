"""Local histograms report by report: what each user sends, and what the reports say of every category."""

import numpy as np

from shuffledp.references.local_histograms import LocalHistogram
from shuffledp.sampling.walsh import walsh_hadamard

# Bits of unary reports held at a time.
_BLOCK = 1 << 24


def columns(plan: LocalHistogram) -> int:
    """Of Hadamard's matrix: the next power of two above the categories' number, as none has the constant row."""
    return 1 << plan.bins.bit_length()


def sample_reports(plan: LocalHistogram, codes: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """What each user sends: a number, or a row of bits."""
    own, other = plan.support
    if plan.encoding == "k-rr":
        others = (codes + generator.integers(1, plan.bins, codes.size)) % plan.bins
        return np.where(generator.random(codes.size) < own, codes, others)
    if plan.encoding == "hadamard-response":
        rows = codes + 1
        drawn = generator.integers(0, columns(plan), codes.size)
        wanted = generator.random(codes.size) >= own
        # A column with the other sign becomes one with the wanted sign, one for one, by a bit that the row has.
        wrong = (np.bitwise_count(drawn & rows) & 1).astype(np.bool_) != wanted
        return np.where(wrong, drawn ^ (rows & -rows), drawn)
    bits = generator.random((codes.size, plan.bins), dtype=np.float32) < other
    bits[np.arange(codes.size), codes] = generator.random(codes.size) < own
    return bits


def supporters(plan: LocalHistogram, reports: np.ndarray) -> np.ndarray:
    """How many reports support each category."""
    if plan.encoding == "k-rr":
        return np.bincount(reports, minlength=plan.bins)
    if plan.encoding == "hadamard-response":
        signs = walsh_hadamard(np.bincount(reports, minlength=columns(plan)))
        return (reports.size + signs[1 : plan.bins + 1]) // 2
    return reports.sum(axis=0, dtype=np.int64)


def simulate(plan: LocalHistogram, codes: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """The estimates of all bins from everybody's report."""
    own, other = plan.support
    together = max(1, _BLOCK // plan.bins) if plan.encoding in ("rappor", "optimized-unary") else plan.users
    seen = np.zeros(plan.bins, dtype=np.int64)
    for start in range(0, plan.users, together):
        seen += supporters(plan, sample_reports(plan, codes[start : start + together], generator))
    return (seen - plan.users * other) / (own - other)
