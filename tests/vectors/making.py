"""The vectors, each computed from the package: `write.py` writes them, and a test says whether they are current."""

import hashlib
from collections.abc import Iterator
from dataclasses import asdict
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from shuffledp.accounting.dropouts import honest_users
from shuffledp.privacy import Privacy
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.randomness import RandomBits
from shuffledp.sampling.bernoulli import bernoulli
from shuffledp.sampling.coins import coin_bits
from shuffledp.sampling.laws import poisson
from shuffledp.sampling.permutation import uniform_permutation
from shuffledp.sampling.rounding import round_randomly
from shuffledp.sampling.uniform import uniform_below
from shuffledp.schedules.combinatorial import combinatorial_schedule, ending_schedule
from shuffledp.service.crypto import PrivateKey, binding
from shuffledp.service.routing import Routing
from shuffledp.service.task import RoundTask, Task, canonical
from shuffledp.service.wire import SentReport, pack_messages, pack_upload, single_body, split_single_body

from .given import GivenBits, given_bytes, seal_with

KEYS = {name: PrivateKey(given_bytes(f"key of {name}", 32)) for name in ("analyzer", "hop 1", "hop 2", "hop 3")}

_PRIVACY = Privacy(1, 1e-6)
_LETTERS = {"categories": ["x", "y", "z"]}
_DAYS = {"kind": "dates", "first": "2026-01-30", "last": "2026-03-01"}
_WORDS = {"kind": "hashed", "cells": 40, "salt": "größe"}
_WEAK = Privacy(4, 1e-2)
_VECTORS = {"values": "vectors", "dimension": 2, "radius": 1.5, "privacy": _WEAK}
_ASKED: dict[str, tuple[str, dict[str, Any], int]] = {
    # Protocol, what is asked, hops.
    "poisson-bits": ("binary-sum", {"users": 2000, "method": "poisson-bits"}, 0),
    "poisson-bits-of-most": ("binary-sum", {"users": 40, "method": "poisson-bits", "honest_fraction": 0.9}, 0),
    "coins": ("binary-sum", {"users": 2000, "method": "coins"}, 0),
    "coins-of-few": ("binary-sum", {"users": 30, "method": "coins"}, 2),
    "bits": ("bounded-sum", {"users": 1000, "method": "bits", "low": -2.5, "high": 4.0}, 0),
    "decoys": ("histogram", {"users": 500, "method": "decoys", "categories": ["red", "green", "blue"]}, 0),
    "decoys-of-numbers": ("histogram", {"users": 3000, "method": "decoys", "categories": range(-3, 400)}, 3),
    "decoys-of-days": ("histogram", {"users": 3000, "method": "decoys", "categories": _DAYS}, 0),
    "decoys-of-words": ("histogram", {"users": 3000, "method": "decoys", "categories": _WORDS}, 0),
    "counter": ("counter", {"users": 2000, "shufflers": 2, "method": "coins"}, 0),
    "counter-of-most": ("counter", {"users": 300, "shufflers": 3, "method": "coins", "honest_fraction": 2 / 3}, 0),
    "counter-completed": ("counter", {"users": 501, "shufflers": 3, "method": "coins", "estimator": "completed"}, 0),
    "counter-of-reals": (
        "counter",
        {"users": 20_000, "shufflers": 1, "method": "coins", "values": "reals", "max_messages": 60},
        2,
    ),
    "counter-of-names": (
        "counter",
        {"users": 500, "shufflers": 2, "method": "coins", **_LETTERS},
        0,
    ),
    "pure": ("binary-sum", {"users": 200, "method": "pure"}, 0),
    "rr": ("binary-sum", {"users": 1000, "method": "rr"}, 0),
    "correlated": ("binary-sum", {"users": 3000, "method": "correlated", "honest_fraction": 0.9, "privacy": _WEAK}, 0),
    "buckets": ("histogram", {"users": 200, "method": "buckets", "categories": 1000}, 0),
    "hadamard": ("histogram", {"users": 200, "method": "hadamard", "categories": 5000}, 2),
    "correlated-names": ("histogram", {"users": 300, "method": "correlated", **_LETTERS, "privacy": _WEAK}, 0),
    "zsum": ("binary-sum", {"users": 1000, "method": "zsum"}, 0),
    "zsum-names": ("histogram", {"users": 1000, "method": "zsum", **_LETTERS}, 0),
    "opt-in": ("histogram", {"users": 1000, "method": "opt-in", **_LETTERS}, 0),
    "fake-users": ("histogram", {"users": 60, "method": "fake-users", **_LETTERS}, 0),
    "counter-of-vectors": ("counter", {"users": 20_000, "shufflers": 1, "method": "coins", **_VECTORS}, 0),
    "counter-laplace": ("counter", {"users": 2000, "shufflers": 3, "method": "laplace", "honest_fraction": 0.9}, 0),
    "counter-skellam": ("counter", {"users": 2000, "shufflers": 2, "method": "skellam"}, 2),
    "vectors-skellam": ("counter", {"users": 2000, "shufflers": 2, "method": "skellam", **_VECTORS}, 0),
    "carried": ("counter", {"users": 6000, "shufflers": 4, "method": "carried"}, 0),
    "carried-of-most": ("counter", {"users": 6000, "shufflers": 4, "method": "carried", "honest_fraction": 0.9}, 0),
    "carried-with-silence": ("counter", {"users": 6000, "shufflers": 6, "method": "carried", "silent_slots": 1}, 0),
    "carried-vectors": ("counter", {"users": 6000, "shufflers": 3, "method": "carried", **_VECTORS}, 2),
}
_OF_VECTORS = ("counter-of-vectors", "vectors-skellam", "carried-vectors")
_VALUES: dict[str, list[Any]] = {
    **{name: [0, 1] for name in _ASKED},
    # At the first slot, in the middle and at the last one.
    "carried-with-silence": [1, 0, 1],
    "bits": [-2.5, 0.3, 4.0],
    "decoys": ["red", "blue"],
    "decoys-of-numbers": [-3, 399],
    "decoys-of-days": ["2026-01-30", "2026-02-28", "2026-03-01"],
    "decoys-of-words": ["", "Köln", "\U0001f600 x"],
    "counter-of-reals": [0.0, 0.123, 1.0],
    "counter-of-names": ["x", "z"],
    "buckets": [0, 999],
    "hadamard": [1, 4097],
    **{name: ["x", "z"] for name in ("correlated-names", "zsum-names", "opt-in", "fake-users")},
    **{name: [[0.0, 0.0], [1.5, 0.0], [-0.25, -1.25]] for name in _OF_VECTORS},
}
_BYTES = 20_000


def new_tasks(kept: dict[str, str]) -> dict[str, str]:
    """Tasks whose texts vectors are about; those not kept are planned, as another machine may plan other last bits."""
    texts = dict(kept)
    for name, (protocol, asked, hops) in _ASKED.items():
        if name in kept:
            continue
        plan = PROTOCOLS[protocol].plan(**{"privacy": _PRIVACY, **asked})
        keys = [KEYS[f"hop {number}"].public for number in range(1, hops + 1)]
        nonce = GivenBits(given_bytes(f"nonce of {name}", 16))
        made = Task.create(plan, KEYS["analyzer"].public, bits=nonce, hops=keys, allow_unbounded=True)
        texts[name] = made.text
    return texts


def _positions(task: Task) -> list[int]:
    """The first and last people, those around the ends of slots, and some between."""
    users, schedule = task.routing.users, task.routing.schedule
    ends = [int(schedule.users_by(slot)) for slot in (1, 2, schedule.slots // 2, schedule.slots - 1)]
    near = {0, 1, users // 3, users - 1, *(end + step for end in ends for step in (-1, 0))}
    return sorted(position for position in near if 0 <= position < users)


def _seats_in(routing: Routing, position: int) -> list[dict[str, Any]]:
    return [asdict(batch) for batch in routing.batches_of(position)]


def canonical_vectors() -> list[dict[str, Any]]:
    documents: list[Any] = [
        {"b": 1, "a": [True, None, 'Köln \u2713 \U0001f600 "\\\n'], "c": {}},
        {"epsilon": 1.0, "delta": 1e-06, "tiny": 5e-324, "large": 1e22, "whole": 10**20, "third": 1 / 3},
    ]
    texts = [canonical(document) for document in documents]
    return [{"text": text, "sha256": hashlib.sha256(text.encode()).hexdigest()} for text in texts]


def task_vectors(texts: dict[str, str]) -> list[dict[str, Any]]:
    found = []
    for name, text in texts.items():
        task = Task.from_text(text)
        seats = [{"position": position, "batches": _seats_in(task.routing, position)} for position in _positions(task)]
        found.append({"name": name, "text": text, "id": task.id, "seats": seats})
    return found


def routing_vectors() -> list[dict[str, Any]]:
    """Schedules of all shapes, with one message in every batch: which batches each position is in."""
    shapes = [
        (60, 2, 2, 10, False, False),
        (47, 2, 2, 10, False, True),
        (60, 3, 4, 2, True, False),
        (9, 1, 1, 5, False, False),
    ]
    found = []
    for users, budget, shufflers, slot_users, every_slot, everybody in shapes:
        schedule = (
            ending_schedule(budget, shufflers, users)
            if everybody
            else combinatorial_schedule(budget, shufflers, slot_users)
        )
        messages = {size: 1 for sizes in schedule.sizes_with(every_slot=every_slot) for size in sizes}
        routing = Routing(users, budget, shufflers, slot_users, every_slot, messages, counts_everybody=everybody)
        seats = [_seats_in(routing, position) for position in range(users)]
        found.append({"routing": routing.document(), "seats": seats})
    return found


def honest_vectors() -> list[dict[str, Any]]:
    cases = [
        (users, fraction)
        for fraction in (1.0, 0.9, 1 / 3, 2 / 3, 0.29, 0.123456789012345)
        for users in (1, 7, 100, 4001)
    ]
    return [
        {"users": users, "fraction": fraction, "honest": honest_users(users, fraction)} for users, fraction in cases
    ]


_POISSON = ((85.32558932900429, 2000), (85.32558932900429, 3), (0.001, 7), (1234.5, 1))


def _poisson_draws(rate: float, honest: int, bits: RandomBits) -> list[int]:
    law = poisson(Fraction(rate) / honest)
    return [int(law.sample(1, bits=bits)[0]) for _ in range(20)]


def sampler_vectors() -> Iterator[dict[str, Any]]:
    """Draws from given bytes: of each law the parameters, the bytes, what was drawn and how many bytes were used."""
    tie = (0.3 * 2**16) // 1  # The first 16 digits of 0.3 are given first, so that more must be compared.
    starts = {"bernoulli": int(tie).to_bytes(2, "little")}
    cases: list[tuple[str, dict[str, Any], Any]] = [
        ("bernoulli", {"probability": 0.3, "count": 40}, lambda bits: bernoulli(0.3, 40, bits=bits).astype(int)),
        ("bernoulli", {"probability": 1e-3, "count": 9}, lambda bits: bernoulli(1e-3, 9, bits=bits).astype(int)),
        ("bernoulli", {"probability": 1.0, "count": 3}, lambda bits: bernoulli(1.0, 3, bits=bits).astype(int)),
        ("coins", {"probability": 0.5, "count": 19}, lambda bits: coin_bits(0.5, 19, bits=bits)),
        ("coins", {"probability": 0.25, "count": 19}, lambda bits: coin_bits(0.25, 19, bits=bits)),
        *(
            ("uniform", {"bound": bound, "count": 12}, lambda bits, bound=bound: uniform_below(bound, 12, bits=bits))
            for bound in (1, 6, 256, 257, 70_000)
        ),
        ("order", {"size": 9}, lambda bits: uniform_permutation(9, bits=bits)),
        *(
            ("round", {"value": value}, lambda bits, value=value: round_randomly(np.array([value]), bits=bits))
            for value in (0.0, 2.25, 10.999999999, 1048576.5, 4.000000000116415)
        ),
        *(
            ("poisson", {"rate": rate, "honest": honest}, partial(_poisson_draws, rate, honest))
            for rate, honest in _POISSON
        ),
    ]
    for number, (law, parameters, draw) in enumerate(cases):
        given = starts.get(law, b"") + given_bytes(f"sampler {number}", 400)
        bits = GivenBits(given)
        drawn = [int(each) for each in draw(bits)]
        yield {"law": law, **parameters, "bytes": given[: bits.used].hex(), "drawn": drawn}


def table_vectors() -> list[dict[str, Any]]:
    """Whole tables of Poisson laws: the lowest value, and the SHA-256 of the entries as 16 bytes each, big-endian."""
    found = []
    for rate, honest in _POISSON:
        law = poisson(Fraction(rate) / honest)
        entries = [int(high) << 64 | int(low) for high, low in zip(law.high_words, law.low_words, strict=True)]
        digest = hashlib.sha256(b"".join(entry.to_bytes(16, "big") for entry in entries)).hexdigest()
        found.append({"rate": rate, "honest": honest, "low": law.low, "entries": len(entries), "sha256": digest})
    return found


def plain_report(task: Task | RoundTask, position: int, values: Any, bits: RandomBits) -> list[list[str]]:
    """One person's messages for each batch of its seat, in the order in which they are sealed."""
    plan, seats = task.plan, task.routing.batches_of(position)
    prepared = plan.prepare(plan.check_values(values), bits=bits, positions=np.array([position]))
    found = []
    for batch in seats:
        reports = plan.mechanism(batch.size).randomize(prepared, batch.seat, bits=bits)
        packed = pack_messages(reports.payloads, reports.labels, batch.messages, bits=bits)
        order = uniform_permutation(batch.messages, bits=bits)
        found.append([packed[place].hex() for place in order])
    return found


def report_vectors(texts: dict[str, str]) -> list[dict[str, Any]]:
    found = []
    for name, text in texts.items():
        task = Task.from_text(text)
        for number, value in enumerate(_VALUES[name]):
            position = (0, task.routing.users // 3, task.routing.users - 1)[number % 3]
            bits = GivenBits(given_bytes(f"report {name} {number}", _BYTES))
            batches = plain_report(task, position, task.plan.encode(np.asarray([value])), bits)
            used = bits.given[: bits.used].hex()
            found.append({"task": name, "position": position, "value": value, "bytes": used, "batches": batches})
    return found


def sealing_vectors(texts: dict[str, str]) -> list[dict[str, Any]]:
    """A message of 29 bytes, each layer with a given ephemeral key, and the ciphertext that goes to the shuffler."""
    found = []
    for name in ("poisson-bits", "coins-of-few", "decoys-of-numbers"):
        task = Task.from_text(texts[name])
        batch = task.routing.batches_of(0)[0].batch_id
        message = given_bytes(f"message of {name}", 29)
        layers, sealed = [], message
        for hop in (0, *range(len(task.hops), 0, -1)):
            key, info = KEYS[f"hop {hop}" if hop else "analyzer"], binding(task.id, batch, hop)
            ephemeral = given_bytes(f"ephemeral {name} {hop}", 32)
            sealed = seal_with(sealed, key.public.raw, info, ephemeral)
            layers.append({"hop": hop, "info": info.decode(), "ephemeral": ephemeral.hex(), "sealed": sealed.hex()})
        found.append({"task": name, "batch_id": batch, "message": message.hex(), "layers": layers})
    return found


def upload_vectors() -> dict[str, Any]:
    reports = [
        SentReport(f"{number:032x}", f"{number + 7:032x}", given_bytes(f"body {number}", 5)) for number in (1, 2)
    ]
    single = single_body(reports[0].seat, reports[0].body)
    assert split_single_body(single) == (reports[0].seat, reports[0].body)
    return {
        "reports": [{"report_id": r.report_id, "seat": r.seat, "body": r.body.hex()} for r in reports],
        "put_first": single.hex(),
        "post_all": pack_upload(reports).hex(),
    }


def vectors(texts: dict[str, str]) -> dict[str, Any]:
    """Every file's content, by its name."""
    keys = {name: {"private": key.raw.hex(), "public": key.public.text} for name, key in KEYS.items()}
    return {
        "canonical": canonical_vectors(),
        "tasks": {"keys": keys, "tasks": task_vectors(texts), "routings": routing_vectors()},
        "samplers": {"honest": honest_vectors(), "draws": list(sampler_vectors()), "tables": table_vectors()},
        "reports": report_vectors(texts),
        "sealing": sealing_vectors(texts),
        "uploads": upload_vectors(),
    }
