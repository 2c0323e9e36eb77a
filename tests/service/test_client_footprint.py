"""What a device spends in a process of its own: reports of a histogram by the default plan, choices of a campaign."""

import json
import subprocess
import sys
from pathlib import Path

from harness.campaigns import some_bandit
from shuffledp import Histogram, Privacy
from shuffledp.randomness import RandomBits
from shuffledp.service.campaign import Campaign
from shuffledp.service.crypto import PrivateKey, SigningKey
from shuffledp.service.models import model_of, signed
from shuffledp.service.task import Task

_DEVICE = """
import json, re, sys, time
from pathlib import Path
import numpy as np
from shuffledp.randomness import RandomBits
from shuffledp.service.client.making import make_reports
from shuffledp.service.task import Task

task = Task.load(Path(sys.argv[1]))
loaded = time.process_time()
seats = [task.routing.batches_of(position) for position in range(200)]
reports = make_reports(task, np.arange(200) % 50, seats, bits=RandomBits.secure())
print(json.dumps({
    "reports": len(reports),
    "making": time.process_time() - loaded,
    "megabytes": int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024,
    "heavy": [name for name in ("scipy.stats", "scipy.signal", "pyarrow", "matplotlib") if name in sys.modules],
}))
"""


def test_two_hundred_people_of_a_histogram(tmp_path: Path) -> None:
    """They took 88 s and 145 MB by a method of 3,211 messages; 0.1 s and 78 MB by the default plan, measured idle."""
    plan = Histogram.plan(users=1000, categories=50, privacy=Privacy(1, 1e-6))
    task = Task.create(plan, PrivateKey.generate().public, bits=RandomBits.secure())
    task.save(tmp_path / "task.json")
    command = [sys.executable, "-c", _DEVICE, str(tmp_path / "task.json")]
    told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert told["reports"] == 200 and told["heavy"] == []
    assert told["making"] < 2 and told["megabytes"] < 120


_CHOOSING = """
import json, re, sys, time
from pathlib import Path
import httpx
from shuffledp.service.campaign import Campaign
from shuffledp.service.device import Device

given = json.load(sys.stdin)
begun = time.process_time()
campaign = Campaign.from_text(given["campaign"])
answer = httpx.MockTransport(lambda request: httpx.Response(200, json=given["model"]))
urls = {"shuffler": "http://localhost:1", "analyzer": "http://localhost:2"}
with Device(campaign, **urls, token="t" * 64, models_http=httpx.Client(transport=answer)) as device:
    choices = [device.choose(None, [[1.0], [-1.0]]).offer for _ in range(200)]
print(json.dumps({
    "choices": len(choices),
    "seconds": time.process_time() - begun,
    "megabytes": int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024,
    "heavy": [name for name in ("pyarrow", "matplotlib", "sklearn", "starlette", "uvicorn",
                                "shuffledp.service.analyzer", "shuffledp.service.shuffler",
                                "shuffledp.simulation") if name in sys.modules],
}))
"""


def test_two_hundred_choices_of_a_campaign() -> None:
    """They take 0.7 s and 135 MB: a device holds no server, no simulation, and nothing that draws pictures."""
    keys = PrivateKey.generate().public, SigningKey.generate()
    learner = some_bandit()
    campaign = Campaign.create(learner, keys[0], keys[1].public, bits=RandomBits.secure(), allow_unbounded=True)
    state = learner.start()
    model = signed(model_of(campaign, 0, state, learner.ask(state)), keys[1])
    given = json.dumps({"campaign": campaign.text, "model": model.document()})
    command = [sys.executable, "-c", _CHOOSING]
    told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, input=given).stdout)
    assert told["choices"] == 200 and told["heavy"] == [], told
    assert told["seconds"] < 5 and told["megabytes"] < 160, told
