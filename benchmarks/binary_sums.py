"""Every binary sum of the survey, the audit and amplification: figures and times in one run."""

import sys
import time
from collections.abc import Callable

import numpy as np
from report import figure, report

from shuffledp import BinarySum, Privacy, RandomBits
from shuffledp.accounting.amplification import clones, stronger_clones
from shuffledp.accounting.curves import epsilon_at
from shuffledp.audit.trials import audit_plan

TARGET = Privacy(1, 1e-6)


def seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def errors() -> list[dict]:
    rows = []
    for method, users, limit in (
        ("correlated", 10_000, 1.6),
        ("poisson-bits", 10_000, 4.65),
        ("pure", 40, 2.9),
        ("rr", 10_000, 5.9),
        ("zsum", 10_000, 5.9),
    ):
        plan = BinarySum.plan(users=users, privacy=TARGET, method=method)
        note = f"{plan.messages_per_user_mean:.3g} messages a user; a curator's error is 1.357"
        # Of a large sum: zsum answers small ones with 0, and its standard error is the one at the worst sum.
        error = plan.standard_errors_for(np.ones(users, dtype=np.uint8))
        rows.append(figure(f"standard error, {method}, {users:,} users", error, "<=", limit, note))
        if error != plan.standard_error:
            rows.append(figure(f"the same at the worst sum, {method}", plan.standard_error, "<=", 27, note))
    for method, limit in (("rr", 11.8), ("pure", 14.9)):
        plan = BinarySum.plan(users=1000, privacy=TARGET, method=method)
        note = f"1.96 standard errors are {1.96 * plan.standard_error:.1f}; by Bennett's inequality 17.0 and 27.8"
        rows.append(figure(f"95% bound, {method}, 1,000 users", plan.error_bound, "<=", limit, note))
    messages = BinarySum.plan(users=10_000, privacy=TARGET, method="correlated").messages_per_user_mean
    rows.append(figure("messages a user, correlated, 10,000 users", messages, "<=", 1.2, "shares send 9"))
    return rows


def audits() -> list[dict]:
    plan = BinarySum.plan(users=80, privacy=TARGET, method="coins")
    started = time.perf_counter()
    half = audit_plan(plan, bits=RandomBits.secure(), sabotage=0.5)
    took = time.perf_counter() - started
    honest = audit_plan(plan, bits=RandomBits.secure())
    return [
        figure("audit, coins, 80 users, half the noise: epsilon found", half.epsilon_lower_bound, ">=", 1.0, "refuted"),
        figure("the same: seconds", took, "<=", 120.0, f"{half.trials:,} runs on each input"),
        figure("audit, honest plan: epsilon found", honest.epsilon_lower_bound, "<=", 1.0, "stands"),
    ]


def amplification() -> list[dict]:
    rows = []
    for epsilon, users in ((1.0, 10**4), (2.0, 10**5), (4.0, 10**6)):
        for make in (clones, stronger_clones):
            took = min(seconds(lambda: epsilon_at(make(epsilon, users), 1e-6)) for _ in range(3))  # noqa: B023
            note = f"epsilon {epsilon_at(make(epsilon, users), 1e-6):.7f}"
            rows.append(figure(f"{make.__name__}, eps0 {epsilon:g}, {users:.0e} users: seconds", took, "<=", 0.3, note))
    return rows


if __name__ == "__main__":
    sys.exit(report("Binary sums", [*errors(), *audits(), *amplification()]))
