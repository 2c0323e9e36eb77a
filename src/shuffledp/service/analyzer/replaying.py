"""A campaign's models computed again from what its batches said, and compared with those that were published.

Nothing is read but the totals on disk, which is all that was released, and each model's own text: a model that depends
on anything else, a learner that moved twice for one batch or back after a crash, a number that is missing or given
twice, and a signature by somebody else are found. It follows the learner by itself, and not by the analyzer's desk:
what one of the two does wrong, the other does not.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from shuffledp.errors import DataError, ShuffleDPError
from shuffledp.protocols.learner import Cohort
from shuffledp.service.campaign import Campaign
from shuffledp.service.models import Model, checked_model, model_of
from shuffledp.service.rounds import round_id
from shuffledp.service.routing import batch_id as id_of
from shuffledp.service.store.contract import AnalyzerRecords, BatchTotal
from shuffledp.service.wire import SignedText

_RESTORE = "restore the store from a copy, or say so to everybody who used the models after it"
# Of a number's size: another machine may round the last digits of a model's matrices otherwise.
_ROUNDING = 1e-9

Totals = Mapping[tuple[str, str], BatchTotal]


@dataclass(frozen=True, slots=True)
class Replayed:
    """What is true of a campaign's models, as far as its batches tell.

    Attributes:
        models: how many were published, and are what their batches say.
        dropped: rounds that did not fill in time, and that the learner went on without.
        void: batches that were spoiled.
        state: where the learner stands after all of them, as JSON.
    """

    models: int
    dropped: int
    void: int
    state: Any


class RefutedError(DataError):
    """A model, or the learner's state, is not what the batches on disk make it."""


def replay(records: AnalyzerRecords, campaign: Campaign) -> Replayed:
    """Compute every model of a campaign again.

    Args:
        records: an analyzer's, which are only read.
        campaign: one that it serves.

    Returns:
        How many models were compared, and where the learner stands.

    Raises:
        RefutedError: the first thing that is wrong, in a sentence.
    """
    learner = campaign.learner
    totals = {(task_id, total.batch_id): total for task_id, total in records.all_totals(campaign.id)}
    state: Any = learner.start()
    count = dropped = void = 0
    for number, found in enumerate(_published(records, campaign)):
        if number > 0:
            state, lost, spoiled = _next(campaign, state, totals, number)
            dropped, void = dropped + lost, void + spoiled
        _compare(campaign, number, found, model_of(campaign, number, state, learner.ask(state)))
        count = number + 1
    if count == 0:
        raise _refuted("models", "none", "must have model 0, of nobody")
    _check_state(records, campaign, state, count)
    cohort = learner.ask(state)
    if cohort is not None and (due := _due(campaign, state, cohort)) and set(due) <= set(totals):
        is_void = any(totals[key].total is None for key in due)
        if learner.takes_void or not is_void:
            raise _refuted("models", f"{count} of them", "must have one more: the next batches were read already")
    return Replayed(count, dropped, void, state.document())


def _published(records: AnalyzerRecords, campaign: Campaign) -> Iterator[SignedText]:
    """Models in the order of their numbers, each of which must be the next one."""
    number = 0
    while rows := records.models(campaign.id, number - 1, 1):
        if records.model(campaign.id, number) != rows[0]:
            raise _refuted(f"model {number}", "missing", "must be there: later ones are")
        yield rows[0]
        number += 1


def _due(campaign: Campaign, state: Any, cohort: Cohort) -> dict[tuple[str, str], Any]:
    """The batches that close when a cohort has come, by round and id, each with its place in the cohort."""
    place = campaign.learner.round_of(state, cohort)
    if place is None:
        return {}
    schedule = campaign.routing.layouts[place.seating].schedule
    end = int(schedule.place_of(place.first + cohort.users)[0])
    task_id = round_id(campaign.id, place.number, place.seating)
    closing = cohort.closing(cohort.users).values()
    return {(task_id, id_of(batch.level, batch.first_slot, end)): batch for batch in closing}


def _next(campaign: Campaign, state: Any, totals: Totals, number: int) -> tuple[Any, int, int]:
    """The state after the next cohort, whether its round was dropped, and how many of its batches were void."""
    learner = campaign.learner
    cohort = learner.ask(state)
    due = {} if cohort is None else _due(campaign, state, cohort)
    if cohort is None or not due:
        raise _refuted(f"model {number}", "one too many", "must not be there: nobody was asked after the one before")
    closed: dict[int, Any] = {}
    missing = [key for key in due if key not in totals]
    if missing and (campaign.waiting.seconds is None or not learner.takes_void):
        raise _refuted(f"model {number}", f"no batch {missing[0][1]}", "must rest on batches that were read")
    for key, batch in due.items():
        total = None if missing else totals[key].total
        closed[batch.level] = None if total is None else learner.told_from(total, batch.mechanism)
    try:
        after = learner.tell(state, cohort.users, closed)
    except ShuffleDPError as refused:
        raise _refuted(f"model {number}", str(refused), "must rest on batches that the learner takes") from None
    return after, int(bool(missing)), 0 if missing else sum(totals[key].void for key in due)


def _compare(campaign: Campaign, number: int, found: SignedText, expected: Model) -> None:
    """Refuse a published model that is not the computed one, but for when its round closes."""
    try:
        published = checked_model(found, campaign)
    except DataError as wrong:
        raise _refuted(f"model {number}", wrong.value, wrong.problem) from None
    if published.number != number:
        raise _refuted(f"model {number}", f"the number {published.number}", f"must be number {number}")
    documents = [_without_time(json.loads(json.dumps(each.document()))) for each in (published, expected)]
    for name, there in documents[0].items():
        if not _alike(there, documents[1][name]):
            raise _refuted(f"model {number}", f"another {name}", "must be what the released batches make it")


def _without_time(document: dict[str, Any]) -> dict[str, Any]:
    place = document["round"]
    return {**document, "round": None if place is None else {**place, "closes": None}}


def _check_state(records: AnalyzerRecords, campaign: Campaign, state: Any, count: int) -> None:
    """Refuse a learner that stands elsewhere than its newest model says."""
    stored = records.state(campaign.id)
    if stored is None and count == 1:
        return
    expected = json.loads(json.dumps(state.document()))
    if stored is None or not _alike(stored.get("learner"), expected):
        raise _refuted("state", "another", f"must be the one after {count - 1} releases")


def _alike(one: Any, other: Any) -> bool:
    """Equal, but for the last digits of numbers that are not whole."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_alike(each, other[name]) for name, each in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
    return bool(one == other)


def _refuted(what: str, found: Any, problem: str) -> RefutedError:
    return RefutedError(what, found, problem, _RESTORE)
