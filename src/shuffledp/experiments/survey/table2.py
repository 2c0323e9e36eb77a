"""Table 2: the binary sums of the shuffle model, each by its own law and its own messages."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InfeasibleError
from shuffledp.experiments.survey.measuring import Setting, mean_of, sampled_error
from shuffledp.experiments.survey.results import Cell, Line, Measured, Row, Table, figure, number
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.protocols.binary_sum.base import BinarySumPlan

NUMBER = 2
TITLE = "Binary sums in the shuffle model"
HOW = (
    "Every method counts the same two thirds of the users. Errors are root mean squares over runs of the method's law, "
    "beside the standard error that the plan claims; messages are counted in reports that are really made; zero kept "
    "means that a sum of 0 was answered by exactly 0 in every run. The exponent is of 1/ε, down to a quarter of ε, δ "
    "and users as they are."
)
_COLUMNS = ("Error", "Messages per user", "Advantage over RR")
_CLAIMS: dict[str, tuple[str, str, str, str, float | None]] = {
    "rr": ("O(√log(1/δ) / ε)", "1", "one message", "[25], Theorem 10", 1.0),
    "zsum": ("O(log(1/δ) / ε²)", "2", "if the sum is 0, the estimate is 0 with probability 1", "[7]", 2.0),
    "poisson-bits": ("O(√log(1/δ) / ε)", "O(log(1/δ) / ε²) in expectation", "symmetric noise", "[8]", 1.0),
    "pure": ("O(√log(1/ε) / ε^(3/2))", "O(log n / ε)", "δ = 0", "[35]", 1.5),
    "correlated": ("O(1/ε)", "1 + O(log²(1/δ) / ε²n) in expectation", "optimal error", "[37]", 1.0),
    "coins": (
        "O(√log(1/δ) / ε)",
        "1 + O(1 + log(1/δ) / ε²n)",
        "not in the survey's table",
        "[48], Algorithm 3 of [003]",
        1.0,
    ),
    "shares": ("O(1/ε)", "O(1 + log(1/δ) / log n)", "not in the survey's table: Appendix A's secure sums", "[41]", 1.0),
}


def method_row(setting: Setting, method: str) -> Row:
    """One method at three epsilons."""
    users, runs = setting.pick(100, 1000, 1000), setting.pick(60, 400, 4000)
    *said, source, claimed = _CLAIMS.get(method, ("", "", "not in the survey", "", None))
    # Two thirds: a count that is kept at 0 where it is small must be large enough at every epsilon.
    values = (np.arange(users) % 3 > 0).astype(np.uint8)
    truth = float(values.sum())
    privacy = setting.privacy
    x, points, bounds = [], [], []
    cells: dict[str, Cell] = {}
    notes = []
    for factor in setting.pick((1.0,), (0.25, 0.5, 1.0), (0.25, 0.35, 0.5, 0.7, 1.0)):
        epsilon = factor * privacy.epsilon
        try:
            plan = BinarySum.methods[method].plan(users=users, privacy=Privacy(epsilon, privacy.delta))
        except InfeasibleError as refusal:
            notes.append(f"Refuses ε = {epsilon:g}: {refusal}")
            continue
        x.append(1 / epsilon)
        points.append(sampled_error(plan, values, truth, runs, bits=setting.bits("method", method, factor)))
        bounds.append(plan.standard_error)
        if factor == 1:
            cells = _cells(setting, plan, points[-1], values)
            if plan.keeps_zero:
                notes.append(
                    "A small sum is answered 0: the error claimed is of sums that are large enough to be told from it."
                )
    line = Line("shuffle", method, "1/ε", x, points, claimed=claimed, bounds=bounds)
    return Row(
        name=method,
        survey=dict(zip(_COLUMNS, said, strict=True)),
        source=source,
        cells=cells,
        lines=(line,) if len(x) >= 3 else (),
        notes=tuple(notes),
    )


def _cells(setting: Setting, plan: BinarySumPlan, error: Measured, values: NDArray[np.uint8]) -> dict[str, Cell]:
    bits = setting.bits("zero", plan.method)
    nobody = np.zeros_like(values)
    zeros = [plan.sample_estimate(nobody, bits=bits).value for _ in range(100)]
    sizes = np.concatenate([plan.randomize(values, bits=bits).sizes for _ in range(max(1, 2000 // plan.users))])
    steady = int(sizes.min()) == int(sizes.max())
    return {
        "error": error,
        "claimed error": float(plan.standard_error),
        "messages a user": float(sizes.mean()) if steady else mean_of(sizes),
        "claimed messages": float(plan.mean_messages(values)),
        "bits a message": plan.bits_per_message,
        "δ": 0.0 if plan.is_pure else plan.privacy.delta,
        "zero kept": "yes" if not np.any(zeros) else "no",
        "ε alone": "none" if plan.local_epsilon is None else round(plan.local_epsilon, 3),
    }


ROWS = tuple(partial(method_row, method=method) for method in BinarySum.methods)


def assemble(setting: Setting, rows: tuple[Row, ...]) -> Table:
    """The table, and what one sees in it."""
    unseen = Row(
        name="Cheu-Yan",
        survey=dict(zip(_COLUMNS, ("O(1/ε)", "Õ(poly(n, 1/ε))", "δ = 0 and optimal error"), strict=True)),
        source="[27]",
        notes=("Not measured: its messages, of the order of n^2.5 a user, are too many to be sent.",),
    )
    found = {row.name: row.cells for row in rows if row.cells}
    errors = {name: number(cells["error"]) for name, cells in found.items()}
    best, worst = (chosen(errors, key=lambda name: errors[name]) for chosen in (min, max))
    keeps = [name for name, cells in found.items() if cells["zero kept"] == "yes"]
    pure = [name for name, cells in found.items() if cells["δ"] == 0]
    sees = (
        f"The least error is that of {best}, {figure(errors[best])}, the largest that of {worst}, "
        f"{figure(errors[worst])}. An empty count stays 0 by {' and '.join(keeps) or 'none'}; δ is 0 "
        f"by {' and '.join(pure) or 'none'}."
    )
    bars = (("error of a count", "error", "claimed error"), ("messages a user", "messages a user", "claimed messages"))
    return Table(number=NUMBER, title=TITLE, how=HOW, rows=(*rows, unseen), sees=sees, bars=bars)
