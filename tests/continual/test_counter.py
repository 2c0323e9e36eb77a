"""The counter: by law and by messages, step by step, restored in the middle of a batch."""

import json

import numpy as np
import pytest

from shuffledp.continual.counter import Counter, CounterState
from shuffledp.errors import BrokenBatchError, ParameterError
from shuffledp.messages import Batch
from shuffledp.privacy import Privacy
from shuffledp.protocols.sums.batches import CoinBatch
from shuffledp.randomness import RandomBits
from shuffledp.testing.statistics import assert_deviation, assert_law, assert_mean, assert_same_law

PRIVACY = Privacy(1, 1e-6)
FAMILIES = ("laplace", "coins", "skellam")


def small(family: str = "laplace", **asked) -> Counter:
    return Counter.of(users=400, shufflers=3, privacy=Privacy(2, 1e-3), noise=family, **asked)


@pytest.mark.parametrize(
    ("family", "honest_fraction"),
    [pytest.param("laplace", 1.0, marks=pytest.mark.sweep), ("laplace", 0.7), ("coins", 0.7), ("skellam", 1.0)],
)
def test_messages_and_law_agree(family: str, honest_fraction: float) -> None:
    counter = small(family, honest_fraction=honest_fraction)
    values = np.arange(400) % 3 == 0
    times = [counter.plan.slot_users, 201, 400]
    seen = {
        fast: np.array(
            [[run.at(t).value for t in times] for run in (counter.run(values, bits=b, fast=fast) for b in streams)]
        )
        for fast, streams in ((True, RandomBits.seeded(1).spawn(500)), (False, RandomBits.seeded(2).spawn(500)))
    }
    for place in range(len(times)):
        assert_same_law(seen[True][:, place], seen[False][:, place])


@pytest.mark.parametrize("family", FAMILIES)
def test_errors_have_the_deviation_that_is_claimed(family: str) -> None:
    counter = small(family)
    plan = counter.plan
    slot, _ = plan.schedule.place_of(plan.users)
    time = int(plan.schedule.users_by(slot))
    errors = [
        counter.run(np.ones(400, dtype=bool), bits=b).at(time).value - time for b in RandomBits.seeded(3).spawn(4000)
    ]
    expected = float(plan.standard_errors()[slot])
    assert_mean(errors, 0.0, expected)
    assert_deviation(errors, expected)


@pytest.mark.parametrize("kind", ["ones", "zeros", "random", "blocks"])
def test_the_bound_holds_over_the_whole_horizon(kind: str) -> None:
    """200 runs: passed in at most 5% and three deviations; and it is not far above what happens."""
    counter = Counter.of(users=20_000, shufflers=3, privacy=PRIVACY)
    rng = np.random.default_rng(1)
    values = {
        "ones": np.ones(20_000, dtype=bool),
        "zeros": np.zeros(20_000, dtype=bool),
        "random": rng.random(20_000) < 0.5,
        "blocks": np.repeat(rng.random(20_000 // 20) < 0.5, 20),
    }[kind]
    truth = np.cumsum(values)
    largest = np.array(
        [np.abs(counter.run(values, bits=b).every() - truth).max() for b in RandomBits.seeded(4).spawn(200)]
    )
    assert (largest > counter.plan.error_bound).mean() <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
    if kind in ("ones", "zeros"):
        assert counter.plan.error_bound <= 1.6 * np.quantile(largest, 0.95)


def test_step_by_step_as_in_one_run() -> None:
    """A server that asks, randomizes, shuffles by hand and tells, user by user, reads the same estimates."""
    counter = small()
    values = (np.arange(400) % 2).astype(np.uint8)
    expected = counter.run(values, bits=RandomBits.seeded(5), fast=False)
    state, held = counter.start(), {}
    bits = RandomBits.seeded(6)
    for user in range(400):
        cohort = counter.ask(state)
        assert len(cohort.batches) <= counter.plan.shufflers_used
        closed = {}
        for batch in cohort.batches:
            if batch.opens:
                held[batch.level] = []
            report = batch.mechanism.randomize(values[user : user + 1], batch.first_seat, bits=bits)
            held[batch.level].append(report.payloads)
            if batch.first_seat + 1 == batch.mechanism.users:
                released = Batch(np.concatenate(held.pop(batch.level)), batch.mechanism.users)
                closed[batch.level] = batch.mechanism.analyze(released)
        state = counter.tell(state, 1, closed)
        # Saved and restored after every user, in the middle of batches.
        state = CounterState.from_document(json.loads(json.dumps(state.document())))
        assert len(state.prefixes) <= counter.plan.shufflers_used + 1
        estimate = counter.estimate(state)
        assert abs(estimate.value - (user + 1) // 2) <= 4 * counter.plan.error_bound
        assert estimate.standard_error == expected.at(user + 1).standard_error
    assert state.users == 400


def test_the_plan_is_told_everybodys_place(monkeypatch: pytest.MonkeyPatch) -> None:
    counter = Counter.of(users=60, shufflers=2, privacy=Privacy(4, 1e-2))
    told: list[int] = []
    prepare = type(counter.plan).prepare

    def noted(plan, values, *, bits, positions):
        assert positions.dtype == np.int64 and positions.shape == values.shape
        told.extend(positions.tolist())
        return prepare(plan, values, bits=bits, positions=positions)

    monkeypatch.setattr(type(counter.plan), "prepare", noted)
    counter.run(np.arange(57) % 2, bits=RandomBits.seeded(1), fast=False)
    assert told == list(range(57))


def test_a_state_belongs_to_its_plan() -> None:
    counter, other = small(), small(confidence=0.9)
    state = counter.start()
    with pytest.raises(ParameterError, match="state"):
        other.ask(state)
    with pytest.raises(ParameterError, match="closed"):
        counter.tell(state, counter.ask(state).users, {})
    with pytest.raises(ParameterError, match="users"):
        counter.tell(state, 10**6, {})
    slot = counter.plan.slot_users
    for users, prefixes in ((3 * slot, {0: 0}), (0, {}), (0, {0: 10**6}), (1.5, {0: 0}), (True, {0: 0}), (0, {0: 0.5})):
        with pytest.raises(ParameterError, match=r"state|users"):
            counter.estimate(CounterState(state.fingerprint, users, prefixes))
    for told in (1.5, True):
        with pytest.raises(ParameterError, match="users"):
            counter.tell(state, told, {})
    whole = counter.ask(state)
    with pytest.raises(ParameterError, match="closed"):
        counter.tell(state, whole.users, {1: float("nan")})
    document = state.document()
    for change in ({"users": float("inf")}, {"users": 2.9}, {"prefixes": {"0": 0.7}}):
        with pytest.raises(ParameterError, match="state"):
            CounterState.from_document(document | change)
    for bad in (None, {"schema": 1}, {"schema": 2}, {"schema": 1, "fingerprint": "x", "users": "y", "prefixes": {}}):
        with pytest.raises(ParameterError, match="state"):
            CounterState.from_document(bad)


def test_fewer_users_than_planned_are_no_problem() -> None:
    counter = small()
    for users in (1, counter.plan.slot_users - 1, counter.plan.slot_users, 123):
        for fast in (True, False):
            run = counter.run(np.ones(users, dtype=np.uint8), bits=RandomBits.seeded(1), fast=fast)
            assert run.every().size == users and run.simulated
            assert run.at(0).value == 0 and run.at(users).value == run.every()[-1]
            assert not counter.run(np.ones(users, dtype=np.uint8), bits=RandomBits.secure(), fast=fast).simulated


@pytest.mark.parametrize(
    "bad",
    [
        np.ones(401, dtype=bool),
        [0.5] * 10,
        [2] * 10,
        [np.nan] * 10,
        [-1] * 10,
        [],
        [[1]],
        ["a"],
        np.full(9, 7, np.uint8),
    ],
)
def test_bad_values_are_refused(bad) -> None:
    with pytest.raises(ParameterError, match="values") as refused:
        small().run(bad, bits=RandomBits.seeded(1))
    assert str(refused.value).endswith(".")


def test_bad_values_are_named() -> None:
    with pytest.raises(ParameterError, match=r"nan in row 3"):
        small().run([0.0, 1.0, float("nan")], bits=RandomBits.seeded(1))
    with pytest.raises(ParameterError, match="time"):
        small().run([1, 0], bits=RandomBits.seeded(1)).at(3)


@pytest.mark.parametrize(("users", "coins"), [(7, 40), (40, 7 * 2), (100, 100), (1, 6)])
def test_coins_are_dealt_out_exactly(users: int, coins: int) -> None:
    batch = CoinBatch(users, coins)
    whole = batch.randomize(np.zeros(users, dtype=np.uint8), 0, bits=RandomBits.seeded(1))
    parts = [batch.randomize(np.zeros(1, dtype=np.uint8), seat, bits=RandomBits.seeded(1)) for seat in range(users)]
    assert whole.payloads.size == users + coins == sum(part.payloads.size for part in parts)
    assert [int(part.sizes[0]) for part in parts] == whole.sizes.tolist()
    assert int(whole.sizes.max()) == batch.messages_max and whole.sizes.mean() == pytest.approx(batch.messages_mean)
    with pytest.raises(BrokenBatchError):
        batch.analyze(Batch(whole.payloads[1:], users))


def test_the_noise_of_a_batch_of_coins_is_binomial() -> None:
    batch = CoinBatch(9, 20)
    drawn = [
        batch.analyze(Batch(batch.randomize(np.ones(9, dtype=np.uint8), 0, bits=b).payloads, 9)) - 9
        for b in RandomBits.seeded(1).spawn(20_000)
    ]
    from shuffledp.accounting.laws import Binomial

    assert_law(drawn, -10, np.exp(Binomial(20, 0.5).log_pmf(np.arange(21.0))))


@pytest.mark.parametrize("family", ["laplace", "skellam"])
def test_a_lost_share_voids_its_batch(family: str) -> None:
    counter = small(family)
    batch = counter.ask(counter.start()).batches[0]
    mechanism = batch.mechanism
    reports = mechanism.randomize(np.ones(mechanism.users, dtype=np.uint8), 0, bits=RandomBits.seeded(1))
    assert abs(mechanism.analyze(Batch(reports.payloads, mechanism.users)) - mechanism.users) < 200
    with pytest.raises(BrokenBatchError):
        mechanism.analyze(Batch(reports.payloads[1:], mechanism.users))
