"""Running sums on an engine: the same bits whoever does which rows, by the law of today's path, each bit drawn once."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.counting import Dying, prefixes_of
from shuffledp import Privacy
from shuffledp.continual.carried.planner import plan_carried
from shuffledp.continual.plan import CounterPlan
from shuffledp.engines import JobKey, LocalEngine, counting
from shuffledp.engines.counting import grain_of, running_sum
from shuffledp.engines.sources import Held
from shuffledp.errors import ParameterError
from shuffledp.protocols.domains.summed import OneHot
from shuffledp.randomness import RandomBits
from shuffledp.simulation.running_truth import RunningTruth
from shuffledp.testing.statistics import assert_same_law

PRIVACY = Privacy(1, 1e-6)
BITS = (np.arange(6000) % 3 == 0).astype(np.uint8)
# The last slots are not full, and the last batches of each shuffler stay open.
CAME = BITS[:5990]


def _plans() -> dict[str, Any]:
    asked = {"users": 6000, "privacy": PRIVACY}
    return {
        "carried": plan_carried(shufflers=3, **asked),
        "silent": plan_carried(shufflers=4, silent_slots=1, **asked),
        "laplace": CounterPlan.plan(shufflers=3, noise="laplace", estimator="completed", **asked),
        "combined": CounterPlan.plan(shufflers=3, noise="laplace", estimator="combined", **asked),
        "coins": CounterPlan.plan(shufflers=2, noise="coins", **asked),
        "histogram": CounterPlan.plan(shufflers=2, noise="laplace", domain=OneHot(3), **asked),
    }


@pytest.fixture(scope="module")
def plans() -> dict[str, Any]:
    return _plans()


def _people(plan: Any) -> Held:
    return Held(plan.check_values(CAME if plan.domain.coordinates == 1 else np.arange(len(CAME)) % 3))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Grains of some hundred users, so that batches begin in one and end in another."""
    monkeypatch.setattr(counting, "_GRAIN_MESSAGES", 1 << 14)


@pytest.mark.parametrize("name", ["carried", "silent", "laplace", "combined", "coins", "histogram"])
def test_estimates_are_near_the_truth_at_all_times(plans: dict[str, Any], name: str, small: None) -> None:
    plan = plans[name]
    people = _people(plan)
    stretches = list(running_sum(LocalEngine(processes=1), plan, people, key=JobKey.seeded(3)))
    assert stretches[-1].end == len(CAME)
    whole = stretches[0].estimates
    assert RunningTruth.of(whole, people.values).largest_error <= plan.error_bound
    assert whole.simulated
    assert whole.uncounted == len(CAME) - whole.times[-1] > 0


@pytest.mark.parametrize("name", ["carried", pytest.param("silent", marks=pytest.mark.sweep), "combined", "histogram"])
def test_parts_and_stretches_change_nothing(
    plans: dict[str, Any], name: str, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plans[name]
    engine = LocalEngine(processes=1)
    at_once = prefixes_of(engine, plan, _people(plan))
    assert len(list(running_sum(engine, plan, _people(plan), key=JobKey.seeded(1)))) == 1
    monkeypatch.setattr(counting, "_GRAINS", 1)
    monkeypatch.setattr(counting, "_PARTS", 1)
    assert len(list(running_sum(engine, plan, _people(plan), key=JobKey.seeded(1)))) > 10
    assert prefixes_of(engine, plan, _people(plan)).tobytes() == at_once.tobytes()


def test_processes_kills_and_memory_change_nothing(
    plans: dict[str, Any], small: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plan = plans["carried"]
    by_one = prefixes_of(LocalEngine(processes=1), plan, _people(plan))
    monkeypatch.setattr(counting, "_GRAINS", 4)
    mark = tmp_path / "killed"
    with LocalEngine(processes=2, memory=400 << 20) as engine:
        by_two = prefixes_of(engine, plan, Dying(_people(plan).values, mark))
    assert mark.exists()
    assert by_two.tobytes() == by_one.tobytes()
    assert prefixes_of(LocalEngine(processes=1), plan, _people(plan), seed=2).tobytes() != by_one.tobytes()


def test_no_two_uses_share_a_stream(plans: dict[str, Any], small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []
    own = JobKey.bits

    def recorded(key: JobKey, *about: Any) -> RandomBits:
        asked.append(about)
        return own(key, *about)

    monkeypatch.setattr(JobKey, "bits", recorded)
    plan = plans["carried"]
    list(running_sum(LocalEngine(processes=1), plan, _people(plan), key=JobKey.seeded(1)))
    grains = -(-len(CAME) // grain_of(plan.messages_per_user_max))
    # One for what people draw once, and one for the messages to each shuffler.
    assert len(asked) == len(set(asked)) == grains * (1 + plan.shufflers_used)
    assert {each[2] for each in asked} == {bytes.fromhex(plan.fingerprint)}


def test_the_noise_has_the_law_of_todays_path() -> None:
    plan = CounterPlan.plan(users=300, shufflers=2, noise="laplace", privacy=Privacy(1, 1e-3))
    values = np.zeros(300, dtype=np.uint8)
    engine, source, times = LocalEngine(processes=1), Held(values), [3, -1]
    seen = np.array([prefixes_of(engine, plan, source, seed)[times] for seed in range(400)])
    law = [plan.learner().run(values, bits=RandomBits.seeded(seed)).prefixes[times] for seed in range(2000)]
    for place in range(2):
        assert_same_law(seen[:, place], np.array(law)[:, place])
        with pytest.raises(AssertionError):
            assert_same_law(1.6 * seen[:, place], np.array(law)[:, place])


def test_what_does_not_fit_is_refused_before_anybody_reports() -> None:
    plan = CounterPlan.plan(users=100_000, shufflers=2, noise="laplace", privacy=PRIVACY, domain=OneHot(40_000))
    with pytest.raises(ParameterError, match=r"memory must|messages a user need .* allow [\d,]+ MB more with --memory"):
        running_sum(LocalEngine(processes=1, memory=130 << 20), plan, Held(np.zeros(10, int)), key=JobKey.seeded(1))
    with pytest.raises(ParameterError, match="at most 100000"):
        running_sum(LocalEngine(processes=1), plan, Held(np.zeros(100_001, int)), key=JobKey.seeded(1))
