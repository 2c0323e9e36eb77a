"""The JavaScript client: its own tests, its laws against the exact ones, and a crowd of both kinds of devices."""

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from harness.node import Node, node_in
from harness.nursery import servers
from shuffledp.accounting.differences import Skellam
from shuffledp.privacy import Privacy
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.protocols.plan import Plan
from shuffledp.randomness import RandomBits
from shuffledp.sampling.laws import poisson
from shuffledp.service.client import Client
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.task import Task
from shuffledp.service.tokens import Tokens

FALSE_ALARM = 1e-9
SECURE = RandomBits.secure()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Node:
    """Node, with the client and its dependency."""
    return node_in(tmp_path_factory.mktemp("javascript"))


def test_its_own_tests_pass(node: Node) -> None:
    files = sorted(str(file.relative_to(node.folder)) for file in node.folder.glob("test/*.test.js"))
    ran = node.run("--test", "--test-reporter=tap", *files)
    assert ran.returncode == 0, ran.stdout[-6000:]
    passed = int(ran.stdout.rpartition("# pass ")[2].split()[0])
    assert passed > 130 and "# skipped 0" in ran.stdout


# --- laws ----------------------------------------------------------------------------------------

Masses = dict[str, float]


@dataclass(frozen=True)
class Law:
    """What one person's shuffled messages look like: outcomes as `draw.js` writes them, with exact probabilities."""

    protocol: str
    asked: dict[str, Any]
    value: Any
    masses: Callable[[Plan, Any], Masses]
    quieter: Callable[[dict[str, Any]], dict[str, Any]]
    times: int
    size: int | None = None
    seat: int = 0

    def plan(self) -> Plan:
        return PROTOCOLS[self.protocol].plan(privacy=Privacy(1, 1e-6), **self.asked)


def _bits(zeros: int, ones: int) -> str:
    return " ".join(f"0:{bit}x{many}" for bit, many in ((0, zeros), (1, ones)) if many)


def _poisson_bits(plan: Any, value: int) -> Masses:
    law = poisson(Fraction(plan.rate) / plan.honest_users)
    sizes = {law.low + place: float(mass) for place, mass in enumerate(law.masses())}
    cut = {k: mass for k, mass in sizes.items() if k < plan.most_noise_bits}
    cut[plan.most_noise_bits] = sum(mass for k, mass in sizes.items() if k >= plan.most_noise_bits)
    return {
        _bits(k - ones + (value == 0), ones + value): mass * math.comb(k, ones) / 2**k
        for k, mass in cut.items()
        for ones in range(k + 1)
    }


def _coins(plan: Any, value: int) -> Masses:
    return _unary(value, 1, plan.bits_per_user, plan.probability)


def _unary(number: int, length: int, coins: int, probability: float) -> Masses:
    weights = stats.binom.pmf(np.arange(coins + 1), coins, probability)
    return {
        _bits(length - number + coins - heads, number + heads): float(weight) for heads, weight in enumerate(weights)
    }


def _bounded(plan: Any, value: float) -> Masses:
    scaled = (value - plan.low) * plan.grid / (plan.high - plan.low)
    low, up = math.floor(scaled), scaled - math.floor(scaled)
    found: Masses = {}
    for number, part in ((low, 1 - up), (low + 1, up)):
        for outcome, mass in _unary(number, plan.grid, plan.coins, plan.probability).items() if part else ():
            found[outcome] = found.get(outcome, 0.0) + part * mass
    return found


def _decoys(plan: Any, value: int) -> Masses:
    """How many decoys name each of a few categories, beside the user's own."""
    found: Masses = {}
    for decoys in range(plan.coins + 1):
        chance = float(stats.binom.pmf(decoys, plan.coins, plan.probability))
        for counts in _compositions(decoys, plan.bins):
            ways = math.factorial(decoys) // math.prod(map(math.factorial, counts))
            named = [many + (code == value) for code, many in enumerate(counts)]
            outcome = " ".join(f"0:{code}x{many}" for code, many in enumerate(named) if many)
            found[outcome] = chance * ways / plan.bins**decoys
    return found


def _compositions(total: int, parts: int) -> list[tuple[int, ...]]:
    if parts == 1:
        return [(total,)]
    return [(first, *rest) for first in range(total + 1) for rest in _compositions(total - first, parts - 1)]


def _running(plan: Any, value: int) -> Masses:
    batch = plan.mechanism(RUNNING_SIZE)
    dealt = [(seat + 1) * batch.coins // batch.users - seat * batch.coins // batch.users for seat in range(batch.users)]
    return _unary(value, 1, dealt[RUNNING_SEAT], 0.5)


RUNNING_SIZE, RUNNING_SEAT = 45, 13


def _less(**parts: float) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The document of a plan with less of a parameter of its noise; whole numbers stay whole."""

    def change(document: dict[str, Any]) -> dict[str, Any]:
        noise = dict(document["noise"])
        for name, part in parts.items():
            noise[name] = type(noise[name])(part * noise[name])
        return {**document, "noise": noise}

    return change


# Coins of probability p have 20% less variance than fair ones where p (1 - p) is 0.2.
_QUIET = _less(probability=1 - math.sqrt(0.2))

LAWS = {
    "poisson-bits": Law(
        "binary-sum", {"users": 400, "method": "poisson-bits"}, 1, _poisson_bits, _less(rate=0.8), 20_000
    ),
    "coins": Law("binary-sum", {"users": 500, "method": "coins"}, 0, _coins, _less(probability=0.8), 60_000),
    "bits": Law("bounded-sum", {"users": 1000, "method": "bits", "low": 0, "high": 1}, 0.47, _bounded, _QUIET, 20_000),
    "decoys": Law(
        "histogram", {"users": 300, "method": "decoys", "categories": 3}, 2, _decoys, _less(probability=0.8), 20_000
    ),
    "counter": Law(
        "counter",
        {"users": 2000, "shufflers": 2, "method": "coins"},
        1,
        _running,
        _less(coins=0.8),
        8_000,
        RUNNING_SIZE,
        RUNNING_SEAT,
    ),
}


def _p_value(seen: dict[str, int], masses: Masses) -> float:
    """Chi-square against exact probabilities; rare outcomes count with the rarest that is expected 50 times or more."""
    times = sum(seen.values())
    assert abs(sum(masses.values()) - 1) < 1e-9
    if set(seen) - set(masses):
        return 0.0
    common = sorted((outcome for outcome, mass in masses.items() if mass * times >= 50), key=masses.__getitem__)
    found = np.array([seen.get(outcome, 0) for outcome in common], dtype=np.float64)
    expected = np.array([masses[outcome] * times for outcome in common])
    found[0] += times - found.sum()
    expected[0] += times - expected.sum()
    statistic = float(((found - expected) ** 2 / expected).sum())
    return float(special.chdtrc(len(found) - 1, statistic))


@pytest.fixture(scope="module")
def drawn(node: Node) -> dict[str, tuple[Plan, dict[str, int], dict[str, int]]]:
    """Of every law: its plan, what Node drew by it, and what it drew by a twin with less noise."""
    plans = {name: law.plan() for name, law in LAWS.items()}
    asked = []
    for name, law in LAWS.items():
        document = plans[name].document()
        for each in (document, law.quieter(document)):
            place = {"size": law.size or plans[name].users, "seat": law.seat}
            asked.append({"plan": each, "value": law.value, "times": law.times, "batches": [place]})
    answers = json.loads(node.answer("draw.js", json.dumps(asked)))
    return {name: (plans[name], *answers[2 * place : 2 * place + 2]) for place, name in enumerate(LAWS)}


@pytest.mark.parametrize("name", LAWS)
def test_its_laws_are_the_exact_ones_and_less_noise_is_refuted(drawn: Any, name: str) -> None:
    """False alarm 1e-9: Node's own draws against the exact law, and a twin whose noise is 20% less."""
    plan, honest, quieter = drawn[name]
    masses = LAWS[name].masses(plan, LAWS[name].value)
    assert _p_value(honest, masses) > FALSE_ALARM
    assert _p_value(quieter, masses) < FALSE_ALARM


# --- with the servers ----------------------------------------------------------------------------


def _released(reader: Any, path: str, last: int) -> dict[str, Any]:
    """The release after so many people, as soon as it is there."""
    deadline = time.monotonic() + 60
    while True:
        answer = reader.get(path)
        releases: list[dict[str, Any]] = answer.json()["releases"] if answer.is_success else []
        if releases and releases[-1]["time"] >= last:
            return releases[-1]
        assert time.monotonic() < deadline, answer.text
        time.sleep(0.05)


def _live(plan: Plan, hops: tuple[PrivateKey, ...], node: Node, folder: Path, values: list[Any]) -> dict[str, Any]:
    """Half of the people report by Node, half by Python, to servers of their own; the last release."""
    key, tokens = PrivateKey.generate(), Tokens.generate(bits=SECURE)
    task = Task.create(plan, key.public, bits=SECURE, hops=[hop.public for hop in hops], allow_unbounded=True)
    half = len(values) // 2
    with servers(folder, key, tokens, hops=hops) as running:
        running.add_task(task)
        url, token = running.url("shuffler"), tokens.secrets["enrol"]
        asked = {
            "taskId": task.id,
            "task": task.text,
            "shuffler": url,
            "token": token,
            "folder": str(folder / "outbox"),
        }
        sent = json.loads(node.answer("report.js", json.dumps({**asked, "values": values[:half]})))
        assert sent == {"reports": half, "new": half, "waiting": 0}
        with Client(task, url, token) as client:
            assert client.report_many(values[half:]).new == len(values) - half
        schedule = task.routing.schedule
        closed = min(schedule.slots - 1, schedule.place_of(len(values))[0])
        with running.client("analyzer", "read") as reader:
            return _released(reader, f"/v1/tasks/{task.id}/history", schedule.users_by(closed))


@dataclass(frozen=True)
class Crowd:
    """What is asked of people, over how many hops, and how far off the answer is but with `FALSE_ALARM`."""

    protocol: str
    asked: dict[str, Any]
    hops: int
    off: Callable[[Any], float]
    privacy: Privacy = field(default_factory=lambda: Privacy(3, 1e-3))


def _off_by_poisson(plan: Any) -> float:
    return float(Skellam(plan.rate * plan.users / plan.honest_users).deviation_quantile(FALSE_ALARM)) / 2


def _off_by_coins(plan: Any) -> float:
    """Hoeffding's bound for the coins of all batches of an estimate; those since the last one count by the rate."""
    return math.sqrt(plan.budget * plan.batch_noise.coins * math.log(2 / FALSE_ALARM) / 2)


def _off_as_proved(plan: Any) -> float:
    return float(plan.error_bound)


_SURE = {"confidence": 1 - FALSE_ALARM}

CROWDS = {
    "one shuffler": Crowd("binary-sum", {"method": "poisson-bits"}, 0, _off_by_poisson),
    "two hops": Crowd("binary-sum", {"method": "poisson-bits"}, 2, _off_by_poisson),
    "running": Crowd("counter", {"method": "coins", "shufflers": 2}, 0, _off_by_coins),
    "in shares": Crowd("counter", {"method": "skellam", "shufflers": 2, **_SURE}, 0, _off_as_proved, Privacy(8, 0.1)),
    "carried": Crowd("counter", {"method": "carried", "shufflers": 3, **_SURE}, 0, _off_as_proved, Privacy(8, 0.1)),
}


# The laws of all methods are tried above: with servers, one over hops and one running count are enough here.
@pytest.mark.parametrize(
    "name",
    [name if name in ("two hops", "carried") else pytest.param(name, marks=pytest.mark.sweep) for name in CROWDS],
)
def test_a_crowd_of_both_kinds_of_devices_is_counted(node: Node, tmp_path: Path, name: str) -> None:
    """Nothing is lost, nothing is malformed, and the estimate is as near as its law says."""
    crowd = CROWDS[name]
    values = [1] * 25 + [0] * 10 + [1] * 15 + [0] * 10
    plan = PROTOCOLS[crowd.protocol].plan(users=len(values), privacy=crowd.privacy, **crowd.asked)
    release = _live(plan, tuple(PrivateKey.generate() for _ in range(crowd.hops)), node, tmp_path, values)
    assert release["dropped"] == release["void"] == 0
    assert release["time"] > len(values) // 2 and abs(
        release["estimate"] - sum(values[: release["time"]])
    ) <= crowd.off(plan)
