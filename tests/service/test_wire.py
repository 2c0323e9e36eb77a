"""What travels: nothing is lost, nothing counts twice, fillers never count, and garbage is refused in words."""

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.errors import DataError
from shuffledp.randomness import RandomBits
from shuffledp.service.wire import (
    CIPHERTEXT_BYTES,
    ID_BYTES,
    MESSAGE_BYTES,
    OVERHEAD_BYTES,
    SentReport,
    is_id,
    new_id,
    new_seat,
    pack_messages,
    pack_upload,
    position_of,
    single_body,
    split_single_body,
    unpack_messages,
    unpack_upload,
)

BITS = RandomBits.seeded(7)
PAYLOADS = st.lists(st.integers(0, 2**64 - 1), max_size=12)
IDS = st.binary(min_size=ID_BYTES, max_size=ID_BYTES).map(bytes.hex)
REPORTS = st.lists(st.builds(SentReport, IDS, IDS, st.binary(max_size=80)), max_size=6)


def as_array(numbers: list[int], kind: type = np.uint64) -> Any:
    return np.array(numbers, dtype=kind)


def message(kind: int = 1, payload: int = 0, label: int = 0, own_id: bytes = bytes(ID_BYTES)) -> bytes:
    return own_id + struct.pack(">BIQ", kind, label, payload)


def test_the_layout_is_the_one_that_is_written_down() -> None:
    (packed,) = pack_messages(as_array([0x0102]), as_array([3], np.uint32), 1, bits=BITS)
    assert packed[ID_BYTES:] == bytes([1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 1, 2])
    assert (MESSAGE_BYTES, OVERHEAD_BYTES, CIPHERTEXT_BYTES) == (29, 48, 77)


@given(PAYLOADS, st.integers(0, 5), st.randoms(use_true_random=False), st.data())
def test_messages_come_back_from_any_order_and_fillers_never_count(
    payloads: list[int], fillers: int, random: Any, data: st.DataObject
) -> None:
    size = len(payloads)
    labels = data.draw(st.lists(st.integers(0, 2**32 - 1), min_size=size, max_size=size))
    total = size + fillers
    packed = pack_messages(as_array(payloads), as_array(labels, np.uint32), total, bits=BITS)
    assert len(packed) == total and {len(each) for each in packed} <= {MESSAGE_BYTES}
    random.shuffle(packed)
    opened = unpack_messages(b"".join(packed))
    found = sorted(zip(opened.payloads.tolist(), opened.labels.tolist(), strict=True))
    assert found == sorted(zip(payloads, labels, strict=True))
    assert (opened.fillers, opened.malformed) == (fillers, 0)


@given(PAYLOADS, st.integers(1, 3), st.data())
def test_copies_are_dropped_and_counted(payloads: list[int], fillers: int, data: st.DataObject) -> None:
    packed = pack_messages(as_array(payloads), None, len(payloads) + fillers, bits=BITS)
    copies = data.draw(st.lists(st.sampled_from(packed), max_size=8))
    opened = unpack_messages(b"".join(data.draw(st.permutations(packed + copies))))
    assert sorted(opened.payloads.tolist()) == sorted(payloads)
    assert (opened.fillers, opened.malformed) == (fillers, len(copies))


@given(st.lists(st.binary(min_size=MESSAGE_BYTES, max_size=MESSAGE_BYTES), max_size=20))
def test_any_messages_are_counted_filled_or_malformed(rows: list[bytes]) -> None:
    opened = unpack_messages(b"".join(rows))
    assert opened.payloads.size + opened.fillers + opened.malformed == len(rows)
    assert opened.payloads.size == len({row[:ID_BYTES]: 0 for row in rows if row[ID_BYTES] == 1})
    assert opened.payloads.dtype == np.uint64 and opened.labels.shape == opened.payloads.shape


@pytest.mark.parametrize("kind", [2, 3, 127, 128, 255])
def test_a_message_of_no_known_kind_is_malformed(kind: int) -> None:
    opened = unpack_messages(message(kind, 7))
    assert (opened.payloads.size, opened.fillers, opened.malformed) == (0, 0, 1)


def test_a_batch_of_which_nothing_opened_says_nothing() -> None:
    opened = unpack_messages(b"")
    assert (opened.payloads.size, opened.labels.size, opened.fillers, opened.malformed) == (0, 0, 0, 0)


def test_equal_payloads_of_two_people_both_count() -> None:
    packed = [pack_messages(as_array([5]), None, 1, bits=BITS)[0] for _ in range(40)]
    assert unpack_messages(b"".join(packed)).payloads.tolist() == [5] * 40


def test_a_message_in_the_name_of_a_copy_cannot_replace_the_first() -> None:
    first, second = message(1, 7, own_id=b"a" * 16), message(1, 9, own_id=b"a" * 16)
    assert unpack_messages(first + second).payloads.tolist() == [7]


def test_more_messages_than_the_routing_has_are_refused() -> None:
    with pytest.raises(DataError, match=r"must be at most 2, got 3: the plan and the routing disagree"):
        pack_messages(as_array([1, 2, 3]), None, 2, bits=BITS)


@given(REPORTS)
def test_uploads_come_back_whole(reports: list[SentReport]) -> None:
    assert list(unpack_upload(pack_upload(reports))) == reports


@given(st.binary(max_size=300))
def test_any_body_is_an_upload_or_is_refused_in_words(body: bytes) -> None:
    try:
        reports = list(unpack_upload(body))
    except DataError as refused:
        assert "send it whole" in str(refused)
    else:
        assert pack_upload(reports) == body


@given(REPORTS.filter(bool), st.data())
def test_a_truncated_upload_never_makes_another_report(reports: list[SentReport], data: st.DataObject) -> None:
    body = pack_upload(reports)
    cut = data.draw(st.integers(0, len(body) - 1))
    found = []
    try:
        for report in unpack_upload(body[:cut]):
            found.append(report)  # noqa: PERF402
    except DataError:
        pass
    assert found == reports[: len(found)]


@given(IDS, st.binary(max_size=100))
def test_a_single_body_comes_back(seat: str, body: bytes) -> None:
    assert split_single_body(single_body(seat, body)) == (seat, body)


@given(st.binary(max_size=ID_BYTES - 1))
def test_a_body_without_a_seat_is_refused(body: bytes) -> None:
    with pytest.raises(DataError, match="must begin with a seat of 16 bytes"):
        split_single_body(body)


def test_ids_are_new_every_time_and_known_again() -> None:
    ids = {new_id(bits=BITS) for _ in range(200)}
    assert len(ids) == 200 and all(map(is_id, ids))


@given(st.one_of(st.text(max_size=40), st.binary(max_size=40), st.none(), st.integers()))
def test_nothing_else_is_an_id(text: Any) -> None:
    assert is_id(text) == (isinstance(text, str) and len(text) == 32 and set(text) <= set("0123456789abcdef"))


@pytest.mark.parametrize("text", ["A" * 32, "0" * 31, "0" * 33, "0" * 31 + "٣", " " + "0" * 31, "../" + "0" * 29])
def test_ids_have_one_spelling(text: str) -> None:
    assert not is_id(text)


def test_seats_cannot_be_guessed() -> None:
    """A seat shows its position and ten bytes that are new every time."""
    bits = RandomBits.seeded(3)
    seats = [new_seat(7, bits=bits) for _ in range(200)]
    assert len({seat[12:] for seat in seats}) == 200 and {position_of(seat) for seat in seats} == {7}
    assert {len(seat) for seat in seats} == {32}
    # Each of the twenty digits takes every value: 200 draws miss one of 16 with probability 4e-5 a digit.
    assert all(len({seat[place] for seat in seats}) > 12 for place in range(12, 32))
