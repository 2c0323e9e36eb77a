"""Figures 1 and 2 of [002], with noise that is proved: regret of LinUCB in every trust model.

100 arms, theta and features on the raised sphere (`linear_worlds`), Bernoulli rewards, 20,000 users, delta 0.1,
batches of 20 for the two policies of the paper and for the local one's updates. Figure 1 has dimension 5, Figure 2
has 10 and 15. All inner products of features are >= 0, so the joint vector's sensitivity is 2. All policies have the
same worlds, and the same rule for regularizer and radius.
"""

import json
import math
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shuffledp.errors import ParameterError
from shuffledp.files import whole_file
from shuffledp.learn.bandits.linear.catalogue import POLICIES, linear_policy
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.privacy import Privacy
from shuffledp.simulation.environments.linear_runs import run_linear_bandit
from shuffledp.simulation.environments.linear_worlds import FixedArms

USERS, ARMS, BATCH, DELTA = 20_000, 100, 20, 0.1
EPSILONS = (0.2, 1.0, 10.0)
DIMENSIONS = {1: (5,), 2: (10, 15)}
# How long a policy takes beside the others, so that the longest ones begin first.
_SLOW = ("jdp-tree", "linucb")

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One policy at one epsilon in one dimension; without privacy, epsilon is None."""

    policy: str
    epsilon: float | None
    dimension: int
    instances: int
    users: int = USERS
    seed: int = 1

    @property
    def key(self) -> str:
        """What decides the row."""
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegretRow:
    """Final regret over instances, and its mean and standard error along the way."""

    policy: str
    epsilon: float | None
    dimension: int
    instances: int
    regret_mean: float
    regret_standard_error: float
    seconds: float
    slot_users: int
    times: tuple[int, ...]
    curve_mean: tuple[float, ...]
    curve_standard_error: tuple[float, ...]


def run_task(task: Task) -> RegretRow:
    """Measure one row; the same whichever others are asked for with it."""
    started = time.perf_counter()
    setting = LinearSetting(users=task.users, dimension=task.dimension, nonnegative=True)
    privacy = Privacy(1.0 if task.epsilon is None else task.epsilon, DELTA)
    policy = linear_policy(task.policy, setting, privacy, batch=min(BATCH, task.users))
    generator = np.random.default_rng((task.seed, task.dimension))
    world = FixedArms.drawn(task.instances, arms=ARMS, dimension=task.dimension, generator=generator)
    curves = run_linear_bandit(policy, world, seed=task.seed)
    errors = curves.regret.std(axis=0, ddof=1) / math.sqrt(task.instances)
    return RegretRow(
        policy=task.policy,
        epsilon=task.epsilon,
        dimension=task.dimension,
        instances=task.instances,
        regret_mean=curves.mean,
        regret_standard_error=curves.standard_error,
        seconds=time.perf_counter() - started,
        slot_users=policy.slot_users,
        times=tuple(curves.times.tolist()),
        curve_mean=tuple(curves.regret.mean(axis=0).tolist()),
        curve_standard_error=tuple(errors.tolist()),
    )


def figure_tasks(
    figure: int, *, instances: int, seed: int = 1, users: int = USERS, policies: Sequence[str] = POLICIES
) -> list[Task]:
    """In the order of the table: plain LinUCB once for each dimension."""
    if figure not in DIMENSIONS:
        raise ParameterError("figure", figure, "must be 1 or 2", "1 has dimension 5, 2 has 10 and 15")
    if instances < 2:
        raise ParameterError("instances", instances, "must be >= 2", "50 are the paper's")
    if seed < 0:
        raise ParameterError("seed", seed, "must be >= 0", "pass for instance 1")
    return [
        Task(policy=policy, epsilon=epsilon, dimension=dimension, instances=instances, users=users, seed=seed)
        for dimension in DIMENSIONS[figure]
        for policy in policies
        for epsilon in ((None,) if policy == "linucb" else EPSILONS)
    ]


def linucb_figure(
    tasks: Sequence[Task], *, workers: int = 1, cache: Path | None = None, progress: Progress | None = None
) -> list[RegretRow]:
    """All rows, in the tasks' order; those in the cache are not measured again."""
    known = _read(cache)
    missing = [task for task in tasks if task.key not in known]
    weight = {task.key: task.users * task.instances * task.dimension for task in tasks}
    done, total = sum(weight[task.key] for task in tasks if task.key in known), sum(weight.values())
    for task, row in _measured(sorted(missing, key=lambda task: task.policy not in _SLOW), workers):
        known[task.key] = row
        done += weight[task.key]
        _write(cache, known)
        if progress is not None:
            progress(done, total)
    return [known[task.key] for task in tasks]


def _measured(tasks: Sequence[Task], workers: int) -> Iterator[tuple[Task, RegretRow]]:
    if workers <= 1 or len(tasks) <= 1:
        yield from ((task, run_task(task)) for task in tasks)
        return
    # Spawned, not forked: the command line may hold threads.
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        running = {pool.submit(run_task, task): task for task in tasks}
        for finished in as_completed(running):
            yield running[finished], finished.result()


def _read(cache: Path | None) -> dict[str, RegretRow]:
    if cache is None or not cache.exists():
        return {}
    try:
        document: dict[str, dict[str, Any]] = json.loads(cache.read_text())
        return {
            key: RegretRow(**{name: _frozen(value) for name, value in row.items()}) for key, row in document.items()
        }
    except (ValueError, TypeError, AttributeError):
        problem = "must hold rows of this experiment"
        raise ParameterError("cache", str(cache), problem, "remove it, or name another picture") from None


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _write(cache: Path | None, known: dict[str, RegretRow]) -> None:
    if cache is not None:
        with whole_file(cache, parameter="cache") as file:
            file.write(json.dumps({key: asdict(row) for key, row in known.items()}).encode())
