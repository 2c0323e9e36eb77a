"""Table 5: the histograms of the shuffle model, for a small and a large domain."""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InfeasibleError
from shuffledp.experiments.survey.measuring import Setting, mean_of, shares_of
from shuffledp.experiments.survey.results import Cell, Measured, Row, Table, figure
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
_ERROR, _MESSAGES, _BITS = "Error", "Messages per user", "Bits per message"
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


def method_row(setting: Setting, method: str) -> Row:
    """One method at both domains."""
    error, messages, size, source = _CLAIMS.get(method, _NOT_THERE)
    users, sizes = domains(setting)
    cells: dict[str, Cell] = {}
    notes: list[str] = []
    for bins in sizes:
        try:
            plan: HistogramPlan = Histogram.methods[method].plan(users=users, privacy=setting.privacy, categories=bins)
        except InfeasibleError as refusal:
            cells |= dict.fromkeys(_names(bins))
            notes.append(f"d = {bins:,}: {refusal}")
            continue
        measured, kept = _worst(setting, plan)
        if measured is None:
            notes.append(
                f"d = {bins:,}: {plan.messages_per_user_mean:,.0f} messages a user are too many to simulate here."
            )
        numbers: tuple[Cell, ...] = (
            measured,
            float(plan.error_bound),
            kept,
            float(plan.messages_per_user_mean),
            plan.bits_per_message,
        )
        cells |= dict(zip(_names(bins), numbers, strict=True))
    survey = {_ERROR: error, _MESSAGES: messages, _BITS: size}
    return Row(name=method, survey=survey, source=source, cells=cells, notes=tuple(notes))


def _names(bins: int) -> tuple[str, ...]:
    head = f"d = {bins:,}: "
    return tuple(head + name for name in ("worst bin", "claimed", "kept", "messages a user", "bits a message"))


def _worst(setting: Setting, plan: HistogramPlan) -> tuple[Measured | None, str | None]:
    """The worst bin over as many runs as messages and bins allow: a number that depends on the plan alone."""
    cost = plan.users * plan.messages_per_user_mean + plan.bins
    # Reading a large domain takes as long as making the messages, where categories are hashed.
    most = max(3, setting.pick(10**4, 4 * 10**6, 10**8) // plan.bins)
    runs = min(setting.pick(10, 30, 200), most, int(setting.pick(2e7, 4e8, 4e9) / cost))
    if runs < 2:
        return None, None
    counts = _counts(plan.users, plan.bins)
    values = np.repeat(np.arange(plan.bins), counts)
    bits = setting.bits("histogram", plan.method, plan.bins)
    errors = [float(np.abs(plan.sample_estimate(values, bits=bits).value - counts).max()) for _ in range(runs)]
    return mean_of(errors), f"{sum(error <= plan.error_bound for error in errors)} of {runs}"


def reference_row(setting: Setting, name: str) -> Row:
    """A curator's histogram, or a local one."""
    users, sizes = domains(setting)
    cells: dict[str, Cell] = {}
    for bins in sizes:
        counts = _counts(users, bins)
        generator = setting.generator("reference histogram", name, bins)
        draw: Callable[[], NDArray[np.generic]]
        if name == "central":
            curator = CuratorHistogram(privacy=setting.privacy, bins=bins)
            draw, bound = partial(curator.sample_estimate, counts, generator=generator), curator.l_inf_error
        else:
            local = LocalHistogram(encoding="optimized-unary", users=users, privacy=setting.privacy, bins=bins)
            draw, bound = partial(local.sample_estimate, counts, generator=generator), local.l_inf_error
        errors = [
            float(np.abs(np.asarray(draw(), dtype=np.float64) - counts).max()) for _ in range(setting.pick(10, 15, 100))
        ]
        kept = f"{sum(error <= bound for error in errors)} of {len(errors)}"
        numbers: tuple[Cell, ...] = (mean_of(errors), float(bound), kept, None, None)
        if name == "local":
            numbers = (*numbers[:3], 1.0, bins)
        cells |= dict(zip(_names(bins), numbers, strict=True))
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
        found = {row.name: row.cells[worst] for row in rows}
        curator, local = (found[row.name] for row in rows[-2:])
        shuffled = {name: cell for name, cell in found.items() if isinstance(cell, Measured) and " " not in name}
        assert isinstance(curator, Measured) and isinstance(local, Measured)
        if not shuffled:
            continue
        best = min(shuffled, key=lambda name: shuffled[name].value)
        sent = next(row.cells[messages] for row in rows if row.name == best)
        assert isinstance(sent, float)
        parts.append(
            f"In {bins:,} bins the worst is off by {figure(shuffled[best].value)} with {best}, which sends "
            f"{figure(sent)} messages "
            f"a user, by {figure(curator.value)} with a curator and by {figure(local.value)} in the local model."
        )
    said = " ".join(parts) or "No method could be simulated."
    bars = tuple((f"error of the worst of {bins:,} bins", _names(bins)[0], _names(bins)[1]) for bins in sizes)
    return Table(number=NUMBER, title=f"{TITLE}, {users:,} users", how=HOW, rows=rows, sees=said, bars=bars)
