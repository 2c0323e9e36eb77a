"""Audits: what is honest stands, and a twin with half of the noise is caught."""

from collections.abc import Callable
from typing import Any

from evidence.accuracy import TARGET
from evidence.claims import Claim, Effort, Measured, Says
from evidence.printed import Printed
from shuffledp import BinarySum, Privacy, RandomBits
from shuffledp.audit.trials import audit_plan
from shuffledp.protocols.catalogue import PROTOCOLS

PAGE = "docs/howto/find-out-that-a-mechanism-lies.md"
HOLDS = Printed("README.md", r"\(epsilon, delta\) holds against it", means=1.0)
CAUGHT = Printed(PAGE, r"--sabotage 0\.5   # refuted", means=1.0)
CHANCE = "A bound on epsilon that is wrong once in a thousand audits, however the event was chosen."


def audited(plan: Callable[[], Any], trials: int, sabotage: float) -> Callable[[Effort], Measured]:
    """The epsilon that an audit proves at least."""

    def measure(effort: Effort) -> Measured:
        runs = effort.of(1, 4) * trials
        found = audit_plan(plan(), bits=RandomBits.seeded(effort.seed), trials=runs, sabotage=sabotage)
        note = f"{2 * runs:,} runs of the randomizer; exact {found.epsilon_exact:.3f}"
        return Measured.exact(found.epsilon_lower_bound, note)

    return measure


PLANS: dict[str, tuple[Callable[[], Any], int]] = {
    "a count by coins, 80 people": (lambda: BinarySum.plan(users=80, privacy=TARGET, method="coins"), 1_600_000),
    "a count by shares, 10 people": (lambda: BinarySum.plan(users=10, privacy=TARGET, method="shares"), 100_000),
    "a mean by shares, 8 people": (
        lambda: PROTOCOLS["mean"].plan(users=8, privacy=TARGET, low=0, high=1, method="shares"),
        100_000,
    ),
    "a running count with carried noise, 147 people": (
        lambda: PROTOCOLS["counter"].plan(users=147, shufflers=3, privacy=Privacy(1, 0.02), method="carried"),
        40_000,
    ),
}

CLAIMS = [
    claim
    for name, (plan, trials) in PLANS.items()
    for claim in (
        Claim(
            name=f"The guarantee of {name}, stands: no event shows more than epsilon",
            printed=(HOLDS,),
            how="The randomizer is run on two inputs that differ in one person, in search of an event that tells.",
            because=CHANCE,
            says=Says.AT_MOST,
            measure=audited(plan, trials, 1.0),
        ),
        Claim(
            name=f"Half of the noise of {name}, is caught: an event shows more than epsilon",
            printed=(CAUGHT,),
            how="The same audit of a twin with half of the noise's variance, under the same claim.",
            because=CHANCE,
            says=Says.AT_LEAST,
            measure=audited(plan, trials, 0.5),
        ),
    )
]
