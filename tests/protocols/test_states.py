"""One codec for all states: what is written is read again, and nothing else is."""

import json
import math

import numpy as np
import pytest

from shuffledp import BinarySum, Privacy, RandomBits
from shuffledp.continual.counter import CounterState
from shuffledp.errors import DataError, ParameterError
from shuffledp.learn.bandits.arms.elimination import ArmsState
from shuffledp.learn.bandits.linear.policy import LinearState
from shuffledp.learn.optimize import OptimizerState, RoundsState
from shuffledp.messages import Batch
from shuffledp.protocols.rounds import RoundState
from shuffledp.protocols.states import State
from shuffledp.protocols.tallies import Tally

STATES: list[State] = [
    CounterState("f", 3, {0: 0, 2: -5}),
    CounterState("f", 3, {0: np.array([1, -2])}),
    ArmsState(fingerprint="f", users=4, stage=1, told=0, active=(0, 2), sums=(0.5, 1.0, 2.0), counts=(1, 1, 2)),
    LinearState("f", 7, (0.25, -1.0)),
    LinearState("f", 7, (0.25, -1.0), CounterState("g", 7, {1: 2})),
    OptimizerState("f", 2, np.array([0.5]), np.array([1e-300]), 1),
    RoundsState("f", 2, np.array([0.5]), np.array([0.25, 1e-300]), 1),
    RoundState("f", 5),
    RoundState("f", 5, Tally(np.array([3, 2]), 5, 5)),
]


@pytest.mark.parametrize("state", STATES, ids=lambda state: type(state).__name__)
def test_a_state_survives_paper(state: State) -> None:
    document = json.loads(json.dumps(state.document(), allow_nan=False))
    assert list(document)[:2] == ["schema", "fingerprint"]
    again = type(state).from_document(document)
    assert again == state and hash(again) == hash(state) and again.document() == document
    assert type(state).from_document({**document, "fingerprint": "other"}) != state


@pytest.mark.parametrize("state", STATES, ids=lambda state: type(state).__name__)
def test_no_other_document_is_a_state(state: State) -> None:
    document = state.document()
    for broken in (None, [], "state", {}):
        with pytest.raises(DataError, match="state must be an object with schema 1"):
            type(state).from_document(broken)
    with pytest.raises(DataError, match=r"state\.schema must be 1, got 2: use the shuffledp that wrote it"):
        type(state).from_document({**document, "schema": 2})
    for name in set(document) - {"schema"}:
        with pytest.raises(DataError, match=f"all its fields, got no {name}"):
            type(state).from_document({key: value for key, value in document.items() if key != name})
        for wrong in (1.5, True, math.nan, [True], ["1"], {"0": 0.5}, [[1.0]]):
            with pytest.raises(DataError, match=rf"^(state|{name}(\.\w+)?) must .*: restore it from a copy\.$"):
                type(state).from_document({**document, name: wrong})


def test_a_state_of_another_learner_is_refused() -> None:
    one, other = (BinarySum.plan(users=users, privacy=Privacy(1, 1e-6), method="coins").learner() for users in (9, 10))
    with pytest.raises(ParameterError, match="must belong to the plan"):
        other.ask(one.start())


def test_one_round_is_saved_before_and_after_its_batch() -> None:
    plan = BinarySum.plan(users=20, privacy=Privacy(1, 1e-6), method="coins")
    learner = plan.learner()
    state = RoundState.from_document(learner.start().document())
    cohort = learner.ask(state)
    assert cohort is not None and learner.estimate(state) is None
    reports = plan.randomize(np.ones(20, dtype=np.uint8), bits=RandomBits.seeded(1))
    tally = plan.tally(Batch(reports.payloads, 20))
    done = RoundState.from_document(json.loads(json.dumps(learner.tell(state, 20, {1: tally}).document())))
    assert learner.estimate(done) == plan.estimate(tally)
