"""The JavaScript client in a real browser: the page that counts clicks, IndexedDB, and origins that are named."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.nursery import servers
from harness.site import Site, site_in
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.learn.bandits.linear.shuffle_vec import ShuffleVecLinUCB
from shuffledp.privacy import Privacy
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.randomness import RandomBits
from shuffledp.service.campaign import Campaign
from shuffledp.service.client import Client
from shuffledp.service.crypto import PrivateKey, SigningKey
from shuffledp.service.models import model_of, signed
from shuffledp.service.task import Task
from shuffledp.service.tokens import Tokens

SECURE = RandomBits.secure()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A site on this machine, with the client and the example's page."""
    with site_in(tmp_path / "site") as served:
        yield served


def _campaign(site: Site, key: PrivateKey, signing: SigningKey) -> Campaign:
    """A bandit's campaign, whose first model the site shows as a cache would."""
    policy = ShuffleVecLinUCB.planned(LinearSetting(users=24, dimension=2), Privacy(50, 0.1), batch=8)
    campaign = Campaign.create(policy, key.public, signing.public, bits=SECURE, allow_unbounded=True)
    campaign.save(site.folder / "campaign.json")
    state = policy.start()
    newest = site.folder / "v1" / "campaigns" / campaign.id / "models" / "newest"
    newest.parent.mkdir(parents=True)
    model = signed(model_of(campaign, 0, state, policy.ask(state)), signing)
    newest.write_text(json.dumps(model.document()), "utf-8")
    return campaign


def test_a_page_counts_clicks_and_loses_none(site: Site, tmp_path: Path) -> None:
    page = site.folder / "examples" / "browser"
    plan = PROTOCOLS["binary-sum"].plan(users=6, privacy=Privacy(4, 1e-2), method="poisson-bits")
    key, tokens = PrivateKey.generate(), Tokens.generate(bits=SECURE)
    task = Task.create(plan, key.public, bits=SECURE)
    task.save(page / "task.json")
    signing = SigningKey.generate()
    campaign = _campaign(site, key, signing)
    with servers(tmp_path, key, tokens, signing, origins=[site.origin]) as running:
        running.add_task(task)
        running.add_task(campaign)
        urls = {role: running.url(role) for role in ("shuffler", "analyzer")}
        settings = {"taskId": task.id, "campaignId": campaign.id, "token": tokens.secrets["enrol"], **urls}
        (page / "settings.json").write_text(json.dumps(settings))
        found = site.visited("page.html", tmp_path / "profile")
        with running.client("shuffler", "admin") as reader:
            counts = reader.get(f"/v1/tasks/{task.id}").json()["counts"]
        with Client(task, urls["shuffler"], tokens.secrets["enrol"]) as client:
            assert client.report_many([0, 1, 0, 1]).new == 4
    assert found.pop("first").startswith("Thank you."), found
    assert found.pop("again").startswith("You have answered before"), found
    # A token behind the #: one that was cut is said so, and a whole one is for tasks that name an issuer.
    assert found.pop("cut").startswith("The token behind the # is not whole"), found
    assert found.pop("odd") == "token must be one word of ASCII, the token for enrol.", found
    assert found == {
        "broken": "unreachable",
        "flushed": {"reports": 1, "new": 1, "refused": 0},
        "known": {"reports": 0, "new": 0, "known": True},
        "same": True,
        "outcomes": ["reported", "took part"],
        "unnamed": "kept from it",
    }
    # Two reports of the page, and no seat that was taken in vain.
    assert (counts["reports"], counts["seats_taken"], counts["leases"]) == (2, 2, 0)
