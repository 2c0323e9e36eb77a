"""How long requests and answers are that a relay carries: their lengths must not say what they are."""

_STEP = 256
# For all that is no ciphertext: method, path, fields with the token, the seat, and lengths.
HEAD_BYTES = 1024
ANSWER_STEP = 4096
LARGEST_SEALED = 65 << 20
"""No sealed request is longer: an upload of 64 MB, and what is around it."""


def request_length(longest_report_bytes: int) -> int:
    """How long every request of a task is, before it is sealed: that of its longest report, rounded up.

    Args:
        longest_report_bytes: of the task's routing; no report has more.

    >>> request_length(0), request_length(2002), request_length(2048)
    (1024, 3072, 3072)
    """
    return -(-(longest_report_bytes + HEAD_BYTES) // _STEP) * _STEP


def answer_length(length: int) -> int:
    """How long an answer of so many bytes is before it is sealed: a seat, an acknowledgement and a refusal all fit
    into the first step.

    >>> answer_length(30), answer_length(4096), answer_length(4097)
    (4096, 4096, 8192)
    """
    return max(1, -(-length // ANSWER_STEP)) * ANSWER_STEP
