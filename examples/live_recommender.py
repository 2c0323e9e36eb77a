"""A recommender on people's devices: three banners, both servers in this process, 160 people who come one by one."""

import tempfile
import threading
import time
from pathlib import Path

import httpx
import numpy as np

from shuffledp import Privacy, RandomBits
from shuffledp.learn.bandits.arms.fixed_batches import FixedBatches
from shuffledp.service.analyzer.app import analyzer_app
from shuffledp.service.analyzer.opening import Opener
from shuffledp.service.analyzer.server import AnalyzerServer
from shuffledp.service.campaign import Campaign
from shuffledp.service.device import Device
from shuffledp.service.keys import load_private_key, load_signing_key, load_tokens, make_keys
from shuffledp.service.serving import Address, uvicorn_server
from shuffledp.service.shuffler.app import shuffler_app
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.store import open_analyzer_store, open_shuffler_store

PEOPLE, CLICKS = 160, [0.15, 0.3, 0.8]


def served(app):
    """Answer on a port that the system chooses, in a thread: the server, the thread and the address."""
    server = uvicorn_server(app, Address(port=0))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    return server, thread, f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"


def main() -> None:
    place = tempfile.TemporaryDirectory()
    folder = Path(place.name)
    public = make_keys(folder / "keys", bits=RandomBits.secure())
    key, signing, tokens = (load(folder / "keys") for load in (load_private_key, load_signing_key, load_tokens))

    # The campaign: three banners, batches of 15 people, and a promise to every one of them.
    policy = FixedBatches(arms=3, horizon=PEOPLE, privacy=Privacy(4, 1e-3), batch=15, method="coins", failure=0.05)
    campaign = Campaign.create(policy, public, signing.public, bits=RandomBits.secure())

    # The servers: in earnest on two machines, of two people who do not collude.
    store = open_analyzer_store(folder / "analyzer.db")
    analyzer = AnalyzerServer(store, key=key, opener=Opener(key, processes=1), signing=signing)
    analyzer.add_task(campaign.text)
    reading = served(analyzer_app(analyzer, tokens))

    def hand_over(path: str, body: bytes) -> int:
        """A full batch goes to the analyzer; `post_to` sends it to one elsewhere."""
        _, _, _, round_id, _, batch_id = path.split("/")
        return 201 if analyzer.deliver(round_id, batch_id, body) else 200

    shuffler = ShufflerServer(open_shuffler_store(folder / "shuffler.db"), post=hand_over)
    shuffler.add_task(campaign.text)
    mixing = served(shuffler_app(shuffler, tokens))

    # The people. A device of its own would keep its memory in a file, and open connections of its own.
    clicks, shown = np.random.default_rng(1), [0] * policy.arms
    where = {"shuffler": mixing[2], "analyzer": reading[2], "token": tokens.secrets["enrol"]}
    with httpx.Client() as reports, httpx.Client() as models:
        came = 0
        while came < PEOPLE:
            with Device(campaign, **where, http=reports, models_http=models) as device:
                choice = device.choose()
                outcome = device.reward(choice, clicks.random() < CLICKS[choice.offer])
                if outcome.status == "late":
                    time.sleep(0.02)  # The round is full, and its model on the way: come back in a moment.
                    continue
                shown[choice.offer] += 1
                came += 1
        model = device.model()

    print(f"{PEOPLE} people were shown banner 0, 1 and 2 {shown[0]}, {shown[1]} and {shown[2]} times")
    means = ["-" if mean is None else f"{mean:.2f}" for mean in model.estimate["means"]]
    print(f"model {model.number}, signed: clicks {', '.join(means)}; still there {model.estimate['active']}")
    print(f"every person: {campaign.learner.guarantee().shuffle}")

    for server, thread, _ in (mixing, reading):
        server.should_exit = True
        thread.join()
    place.cleanup()


if __name__ == "__main__":
    main()
