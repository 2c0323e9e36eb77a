"""k concurrent shufflers, each with at most one open batch."""

from shuffledp.errors import ParameterError
from shuffledp.messages import Batch, Reports
from shuffledp.randomness import RandomBits
from shuffledp.shuffle.shuffler import BatchSpec, Shuffler


class ShufflerPool:
    """k shufflers that fill and empty concurrently; the server decides what to open as it goes.

    Each user sends a report to every open shuffler it takes part in; a batch is handed over the
    moment it is full, and its shuffler is then free for another batch, whose size and mechanism may
    depend on everything released so far.

    Reference: [000] Algorithm 1.

    Args:
        shufflers: how many work concurrently.
        bits: where each one's permutations come from.

    >>> import numpy as np
    >>> pool = ShufflerPool(2, bits=RandomBits.seeded(1))
    >>> pool.open(0, BatchSpec(reports=1)); pool.open(1, BatchSpec(reports=2))
    >>> one = Reports.of_equal_size(np.ones((1, 1), dtype=np.uint8))
    >>> pool.accept(0, one).reports, pool.accept(1, one), pool.idle
    (1, None, (0,))
    """

    def __init__(self, shufflers: int, *, bits: RandomBits) -> None:
        if shufflers < 1:
            raise ParameterError("shufflers", shufflers, "must be >= 1", "one shuffler is the ordinary model")
        self._shufflers = [Shuffler(bits=stream) for stream in bits.spawn(shufflers)]
        self.bits = bits

    def __len__(self) -> int:
        return len(self._shufflers)

    @property
    def active(self) -> tuple[int, ...]:
        """The shufflers with an open batch."""
        return tuple(i for i, shuffler in enumerate(self._shufflers) if shuffler.is_open)

    @property
    def idle(self) -> tuple[int, ...]:
        """The shufflers that may open a batch."""
        return tuple(i for i, shuffler in enumerate(self._shufflers) if not shuffler.is_open)

    def missing(self, shuffler: int) -> int:
        """Reports that this shuffler's open batch still waits for."""
        return self._at(shuffler).missing

    def open(self, shuffler: int, spec: BatchSpec) -> None:
        """Begin a batch on an idle shuffler."""
        self._at(shuffler).open(spec)

    def accept(self, shuffler: int, reports: Reports) -> Batch | None:
        """Take reports into a shuffler's open batch; the permuted batch once it is full, else None."""
        chosen = self._at(shuffler)
        chosen.accept(reports)
        return None if chosen.missing else chosen.close()

    def _at(self, shuffler: int) -> Shuffler:
        if not 0 <= shuffler < len(self._shufflers):
            raise ParameterError(
                "shuffler", shuffler, f"must lie in 0..{len(self._shufflers) - 1}", "ask for more shufflers"
            )
        return self._shufflers[shuffler]
