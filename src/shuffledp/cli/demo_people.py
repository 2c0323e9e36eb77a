"""People of a live campaign in a demonstration: client processes, each with many devices, and what is seen of them."""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from shuffledp.cli.demo_servers import DemoServers, check_alive, wait_until
from shuffledp.errors import ShuffleDPError

if TYPE_CHECKING:
    from shuffledp.protocols.learner import DeviceStep, Learner
    from shuffledp.service.campaign import Campaign
    from shuffledp.service.device.crowd import Crowd, Places
    from shuffledp.service.models import Model

PROCESSES = max(1, min(4, os.cpu_count() or 1))
"""Client processes: sealing a message holds the interpreter's lock."""

# A process takes so many parts of its share of a slot, one after the other, so that none waits long for another.
_PARTS = 4


class Guests(Protocol):
    """Some of the people: what they do, and what they remember of it. It travels to a process and back."""

    people: int

    def act(self, crowd: "Crowd", step: "DeviceStep", places: "Places") -> Any:
        """What those at these places report; whoever is late is asked again."""

    def remember(self, model: int, places: "Places") -> None:
        """Those at these places have reported, by the model of this number."""


@dataclass(frozen=True)
class Doors:
    """How a process reaches the campaign: its text, both addresses, and the token of the role enrol."""

    campaign: str
    shuffler: str
    analyzer: str
    token: str

    def let_in(self, guests: Any, together: int) -> Any:
        """Let guests come, so many together, and give them back when all have come."""
        from shuffledp.service.campaign import Campaign
        from shuffledp.service.device.crowd import Crowd

        campaign = Campaign.from_text(self.campaign)
        with Crowd(campaign, shuffler=self.shuffler, analyzer=self.analyzer, token=self.token) as crowd:
            for came in crowd.come(guests.people, partial(guests.act, crowd), together=together):
                guests.remember(came.model, came.places)
        return guests


def prepared(run: Path, learner: "Learner[Any]") -> "Campaign":
    """Keys and a campaign. Its operator trusts the devices, which are its own: plans that one can spoil are allowed."""
    from shuffledp.randomness import RandomBits
    from shuffledp.service.campaign import Campaign
    from shuffledp.service.keys import load_public_key, load_verifying_key, make_keys

    bits = RandomBits.secure()
    make_keys(run / "keys", bits=bits)
    keys = load_public_key(run / "keys"), load_verifying_key(run / "keys")
    campaign = Campaign.create(learner, *keys, bits=bits, allow_unbounded=True)
    campaign.save(run / "campaign.json")
    return campaign


def doors_of(run: Path, both: DemoServers, campaign: "Campaign") -> Doors:
    """How processes reach the servers of this run."""
    from shuffledp.service.keys import load_tokens
    from shuffledp.service.tokens import ENROL

    return Doors(campaign.text, both.shuffler, both.analyzer, load_tokens(run / "keys").secrets[ENROL])


def all_came(
    both: DemoServers, doors: Doors, guests: list[Any], slot_users: int, follow: Callable[[int], None]
) -> list[Any]:
    """Every process lets its guests come; answers them as they were when all had come.

    Args:
        both: the servers, which must not end meanwhile.
        doors: how processes reach them.
        guests: those of each process.
        slot_users: how many people answer by one model.
        follow: told the newest model's number, again and again.
    """
    together = max(1, slot_users // (_PARTS * len(guests)))
    # Not forked: a picture or a progress bar may have threads. A pool that is left is ended, whatever happened.
    with multiprocessing.get_context("spawn").Pool(len(guests), initializer=_undisturbed) as pool:
        coming = [pool.apply_async(doors.let_in, (each, together)) for each in guests]
        while not all(each.ready() for each in coming):
            if any(each.ready() and not each.successful() for each in coming):
                break
            for server in both.servers.values():
                check_alive(server)
            follow(newest(both, doors.campaign).number)
            time.sleep(0.25)
        return [_told(each) for each in coming if each.ready()]


def _undisturbed() -> None:
    """An interrupt is for the process that started this one, which ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _told(coming: Any) -> Any:
    try:
        return coming.get(0)
    except ShuffleDPError:
        raise
    except Exception as broken:
        raise RuntimeError(f"a client failed: {broken!r}"[:500]) from broken


def newest(both: DemoServers, campaign: str) -> "Model":
    """The newest model of a campaign that was sent as this text."""
    import hashlib

    from shuffledp.service.models import unchecked_model
    from shuffledp.service.wire import SignedText

    campaign_id = hashlib.sha256(campaign.encode()).hexdigest()
    return unchecked_model(SignedText.from_document(both.adding.json(f"/v1/campaigns/{campaign_id}/models/newest")))


def wait_for_model(both: DemoServers, doors: Doors, number: int) -> None:
    """Until the model of this number is published."""
    analyzer = both.servers["analyzer"]
    wait_until(lambda: newest(both, doors.campaign).number >= number, analyzer, f"has published no model {number}")


def all_models(both: DemoServers, campaign: "Campaign") -> "list[Model]":
    """Every model of a campaign, checked as a device checks it, the first one first."""
    from shuffledp.service.models import checked_model
    from shuffledp.service.wire import SignedText

    found = both.adding.json(f"/v1/campaigns/{campaign.id}/models?limit=100000")["models"]
    return [checked_model(SignedText.from_document(each), campaign) for each in found]


def shared_out(people: int, processes: int) -> list[int]:
    """How many come in each process."""
    return [len(range(place, people, processes)) for place in range(processes)]
