"""The JavaScript client in a real browser: the page that counts clicks, IndexedDB, and origins that are named."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.nursery import servers
from harness.site import Site, site_in
from shuffledp.privacy import Privacy
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.randomness import RandomBits
from shuffledp.service.client import Client
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.task import Task
from shuffledp.service.tokens import Tokens

SECURE = RandomBits.secure()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A site on this machine, with the client and the example's page."""
    with site_in(tmp_path / "site") as served:
        yield served


def test_a_page_counts_clicks_and_loses_none(site: Site, tmp_path: Path) -> None:
    page = site.folder / "examples" / "browser"
    plan = PROTOCOLS["binary-sum"].plan(users=6, privacy=Privacy(4, 1e-2), method="poisson-bits")
    key, tokens = PrivateKey.generate(), Tokens.generate(bits=SECURE)
    task = Task.create(plan, key.public, bits=SECURE)
    task.save(page / "task.json")
    with servers(tmp_path, key, tokens, origins=[site.origin]) as running:
        running.add_task(task)
        urls = {role: running.url(role) for role in ("shuffler", "analyzer")}
        settings = {"taskId": task.id, "token": tokens.secrets["enrol"], **urls}
        (page / "settings.json").write_text(json.dumps(settings))
        found = site.visited("page.html", tmp_path / "profile")
        with running.client("shuffler", "read") as reader:
            counts = reader.get(f"/v1/tasks/{task.id}").json()["counts"]
        with Client(task, urls["shuffler"], tokens.secrets["enrol"]) as client:
            assert client.report_many([0, 1, 0, 1]).new == 4
    assert found.pop("first").startswith("Thank you."), found
    assert found.pop("again").startswith("You have answered before"), found
    assert found == {
        "broken": "unreachable",
        "flushed": {"reports": 1, "new": 1, "refused": 0},
        "known": {"reports": 0, "new": 0, "known": True},
        "same": True,
        "unnamed": "kept from it",
    }
    # Two reports of the page, and no seat that was taken in vain.
    assert (counts["reports"], counts["seats_taken"], counts["leases"]) == (2, 2, 0)
