"""A shuffler: collects the reports of one batch, permutes their messages uniformly, hands them over."""

from dataclasses import dataclass

import numpy as np

from shuffledp.errors import ParameterError, ShufflerBusyError, TooFewReportsError
from shuffledp.messages import Batch, Payloads, Reports
from shuffledp.randomness import RandomBits
from shuffledp.sampling.permutation import uniform_permutation


@dataclass(frozen=True, slots=True)
class BatchSpec:
    """All that a shuffler may know of a batch: how many reports, and at most how many messages in each.

    Attributes:
        reports: how many reports fill the batch.
        messages_per_report: how many messages one report may have; None for any number.

    >>> BatchSpec(reports=100, messages_per_report=9).reports
    100
    """

    reports: int
    messages_per_report: int | None = None

    def __post_init__(self) -> None:
        if self.reports < 1:
            raise ParameterError("reports", self.reports, "must be >= 1", "a batch holds at least one report")


class Shuffler:
    """Holds at most one open batch; refuses to release one with fewer reports than its spec.

    The adversary sees the messages in a uniformly random order and the number of reports.

    Reference: [004] Definition 5.

    Args:
        bits: where permutations come from.

    >>> from shuffledp.messages import Reports
    >>> shuffler = Shuffler(bits=RandomBits.seeded(1))
    >>> shuffler.open(BatchSpec(reports=3))
    >>> shuffler.accept(Reports.of_equal_size(np.array([[1], [0], [1]], dtype=np.uint8)))
    >>> batch = shuffler.close()
    >>> batch.reports, sorted(batch.payloads.tolist())
    (3, [0, 1, 1])
    """

    def __init__(self, *, bits: RandomBits) -> None:
        self._bits = bits
        self._spec: BatchSpec | None = None
        self._collected: list[Reports] = []
        self._reports = 0

    @property
    def is_open(self) -> bool:
        """Whether a batch is open."""
        return self._spec is not None

    @property
    def missing(self) -> int:
        """Reports that the open batch still waits for."""
        return self._open_spec.reports - self._reports

    @property
    def _open_spec(self) -> BatchSpec:
        if self._spec is None:
            raise ShufflerBusyError("The shuffler has no open batch: open one before sending reports.")
        return self._spec

    def open(self, spec: BatchSpec) -> None:
        """Begin a batch."""
        if self._spec is not None:
            raise ShufflerBusyError(
                f"The shuffler already has an open batch of {self._spec.reports} reports, {self.missing} missing: "
                "wait until it closes or use another shuffler."
            )
        self._spec, self._collected, self._reports = spec, [], 0

    def accept(self, reports: Reports) -> None:
        """Take reports into the open batch; too many, or one that is too long, changes nothing."""
        spec = self._open_spec
        if len(reports) > self.missing:
            raise ParameterError(
                "reports",
                len(reports),
                f"must be at most the {self.missing} missing",
                "open another batch for the rest",
            )
        limit = spec.messages_per_report
        if limit is not None and len(reports) and int(reports.sizes.max()) > limit:
            raise ParameterError(
                "messages in a report",
                int(reports.sizes.max()),
                f"must be at most {limit}",
                "follow the batch's spec",
            )
        if self._collected and (reports.labels is None) != (self._collected[0].labels is None):
            raise ParameterError("labels", "mixed", "must be on all messages or on none", "follow one plan")
        self._collected.append(reports)
        self._reports += len(reports)

    def close(self) -> Batch:
        """Permute and hand over a full batch, keeping nothing; a batch that is not full stays open."""
        spec = self._open_spec
        if self.missing:
            raise TooFewReportsError(spec.reports, self._reports)
        payloads = np.concatenate([reports.payloads for reports in self._collected])
        labelled = [reports.labels for reports in self._collected if reports.labels is not None]
        order = uniform_permutation(payloads.size, bits=self._bits)
        labels: Payloads | None = np.concatenate(labelled)[order] if labelled else None
        self._spec, self._collected, self._reports = None, [], 0
        return Batch(payloads[order], spec.reports, labels)
