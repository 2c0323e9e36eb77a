"""Private bandits: Figure 1's order and ratios, slopes, what privacy costs arms, and speed beside two others."""

import argparse
import json
import math
import os
import subprocess
import sys
import time
import venv

import numpy as np
from report import FOLDER, figure, report

from shuffledp.experiments.arms import ArmsRegret, arms_regret
from shuffledp.experiments.linucb import RegretRow, figure_tasks, linucb_figure
from shuffledp.experiments.linucb_scaling import regret_growth
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.references.bandits.linucb import LinUCB
from shuffledp.simulation.environments.linear_every_round import BEHIND
from shuffledp.simulation.environments.linear_runs import run_linear_bandit
from shuffledp.simulation.environments.linear_worlds import FixedArms

CORES = 2
ARMS, DIMENSION, INSTANCES = 100, 5, 50
BELOW = (
    ("thompson", "linucb"),
    ("linucb", "concurrent-4"),
    ("thompson-concurrent-4", "concurrent-4"),
    ("concurrent-4", "shuffle-vec"),
    ("shuffle-vec", "ldp"),
    ("linucb", "jdp-buffers"),
    ("linucb", "jdp-sqrt"),
    ("linucb", "jdp-tree"),
    ("jdp-buffers", "shuffle-vec"),
    ("jdp-sqrt", "shuffle-vec"),
    ("concurrent-4", "jdp-tree"),
    ("jdp-tree", "shuffle-vec"),
)
# Trusted curators, the strongest of which ours is told beside.
CURATORS = ("jdp-buffers", "jdp-sqrt", "jdp-tree")
MABWISER = "mabwiser==2.7.4"
MABWISER_ROUNDS = """
import json, time
import numpy as np
from mabwiser.mab import MAB, LearningPolicy

arms, dimension, rounds = {arms}, {dimension}, {rounds}
generator = np.random.default_rng(1)
contexts = generator.standard_normal((arms + rounds, dimension))
contexts /= np.linalg.norm(contexts, axis=1, keepdims=True)
bandit = MAB(list(range(arms)), LearningPolicy.LinUCB(alpha=1.0))
bandit.fit(list(range(arms)), generator.integers(0, 2, arms), contexts[:arms])
rates = []
for part in np.array_split(contexts[arms:], 3):
    started = time.perf_counter()
    for context in part:
        arm = bandit.predict([context])
        bandit.partial_fit([arm], [int(generator.random() < 0.5)], [context])
    rates.append(len(part) / (time.perf_counter() - started))
print(json.dumps({{"rounds_per_second": max(rates)}}))
"""


def figure_one(instances: int) -> list[dict]:
    """All policies at three epsilons on the same worlds: who is below whom, with intervals apart."""
    load, started = os.getloadavg()[0], time.perf_counter()
    measured = linucb_figure(figure_tasks(1, instances=instances), workers=CORES)
    seconds = time.perf_counter() - started
    rows = []
    for epsilon in sorted({row.epsilon for row in measured if row.epsilon is not None}):
        here = {row.policy: row for row in measured if row.epsilon in (None, epsilon)}
        for low, high in BELOW:
            note = f"{_words(here[low])} and {_words(here[high])}; ends of 95% intervals"
            ratio = _end(here[low], 1) / _end(here[high], -1)
            rows.append(figure(f"epsilon {epsilon:g}: {low} below {high}", ratio, "<=", 1, note))
        ours = here["concurrent-4"]
        best = min((here[name] for name in CURATORS), key=lambda row: row.regret_mean)
        for other, words, most in (
            (best, f"the strongest curator, {best.policy}", 1.1),
            (here["shuffle-vec"], "shuffle-vec", 0.5),
        ):
            name, note = f"epsilon {epsilon:g}: concurrent-4 / {words}", f"{_words(ours)} / {_words(other)}"
            rows.append(figure(name, ours.regret_mean / other.regret_mean, "<=", most, note))
        # The ends of the 95% intervals that are nearest to each other.
        drawn = here["thompson-concurrent-4"]
        name, note = f"epsilon {epsilon:g}: Thompson / LinUCB, same releases", f"{_words(drawn)} / {_words(ours)}"
        rows.append(figure(name, _end(drawn, 1) / _end(ours, -1), "<=", 0.75, f"{note}; ends of 95% intervals"))
    policies = len({row.policy for row in measured})
    note = f"{policies} policies, 3 epsilons, {instances} instances, {CORES} cores; load {load:.1f} before it began"
    rows.append(figure("Figure 1: seconds", seconds, "<=", 60, note))
    return rows


def _end(row: RegretRow, side: int) -> float:
    return row.regret_mean + side * 1.96 * row.regret_standard_error


def _words(row: RegretRow) -> str:
    return f"{row.regret_mean:,.0f} ± {row.regret_standard_error:,.0f}"


def scaling(largest: int, instances: int) -> list[dict]:
    """New arms for every user: slopes of regret in their order, and none above the theory's but for logarithms."""
    growth = regret_growth(largest=largest, instances=instances, workers=CORES)
    rows = []
    for slope in growth.slopes:
        note = f"{slope.regret.low:.3f} to {slope.regret.high:.3f}; last decade {slope.last_decade.slope:.3f}"
        name = f"slope of {slope.policy}, theory {slope.theory:.2f}"
        rows.append(figure(name, slope.regret.slope, "<=", slope.theory + 0.1, note))
    for higher, lower in zip(growth.slopes, growth.slopes[1:], strict=False):
        name = f"slopes: {lower.policy} below {higher.policy}"
        note = f"{instances} worlds, up to {largest:,} users; ends of 95% intervals"
        rows.append(figure(name, lower.regret.high / higher.regret.low, "<=", 1, note))
    best = ", ".join(f"{row.shufflers} at {row.users:,}" for row in growth.rows if row.policy == "concurrent")
    last = {row.policy: row.regret_mean for row in growth.rows if row.users == largest}
    name = "regret of concurrent / shuffle-vec at the end"
    return [*rows, figure(name, last["concurrent"] / last["shuffle-vec"], "<=", 1, f"best k: {best}")]


def arms(largest: int, instances: int) -> list[dict]:
    """What privacy costs beyond the twin without noise, and doubling batches beside the best fixed ones."""
    result = arms_regret(largest=largest, instances=instances, workers=CORES)
    rows = []
    for row in result.exponents:
        note = f"{row.exponent:.2f} ({row.low:.2f} to {row.high:.2f}); the theory's is 1"
        rows.append(
            figure(f"extra regret against {row.against}: |exponent - 1|", abs(row.exponent - 1), "<=", 0.25, note)
        )
    for policy, most in (("doubling", 1.35), ("growing 1.25", 1.15)):
        ratios = _beside_fixed(result, policy)
        better = [f"epsilon {epsilon:g} T {horizon:,}" for (epsilon, horizon), ratio in ratios.items() if ratio < 1]
        note = f"better in {len(better)} of {len(ratios)}: {', '.join(better) or 'none'}"
        name = f"{policy} / best fixed m in hindsight, at worst"
        rows.append(figure(name, max(ratios.values()), "<=", most, note))
    return rows


def _beside_fixed(result: ArmsRegret, policy: str) -> dict[tuple[float, int], float]:
    return {
        (row.epsilon, row.horizon): row.regret_mean / result.best_fixed(row.epsilon, row.horizon).regret_mean
        for row in result.rows
        if row.policy == policy and row.epsilon is not None
    }


def speed(rounds: int) -> list[dict]:
    """Rounds a second of plain LinUCB: all instances at once, a loop over rounds, and MABWiser's."""
    world = FixedArms.drawn(INSTANCES, arms=ARMS, dimension=DIMENSION, generator=np.random.default_rng(1))
    policy = LinUCB(setting=LinearSetting(users=rounds, dimension=DIMENSION, nonnegative=True))
    fast, plain = [], []
    for _ in range(3):
        fast.append(_seconds(lambda: run_linear_bandit(policy, world, seed=1)) / (rounds * INSTANCES))
        generator = np.random.default_rng(1)
        plain.append(_seconds(lambda: plain_loop(world.features[0], world.means[0], rounds, generator)) / rounds)  # noqa: B023
    ours, loop = 1 / min(fast), 1 / min(plain)
    note = f"{ours:,.0f} beside {loop:,.0f} a second, a core each, {ARMS} arms, dimension {DIMENSION}"
    rows = [figure(f"rounds a second, {INSTANCES} instances / a NumPy loop", ours / loop, ">=", 12, note)]
    theirs, words = mabwiser_rounds(600)
    ratio = ours / theirs if theirs else 0.0
    return [*rows, figure("the same / MABWiser's LinUCB", ratio, ">=", 200, words)]


def plain_loop(features: np.ndarray, means: np.ndarray, rounds: int, generator: np.random.Generator) -> float:
    """LinUCB of one instance by the same rule, one round at a time, with rank-one updates of the inverse.

    Its least eigenvalue is as old as ours may be, so that the loop is not slowed by looking more often.
    """
    size = features.shape[1]
    inverse, vector, log_det, regret, pulled, due = np.eye(size), np.zeros(size), 0.0, 0.0, 1.0, 0
    for time_now in range(rounds):
        if time_now >= due:
            pulled, due = math.sqrt(np.linalg.eigvalsh(inverse)[-1]), time_now + 1 + int(BEHIND * time_now)
        along = features @ inverse
        widths = np.sqrt((along * features).sum(axis=1))
        radius = pulled + 0.5 * math.sqrt(2 * math.log(60) + log_det)
        arm = int((features @ (inverse @ vector) + radius * widths).argmax())
        growth = 1 + float(along[arm] @ features[arm])
        inverse -= np.outer(along[arm], along[arm]) / growth
        log_det += math.log(growth)
        if generator.random() < means[arm]:
            vector += features[arm]
        regret += means.max() - means[arm]
    return regret


def mabwiser_rounds(rounds: int) -> tuple[float | None, str]:
    """Rounds a second of MABWiser in an environment of its own, or None and why there are none."""
    folder = FOLDER.parent / "mabwiser"
    python = folder / "bin" / "python"
    try:
        if not python.exists():
            venv.create(folder, with_pip=True)
        install = [python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", MABWISER]
        subprocess.run(install, check=True, capture_output=True, text=True, timeout=600)
        script = MABWISER_ROUNDS.format(arms=ARMS, dimension=DIMENSION, rounds=rounds)
        done = subprocess.run([python, "-c", script], check=True, capture_output=True, text=True, timeout=600)
    except (OSError, subprocess.SubprocessError) as failed:
        last = str(getattr(failed, "stderr", None) or failed).strip().splitlines()[-1]
        return None, f"NOT MEASURED: {MABWISER} could not be installed or run: {last[:80]}"
    found = float(json.loads(done.stdout)["rounds_per_second"])
    return found, f"{MABWISER} has {found:,.0f} a second with {ARMS} arms, dimension {DIMENSION}"


def _seconds(call) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer worlds and users: intervals may overlap")
    quick = parser.parse_args().quick
    found = [
        *speed(4000 if quick else 20_000),
        *figure_one(10 if quick else INSTANCES),
        *arms(10**5 if quick else 10**6, 60 if quick else 400),
        *scaling(10**4 if quick else 10**6, 10 if quick else 20),
    ]
    sys.exit(report("Bandits", found))
