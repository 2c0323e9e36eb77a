import numpy as np
import pytest

from shuffledp.errors import ParameterError
from shuffledp.messages import Batch, Reports


def test_reports_of_unequal_size() -> None:
    reports = Reports(np.arange(5, dtype=np.uint8), np.array([2, 0, 3]))
    assert len(reports) == 3


def test_equal_sizes_cost_no_memory() -> None:
    reports = Reports.of_equal_size(np.zeros((1000, 3), dtype=np.uint8))
    assert reports.sizes.strides == (0,) and int(reports.sizes.sum()) == 3000


@pytest.mark.parametrize("payloads", [np.zeros(3), np.zeros(3, dtype=np.int64), np.zeros((2, 2), dtype=np.uint8)])
def test_messages_are_unsigned_integers_in_a_row(payloads) -> None:
    with pytest.raises(ParameterError, match="payloads"):
        Batch(payloads, 1)


def test_sizes_and_labels_must_fit() -> None:
    payloads = np.zeros(3, dtype=np.uint8)
    with pytest.raises(ParameterError, match="sizes"):
        Reports(payloads, np.array([1, 1]))
    with pytest.raises(ParameterError, match="labels"):
        Reports(payloads, np.array([3]), labels=np.zeros(2, dtype=np.uint8))


def test_no_field_could_carry_a_sender() -> None:
    assert set(Reports.__slots__) == {"payloads", "sizes", "labels"}
    assert set(Batch.__slots__) == {"payloads", "reports", "labels"}
