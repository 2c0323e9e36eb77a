"""Vectors of campaigns: documents, signed models, what a model chooses, the vector that is sent, and whole reports."""

import dataclasses
from typing import Any

import numpy as np
from scipy.special import ndtri

from shuffledp.errors import ParameterError
from shuffledp.learn.bandits.arms.fixed_batches import FixedBatches
from shuffledp.learn.bandits.linear.concurrent import ConcurrentLinUCB
from shuffledp.learn.bandits.linear.posterior import standard_normals
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.learn.bandits.linear.shuffle_vec import ShuffleVecLinUCB
from shuffledp.learn.steps import joint_vectors
from shuffledp.privacy import Privacy
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.protocols.learner import DeviceStep, Learner
from shuffledp.service.campaign import Campaign
from shuffledp.service.crypto import SigningKey
from shuffledp.service.device.choosing import choose_among
from shuffledp.service.models import Model, OpenRound, checked_model, model_of, round_of_model, signed

from .given import GivenBits, given_bytes
from .making import KEYS, plain_report

SIGNING = SigningKey(given_bytes("signing key", 32))
_STRANGER = SigningKey(given_bytes("another signing key", 32))
_PRIVACY = Privacy(4, 1e-2)
_PROBABILITIES = (2.0**-54, 1e-9, 1e-4, 0.07, 0.5, 0.93, 1 - 2.0**-53)
_BYTES = 20_000


def _learners() -> dict[str, Learner[Any]]:
    """What is learned, by name; the bandits differ in their noise and in how they choose."""
    small = LinearSetting(users=2400, dimension=2)
    batches = ShuffleVecLinUCB.planned(small, _PRIVACY, batch=800)
    nonnegative = LinearSetting(users=5000, dimension=2, nonnegative=True)
    count = PROTOCOLS["binary-sum"].plan(users=2000, privacy=_PRIVACY, method="coins")
    return {
        "linucb": batches,
        "thompson": dataclasses.replace(batches, choice="posterior", model_age=1),
        "carried": ConcurrentLinUCB.planned(nonnegative, _PRIVACY, shufflers=3, noise="carried"),
        "arms": FixedBatches(arms=3, horizon=1000, privacy=_PRIVACY, batch=100, method="coins"),
        "statistic": count.learner(),
    }


def new_campaigns(kept: dict[str, str]) -> dict[str, str]:
    """Texts of campaigns; those not kept are planned, as another machine may plan other last bits."""
    if not set(_learners()) - set(kept):
        return kept
    hops = {"carried": [KEYS["hop 1"].public, KEYS["hop 2"].public]}
    texts = dict(kept)
    for name, learner in _learners().items():
        nonce = GivenBits(given_bytes(f"nonce of campaign {name}", 16))
        keys = (KEYS["analyzer"].public, SIGNING.public)
        asked = {"hops": hops.get(name, ()), "allow_unbounded": True}
        texts.setdefault(name, Campaign.create(learner, *keys, bits=nonce, **asked).text)
    return texts


def _campaigns(texts: dict[str, str]) -> dict[str, Campaign]:
    return {name: Campaign.from_text(text) for name, text in texts.items()}


_THETA = [0.25, -0.5]


def _learned(campaign: Campaign, number: int, first: int) -> Model:
    """A model after some releases: numbers that a learner could have found."""
    learner: Any = campaign.learner
    joint = dataclasses.asdict(learner.setting.joint)
    size = joint["dimension"]
    lower = np.tril(0.25 + np.arange(size * size).reshape(size, size) / 16)
    known: dict[str, Any] = {"theta": _THETA, "inverse": (lower @ lower.T).tolist(), "radius": 0.75}
    if learner.choice == "posterior":
        known = {"theta": _THETA, "root": lower.tolist()}
    step = DeviceStep("choose", {"model": known, "joint": joint})
    opened = OpenRound(0, 0, first, first + 1 + learner.model_age)
    return Model(campaign.id, number, opened, step, None)


def _models(campaign: Campaign) -> list[Model]:
    learner: Any = campaign.learner
    state = learner.start()
    first = model_of(campaign, 0, state, learner.ask(state))
    later = [_learned(campaign, 2, 1)] if hasattr(learner, "setting") else []
    return [first, *later]


def _refused(campaign: Campaign) -> list[dict[str, Any]]:
    """Models that a device must refuse, each with why."""
    good = _learned(campaign, 2, 1)
    assert good.step is not None and good.round is not None
    joint = {**good.step.parameters["joint"], "nonnegative": True}
    other = DeviceStep("choose", {**good.step.parameters, "joint": joint})
    longer = DeviceStep("choose", {**good.step.parameters, "clip": 1.0})
    found = [
        ("it is signed by somebody else", signed(good, _STRANGER), 0),
        ("it is of another campaign", signed(dataclasses.replace(good, campaign="0" * 64), SIGNING), 0),
        ("its number is below one that was seen", signed(good, SIGNING), 3),
        ("it promises what the campaign does not", signed(dataclasses.replace(good, step=other), SIGNING), 0),
        ("it asks for something more", signed(dataclasses.replace(good, step=longer), SIGNING), 0),
        ("it asks for another step", signed(dataclasses.replace(good, step=DeviceStep()), SIGNING), 0),
        ("it opens more slots", signed(dataclasses.replace(good, round=OpenRound(0, 0, 1, 3)), SIGNING), 0),
        (
            "it opens a round that there is not",
            signed(dataclasses.replace(good, round=OpenRound(1, 0, 1, 2)), SIGNING),
            0,
        ),
    ]
    for why, text, least in found:
        try:
            checked_model(text, campaign, least)
        except ParameterError:
            continue
        raise AssertionError(f"a model is taken although {why}")
    return [{"why": why, "least": least, **text.document()} for why, text, least in found]


_OFFERS = [[0.6, 0.8], [0.8, -0.6], [-1.0, 0.0]]
# Where there is a context, every product of its numbers with an offer's is a feature.
_CONTEXTS = {"carried": ([0.6, 0.8], [[1.0], [0.5], [0.25]])}


def _road(name: str, campaign: Campaign, model: Model) -> dict[str, Any]:
    """From a model to the messages of a report: what is drawn, chosen, made into a vector, and sent."""
    task = round_of_model(campaign, model)
    assert task is not None and task.slots is not None and model.step is not None
    bits = GivenBits(given_bytes(f"campaign {name} {model.number}", _BYTES))
    found: dict[str, Any] = {"campaign": name, "number": model.number}
    if model.step.name == "choose":
        context, offers = _CONTEXTS.get(name, (None, _OFFERS))
        choice = choose_among(model, context, offers, bits=bits)
        assert choice.features is not None
        value = joint_vectors(model.step.parameters, choice.features[np.newaxis], np.array([0.75]))
        found |= {"context": context, "offers": offers, "offer": choice.offer, "reward": 0.75}
        found |= {"vector": value[0].tolist(), "chosen_bytes": bits.used}
    else:
        value = np.array([1], dtype=np.uint8)
        found |= {"value": 1}
    position = int(task.routing.schedule.users_by(task.slots[0])) + 3
    batches = plain_report(task, position, value, bits)
    return {**found, "position": position, "bytes": bits.given[: bits.used].hex(), "batches": batches}


def campaign_vectors(texts: dict[str, str]) -> dict[str, Any]:
    """Every campaign with its models and roads, models that are refused, and normal numbers from given bytes."""
    listed, roads = [], []
    for name, campaign in _campaigns(texts).items():
        models = _models(campaign)
        shown = [signed(model, SIGNING).document() for model in models]
        listed.append({"name": name, "text": campaign.text, "id": campaign.id, "models": shown})
        roads += [_road(name, campaign, model) for model in models]
    given = given_bytes("normals", 800)
    normals = standard_normals((100,), bits=GivenBits(given)).tolist()
    return {
        "signing_key": SIGNING.public.text,
        "campaigns": listed,
        "refused": _refused(Campaign.from_text(texts["linucb"])),
        "roads": roads,
        "normals": {"bytes": given.hex(), "drawn": normals},
        "quantiles": [[probability, float(ndtri(probability))] for probability in _PROBABILITIES],
    }
