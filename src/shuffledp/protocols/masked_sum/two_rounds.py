"""The state machine of a masked sum: everybody in round 1, and everybody again in round 2."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError
from shuffledp.messages import Reports
from shuffledp.protocols.fields import forwarded
from shuffledp.protocols.learner import BatchMechanism, Cohort, OpenBatch, PlanLearner
from shuffledp.protocols.masked_sum.key_agreement import KeyAgreement
from shuffledp.protocols.tallies import Tally
from shuffledp.randomness import RandomBits


@dataclass(slots=True)
class Devices:
    """What the users' devices keep between the two rounds: their secret coins."""

    coins: NDArray[np.uint8] | None = None


@dataclass(frozen=True, slots=True)
class MaskedRound(BatchMechanism):
    """One round of everybody, on devices that remember what they tossed."""

    plan: Any
    devices: Devices

    users = forwarded("plan.users")


@dataclass(frozen=True, slots=True)
class KeyRound(MaskedRound):
    """Round 1: every two users' coins, of which everybody reads where they differ."""

    messages_max = forwarded("plan.agreement.messages_per_user")

    def randomize(self, prepared: Any, first_seat: int, *, bits: RandomBits) -> Reports:
        agreement: KeyAgreement = self.plan.agreement
        self.devices.coins = agreement.toss(bits=bits)
        return agreement.reports(self.devices.coins)

    tally = forwarded("plan.agreement.tally")

    def read(self, tally: Tally) -> tuple[Any, int]:
        return self.plan.agreement.differing(tally), tally.malformed


@dataclass(frozen=True, slots=True)
class MaskRound(MaskedRound):
    """Round 2: values under the masks that both users of every pair know."""

    useful: NDArray[np.bool_]

    messages_max: ClassVar[int] = 1

    def randomize(self, prepared: Any, first_seat: int, *, bits: RandomBits) -> Reports:
        if self.devices.coins is None:
            raise ParameterError("devices", None, "must hold the coins of round 1", "begin with round 1")
        keys = self.plan.agreement.keys(self.devices.coins, self.useful)
        reports: Reports = self.plan.mask(prepared, keys, bits=bits)
        return reports

    tally = forwarded("plan.tally")

    def read(self, tally: Tally) -> tuple[Tally, int]:
        return tally, tally.malformed


@dataclass(frozen=True, slots=True)
class MaskedState:
    """What everybody read in round 1, and the tally of round 2; `users` have sent both."""

    users: int = 0
    devices: Devices = field(default_factory=Devices)
    useful: NDArray[np.bool_] | None = None
    tally: Tally | None = None


@dataclass(frozen=True, slots=True)
class TwoRounds(PlanLearner[MaskedState]):
    """Everybody in round 1, and everybody again in round 2."""

    plan: Any

    def start(self) -> MaskedState:
        return MaskedState()

    def ask(self, state: MaskedState) -> Cohort | None:
        if state.tally is not None:
            return None
        first = KeyRound(self.plan, state.devices)
        batch: MaskedRound = first if state.useful is None else MaskRound(self.plan, state.devices, state.useful)
        return Cohort(self.plan.users, (OpenBatch(1, 0, batch, 0),))

    def tell(self, state: MaskedState, users: int, closed: Mapping[int, Any]) -> MaskedState:
        if users != self.plan.users or 1 not in closed:
            raise ParameterError("users", users, f"must be all {self.plan.users}", "everybody must stay")
        if state.useful is None:
            return replace(state, useful=closed[1])
        return replace(state, users=users, tally=closed[1])

    def estimate(self, state: MaskedState, *, simulated: bool = False) -> Any:
        return None if state.tally is None else self.plan.estimate(state.tally, simulated=simulated)
