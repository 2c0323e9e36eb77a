"""Two campaigns on real servers that are killed with SIGKILL again and again: no model is lost, and none is twice."""

import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from harness.campaigns import again_from_totals
from harness.nursery import ROLES, Servers, kill_and_restart, servers
from shuffledp.continual.plan import CounterPlan
from shuffledp.learn.bandits.arms.fixed_batches import FixedBatches
from shuffledp.privacy import Privacy
from shuffledp.randomness import RandomBits
from shuffledp.service.campaign import Campaign
from shuffledp.service.crypto import PrivateKey, SigningKey
from shuffledp.service.device import Device
from shuffledp.service.models import checked_model
from shuffledp.service.store import open_analyzer_store, open_shuffler_store
from shuffledp.service.tokens import Tokens
from shuffledp.service.wire import SignedText

KILLS = 20
# Seconds after which nobody tries any longer.
LONGEST = 55.0


@dataclass
class People:
    """Devices of one campaign, one after another, that insist."""

    campaign: Campaign
    running: Servers
    busy: threading.Event
    """Set whenever somebody begins."""
    outcomes: Counter[str] = field(default_factory=Counter)
    shown: list[SignedText] = field(default_factory=list)
    """Every model that a device was shown."""
    http: httpx.Client = field(default_factory=httpx.Client)
    models_http: httpx.Client = field(default_factory=httpx.Client)
    deadline: float = field(default_factory=lambda: time.monotonic() + LONGEST)

    def run(self, until: threading.Event) -> None:
        """Take part until nobody is asked any more, or there were enough."""
        urls = {role: self.running.url(role) for role in ROLES}
        while not until.is_set() and time.monotonic() < self.deadline:
            self.busy.set()
            # A client of httpx takes longer to make than all the rest: they share two.
            http = {"http": self.http, "models_http": self.models_http}
            with Device(self.campaign, **urls, token=self.running.tokens.secrets["enrol"], **http) as device:
                status = self.act(device)
                assert device._newest is not None
                self.shown.append(device._newest[0])
            self.outcomes[status] += 1
            if status == "not asked":
                return
            if status == "late":
                # All seats of this model are taken: the next comes soon.
                time.sleep(0.02)

    def act(self, device: Device) -> str:
        if self.campaign.document["learner"]["kind"] == "arms":
            choice = device.choose()
            return device.reward(choice, 0.5).status
        return device.report(1).status


def test_killed_servers_lose_no_model_and_publish_none_twice(tmp_path: Path) -> None:
    bits, choice = RandomBits.secure(), random.Random(19)
    key, signing, tokens = PrivateKey.generate(), SigningKey.generate(), Tokens.generate(bits=bits)
    learners: list[Any] = [
        FixedBatches(arms=2, horizon=100_000, privacy=Privacy(4, 1e-2), batch=5, method="coins", failure=1e-9),
        CounterPlan.plan(users=600, shufflers=4, privacy=Privacy(8, 0.1), noise="coins").learner(),
    ]
    campaigns = [Campaign.create(learner, key.public, signing.public, bits=bits) for learner in learners]
    enough, busy = threading.Event(), threading.Event()
    with servers(tmp_path, key, tokens, signing, lease_seconds=1.0) as running, ThreadPoolExecutor(4) as threads:
        for campaign in campaigns:
            running.add_task(campaign)
        people = [People(campaign, running, busy) for campaign in campaigns * 2]
        coming = [threads.submit(each.run, enough) for each in people]
        seen = 0

        def a_model_came() -> None:
            """Or a moment passed: kills in a row happen, too."""
            nonlocal seen
            until = time.monotonic() + choice.choice((0.0, 1.5, 1.5))
            while time.monotonic() < until and sum(models_shown(people, each) for each in campaigns) == seen:
                time.sleep(0.02)
            seen = sum(models_shown(people, each) for each in campaigns)

        killed = kill_and_restart(running, busy, choice, KILLS, a_model_came)
        before = {campaign.id: models_shown(people, campaign) for campaign in campaigns}
        # It goes on after the last kill.
        deadline = time.monotonic() + 20
        while any(models_shown(people, each) < before[each.id] + 2 for each in campaigns):
            assert time.monotonic() < deadline, (before, [each.outcomes for each in people])
            time.sleep(0.05)
        enough.set()
        for each in coming:
            each.result(timeout=60)
        for each in people:
            each.http.close()
            each.models_http.close()
        for role in ROLES:
            running.kill(role)
    assert killed["shuffler"] >= 7 and killed["analyzer"] >= 7, killed
    for campaign in campaigns:
        check(tmp_path, campaign, [each for each in people if each.campaign is campaign])


def models_shown(people: list[People], campaign: Campaign) -> int:
    return len({found.signature for each in people if each.campaign is campaign for found in each.shown[:]})


def check(folder: Path, campaign: Campaign, people: list[People]) -> None:
    store = open_analyzer_store(folder / "analyzer.db")
    models = store.read(lambda records: records.models(campaign.id, -1, 10**6))
    totals = store.read(lambda records: records.all_totals(campaign.id))
    stored = store.read(lambda records: records.state(campaign.id))
    store.close()
    assert [checked_model(found, campaign).number for found in models] == list(range(len(models)))
    assert {found for each in people for found in each.shown} <= set(models), "a model that a device was shown is lost"
    assert len(models) > 3
    # Each is what the released totals make, and so is the state.
    read = {(task_id, total.batch_id): total.total for task_id, total in totals}
    assert len(read) == len(totals), "a batch was read twice"
    again = list(again_from_totals(campaign, read))
    assert [model.document() for _, model in again] == [checked_model(found, campaign).document() for found in models]
    assert again[-1][0].document() == stored["learner"]
    # Every acknowledged report is kept, and no other but those whose device was not answered: there are none.
    store = open_shuffler_store(folder / "shuffler.db")
    rounds = [
        task_id for task_id in store.read(lambda records: records.tasks()) if task_id.startswith(f"{campaign.id}.")
    ]
    counts = [store.read(lambda records, task_id=task_id: records.counts(task_id)) for task_id in rounds]
    store.close()
    assert sum(each.reports for each in counts) == sum(each.outcomes["reported"] for each in people)
