"""What the geometry of an intercept costs: excess loss of skewed classes, by the constant's length and its radius."""

import math
import sys

import numpy as np
from report import figure, report

from shuffledp import Privacy, RandomBits
from shuffledp.learn.estimators.declared import INTERCEPT, INTERCEPT_RADIUS
from shuffledp.learn.optimize import BallWithIntercepts, ConvexSet, L2Ball, LogisticLoss, Problem, plan
from shuffledp.learn.optimize.running import CohortSums, run_solver
from shuffledp.sampling.permutation import uniform_permutation

QUICK = "--quick" in sys.argv
USERS, FEATURES, RADIUS, LOSS = 20_000, 10, 10.0, LogisticLoss()
SEEDS = 2 if QUICK else 4
# The rarer class's part, and a constant's length with its radius beside the weights', None for one ball.
RATES = (0.5, 0.1, 0.02)
GEOMETRIES = ((1.0, None), (0.5, None), (0.5, 1.0), (0.5, INTERCEPT_RADIUS), (0.5, 1.5), (0.7, 1.0))
OURS = (INTERCEPT, INTERCEPT_RADIUS)
SOLVERS = {"agd": {"rounds": 1000, "visits": 1}, "full-agd": {"rounds": 100}}


def people(rate: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Features within -1 and 1, mostly far from the corner, and labels of which so many are 1."""
    rng = np.random.default_rng(seed)
    features = np.clip(rng.normal(size=(USERS, FEATURES)) / 3, -1, 1)
    weights = rng.normal(size=FEATURES)
    scores = features @ (weights / np.linalg.norm(weights) * 6)
    low, high = -20.0, 20.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if (1 / (1 + np.exp(-scores - middle))).mean() < rate else (low, middle)
    return features, np.where(rng.random(USERS) < 1 / (1 + np.exp(-scores - low)), 1.0, -1.0)


def domain(part: float | None) -> ConvexSet:
    if part is None:
        return L2Ball(dimension=FEATURES + 1, radius=RADIUS)
    return BallWithIntercepts(dimension=FEATURES + 1, radius=RADIUS, intercept_radius=part * RADIUS, every=FEATURES + 1)


def excess(rate: float, length: float, part: float | None, name: str, seed: int) -> float:
    """The mean loss above that of the best model, rows being half as long as their bounds allow at most."""
    from sklearn.linear_model import LogisticRegression

    features, labels = people(rate, seed)
    norm = math.sqrt(FEATURES) / 2
    features /= np.maximum(1.0, np.linalg.norm(features, axis=1) / norm)[:, np.newaxis]
    rows = np.column_stack((features, np.full(USERS, length * norm))) / (norm * math.hypot(1, length) * (1 + 1e-12))
    problem = Problem.of(LOSS, domain(part), users=USERS, privacy=Privacy(1, 1e-6), **SOLVERS[name])
    bits = RandomBits.seeded(seed)
    order = uniform_permutation(USERS, bits=bits)
    sums = CohortSums(LOSS, LOSS.check_rows(FEATURES + 1, rows, labels), bits=bits, order=order)
    theta = run_solver(plan(problem, solver=name), sums).theta
    best = LogisticRegression(C=1e6).fit(features, labels).decision_function(features)
    return float(LOSS.values(theta, rows, labels).mean() - np.logaddexp(0, -labels * best).mean())


def main() -> int:
    figures = []
    for name in SOLVERS:
        for rate in RATES:
            found = {each: _mean(rate, *each, name) for each in GEOMETRIES}
            before = found[1.0, None]
            for (length, part), loss in found.items():
                radius = "one ball" if part is None else f"own radius {part:g}"
                what = f"{name}, one in {1 / rate:g}: constant {length:g}, {radius}"
                target = before if (length, part) == OURS else 1.0
                figures.append(figure(what, loss, "<=", target, "excess log loss; as it was: constant 1, one ball"))
    return report("Intercepts", figures)


def _mean(rate: float, length: float, part: float | None, name: str) -> float:
    return float(np.mean([excess(rate, length, part, name, seed) for seed in range(SEEDS)]))


if __name__ == "__main__":
    sys.exit(main())
