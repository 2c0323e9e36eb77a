"""Recommenders and models that learn from people whom nobody sees, beside a curator's and the local model's."""

import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache

from evidence.claims import Claim, Effort, Measured, normal_quantile
from evidence.measuring import ratio
from evidence.printed import ROOT, Printed
from shuffledp.experiments.linucb import FigureTask

BANDITS, NETWORK = "docs/theory/002-linear-bandits.md", "docs/theory/001-convex-optimization.md"
RECOMMEND = "docs/howto/recommend-without-seeing.md"
WORLDS = "Other worlds and other noise: both runs' chance is allowed, 3.9 standard errors of each."


@cache
def regret(policy: str, effort: Effort) -> Measured:
    """The regret of a policy at epsilon 1 in the worlds of the paper's Figure 1, drawn anew."""
    worlds = effort.of(60, 400)
    row = FigureTask(policy=policy, epsilon=1.0, dimension=5, instances=worlds, seed=effort.seed).run()
    around = normal_quantile() * row.regret_standard_error
    return Measured(row.regret_mean, row.regret_mean - around, row.regret_mean + around, f"{worlds} worlds")


def _regrets() -> list[Claim]:
    found = []
    for policy, words, more in (
        ("linucb", r"`linucb`, not private \|", ()),
        ("thompson", r"`thompson`, not private \|", ()),
        (
            "thompson-concurrent-4",
            r"`thompson-concurrent-4` \|[^|]*\|",
            (Printed(RECOMMEND, r"far less: ([\d,]+) on the releases"),),
        ),
        ("jdp-buffers", r"`jdp-buffers` \|[^|]*\|", ()),
        (
            "concurrent-4",
            r"`concurrent-4`, carried noise \|[^|]*\|",
            (Printed(RECOMMEND, r"where LinUCB has ([\d,]+), on exactly"),),
        ),
        ("shuffle-vec", r"`shuffle-vec`, B = 20 \|[^|]*\|", ()),
        ("ldp", r"`ldp` \|[^|]*\|", ()),
    ):
        found.append(
            Claim(
                name=f"Regret of {policy} at epsilon 1, 20,000 people, 100 offers",
                printed=(Printed(BANDITS, rf"\| {words} ([\d,]+) ± (\d+) \|"), *more),
                how="The experiment of `shuffledp papers linucb`, Figure 1 of [002], in other worlds.",
                because=WORLDS,
                slack=0.12 if more else 0.0,
                measure=lambda effort, policy=policy: regret(policy, effort),  # type: ignore[misc]
            )
        )
    return found


@cache
def network(effort: Effort) -> dict[str, float]:
    """What examples/private_network.py prints: the accuracy of each of three models."""
    command = [sys.executable, str(ROOT / "examples" / "private_network.py")]
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600).stdout
    return {name: float(value) for name, value in re.findall(r"^(\w+).*: +(0\.\d+)", said, re.MULTILINE)}


def accuracy(of: str) -> Callable[[Effort], Measured]:
    """The accuracy of one model; how far one run differs from another is printed as a deviation."""
    return lambda effort: Measured.exact(network(effort)[of], "one run of the example")


CLAIMS = [
    *_regrets(),
    Claim(
        name="Four shufflers' regret through the strongest curator's, at epsilon 1",
        printed=(Printed(BANDITS, r"Four shufflers have [\d.]+, ([\d.]+) and [\d.]+ times the regret"),),
        how="Both in the same worlds.",
        because=WORLDS,
        measure=lambda effort: ratio(regret("concurrent-4", effort), regret("jdp-buffers", effort)),
    ),
    *(
        Claim(
            name=f"A network on digits at epsilon 4: the accuracy of {who}",
            printed=(Printed(NETWORK, r"\| 4 \|" + r"[^|]*\|" * column + r" (0\.\d+) ± (0\.\d+) \|"),),
            how="examples/private_network.py, 40 rounds of 1,437 people.",
            because="One run; printed is the deviation between runs, of which 3.9 are allowed.",
            measure=accuracy(named),
        )
        for column, (who, named) in enumerate(
            (
                ("people whom nobody sees", "shuffled"),
                ("a curator's DP-SGD, same steps", "a"),
                ("the same steps without noise", "without"),
            )
        )
    ),
]
