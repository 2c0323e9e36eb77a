"""A linear bandit that learns from devices of both kinds: JavaScript's and Python's choose alike and report alike."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.node import Node, node_in
from harness.nursery import Servers, servers
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.learn.bandits.linear.shuffle_vec import ShuffleVecLinUCB
from shuffledp.privacy import Privacy
from shuffledp.randomness import RandomBits
from shuffledp.service.campaign import Campaign
from shuffledp.service.crypto import PrivateKey, SigningKey
from shuffledp.service.device import Device
from shuffledp.service.models import Model, checked_model
from shuffledp.service.tokens import Tokens
from shuffledp.service.wire import SignedText

SECURE = RandomBits.secure()
BATCH, OFFERS, REWARD = 8, [[0.6, 0.8], [0.8, -0.6], [0.0, 0.5]], 0.75
_PATIENCE = 60.0


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Node:
    """Node, with the client and its dependency."""
    return node_in(tmp_path_factory.mktemp("javascript"))


def _after(running: Servers, campaign: Campaign, number: int) -> Model:
    """The model of this number, as soon as it is the newest."""
    deadline = time.monotonic() + _PATIENCE
    with running.client("analyzer", "read") as reader:
        while True:
            answer = reader.get(f"/v1/campaigns/{campaign.id}/models/newest").json()
            found = checked_model(SignedText.from_document(answer), campaign)
            if found.number >= number:
                return found
            assert time.monotonic() < deadline, f"model {found.number} is still the newest"
            time.sleep(0.05)


def test_a_bandit_learns_from_devices_of_both_kinds(node: Node, tmp_path: Path) -> None:
    """Slot by slot, half of the people by Node: nobody is lost, and sums are as near as rounding and noise let them."""
    # Epsilon is so large that noise is nearly none: what is learned is what was sent.
    policy = ShuffleVecLinUCB.planned(LinearSetting(users=2 * BATCH, dimension=2), Privacy(50, 0.1), batch=BATCH)
    key, signing, tokens = PrivateKey.generate(), SigningKey.generate(), Tokens.generate(bits=SECURE)
    campaign = Campaign.create(policy, key.public, signing.public, bits=SECURE, allow_unbounded=True)
    with servers(tmp_path, key, tokens, signing) as running:
        running.add_task(campaign)
        urls = {role: running.url(role) for role in ("shuffler", "analyzer")}
        token = tokens.secrets["enrol"]
        asked: dict[str, Any] = {"campaignId": campaign.id, "campaign": campaign.text, **urls, "token": token}
        asked |= {"people": BATCH // 2, "offers": OFFERS, "reward": REWARD}
        taken = []
        for number in (0, 1):
            by_node = json.loads(node.answer("devices.js", json.dumps(asked)))
            assert [each["status"] for each in by_node] == ["reported"] * (BATCH // 2)
            assert {each["model"] for each in by_node} == {number}
            for _ in range(BATCH - BATCH // 2):
                with Device(campaign, **urls, token=token) as device:
                    choice = device.choose(None, OFFERS)
                    assert device.reward(choice, REWARD).status == "reported"
                    # One model, one choice, in either language.
                    assert choice.offer == by_node[0]["offer"]
                    taken += [OFFERS[choice.offer]] * 2
            model = _after(running, campaign, number + 1)
            with running.client("analyzer", "read") as reader:
                assert reader.get(f"/v1/campaigns/{campaign.id}").json()["batches_void"] == 0
    assert model.estimate["users"] == 2 * BATCH
    matrix = np.array(taken).T @ np.array(taken)
    shift = float(policy.rule.shift[2])
    expected = np.linalg.solve(matrix + shift * np.eye(2), REWARD * np.array(taken).sum(axis=0))
    assert np.abs(np.array(model.estimate["theta"]) - expected).max() < 0.1
