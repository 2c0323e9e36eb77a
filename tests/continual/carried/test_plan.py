"""A plan with carried noise is a plan like any other: saved, refused where it was changed, audited and charged."""

import copy
import json
import math
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from shuffledp import load_plan, simulate
from shuffledp.accounting.ledger import Ledger
from shuffledp.audit.trials import audit_plan
from shuffledp.continual.carried.plan import CarriedPlan
from shuffledp.continual.carried.planner import plan_of
from shuffledp.continual.request import CountRequest
from shuffledp.errors import DataError, ParameterError, ShuffleDPError
from shuffledp.privacy import Privacy
from shuffledp.protocols.catalogue import plan_from_document
from shuffledp.protocols.domains.repeated import RowCounts
from shuffledp.protocols.domains.summed import BITS, OneHot, Reals, Vectors
from shuffledp.protocols.ledger_entries import entry_of
from shuffledp.randomness import RandomBits

CASES = {
    "bits": BITS,
    "reals": Reals(8, -2.0, 3.0),
    "vectors": Vectors(3, 1.0, 8),
    "categories": OneHot.of(["a", "b", "c", "d", "e"]),
    "row counts": RowCounts(3),
}


@lru_cache(maxsize=32)
def small(case: str = "bits", windows: int = 3, honest_fraction: float = 1.0, **more: Any) -> CarriedPlan:
    given: dict[str, Any] = {"users": 147, "privacy": Privacy(4, 1e-2)} | more
    asked = CountRequest(shufflers=windows, domain=CASES[case], honest_fraction=honest_fraction, **given)
    return plan_of(asked, windows, 10)


@pytest.mark.parametrize("honest_fraction", [1.0, 0.9, 0.5])
@pytest.mark.parametrize("case", CASES)
def test_it_is_saved_and_simulated(case: str, honest_fraction: float, tmp_path) -> None:
    plan = small(case, honest_fraction=honest_fraction)
    assert plan.guarantee().holds
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan.document()), "utf-8")
    again = load_plan(file)
    assert again == plan and again.fingerprint == plan.fingerprint
    values = plan.domain.synthesize(plan.users, np.random.default_rng(1))
    for fast in (True, False):
        estimate = simulate(plan, values, bits=RandomBits.seeded(1), fast=fast)
        assert np.all(np.abs(np.asarray(estimate.value) - plan.true_value(values)) <= plan.error_bound)
    assert ("carried" in str(plan.facts()) and plan.reference()["central_error_bound"] is not None) or case != "bits"


def leaves(document: Any, path: tuple = ()) -> list[tuple]:
    inside = document.items() if isinstance(document, dict) else enumerate(document)
    found = []
    for key, each in inside:
        found += [(*path, key)] + (leaves(each, (*path, key)) if isinstance(each, dict | list) else [])
    return found


def edited(document: dict, path: tuple, value: Any) -> dict:
    changed = copy.deepcopy(document)
    inside = changed
    for step in path[:-1]:
        inside = inside[step]
    inside[path[-1]] = value
    return changed


def at(document: Any, path: tuple) -> Any:
    for step in path:
        document = document[step]
    return document


@pytest.fixture(scope="module", params=[("reals", 3), ("bits", 4)])
def document(request) -> dict:
    case, windows = request.param
    return json.loads(json.dumps(small(case, windows).document()))


def test_any_changed_number_is_refused(document: dict) -> None:
    changed = 0
    for path in leaves(document):
        value = at(document, path)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        for other in (value + 1, value - 1, value * 1.001, 0, -value - 1):
            if other == value:
                continue
            with pytest.raises(ShuffleDPError) as refused:
                plan_from_document(edited(document, path, other))
            assert str(refused.value).endswith(".") and "\n" not in str(refused.value), path
            changed += 1
    assert changed > 100
    for key in document:
        without = {name: value for name, value in document.items() if name != key}
        if key in CarriedPlan.later_numbers:
            # Plans from before it was said have not got it.
            assert plan_from_document(without) == plan_from_document(document)
            continue
        with pytest.raises(ShuffleDPError):
            plan_from_document(without)


HOSTILE = (10**400, 10**19, -1, math.nan, math.inf, None, [], [[]], "x", {}, True, 1e308, 5e-324)


def test_hostile_documents_are_one_sentence(document: dict) -> None:
    """The first entries of long lists stand for all."""
    paths = [path for path in leaves(document) if not path[-1:] or not isinstance(path[-1], int) or path[-1] < 2]
    for path in paths:
        for value in HOSTILE:
            try:
                plan = plan_from_document(edited(document, path, value))
            except (DataError, ParameterError) as refused:
                assert str(refused).endswith(".") and "\n" not in str(refused), (path, value)
                continue
            except ShuffleDPError:
                continue
            except Exception as other:
                raise AssertionError(f"{path} = {value!r}"[:200]) from other
            assert plan.fingerprint == document["fingerprint"], (path, value)
    for more in ({"is_begun": False}, {"surprise": 1}):
        with pytest.raises(ShuffleDPError):
            plan_from_document(document | {"noise": document["noise"] | more})


def signed(document: dict, **noise: Any) -> dict:
    """As a liar would write it: other noise, and whatever fingerprint and figures follow from it."""
    return document | {"noise": document["noise"] | noise}


@pytest.mark.parametrize(
    "noise",
    [
        {"variance": 1e32},
        {"growth": 100.0, "offset": 1e-300},
        {"gains": [[10**30, 1], [1, 10**30]]},
        {"gains": [[1, 10**17], [1, 10**17 + 1]]},
        {"poles": [1 - 1e-16]},
        {"poles": [1e-300]},
        {"poles": []},
        {"poles": [0.5, 0.6, 0.7]},
        {"knots": [0], "weights": [1]},
        {"slots": 1},
    ],
)
def test_noise_at_the_ends_of_its_range_is_one_sentence(noise: dict) -> None:
    document = json.loads(json.dumps(small("reals").document()))
    with pytest.raises(ShuffleDPError) as refused:
        plan_from_document(signed(document, **noise))
    assert str(refused.value).endswith(".") and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("case", "windows", "honest_fraction"), [("bits", 2, 1.0), ("bits", 4, 0.5), ("categories", 3, 0.9)]
)
def test_the_audit_lets_it_stand_and_catches_half_the_noise(case: str, windows: int, honest_fraction: float) -> None:
    plan = small(case, windows, honest_fraction, privacy=Privacy(1, 0.02), users=300 if case != "bits" else 147)
    asked = {"bits": RandomBits.seeded(1), "trials": 40_000}
    assert audit_plan(plan, **asked).verdict == "stands"
    assert audit_plan(plan, sabotage=0.5, **asked).verdict == "refuted"


def test_views_are_as_far_apart_as_the_shift_says() -> None:
    plan = small("bits", 3)
    views = [plan.views(side, 20_000, plan.honest_users, bits=RandomBits.seeded(side)) / 30 for side in (0, 1)]
    shift = plan.weights.shift
    # Log likelihoods of two Gaussians so many deviations apart.
    assert (views[1].mean() - views[0].mean()) / shift**2 == pytest.approx(1, abs=0.05)
    assert views[0].std() / shift == pytest.approx(1, abs=0.04)


def test_the_ledger_charges_for_it(tmp_path) -> None:
    """By its Gaussian pair: two of them come to epsilon 1.493 at delta 3e-3, distances from it included."""
    plan, when = small("bits", 3, privacy=Privacy(1, 1e-3)), datetime(2026, 1, 31, 12, tzinfo=UTC)
    for name, budget, fits in (("wide", 1.5, True), ("narrow", 1.48, False)):
        ledger = Ledger.open(tmp_path / f"{name}.json", "a panel", Privacy(budget, 3e-3))
        ledger.spend(entry_of(plan, when))
        with nullcontext() if fits else pytest.raises(ShuffleDPError):
            ledger.spend(entry_of(plan, when))


def test_what_a_plan_says_fits_its_shape() -> None:
    plan = small("bits", 3)
    for change in ({"shufflers_used": 2}, {"shufflers_used": 9}, {"users": 40}, {"confidence": 1.0}, {"shufflers": 0}):
        document = json.loads(json.dumps(plan.document())) | change
        with pytest.raises(ShuffleDPError):
            plan_from_document(document)
    for certified in (0.0, plan.least_noise_bound * 0.99, plan.proved_noise_bound * 1.01, math.nan):
        with pytest.raises(ShuffleDPError, match="certified_noise_bound"):
            plan_from_document(json.loads(json.dumps(plan.document())) | {"certified_noise_bound": certified})
