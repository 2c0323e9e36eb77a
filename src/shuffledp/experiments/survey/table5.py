"""Table 5: the histograms of the shuffle model, for a small and a large domain."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InfeasibleError
from shuffledp.experiments.survey.measuring import Setting, mean_of, shares_of
from shuffledp.experiments.survey.results import Cell, Row, Table, figure, number
from shuffledp.protocols.histogram import Histogram
from shuffledp.protocols.histogram.base import HistogramPlan
from shuffledp.references.curator_histogram import CuratorHistogram
from shuffledp.references.local_histograms import LocalHistogram

NUMBER = 5
TITLE = "Histograms in the shuffle model"
HOW = (
    "Every method counts the same users, most of them in few of the bins. Claimed is the bound that the plan proves "
    "for all bins at once with probability 95%; measured is the mean over runs of the worst bin's error, by the "
    "method's own law, and kept says in how many of the runs the bound held. A method that cannot take a domain says "
    "why, and one whose messages are too many to simulate here is shown by its plan alone."
)
_COLUMNS = ("Error", "Messages per user", "Bits per message")
_CLAIMS: dict[str, tuple[str, str, str, str]] = {
    "opt-in": ("O(log(1/δ) / ε²)", "1 + O(d log(1/δ) / ε²n)", "O(log d)", "Appendix B.2.1"),
    "count-min": ("O(T² log(T/δ) / ε²)", "O(T³ d^(1/T) log(T/δ) / ε²)", "O(log Tn + log(d)/T)", "Theorem 30"),
    "sketch": ("Õ(√(log³d log(1/δ)) / ε)", "Õ(log³d log(1/δ) / ε²)", "O(log n + log log d)", "[36], Count-Min"),
    "hadamard": ("O(log d + √(log d log(1/εδ)) / ε)", "O(log(1/εδ) / ε²)", "O(log n log d)", "[36], Hadamard"),
    "correlated": ("O(log d / ε)", "1 + O(d log²(1/δ) / ε²n)", "O(log d)", "[37]"),
    "fake-users": ("O(log d + √(log d log(1/δ)) / ε)", "1 + O(log d / n + log(1/δ) / ε²n)", "d", "[28]"),
    "zsum": ("O(log(1/δ) / ε²)", "1 + O(d)", "O(log d)", "[7], Theorem 12"),
}
_NOT_THERE = ("", "", "", "not in the survey's table")


def domains(setting: Setting) -> tuple[int, tuple[int, int]]:
    """Users, and the sizes of the two domains."""
    return setting.pick((1000, (20, 500)), (100_000, (1000, 1_000_000)), (100_000, (1000, 1_000_000)))


def _counts(users: int, bins: int) -> NDArray[np.int64]:
    return shares_of(users, 1 / np.arange(1.0, bins + 1))


def _names(bins: int) -> tuple[str, ...]:
    head = f"d = {bins:,}: "
    return tuple(head + name for name in ("worst bin", "claimed", "kept", "messages a user", "bits a message"))


def _worst(estimates: Iterable[Any], counts: NDArray[np.int64], bound: float) -> tuple[Cell, ...]:
    """The error of the worst bin, what is claimed of it, and how often that was kept."""
    errors = [float(np.abs(estimate - counts).max()) for estimate in estimates]
    return mean_of(errors), float(bound), f"{sum(error <= bound for error in errors)} of {len(errors)}"


def method_row(setting: Setting, method: str) -> Row:
    """One method at both domains."""
    *said, source = _CLAIMS.get(method, _NOT_THERE)
    users, sizes = domains(setting)
    cells: dict[str, Cell] = {}
    notes: list[str] = []
    for bins in sizes:
        cells |= dict.fromkeys(_names(bins))
        try:
            plan: HistogramPlan = Histogram.methods[method].plan(users=users, privacy=setting.privacy, categories=bins)
        except InfeasibleError as refusal:
            notes.append(f"d = {bins:,}: {refusal}")
            continue
        sent = plan.messages_per_user_mean
        worst: tuple[Cell, ...] = (None, float(plan.error_bound), None)
        runs = _affordable(setting, plan)
        if runs < 2:
            notes.append(f"d = {bins:,}: {sent:,.0f} messages a user are too many to simulate here.")
        else:
            counts = _counts(users, bins)
            values, bits = np.repeat(np.arange(bins), counts), setting.bits("histogram", method, bins)
            drawn = (plan.sample_estimate(values, bits=bits).value for _ in range(runs))
            worst = _worst(drawn, counts, plan.error_bound)
        cells |= dict(zip(_names(bins), (*worst, float(sent), plan.bits_per_message), strict=True))
    survey = dict(zip(_COLUMNS, said, strict=True))
    return Row(name=method, survey=survey, source=source, cells=cells, notes=tuple(notes))


def _affordable(setting: Setting, plan: HistogramPlan) -> int:
    """As many runs as messages and bins allow: a number that depends on the plan alone."""
    cost = plan.users * plan.messages_per_user_mean + plan.bins
    # Reading a large domain takes as long as making the messages, where categories are hashed.
    most = max(3, setting.pick(10**4, 4 * 10**6, 10**8) // plan.bins)
    return min(setting.pick(10, 30, 200), most, int(setting.pick(2e7, 4e8, 4e9) / cost))


def reference_row(setting: Setting, name: str) -> Row:
    """A curator's histogram, or a local one."""
    users, sizes = domains(setting)
    cells: dict[str, Cell] = {}
    for bins in sizes:
        counts, generator = _counts(users, bins), setting.generator("reference histogram", name, bins)
        reference: CuratorHistogram | LocalHistogram
        if name == "central":
            reference = CuratorHistogram(privacy=setting.privacy, bins=bins)
        else:
            reference = LocalHistogram(encoding="optimized-unary", users=users, privacy=setting.privacy, bins=bins)
        sent: tuple[Cell, ...] = (None, None) if name == "central" else (1.0, bins)
        runs = setting.pick(10, 15, 100)
        drawn = (reference.sample_estimate(counts, generator=generator) for _ in range(runs))
        cells |= dict(zip(_names(bins), (*_worst(drawn, counts, reference.l_inf_error), *sent), strict=True))
    words = {"central": "trusted curator: discrete Laplace noise", "local": "local model: optimized unary encoding"}
    return Row(name=words[name], survey={}, source="for comparison", cells=cells)


ROWS: tuple[Callable[[Setting], Row], ...] = (
    *(partial(method_row, method=method) for method in Histogram.methods),
    partial(reference_row, name="central"),
    partial(reference_row, name="local"),
)


def assemble(setting: Setting, rows: tuple[Row, ...]) -> Table:
    """The table, and what one sees in it."""
    users, sizes = domains(setting)
    parts = []
    for bins in sizes:
        worst, _, _, messages, _ = _names(bins)
        found = {row.name: row.cells for row in rows}
        *methods, curator, local = found
        shuffled = {name: number(found[name][worst]) for name in methods if found[name][worst] is not None}
        if shuffled:
            best = min(shuffled, key=lambda name: shuffled[name])
            parts.append(
                f"In {bins:,} bins the worst is off by {figure(shuffled[best])} with {best}, which sends "
                f"{figure(number(found[best][messages]))} messages a user, by {figure(number(found[curator][worst]))} "
                f"with a curator and by {figure(number(found[local][worst]))} in the local model."
            )
    said = " ".join(parts) or "No method could be simulated."
    bars = tuple((f"error of the worst of {bins:,} bins", _names(bins)[0], _names(bins)[1]) for bins in sizes)
    return Table(number=NUMBER, title=f"{TITLE}, {users:,} users", how=HOW, rows=rows, sees=said, bars=bars)
