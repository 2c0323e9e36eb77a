"""Histograms: the worst bin beside a trusted curator's and the local model's, large domains, constants, and speed."""

import sys
import time

import local_reports
import numpy as np
from report import figure, report

from shuffledp import Privacy, RandomBits, simulate
from shuffledp.protocols.histogram import Histogram
from shuffledp.protocols.histogram.buckets import Buckets
from shuffledp.protocols.histogram.decoys import Decoys
from shuffledp.protocols.histogram.fake_users import FakeUsers
from shuffledp.protocols.histogram.hadamard import Hadamard
from shuffledp.protocols.histogram.sign_vectors import counts_by_solving, counts_by_transform, seed_bits, sign_vectors
from shuffledp.references.curator_histogram import CuratorHistogram
from shuffledp.references.local_histograms import ENCODINGS, LocalHistogram, best_local_histogram

TARGET = Privacy(1, 1e-6)
USERS = 100_000


def thousand_bins(runs: int = 2000) -> list[dict]:
    """Proved bounds, and quantiles over runs: bounds over the curator's own exact quantile."""
    bins = 1000
    values = np.minimum(np.random.default_rng(1).zipf(1.3, USERS) - 1, bins - 1)
    plan = Histogram.plan(users=USERS, privacy=TARGET, categories=bins, max_messages=4)
    curator = CuratorHistogram(privacy=TARGET, bins=bins)
    local = best_local_histogram(users=USERS, privacy=TARGET, bins=bins)
    truth, bits, rng = plan.true_value(values), RandomBits.seeded(1), np.random.default_rng(2)
    ours = _quantile(np.abs(plan.sample_estimate(values, bits=bits).value - truth).max() for _ in range(runs))
    by_messages = _quantile(np.abs(simulate(plan, values, bits=bits).value - truth).max() for _ in range(runs // 10))
    counts = truth.astype(np.int64)
    curators = _quantile(np.abs(curator.sample_estimate(counts, generator=rng) - counts).max() for _ in range(runs))
    messages = f"{plan.messages_per_user_mean:.2f} messages"
    note = f"{plan.method}: {plan.error_bound:.1f} beside {curator.l_inf_error:.0f}; {messages}"
    rows = [
        figure(
            "1e5 users, 1000 bins, at most 4 messages: proved bound / curator's",
            plan.error_bound / curator.l_inf_error,
            "<=",
            1.5,
            note,
        ),
        figure(
            "the same, 95% quantiles of runs",
            ours / curators,
            "<=",
            1.5,
            f"{ours:.1f} beside {curators:.1f}, {runs} runs",
        ),
        figure(
            "the same, message by message", by_messages / curators, "<=", 1.5, f"{by_messages:.1f}, {runs // 10} runs"
        ),
        figure(
            "best local / ours, proved",
            local.l_inf_error / plan.error_bound,
            ">=",
            10,
            f"{local.encoding}: {local.l_inf_error:.0f}",
        ),
    ]
    measured = {}
    for name in ENCODINGS:
        method = LocalHistogram(encoding=name, users=USERS, privacy=TARGET, bins=bins)
        few = 3 if name in ("rappor", "optimized-unary") else 40
        measured[name] = _quantile(
            np.abs(local_reports.simulate(method, values, rng) - truth).max() for _ in range(few)
        )
    best = min(measured, key=lambda name: measured[name])
    note = ", ".join(f"{name} {value:.0f}" for name, value in measured.items())
    return [*rows, figure("best local / ours, report by report, few runs", measured[best] / ours, ">=", 10, note)]


def _quantile(errors) -> float:
    return float(np.quantile(np.fromiter(errors, dtype=np.float64), 0.95))


def million_categories() -> list[dict]:
    bins = 1_000_000
    values = np.minimum(np.random.default_rng(1).zipf(1.3, USERS) - 1, bins - 1)
    curator = CuratorHistogram(privacy=TARGET, bins=bins)
    rows = []
    for kind, runs in ((Buckets, 20), (Hadamard, 5)):
        plan = kind.plan(users=USERS, privacy=TARGET, categories=bins)
        truth = plan.true_value(values)
        bits, started = RandomBits.seeded(1), time.perf_counter()
        errors = [np.abs(plan.sample_estimate(values, bits=bits).value - truth).max() for _ in range(runs)]
        seconds = time.perf_counter() - started
        measured = f"{runs} runs: mean {np.mean(errors):.1f}, largest {max(errors):.1f}"
        note = f"{plan.error_bound:.1f} beside {curator.l_inf_error:.0f}; {measured}"
        rows += [
            figure(
                f"1e5 users, 1e6 categories, {plan.method}: bound / curator's",
                plan.error_bound / curator.l_inf_error,
                "<=",
                2,
                note,
            ),
            figure(
                "the same: messages a user at most",
                plan.messages_per_user_max,
                "<=",
                50,
                f"{plan.messages_per_user_mean:.2f} on average",
            ),
            figure(
                "the same: bits a message",
                plan.bits_per_message,
                "<=",
                96,
                "the paper's tuples: 340" if kind is Hadamard else "",
            ),
            figure("the same: seconds a run, all messages", seconds / runs, "<=", 20, "randomized and decoded"),
        ]
    plan = Histogram.plan(users=USERS, privacy=TARGET, categories=bins, max_messages=50)
    note = f"{plan.method}, {plan.messages_per_user_max} messages"
    return [
        *rows,
        figure(
            "the best with at most 50 messages: bound / curator's",
            plan.error_bound / curator.l_inf_error,
            "<=",
            2,
            note,
        ),
    ]


def constants() -> list[dict]:
    """Errors with exact constants beside the same method's with its paper's."""
    rows = []
    for name, bins in (("decoys", 1000), ("fake-users", 1000), ("buckets", 1_000_000), ("hadamard", 1_000_000)):
        plan = Histogram.methods[name].plan(users=USERS, privacy=TARGET, categories=bins)
        paper = plan.reference()["paper_standard_error"]
        note = f"{plan.standard_error:.2f} beside {paper:.2f}; {plan.messages_per_user_mean:.2f} messages a user"
        rows.append(
            figure(f"{name}, {bins:,} bins: standard error / the paper's", plan.standard_error / paper, "<=", 0.5, note)
        )
    plan = FakeUsers.plan(users=10_000, privacy=TARGET, categories=1000, fake_rows=1)
    note = f"flips {plan.flip:.5f}; the paper's deviation {plan.paper_standard_error:.1f}"
    return [*rows, figure("fake-users, 10,000 users, one fake row: deviation", plan.standard_error, "<=", 9.25, note)]


def speed() -> list[dict]:
    bits = RandomBits.seeded(1)
    plan = Decoys.plan(users=10_000_000, privacy=TARGET, categories=10_000)
    values = np.random.default_rng(1).integers(0, 10_000, plan.users)
    plan.sample_estimate(values, bits=bits)
    plain = min(_seconds(lambda: np.bincount(values, minlength=10_000)) for _ in range(7))
    fast = min(_seconds(lambda: plan.sample_estimate(values, bits=bits)) for _ in range(7))
    rows = [
        figure(
            "decoys by law, 1e7 users, 1e4 bins: / np.bincount",
            fast / plain,
            "<=",
            3,
            f"{fast:.3f} s beside {plain:.3f} s",
        )
    ]
    plan = Decoys.plan(users=2_000_000, privacy=TARGET, categories=1000)
    values = values[: plan.users] % 1000
    seconds = min(_seconds(lambda: simulate(plan, values, bits=bits)) for _ in range(3))
    rows.append(
        figure(
            "decoys message by message: million users/s a core",
            plan.users / seconds / 1e6,
            ">=",
            2,
            "randomized, permuted, counted",
        )
    )
    rng = np.random.default_rng(1)
    index_bits, signs, messages = 12, 5, 20_000
    seeds = rng.integers(0, 1 << seed_bits(index_bits, signs), messages)
    vectors = rng.integers(0, 1 << signs, messages)
    naive = _seconds(
        lambda: [np.count_nonzero(sign_vectors(seeds, x, index_bits, signs) == vectors) for x in range(4096)]
    )
    for name, count in (("one Walsh-Hadamard transform", counts_by_transform), ("solving", counts_by_solving)):
        quick = min(_seconds(lambda: count(seeds, vectors, index_bits, signs)) for _ in range(3))  # noqa: B023
        rows.append(
            figure(
                f"decoding by {name}: times faster than category by category",
                naive / quick,
                ">=",
                10,
                f"{quick:.3f} s beside {naive:.2f} s",
            )
        )
    return rows


def _seconds(call) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(report("Histograms", [*thousand_bins(), *million_categories(), *constants(), *speed()]))
