"""A campaign: a learner on people's devices, the keys of its analyzer, and what a shuffler may know. Immutable.

The SHA-256 of its document is its id. Each of its rounds is served like a task, under the campaign's id, the round's
number and the place of its seating; that id is bound into every ciphertext, so that what was sent in one round opens in
no other.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from shuffledp.errors import DataError, ParameterError
from shuffledp.files import kind_of_document, other_version, whole_file
from shuffledp.learn.live.documents import learner_document, learner_from
from shuffledp.learn.live.rows import DeviceRows
from shuffledp.protocols.catalogue import plan_from_document
from shuffledp.protocols.learner import DeviceStep, Learner, Seating
from shuffledp.protocols.states import is_real
from shuffledp.randomness import RandomBits
from shuffledp.service.admission.private_tokens import Issuer
from shuffledp.service.crypto import SUITE_NAME, PublicKey, VerifyingKey
from shuffledp.service.expiry import NEVER, Expiries, check_not_expired
from shuffledp.service.hops import version_with
from shuffledp.service.onion import ONE_SHUFFLER, check_hops, hops_document
from shuffledp.service.recipients import NamesRecipients
from shuffledp.service.rounds import RoundsRouting, round_id, split_round
from shuffledp.service.routing import Routing
from shuffledp.service.task import RoundTask, canonical, version_of
from shuffledp.service.wire import VERSION, is_id, new_id

_AGAIN = "create it again with `shuffledp campaign create`"
MOST_SECONDS = 10 * 366 * 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What becomes of a round that does not fill: it waits, or it is dropped after so many seconds. Never released.

    >>> Waiting.from_document({"seconds": 60.0}).seconds
    60.0
    """

    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.seconds is not None and (not is_real(self.seconds) or not 0 < self.seconds <= MOST_SECONDS):
            problem = f"must be seconds in (0, {MOST_SECONDS:g}]"
            raise ParameterError("drop_after", self.seconds, problem, "leave it out to wait for as long as it takes")

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """What a JSON document says."""
        if not isinstance(document, Mapping) or set(document) != {"seconds"}:
            raise DataError("campaign.waiting", type(document).__name__, "must say seconds, or null", _AGAIN)
        return cls(seconds=document["seconds"])


@dataclass(frozen=True)
class Campaign(NamesRecipients):
    """An immutable document; everything else follows from it.

    Attributes:
        text: the document, canonical JSON: another spelling of the same document is another campaign.

    >>> from shuffledp import Privacy
    >>> from shuffledp.learn.bandits.arms.fixed_batches import FixedBatches
    >>> from shuffledp.service.crypto import PrivateKey, SigningKey
    >>> policy = FixedBatches(arms=2, horizon=1000, privacy=Privacy(1, 1e-6), batch=100, method="coins")
    >>> keys = PrivateKey.generate().public, SigningKey.generate().public
    >>> campaign = Campaign.create(policy, *keys, bits=RandomBits.secure())
    >>> Campaign.from_text(campaign.text) == campaign, campaign.round_task(3, 0).routing.users
    (True, 100)
    """

    text: str

    @classmethod
    def create(
        cls,
        learner: Learner[Any],
        key: PublicKey,
        signing_key: VerifyingKey,
        *,
        bits: RandomBits,
        rows: DeviceRows | None = None,
        drop_after: float | None = None,
        allow_unbounded: bool = False,
        hops: Sequence[PublicKey] = ONE_SHUFFLER,
        expires: Expiries = NEVER,
        issuer: Issuer | None = None,
    ) -> Self:
        """A new campaign for a learner.

        Args:
            learner: any that can run live.
            key: the analyzer's, which devices encrypt to.
            signing_key: what devices check the analyzer's models with.
            bits: where the nonce comes from: two campaigns of one learner have two ids.
            rows: what devices make of their own rows, where they send gradients.
            drop_after: seconds after which a round that has not filled is dropped; None waits.
            allow_unbounded: take plans with warnings, such as that one device that lies can void a batch.
            hops: the keys of a cascade's shufflers, first hop first; none for one shuffler.
            expires: the last days of those keys that expire.
            issuer: whose tokens seats are given for, one a visit, with a key that no other campaign has; None for
                whoever has the token for enrol, which is for trials.

        Raises:
            ParameterError: the learner cannot run live, cannot go on without a round that is to be dropped, can be
                spoiled where that was not allowed, or has a batch that is too large to travel; or a key has expired.
        """
        if drop_after is not None and not learner.takes_void:
            problem = "must be left out: a running sum cannot go on without a batch"
            raise ParameterError("drop_after", drop_after, problem, "leave it out, and rounds wait")
        document = learner_document(learner)
        spoiled = next((seating.plan for seating in learner.seatings if seating.plan.can_be_spoiled), None)
        if spoiled is not None and not allow_unbounded:
            raise ParameterError(
                "method", spoiled.method, spoiled.spoiled, "choose another, or allow it (--allow-unbounded)"
            )
        if rows is not None:
            rows.check_step(_first_step(learner))
        checked = check_hops(hops, key)
        check_not_expired(expires)
        routing = _routing(learner, drop_after is not None, len(checked), issuer)
        seatings = [{**_counted(seating), "plan": seating.plan.document()} for seating in learner.seatings]
        warnings = list(dict.fromkeys(words for seating in learner.seatings for words in seating.plan.warnings))
        return cls(
            canonical(
                {
                    "version": version_with(checked, VERSION, expires, issuer=issuer is not None),
                    "nonce": new_id(bits=bits),
                    "suite": SUITE_NAME,
                    "public_key": key.text,
                    "signing_key": signing_key.text,
                    "routing": routing.document(),
                    "seatings": seatings,
                    "learner": document,
                    "rows": None if rows is None else rows.document(),
                    "waiting": Waiting(seconds=drop_after).document(),
                    "warnings": warnings,
                    **({"hops": hops_document(checked)} if checked else {}),
                    **({"expires": dict(expires)} if expires else {}),
                }
            )
        )

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The campaign that this text is.

        Args:
            text: what `create` made, unchanged.

        Raises:
            ParameterError: a field is another than `create` would have written for the learner and its plans.
        """
        campaign = cls(text)
        # Reading is checking: each of these refuses what does not fit.
        learner, document = campaign.learner, campaign.document
        if [_counted(seating) for seating in learner.seatings] != [_counted(each) for each in campaign.seatings]:
            raise DataError("campaign.seatings", "others", "must be the learner's", _AGAIN)
        hops = check_hops(campaign.hops, campaign.public_key)
        own = _routing(learner, campaign.waiting.seconds is not None, len(hops), campaign.routing.issuer)
        if campaign.routing != own or document["routing"] != own.document():
            raise DataError("campaign.routing", "another", "must be the learner's", _AGAIN)
        warnings = list(dict.fromkeys(words for seating in learner.seatings for words in seating.plan.warnings))
        fields = _FIELDS | ({"hops"} if hops else set()) | ({"expires"} if campaign.expires else set())
        if not is_id(document.get("nonce")) or document.get("warnings") != warnings or set(document) != fields:
            raise DataError("campaign", "other fields", "must be what was created, warnings and all", _AGAIN)
        if campaign.waiting.seconds is not None and not learner.takes_void:
            raise DataError("campaign.waiting", "a limit", "must be null: this learner needs every batch", _AGAIN)
        if campaign.rows is not None:
            campaign.rows.check_step(_first_step(learner))
            if campaign.rows.document() != document["rows"]:
                raise DataError("campaign.rows", "other fields", "must be what was declared", _AGAIN)
        _ = campaign.public_key, campaign.signing_key
        return campaign

    @classmethod
    def load(cls, path: Path) -> Self:
        """A campaign from its file.

        Raises:
            ParameterError: it cannot be read, or is no campaign.
        """
        try:
            return cls.from_text(path.read_text("utf-8").strip())
        except OSError:
            raise ParameterError("campaign", path, "must be a file that can be read", "check the path") from None
        except UnicodeDecodeError:
            raise DataError("campaign", path, "must be a campaign's file", _AGAIN) from None

    def save(self, path: Path) -> None:
        """Write the campaign's file, whole or not at all."""
        with whole_file(path) as file:
            file.write(self.text.encode() + b"\n")

    @cached_property
    def document(self) -> Mapping[str, Any]:
        """The parsed document."""
        try:
            document: Any = json.loads(self.text)
        except (ValueError, RecursionError):
            raise DataError("campaign", "no JSON", "must be a JSON document", _AGAIN) from None
        if kind_of_document(document) != "a campaign":
            found = kind_of_document(document) or "another document"
            raise DataError("campaign", found, "must be a campaign", _AGAIN)
        found, known = document.get("version"), version_of(document)
        if found != known or document.get("suite") != SUITE_NAME:
            raise other_version("campaign.version", found, f"{known}, with {SUITE_NAME}", _AGAIN)
        if canonical(document) != self.text:
            raise DataError("campaign", "another spelling", "must be the text that was created", "copy it unchanged")
        return dict(document)

    @cached_property
    def id(self) -> str:
        """SHA-256 of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @cached_property
    def seatings(self) -> tuple[Seating, ...]:
        """What rounds run, and how often one user may take part."""
        listed = self.document["seatings"]
        try:
            found = [(dict(each), plan_from_document(each["plan"], whole=True)) for each in listed]
            return tuple(Seating(**{**each, "plan": plan}) for each, plan in found)
        except (KeyError, TypeError, ValueError, AttributeError) as broken:
            if isinstance(broken, ParameterError):
                raise
            raise DataError("campaign.seatings", "something else", "must have plans and limits", _AGAIN) from None

    @cached_property
    def learner(self) -> Learner[Any]:
        """What learns; it is planned nowhere else."""
        return learner_from(self.document.get("learner"), [seating.plan for seating in self.seatings])

    @cached_property
    def routing(self) -> RoundsRouting:
        """What the shuffler may know."""
        return RoundsRouting.from_document(self.document.get("routing"))

    @cached_property
    def rows(self) -> DeviceRows | None:
        """What devices make of their own rows, where they send gradients."""
        document = self.document.get("rows")
        return None if document is None else DeviceRows.from_document(document)

    @cached_property
    def waiting(self) -> Waiting:
        """What becomes of a round that does not fill."""
        return Waiting.from_document(self.document.get("waiting"))

    @property
    def signing_key(self) -> VerifyingKey:
        """What devices check models with."""
        return VerifyingKey.from_text(str(self.document.get("signing_key")))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the operator asked for against advice."""
        return tuple(self.document.get("warnings", ()))

    def round_task(self, number: int, seating: int) -> RoundTask | None:
        """A round, served like a task; None where the campaign has no such round."""
        if self.routing.of_round(number, seating) is None:
            return None
        plan = self.seatings[seating].plan
        routing = self.routing.layouts[seating]
        name = round_id(self.id, number, seating)
        return RoundTask(name, plan, routing, self.public_key, self.hops, expires=self.expires)

    def round_of_id(self, task_id: str) -> RoundTask | None:
        """The round that is served under this id; None where it is none of the campaign's."""
        parts = split_round(task_id)
        return self.round_task(*parts[1:]) if parts is not None and parts[0] == self.id else None


_FIELDS = {
    *("version", "nonce", "suite", "public_key", "signing_key", "routing", "seatings", "learner", "rows", "waiting"),
    "warnings",
}


def _routing(learner: Learner[Any], drops: bool, layers: int, issuer: Issuer | None) -> RoundsRouting:
    layouts = tuple(Routing.of(seating.plan.layout, layers, issuer) for seating in learner.seatings)
    return RoundsRouting(learner.most_rounds, layouts, drops)


def _first_step(learner: Learner[Any]) -> DeviceStep | None:
    cohort = learner.ask(learner.start())
    return None if cohort is None else cohort.step


def _counted(seating: Seating) -> dict[str, int]:
    return {"visits": seating.visits, "group": seating.group, "in_all": seating.in_all}
