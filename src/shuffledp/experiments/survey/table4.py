"""Table 4: what sequentially interactive shuffle protocols do beside a curator: bandits and convex optimization."""

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.experiments.arms import extra_regret
from shuffledp.experiments.convex import SETTINGS, ConvexTask
from shuffledp.experiments.survey.measuring import Arm, Setting, lines_of, mean_of
from shuffledp.experiments.survey.results import Line, Measured, Row, Table, figure
from shuffledp.learn.bandits.arms.doubling_batches import DoublingBatches
from shuffledp.learn.bandits.arms.elimination import Elimination
from shuffledp.privacy import Privacy
from shuffledp.references.bandits.arms import CuratorElimination, LocalElimination
from shuffledp.references.curator_descent import CuratorDescent
from shuffledp.simulation.environments.convex import PROBABILITY, RADIUS, SignWorld

NUMBER = 4
TITLE = "Sequentially interactive: bandits and convex optimization"
HOW = (
    "Measured is what privacy costs: regret, or excess population loss, beyond that of the same policy or solver "
    "without noise on the same users, as the survey leaves out what there is without privacy. Bandits have gaps from "
    "0.3 to 0.6 and a tenth of ε, so that noise and not chance decides; convex problems are those of the optimization "
    "paper's own table."
)
_ROUNDS, _SMOOTHING = 64, 10.0

Floats = NDArray[np.float64]


def bandits(setting: Setting) -> Row:
    """Extra regret against the arms, the horizon and 1/epsilon."""
    epsilon = setting.privacy.epsilon / 10
    instances, horizon, arms = setting.pick(6, 40, 400), setting.pick(10**4, 10**7, 10**7), setting.pick(3, 9, 9)
    grids: dict[str, list[tuple[int, int, float]]] = {
        "k - 1": [(k, horizon, epsilon) for k in setting.pick((2, 3, 5), (2, 3, 5, 9), (2, 3, 5, 9, 17, 33))],
        "1/ε": [(arms, horizon, epsilon * f) for f in setting.pick((1.0, 2.0, 4.0), (0.5, 1, 2), (0.25, 0.5, 1, 2, 4))],
        "log T": [(arms, 10**p, epsilon) for p in setting.pick((3, 4, 5), (5, 6, 7, 8), (5, 6, 7, 8, 9, 10))],
    }
    lines: list[Line] = []
    for against, grid in grids.items():
        x = [{"k - 1": k - 1.0, "1/ε": 1 / e, "log T": math.log(t)}[against] for k, t, e in grid]
        arms_here: list[Arm] = [
            ("local", "elimination by randomized response", None),
            ("shuffle", "doubling batches by coins", 1.0),
            ("shuffle", "doubling batches by shares", 1.0),
            ("central", "elimination with discrete Laplace noise", 0.0 if against == "log T" else 1.0),
        ]
        found = ([_extra_regret(setting, name, k, t, e, instances) for _, name, _ in arms_here] for k, t, e in grid)
        lines += lines_of(against, x, found, arms_here, "extra regret")
    return Row(
        name="k-arm bandit: regret",
        survey={"S.I. shuffle": "O(k √log(1/δ) log T / ε)", "Central": "O(k / ε)"},
        source="[48] and [49]",
        lines=tuple(lines),
        notes=(
            f"{arms} arms, {horizon:,} users and ε = {epsilon:g} where they do not vary; {instances} random worlds.",
            "The curator here eliminates arms with batches that double, whose widths have a log T of their "
            "own; the survey's O(k/ε) "
            "leaves that to the regret without privacy. By shares the shuffle model has the curator's own law.",
            "The local line is not in the survey's table: its extra regret grows like 1/ε².",
        ),
    )


def _extra_regret(setting: Setting, name: str, arms: int, horizon: int, epsilon: float, instances: int) -> Measured:
    asked: dict[str, Any] = {"arms": arms, "horizon": horizon, "privacy": Privacy(epsilon, setting.privacy.delta)}
    policy: Elimination
    if name.startswith("doubling"):
        policy = DoublingBatches(**asked, method=name.split()[-1])
    elif "Laplace" in name:
        policy = CuratorElimination(**asked)
    else:
        policy = LocalElimination(**asked, growth=2.0)
    bits = setting.bits("arms", name, arms, horizon, epsilon)
    return mean_of(extra_regret(policy, instances, bits=bits, seed=setting.seed))


_CLAIMS = {
    "smoothed-agd": ("Convex, non-smooth", "O(d^(1/3) / ε^(2/3) n^(2/3))"),
    "agd": ("Convex, smooth", "O(d^(2/5) / ε^(4/5) n^(4/5))"),
    "phased-smoothed-agd": ("Strongly convex, non-smooth", "O(d^(2/3) / ε^(4/3) n^(4/3))"),
    "phased-agd": ("Strongly convex, smooth", "O(d / ε²n²)"),
}


def convex(setting: Setting, solver: str) -> Row:
    """Extra loss against the users."""
    kind = next(each for each in SETTINGS if each.solver == solver and each.visits == 1)
    name, claim = _CLAIMS[solver]
    sizes = setting.pick([200, 400, 800], [1000, 3162, 10_000, 31_623], [1000, 3162, 10_000, 31_623, 100_000, 316_228])
    instances = setting.pick(2, 6, 40)
    shuffle = []
    for users in sizes:
        task = ConvexTask(setting=kind.name, solver=solver, users=users, instances=instances, seed=setting.seed)
        row = task.at(kind, setting.privacy)
        width = 2 * row.extra_standard_error
        mean = row.extra_mean
        shuffle.append(Measured(value=mean, low=mean - width, high=mean + width, runs=row.runs))
    runs = setting.pick(5, 60, 400)
    central = [_curator_extra(setting, kind.world, users, runs) for users in sizes]
    arms: list[Arm] = [
        ("shuffle", solver, kind.theory),
        ("central", f"a curator's gradient descent, {_ROUNDS} rounds", None),
    ]
    return Row(
        name=f"SCO error: {name.lower()}",
        survey={"S.I. shuffle": claim, "Central": "O(√d / εn)"},
        source="[23] and [13]",
        lines=lines_of("users", sizes, zip(shuffle, central, strict=True), arms, "extra excess loss"),
        notes=(
            f"{kind.world.dimension} coordinates of all sizes. {kind.why[0].upper()}{kind.why[1:]}.",
            "The curator's rounds are as many for every n, so that its noise costs its variance, n^-2; O(√d/εn) is for "
            "the loss that is the worst at that n, and above.",
        ),
    )


def _curator_extra(setting: Setting, world: SignWorld, users: int, runs: int) -> Measured:
    """The mean over runs with noise and with the same noise mirrored, less the twin without noise on the same users."""
    # Kinks are rounded off, or averages over them would hide what noise costs.
    steepest = float(world.sizes.max()) if world.smooth else _SMOOTHING
    descent = CuratorDescent(
        users=users,
        privacy=setting.privacy,
        clip=1.0,
        radius=RADIUS,
        rounds=_ROUNDS,
        step_size=1 / (steepest + world.ridge),
    )
    extras = np.empty(runs)
    for run in range(runs):
        generator = setting.generator("curator", type(world).__name__, world.ridge, users, run)
        ones = generator.binomial(users, PROBABILITY, world.dimension)
        noise = generator.standard_normal((_ROUNDS, world.dimension)) * descent.standard_error

        def sums(point: Floats, ones: NDArray[np.int64] = ones) -> Floats:
            rounded = None if world.smooth else _SMOOTHING
            return np.asarray(world.gradient_sum(point, rounded, users, ones) + users * world.ridge * point)

        losses = [world.excess(descent.fit(sums, scale * noise)) for scale in (0, 1, -1)]
        extras[run] = (losses[1] + losses[2]) / 2 - losses[0]
    return mean_of(extras)


ROWS = (bandits, *(partial(convex, solver=solver) for solver in _CLAIMS))


def assemble(setting: Setting, rows: tuple[Row, ...]) -> Table:
    """The table, and what one sees in it."""
    arms, problems = rows[0], rows[1:]
    local, coins, shares, curator = (figure(line.points[0].value) for line in arms.lines if line.against == "1/ε")
    theory = {each.solver: each.theory for each in SETTINGS}
    slopes = ", ".join(
        f"{row.name.removeprefix('SCO error: ')} n^{row.lines[0].power} (theory {theory[row.lines[0].name]:.2f})"
        for row in problems
    )
    sees = (
        f"At the smallest ε privacy costs a bandit {curator} of regret with a curator, {shares} in the shuffle model "
        f"by shares, {coins} by coins and {local} in the local model. Extra loss falls like: {slopes}."
    )
    return Table(number=NUMBER, title=TITLE, how=HOW, rows=rows, sees=sees)
