"""Binary HTTP: the examples of RFC 9292, and what is no message."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shuffledp.errors import DataError
from shuffledp.service.oblivious.binary_http import InnerRequest, InnerResponse, encode_varint

# RFC 9292, section 5.1.
AGENT = "curl/7.16.3 libcurl/7.16.3 OpenSSL/0.9.7l zlib/1.2.3"
HELLO = InnerRequest(
    method="GET",
    path="/hello.txt",
    fields=(("user-agent", AGENT), ("host", "www.example.com"), ("accept-language", "en, mi")),
)
KNOWN_REQUEST = bytes.fromhex("""
    00034745 54056874 74707300 0a2f6865 6c6c6f2e 74787440 6c0a7573 65722d61 67656e74 34637572 6c2f372e 31362e33
    206c6962 6375726c 2f372e31 362e3320 4f70656e 53534c2f 302e392e 376c207a 6c69622f 312e322e 3304686f 73740f77
    77772e65 78616d70 6c652e63 6f6d0f61 63636570 742d6c61 6e677561 67650665 6e2c206d 690000
""")
OPEN_REQUEST = bytes.fromhex("""
    02034745 54056874 74707300 0a2f6865 6c6c6f2e 7478740a 75736572 2d616765 6e743463 75726c2f 372e3136 2e33206c
    69626375 726c2f37 2e31362e 33204f70 656e5353 4c2f302e 392e376c 207a6c69 622f312e 322e3304 686f7374 0f777777
    2e657861 6d706c65 2e636f6d 0f616363 6570742d 6c616e67 75616765 06656e2c 206d6900 00000000 00000000 00000000
""")
# RFC 9292, section 5.2.
OPEN_RESPONSE = bytes.fromhex("""
    03406607 72756e6e 696e670a 22736c65 65702031 35220040 67046c69 6e6b233c 2f737479 6c652e63 73733e3b 2072656c
    3d707265 6c6f6164 3b206173 3d737479 6c65046c 696e6b24 3c2f7363 72697074 2e6a733e 3b207265 6c3d7072 656c6f61
    643b2061 733d7363 72697074 0040c804 64617465 1d4d6f6e 2c203237 204a756c 20323030 39203132 3a32383a 35332047
    4d540673 65727665 72064170 61636865 0d6c6173 742d6d6f 64696669 65641d57 65642c20 3232204a 756c2032 30303920
    31393a31 353a3536 20474d54 04657461 67142233 34616133 38372d64 2d313536 38656230 30220d61 63636570 742d7261
    6e676573 05627974 65730e63 6f6e7465 6e742d6c 656e6774 68023531 04766172 790f4163 63657074 2d456e63 6f64696e
    670c636f 6e74656e 742d7479 70650a74 6578742f 706c6169 6e003348 656c6c6f 20576f72 6c642120 4d792063 6f6e7465
    6e742069 6e636c75 64657320 61207472 61696c69 6e672043 524c462e 0d0a0000
""")
KNOWN_RESPONSE = bytes.fromhex("""
    0140c800 1d546869 7320636f 6e74656e 7420636f 6e746169 6e732043 524c462e 0d0a0d07 74726169 6c657204 74657874
""")


def test_the_requests_of_the_rfc_are_read_and_written() -> None:
    assert InnerRequest.decoded(KNOWN_REQUEST) == InnerRequest.decoded(OPEN_REQUEST) == HELLO
    # Written padded to the same length it has the RFC's two bytes at the end, and without them if none is asked for.
    assert HELLO.encoded(len(KNOWN_REQUEST)) == KNOWN_REQUEST
    assert HELLO.encoded() == KNOWN_REQUEST[:-2]


@pytest.mark.parametrize(("message", "truncated"), [(KNOWN_REQUEST, 2), (OPEN_REQUEST, 12)])
def test_a_request_may_be_cut_before_empty_sections_and_nowhere_else(message: bytes, truncated: int) -> None:
    for cut in range(1, len(message)):
        if cut <= truncated:
            assert InnerRequest.decoded(message[:-cut]) == HELLO
        # Cut right behind the control data it is a request without fields.
        elif len(message) - cut != 23:
            with pytest.raises(DataError, match="message must"):
                InnerRequest.decoded(message[:-cut])


def test_the_answers_of_the_rfc_are_read() -> None:
    read = InnerResponse.decoded(OPEN_RESPONSE)
    assert read.status == 200 and read.content == b"Hello World! My content includes a trailing CRLF.\r\n"
    names = ["date", "server", "last-modified", "etag", "accept-ranges", "content-length", "vary", "content-type"]
    assert [name for name, _ in read.fields] == names and dict(read.fields)["etag"] == '"34aa387-d-1568eb00"'
    with_trailer = InnerResponse.decoded(KNOWN_RESPONSE)
    assert with_trailer == InnerResponse(status=200, content=b"This content contains CRLF.\r\n")


@pytest.mark.parametrize(
    ("number", "text"),
    # RFC 9000, appendix A.1.
    [(37, "25"), (15293, "7bbd"), (494878333, "9d7f3e7d"), (151288809941952652, "c2197c5eff14e88c"), (63, "3f")],
)
def test_lengths_are_written_as_in_quic(number: int, text: str) -> None:
    assert encode_varint(number).hex() == text


VALUES = st.text("aZ09 ,;=\t\xe9", max_size=70).map(str.strip)
FIELDS = st.lists(st.tuples(st.text("abz-9", min_size=1, max_size=9), VALUES), max_size=4).map(tuple)


@settings(max_examples=40, deadline=None)
@given(FIELDS, st.binary(max_size=200), st.integers(0, 300))
def test_whatever_is_written_is_read_again_padded_or_not(
    fields: tuple[tuple[str, str], ...], content: bytes, more: int
) -> None:
    request = InnerRequest(method="PUT", authority="a.example:8001", path="/x?y=1", fields=fields, content=content)
    answer = InnerResponse(status=404, fields=fields, content=content)
    assert InnerRequest.decoded(request.encoded()) == request and InnerResponse.decoded(answer.encoded()) == answer
    length = len(request.encoded()) + 2 + more
    assert len(request.encoded(length)) == length and InnerRequest.decoded(request.encoded(length)) == request


HEAD = b"\x00\x03PUT\x05https\x00\x01/"
HUGE = encode_varint(2**62 - 1)
NO_REQUESTS = {
    "nothing": b"",
    "an answer": b"\x01\x40\xc8",
    "another framing": b"\x04" + HEAD[1:],
    "a varint cut": b"\x00\xc0",
    "a huge method": b"\x00" + HUGE + b"GET",
    "a huge path": HEAD[:-2] + HUGE + b"/",
    "huge fields": HEAD + HUGE,
    "a huge field": HEAD + b"\x0a" + b"\x01a" + HUGE,
    "a field beyond its section": HEAD + b"\x03" + b"\x01a\x05" + b"bbbbb",
    "huge content": HEAD + b"\x00" + HUGE + b"abc",
    "a huge chunk": b"\x02" + HEAD[1:] + b"\x00" + HUGE,
    "chunks that do not end": b"\x02" + HEAD[1:] + b"\x00" + b"\x01a",
    "many fields": HEAD + encode_varint(65 * 3) + b"\x01a\x00" * 65,
    "many open fields": b"\x02" + HEAD[1:] + b"\x01a\x00" * 65 + b"\x00",
    "a field without a name": HEAD + b"\x02\x00\x00",
    "a capital letter in a name": HEAD + b"\x03\x01A\x00",
    "a pseudo-field": HEAD + b"\x0a\x05:path\x03/v1",
    "a line break in a value": HEAD + b"\x0a\x01a\x07b\r\nc: d",
    "a space around a value": HEAD + b"\x05\x01a\x02 b",
    "a null in a value": HEAD + b"\x06\x01a\x03b\0c",
    "a space in the path": b"\x00\x03PUT\x05https\x00\x03/ x\x00",
    "a line break in the method": b"\x00\x04PU\r\n\x05https\x00\x01/",
    "no method": b"\x00\x00\x05https\x00\x01/",
    "padding that says something": HEAD + b"\x00\x00\x00\x00\x01",
}


@pytest.mark.parametrize("name", NO_REQUESTS)
def test_what_is_no_request_is_refused_in_a_sentence(name: str) -> None:
    with pytest.raises(DataError, match=r"message must .*: send a binary HTTP message"):
        InnerRequest.decoded(NO_REQUESTS[name])


def test_chunks_of_a_byte_are_counted_before_they_keep_a_gateway_busy() -> None:
    """Whoever has the public key may send a megabyte of them, and nobody else is answered while they are read."""
    head, most = b"\x02" + HEAD[1:] + b"\x00", 4096
    assert InnerRequest.decoded(head + b"\x01a" * most + b"\x00").content == b"a" * most
    with pytest.raises(DataError, match="at most 4096 chunks"):
        InnerRequest.decoded(head + b"\x01a" * (1 << 19))


@pytest.mark.parametrize("message", ["", "00", "0140", "014063", "0143e8", "01" + "4064" * 9 + "40c8", "014064c8"])
def test_what_is_no_answer_is_refused_in_a_sentence(message: str) -> None:
    with pytest.raises(DataError, match="message must"):
        InnerResponse.decoded(bytes.fromhex(message))


@pytest.mark.parametrize("read", [InnerRequest.decoded, InnerResponse.decoded])
def test_a_byte_that_was_changed_is_read_or_refused_and_nothing_else(read: Callable[[bytes], Any]) -> None:
    """No other exception, wherever it is and whatever it becomes: all are opened by whoever has the public key."""
    for message in (KNOWN_REQUEST, OPEN_REQUEST, OPEN_RESPONSE, KNOWN_RESPONSE):
        for place in range(len(message)):
            for byte in (0x00, 0x3F, 0x40, 0x7F, 0x80, 0xC0, 0xFF):
                with suppress(DataError):
                    read(message[:place] + bytes((byte,)) + message[place + 1 :])


def test_what_does_not_fit_is_not_cut() -> None:
    request = InnerRequest(method="PUT", path="/", content=bytes(100))
    with pytest.raises(DataError, match="must fit into the 100 bytes"):
        request.encoded(100)
    with pytest.raises(DataError, match="2\\^62"):
        encode_varint(2**62)
