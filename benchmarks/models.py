"""Logistic regression on four tables of 500 to 500,000 rows: ours, every solver of ours, curators, local, non-private.

Everybody gets the same rows, none longer than 1, an intercept among them, and is measured on rows kept out. Bounds of
features are declared: those of the instruments where there are any, else round numbers. References are the strongest
there are: what they have to choose, local batches and diffprivlib's regularization, is the best in hindsight.
"""

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from diamonds import DIFFPRIVLIB, Split, diamonds, environment
from local_descent import LocalDescent
from report import FOLDER, figure, report, shown
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sweeps import Cells, add_options, cells_of

from shuffledp import Privacy, RandomBits
from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.errors import ShuffleDPWarning
from shuffledp.learn.optimize import L2Ball, LogisticLoss, Problem, Solver, plan, predicted_bounds
from shuffledp.learn.steps import compute
from shuffledp.simulation.optimize import optimize

_PARSER = argparse.ArgumentParser(description=__doc__)
_PARSER.add_argument("--quick", action="store_true")
_PARSER.add_argument("only", nargs="*", help="words of the tables' names")
add_options(_PARSER)
# Tasks elsewhere read only what decides a table.
ASKED = _PARSER.parse_known_args()[0]
QUICK, ONLY = ASKED.quick, ASKED.only
DELTA, LOSS = 1e-6, LogisticLoss()
EPSILONS = (1.0,) if QUICK else (0.5, 1.0, 4.0)
LARGE = 40_000
# One radius for all tables: room for models that are certain of most rows. A note says where a model came to its rim.
RADIUS = 100.0
# By name, every solver is run; on more people than these not gd, whose thousand rounds take minutes.
MANY, SLOW = 100_000, ("gd",)
# Solvers of thousands of people need fewer runs: their losses hardly differ between seeds.
RUNS = {1_000: 40, 10_000: 15, 100_000: 12, 10**9: 1}


def prepared(features: np.ndarray, labels: np.ndarray, low: np.ndarray, high: np.ndarray) -> "Table":
    inner = np.clip(2 * (features - low) / (high - low) - 1, -1, 1) / np.sqrt(features.shape[1])
    rows = np.column_stack((inner, np.ones(len(inner)))) / np.sqrt(2)
    order = np.random.default_rng(0).permutation(len(rows))
    train, test = order[: len(rows) * 4 // 5], order[len(rows) * 4 // 5 :]
    return Table(Split(rows[train], labels[train], rows[test], labels[test]))


class Table:
    """Rows to learn from, and rows to measure on."""

    def __init__(self, split: Split) -> None:
        self.split = split
        self.users, self.width = split.features.shape

    @property
    def runs(self) -> int:
        if QUICK:
            return min(3, 100_000 // self.users + 1)
        return next(runs for most, runs in RUNS.items() if self.users < most)

    def problem(self, epsilon: float, visits: int | None) -> Problem:
        ball = L2Ball(dimension=self.width, radius=RADIUS)
        return Problem.of(LOSS, ball, users=self.users, privacy=Privacy(epsilon, DELTA), visits=visits)

    def measured(self, models: np.ndarray) -> dict:
        """Log loss and AUC on the rows kept out: means over runs, and the loss's standard error."""
        truth = self.split.test_labels > 0
        scores = [self.split.test_features @ model for model in models]
        losses = [log_loss(truth, 1 / (1 + np.exp(-np.clip(each, -500, 500)))) for each in scores]
        spread = float(np.std(losses, ddof=1) / np.sqrt(len(losses))) if len(losses) > 1 else 0.0
        areas = [float(roc_auc_score(truth, each)) for each in scores]
        bound = sum(float(np.linalg.norm(model)) > 0.99 * RADIUS for model in models)
        return {"log_loss": float(np.mean(losses)), "error": spread, "auc": float(np.mean(areas)), "on_rim": bound}


def tables() -> Iterator[tuple[str, Callable[[], Table]]]:
    def breast() -> Table:
        data = load_breast_cancer()
        # Of each measurement, the range that a microscope's scale has: 1.2 times the largest in the table's own notes.
        high = 1.2 * data.data.max(axis=0)
        return prepared(data.data, 2.0 * data.target - 1, 0 * high, high)

    def digits() -> Table:
        data = load_digits()
        full = np.full(64, 16.0)
        return prepared(data.data, np.where(data.target >= 5, 1.0, -1.0), 0 * full, full)

    def made() -> Table:
        features, labels = make_classification(
            500_000, 10, n_informative=6, class_sep=0.7, weights=[0.85], random_state=0
        )
        return prepared(features, 2.0 * labels - 1, np.full(10, -5.0), np.full(10, 5.0))

    yield "breast cancer", breast
    yield "digits, above 4", digits
    yield "diamonds", lambda: Table(diamonds())
    yield "made", made


@lru_cache(maxsize=1)
def table_of(name: str) -> Table:
    """A table by its name, made once in every process."""
    return dict(tables())[name]()


@dataclass(frozen=True)
class Run:
    """One model: of which table, by which solver for which problem, and the seed of its noise."""

    table: str
    epsilon: float
    visits: int | None
    solver: str
    seed: int


@lru_cache(maxsize=4)
def _solver(table: str, epsilon: float, visits: int | None, solver: str) -> Solver:
    return plan(table_of(table).problem(epsilon, visits), solver=solver)


def learned(run: Run) -> dict:
    """The model, and how long it took to learn."""
    table = table_of(run.table)
    solver = _solver(run.table, run.epsilon, run.visits, run.solver)
    rows, started = (table.split.features, table.split.labels), time.perf_counter()
    theta = optimize(solver, LOSS, *rows, bits=RandomBits.seeded(run.seed)).theta
    return {"theta": theta.tolist(), "seconds": time.perf_counter() - started}


def ours(cells: Cells, name: str, problem: Problem, solver: str) -> tuple[dict, float]:
    table = table_of(name)
    runs = [Run(name, problem.privacy.epsilon, problem.visits, solver, seed) for seed in range(table.runs)]
    found = cells.run(runs, learned)
    models = np.array([each["theta"] for each in found])
    return table.measured(models), sum(each["seconds"] for each in found) / table.runs


def curator(table: Table, solver: Solver) -> dict:
    """A curator's twin: the rounds and steps of `auto`, Gaussian noise under the same accountant."""
    (stage,), privacy, rows = solver.stages, solver.problem.privacy, (table.split.features, table.split.labels)
    # The shift of each sum's round, as a part of all: Gaussian noise with the same parts has the same whole.
    shifts = {plan: plan.gaussian(plan.honest_users).shift for plan, _ in stage.sums}
    whole = np.sqrt(sum(times * shifts[plan] ** 2 for plan, times in stage.sums))
    models = []
    for seed in range(table.runs):
        rng, state = np.random.default_rng((7, seed)), solver.start()
        while (cohort := solver.ask(state)) is not None:
            sent = compute(cohort.step, rows, bits=RandomBits.seeded(0)).sum(axis=0)
            deviation = gaussian_standard_deviation(privacy, 2 * cohort.clip) * whole / shifts[cohort.plan]
            state = solver.tell(state, cohort.users, {1: sent + deviation * rng.standard_normal(sent.size)})
        models.append(solver.estimate(state))
    return table.measured(np.array(models))


def diffprivlib(table: Table, epsilon: float) -> tuple[dict, float]:
    """Its logistic regression, by perturbing the objective, C the best in hindsight; seconds are of one fit."""
    given, answer = FOLDER / "models.npz", FOLDER / "models-diffprivlib.json"
    np.savez(given, features=table.split.features, labels=table.split.labels)
    words = """
import json, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
from diffprivlib.models import LogisticRegression
rows = np.load(sys.argv[1])
found = []
for strength in (0.1, 1.0, 10.0, 100.0):
    models, seconds = [], []
    for seed in range(int(sys.argv[4])):
        started = time.perf_counter()
        model = LogisticRegression(
            epsilon=float(sys.argv[3]), data_norm=1.0, C=strength, fit_intercept=False, max_iter=1000, random_state=seed
        ).fit(rows["features"], rows["labels"])
        seconds.append(time.perf_counter() - started)
        models.append(model.coef_[0].tolist())
    found.append({"models": models, "seconds": sum(seconds) / len(seconds), "C": strength})
json.dump(found, open(sys.argv[2], "w"))
"""
    python = environment("diffprivlib", DIFFPRIVLIB)
    asked = [python, "-c", words, str(given), str(answer), str(epsilon), str(table.runs)]
    subprocess.run(asked, check=True)
    found = json.loads(answer.read_text())
    measured = [(table.measured(np.array(each["models"])) | {"C": each["C"]}, each["seconds"]) for each in found]
    return min(measured, key=lambda each: each[0]["log_loss"])


def local(table: Table, epsilon: float) -> dict:
    """Everybody answers once, for itself; the batch is the best in hindsight."""
    found = []
    for part in (0.01, 0.05, 0.2):
        descent = LocalDescent(
            users=table.users,
            privacy=Privacy(epsilon, DELTA),
            dimension=table.width,
            clip=1.0,
            smoothness=LOSS.smoothness,
            radius=RADIUS,
            batch=max(1, int(part * table.users)),
        )

        def gradients(first: int, count: int, theta: np.ndarray) -> np.ndarray:
            rows = slice(first, first + count)
            return LOSS.sent(theta, 1.0, None, table.split.features[rows], table.split.labels[rows])[0]

        models = [descent.fit(gradients, generator=np.random.default_rng((6, seed))) for seed in range(3)]
        found.append(table.measured(np.array(models)))
    return min(found, key=lambda each: each["log_loss"])


def non_private(table: Table) -> dict:
    model = LogisticRegression(C=1e4, fit_intercept=False, max_iter=10_000, tol=1e-8)
    return table.measured(model.fit(table.split.features, table.split.labels).coef_)


def words(found: dict) -> str:
    return f"{found['log_loss']:.4f} ± {found['error']:.4f} (AUC {found['auc']:.4f})"


def compared(cells: Cells, name: str, table: Table, epsilon: float, plain: dict) -> tuple[list[dict], dict]:
    """The figures of one table and epsilon, and everything that was measured."""
    rows, measured = [], {"table": name, "users": table.users, "epsilon": epsilon, "non_private": plain}
    peers, their_seconds = diffprivlib(table, epsilon)
    measured |= {"diffprivlib": peers, "local": local(table, epsilon)}
    for asked, visits in (("often", None), ("once", 1)):
        problem = table.problem(epsilon, visits)
        started = time.perf_counter()
        auto = plan(problem)
        planning = time.perf_counter() - started
        mine, seconds = ours(cells, name, problem, "auto")
        named = {}
        for row in predicted_bounds(problem):
            if row.refusal is None and row.bound != np.inf and not (table.users > MANY and row.solver in SLOW):
                named[row.solver] = ours(cells, name, problem, row.solver)[0]
        best = min(named, key=lambda each: named[each]["log_loss"])
        # What chance can do to a mean of so few runs is not the ranking's fault.
        chance = 2 * np.hypot(mine["error"], named[best]["error"]) / named[best]["log_loss"]
        ratio = mine["log_loss"] / named[best]["log_loss"] - 1
        note = (
            f"{auto.name}, {auto.rounds} rounds {words(mine)}; {best} {words(named[best])}; noise {100 * chance:.1f}%"
        )
        note += f"; {mine['on_rim']} of {table.runs} models on the rim" if mine["on_rim"] else ""
        title = f"{name}, {table.users:,}, epsilon {epsilon:g}, asked {asked}"
        rows.append(figure(f"{title}: auto above our best by name, %", 100 * ratio, "<=", 1 + 100 * chance, note))
        measured[asked] = {"auto": mine, "solver": auto.name, "rounds": auto.rounds, "seconds": seconds}
        measured[asked] |= {"planning": planning, "by_name": named, "chosen": auto.chosen.document()}
        if visits is None:
            central = curator(table, auto)
            measured["curator"] = central
            least = min((central, peers), key=lambda each: each["log_loss"])
            note = f"ours {words(mine)}; same steps by a curator {words(central)}; diffprivlib {words(peers)}"
            note += f", C {peers['C']:g}; non-private {words(plain)}; local {words(measured['local'])}"
            ahead = 100 * (mine["log_loss"] / least["log_loss"] - 1)
            beside = f"{title}: above the best curator, %"
            large = table.users > LARGE * 4 // 5
            rows.append(figure(beside, ahead, "<=", 2.0, note) if large else shown(beside, ahead, note))
        why = (
            f"{seconds:.2f} s + {planning:.2f} s planning, theirs {their_seconds:.2f} s; {auto.rounds} passes of exact "
        )
        why += "integer noise and rounding a row, where L-BFGS needs some tens in floats"
        ratio = (seconds + planning) / max(their_seconds, 1e-9)
        rows.append(shown(f"{title}: wall time / diffprivlib's", ratio, why))
    return rows, measured


def main() -> int:
    warnings.simplefilter("ignore", ShuffleDPWarning)
    FOLDER.mkdir(parents=True, exist_ok=True)
    rows, details = [], []
    with cells_of(ASKED, __file__) as cells:
        for name, _ in tables():
            if ONLY and not any(word in name for word in ONLY):
                continue
            table = table_of(name)
            plain = non_private(table)
            for epsilon in EPSILONS:
                figures, measured = compared(cells, name, table, epsilon, plain)
                rows.extend(figures)
                details.append(measured)
                (FOLDER / "models-details.json").write_text(json.dumps({"schema": 1, "runs": details}, default=float))
    return report("Models", rows)


if __name__ == "__main__":
    sys.exit(main())
