"""A task: one plan, the key that its messages are encrypted to, and what a shuffler may know. Immutable.

The SHA-256 of its document is its id and is bound into every ciphertext, so that client, shuffler and analyzer
cannot work on different documents without noticing.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from shuffledp.errors import DataError, ParameterError
from shuffledp.files import kind_of_document, other_version, whole_file
from shuffledp.protocols.catalogue import live_method, plan_from_document
from shuffledp.protocols.domains.domain import Categories
from shuffledp.protocols.plan import Plan
from shuffledp.randomness import RandomBits
from shuffledp.service.admission.private_tokens import Gate, Issuer
from shuffledp.service.crypto import SUITE_NAME, PublicKey
from shuffledp.service.expiry import NEVER, Expiries, check_not_expired
from shuffledp.service.hops import version_with
from shuffledp.service.onion import ONE_SHUFFLER, check_hops, hops_document
from shuffledp.service.recipients import NamesRecipients
from shuffledp.service.rounds import gate_of
from shuffledp.service.routing import Routing
from shuffledp.service.wire import VERSION, is_id, new_id


@dataclass(frozen=True)
class Task(NamesRecipients):
    """An immutable document; everything else follows from it.

    Attributes:
        text: the document, canonical JSON: another spelling of the same document is another task.

    >>> from shuffledp import BinarySum, Privacy
    >>> from shuffledp.service.crypto import PrivateKey
    >>> plan = BinarySum.plan(users=2000, privacy=Privacy(1, 1e-6), method="coins")
    >>> task = Task.create(plan, PrivateKey.generate().public, bits=RandomBits.secure())
    >>> task.routing.users, task.warnings, Task.from_text(task.text) == task
    (2000, (), True)
    """

    text: str

    @classmethod
    def create(
        cls,
        plan: Plan,
        key: PublicKey,
        *,
        bits: RandomBits,
        allow_unbounded: bool = False,
        hops: Sequence[PublicKey] = ONE_SHUFFLER,
        expires: Expiries = NEVER,
        issuer: Issuer | None = None,
    ) -> Self:
        """A new task for a plan.

        Args:
            plan: any plan.
            key: the analyzer's, which clients encrypt to.
            bits: where the task's nonce comes from: two tasks of one plan have two ids.
            allow_unbounded: take a plan with warnings, such as that one client that lies can void a batch.
            hops: the keys of a cascade's shufflers, first hop first; none for one shuffler.
            expires: the last days of those keys that expire.
            issuer: whose tokens seats are given for, one each, with a key that no other task has; None for whoever has
                the token for enrol, which is for trials.

        Returns:
            The task, with the plan's warnings in its document.

        Raises:
            ParameterError: the plan can be spoiled and that was not allowed, a batch of it is too large to travel,
                the hops are too few, too many or not all different, or a key has expired.
        """
        if plan.can_be_spoiled and not allow_unbounded:
            other = live_method(plan)
            instead = (
                f"choose {other}, what plan --live takes" if other else f"no method of {plan.protocol} does better"
            )
            raise ParameterError("method", plan.method, plan.spoiled, f"{instead}, or allow it (--allow-unbounded)")
        checked = check_hops(hops, key)
        check_not_expired(expires)
        routing = Routing.of(plan.layout, len(checked), issuer)
        return cls(_text(plan, routing, key, checked, new_id(bits=bits), plan.document(), expires))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The task that this text is.

        Args:
            text: what `create` made, unchanged.

        Raises:
            ParameterError: any field is another than `create` would have written for the plan.
        """
        task = cls(text)
        # Reading is checking: each of these refuses what does not fit.
        if not task.routing.is_of(task.plan.layout) or task.routing.layers != len(task.hops) or task.routing.hop != 1:
            raise DataError("task.routing", "another", "must be the plan's", "create the task again")
        check_hops(task.hops, task.public_key)
        written, nonce = task.document["plan"], task.document.get("nonce")
        own = (task.plan, task.routing, task.public_key, task.hops, nonce, written, task.expires)
        if not is_id(nonce) or text != _text(*own):
            raise DataError("task", "other fields", "must be what was created, warnings and all", "create it again")
        return task

    @classmethod
    def load(cls, path: Path) -> Self:
        """A task from its file.

        Args:
            path: a file that `save` wrote.

        Raises:
            ParameterError: it cannot be read, or is no task.
        """
        try:
            return cls.from_text(path.read_text("utf-8").strip())
        except OSError:
            raise ParameterError("task", path, "must be a file that can be read", "check the path") from None
        except UnicodeDecodeError:
            raise DataError("task", path, "must be a task's file", "create it with `shuffledp task create`") from None

    def save(self, path: Path) -> None:
        """Write the task's file, whole or not at all."""
        with whole_file(path) as file:
            file.write(self.text.encode() + b"\n")

    @cached_property
    def document(self) -> Mapping[str, Any]:
        """The parsed document."""
        again = "create the task again with this version"
        try:
            document: Any = json.loads(self.text)
        except (ValueError, RecursionError):
            raise DataError("task", "no JSON", "must be a JSON document", again) from None
        if (kind := kind_of_document(document)) not in (None, "a task"):
            raise DataError(
                "task.version", kind, "must be there in a task's file", "create it with `shuffledp task create`"
            )
        version = document.get("version") if isinstance(document, dict) else None
        known = version_of(document)
        if version != known or document.get("suite") != SUITE_NAME:
            raise other_version("task.version", version, f"{known}, with {SUITE_NAME}", again)
        if canonical(document) != self.text:
            raise DataError("task", "another spelling", "must be the text that was created", "copy the file unchanged")
        return dict(document)

    @cached_property
    def id(self) -> str:
        """SHA-256 of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @cached_property
    def plan(self) -> Plan:
        """What the task asks, and how it protects."""
        return plan_from_document(self.document.get("plan"), whole=True)

    @cached_property
    def routing(self) -> Routing:
        """What the shuffler may know."""
        return Routing.from_document(self.document.get("routing"))

    @property
    def gate(self) -> Gate | None:
        """Whose tokens lead in; None where whoever has the token for enrol may report."""
        return gate_of(self.routing, self.id)

    @property
    def categories(self) -> Categories | None:
        """The categories that people's values are of, by their own names; None where values are numbers."""
        return self.plan.domain.named

    @property
    def open_slots(self) -> int | None:
        """Seats are asked for in so many slots: in all of them."""
        return None

    def admits(self, position: int) -> bool:
        """Whether the user of this position may report: everybody may."""
        return True

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the operator asked for against advice."""
        return tuple(self.document.get("warnings", ()))


@dataclass(frozen=True)
class RoundTask:
    """One round of a campaign as clients and analyzer serve it: like a task, for people of some slots.

    Attributes:
        id: what it is served and sealed under.
        plan: what its people report by.
        routing: which batches there are.
        public_key: what its people encrypt to.
        hops: the keys of a cascade's shufflers, first hop first; none where there is one shuffler.
        slots: the first slot whose people may answer by a model, and the one after the last; None for all.
        expires: the last days of those of its keys that expire.
    """

    id: str
    plan: Plan
    routing: Routing
    public_key: PublicKey
    hops: tuple[PublicKey, ...] = ONE_SHUFFLER
    slots: tuple[int, int] | None = None
    expires: Expiries = field(default_factory=dict)

    @property
    def open_slots(self) -> int | None:
        """Seats are asked for in so many slots; None for all."""
        return None if self.slots is None else self.slots[1]

    @property
    def gate(self) -> Gate | None:
        """Whose tokens lead in to the campaign; None where whoever has the token for enrol may report."""
        return gate_of(self.routing, self.id)

    def slot_of(self, position: int) -> int:
        """The slot in which this position's user sits."""
        return int(self.routing.schedule.place_of(position)[0])

    def admits(self, position: int) -> bool:
        """Whether the user of this position may answer by the model that the slots are of."""
        return self.slots is None or self.slots[0] <= self.slot_of(position) < self.slots[1]


def version_of(document: Any) -> int:
    """The version that a document of a task or a campaign must have, by what is in it."""
    found = document if isinstance(document, Mapping) else {}
    routing = found.get("routing")
    issued = isinstance(routing, Mapping) and "issuer" in routing
    return version_with(found.get("hops") or (), VERSION, found.get("expires") or NEVER, issuer=issued)


def canonical(document: Any) -> str:
    """The one spelling of a document, whose SHA-256 is an id."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def _text(
    plan: Plan,
    routing: Routing,
    key: PublicKey,
    hops: tuple[PublicKey, ...],
    nonce: Any,
    written: Any,
    expires: Expiries = NEVER,
) -> str:
    """The one text of a task; the plan's document is the one that was written."""
    return canonical(
        {
            "version": version_with(hops, VERSION, expires, issuer=routing.issuer is not None),
            "nonce": nonce,
            "suite": SUITE_NAME,
            "public_key": key.text,
            "routing": routing.document(),
            "plan": written,
            "warnings": plan.warnings,
            **({"hops": hops_document(hops)} if hops else {}),
            **({"expires": dict(expires)} if expires else {}),
        }
    )
