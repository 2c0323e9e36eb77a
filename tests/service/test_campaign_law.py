"""Live campaigns have the law of simulated ones: states, estimates and regret; twins that cheat do not.

Every comparison is a chi-square test with a false-alarm rate of 1e-6. Devices draw from secure bits, so that no run is
like another. What a model is made of is compared exactly elsewhere (`harness.campaigns`): here it is what devices send.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from harness.live import BITS, LiveCampaign
from shuffledp.continual.counter import Counter
from shuffledp.continual.plan import CounterPlan
from shuffledp.learn import steps
from shuffledp.learn.bandits.arms.fixed_batches import FixedBatches
from shuffledp.learn.bandits.linear.concurrent import ConcurrentLinUCB
from shuffledp.learn.bandits.linear.counted import CountedPolicy
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.learn.bandits.linear.shuffle_vec import ShuffleVecLinUCB
from shuffledp.learn.optimize import L2Ball, LogisticLoss, Problem, plan
from shuffledp.messages import Reports
from shuffledp.privacy import Privacy
from shuffledp.randomness import RandomBits
from shuffledp.service.campaign import Campaign
from shuffledp.service.client import client as client_module
from shuffledp.service.client.making import _sealed
from shuffledp.service.crypto import PrivateKey, SigningKey
from shuffledp.service.device import Device
from shuffledp.simulation.arms import play
from shuffledp.simulation.linear_messages import run_with_messages
from shuffledp.simulation.optimize import optimize
from shuffledp.testing.statistics import assert_same_law

pytestmark = pytest.mark.usefixtures("in_the_clear")

FALSE_ALARM = 1e-6
LIVE, SIMULATED = 50, 950
SIGNING = SigningKey.generate()

Samples = NDArray[np.float64]


@pytest.fixture
def lives(key: PrivateKey) -> Callable[..., Iterator[LiveCampaign]]:
    """Runs of a campaign of a learner, one after another."""

    def make(learner: Any, times: int = LIVE, make_device: Any = Device) -> Iterator[LiveCampaign]:
        campaign = Campaign.create(learner, key.public, SIGNING.public, bits=BITS, allow_unbounded=True)
        for _ in range(times):
            yield LiveCampaign(campaign, key, SIGNING, make_device)

    return make


def alike(first: Samples, second: Samples) -> None:
    """Every column has one law in both."""
    for column in range(first.shape[1]):
        assert_same_law(first[:, column], second[:, column], false_alarm=FALSE_ALARM)


def differ(first: Samples, second: Samples) -> None:
    """A twin that passed would say that the test sees nothing."""
    with pytest.raises(AssertionError, match="two laws differ"):
        alike(first, second)


# --- noise that is forgotten ------------------------------------------------------------------


def without_noise(task: Any, values: Any, seats: Any, *, bits: RandomBits) -> list[bytes]:
    """A device that sends its bit and as many coins as the plan says, which it did not throw: every second is a one."""
    bodies = []
    for value, seat in zip(values, seats, strict=True):
        parts = []
        for batch in seat:
            drawn = task.plan.mechanism(batch.size).randomize(values, batch.seat, bits=bits)
            coins = (batch.seat + np.arange(drawn.payloads.size - 1)) % 2
            payloads = np.concatenate(([value], coins)).astype(drawn.payloads.dtype)
            parts += list(_sealed(task, batch, Reports(payloads, drawn.sizes, drawn.labels), bits))
        bodies.append(b"".join(parts))
    return bodies


# --- arms -------------------------------------------------------------------------------------

MEANS = np.array([0.2, 0.8])


@cache
def arms() -> FixedBatches:
    """A batch of three for each arm; the other three play what is best by then."""
    return FixedBatches(arms=2, horizon=9, privacy=Privacy(4, 1e-2), batch=3, method="coins")


def arms_live(runs: Iterator[LiveCampaign], people: np.random.Generator) -> Samples:
    found = []
    for run in runs:
        regret = 0.0
        for _ in range(arms().horizon):
            with run.device() as device:
                choice = device.choose()
                regret += MEANS.max() - MEANS[choice.offer]
                device.reward(choice, people.random() < MEANS[choice.offer])
        found.append([*run.state.sums, regret])
    return np.array(found)


@cache
def arms_simulated() -> Samples:
    people, found = np.random.default_rng(1), []
    for bits in RandomBits.seeded(2).spawn(SIMULATED):
        pulled: list[int] = []

        def rewards(arm: int, users: int, pulled: list[int] = pulled) -> Any:
            pulled += [arm] * users
            return people.random(users) < MEANS[arm]

        state = play(arms(), rewards, bits=bits)
        best = arms().best(state)
        pulled += [best] * (arms().horizon - len(pulled))
        found.append([*state.sums, float((MEANS.max() - MEANS[pulled]).sum())])
    return np.array(found)


def test_arms(lives: Any) -> None:
    alike(arms_live(lives(arms()), np.random.default_rng(3)), arms_simulated())


def test_arms_whose_devices_forget_their_noise_are_seen(lives: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "make_reports", without_noise)
    # In batches all of whose people have a reward for sure, nothing but noise differs between runs.
    people = np.random.default_rng(4)
    differ(arms_live(lives(arms(), 80), people), arms_simulated())


# --- a running statistic ----------------------------------------------------------------------


@cache
def count() -> CounterPlan:
    return CounterPlan.plan(users=12, shufflers=2, privacy=Privacy(4, 1e-2), noise="coins")


VALUES = [user % 3 == 0 for user in range(12)]
SLOT = 5


def count_live(runs: Iterator[LiveCampaign]) -> Samples:
    found = []
    for run in runs:
        said = []
        for value in VALUES:
            with run.device() as device:
                # The last two fill no slot, and are not asked.
                assert device.report(value).is_reported == (len(said) < 2 * SLOT)
                said.append(device.model().estimate)
        found.append([said[SLOT]["value"], said[-1]["value"]])
    return np.array(found)


@cache
def count_simulated() -> Samples:
    counter = Counter(count())
    runs = (counter.run(np.array(VALUES), bits=bits) for bits in RandomBits.seeded(5).spawn(SIMULATED))
    assert count().slot_users == SLOT
    return np.array([[run.at(SLOT).value, run.at(2 * SLOT).value] for run in runs])


def test_a_running_count(lives: Any) -> None:
    alike(count_live(lives(count().learner())), count_simulated())


def test_a_running_count_without_noise_is_seen(lives: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "make_reports", without_noise)
    differ(count_live(lives(count().learner())), count_simulated())


# --- linear bandits ---------------------------------------------------------------------------

OFFERS = np.array([[-1.0], [1.0]])
# Whoever takes the first offer gets -0.8, and the second 0.8: the first people, who know nothing, take the first.
THETA = 0.8


@cache
def bandit(kind: str) -> CountedPolicy:
    setting = LinearSetting(users=20 if kind == "concurrent" else 6, dimension=1, lowest_reward=-1.0)
    if kind == "concurrent":
        return ConcurrentLinUCB.planned(setting, Privacy(50, 0.1), shufflers=2)
    policy = ShuffleVecLinUCB.planned(setting, Privacy(50, 0.1), batch=2)
    return replace(policy, choice="posterior") if kind == "posterior" else policy


def bandit_live(policy: CountedPolicy, runs: Iterator[LiveCampaign]) -> Samples:
    found = []
    for run in runs:
        regret = 0.0
        for _ in range(policy.setting.users):
            with run.device() as device:
                choice = device.choose(None, OFFERS)
                regret += 2 * THETA * (choice.offer == 0)
                assert device.reward(choice, THETA * OFFERS[choice.offer, 0]).is_reported
        found.append([*run.state.released, regret])
    return np.array(found)


@cache
def bandit_simulated(kind: str) -> Samples:
    found = []
    for bits in RandomBits.seeded(6).spawn(SIMULATED):
        chosen: list[Any] = []

        def rewards(places: Any, chosen: list[Any] = chosen) -> Any:
            chosen.extend(places.tolist())
            return THETA * OFFERS[places, 0]

        def offer(users: int, rewards: Any = rewards) -> Any:
            return np.tile(OFFERS, (users, 1, 1)), rewards

        *_, last = run_with_messages(bandit(kind), offer, bits=bits)
        found.append([*last.released, 2 * THETA * chosen.count(0)])
    return np.array(found)


@pytest.mark.parametrize("kind", ["concurrent", "shuffle-vec", "posterior"])
def test_a_linear_bandit(kind: str, lives: Any) -> None:
    policy = bandit(kind)
    live, law = bandit_live(policy, lives(policy, 25 if kind == "concurrent" else LIVE)), bandit_simulated(kind)
    alike(live, law)
    # They learn: whoever never changed would take the first offer to the end.
    assert live[:, -1].mean() < 2 * THETA * policy.setting.users - 0.5


class ReadsTheFuture(Device):
    """Answers by a model that was made of its own slot's batch, and of later ones."""

    later: Any = None

    def model(self) -> Any:
        return replace(super().model(), step=self.later)


def test_devices_that_read_a_model_too_new_are_seen(lives: Any) -> None:
    policy = bandit("shuffle-vec")
    # Of rehearsals the first that has learned which offer is the better one.
    for rehearsal in lives(policy, 50):
        bandit_live(policy, iter([rehearsal]))
        later = policy.last_step(rehearsal.state)
        if steps.chosen_arms(later.parameters, OFFERS[np.newaxis], bits=BITS)[0] == 1:
            break
    twin = type("Twin", (ReadsTheFuture,), {"later": later})
    differ(bandit_live(policy, lives(policy, LIVE, twin)), bandit_simulated("shuffle-vec"))


# --- fits -------------------------------------------------------------------------------------

ROW, LABEL, CLIP = (0.6, 0.8), 1.0, 0.25


@dataclass(frozen=True)
class Fit:
    """A solver, how many people it has, and how often each comes."""

    solver: Any
    people: int
    visits: int


@cache
def fit(name: str) -> Fit:
    """Gradients are clipped to half of what they are at the beginning."""
    users, visits, rounds = (6, 1, 2) if name == "sgd" else (4, 3, 3)
    problem = Problem.of(
        LogisticLoss(),
        L2Ball(dimension=2, radius=2),
        users=users,
        privacy=Privacy(50, 0.1),
        visits=visits,
        rounds=rounds,
    )
    return Fit(plan(replace(problem, lipschitz=CLIP), solver=name), users, visits)


def fit_live(found: Fit, runs: Iterator[LiveCampaign]) -> Samples:
    samples = []
    for run in runs:
        devices = [run.device() for _ in range(found.people)]
        for _ in range(found.visits):
            for device in devices:
                assert device.contribute(ROW, LABEL).is_reported
        for device in devices:
            device.close()
        state = run.state
        assert state.round == found.solver.rounds
        samples.append([*state.point, *state.average])
    return np.array(samples)


@cache
def fit_simulated(name: str) -> Samples:
    found, loss = fit(name), LogisticLoss()
    rows = np.tile(ROW, (found.people, 1)), np.full(found.people, LABEL)
    runs = (
        optimize(found.solver, loss, *rows, bits=bits, fidelity="messages").state
        for bits in RandomBits.seeded(7).spawn(SIMULATED)
    )
    return np.array([[*state.point, *state.average] for state in runs])


@pytest.mark.parametrize("name", ["sgd", "gd"])
def test_a_fit(name: str, lives: Any) -> None:
    alike(fit_live(fit(name), lives(fit(name).solver)), fit_simulated(name))


def test_devices_that_forget_to_clip_are_seen(lives: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clipped = steps.gradient_of
    twin = lambda loss, asked, *rows: clipped(loss, {**asked, "clip": 1e9}, *rows)  # noqa: E731
    monkeypatch.setattr(steps, "gradient_of", twin)
    # The second line of defence: the plan refuses what is longer than its radius.
    with pytest.raises(ValueError, match="must"):
        fit_live(fit("sgd"), lives(fit("sgd").solver, 1))
    monkeypatch.setattr(type(fit("sgd").solver.seatings[0].plan), "check_values", lambda self, values: values)
    differ(fit_live(fit("sgd"), lives(fit("sgd").solver)), fit_simulated("sgd"))
