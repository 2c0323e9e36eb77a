"""Refusals that travel: RFC 9457 problem documents, each with what is wrong and how to mend it."""

from dataclasses import dataclass
from typing import Any

from shuffledp.errors import ParameterError, ShuffleDPError

MEDIA_TYPE = "application/problem+json"


class RefusedError(ShuffleDPError):
    """A request that changes nothing, with the HTTP status and the sentence that say why."""

    def __init__(self, kind: "Kind", detail: str, *, retry_after: int | None = None) -> None:
        self.kind = kind
        self.detail = detail
        self.retry_after = retry_after
        super().__init__(detail)

    def document(self) -> dict[str, Any]:
        """The problem document.

        >>> RefusedError(TASK_UNKNOWN, "no such task").document()["status"]
        404
        """
        return {
            "type": f"urn:shuffledp:problem:{self.kind.name}",
            "title": self.kind.title,
            "status": self.kind.status,
            "detail": self.detail,
        }


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of refusal: one status, one title."""

    name: str
    status: int
    title: str


BAD_REQUEST = Kind("bad-request", 400, "The request cannot be read")
NO_TOKEN = Kind("token-missing", 401, "A bearer token is needed")
WRONG_ROLE = Kind("role-wrong", 403, "This token is for another role")
NOT_FOUND = Kind("not-found", 404, "There is nothing here")
TASK_UNKNOWN = Kind("task-unknown", 404, "This server does not have the task")
BATCH_UNKNOWN = Kind("batch-unknown", 404, "The task has no such batch")
METHOD_NOT_ALLOWED = Kind("method-not-allowed", 405, "The method is not allowed here")
TOO_SLOW = Kind("too-slow", 408, "The body did not come in time")
BATCH_DIFFERS = Kind("batch-differs", 409, "Another batch was delivered under this id")
TASK_FULL = Kind("task-full", 409, "All seats of the task are taken")
SEAT_GONE = Kind("seat-gone", 410, "The seat is no longer yours")
TOO_LARGE = Kind("too-large", 413, "The body is too large")
WRONG_TYPE = Kind("media-type", 415, "The body is of another type")
WRONG_LENGTH = Kind("report-length", 422, "The report has another length than its seat's")
BUSY = Kind("busy", 429, "Too much waits to be sent on")
BROKEN = Kind("internal", 500, "A bug")
NO_ROOM = Kind("no-room", 503, "The store cannot be written")

KINDS = tuple(value for value in list(globals().values()) if isinstance(value, Kind))


def refusal_from(error: ParameterError) -> RefusedError:
    """Bad input as a refusal."""
    return RefusedError(BAD_REQUEST, str(error))
