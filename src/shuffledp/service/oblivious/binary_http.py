"""HTTP messages as bytes (RFC 9292): what is sealed for a gateway, and what it seals for its answer.

Written are messages of known length, padded with zeros to whatever length is asked for. Read are those of
indeterminate length, too. Every length is compared with what is there before anything is taken: a message of a few
bytes that announces 2^62 is refused at once, and nothing is set aside for it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from shuffledp.errors import DataError

Fields = tuple[tuple[str, str], ...]

_KNOWN_REQUEST, _KNOWN_RESPONSE, _OPEN_REQUEST, _OPEN_RESPONSE = range(4)
_MOST_FIELDS = 64
_MOST_INTERIM = 8
# Each takes time of its own, however short it is.
_MOST_CHUNKS = 4096
# RFC 9110: a token; in small letters, as HTTP/2 has it. A colon begins what only control data may say.
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+")
_METHOD = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32}")
# No control characters but a tab inside: a line break would be another field elsewhere.
_VALUE = re.compile(rb"(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?")
_VISIBLE = re.compile(rb"[\x21-\x7e]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerRequest:
    """A request inside an encapsulation.

    Attributes:
        method: such as PUT.
        scheme: https, usually.
        authority: the server that it is for.
        path: with the query.
        fields: header fields, names in small letters.
        content: the body.
    """

    method: str
    scheme: str = "https"
    authority: str = ""
    path: str
    fields: Fields = ()
    content: bytes = b""

    def encoded(self, length: int | None = None) -> bytes:
        """The request as bytes, padded with zeros to this length; unpadded and as short as can be if it is None.

        Raises:
            DataError: it is longer than that.

        >>> InnerRequest(method="GET", authority="example.com", path="/").encoded().hex()
        '00034745540568747470730b6578616d706c652e636f6d012f'
        """
        control = (self.method, self.scheme, self.authority, self.path)
        head = encode_varint(_KNOWN_REQUEST) + b"".join(_prefixed(part.encode("ascii")) for part in control)
        return _padded(head, self.fields, self.content, length)

    @classmethod
    def decoded(cls, message: bytes) -> "InnerRequest":
        """The request that these bytes are.

        Raises:
            DataError: they are none.
        """
        reader, known = _begun(message, _KNOWN_REQUEST, _OPEN_REQUEST, "requests")
        method, scheme, authority, path = (reader.prefixed() for _ in range(4))
        if not _METHOD.fullmatch(method) or not all(map(_VISIBLE.fullmatch, (scheme, authority, path))):
            raise _refused("control data of other characters", "must have a method, a scheme, an authority and a path")
        fields, content = reader.rest(known=known)
        return cls(
            method=method.decode(),
            scheme=scheme.decode(),
            authority=authority.decode(),
            path=path.decode(),
            fields=fields,
            content=content,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerResponse:
    """An answer inside an encapsulation; interim ones (1xx) before it are read and dropped.

    Attributes:
        status: in 200..599.
        fields: header fields, names in small letters.
        content: the body.
    """

    status: int
    fields: Fields = ()
    content: bytes = b""

    def encoded(self, length: int | None = None) -> bytes:
        """The answer as bytes, padded with zeros to this length; unpadded and as short as can be if it is None.

        Raises:
            DataError: it is longer than that.

        >>> InnerResponse(status=200).encoded().hex(), InnerResponse(status=200).encoded(5).hex()
        ('0140c8', '0140c80000')
        """
        head = encode_varint(_KNOWN_RESPONSE) + encode_varint(self.status)
        return _padded(head, self.fields, self.content, length)

    @classmethod
    def decoded(cls, message: bytes) -> "InnerResponse":
        """The answer that these bytes are.

        Raises:
            DataError: they are none.
        """
        reader, known = _begun(message, _KNOWN_RESPONSE, _OPEN_RESPONSE, "answers")
        for _ in range(_MOST_INTERIM + 1):
            status = reader.varint()
            if not 100 <= status <= 199:
                break
            reader.fields(known=known)
        if not 200 <= status <= 599:
            raise _refused(f"status {status}", "must have a status in 200..599 after at most eight interim ones")
        fields, content = reader.rest(known=known)
        return cls(status=status, fields=fields, content=content)


def _begun(message: bytes, known: int, unknown: int, what: str) -> "tuple[_Reader, bool]":
    """What reads on behind the first number, which says whether lengths are known ahead or parts follow each other."""
    reader = _Reader(message)
    framing = reader.varint()
    if framing not in (known, unknown):
        raise _refused(f"begins with {framing}", f"must begin with {known} or {unknown}, as {what} do")
    return reader, framing == known


def encode_varint(number: int) -> bytes:
    """A whole number as QUIC writes it (RFC 9000, section 16): in 1, 2, 4 or 8 bytes, the fewest that hold it.

    >>> [encode_varint(number).hex() for number in (37, 15293, 494878333, 151288809941952652)]
    ['25', '7bbd', '9d7f3e7d', 'c2197c5eff14e88c']
    """
    for exponent, bits in enumerate((6, 14, 30, 62)):
        if 0 <= number < 1 << bits:
            size = 1 << exponent
            return (number | exponent << 8 * size - 2).to_bytes(size, "big")
    raise _refused(str(number), "must have lengths in 0..2^62 - 1")


def _prefixed(part: bytes) -> bytes:
    return encode_varint(len(part)) + part


def _padded(head: bytes, fields: Fields, content: bytes, length: int | None) -> bytes:
    lines = b"".join(_prefixed(part.encode("latin-1")) for field in fields for part in field)
    # Sections at the end that are empty are left out: padding stands for them, as it does for the trailers.
    sections = _prefixed(lines) + _prefixed(content) if content else _prefixed(lines) if lines else b""
    whole = head + sections
    if length is not None and len(whole) > length:
        raise _refused(f"{len(whole)} bytes", f"must fit into the {length} bytes that all of its kind have")
    return whole.ljust(length or 0, b"\0")


def _refused(value: str, problem: str) -> DataError:
    return DataError("message", value, problem, "send a binary HTTP message (RFC 9292)")


@dataclass(slots=True)
class _Reader:
    """Takes parts of a message from its beginning, none of them longer than what is left."""

    message: bytes
    place: int = 0

    @property
    def left(self) -> int:
        return len(self.message) - self.place

    def take(self, count: int) -> bytes:
        start = self.place
        end = start + count
        if end > len(self.message):
            raise _refused(f"{self.left} bytes", f"must not end before {count} that are announced")
        self.place = end
        return self.message[start:end]

    def varint(self) -> int:
        first = self.take(1)[0]
        if first < 0x40:
            return first
        more = (1 << (first >> 6)) - 1
        return (first & 0x3F) << 8 * more | int.from_bytes(self.take(more), "big")

    def prefixed(self) -> bytes:
        return self.take(self.varint())

    def fields(self, *, known: bool) -> Fields:
        """A section of fields; none where the message is cut off before it."""
        if not self.left:
            return ()
        lines = _Reader(self.prefixed())._lines(known=True) if known else self._lines(known=False)
        return tuple(lines)

    def _lines(self, *, known: bool) -> Iterator[tuple[str, str]]:
        count = 0
        while self.left if known else True:
            name = self.prefixed()
            if not name and not known:
                return
            value = self.prefixed()
            count += 1
            if count > _MOST_FIELDS or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
                raise _refused("another field", f"must have at most {_MOST_FIELDS} fields of HTTP in a section")
            yield name.decode("ascii"), value.decode("latin-1")

    def content(self, *, known: bool) -> bytes:
        if not self.left:
            return b""
        if known:
            return self.prefixed()
        parts = []
        while part := self.prefixed():
            parts.append(part)
            if len(parts) > _MOST_CHUNKS:
                raise _refused("more chunks", f"must have at most {_MOST_CHUNKS} chunks of content")
        return b"".join(parts)

    def rest(self, *, known: bool) -> tuple[Fields, bytes]:
        """Fields and content; trailers are read and dropped, and what follows must be padding."""
        fields, content = self.fields(known=known), self.content(known=known)
        self.fields(known=known)
        if self.message.count(0, self.place) != self.left:
            raise _refused("padding that is not zero", "must be followed by zeros only")
        return fields, content
