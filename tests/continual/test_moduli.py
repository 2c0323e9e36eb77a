"""What a plan in shares says of its moduli, for devices that cannot compute quantiles of the noise."""

import itertools
from typing import Any

import pytest

from shuffledp.privacy import Privacy
from shuffledp.protocols.catalogue import PROTOCOLS, plan_from_document
from shuffledp.protocols.plan import Plan

ASKED: dict[str, dict[str, Any]] = {
    "laplace": {"users": 2000, "shufflers": 3, "method": "laplace", "honest_fraction": 0.9},
    "skellam": {"users": 2000, "shufflers": 2, "method": "skellam"},
    "carried": {"users": 6000, "shufflers": 3, "method": "carried"},
}


def _plan(name: str) -> Plan:
    return PROTOCOLS["counter"].plan(privacy=Privacy(1, 1e-6), **ASKED[name])


@pytest.mark.parametrize("name", ASKED)
def test_a_plan_says_what_its_batches_are_sent_modulo(name: str) -> None:
    plan: Any = _plan(name)
    listed = plan.document()["modulus_bits"]
    assert [size for size, _ in listed] == sorted({size for size, _ in listed})
    for size in plan.layout.messages:
        said = [bits for first, bits in listed if first <= size][-1]
        assert said == plan.mechanism(size).splitting.modulus_bits
    # Only where it changes: the last size that is listed is where the largest modulus begins.
    assert all(one[1] != other[1] for one, other in itertools.pairwise(listed))


@pytest.mark.parametrize("name", ASKED)
def test_a_document_from_before_it_was_said_still_loads(name: str) -> None:
    plan = _plan(name)
    older = {key: value for key, value in plan.document().items() if key != "modulus_bits"}
    assert plan_from_document(older, whole=True) == plan


def test_coins_have_no_modulus() -> None:
    plan = PROTOCOLS["counter"].plan(privacy=Privacy(1, 1e-6), users=500, shufflers=2, method="coins")
    assert "modulus_bits" not in plan.document()
