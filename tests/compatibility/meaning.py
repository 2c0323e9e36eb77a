"""What each kind of file says when this version reads it: ids, guarantees, estimates, and what happens next."""

import gzip
import hashlib
import json
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from harness.messages import messages_of_files
from harness.world import World, accept_one
from shuffledp import load_plan
from shuffledp.accounting.ledger import Ledger
from shuffledp.cli.token import read_tokens
from shuffledp.engines import LocalEngine
from shuffledp.engines.sweeping import Finished
from shuffledp.estimates import answer_document
from shuffledp.jobs.analyzing import analyze_files
from shuffledp.jobs.job import work_folder
from shuffledp.jobs.manifest import DataManifest
from shuffledp.jobs.shuffling import shuffle_files
from shuffledp.learn.estimators.models import load_model
from shuffledp.service.admission.issuer_keys import load_issuer, load_issuer_key
from shuffledp.service.admission.issuing import IssuerDesk, open_issuer_store, people_of, read_invitations
from shuffledp.service.admission.private_tokens import Token
from shuffledp.service.admission.requesting import PendingToken
from shuffledp.service.analyzer.results import PieceResult
from shuffledp.service.campaign import Campaign
from shuffledp.service.ended import Ended
from shuffledp.service.key_notes import created_tasks, load_expiries, retired_keys
from shuffledp.service.keys import ANALYZER, MODELS, load_hop_key, load_private_key, load_signing_key, load_tokens
from shuffledp.service.models import checked_model
from shuffledp.service.oblivious.gateway_keys import gateway_keys
from shuffledp.service.store import open_outbox
from shuffledp.service.store.postgresql import migrating
from shuffledp.service.task import Task
from shuffledp.service.wire import SignedText

from .making import BITS, drain, report

ROWS_OF_NOBODY = [[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]]


def meanings(folder: Path) -> dict[str, Any]:
    """What every kind of file in a version's folder says, as JSON."""
    return {kind: json.loads(json.dumps(said(folder))) for kind, said in MEANINGS.items()}


def _stems(folder: Path, pattern: str = "*.json") -> dict[str, Path]:
    return {path.stem: path for path in sorted(folder.glob(pattern))}


def _guarantee(found: Any) -> Any:
    return {"epsilon": found.claim.epsilon, "claimed": found.claim.delta, "proved": found.delta, "holds": found.holds}


def _plan(folder: Path) -> Any:
    return {name: _plan_says(load_plan(path)) for name, path in _stems(folder / "plans").items()}


def _plan_says(plan: Any) -> Any:
    return {
        "fingerprint": plan.fingerprint,
        "method": plan.method,
        "guarantee": _guarantee(plan.guarantee()),
        "pair": plan.guarantee().pair.describe(),
        "messages": plan.messages_per_user_max,
    }


def _state(folder: Path) -> Any:
    """What is known in the end."""
    learners = {name: load_plan(folder / "plans" / path.name).learner() for name, path in _all_states(folder).items()}
    return {
        name: answer_document(learners[name].estimate(learners[name].resume(_json(path))))
        for name, path in _all_states(folder).items()
    }


def _all_states(folder: Path) -> dict[str, Path]:
    return _stems(folder / "states")


def _json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def _task(folder: Path) -> Any:
    found = {name: Task.load(path) for name, path in _stems(folder / "tasks").items() if name != "ended"}
    return {
        name: {
            "id": task.id,
            "key": task.public_key.text,
            "plan": task.plan.fingerprint,
            "guarantee": _guarantee(task.plan.guarantee()),
            "hops": [hop.text for hop in task.hops],
            "expires": dict(task.expires),
            "issuer": None if task.gate is None else task.gate.issuer.name,
            "shuffler": task.routing.document(),
        }
        for name, task in found.items()
    }


def _ended(folder: Path) -> Any:
    found = Ended.of((folder / "tasks" / "ended.json").read_text("utf-8").strip())
    assert found is not None and found.task is not None
    return {"when": found.when, "task": Task.from_text(found.task.strip()).id}


def _campaigns(folder: Path) -> dict[str, Campaign]:
    return {name: Campaign.load(path) for name, path in _stems(folder / "campaigns").items()}


def _campaign(folder: Path) -> Any:
    return {
        name: {
            "id": campaign.id,
            "learner": campaign.learner.fingerprint,
            "guarantee": answer_document(campaign.learner.guarantee()),
            "rounds": campaign.routing.rounds,
        }
        for name, campaign in _campaigns(folder).items()
    }


def _state_of_campaign(folder: Path) -> Any:
    """What is known after two models, and what is asked next."""
    said = {}
    for name, campaign in _campaigns(folder).items():
        learner = campaign.learner
        state = learner.resume(_json(folder / "campaigns" / f"{name}.state"))
        cohort = learner.ask(state)
        step = None if cohort is None or cohort.step is None else cohort.step.document()
        said[name] = {
            "users": getattr(state, "users", None),
            "known": answer_document(learner.known(state)),
            "step": step,
        }
    return said


def _signed_model(folder: Path) -> Any:
    said = {}
    for name, campaign in _campaigns(folder).items():
        signed = SignedText.from_document(_json(folder / "campaigns" / f"{name}.model"))
        model = checked_model(signed, campaign)
        said[name] = {"number": model.number, "estimate": answer_document(model.estimate)}
    return said


def _ledger(folder: Path) -> Any:
    ledger = Ledger.load(folder / "ledger.json")
    account, left = ledger.account, ledger.left()
    return {"left": left.in_words(), "spent": account.document()["spent"], "version": account.version}


def _model(folder: Path) -> Any:
    said = {}
    for path in sorted(folder.glob("model*.json")):
        model = load_model(path)
        said[path.name] = {
            "fingerprint": model.fingerprint,
            "guarantee": model.guarantee,
            "scores": model.scores(np.array(ROWS_OF_NOBODY)).tolist(),
        }
    return said


def _cells(folder: Path) -> Any:
    cells = Finished(folder / "cells.txt", resume=True)
    return {name: cells[name] for name in ("a" * 64, "b" * 64)}


def _result(folder: Path) -> Any:
    found = PieceResult.from_bytes((folder / "result.bin").read_bytes())
    assert found.tally is not None
    counted = {"counts": found.tally.counts.tolist(), "reports": found.tally.reports}
    return {**counted, "malformed": found.malformed, "messages": found.messages, "ids": len(found.ids)}


def _manifest(folder: Path) -> Any:
    """A data set's estimate, and what its manifest says beside it."""
    task = Task.load(folder / "batch" / "task.json")
    with LocalEngine(processes=1) as engine:
        found = analyze_files(folder / "batch" / "opened", task.plan, engine=engine, task_id=task.id)
    opened = DataManifest.load(folder / "batch" / "opened")
    said = {"fingerprint": opened.fingerprint.hex(), "reports": opened.reports, "facts": dict(opened.facts)}
    return {**said, "release": answer_document(found.release)}


def _job(folder: Path) -> Any:
    """A stopped job goes on: every message is there once."""
    batch = folder / "batch"
    before = messages_of_files(batch / "sealed")
    out = batch / "shuffled"
    shutil.copytree(batch / "stopped-job", work_folder(out))
    (work_folder(out) / "out").mkdir(exist_ok=True)
    (work_folder(out) / "key").chmod(0o600)
    try:
        with LocalEngine(processes=1) as engine:
            shuffle_files(batch / "sealed", out, engine=engine, resume=True)
        after = messages_of_files(out)
    finally:
        shutil.rmtree(out, ignore_errors=True)
        shutil.rmtree(work_folder(out), ignore_errors=True)
    return {"messages": len(after), "same": sorted(before) == sorted(after), "mixed": before != after}


def _keys(folder: Path) -> Any:
    keys = folder / "keys" / "analyzer"
    tokens = load_tokens(keys)
    return {
        "analyzer": [key.public.text for key in ANALYZER.ring(keys)],
        "models": [key.public.text for key in MODELS.ring(keys)],
        "gateway": [key.config.public.text for key in gateway_keys(keys)],
        "tokens": {"now": dict(tokens.secrets), "older": {role: list(some) for role, some in tokens.older.items()}},
        "expires": load_expiries(keys),
        "hops": [load_hop_key(folder / "keys" / name).public.text for name in ("hop-1", "hop-2")],
    }


def _notes(folder: Path) -> Any:
    keys = folder / "keys" / "analyzer"
    return {"created": created_tasks(keys), "retired": retired_keys(keys)}


def _desk(folder: Path) -> IssuerDesk:
    invitations = read_invitations(folder / "admission" / "invitations.txt")
    keys = folder / "keys" / "issuer"
    return IssuerDesk(load_issuer(keys), load_issuer_key(keys), people_of(invitations), BITS)


def _admission(folder: Path) -> Any:
    """A token that was fetched is valid; the one that waits is signed now, and is valid, too."""
    gate = Task.load(folder / "tasks" / "admitted.json").gate
    assert gate is not None
    [fetched] = read_tokens(folder / "admission" / "tokens.txt")
    document = _json(folder / "admission" / "tokens.txt.pending")
    [pending] = [PendingToken.from_document(each) for each in document["pending"]]
    desk = _desk(folder)
    with closing(open_issuer_store(unpacked(folder, "issuer"))) as store:
        first, second = (desk.person(each) for each in read_invitations(folder / "admission" / "invitations.txt"))
        known = store.read(lambda db: db.execute("SELECT count(*) FROM signed WHERE person = ?", (first,)).fetchone())
        blinded = store.write(lambda db: desk.admit(db, second, pending.request(gate)))
    token = pending.token(gate, desk.sign(blinded))
    return {
        "issuer": gate.issuer.name,
        "signed before": known[0],
        "fetched": gate.admits(Token.from_bytes(fetched)),
        "fetched now": gate.admits(token),
    }


def unpacked(folder: Path, name: str) -> Path:
    """A store's file, beside its compressed one."""
    path = folder / "stores" / f"{name}.db"
    path.write_bytes(gzip.decompress(path.with_name(f"{name}.db.gz").read_bytes()))
    return path


def _stores(folder: Path) -> Any:
    """Servers and a device go on where they stopped: an answer that was given stays, the next one is right."""
    keys = folder / "keys" / "analyzer"
    count = Task.load(folder / "stores" / "count.json")
    world = World(folder / "stores" / "world", key=load_private_key(keys), signing=load_signing_key(keys))
    world.close()
    for role, store in world.stores.items():
        shutil.copy(unpacked(folder, role), store.path)
        world._start(role, store.path)
    before = world.analyzer.history(count.id, 0, 100)
    models = {name: world.analyzer.newest_model(each.id).text for name, each in _campaigns(folder).items()}
    with closing(open_outbox(str(unpacked(folder, "outbox")))) as outbox:
        waiting = outbox.first(count.id, 10, 1 << 20)
        device = {
            "waiting": [each.report_id for each in waiting],
            "rows": outbox.rows_done(count.id, "people.csv"),
            "visits": [answer_document(visit) for visit in outbox.visits("c" * 64)],
            "seen": outbox.newest_seen("c" * 64),
        }
    for each in waiting:
        accept_one(world.shuffler, count.id, each).result()
    report(world, count)
    drain(world)
    after = world.analyzer.history(count.id, 0, 100)
    world.close()
    shutil.rmtree(folder / "stores" / "world")
    digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in models.items()}
    # Noise of those who report now is new: what stays is how many were counted.
    return {"releases": before, "models": digests, "device": device, "then": [each["time"] for each in after]}


def _migrations(folder: Path) -> Any:
    """Numbered changes of PostgreSQL's tables that were released are never edited: a store has run them."""
    names = _json(folder / "migrations.json")
    return {name: hashlib.sha256((migrating.FOLDER / name).read_bytes()).hexdigest() for name in names}


MEANINGS: dict[str, Callable[[Path], Any]] = {
    "plan": _plan,
    "state": _state,
    "task": _task,
    "ended task": _ended,
    "campaign": _campaign,
    "state of a campaign": _state_of_campaign,
    "signed model": _signed_model,
    "ledger": _ledger,
    "model": _model,
    "sweep": _cells,
    "result of a piece": _result,
    "data set": _manifest,
    "job": _job,
    "keys": _keys,
    "notes beside keys": _notes,
    "tokens and an issuer": _admission,
    "stores": _stores,
    "PostgreSQL": _migrations,
}
"""Every kind of file that a user keeps, with what it says."""
