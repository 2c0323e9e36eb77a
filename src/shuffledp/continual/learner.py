"""What the learners of all running sums do alike: users join open batches, sums are told, and whole streams are run."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.continual.decoding import Decoding
from shuffledp.continual.estimates import RunningEstimates
from shuffledp.errors import ParameterError
from shuffledp.protocols.learner import Cohort, OpenBatch, PlanLearner
from shuffledp.protocols.runner import CountsUsers, Progress, ask_and_tell
from shuffledp.protocols.states import is_whole
from shuffledp.randomness import RandomBits
from shuffledp.schedules.joined import Joined

S = TypeVar("S", bound=CountsUsers)


class RunningLearner(PlanLearner[S]):
    """A running sum by a plan, whatever its noise: how sums make an estimate is for a derived class to say."""

    __slots__ = ()

    # --- step by step ------------------------------------------------------------------------

    @abstractmethod
    def closed_sum(self, state: S) -> tuple[int, NDArray[Any]]:
        """The slots that have told their sum, and that sum in steps, one for each coordinate."""

    def _check_users(self, users: Any) -> None:
        if not is_whole(users) or not 0 <= users <= self.plan.users:
            raise ParameterError("users", users, f"must lie in 0..{self.plan.users}", "plan for more users")

    def _cohort(self, users: int, slot: int, joined: Joined) -> Cohort:
        """The users until this slot ends, when so many have come, and the batches that they join."""
        plan, schedule = self.plan, self.plan.schedule
        batches = []
        for level, first, end in joined:
            mechanism = plan.mechanism(schedule.batch_users(first, end))
            batches.append(OpenBatch(level, first, mechanism, users - int(schedule.users_by(first))))
        return Cohort(min(int(schedule.users_by(slot + 1)), plan.users) - users, tuple(batches))

    def _closing(self, cohort: Cohort | None, users: int, closed: Mapping[int, Any]) -> dict[int, OpenBatch]:
        """The batches that close when so many users of the cohort came, by level; these must be the ones told of."""
        most = 0 if cohort is None else cohort.users
        if cohort is None or not is_whole(users) or not 1 <= users <= most:
            raise ParameterError("users", users, f"must lie in 1..{most}", "ask again after each cohort")
        due = cohort.closing(users)
        if set(closed) != set(due):
            raise ParameterError(
                "closed", sorted(closed), f"must be the levels {sorted(due)}", "tell every batch that closed"
            )
        return due

    # --- whole streams -----------------------------------------------------------------------

    @abstractmethod
    def decoding(self) -> Decoding:
        """What makes estimates of many batches' sums at once, from the first slot on."""

    def check_values(self, values: ArrayLike) -> NDArray[Any]:
        """The values as the domain has them, at most as many as the plan has users."""
        array: NDArray[Any] = self.plan.check_values(values)
        self.plan.check_reports(len(array))
        return array

    def run(
        self, values: ArrayLike, *, bits: RandomBits, fast: bool = True, progress: Progress | None = None
    ) -> RunningEstimates:
        """Estimates after every user: by the noise's own law, or with every message made, shuffled and read.

        Args:
            values: of the users in the order in which they come.
            bits: where all randomness comes from.
            fast: draw from the noise's law instead of making every message.
            progress: called with the number of users who have reported so far, where messages are made.
        """
        array = self.check_values(values)
        closed, _ = self.plan.schedule.place_of(len(array))
        prefixes = self._by_law(array, closed, bits) if fast else self._by_messages(array, closed, bits, progress)
        return RunningEstimates(self.plan, len(array), prefixes, simulated=not bits.is_secure)

    @abstractmethod
    def _by_law(self, array: NDArray[Any], closed: int, bits: RandomBits) -> NDArray[Any]:
        """The estimates of the first 0, 1, ... slots, of which so many are full, in steps, by the noise's law."""

    def _by_messages(
        self, array: NDArray[Any], closed: int, bits: RandomBits, progress: Progress | None
    ) -> NDArray[Any]:
        """All estimates, made by every user's messages."""

        def prepared(cohort: Cohort, first: int, users: int, clients: RandomBits) -> Any:
            # Prepared once: all of a user's batches get the same steps.
            positions = np.arange(first, first + users)
            return self.plan.prepare(array[first : first + users], bits=clients, positions=positions)

        plan = self.plan
        nothing = self.closed_sum(self.start())[1]
        prefixes = np.zeros((closed + 1, *nothing.shape), dtype=nothing.dtype)
        for state in ask_and_tell(self, plan.shufflers_used, prepared, len(array), bits=bits, progress=progress):
            if plan.schedule.place_of(state.users)[1] == 0:
                slot, total = self.closed_sum(state)
                prefixes[slot] = total
        return prefixes[:, 0] if plan.domain.coordinates == 1 else prefixes
