"""Audits of people with several rows and of groups: honest plans stand, half the noise is refuted."""

from typing import Any

import pytest

from shuffledp.audit.trials import audit_plan
from shuffledp.privacy import Privacy
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.protocols.grouped.ends import EndsShares
from shuffledp.protocols.plan import changed
from shuffledp.randomness import RandomBits

LOOSE = Privacy(1, 1e-2)  # events are likelier, so that fewer runs show them


def made(protocol: str, **asked: Any) -> Any:
    return PROTOCOLS[protocol].plan(privacy=LOOSE, **asked)


PLANS = {
    "repeated-count/shares": lambda: made("repeated-count", users=6, at_most=3, method="shares"),
    "repeated-count/bits": lambda: made("repeated-count", users=6, at_most=2, method="bits"),
    "repeated-histogram": lambda: made("repeated-histogram", users=4, at_most=2, categories=2, method="decoys"),
    "grouped-count": lambda: made("grouped-count", users=6, groups=["a", "b"], method="decoys"),
    "group-ends": lambda: EndsShares.plan(users=6, privacy=LOOSE, groups=["a", "b"], low=0, high=1),
}


@pytest.mark.parametrize("name", PLANS)
def test_an_honest_plan_stands_and_half_the_noise_is_refuted(name: str) -> None:
    plan = PLANS[name]()
    trials = 60_000
    honest = audit_plan(plan, bits=RandomBits.seeded(1), trials=trials)
    assert honest.verdict == "stands" and honest.epsilon_lower_bound <= honest.epsilon_exact
    assert audit_plan(plan, bits=RandomBits.seeded(2), trials=trials, sabotage=0.5).verdict == "refuted"


def test_noise_for_one_row_is_refuted_where_three_are_replaced() -> None:
    """The audit replaces all rows of a person: an ordinary plan's noise, claimed for three, is found out."""
    once, plan = (made("repeated-count", users=6, at_most=rows, method="shares") for rows in (1, 3))
    lying = changed(plan, ratio=once.ratio)
    assert audit_plan(lying, bits=RandomBits.seeded(3), trials=20_000).epsilon_lower_bound > 2
