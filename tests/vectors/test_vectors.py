"""The committed vectors are what the package computes today, and the sealed ones open with its own keys."""

import json
from functools import cache
from typing import Any

import pytest

from shuffledp.service.crypto import open_all
from shuffledp.service.task import Task

from .campaigns import campaign_vectors
from .making import KEYS, vectors
from .write import FOLDER, kept_campaigns, kept_tasks, read

FILES = sorted(file.stem for file in FOLDER.glob("*.json"))


@cache
def _today() -> dict[str, Any]:
    made = {**vectors(kept_tasks()), "campaigns": campaign_vectors(kept_campaigns())}
    found: dict[str, Any] = json.loads(json.dumps(made))
    return found


def test_there_is_a_file_for_each() -> None:
    assert sorted(_today()) == FILES


@pytest.mark.parametrize("name", FILES)
def test_vectors_are_current(name: str) -> None:
    assert read(name) == _today()[name]


def test_sealed_vectors_open_with_the_library() -> None:
    """The vectors' HPKE is written by hand, to have a given ephemeral key: RFC 9180 as the library reads it."""
    for vector in read("sealing"):
        task, expected = Task.from_text(kept_tasks()[vector["task"]]), bytes.fromhex(vector["message"])
        assert [layer["hop"] for layer in vector["layers"]] == [0, *range(len(task.hops), 0, -1)]
        for layer in vector["layers"]:
            key = KEYS[f"hop {layer['hop']}" if layer["hop"] else "analyzer"]
            sealed = bytes.fromhex(layer["sealed"])
            info = layer["info"].encode()
            assert open_all(key.raw, [sealed], info, len(sealed)) == [expected]
            assert open_all(key.raw, [sealed], b"another " + info, len(sealed)) == [None]
            expected = sealed
        assert len(expected) == task.routing.ciphertext_bytes


def test_every_law_is_met_where_digits_tie() -> None:
    """A vector in which the first 16 digits decide is not enough: one must need more."""
    ties = [draw for draw in read("samplers")["draws"] if draw["law"] == "bernoulli" and draw["probability"] == 0.3]
    assert ties and all(len(draw["bytes"]) > 4 * draw["count"] for draw in ties)
