"""What a shuffler may know of a campaign: each of its rounds is routed like a task."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Self

from shuffledp.errors import DataError
from shuffledp.files import kind_of_document, other_version
from shuffledp.service.admission.private_tokens import Gate, Issuer
from shuffledp.service.hops import ADMISSION_VERSION, version_with
from shuffledp.service.routing import Routing, issuer_in
from shuffledp.service.wire import VERSION

_MOST_GATES = 256


@dataclass(frozen=True)
class RoundsRouting:
    """Who goes into which batch, where a campaign has several rounds: each is routed like a task of its own.

    A round's id is that of the campaign, its number and which of the layouts it has: whoever was shown the newest model
    can say it, and no server has to be told of a new round.

    Attributes:
        rounds: no round has this number, or a larger one.
        layouts: the routings that rounds may have.
        drops: whether a round that does not fill is dropped when a later one is full.

    >>> layout = Routing(users=5, budget=1, shufflers=1, slot_users=5, every_slot=False, messages={5: 2})
    >>> routing = RoundsRouting(3, (layout,))
    >>> name = round_id("ab", 2, 0)
    >>> split_round(name), routing.of_round(2, 0).users, routing.of_round(3, 0)
    (('ab', 2, 0), 5, None)
    """

    rounds: int
    layouts: tuple[Routing, ...]
    drops: bool = False

    @property
    def layers(self) -> int:
        """How many layers for hops of a cascade a message has when it comes to whoever reads this."""
        return self.layouts[0].layers

    @property
    def hop(self) -> int:
        """Which hop of the cascade reads this, from 1."""
        return self.layouts[0].hop

    @property
    def issuer(self) -> Issuer | None:
        """Whose tokens seats of every round are given for, one each; None for whoever is enrolled."""
        return self.layouts[0].issuer

    def of_round(self, number: int, layout: int) -> Routing | None:
        """The routing of a round; None where there is none."""
        return self.layouts[layout] if number < self.rounds and layout < len(self.layouts) else None

    def at_hop(self, number: int) -> Self:
        """What the hop of this number may know, of every layout."""
        return replace(self, layouts=tuple(each.at_hop(number) for each in self.layouts))

    def document(self) -> dict[str, Any]:
        """The routing as JSON."""
        # All have the same issuer, which is named once.
        layouts = [replace(each, issuer=None).document() for each in self.layouts]
        named = {} if self.issuer is None else {"issuer": self.issuer.document()}
        version = version_with((), VERSION, issuer=bool(named))
        return {"version": version, "rounds": self.rounds, "layouts": layouts, "drops": self.drops, **named}

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """The routing that a JSON document describes."""
        again = "create the campaign again with this version"
        layouts = document.get("layouts") if isinstance(document, Mapping) else None
        if isinstance(document, Mapping) and (found := document.get("version")) not in (VERSION, ADMISSION_VERSION):
            raise other_version("routing.version", found, f"{VERSION} or {ADMISSION_VERSION}", again)
        if not isinstance(layouts, list) or not layouts:
            raise DataError("routing.layouts", type(layouts).__name__, "must be a list of routings", again)
        rounds = document.get("rounds")
        if type(rounds) is not int or not 1 <= rounds < 10**15:
            raise DataError("routing.rounds", rounds, "must be a whole number >= 1", again)
        if not isinstance(document.get("drops"), bool):
            raise DataError("routing.drops", document.get("drops"), "must be true or false", again)
        issuer = issuer_in(document)
        each_layout = map(Routing.from_document, layouts)
        return cls(rounds, tuple(replace(each, issuer=issuer) for each in each_layout), document["drops"])


def round_id(campaign_id: str, number: int, layout: int) -> str:
    """The id under which a round of a campaign is served."""
    return f"{campaign_id}.{number}.{layout}"


def owner_of(task_id: str) -> str:
    """The campaign that a round is of, or the task itself.

    >>> owner_of(round_id("ab", 2, 0)), owner_of("ab")
    ('ab', 'ab')
    """
    return task_id.partition(".")[0]


def gate_of(routing: "Routing | RoundsRouting", task_id: str) -> Gate | None:
    """Whose tokens lead in to a task, a campaign or a round of one; None where whoever is enrolled may report."""
    return None if routing.issuer is None else _gate(routing.issuer, owner_of(task_id))


@lru_cache(_MOST_GATES)
def _gate(issuer: Issuer, owner: str) -> Gate:
    """A gate that keeps what it has computed: it is asked with every seat."""
    return Gate(issuer, owner)


def split_round(task_id: str) -> tuple[str, int, int] | None:
    """The campaign, the number and the layout that a round's id says; None where it is no such id."""
    parts = task_id.split(".")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() and len(part) < 16 for part in parts[1:]):
        return None
    campaign, number, layout = parts[0], int(parts[1]), int(parts[2])
    return (campaign, number, layout) if round_id(campaign, number, layout) == task_id else None


def routing_from(document: Any) -> Routing | RoundsRouting:
    """The routing of a task or of a campaign that a JSON document describes."""
    is_rounds = isinstance(document, Mapping) and "layouts" in document
    return RoundsRouting.from_document(document) if is_rounds else Routing.from_document(document)


def routing_of_task(text: str, hop: int = 1) -> tuple[str, Routing | RoundsRouting]:
    """A task's or a campaign's id and its routing at a hop: all that a shuffler reads of its text."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise DataError("task", "no JSON", "must be a JSON document", "send the task's file unchanged") from None
    if (kind := kind_of_document(document)) in ("a plan", "a ledger"):
        raise DataError("task", kind, "must be a task's or a campaign's file", "make one with `shuffledp task create`")
    part = document.get("routing") if isinstance(document, Mapping) else None
    return hashlib.sha256(text.encode()).hexdigest(), routing_from(part).at_hop(hop)
