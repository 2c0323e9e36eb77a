"""Every question about people and groups in a grid of extremes: planned in 10 CPU seconds, or refused in a sentence."""

import itertools
import sys
import time
from typing import Any

from report import figure, report

from shuffledp import Privacy
from shuffledp.errors import ParameterError
from shuffledp.protocols.catalogue import PROTOCOLS

GROUPS, RANGE, ROWS = {"groups": ["a", "b", "c"]}, {"low": 0, "high": 2}, {"at_most": 3}
DOMAINS: dict[str, dict[str, Any]] = {
    "repeated-count": ROWS,
    "repeated-sum": {**RANGE, **ROWS},
    "repeated-mean": {**RANGE, **ROWS},
    "repeated-histogram": {"categories": 16, "at_most": 2},
    "grouped-count": GROUPS,
    "grouped-rate": GROUPS,
    "grouped-sum": {**GROUPS, **RANGE},
    "grouped-mean": {**GROUPS, **RANGE},
    "grouped-moments": {**GROUPS, **RANGE},
    "grouped-histogram": {**GROUPS, "categories": 4},
    "grouped-rows-count": {**GROUPS, **ROWS},
    "grouped-rows-rate": {**GROUPS, **ROWS},
    "grouped-rows-sum": {**GROUPS, **RANGE, **ROWS},
    "grouped-rows-mean": {**GROUPS, **RANGE, **ROWS},
    "grouped-rows-moments": {**GROUPS, **RANGE, **ROWS},
}
USERS = (1, 2, 30, 1000, 10**6, 10**9, 10**12)
EPSILONS = (1e-6, 1e-3, 0.1, 1.0, 10.0, 100.0)
DELTAS = (1e-15, 1e-6, 0.5)
SECONDS = 10.0


def asked(protocol: str, users: int, epsilon: float, delta: float) -> tuple[float, str]:
    """CPU seconds, and what is wrong: nothing where it is planned and keeps its word, or refused in a sentence."""
    started, wrong = time.process_time(), ""
    try:
        plan = PROTOCOLS[protocol].plan(users=users, privacy=Privacy(epsilon, delta), **DOMAINS[protocol])
        if plan.guarantee().delta > delta:
            wrong = f"delta {plan.guarantee().delta:g} is more than was asked for"
    except ParameterError as refusal:
        if not str(refusal).endswith(".") or "\n" in str(refusal) or not refusal.way_out:
            wrong = f"no sentence: {refusal}"
    except Exception as broken:  # whatever comes is what this looks for
        wrong = f"{type(broken).__name__}: {broken}"
    return time.process_time() - started, wrong


def swept(names: list[str]) -> list[dict]:
    """The slowest question of each family, and how many went wrong."""
    rows = []
    for protocol in names:
        slowest, where, failures = 0.0, "", []
        for users, epsilon, delta in itertools.product(USERS, EPSILONS, DELTAS):
            seconds, wrong = asked(protocol, users, epsilon, delta)
            shown = f"users {users:g}, epsilon {epsilon:g}, delta {delta:g}"
            if seconds > slowest:
                slowest, where = seconds, shown
            if wrong:
                failures.append(f"{shown}: {wrong}")
        rows.append(figure(f"{protocol}: slowest, in CPU seconds", slowest, "<=", SECONDS, where))
        rows.append(figure(f"{protocol}: neither planned nor refused", len(failures), "<=", 0, "; ".join(failures[:3])))
    return rows


if __name__ == "__main__":
    sys.exit(report("Extremes of people and groups", swept(sys.argv[1:] or list(DOMAINS))))
