"""Refusals that travel: RFC 9457 problem documents, each with what is wrong and how to mend it."""

from dataclasses import dataclass
from typing import Any

from shuffledp.errors import ShuffleDPError

MEDIA_TYPE = "application/problem+json"


class RefusedError(ShuffleDPError):
    """A request that changes nothing, with the HTTP status and the sentence that say why."""

    def __init__(
        self, kind: "ProblemKind", detail: str, *, retry_after: int | None = None, challenge: str | None = None
    ) -> None:
        self.kind = kind
        self.detail = detail
        self.retry_after = retry_after
        # What WWW-Authenticate says where it is not a bearer token that is missing.
        self.challenge = challenge
        super().__init__(detail)

    def document(self) -> dict[str, Any]:
        """The problem document.

        >>> RefusedError(TASK_UNKNOWN, "no such task").document()["status"]
        404
        """
        return {
            "type": self.kind.type,
            "title": self.kind.title,
            "status": self.kind.status,
            "detail": self.detail,
        }


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """A kind of refusal: one status, one title; and a name of its own where a standard gives it one."""

    name: str
    status: int
    title: str
    uri: str | None = None

    @property
    def type(self) -> str:
        """What a document calls it."""
        return self.uri or f"urn:shuffledp:problem:{self.name}"


BAD_REQUEST = ProblemKind("bad-request", 400, "The request cannot be read")
# RFC 9458, section 5.3.
GATEWAY_KEY = ProblemKind(
    "gateway-key",
    400,
    "The gateway has no such key",
    "https://iana.org/assignments/http-problem-types#ohttp-key",
)
NO_TOKEN = ProblemKind("token-missing", 401, "A bearer token is needed")
NO_PASS = ProblemKind("pass-needed", 401, "A token of the task's issuer is needed")
NOT_INVITED = ProblemKind("invitation-unknown", 401, "The issuer does not know the invitation")
WRONG_ROLE = ProblemKind("role-wrong", 403, "This token is for another role")
PASS_SPENT = ProblemKind("pass-spent", 403, "The token has had its seats")
PASS_SIGNED = ProblemKind("pass-signed", 403, "The issuer has signed another token for this person")
NOT_FOUND = ProblemKind("not-found", 404, "There is nothing here")
TASK_UNKNOWN = ProblemKind("task-unknown", 404, "This server does not have the task")
TASK_ENDED = ProblemKind("task-ended", 404, "The task has ended here")
BATCH_UNKNOWN = ProblemKind("batch-unknown", 404, "The task has no such batch")
METHOD_NOT_ALLOWED = ProblemKind("method-not-allowed", 405, "The method is not allowed here")
TOO_SLOW = ProblemKind("too-slow", 408, "The body did not come in time")
BATCH_DIFFERS = ProblemKind("batch-differs", 409, "Another batch was delivered under this id")
PIECES_MISSING = ProblemKind("pieces-missing", 409, "The manifest names pieces that are not here")
LEASE_LOST = ProblemKind("lease-lost", 409, "The piece is not yours to open any more")
TASK_FULL = ProblemKind("task-full", 409, "All seats of the task are taken")
SEATS_LATER = ProblemKind("seats-later", 409, "The seats for this model are taken")
WRONG_HOP = ProblemKind("hop-wrong", 409, "Another hop of the cascade takes this")
SEAT_GONE = ProblemKind("seat-gone", 410, "The seat is no longer yours")
TOO_LARGE = ProblemKind("too-large", 413, "The body is too large")
WRONG_TYPE = ProblemKind("media-type", 415, "The body is of another type")
NOT_SEALED = ProblemKind("not-sealed", 422, "The request does not open")
WRONG_LENGTH = ProblemKind("report-length", 422, "The report has another length than its seat's")
TOO_EARLY = ProblemKind("too-early", 425, "A copy of this request was answered before")
TOO_MANY = ProblemKind("too-many", 429, "This token asks too often")
BUSY = ProblemKind("busy", 429, "Too much waits to be sent on")
BROKEN = ProblemKind("internal", 500, "A bug")
GATEWAY_AWAY = ProblemKind("gateway-away", 502, "The relay does not reach the gateway")
NO_ROOM = ProblemKind("no-room", 503, "The store cannot be written")
GATEWAY_SLOW = ProblemKind("gateway-slow", 504, "The gateway does not answer the relay in time")

KINDS = tuple(value for value in list(globals().values()) if isinstance(value, ProblemKind))
