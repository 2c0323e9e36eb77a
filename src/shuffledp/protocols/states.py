"""States of learners, and how they are saved: one codec for all of them.

A state is frozen data with the fingerprint of the learner that it belongs to. Beside each field stands which values it
may have and how it is written as JSON:

    users: int = whole("whole users")
    released: tuple[float, ...] = numbers("a list of finite sums", most=1e100)
"""

import dataclasses
import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from shuffledp.errors import DataError, ParameterError
from shuffledp.files import other_version

SCHEMA = 1
RESTORE = "restore it from a copy"


@dataclass(frozen=True, slots=True)
class Kept:
    """How one field of a state is read from JSON, written to it, and refused."""

    wanted: str
    """What the field must be, in words after "must have"."""
    read: Callable[[Any], Any]
    """The field's value; raises a TypeError or ValueError for what it cannot be."""
    write: Callable[[Any], Any] = lambda value: value
    optional: bool = False
    """Whether documents leave it out where it is None, as those do that were written before it was there."""


def kept(
    wanted: str,
    read: Callable[[Any], Any],
    write: Callable[[Any], Any] = lambda kept: kept,
    *,
    optional: bool = False,
    **more: Any,
) -> Any:
    """A field of a state with its own form; `more` goes to `dataclasses.field`."""
    return dataclasses.field(metadata={Kept: Kept(wanted, read, write, optional)}, **more)


def fingerprint_of(decides: Any) -> str:
    """SHA-256 of what decides a learner, as JSON: two with one fingerprint are the same."""
    return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()


def is_whole(value: Any) -> bool:
    """Whether this is a whole number, and no truth value."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_real(value: Any) -> bool:
    """Whether this is a finite number, and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf


def checked(value: Any, allowed: bool) -> Any:
    """The value, or a ValueError where it is not allowed."""
    if not allowed:
        raise ValueError(value)
    return value


def _whole(most: float) -> Callable[[Any], int]:
    return lambda value: int(checked(value, is_whole(value) and abs(value) <= most))


def _list(read: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    return lambda values: [read(each) for each in checked(values, isinstance(values, list))]


def whole(wanted: str = "whole numbers", *, most: float = math.inf, **more: Any) -> Any:
    """A whole number of at most this size."""
    return kept(wanted, _whole(most), **more)


def _tuple(wanted: str, read: Callable[[Any], list[Any]], **more: Any) -> Any:
    return kept(wanted, lambda values: tuple(read(values)), list, **more)


def whole_numbers(wanted: str = "lists of whole numbers", *, most: float = math.inf, **more: Any) -> Any:
    """A tuple of whole numbers of at most this size."""
    return _tuple(wanted, _list(_whole(most)), **more)


def _reals(most: float) -> Callable[[Any], list[float]]:
    return _list(lambda value: float(checked(value, is_real(value) and abs(value) <= most)))


def numbers(wanted: str = "lists of finite numbers", *, most: float = math.inf, **more: Any) -> Any:
    """A tuple of finite numbers of at most this size."""
    return _tuple(wanted, _reals(most), **more)


def vector(wanted: str, **more: Any) -> Any:
    """A NumPy vector of finite numbers."""
    each = _reals(math.inf)
    return kept(wanted, lambda values: np.array(each(values)), lambda array: array.tolist(), **more)


def _written(value: Any) -> Any:
    return None if value is None else value.document()


def inner(wanted: str, read: Callable[[Any], Any], **more: Any) -> Any:
    """Something with a document of its own, or None."""
    return kept(wanted, lambda document: None if document is None else read(document), _written, **more)


def written_fields(kept: Any) -> dict[str, Any]:
    """The fields of frozen data as JSON."""
    forms = ((field.name, field.metadata[Kept], getattr(kept, field.name)) for field in dataclasses.fields(kept))
    return {name: form.write(value) for name, form, value in forms if not (form.optional and value is None)}


def read_fields(kind: Any, document: Mapping[str, Any], name: str, way_out: str) -> dict[str, Any]:
    """The fields of frozen data of this kind from JSON.

    Raises:
        DataError: the document, by this name, lacks a field, or has one that cannot be.
    """
    found = {}
    for field in dataclasses.fields(kind):
        form: Kept = field.metadata[Kept]
        if field.name not in document:
            if form.optional:
                continue
            raise DataError(name, f"no {field.name}", "must have all its fields", way_out)
        try:
            found[field.name] = form.read(document[field.name])
        except DataError:
            raise
        except (TypeError, ValueError, AttributeError, KeyError, OverflowError):
            raise DataError(name, f"other {field.name}", f"must have {form.wanted}", way_out) from None
    return found


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Where a learner stands: all that it needs to go on, and whose it is.

    Two states are equal if their documents are.
    """

    fingerprint: str = kept("a fingerprint", lambda text: checked(text, isinstance(text, str)))
    """SHA-256 of what decides the learner: a state of another one is refused."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and self.document() == other.document()

    def __hash__(self) -> int:
        return hash(repr(self.document()))

    def document(self) -> dict[str, Any]:
        """The state as JSON."""
        return {"schema": SCHEMA} | written_fields(self)

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """The state that a JSON document describes.

        Raises:
            DataError: the document is of another version, lacks a field, or has one that cannot be.
        """
        if not isinstance(document, Mapping) or "schema" not in document:
            raise DataError("state", type(document).__name__, f"must be an object with schema {SCHEMA}", RESTORE)
        if document["schema"] != SCHEMA:
            raise other_version("state.schema", document["schema"], SCHEMA, RESTORE)
        return cls(**read_fields(cls, document, "state", RESTORE))

    def belongs_to(self, fingerprint: str, kind: str) -> None:
        """Refuse a state that began under another spec than that with this fingerprint."""
        if self.fingerprint != fingerprint:
            belongs = f"must belong to the {kind} {fingerprint[:12]}"
            raise ParameterError("state", str(self.fingerprint)[:12], belongs, f"use its own {kind}")
