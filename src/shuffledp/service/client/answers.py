"""What a shuffler's answers say; what it cannot have answered is not the server's."""

from collections.abc import Mapping, Sequence
from typing import Any

from shuffledp.errors import DataError
from shuffledp.service.client.calls import AnswerError, NotTheServersError, refusal_from
from shuffledp.service.routing import Seat


def seats_in(_: int, document: Mapping[str, Any]) -> list[Seat]:
    """The seats that were given, at least one."""
    offered = document.get("seats")
    try:
        seats = [Seat.from_document(seat) for seat in offered] if isinstance(offered, list) else []
    except DataError:
        raise NotTheServersError("seats that cannot be read") from None
    if not seats:
        raise NotTheServersError("no seats")
    return seats


def acknowledged(status: int, document: Mapping[str, Any]) -> int:
    """The status of a report's acknowledgement."""
    if status not in (200, 201) or document.get("new") is not (status == 201):
        raise NotTheServersError("neither new nor known")
    return status


def results_in(document: Mapping[str, Any], ids: Sequence[str]) -> list[int | AnswerError]:
    """For each report of an upload its 2xx status, or why it was refused."""
    results = document.get("results")
    if not isinstance(results, list) or len(results) != len(ids):
        raise NotTheServersError("another number of results")
    found: list[int | AnswerError] = []
    for result, report_id in zip(results, ids, strict=True):
        status = result.get("status") if isinstance(result, dict) else None
        if not isinstance(status, int) or result.get("report_id") != report_id:
            raise NotTheServersError("results of other reports")
        found.append(status if status in (200, 201) else refusal_from(status, result.get("problem")))
    return found
