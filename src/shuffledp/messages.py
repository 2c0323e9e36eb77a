"""What travels: reports before the shuffler, a batch after it. No message carries its sender."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError

Payloads = NDArray[Any]
"""Unsigned integers: the whole content of messages."""


def _check_messages(payloads: Payloads, labels: Payloads | None) -> None:
    if payloads.ndim != 1 or payloads.dtype.kind != "u":
        raise ParameterError(
            "payloads",
            f"{payloads.dtype} with {payloads.ndim} dimensions",
            "must be one-dimensional unsigned integers",
            "convert with .astype(np.uint64)",
        )
    if labels is not None and labels.shape != payloads.shape:
        raise ParameterError(
            "labels", labels.shape, f"must have the payloads' shape {payloads.shape}", "label every message"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Reports:
    """The messages of one or more users, user by user: what clients hand to the shuffler.

    A client's own report is the case of one user. `sizes[i]` messages belong to the i-th report.

    Attributes:
        payloads: all messages, user by user.
        sizes: how many messages each report has.
        labels: what each message is about, where a protocol has labels.

    >>> reports = Reports.of_equal_size(np.array([[1, 0], [0, 1], [1, 1]], dtype=np.uint8))
    >>> len(reports), reports.payloads.tolist()
    (3, [1, 0, 0, 1, 1, 1])
    """

    payloads: Payloads
    sizes: NDArray[np.int64]
    labels: Payloads | None = None

    def __post_init__(self) -> None:
        _check_messages(self.payloads, self.labels)
        if self.sizes.ndim != 1 or int(self.sizes.sum()) != self.payloads.size or (self.sizes < 0).any():
            raise ParameterError(
                "sizes",
                int(self.sizes.sum()),
                f"must be counts that add up to the {self.payloads.size} messages",
                "give one size for each report",
            )

    @classmethod
    def of_equal_size(cls, payloads: Payloads, labels: Payloads | None = None) -> Self:
        """Reports from a matrix with a row a user."""
        users, messages = payloads.shape
        sizes = np.broadcast_to(np.int64(messages), (users,))
        return cls(payloads.reshape(-1), sizes, None if labels is None else labels.reshape(-1))

    def __len__(self) -> int:
        return int(self.sizes.size)


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """What a shuffler releases: permuted messages and the number of reports they came in.

    Attributes:
        payloads: all messages in a uniformly random order.
        reports: how many reports they came in.
        labels: what each message is about, where a protocol has labels.

    >>> Batch(np.array([1, 0, 1], dtype=np.uint8), reports=3).payloads.sum()
    np.uint64(2)
    """

    payloads: Payloads
    reports: int
    labels: Payloads | None = None

    def __post_init__(self) -> None:
        _check_messages(self.payloads, self.labels)

    def __len__(self) -> int:
        return int(self.payloads.size)
