"""A task: one plan, the key that its messages are encrypted to, and what a shuffler may know. Immutable.

The SHA-256 of its document is its id and is bound into every ciphertext, so that client, shuffler and analyzer
cannot work on different documents without noticing.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.continual.plan import CounterPlan
from shuffledp.errors import DataError, ParameterError, RandomnessError
from shuffledp.files import whole_file
from shuffledp.messages import Payloads, Reports
from shuffledp.protocols.catalogue import plan_from_document
from shuffledp.protocols.domains.domain import Categories as NamedCategories
from shuffledp.protocols.domains.summed import OneHot
from shuffledp.protocols.histogram.base import HistogramPlan
from shuffledp.protocols.plan import Plan
from shuffledp.protocols.ranges.base import RangesPlan
from shuffledp.protocols.sums.batches import CoinBatch
from shuffledp.randomness import RandomBits
from shuffledp.sampling.permutation import uniform_permutation
from shuffledp.service.crypto import SUITE_NAME, PublicKey, binding
from shuffledp.service.routing import Routing, SeatInBatch
from shuffledp.service.wire import VERSION, is_id, new_id, pack_messages

AnyPlan = Plan | CounterPlan


@dataclass(frozen=True)
class Task:
    """An immutable document; everything else follows from it.

    >>> from shuffledp.privacy import Privacy
    >>> from shuffledp.service.crypto import PrivateKey
    >>> plan = CounterPlan.plan(users=2000, shufflers=2, privacy=Privacy(1, 1e-6), noise="coins")
    >>> task = Task.create(plan, PrivateKey.generate().public, bits=RandomBits.secure())
    >>> task.routing.users, task.warnings, Task.from_text(task.text) == task
    (2000, (), True)
    """

    text: str

    @classmethod
    def create(cls, plan: AnyPlan, key: PublicKey, *, bits: RandomBits, allow_unbounded: bool = False) -> Self:
        """A task for a plan; methods in which one lying client can void a batch only if they are asked for."""
        warnings = _warnings(plan)
        if warnings and not allow_unbounded:
            raise ParameterError(
                "method",
                plan.method,
                f"must not let a few spoil it for everybody ({' '.join(warnings).rstrip('.')})",
                "choose bits, or coins with an honest fraction of 1, or allow it (--allow-unbounded)",
            )
        return cls(_text(plan, key, new_id(bits=bits)))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The task that this text is, checked."""
        task = cls(text)
        # Reading is checking: each of these refuses what does not fit.
        if task.routing != routing_of(task.plan):
            raise DataError("task.routing", "another", "must be the plan's", "create the task again")
        expected = _text(task.plan, task.public_key, task.document.get("nonce"))
        if not is_id(task.document.get("nonce")) or text != expected:
            raise DataError("task", "other fields", "must be what was created, warnings and all", "create it again")
        return task

    @classmethod
    def load(cls, path: Path) -> Self:
        """A task from its file."""
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
        version = document.get("version") if isinstance(document, dict) else None
        if version != VERSION or document.get("suite") != SUITE_NAME:
            raise DataError("task.version", version, f"must be {VERSION}, with {SUITE_NAME}", again)
        if json.dumps(document, sort_keys=True, separators=(",", ":")) != self.text:
            raise DataError("task", "another spelling", "must be the text that was created", "copy the file unchanged")
        return dict(document)

    @cached_property
    def id(self) -> str:
        """SHA-256 of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @cached_property
    def plan(self) -> AnyPlan:
        """What the task asks, and how it protects."""
        document = self.document.get("plan")
        is_counter = isinstance(document, Mapping) and document.get("protocol") == CounterPlan.protocol
        return CounterPlan.from_document(document) if is_counter else plan_from_document(document)

    @cached_property
    def routing(self) -> Routing:
        """What the shuffler may know."""
        return Routing.from_document(self.document.get("routing"))

    @property
    def public_key(self) -> PublicKey:
        """What clients encrypt to."""
        return PublicKey.from_text(str(self.document.get("public_key")))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the operator asked for against advice."""
        return tuple(self.document.get("warnings", ()))

    # --- the client's side -------------------------------------------------------------------

    def report(self, value: Any, batches: tuple[SeatInBatch, ...], *, bits: RandomBits) -> bytes:
        """One user's value, randomized for exactly these batches, encrypted message by message."""
        if not bits.is_secure:
            raise RandomnessError("A client draws its noise from secure bits only: seeded ones protect nobody.")
        sealed: list[bytes] = []
        for batch, (payloads, labels) in zip(batches, self._randomized(value, batches, bits), strict=True):
            packed = pack_messages(payloads, labels, batch.messages, bits=bits)
            # In random order: a message's place must not say whether it is a value, a coin or a filler.
            packed = [packed[place] for place in uniform_permutation(len(packed), bits=bits)]
            sealed += self.public_key.seal(packed, binding(self.id, batch.batch_id))
        return b"".join(sealed)

    def _randomized(
        self, value: Any, batches: tuple[SeatInBatch, ...], bits: RandomBits
    ) -> list[tuple[Payloads, Payloads | None]]:
        values = self.encode(np.asarray(value)[np.newaxis])
        if isinstance(self.plan, CounterPlan):
            checked = self.plan.domain.check_values(values)
            # Rounded once: all of a user's batches get the same steps.
            steps = self.plan.domain.to_steps(checked, bits=bits)
            reports = [self.plan.mechanism(batch.size).randomize(steps, batch.seat, bits=bits) for batch in batches]
        else:
            reports = [self.plan.mechanism(batch.size).randomize(values, batch.seat, bits=bits) for batch in batches]
        return [_only(report) for report in reports]

    def encode(self, values: ArrayLike) -> NDArray[Any]:
        """People's own values as the plan takes them, on their own device: names and values of an axis become codes."""
        plan = self.plan
        if isinstance(plan, HistogramPlan):
            return plan.categories.encode(values)
        if isinstance(plan, RangesPlan):
            return plan.encode(values)
        if isinstance(plan, CounterPlan) and isinstance(plan.domain, OneHot):
            return plan.domain.encode(values)
        return np.asarray(values)

    @property
    def categories(self) -> NamedCategories | None:
        """What the numbers of the estimate are called, if that is known."""
        plan = self.plan
        if isinstance(plan, HistogramPlan):
            return plan.categories
        return plan.domain.named if isinstance(plan, CounterPlan) and isinstance(plan.domain, OneHot) else None

    def check_value(self, value: Any) -> None:
        """Refuse a value outside the plan's domain, before anything is sent."""
        values = self.encode(np.asarray(value)[np.newaxis])
        if isinstance(self.plan, CounterPlan):
            self.plan.domain.check_values(values)
        else:
            self.plan.check_values(values)


def _text(plan: AnyPlan, key: PublicKey, nonce: Any) -> str:
    """The one text of a task."""
    document = {
        "version": VERSION,
        "nonce": nonce,
        "suite": SUITE_NAME,
        "public_key": key.text,
        "routing": routing_of(plan).document(),
        "plan": plan.document(),
        "warnings": _warnings(plan),
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def _only(reports: Reports) -> tuple[Payloads, Payloads | None]:
    return reports.payloads, reports.labels


def routing_of(plan: AnyPlan) -> Routing:
    """What a shuffler may know of this plan."""
    if not isinstance(plan, CounterPlan):
        messages = {plan.users: plan.messages_per_user_max}
        return Routing(
            users=plan.users, budget=1, shufflers=1, slot_users=plan.users, every_slot=False, messages=messages
        )
    routing = _CounterRouting(plan)
    return Routing(
        users=plan.users,
        budget=plan.budget,
        shufflers=plan.shufflers_used,
        slot_users=plan.slot_users,
        every_slot=routing.every_slot,
        messages=routing.messages,
    )


@dataclass(frozen=True)
class _CounterRouting:
    plan: CounterPlan

    @property
    def every_slot(self) -> bool:
        return self.plan.estimator == "combined"

    @property
    def messages(self) -> dict[int, int]:
        sizes = {size for level in self.plan.batch_sizes.values() for size in level}
        return {size: self.plan.mechanism(size).messages_max for size in sizes}


def _warnings(plan: AnyPlan) -> list[str]:
    """In words: what one client that lies can do, where that is not bounded."""
    if not isinstance(plan, CounterPlan):
        is_unbounded = plan.influence is None if isinstance(plan, HistogramPlan) else plan.method == "shares"
        return [f"One client that lies {plan.lying_client}."] if is_unbounded else []
    if not isinstance(plan.mechanism(plan.slot_users), CoinBatch):
        return [f"One client that lies {plan.lying_client}."]
    # Coins are dealt out by seat: whoever may choose seats may hold all of them.
    if plan.honest_fraction < 1:
        return [
            f"The plan counts on {plan.honest_fraction:.0%} of every batch's coins, not of its users: in a large batch "
            "few seats hold coins, and users who choose their seats may hold them all."
        ]
    return []
