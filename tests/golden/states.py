"""Saved states: some of a run's documents, each with the one after it, and the steps that lead from one to the next."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from shuffledp import Counter, Estimate, Privacy
from shuffledp.continual.counter import CounterState
from shuffledp.learn.bandits.arms.doubling_batches import DoublingBatches
from shuffledp.learn.bandits.arms.elimination import ArmsState
from shuffledp.learn.bandits.arms.fixed_batches import FixedBatches
from shuffledp.learn.bandits.linear.policy import LinearState
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.learn.optimize import HingeLoss, L2Ball, LogisticLoss, OptimizerState, Problem, SquaredLoss, plan
from shuffledp.references.bandits.catalogue import linear_policy

from .cases import Case

STATE_KINDS = ("counter state", "arms state", "linear state", "solver state")
MOST_STEPS = 2000
# Of every run these steps are kept, and the last.
KEPT = (0, 1, 2, 7, 30)

Record = dict[str, Any]


class Machine:
    """A run that asks and is told plain numbers: step i of it is a function of its state and of i."""

    numbers: Record
    load: Callable[[Any], Any]

    def __init__(
        self, numbers: Record, start: Any, load: Callable[[Any], Any], step: Callable[[Any, int], Any]
    ) -> None:
        self.numbers, self.start, self.load, self.step = numbers, start, load, step


def machine_of(case: Case) -> Machine:
    """The run of a case."""
    return _MACHINES[case.kind](case.ask)


def record_states(case: Case) -> Record:
    """Documents of a run: [step, document, document after one more step], at a few steps and before the end."""
    machine = machine_of(case)
    documents = [machine.start.document()]
    state = machine.start
    while len(documents) <= MOST_STEPS and (state := machine.step(state, len(documents) - 1)) is not None:
        documents.append(state.document())
    last = len(documents) - 2
    kept = sorted({step for step in (*KEPT, last // 2, last) if 0 <= step <= last})
    return {**machine.numbers, "steps": [[step, documents[step], documents[step + 1]] for step in kept]}


def _privacy(ask: Record) -> Privacy:
    return Privacy(ask["epsilon"], ask["delta"])


def _without(ask: Record, *names: str) -> Record:
    return {key: value for key, value in ask.items() if key not in names}


def _closed(batches: Any, users: int, coordinates: int, i: int) -> dict[int, Any]:
    """Noisy sums of the batches that close with so many more users."""
    closed: dict[int, Any] = {}
    for batch in batches:
        if batch.first_seat + users == batch.mechanism.users:
            sums = (i * 37 + batch.level * 11 + np.arange(coordinates) * 5) % 50 - 10
            closed[batch.level] = int(sums[0]) if coordinates == 1 else sums.astype(np.int64)
    return closed


def _some(users: int, i: int) -> int:
    """All users of a cohort, or half of them in every third step: states in the middle of a batch."""
    return max(1, users // 2) if i % 3 == 1 else users


def _counter(ask: Record) -> Machine:
    from .records import counter_plan

    # As in version 0.1.0, whose states these are.
    counter = Counter(replace(counter_plan(ask), counts_everybody=False))

    def step(state: CounterState, i: int) -> CounterState | None:
        if state.users == counter.plan.users:
            return None
        cohort = counter.ask(state)
        users = _some(cohort.users, i)
        return counter.tell(state, users, _closed(cohort.batches, users, counter.plan.domain.coordinates, i))

    return Machine({"plan": counter.plan.fingerprint}, counter.start(), CounterState.from_document, step)


def _arms(ask: Record) -> Machine:
    kind = DoublingBatches if ask["policy"] == DoublingBatches.policy else FixedBatches
    policy = kind(privacy=_privacy(ask), **_without(ask, "policy", "epsilon", "delta"))

    def step(state: ArmsState, i: int) -> ArmsState | None:
        cohort = policy.ask(state)
        if cohort is None:
            return None
        if cohort.plan is None or i == 3:
            return policy.tell(state, cohort.users, {} if cohort.plan is None else {1: None})
        value = cohort.users * (0.3 + 0.25 * cohort.arm) + i % 5 - 2
        told = Estimate(value=value, standard_error=1.0, bound=3.0, confidence=0.95)
        return policy.tell(state, cohort.users, {1: told})

    numbers = {
        "spec": policy.spec,
        "stages": [[stage.batch_users, stage.batches, stage.width] for stage in policy.stages[:20]],
        "plan": policy.batch_plan(policy.stages[0].batch_users).fingerprint,
        "guarantee": asdict(policy.guarantee()),
    }
    return Machine(numbers, policy.start(), ArmsState.from_document, step)


def _linear(ask: Record) -> Machine:
    setting = LinearSetting(users=ask["users"], dimension=ask["dimension"])
    policy = linear_policy(ask["policy"], setting, _privacy(ask), batch=ask["batch"])

    def step(state: LinearState, i: int) -> LinearState | None:
        if state.users == setting.users:
            return None
        cohort = policy.ask(state)
        users = _some(cohort.users, i)
        told: Mapping[int, Any] = {}
        if policy.is_counted:
            told = _closed(cohort.batches, users, setting.joint.length, i)
        elif (state.users + users) % policy.slot_users == 0:
            told = {1: [((i * 7 + place * 3) % 20) / 8 for place in range(setting.joint.length)]}
        return policy.tell(state, users, told)

    numbers = {
        "fingerprint": policy.fingerprint,
        "slot_users": policy.slot_users,
        "guarantee": policy.guarantee().document(),
        "regret_bound": policy.rule.regret_bound,
    }
    return Machine(numbers, policy.start(), LinearState.from_document, step)


_LOSSES = {"logistic": LogisticLoss, "hinge": HingeLoss, "squared": SquaredLoss}


def _solver(ask: Record) -> Machine:
    loss = _LOSSES[ask["loss"]](ridge=ask.get("ridge", 0.0))
    ball = L2Ball(dimension=ask["dimension"], radius=ask["radius"])
    limits = {"rounds": ask["rounds"]} if "rounds" in ask else {}
    problem = Problem.of(loss, ball, users=ask["users"], privacy=_privacy(ask), **limits)
    solver = plan(problem, solver=ask["solver"])

    def step(state: OptimizerState, i: int) -> OptimizerState | None:
        cohort = solver.ask(state)
        if cohort is None:
            return None
        if i == 2:
            return solver.tell(state, cohort.users, {1: None})
        parts = [((i * 7 + place * 5) % 13) / 13 - 0.4 for place in range(cohort.width)]
        return solver.tell(state, cohort.users, {1: [cohort.users * part for part in parts]})

    return Machine({"document": solver.document()}, solver.start(), OptimizerState.from_document, step)


_MACHINES: dict[str, Callable[[Record], Machine]] = {
    "counter state": _counter,
    "arms state": _arms,
    "linear state": _linear,
    "solver state": _solver,
}
