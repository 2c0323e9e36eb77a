"""Both clients draw by one law: Node's reports against Python's, by every method whose exact law is not written out."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scipy import special

from harness.node import Node, node_in
from shuffledp.privacy import Privacy
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.protocols.plan import Plan
from shuffledp.protocols.sums.noise import LaplaceNoise
from shuffledp.randomness import RandomBits
from shuffledp.service.routing import Routing

FALSE_ALARM = 1e-9
# Outcomes that both together saw less often are counted as one.
_LEAST = 60

Document = dict[str, Any]


def _less(**parts: float) -> Callable[[Document], Document]:
    """The document of a plan with less of some parameters of its noise."""

    def change(document: Document) -> Document:
        noise = dict(document["noise"])
        for name, part in parts.items():
            whole = isinstance(noise[name], list)
            noise[name] = [[part * each for each in row] for row in noise[name]] if whole else part * noise[name]
        return {**document, "noise": noise}

    return change


@dataclass(frozen=True)
class Kind:
    """What is asked for, one person's value, where the person sits, and a twin with a fifth of the noise less."""

    protocol: str
    asked: dict[str, Any]
    value: Any
    quieter: Callable[[Document], Document]
    times: int
    mod: int | None = None
    bin: int | None = None
    position: int = 0
    privacy: Privacy = field(default_factory=lambda: Privacy(1, 1e-6))

    def plan(self) -> Plan:
        return PROTOCOLS[self.protocol].plan(**{"privacy": self.privacy, **self.asked})


_WEAK = Privacy(4, 0.1)
_FEW = Privacy(6, 0.3)


def _quieter_laplace(document: Document) -> Document:
    """The ratio with which discrete Laplace noise has a fifth less variance."""
    return {
        **document,
        "noise": {**document["noise"], **LaplaceNoise(document["noise"]["ratio"]).quieter(0.8).parameters},
    }


KINDS = {
    "pure": Kind("binary-sum", {"users": 8, "method": "pure"}, 1, _less(random_probability=0.8), 18_000),
    "rr": Kind("binary-sum", {"users": 80, "method": "rr"}, 0, _less(random_probability=0.8), 15_000),
    "correlated": Kind(
        "binary-sum",
        {"users": 5, "method": "correlated"},
        1,
        _less(flood_shape=0.8, ratio=0.8),
        12_000,
        privacy=_WEAK,
    ),
    "buckets": Kind(
        "histogram",
        {"users": 20, "method": "buckets", "categories": 17, "max_messages": 2},
        3,
        _less(probability=0.8),
        6_000,
        mod=3,
        privacy=_FEW,
    ),
    "hadamard": Kind(
        "histogram",
        {"users": 50, "method": "hadamard", "categories": 40, "max_messages": 2},
        3,
        _less(probability=0.8),
        6_000,
        mod=3,
        privacy=_FEW,
    ),
    "correlated-names": Kind(
        "histogram",
        {"users": 8, "method": "correlated", "categories": 2},
        0,
        _less(flood_shape=0.8),
        8_000,
        privacy=_WEAK,
    ),
    "zsum": Kind("binary-sum", {"users": 150, "method": "zsum"}, 1, _less(silence=0.8), 10_000),
    "zsum-names": Kind("histogram", {"users": 200, "method": "zsum", "categories": 3}, 1, _less(silence=0.8), 6_000),
    "opt-in": Kind("histogram", {"users": 200, "method": "opt-in", "categories": 3}, 1, _less(probability=0.8), 6_000),
    "fake-users": Kind("histogram", {"users": 200, "method": "fake-users", "categories": 3}, 1, _less(flip=0.8), 6_000),
    "laplace": Kind(
        "counter",
        # Of few who are counted on everybody adds much.
        {"users": 400, "shufflers": 1, "method": "laplace", "honest_fraction": 0.05},
        1,
        _quieter_laplace,
        30_000,
        bin=1,
    ),
    "skellam": Kind(
        "counter", {"users": 2000, "shufflers": 2, "method": "skellam"}, 1, _less(variance=0.8), 15_000, bin=1
    ),
    "carried": Kind(
        "counter",
        {"users": 6000, "shufflers": 3, "method": "carried"},
        1,
        _less(variance=0.8, begins=0.8),
        9_000,
        bin=0,
        position=3007,
    ),
}


def _batches(plan: Plan, position: int) -> list[Any]:
    return list(Routing.of(plan.layout).batches_of(position))


def _counted(payloads: Any, labels: Any, mod: int | None) -> str:
    marks = zip(np.zeros_like(payloads) if labels is None else labels, payloads, strict=True)
    seen = Counter(f"{label}:{said}" if mod is None else f"{label % mod}:{said % mod}" for label, said in marks)
    return " ".join(f"{what}x{many}" for what, many in sorted(seen.items()))


def _python_draws(kind: Kind, plan: Plan, width: int | None) -> Counter[str]:
    """What Python's randomizer does, in the words of `draw.js`."""
    bits, times = RandomBits.seeded(7), kind.times
    values = plan.check_values(plan.encode(np.asarray([kind.value] * times)))
    positions = np.full(times, kind.position)
    prepared = plan.prepare(values, bits=bits, positions=positions)
    batches = _batches(plan, kind.position)
    if kind.bin == 0:
        # What each window gets is drawn together; shares only carry it.
        found = np.floor_divide(np.asarray(prepared), width)
        ages = np.argsort([batch.batch_id.split(".")[2].zfill(9) for batch in batches]).argsort()
        return Counter(" | ".join(str(int(row[age])) for age in ages) for row in found)
    (batch, *_) = batches
    reports = plan.mechanism(batch.size).randomize(prepared, 0, bits=bits)
    if width is not None:
        mechanism: Any = plan.mechanism(batch.size)
        totals = mechanism.run_sums(reports.payloads.reshape(times, -1))
        return Counter(str(int(total)) for total in np.floor_divide(totals, width))
    ends = np.cumsum(reports.sizes)
    parts = np.split(reports.payloads, ends[:-1])
    labels = [None] * times if reports.labels is None else np.split(reports.labels, ends[:-1])
    return Counter(_counted(each, label, kind.mod) for each, label in zip(parts, labels, strict=True))


def _p_value(one: Counter[str], other: Counter[str]) -> float:
    """Chi-square of two samples of one size; what is rare in both together counts as one outcome."""
    common = [outcome for outcome in {**one, **other} if one[outcome] + other[outcome] >= _LEAST]
    table = np.array([[each[outcome] for outcome in common] for each in (one, other)], dtype=np.float64)
    rest = np.array([[each.total()] for each in (one, other)]) - table.sum(axis=1, keepdims=True)
    table = np.concatenate((table, rest), axis=1)[:, (*(True for _ in common), bool(rest.sum() >= _LEAST))]
    assert one.total() == other.total() and table.shape[1] >= 2
    statistic = float(((table[0] - table[1]) ** 2 / table.sum(axis=0)).sum())
    return float(special.chdtrc(table.shape[1] - 1, statistic))


def _width(kind: Kind, plan: Plan) -> int | None:
    """The width of bins: wide noise is counted in parts of its deviation."""
    if kind.bin != 0:
        return kind.bin
    carried: Any = plan
    slot = np.array([carried.weights.slots // 2])
    return int(np.sqrt(carried._own_variances(slot, slot).max()))


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Counter[str], Counter[str], Counter[str]]]:
    """Of every kind: what Python drew, what Node drew, and what Node drew by the twin with less noise."""
    node: Node = node_in(tmp_path_factory.mktemp("javascript"))
    plans = {name: kind.plan() for name, kind in KINDS.items()}
    asked = []
    for name, kind in KINDS.items():
        plan, document = plans[name], plans[name].document()
        batches = [{"size": each.size, "seat": each.seat} for each in _batches(plan, kind.position)]
        place: dict[str, Any] = {"position": kind.position, "routing": Routing.of(plan.layout).document()}
        place |= {"batches": batches if kind.bin == 0 else batches[:1], "value": kind.value, "times": kind.times}
        place |= {"mod": kind.mod} if kind.mod else {}
        place |= {"bin": _width(kind, plan)} if kind.bin is not None else {}
        asked += [{"plan": each, **place} for each in (document, kind.quieter(document))]
    answers = [Counter(each) for each in json.loads(node.answer("draw.js", json.dumps(asked)))]
    return {
        name: (_python_draws(kind, plans[name], _width(kind, plans[name])), *answers[2 * place : 2 * place + 2])
        for place, (name, kind) in enumerate(KINDS.items())
    }


@pytest.mark.parametrize("name", KINDS)
def test_both_clients_draw_alike_and_less_noise_is_refuted(drawn: Any, name: str) -> None:
    """False alarm 1e-9: two samples, one of each client; a twin with a fifth less noise fails."""
    python, javascript, quieter = drawn[name]
    assert _p_value(python, javascript) > FALSE_ALARM
    assert _p_value(python, quieter) < FALSE_ALARM
