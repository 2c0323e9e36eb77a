"""How a version's files are written: by the functions that its commands and servers call, in a folder of their own.

What cannot be written by a function alone (a store in the middle of its work, a job that was stopped) is left there by
the servers and the job themselves.
"""

import gzip
import json
import random
import shutil
import warnings
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
from typer.testing import CliRunner

from cli.test_every_verb import NAMES, PLANS, TARGET, USERS
from harness.campaigns import KINDS as LEARNERS
from harness.campaigns import ROWS, some_values
from harness.world import World, accept_one, report_of, small_task
from shuffledp import BinarySum, Privacy, RandomBits, load_plan
from shuffledp.accounting.ledger import Ledger
from shuffledp.cli.app import app
from shuffledp.engines import JobKey, LocalEngine
from shuffledp.engines.sweeping import Finished
from shuffledp.errors import ShuffleDPWarning
from shuffledp.jobs import shuffling
from shuffledp.jobs.collecting import collect_reports, sealed_reports
from shuffledp.jobs.job import work_folder
from shuffledp.jobs.opening import open_files
from shuffledp.learn import ShuffleLogisticRegression
from shuffledp.protocols.ledger_entries import entry_of
from shuffledp.protocols.runner import ask_and_tell
from shuffledp.service.admission.issuer_keys import load_issuer, load_issuer_key, make_issuer_keys
from shuffledp.service.admission.issuing import IssuerDesk, open_issuer_store, people_of
from shuffledp.service.admission.private_tokens import in_base64url
from shuffledp.service.admission.requesting import PendingToken
from shuffledp.service.analyzer.results import PieceResult
from shuffledp.service.campaign import Campaign
from shuffledp.service.client.making import make_reports
from shuffledp.service.ended import Ended
from shuffledp.service.keys import load_hop_public_key, load_private_key, load_signing_key, make_hop_keys, make_keys
from shuffledp.service.models import checked_model, round_of_model
from shuffledp.service.oblivious.gateway_keys import make_gateway_key
from shuffledp.service.rotation import remember_task, retire_keys, rotate_keys, rotate_tokens
from shuffledp.service.store import open_outbox
from shuffledp.service.store.outboxes import Visit
from shuffledp.service.store.postgresql import migrating
from shuffledp.service.task import Task
from shuffledp.service.wire import SentReport, pack_messages
from shuffledp.simulation.environments.synthetic import synthetic_values

from .given import test_bytes, test_token

BITS = RandomBits.secure()
FIRST_MODEL = Path(__file__).parents[1] / "golden" / "kept" / "model-0.1.0.json"
PRIVACY, EASY = Privacy(1, 1e-6), Privacy(8, 0.1)
DAY, LAST_DAY = datetime(2026, 1, 31, 12, tzinfo=UTC), "2999-12-31"


def write_all(folder: Path) -> None:
    """All files of this version, in a new folder."""
    folder.mkdir()
    for make in _MAKERS:
        make(folder)


def _write(path: Path, document: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n", "utf-8")


def _plans(folder: Path) -> None:
    """A plan of every family, by the command; and where its learner stands when all its people have come."""
    for name, (protocol, values) in zip(NAMES, PLANS, strict=True):
        file = folder / "plans" / f"{name}.json"
        file.parent.mkdir(exist_ok=True)
        words = ["plan", protocol, *USERS, *TARGET, *values, "-o", str(file), "--json"]
        assert CliRunner().invoke(app, words).exit_code == 0, words
        state = _end_of(load_plan(file))
        if hasattr(state, "document"):
            _write(folder / "states" / f"{name}.json", state.document())


def _end_of(plan: Any) -> Any:
    """The learner's last state, after messages of made-up people."""
    bits = RandomBits.seeded(7)
    values = plan.in_order(plan.check_values(synthetic_values(plan, seed=7)), bits=bits)

    def prepared(_: Any, first: int, users: int, clients: RandomBits) -> Any:
        places = np.arange(first, first + users)
        return plan.prepare(values[first : first + users], bits=clients, positions=places)

    *_, last = ask_and_tell(plan.learner(), plan.open_batches, prepared, len(values), bits=bits)
    return last


def _keys(folder: Path) -> None:
    """An analyzer's folder with two rotations, a hop's, an issuer's: all of test keys."""
    keys = folder / "keys"
    keys.mkdir()
    first = make_keys(keys / "analyzer", bits=BITS)
    rotate_keys(keys / "analyzer", bits=BITS)
    retire_keys(keys / "analyzer", {})
    rotate_keys(keys / "analyzer", bits=BITS, expires=LAST_DAY)
    rotate_tokens(keys / "analyzer", bits=BITS)
    remember_task(keys / "analyzer", "0" * 64, first)
    make_gateway_key(keys / "analyzer")
    for number in (1, 2):
        make_hop_keys(keys / f"hop-{number}", bits=BITS)
    make_issuer_keys(keys / "issuer", "issuer.example", bits=BITS)
    for lock in keys.rglob("*.lock"):
        lock.unlink()


def _tasks(folder: Path) -> None:
    """A task of each version: plain, of a cascade, with a last day, with an issuer."""
    tasks, key = folder / "tasks", load_private_key(folder / "keys" / "analyzer")
    tasks.mkdir()
    plan = BinarySum.plan(users=1000, privacy=PRIVACY, live=True)
    hops = [load_hop_public_key(folder / "keys" / f"hop-{number}") for number in (1, 2)]
    issuer = load_issuer(folder / "keys" / "issuer")
    kinds: dict[str, dict[str, Any]] = {
        "plain": {},
        "cascade": {"hops": hops},
        "expiring": {"expires": {key.public.text: LAST_DAY}},
        "admitted": {"issuer": issuer},
    }
    for name, more in kinds.items():
        Task.create(plan, key.public, bits=BITS, **more).save(tasks / f"{name}.json")
    _write(tasks / "ended.json", json.loads(Ended("2026-01-31", (tasks / "plain.json").read_text("utf-8")).text))


def _campaigns(folder: Path) -> None:
    """A campaign of each learner."""
    campaigns = folder / "campaigns"
    campaigns.mkdir()
    key, signing = load_private_key(folder / "keys" / "analyzer"), load_signing_key(folder / "keys" / "analyzer")
    for name, (learner, drop_after) in LEARNERS.items():
        limits: dict[str, Any] = {"drop_after": drop_after, "allow_unbounded": True}
        rows = {"rows": ROWS} if name == "fit" else {}
        campaign = Campaign.create(learner(), key.public, signing.public, bits=BITS, **limits, **rows)
        campaign.save(campaigns / f"{name}.json")


def _ledger(folder: Path) -> None:
    file = folder / "ledger.json"
    ledger = Ledger.open(file, "a panel of nobody", Privacy(3, 1e-5))
    for method in ("coins", "shares"):
        ledger.spend(entry_of(BinarySum.plan(users=1000, privacy=PRIVACY, method=method), DAY))
    file.with_name("ledger.json.lock").unlink(missing_ok=True)


def _model(folder: Path) -> None:
    people = np.arange(400)
    features = np.stack([((people * 7) % 11) / 10, ((people * 3) % 13) / 12], axis=1)
    bounds: dict[str, Any] = {"feature_bounds": (0, 1), "classes": ["no", "yes"], "random_state": 7}
    estimator = ShuffleLogisticRegression(epsilon=2, **bounds)
    answers = np.where(features[:, 0] > features[:, 1], "yes", "no")
    with warnings.catch_warnings():
        # That so few people teach little is not what this file is about.
        warnings.simplefilter("ignore", ShuffleDPWarning)
        estimator.fit(features, answers).model().save(folder / "model.json")
    # What the first programs of this version wrote.
    shutil.copy(FIRST_MODEL, folder / "model-of-the-first-schema.json")


def _migrations(folder: Path) -> None:
    files = sorted(migrating.FOLDER.rglob("*.sql"))
    _write(folder / "migrations.json", [path.relative_to(migrating.FOLDER).as_posix() for path in files])


def _sweep(folder: Path) -> None:
    cells = Finished(folder / "cells.txt", resume=False)
    cells.add({"a" * 64: {"users": 100, "error": 1.25}, "b" * 64: [1, 2, 3]})


def _results(folder: Path) -> None:
    """What one piece of a batch says: nine people with a 1 and their noise."""
    plan = _plan_of_few()
    payloads = np.array([1] * 9 + [0] * 3, dtype=np.uint8)
    plain = pack_messages(payloads, None, payloads.size, bits=BITS)
    (folder / "result.bin").write_bytes(PieceResult.of(plan, plan.users, b"".join(plain), 2, is_first=True).to_bytes())


def _plan_of_few() -> Any:
    return BinarySum.plan(users=30, privacy=EASY, method="coins")


def _batch(folder: Path) -> None:
    """Sealed reports in files, and the messages that were in them."""
    key = load_private_key(folder / "keys" / "analyzer")
    task = Task.create(_plan_of_few(), key.public, bits=BITS)
    batch = folder / "batch"
    batch.mkdir()
    task.save(batch / "task.json")
    collect_reports(sealed_reports(task, np.arange(30) % 3 == 0, bits=BITS), batch / "sealed")
    with LocalEngine(processes=1) as engine:
        open_files(batch / "sealed", batch / "opened", task=task, keys=(key,), engine=engine, key=JobKey.seeded(1))


def _job(folder: Path) -> None:
    """A shuffle of those files that was stopped before its first message."""
    out = folder / "batch" / "shuffled"
    stopped = patch.object(shuffling, "told_of", side_effect=KeyboardInterrupt)
    with suppress(KeyboardInterrupt), stopped, LocalEngine(processes=1) as engine:
        shuffling.shuffle_files(folder / "batch" / "sealed", out, engine=engine, key=JobKey.seeded(1))
    work_folder(out).rename(folder / "batch" / "stopped-job")


def _admission(folder: Path) -> None:
    """Two invitations; one token that was fetched, one that waits for its issuer."""
    admission = folder / "admission"
    admission.mkdir()
    task = Task.load(folder / "tasks" / "admitted.json")
    gate = task.gate
    assert gate is not None
    invitations = [test_token("invitation", number) for number in (1, 2)]
    (admission / "invitations.txt").write_text("".join(f"{each}\n" for each in invitations))
    issuer = IssuerDesk(gate.issuer, load_issuer_key(folder / "keys" / "issuer"), people_of(invitations), BITS)
    drawn = [PendingToken(test_bytes(f"nonce {number}"), *_drawn(number)) for number in (1, 2)]
    store = folder / "issuer.db"
    with closing(open_issuer_store(store)) as opened:
        person = issuer.person(invitations[0])
        blinded = opened.write(lambda db: issuer.admit(db, person, drawn[0].request(gate)))
    token = drawn[0].token(gate, issuer.sign(blinded))
    (admission / "tokens.txt").write_text(f"{in_base64url(token.data)}\n")
    waiting = {"version": 1, "task_id": gate.task_id, "pending": [drawn[1].document()]}
    _write(admission / "tokens.txt.pending", waiting)
    _stored(store, folder)


def _drawn(number: int) -> tuple[bytes, bytes]:
    """Salt and factor of a token, in place of drawn ones."""
    return (test_bytes(f"salt {number}") * 2)[:48], b"\0" + (test_bytes(f"factor {number}") * 8)[:255]


def _stored(store: Path, folder: Path) -> None:
    """A closed store, compressed: most of its pages are empty."""
    (folder / "stores").mkdir(exist_ok=True)
    with gzip.GzipFile(folder / "stores" / f"{store.name}.gz", "wb", mtime=0) as file:
        file.write(store.read_bytes())
    for left in store.parent.glob(f"{store.name}*"):
        left.unlink()


def _live(folder: Path) -> None:
    """Both servers and a device in the middle of their work: a running count, and campaigns after two models."""
    with TemporaryDirectory() as place:
        keys = folder / "keys" / "analyzer"
        world = World(Path(place), key=load_private_key(keys), signing=load_signing_key(keys))
        count = small_task(world.key.public)
        count.save(folder / "stores" / "count.json")
        world.add_task(count)
        ones = 0
        for _ in range(3):
            ones += sum(report(world, count)[1] for _ in range(3))
            drain(world)
        # A tenth person's report waits at the shuffler, an eleventh's on the device.
        report(world, count)
        waiting = report(world, count, send=False)[0]
        for file in sorted((folder / "campaigns").glob("*.json")):
            _two_models(world, Campaign.load(file), file)
        paths = {role: store.path for role, store in world.stores.items()}
        world.close()
        outbox = Path(place) / "outbox.db"
        with closing(open_outbox(outbox)) as opened:
            opened.put(count.id, [waiting], "people.csv", (10,))
            opened.sit("c" * 64, Visit(0, 0, 3, 1))
            opened.see("c" * 64, 4)
        for path in (*paths.values(), outbox):
            _stored(path, folder)


def report(world: World, task: Any, value: int = 1, *, send: bool = True) -> tuple[SentReport, int]:
    """The next person's report, and its value; sent to the shuffler unless it is to wait."""
    seat = world.shuffler.take_seats(task.id, 1, task.open_slots).result()[0]
    body = report_of(task, value, seat.batches, bits=world.bits)
    made = SentReport(world.new_id(), seat.seat, body)
    if send:
        accept_one(world.shuffler, task.id, made).result()
    return made, value


def drain(world: World) -> None:
    """All full batches are mixed, delivered and read."""
    world.shuffler.seal_full()
    assert world.shuffler.send_waiting()
    world.analyzer.read_all()


def _two_models(world: World, campaign: Campaign, file: Path) -> None:
    world.add_task(campaign)
    choice = random.Random(7)
    for _ in range(2):
        model = checked_model(world.analyzer.newest_model(campaign.id), campaign)
        task = round_of_model(campaign, model)
        assert task is not None
        while world.analyzer.newest_model(campaign.id).text == newest_text(world, campaign, model.number):
            seat = world.shuffler.take_seats(task.id, 1, task.open_slots).result()[0]
            body = make_reports(task, some_values(task, choice), [seat.batches], bits=world.bits)[0]
            accept_one(world.shuffler, task.id, SentReport(world.new_id(), seat.seat, body)).result()
            drain(world)
    stored = world.stores["analyzer"].read(lambda records: records.state(campaign.id))
    _write(file.with_suffix(".state"), stored["learner"])
    _write(file.with_suffix(".model"), world.analyzer.newest_model(campaign.id).document())


def newest_text(world: World, campaign: Campaign, number: int) -> str:
    """The text of the model of this number."""
    return world.analyzer.model(campaign.id, number).text


_MAKERS = (
    *(_plans, _keys, _tasks, _campaigns, _ledger, _model, _sweep, _results, _batch, _job, _admission, _live),
    _migrations,
)
