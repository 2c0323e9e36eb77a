"""Requests of the JavaScript client through a relay: as long as Python's, of every task that it knows."""

import json
from pathlib import Path

from harness.node import ROOT, node_in
from shuffledp.service.oblivious.padding import request_length
from shuffledp.service.routing import Routing

LENGTHS = """
import { text } from "node:stream/consumers";
import { requestLength } from "./internal/relay.js";
console.log(JSON.stringify(JSON.parse(await text(process.stdin)).map(requestLength)));
"""


def test_devices_of_both_kinds_look_the_same_to_a_relay(tmp_path: Path) -> None:
    tasks = json.loads((ROOT / "tests" / "vectors" / "tasks.json").read_text())["tasks"]
    routings = [json.loads(task["text"])["routing"] for task in tasks]
    ran = node_in(tmp_path).run("--input-type=module", "--eval", LENGTHS, stdin=json.dumps(routings))
    assert ran.returncode == 0, ran.stderr
    lengths = [request_length(Routing.from_document(routing)) for routing in routings]
    assert json.loads(ran.stdout) == lengths and len(set(lengths)) > 2
