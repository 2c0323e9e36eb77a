"""What an analyzer publishes of a campaign after every release: numbered, signed, and a function of released batches.

A model says which round is open and which of its slots may answer by it, what a device computes, and what is known by
now. It is public: any cache may keep it, and whoever has the campaign's document can check it.
"""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from shuffledp.errors import DataError
from shuffledp.estimates import answer_document
from shuffledp.files import other_version
from shuffledp.protocols.learner import Cohort, DeviceStep, Round
from shuffledp.service.campaign import Campaign
from shuffledp.service.crypto import SigningKey
from shuffledp.service.task import RoundTask
from shuffledp.service.wire import SignedText

VERSION = 1
# Nothing else that the key signs begins like this.
_CONTEXT = b"shuffledp model v1\n"
_FETCH = "fetch it from the campaign's analyzer"


@dataclass(frozen=True, slots=True)
class OpenRound:
    """The round that waits for people: its number, its seating, and the slots whose people may answer by a model.

    `closes` is when it is dropped if it is not full by then, in seconds since the epoch; None where it waits.
    """

    number: int
    seating: int
    first_slot: int
    end_slot: int
    closes: float | None = None


@dataclass(frozen=True, slots=True)
class Model:
    """What devices are shown.

    Attributes:
        campaign: the campaign's id.
        number: how many releases it is made of, from 0; no two models of a campaign have one number.
        round: where devices report; None where nobody is asked any more.
        step: what a device computes; None where nobody computes anything any more.
        estimate: what is known by now, as JSON; None where nothing is.
    """

    campaign: str
    number: int
    round: OpenRound | None
    step: DeviceStep | None
    estimate: Any

    def document(self) -> dict[str, Any]:
        """The model as JSON."""
        return {
            "version": VERSION,
            "campaign": self.campaign,
            "number": self.number,
            "round": None if self.round is None else answer_document(self.round),
            "step": None if self.step is None else self.step.document(),
            "estimate": self.estimate,
        }

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """The model that a JSON document describes.

        Raises:
            DataError: it describes none of this version.
        """
        if isinstance(document, Mapping) and document.get("version", VERSION) != VERSION:
            raise other_version("model.version", document["version"], VERSION)
        try:
            place = document["round"]
            opened = None if place is None else OpenRound(**place)
            whole = [document["version"], document["number"]]
            if opened is not None:
                whole += [opened.number, opened.seating, opened.first_slot, opened.end_slot]
            if not all(type(each) is int and each >= 0 for each in whole) or type(document["campaign"]) is not str:
                raise ValueError("numbers that are none")
            step = None if document["step"] is None else DeviceStep.from_document(document["step"])
            return cls(document["campaign"], document["number"], opened, step, document["estimate"])
        except (KeyError, TypeError, ValueError) as broken:
            raise DataError("model", repr(broken)[:80], f"must be a model of version {VERSION}", _FETCH) from None


def model_of(
    campaign: Campaign, number: int, state: Any, cohort: Cohort | None, *, closes: float | None = None
) -> Model:
    """The model after so many releases: a function of the learner's state, and of nothing else.

    Args:
        campaign: whose learner it is.
        number: how many releases the state is made of.
        state: where the learner stands.
        cohort: what it asks for there; None where nobody is asked any more.
        closes: when the round is dropped, if it is.

    Returns:
        The model, not yet signed.

    >>> from shuffledp import Privacy, RandomBits
    >>> from shuffledp.learn.bandits.arms.fixed_batches import FixedBatches
    >>> from shuffledp.service.crypto import PrivateKey
    >>> policy = FixedBatches(arms=2, horizon=1000, privacy=Privacy(1, 1e-6), batch=100, method="coins")
    >>> key = SigningKey.generate()
    >>> campaign = Campaign.create(policy, PrivateKey.generate().public, key.public, bits=RandomBits.secure())
    >>> state = policy.start()
    >>> model = model_of(campaign, 0, state, policy.ask(state))
    >>> model.round.end_slot, model.step.name, model.step.parameters
    (1, 'pull', {'arm': 0})
    >>> checked_model(signed(model, key), campaign).step == model.step
    True
    """
    learner = campaign.learner
    place = None if cohort is None else learner.round_of(state, cohort)
    opened = None
    # The last people of a horizon may fill no batch: what they sent would lie at the shuffler for ever.
    if place is not None and cohort is not None and _can_fill(campaign, place, cohort):
        schedule = campaign.routing.layouts[place.seating].schedule
        first = int(schedule.place_of(place.first)[0])
        opened = OpenRound(place.number, place.seating, first, first + 1 + learner.model_age, closes)
    step = learner.last_step(state) if cohort is None else cohort.step
    return Model(campaign.id, number, opened, step, learner.known(state))


def _can_fill(campaign: Campaign, place: Round, cohort: Cohort) -> bool:
    """Whether a batch closes when all of the cohort have come, and so many come."""
    users = campaign.routing.layouts[place.seating].users
    return bool(cohort.closing(cohort.users)) and place.first + cohort.users <= users


def signed(model: Model, key: SigningKey) -> SignedText:
    """A model as it is stored, cached and sent.

    Args:
        model: what `model_of` returns.
        key: the analyzer's.

    Returns:
        Its text and the signature.
    """
    text = json.dumps(model.document(), sort_keys=True, separators=(",", ":"))
    return SignedText(text, base64.urlsafe_b64encode(key.sign(_CONTEXT + text.encode())).decode("ascii"))


def unchecked_model(found: SignedText) -> Model:
    """What a text says, whoever signed it.

    Raises:
        DataError: it is no model.
    """
    try:
        document = json.loads(found.text)
    except (ValueError, RecursionError):
        raise DataError("model", "no JSON", "must be a model", _FETCH) from None
    return Model.from_document(document)


def checked_model(found: SignedText, campaign: Campaign, least: int = 0) -> Model:
    """What a text says, if the campaign's analyzer signed it.

    Args:
        found: what was fetched, from wherever.
        campaign: whose model it must be.
        least: the smallest number that it may have: no device goes back to an older model than it has seen.

    Returns:
        The model, which a device may follow.

    Raises:
        DataError: it is signed by somebody else, of another campaign, older than one that was seen, names a round or
            slots that the campaign does not have, or asks for what its learner never asks for.
    """
    try:
        signature = base64.b64decode(found.signature, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        signature = b""
    if not campaign.signing_key.has_signed(_CONTEXT + found.text.encode(), signature):
        raise DataError("model", "a wrong signature", "must be signed by the campaign's analyzer", _FETCH)
    model = unchecked_model(found)
    if model.campaign != campaign.id:
        raise DataError("model.campaign", model.campaign[:12], f"must be {campaign.id[:12]}", _FETCH)
    if model.number < least:
        words = f"must be at least {least}, which this device has seen"
        raise DataError("model.number", model.number, words, "a cache keeps it too long: fetch it again")
    task = round_of_model(campaign, model)
    if task is not None and task.slots is not None:
        first, end = task.slots
        if not first < task.routing.schedule.slots or end - first != 1 + campaign.learner.model_age:
            raise DataError("model.round", [first, end], "must be slots of the campaign's", _FETCH)
    if model.round is not None and (
        model.step is None or not campaign.learner.may_ask(model.step, model.round.seating)
    ):
        name = None if model.step is None else model.step.name[:40]
        raise DataError("model.step", name, "must be one that the campaign's learner may ask for", _FETCH)
    return model


def round_of_model(campaign: Campaign, model: Model) -> RoundTask | None:
    """The round that a model opens, for people of its slots; None where nobody is asked.

    Raises:
        DataError: the campaign has no such round.
    """
    place = model.round
    if place is None:
        return None
    task = campaign.round_task(place.number, place.seating)
    if task is None:
        raise DataError("model.round", place.number, "must be one of the campaign's", _FETCH)
    return replace(task, slots=(place.first_slot, place.end_slot))
