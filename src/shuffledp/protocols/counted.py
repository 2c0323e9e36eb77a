"""Plans whose messages are letters of a finite alphabet: all that a batch says is how often each letter came."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.messages import Batch, Reports
from shuffledp.protocols.domains.domain import Codes, Floats
from shuffledp.protocols.error_bounds import with_errors
from shuffledp.protocols.letters import LettersTally
from shuffledp.protocols.rounds import ExactRound
from shuffledp.protocols.streaming import LawOfSums, summed
from shuffledp.protocols.tallies import Tallier, Tally, nothing_came
from shuffledp.randomness import RandomBits
from shuffledp.sampling.uniform import smallest_width


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedPlan(LawOfSums, ExactRound):
    """A vector of counts, read from how often each letter came, whether messages were made or only their numbers."""

    coin: ClassVar[str] = "probability"
    """The field that says how often noise is added."""

    def quieter(self, part: float) -> dict[str, Any]:
        """Rarer noise: the variance of rare coins is in proportion to their probability."""
        return {self.coin: part * getattr(self, self.coin)}

    @property
    def bits_per_message(self) -> int:
        return max(1, (self.alphabet_size - 1).bit_length())

    @property
    def _kind(self) -> str:
        """The narrowest dtype that holds a message."""
        return f"u{smallest_width(self.bits_per_message) // 8}"

    def tally(self, batch: Batch, malformed: int = 0) -> Tally:
        """How often each message of the alphabet came."""
        return self.tallier(batch, malformed)

    @property
    def tallier(self) -> Tallier:
        return LettersTally(self.alphabet_size)

    def randomize(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        return self._reports(self.check_values(values), bits)

    @abstractmethod
    def _reports(self, codes: Codes, bits: RandomBits) -> Reports:
        """What users with these codes send."""

    @abstractmethod
    def _read(self, seen: Codes) -> Floats:
        """The estimates from how often each message came."""

    @abstractmethod
    def _summed(self, codes: Codes, bits: RandomBits) -> Codes:
        """What the law of all messages needs to know of these users: numbers that add up over all."""

    @abstractmethod
    def _noisy(self, summed: Codes, bits: RandomBits) -> Codes:
        """How often each message comes where all users add up to this, drawn from its law without making messages."""

    @property
    def tally_bytes(self) -> int:
        return 8 * (self.alphabet_size + 1)

    def _own(self, seen: Codes) -> Sequence[Codes]:
        """The messages in parts in each of which every user sends one of its own, whatever its value and its coins."""
        return (seen,)

    def _dropped(self, tally: Tally) -> int:
        """How many messages were missing or malformed, at least: how many were sent at random is not known.

        A part with fewer messages than users has lost the difference for certain.
        """
        missing = sum(max(0, self.users - int(part.sum())) for part in self._own(tally.counts))
        return max(tally.malformed, missing)

    def estimate(self, tally: Tally, *, simulated: bool = False) -> Any:
        self.check_reports(tally.reports)
        if not tally.counts.any():
            raise nothing_came(self.users)
        return with_errors(self, self._read(tally.counts), dropped=self._dropped(tally), simulated=simulated)

    def summary(self, values: ArrayLike, *, bits: RandomBits) -> Tally:
        codes = self.check_values(values)
        return summed(self._summed(codes, bits), len(codes))

    def sample_from(self, summary: Tally, *, bits: RandomBits) -> Any:
        self.check_reports(summary.reports)
        return with_errors(self, self._read(self._noisy(summary.counts, bits)), simulated=not bits.is_secure)


def first_codes(plan: Any) -> tuple[Codes, Codes, Codes]:
    """One user in the first bin of a plan or in the second, and what all others have: the third, if there is one."""
    first, second, others = (np.array([code], dtype=np.int64) for code in (0, 1, min(2, plan.bins - 1)))
    return first, second, others


def counted_in_runs(hits: NDArray[np.bool_], reports: Reports, trials: int) -> NDArray[np.int64]:
    """How many of the messages hit, in each of `trials` equal runs."""
    starts = np.concatenate(([0], np.cumsum(reports.sizes.reshape(trials, -1).sum(axis=1))))
    before = np.concatenate(([0], np.cumsum(hits, dtype=np.int64)))
    return np.asarray(np.diff(before[starts]))
