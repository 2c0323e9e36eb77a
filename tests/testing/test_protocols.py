"""check_protocol refuses plans that break a promise."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from shuffledp import Privacy
from shuffledp.messages import Batch
from shuffledp.protocols.binary_sum.coins import Coins
from shuffledp.protocols.tallies import Tally
from shuffledp.testing.protocols import check_protocol

TARGET = Privacy(1, 1e-6)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlyWhole(Coins):
    """Counts a piece of a batch by what a whole one has."""

    def tally(self, batch: Batch, malformed: int = 0) -> Tally:  # type: ignore[override]
        found: Tally = self.batch.tally(batch, malformed)
        zeros = self.users * self.messages_per_user_max - found.counts[1] if batch.reports else found.counts[0]
        return replace(found, counts=np.stack((zeros, found.counts[1])))


@dataclass(frozen=True, slots=True, kw_only=True)
class Deaf(Coins):
    """Does not count what could not be read."""

    def estimate(self, tally: Tally, *, simulated: bool = False) -> Any:
        return Coins.estimate(self, replace(tally, malformed=0), simulated=simulated)


@dataclass(frozen=True, slots=True, kw_only=True)
class Boastful(Coins):
    """Says that a liar moves the count by 1, where it has more messages than that."""

    influence = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Loud(Coins):
    """Its quieter twin is itself."""

    def quieter(self, part: float) -> dict[str, Any]:
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart(Coins):
    """Its quieter twin claims less noise and draws as much."""

    def quieter(self, part: float) -> dict[str, Any]:
        return {"privacy": Privacy(self.privacy.epsilon / 9, self.privacy.delta / 9)}


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (OnlyWhole, "add up to another tally|another answer"),
        (Deaf, "malformed messages are not counted"),
        (Boastful, "a client moves a number by"),
        (Loud, "keeps the plan's promise"),
        (Apart, "a twin's noise is the plan's"),
    ],
)
def test_a_plan_that_breaks_a_promise_is_found_out(kind: type[Coins], said: str) -> None:
    plan = kind.plan(users=60, privacy=TARGET)
    with pytest.raises(AssertionError, match=said):
        check_protocol(plan, np.arange(60) % 3 == 0, [[2]], runs=60)
