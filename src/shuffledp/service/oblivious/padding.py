"""How long requests and answers are that a relay carries: their lengths must not say what they are."""

from collections.abc import Iterable

from shuffledp.service.routing import Routing

HEADER_BYTES, ENC_BYTES, TAG_BYTES, KEY_BYTES, NONCE_BYTES = 7, 32, 16, 16, 12
"""Bytes of HPKE in requests: the key's number and the suite's, the encapsulated key, a tag, a key and a nonce."""
SECRET_BYTES = max(KEY_BYTES, NONCE_BYTES)
REQUEST_OVERHEAD, RESPONSE_OVERHEAD = HEADER_BYTES + ENC_BYTES + TAG_BYTES, SECRET_BYTES + TAG_BYTES
_STEP = 256
# For all that is no ciphertext: method, path, fields with the token, the seat, and lengths.
HEAD_BYTES = 1024
ANSWER_STEP = 4096
LARGEST_CARRIED = 4 << 20
"""A relay carries no longer request: it cannot know which tasks there are."""
_ALWAYS_TAKEN = 1 << 20


def request_length(routing: Routing) -> int:
    """How long every request of a task is, before it is sealed: no report of it is longer.

    It takes a batch of every level, each with as many messages as the one that has most: any client can compute that,
    in any language, and clients of all kinds look the same.

    Args:
        routing: the task's.

    >>> messages = {10: 3, 20: 2, 30: 2}
    >>> routing = Routing(users=60, budget=2, shufflers=2, slot_users=10, every_slot=False, messages=messages)
    >>> request_length(routing), HEAD_BYTES + 2 * 3 * 77
    (1536, 1486)
    """
    longest = routing.shufflers * max(routing.messages.values()) * routing.ciphertext_bytes
    return -(-(longest + HEAD_BYTES) // _STEP) * _STEP


def longest_sealed(routings: Iterable[Routing]) -> int:
    """How long a sealed request may be that a gateway takes: nobody has shown a token before it is read.

    Args:
        routings: of all tasks that are known; one more, which another process was given, may have requests of 1 MB.
    """
    return max([_ALWAYS_TAKEN, *map(request_length, routings)]) + REQUEST_OVERHEAD


def answer_length(length: int) -> int:
    """How long an answer of so many bytes is before it is sealed: a seat, an acknowledgement and a refusal all fit
    into the first step.

    >>> answer_length(30), answer_length(4096), answer_length(4097)
    (4096, 4096, 8192)
    """
    return max(1, -(-length // ANSWER_STEP)) * ANSWER_STEP
