"""The planner: from a question in numbers to a plan with its errors, costs and collusions; the newest are kept."""

import asyncio
import json
import math
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shuffledp.errors import ParameterError
from shuffledp.files import plain
from shuffledp.privacy import Privacy
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.protocols.plan import Plan
from shuffledp.protocols.presentation import Listing, collusion_rows
from shuffledp.service.cost import TaskCost
from shuffledp.service.problems import TOO_MANY, RefusedError
from shuffledp.service.routing import Routing
from shuffledp.service.wire import CIPHERTEXT_BYTES

MOST_PLANS = 256
"""Plans that are remembered."""
MOST_WAITING = 16
"""Wishes that wait for others to be planned."""
_LARGEST_USERS, _MOST_CATEGORIES, _MOST_SHUFFLERS = 10**9, 10**5, 16


@dataclass(frozen=True, slots=True)
class Kind:
    """A question that the planner offers.

    Attributes:
        words: what it is called on the page.
        family: the name of the protocols that answer it.
        takes: the fields of a request that it has beside those of all.
    """

    words: str
    family: str
    takes: tuple[str, ...] = ()


KINDS = {
    "count": Kind("a count", "binary-sum"),
    "sum": Kind("a sum of numbers", "bounded-sum", ("low", "high")),
    "histogram": Kind("a histogram", "histogram", ("categories",)),
    "running": Kind("a running count", "counter", ("shufflers",)),
}


@dataclass(frozen=True, slots=True)
class Wish:
    """A field of the planner's form.

    Attributes:
        words: its label.
        default: what it is if it is left out.
        least: the smallest value that may be asked for.
        most: the largest.
        whole: whether it is a whole number.
        scale: how its slider moves: by tens, or evenly; none where there is no slider.
    """

    words: str
    default: float
    least: float
    most: float
    whole: bool = False
    scale: str = ""

    def read(self, name: str, text: str | None) -> float:
        """The number that somebody typed.

        Raises:
            ParameterError: it is none, or outside of what may be asked for.
        """
        try:
            value = self.default if text is None or not text.strip() else float(text.replace(",", "").strip())
        except ValueError:
            raise ParameterError(name, text, "must be a number", f"{self.default:g} is a common choice") from None
        if not math.isfinite(value) or not self.least <= value <= self.most or (self.whole and value != int(value)):
            kind = "a whole number" if self.whole else "a number"
            problem = f"must be {kind} from {self.least:g} to {self.most:g} on this page"
            raise ParameterError(name, text, problem, "the command line takes others: shuffledp plan")
        return int(value) if self.whole else value


WISHES = {
    "users": Wish("People", 10_000, 1, _LARGEST_USERS, True, "tens"),
    "epsilon": Wish("Epsilon", 1.0, 0.01, 20, scale="tens"),
    "delta": Wish("Delta", 1e-6, 1e-15, 0.1, scale="tens"),
    "shufflers": Wish("Concurrent shufflers", 4, 1, _MOST_SHUFFLERS, True, "even"),
    "categories": Wish("Categories", 10, 2, _MOST_CATEGORIES, True, "tens"),
    "low": Wish("Smallest value", 0.0, -1e12, 1e12),
    "high": Wish("Largest value", 1.0, -1e12, 1e12),
    "honest_fraction": Wish("Part of the people who follow the protocol", 1.0, 0.05, 1.0, scale="even"),
}


@dataclass(frozen=True, slots=True)
class PlanWish:
    """What is asked of the planner, whole and in order, so that equal wishes are answered once."""

    kind: str
    numbers: tuple[tuple[str, float], ...]
    live: bool

    @classmethod
    def read(cls, query: Mapping[str, str]) -> "PlanWish":
        """The wish that a form's fields say; those of other questions are left alone.

        Raises:
            ParameterError: a field says something else than it may.
        """
        kind = query.get("protocol", "count")
        if kind not in KINDS:
            raise ParameterError("protocol", kind[:40], f"must be one of {', '.join(KINDS)}", "choose one of them")
        asked = ("users", "epsilon", "delta", "honest_fraction", *KINDS[kind].takes)
        numbers = tuple((name, WISHES[name].read(name, query.get(name))) for name in asked)
        return cls(kind, numbers, query.get("live") in ("1", "on", "true"))

    @property
    def asked(self) -> dict[str, Any]:
        """As a family of protocols takes it."""
        found: dict[str, Any] = dict(self.numbers)
        privacy = Privacy(found.pop("epsilon"), found.pop("delta"))
        return {**found, "privacy": privacy, "live": self.live}


@dataclass(frozen=True, slots=True, eq=False)
class PlanAnswer:
    """A plan as the page shows it; all numbers are the plan's own.

    Attributes:
        document: the plan as `shuffledp plan --json` prints it, without the table of all methods.
        file: the plan's file, as `shuffledp plan -o` writes it.
        facts: in words.
        compared: its error beside others'.
        collusions: who learns what together with whom.
        messages: what a person sends at most.
        report_bytes: of a report, encrypted.
        complaint: why the live service does not take it; empty where it does.
    """

    document: dict[str, Any]
    file: bytes
    facts: tuple[tuple[str, str], ...]
    compared: Listing
    collusions: tuple[tuple[str, str, str], ...]
    messages: int
    report_bytes: int
    complaint: str

    def as_json(self) -> bytes:
        """All of it, for the page's script."""
        return json.dumps(
            {
                "plan": self.document,
                "facts": self.facts,
                "compared": {
                    "headings": [column.name for column in self.compared.columns],
                    "rows": [row.cells for row in self.compared.rows],
                },
                "collusions": self.collusions,
                "messages_per_user_max": self.messages,
                "bytes_per_user_max": self.report_bytes,
                "complaint": self.complaint,
            },
            allow_nan=False,
        ).encode()


@dataclass
class Planner:
    """Answers wishes, one at a time: planning takes a processor and a thread, which the analyzer needs for batches.

    Attributes:
        most: plans that are remembered; the one that was asked for longest ago goes first.
        most_waiting: wishes that wait for others at most.
    """

    most: int = MOST_PLANS
    most_waiting: int = MOST_WAITING
    _known: OrderedDict[PlanWish, PlanAnswer] = field(default_factory=OrderedDict, repr=False)
    _planning: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)
    _waiting: int = 0

    async def answer(self, wish: PlanWish) -> PlanAnswer:
        """The plan for a wish.

        Raises:
            ParameterError: no plan meets it; the sentence says why.
            RefusedError: too many others wait.
        """
        if wish not in self._known:
            await self._plan(wish)
        self._known.move_to_end(wish)
        return self._known[wish]

    async def _plan(self, wish: PlanWish) -> None:
        if self._waiting >= self.most_waiting:
            raise RefusedError(TOO_MANY, f"{self._waiting} plans are waited for: wait a moment.", retry_after=5)
        self._waiting += 1
        try:
            async with self._planning:
                # Somebody may have waited for the same.
                if wish not in self._known:
                    self._known[wish] = await asyncio.to_thread(_planned, wish)
        finally:
            self._waiting -= 1
        if len(self._known) > self.most:
            self._known.popitem(last=False)


def _planned(wish: PlanWish) -> PlanAnswer:
    choice = PROTOCOLS.family(KINDS[wish.kind].family).choose(**wish.asked)
    plan: Plan = choice.plan
    size, complaint = _report_bytes(plan)
    said = (
        ("Asked", f"{plan.question}, {plan.privacy}"),
        ("Method", choice.why),
        *((name.capitalize(), words) for name, words in plan.facts()),
        *(("Take care", each) for each in (*plan.cautions, *plan.warnings)),
    )
    return PlanAnswer(
        document=plain(choice.document()),
        file=(json.dumps(plan.document(), indent=2) + "\n").encode(),
        facts=said,
        compared=plan.compared(),
        collusions=tuple(collusion_rows(plan.collusions(), plan.privacy.epsilon)),
        messages=plan.messages_per_user_max,
        report_bytes=size,
        complaint=complaint,
    )


def _report_bytes(plan: Plan) -> tuple[int, str]:
    """Bytes of the longest report, and why the live service does not take the plan."""
    try:
        return TaskCost.of(Routing.of(plan.layout)).report_bytes_max, ""
    except ParameterError as refused:
        return plan.messages_per_user_max * CIPHERTEXT_BYTES, str(refused)
