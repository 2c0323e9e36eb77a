"""The analyzer's second half as a job: messages are tallied part by part, tallies added up, and the estimate read."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shuffledp.engines.contract import Engine
from shuffledp.errors import DataError, ParameterError
from shuffledp.jobs.batches import OneBatch
from shuffledp.jobs.manifest import DataManifest, DataSet
from shuffledp.jobs.rows import LABEL, MessageRows
from shuffledp.jobs.shuffling import Progress, told_of
from shuffledp.jobs.tallying import TallyingPart, added
from shuffledp.messages import Batch
from shuffledp.protocols.plan import Plan
from shuffledp.protocols.tallies import Tally
from shuffledp.service.analyzer.desk import release_of
from shuffledp.service.store.contract import Release

_PART_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class Analyzed:
    """What the messages of a data set say.

    Attributes:
        release: the estimate as it is published, with its error.
        manifest: of the messages.
        tally: what is left of them.
    """

    release: Release
    manifest: DataManifest
    tally: Tally


def analyze_files(
    source: Path,
    plan: Plan,
    *,
    engine: Engine,
    task_id: str | None = None,
    column: str | None = None,
    label: str | None = None,
    reports: int | None = None,
    charge: Callable[[str], object] | None = None,
    progress: Progress | None = None,
) -> Analyzed:
    """The estimate of a plan from all messages of its people, in files.

    Args:
        source: a Parquet file, or a folder of them, with a column `payload` and perhaps `label`: what `open_files` or
            `shuffle_files` wrote, or anybody else.
        plan: what the people were asked.
        engine: what counts.
        task_id: the task that the messages must be of, where their manifest says so.
        column: the column of numbers, where it has another name.
        label: the column of labels, where it has another name.
        reports: how many reports the messages came in, where no manifest says it.
        charge: told the name of the messages (`name_of`) before they are counted: it may refuse.
        progress: told how far it is.

    Raises:
        TooFewReportsError: fewer reports than the plan's users, or fewer messages than those people send whom the
            plan's honest fraction counts on.
        BatchError: the messages were spoiled and say nothing.
        ParameterError: the data are not what they must be.
    """
    batch = OneBatch.of(plan)
    own = {"column": column, "label": label, "reports": reports}
    data = DataSet.at(source, engine, **own, fingerprints=charge is not None)  # type: ignore[arg-type]
    _check(data, batch, task_id)
    if charge is not None:
        charge(name_of(data))
    parts = data.parts(_PART_BYTES)
    learner = plan.learner()
    state = learner.start()
    cohort = learner.ask(state)
    assert cohort is not None
    ((level, open_batch),) = cohort.closing(cohort.users).items()
    mechanism = open_batch.mechanism
    malformed = int(data.manifest.facts.get("malformed", 0))
    # How many reports there are is said once, whatever the parts.
    tally = mechanism.tally(Batch(np.empty(0, dtype=np.uint64), batch.users), malformed)
    if parts:
        task = TallyingPart(mechanism.tallier, data.columns, plan.is_labelled)
        counted = engine.fold(parts, task, added, progress=told_of(progress, "counting", len(parts)))
        tally = Tally.merge((tally, counted))
    data.check_unchanged()
    told, dropped = mechanism.read(tally)
    state = learner.tell(state, cohort.users, {level: told})
    answer: Any = learner.estimate(state)
    width = learner.widening(mechanism, dropped, False)
    return Analyzed(release_of(answer, batch.users, dropped, 0, width), data.manifest, tally)


def name_of(data: DataSet) -> str:
    """What tells the messages of a data set from all others: 64 hexadecimal digits.

    Messages that were opened are known by the sum of their random ids, in whichever order and files they are. Of
    others nothing is known but their files: a copy of them in another order has another name. Equal counts are no
    sign of equal messages, as two collections may have them by chance, and together tell more than one.
    """
    own = data.manifest.facts.get("batch") or data.manifest.fingerprint.hex()
    return hashlib.sha256(json.dumps([own, *data.columns]).encode()).hexdigest()


def _check(data: DataSet, batch: OneBatch, task_id: str | None) -> None:
    """Refuse messages that cannot be all messages of the plan's people."""
    rows, manifest = data.manifest.rows, data.manifest
    if not isinstance(rows, MessageRows):
        raise DataError("in", str(data.source), "must be opened messages, and are ciphertexts", "run batch open first")
    if batch.plan.is_labelled and rows.label is None:
        raise DataError(
            "in", str(data.source), f"must have a column {LABEL}, as the plan's messages do", "add --label C"
        )
    known = manifest.facts.get("task")
    if task_id is not None and known not in (None, task_id):
        raise DataError("task", task_id[:12], f"must be that of the messages, {str(known)[:12]}", "name its file")
    if manifest.reports is None:
        raise ParameterError(
            "reports", None, "must be given, as no manifest says how many there are", "add --reports N"
        )
    batch.plan.check_reports(manifest.reports)
    if manifest.messages > batch.size:
        problem = f"must be at most {batch.messages:,} of each of {batch.users:,} people"
        raise DataError("messages", f"{manifest.messages:,}", problem, "these are not the messages of one batch")
    if batch.plan.messages_per_user_mean == batch.messages:
        missing = batch.size - manifest.messages
        batch.check_missing(missing, f"messages are {manifest.messages:,} of {batch.size:,}, as everybody sends them")
    else:
        batch.check_enough(manifest.messages)
