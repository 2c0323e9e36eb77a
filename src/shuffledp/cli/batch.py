"""`shuffledp batch`: shuffler and analyzer as jobs on files of messages that were collected elsewhere."""

import shlex
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.engine_options import EngineAsked, on_engine
from shuffledp.cli.output import charged, facts, in_bytes, next_steps, print_json, show

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shuffledp.jobs.manifest import DataManifest
    from shuffledp.jobs.shuffling import Progress

batch_app = typer.Typer(help="Shuffle, open and analyze messages in Parquet files, as jobs.")

Source = Annotated[Path, typer.Argument(help="A Parquet file, or a folder of them.", metavar="IN", show_default=False)]
NewFolder = Annotated[Path, typer.Argument(help="A new folder.", metavar="OUT", show_default=False)]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with a job that was stopped.")]
ReportCount = Annotated[
    int | None, typer.Option(help="How many reports the messages came in, if no manifest says it.", metavar="N")
]
MessageColumn = Annotated[
    str | None, typer.Option(help="The messages' column; ciphertext or payload if left out.", metavar="C")
]
LabelColumn = Annotated[str | None, typer.Option(help="The labels' column; label if left out.", metavar="C")]


@contextmanager
def shown_progress(*, shown: bool) -> "Iterator[Progress | None]":
    """A bar a stage on a screen, a line now and then elsewhere, or nothing."""
    from contextlib import ExitStack

    from shuffledp.cli.progress import of_how_much

    if not shown:
        yield None
        return
    with ExitStack() as bars:
        stages: dict[str, Any] = {}

        def tell(what: str, done: int, total: int) -> None:
            if what not in stages:
                bars.pop_all().close()
                stages[what] = bars.enter_context(of_how_much(what, shown=True))
            stages[what](done, total)

        yield tell


@batch_app.command("shuffle")
@on_engine
def batch_shuffle(
    source: Source,
    out: NewFolder,
    column: MessageColumn = None,
    label: LabelColumn = None,
    reports: ReportCount = None,
    at_least: Annotated[int | None, typer.Option(help="Refuse fewer reports than this.", metavar="N")] = None,
    resume: Resume = False,
    as_json: options.AsJson = False,
    *,
    engine: EngineAsked,
) -> None:
    """Put messages in a uniformly random order, and drop everything else that the files say about them."""
    from shuffledp.jobs.shuffling import shuffle_files

    with engine.open() as opened, shown_progress(shown=not as_json) as progress:
        found = shuffle_files(
            source,
            out,
            engine=opened,
            column=column,
            label=label,
            reports=reports,
            at_least=at_least,
            resume=resume,
            progress=progress,
        )
    if as_json:
        print_json({**described(out, found.manifest), "dropped_columns": list(found.dropped), **ignored(source)})
        return
    left_out = f"{', '.join(found.dropped)}: not read, and not in {out}" if found.dropped else None
    show(facts("Shuffled", [*told(out, found.manifest), ("columns left out", left_out), *told_ignored(source)]))


@batch_app.command("collect")
@options.reads_file
def batch_collect(
    file: options.File,
    out: NewFolder,
    task_file: options.TaskFile,
    column: options.Column = None,
    columns: options.Columns = None,
    reading: Any = None,
    as_json: options.AsJson = False,
) -> None:
    """Randomize and seal values as devices do, and write the ciphertexts: for trials, as this machine sees values."""
    from shuffledp.cli.domains import read_own_values
    from shuffledp.cli.progress import working
    from shuffledp.jobs.collecting import collect_reports, sealed_reports
    from shuffledp.randomness import RandomBits
    from shuffledp.service.task import Task

    task = Task.load(task_file)
    values = read_own_values(file, column, columns, task.plan.domain, reading)
    with working("sealing", shown=not as_json):
        manifest = collect_reports(sealed_reports(task, values, bits=RandomBits.secure()), out)
    if as_json:
        print_json(described(out, manifest))
        return
    show(facts("Collected", told(out, manifest)))
    next_steps([("mix them", f"batch shuffle {shlex.quote(str(out))} SHUFFLED")])


@batch_app.command("open")
@on_engine
def batch_open(
    source: Source,
    out: NewFolder,
    task_file: options.TaskFile,
    keys: options.KeysFolder,
    column: MessageColumn = None,
    resume: Resume = False,
    as_json: options.AsJson = False,
    *,
    engine: EngineAsked,
) -> None:
    """Open the ciphertexts of a task with the analyzer's key, and drop copies; people who are too few are refused."""
    from shuffledp.jobs.opening import open_files
    from shuffledp.service.keys import ANALYZER
    from shuffledp.service.task import Task

    task, ring = Task.load(task_file), ANALYZER.ring(keys)
    with engine.open() as opened, shown_progress(shown=not as_json) as progress:
        manifest = open_files(
            source, out, task=task, keys=ring, engine=opened, column=column, resume=resume, progress=progress
        )
    if as_json:
        print_json({**described(out, manifest), **ignored(source)})
        return
    counted = [(name, f"{manifest.facts[name]:,}") for name in ("fillers", "malformed", "copies")]
    show(facts("Opened", [*told(out, manifest), *counted, ("task", task.id[:12]), *told_ignored(source)]))
    again = f"batch analyze {shlex.quote(str(out))} --task {shlex.quote(str(task_file))}"
    next_steps([("the estimate", again)])


@batch_app.command("analyze")
@on_engine
def batch_analyze(
    source: Source,
    plan_file: Annotated[
        Path | None, typer.Option("--plan", help="The plan of messages that need not be opened.", metavar="FILE")
    ] = None,
    task_file: Annotated[Path | None, typer.Option("--task", help="The task's file instead.", metavar="FILE")] = None,
    column: MessageColumn = None,
    label: LabelColumn = None,
    reports: ReportCount = None,
    ledger: options.LedgerFile = None,
    as_json: options.AsJson = False,
    *,
    engine: EngineAsked,
) -> None:
    """The estimate from all messages, with its error; people who are too few are refused."""
    from dataclasses import asdict
    from datetime import UTC, datetime

    from shuffledp.cli.estimate import tell_estimate
    from shuffledp.errors import ParameterError
    from shuffledp.jobs.analyzing import analyze_files
    from shuffledp.jobs.charging import charge_data
    from shuffledp.protocols.catalogue import load_plan
    from shuffledp.protocols.ledger_entries import entry_of
    from shuffledp.service.charging import entry_of_served
    from shuffledp.service.task import Task

    if (plan_file is None) == (task_file is None):
        raise ParameterError("plan", plan_file, "or --task must be given, and not both", "add one of the two")
    task = None if task_file is None else Task.load(task_file)
    plan = task.plan if task is not None else load_plan(plan_file)  # type: ignore[arg-type]
    asked = entry_of(plan, datetime.now(UTC)) if task is None else entry_of_served(task)
    with engine.open() as opened, shown_progress(shown=not as_json) as progress:
        found = analyze_files(
            source,
            plan,
            engine=opened,
            task_id=None if task is None else task.id,
            column=column,
            label=label,
            reports=reports,
            charge=None if ledger is None else lambda messages: charge_data(ledger, asked, messages),
            progress=progress,
        )
    newest = asdict(found.release)
    if as_json:
        whose = {"task_id": None if task is None else task.id, "fingerprint": plan.fingerprint}
        said = {"epsilon": plan.privacy.epsilon, "delta": plan.privacy.delta, "users": plan.users}
        words = {} if plan.domain.named is None else {"categories": plan.domain.named.names()}
        counted = {"messages": found.tally.messages, "malformed": found.tally.malformed}
        print_json({"schema": 1, **whose, **newest, **said, **counted, **words, **ignored(source)})
        return
    named = ("task", None if task is None else task.id[:12])
    counted_in = ("messages", f"{found.tally.messages:,} in {source}")
    tell_estimate(plan, newest, [named, counted_in, *charged(ledger), *told_ignored(source)])


def described(out: Path, manifest: "DataManifest") -> dict[str, Any]:
    """What every job says of the data set that it has made, as JSON."""
    return {
        "schema": 1,
        "out": str(out),
        "kind": manifest.rows.kind,
        "messages": manifest.messages,
        "reports": manifest.reports,
        "files": len(manifest.files),
        "bytes": sum(file.size for file in manifest.files),
        **manifest.facts,
    }


def ignored(source: Path) -> dict[str, list[str]]:
    """The Parquet files that a job did not take for data, as JSON; nothing where there is none."""
    from shuffledp.jobs.manifest import ignored_in

    names = ignored_in(source)
    return {"ignored_files": names} if names else {}


def told_ignored(source: Path) -> list[tuple[str, str | None]]:
    """Files that were left out, in words."""
    names = ignored(source).get("ignored_files", [])
    why = "names that begin with _ or a dot are none of the data"
    return [("files left out", f"{len(names):,}, such as {names[0]}: {why}")] if names else []


def told(out: Path, manifest: "DataManifest") -> list[tuple[str, str | None]]:
    """What was written, in words."""
    size = sum(file.size for file in manifest.files)
    files = "1 file" if len(manifest.files) == 1 else f"{len(manifest.files):,} files"
    return [
        ("written", f"{out}: {files}, {in_bytes(size)}, and manifest.json"),
        ("messages", f"{manifest.messages:,} {manifest.rows.kind}"),
        ("reports", None if manifest.reports is None else f"{manifest.reports:,}"),
    ]
