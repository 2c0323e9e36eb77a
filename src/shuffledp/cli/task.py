"""`shuffledp task`: from a plan to an immutable task that clients, shuffler and analyzer share."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.cascade_output import (
    KeyFolders,
    cascade_document,
    cascade_tables,
    hops_in_words,
    hops_see,
    relay_sees,
)
from shuffledp.cli.output import (
    collusions_listed,
    collusions_of,
    facts,
    heading,
    in_bytes,
    next_steps,
    print_json,
    show,
)
from shuffledp.cli.sending import send_document
from shuffledp.cli.token_output import admission_row
from shuffledp.errors import ParameterError

if TYPE_CHECKING:
    from shuffledp.protocols.plan import Plan
    from shuffledp.service.cost import MeasuredCost, TaskCost
    from shuffledp.service.task import Task

task_app = typer.Typer(help="Make a task from a plan, look at one, or hand it to servers: create, show, send.")

File = Annotated[Path, typer.Argument(help="The task's file.", metavar="FILE")]

_ANALYZER = "the analyzer"
_ISSUER_SEES = "who asked for a token; not the token, nor whether and when it was used"
_SHUFFLER_SEES = ("the shuffler", "which device reports, and ciphertexts that only the analyzer can open")


@task_app.command("create", cls=options.OpenCommand)
@options.takes_plan(protocol="option")
def create(
    plan: "Plan",
    keys: Annotated[Path, typer.Option(help="The folder of keys, or analyzer.pub itself.", metavar="FOLDER")],
    out: Annotated[Path, typer.Option("-o", "--out", help="The task's file, a new one.", metavar="FILE")],
    hop: options.HopKeys = None,
    issuer: options.IssuerFile = None,
    allow_unbounded: Annotated[
        bool, typer.Option("--allow-unbounded", help="Allow a method in which one lying client can spoil a batch.")
    ] = False,
    ledger: Annotated[
        Path | None, typer.Option(help="Spend the task's epsilon and delta from this budget.", metavar="FILE")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Make a task: a plan, the public keys of analyzer and hops, and what a shuffler may know. It is never changed."""
    from shuffledp.accounting.ledger import Ledger
    from shuffledp.files import settle_name, whole_file
    from shuffledp.randomness import RandomBits
    from shuffledp.service.admission.issuer_keys import load_issuer
    from shuffledp.service.charging import entry_of_served
    from shuffledp.service.cost import MeasuredCost, TaskCost
    from shuffledp.service.key_notes import load_expiries
    from shuffledp.service.keys import load_hop_public_key
    from shuffledp.service.rotation import current_public_key, remember_task
    from shuffledp.service.task import Task

    key, hops = current_public_key(keys), [load_hop_public_key(each) for each in hop or ()]
    if out.exists():
        raise ParameterError("out", str(out), "must be a new file", "name another: a task is never changed")
    named = None if issuer is None else load_issuer(issuer)
    expires, bits = load_expiries(keys, hop or ()), RandomBits.secure()
    made = Task.create(plan, key, bits=bits, allow_unbounded=allow_unbounded, hops=hops, expires=expires, issuer=named)
    budget = None if ledger is None else Ledger.load(ledger)
    cost = TaskCost.of(made.routing)
    measured = MeasuredCost.of(cost)
    if not as_json:
        # Before anything is written or spent: there is still time to plan otherwise.
        show(facts("What it will cost", _cost_in_words(made, cost, measured)))
        show(*(f"Warning: {warning}" for warning in cost.warnings))
    with whole_file(out) as file:
        file.write(made.text.encode() + b"\n")
        if budget is not None:
            # Between writing and naming the file: if the budget refuses, there is no file; if it is there, it is paid.
            budget.spend(entry_of_served(made))
    settle_name(out)
    remember_task(keys, made.id, key)
    more = {"out": out, "ledger": ledger}
    folders = KeyFolders(keys if keys.is_dir() else None, tuple(hop or ()))
    _report(made, as_json=as_json, more=more, measured=measured.document(), folders=folders)


@task_app.command("show")
def show_task(file: File, as_json: options.AsJson = False) -> None:
    """What a task asks, how it protects, what goes where, and who sees what."""
    from shuffledp.service.task import Task

    _report(Task.load(file), as_json=as_json, more={})


@task_app.command("send")
def send(
    file: File,
    token_file: Annotated[Path, typer.Option(help="The file of the token for admin.", metavar="FILE")],
    shuffler: options.ShufflerUrl = None,
    analyzer: options.AnalyzerUrl = None,
    as_json: options.AsJson = False,
) -> None:
    """Have servers that are running take a task; nothing changes where it is served already."""
    from shuffledp.service.task import Task

    send_document("task", Task.load(file), token_file, shuffler, analyzer, as_json=as_json)


def _who_sees_what(task: "Task") -> list[tuple[str, str]]:
    most = task.routing.longest_report_bytes
    return [
        ("the network", f"that a device reports, and at most {most:,} bytes, whatever the value"),
        *([] if task.gate is None else [(f"the issuer, {task.gate.issuer.name}", _ISSUER_SEES)]),
        *(hops_see(len(task.hops)) or [_SHUFFLER_SEES]),
        *relay_sees(len(task.hops)),
        (_ANALYZER, "the messages of each full batch in random order, without senders and times"),
    ]


def _cost_in_words(task: "Task", cost: "TaskCost", measured: "MeasuredCost") -> list[tuple[str, str | None]]:
    from shuffledp.service.cost import LARGE_REPORT_BYTES

    users, speed = task.routing.users, measured.speed_in_words(cost)
    large = f", more than {LARGE_REPORT_BYTES:,}" if cost.report_bytes_max > LARGE_REPORT_BYTES else ""
    messages = f"at most {cost.report_messages_max:,} messages, {cost.report_bytes_max:,} bytes{large}"
    return [
        ("a report", f"{messages}; {cost.report_bytes_mean:,.0f} bytes on average"),
        ("all reports", f"{in_bytes(cost.upload_bytes)} from {users:,} devices"),
        (
            "devices' CPU",
            f"{measured.device_seconds_a_report:.2g} s a report, {measured.device_seconds:,.2g} s in all, {speed}",
        ),
        ("the analyzer's CPU", f"{measured.analyzer_seconds:,.2g} s to open all messages, at this machine's speed"),
        ("each hop's CPU", f"{measured.hop_seconds:,.2g} s to take a layer off all messages" if cost.layers else None),
        ("a shuffler stores", f"at most {in_bytes(cost.shuffler_bytes_max)} at a time"),
        ("the analyzer stores", f"{in_bytes(cost.largest_batch_bytes)} for each full batch until it is read"),
    ]


def _report(
    task: "Task",
    *,
    as_json: bool,
    more: dict[str, Any],
    measured: dict[str, Any] | None = None,
    folders: KeyFolders | None = None,
) -> None:
    plan, routing = task.plan, task.routing
    collusions = plan.collusions()
    sizes = sorted(routing.messages)
    who = _who_sees_what(task)
    if as_json:
        from shuffledp.service.cost import TaskCost

        cost = TaskCost.of(routing)
        print_json(
            {
                **heading(plan),
                "task_id": task.id,
                "question": plan.question,
                "honest_fraction": plan.honest_fraction,
                "fingerprint": plan.fingerprint,
                "public_key": task.public_key.text,
                "issuer": None if routing.issuer is None else routing.issuer.document(),
                "routing": routing.document(),
                "longest_report_bytes": routing.longest_report_bytes,
                "uncounted": plan.uncounted,
                "who_sees_what": [{"party": party, "sees": sees} for party, sees in who],
                "collusions": collusions_of(collusions, plan.privacy.epsilon, "paper_epsilon"),
                "lying_client": plan.lying_client,
                "rests_on": plan.rests_on,
                "warnings": [*plan.cautions, *task.warnings],
                "cost": cost.document(),
                "cost_warnings": list(cost.warnings),
                **({} if measured is None else {"measured": measured}),
                **({"cascade": cascade_document(plan, len(task.hops))} if task.hops else {}),
                **more,
            }
        )
        return
    levels = "one" if routing.shufflers == 1 else f"at most {routing.shufflers}"
    messages = routing.longest_report_messages
    batches = f"of {sizes[0]:,} users" if len(sizes) == 1 else f"of {sizes[0]:,} to {sizes[-1]:,} users"
    rows = [
        ("task", task.id),
        ("asked", plan.question),
        ("privacy", f"epsilon {plan.privacy.epsilon:g}, delta {plan.privacy.delta:g}"),
        ("counted on", f"{plan.honest_fraction:.0%} of the users of every batch follow the protocol"),
        ("batches", f"{batches}; each user is in {levels}"),
        ("once all have come", plan.in_the_end),
        ("a report", f"at most {routing.longest_report_bytes:,} bytes: {messages} messages, each encrypted alone"),
        ("encrypted to", task.public_key.text),
        *hops_in_words(task.hops),
        admission_row(routing.issuer),
        ("one lying client", plan.lying_client),
        ("it rests on", plan.rests_on),
        *more.items(),
    ]
    seen = [(party, f"{plan.privacy.epsilon:g}" if party == _ANALYZER else "", sees) for party, sees in who]
    # Of a cascade, what its own parties learn together is listed by itself.
    without_papers = (replace(each, paper_epsilon=None) for each in (() if task.hops else collusions[1:]))
    listed = collusions_listed("Who sees what", without_papers, plan.privacy.epsilon, seen)
    together = cascade_tables(plan, len(task.hops))
    warnings = (f"Warning: {each}" for each in (*plan.cautions, *task.warnings))
    show(facts("A task", rows), listed, *together, *warnings)
    if more and folders is not None:
        out, analyzer = more["out"], folders.analyzer_port
        value = "1" if plan.domain.named is None else shlex.quote(plan.domain.named.example)
        let_in = f"--token-file {folders.enrolling}/enrol.token" if routing.issuer is None else "--tokens TOKENS"
        report = f"report {value} --task {out} --shuffler http://127.0.0.1:8001 {let_in}"
        read = f"estimate --task {out} --analyzer http://127.0.0.1:{analyzer} --token-file {folders.quoted}/read.token"
        fetch = f"token fetch --task {out} --issuer http://127.0.0.1:8003 --invitations INVITATION -o TOKENS"
        fetching = [] if routing.issuer is None else [("have a token signed", fetch)]
        next_steps([("serve it", folders.serving("task", out)), *fetching, ("report", report), ("read", read)])
