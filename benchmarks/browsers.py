"""One task fed by a crowd of browsers and a crowd of Python clients: nothing is lost, whichever road reports take.

    python benchmarks/browsers.py [--people 200]

Half of the people report from a real Chromium by the JavaScript client as one module, with answers that get lost on
their way; half by the Python client. Servers are processes of their own. The figure is how many reports were lost.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from report import figure, report, shown

from shuffledp import Privacy, RandomBits
from shuffledp.accounting.differences import Skellam
from shuffledp.protocols.binary_sum.poisson_bits import PoissonBits
from shuffledp.service.client import Client, Relay
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.oblivious.encapsulation import GatewayKey
from shuffledp.service.oblivious.key_config import encode_configs
from shuffledp.service.task import Task
from shuffledp.service.tokens import Tokens

# The tests' own servers and browser.
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

SECURE = RandomBits.secure()
# Of every so many reports of the browser the answer is lost once.
LOSE_EVERY = 7
PATIENCE = 600.0
FALSE_ALARM = 1e-9

# How reports reach the shuffler.
ROADS = ("direct", "through a relay")


def released(reader: Any, task: Task) -> dict[str, Any]:
    """The estimate of the whole task, as soon as it is there."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found: dict[str, Any] = reader.get(f"/v1/tasks/{task.id}/estimate").json()
        if found.get("time") == task.routing.users:
            return found
        time.sleep(0.1)
    raise TimeoutError("the batch did not fill: a report was lost")


@contextmanager
def carried(key: PrivateKey, gateway: str, origin: str, folder: Path) -> Iterator[dict[str, Any]]:
    """A relay as a process of its own; what a client in Python is given, and one in JavaScript below `page`."""
    from harness.hidden import ports, serving

    config, [port] = GatewayKey.of(key).config, ports(1)
    words = ["relay", "--gateway", gateway, "--port", str(port), "--allow-origin", origin]
    with serving(folder / "relay.log", *words, said="interrupt"):
        url = f"http://127.0.0.1:{port}"
        page = {"relay": url, "gatewayKeys": encode_configs([config]).hex()}
        yield {"relay": Relay(url, (config,)), "page": page}


def fed(road: str, people: int, folder: Path) -> dict[str, float]:
    """Twice so many people, half of them in a browser; what became of their reports."""
    from harness.nursery import servers
    from harness.site import site_in

    gateway = PrivateKey.generate()
    plan = PoissonBits.plan(users=2 * people, privacy=Privacy(1, 1e-6))
    key, tokens = PrivateKey.generate(), Tokens.generate(bits=SECURE)
    task = Task.create(plan, key.public, bits=SECURE)
    values = [number % 3 == 0 for number in range(2 * people)]
    with (
        site_in(folder / "site") as site,
        servers(folder, key, tokens, origins=[site.origin], gateway_key=gateway.text) as running,
        ExitStack() as opened,
    ):
        running.add_task(task)
        url, token = running.url("shuffler"), tokens.secrets["enrol"]
        given: dict[str, Any] = {}
        if road != "direct":
            given = opened.enter_context(carried(gateway, url, site.origin, folder))
        for_page = given.pop("page", {})
        page = site.folder / "examples" / "browser"
        settings = {"taskId": task.id, "shuffler": url, "token": token, "loseEvery": LOSE_EVERY, **for_page}
        (page / "settings.json").write_text(json.dumps({**settings, "values": values[:people]}), "utf-8")
        task.save(page / "task.json")
        browser = site.visited("crowd.html", folder / "profile", PATIENCE)
        assert "error" not in browser, browser.get("error")
        with Client(task, url, token, **given) as client:
            sent = client.report_many([int(value) for value in values[people:]])
        with running.client("shuffler", "admin") as reader:
            counts = reader.get(f"/v1/tasks/{task.id}").json()["counts"]
        with running.client("analyzer", "read") as reader:
            answer = released(reader, task)
    bound = Skellam(plan.rate).deviation_quantile(FALSE_ALARM) / 2
    return {
        "lost": 2 * people - counts["reports"] + answer["dropped"] + answer["void"],
        "twice": counts["seats_taken"] - 2 * people,
        "browser": browser["reports"],
        "python": sent.reports,
        "answers": browser["lost"],
        "waiting": browser["waiting"],
        "off": abs(answer["estimate"] - sum(values)),
        "most": bound,
        "milliseconds": browser["milliseconds"] / people,
    }


def main() -> None:
    """Feed a task by every road, and refuse a lost report."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--people", type=int, default=200, help="of each kind")
    people = parser.parse_args().people
    rows = []
    for road in ROADS:
        with tempfile.TemporaryDirectory() as folder:
            found = fed(road, people, Path(folder))
        rows += [
            figure(f"{road}: reports lost", found["lost"], "<=", 0, f"of {2 * people}, half of them from Chromium"),
            figure(f"{road}: seats taken twice", found["twice"], "<=", 0, "every report has one"),
            figure(f"{road}: reports that wait in the browser", found["waiting"], "<=", 0, "in its IndexedDB"),
            figure(f"{road}: from the browser", found["browser"], ">=", people, "acknowledged"),
            figure(f"{road}: from Python", found["python"], ">=", people, "acknowledged"),
            figure(f"{road}: answers lost on the way", found["answers"], ">=", 1, "the same bytes are sent again"),
            figure(f"{road}: the estimate is off by", found["off"], "<=", found["most"], f"but for {FALSE_ALARM:g}"),
            shown(
                f"{road}: milliseconds a report in Chromium", found["milliseconds"], "wall time, under whatever load"
            ),
        ]
    raise SystemExit(report("Browsers", rows))


if __name__ == "__main__":
    main()
