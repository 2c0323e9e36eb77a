"""`shuffledp report`: randomize, encrypt and send values, each for one user."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.output import facts, print_json, show
from shuffledp.cli.progress import users_reporting
from shuffledp.errors import DataError, ParameterError

if TYPE_CHECKING:
    from shuffledp.protocols.domains.domain import Domain
    from shuffledp.service.client import Sent
    from shuffledp.service.task import Task

Value = Annotated[
    str | None,
    typer.Argument(
        help="One user's value: a number, a category's name, a vector's numbers with commas; - reads a value a line. "
        "Negative ones after --.",
        metavar="[VALUE]",
        show_default=False,
    ),
]


@options.reads_file
def report(
    task_file: options.TaskFile,
    shuffler: Annotated[str, typer.Option(help="Where the shuffler is.", metavar="URL")],
    token_file: Annotated[Path | None, typer.Option(help="The file of the token for enrol.", metavar="FILE")] = None,
    tokens: Annotated[
        Path | None, typer.Option(help="Tokens of the task's issuer instead, one a value.", metavar="FILE")
    ] = None,
    value: Value = None,
    file: Annotated[Path | None, typer.Option(help="CSV, Parquet or .npy: a row a user.", metavar="FILE")] = None,
    column: options.Column = None,
    columns: options.Columns = None,
    outbox: Annotated[
        str | None, typer.Option(help="Keep what is not acknowledged here, and send it first.", metavar="FILE|ADDRESS")
    ] = None,
    relay: Annotated[
        str | None, typer.Option(help="Who carries it: the shuffler then sees no address.", metavar="URL")
    ] = None,
    gateway_keys: Annotated[
        Path | None, typer.Option(help="With a relay: the shuffler's gateway.ohttp-keys.", metavar="FILE")
    ] = None,
    patience: options.Patience = 60.0,
    reading: Any = None,
    as_json: options.AsJson = False,
) -> None:
    """Report values: each is randomized and encrypted here, and leaves this machine only so.

    With an outbox and neither VALUE nor --file, what an earlier run could not deliver is sent. A file that was
    interrupted goes on where it stopped if the outbox is the same: no row is ever randomized twice.
    """
    from shuffledp.cli.domains import read_own_values
    from shuffledp.service.client import Client, Relay
    from shuffledp.service.task import Task

    if value is not None and file is not None:
        raise ParameterError("value", value, "and --file must not both be given", "leave one out")
    if value is None and file is None and outbox is None:
        raise ParameterError("value", None, "or --file must be given", "pass a value, - for standard input, or a file")
    for name, said in {"column": column, "columns": columns, **reading.said}.items():
        if file is None and said is not None:
            raise ParameterError(name, said, "is a file's", "add --file")
    if not patience >= 0:
        raise ParameterError("patience", patience, "must be >= 0", "60 is the default")
    if (relay is None) != (gateway_keys is None):
        raise ParameterError("relay", relay, "and gateway_keys go together", "give both or none")
    carried = None if relay is None or gateway_keys is None else Relay.of(relay, gateway_keys)
    task = Task.load(task_file)
    token = _let_in(task, token_file, tokens)
    domain = task.plan.domain
    values = _values(value, domain) if file is None else read_own_values(file, column, columns, domain, reading)
    if value is not None and value != "-":
        _check_typed(value, values, task)
    # Standard input is not the same twice.
    stream = (
        None if file is None or outbox is None or file == Path("-") else f"{file.resolve()}#{column or columns or ''}"
    )
    started, silent = time.perf_counter(), as_json

    def wait(seconds: float) -> None:
        nonlocal silent
        if not silent:
            typer.echo(f"no answer from {relay or shuffler} yet: trying for {patience:g} s (--patience)", err=True)
            silent = True
        time.sleep(seconds)

    with Client(task, shuffler, token, outbox, patience=patience, sleep=wait, relay=carried) as client:
        left = client.flush()
        with users_reporting(len(values), shown=not as_json and len(values) > 1) as progress:
            sent = client.report_many(values, progress, stream=stream)
        waiting = client.outbox.waiting(task.id)
    seconds = time.perf_counter() - started
    if as_json:
        added = {name: getattr(left, name) + getattr(sent, name) for name in ("reports", "new", "retried", "refused")}
        counted = {"values": len(values), **added, "waiting": waiting}
        print_json({"schema": 1, "task_id": task.id, **counted, "seconds": seconds})
        return
    _tell(task, len(values), left, sent, seconds)


def _let_in(task: "Task", token_file: Path | None, tokens: Path | None) -> "str | list[bytes]":
    """What lets a client in: the one that the task takes must be given, and no other."""
    from shuffledp.cli.token import read_tokens
    from shuffledp.service.keys import load_token

    if task.gate is None:
        if token_file is None or tokens is not None:
            problem = "must be given, and no --tokens: the task names no issuer"
            raise ParameterError("token_file", token_file, problem, "add --token-file KEYS/enrol.token")
        return load_token(token_file)
    if tokens is None or token_file is not None:
        problem = f"must be given, and no --token-file: the task takes tokens of {task.gate.issuer.name}, one a person"
        raise ParameterError("tokens", tokens, problem, "fetch them with `shuffledp token fetch`")
    return read_tokens(tokens)


def _check_typed(typed: str, values: Any, task: "Task") -> None:
    """Refuse one value that was typed without talking of rows and columns, of which there are none."""
    try:
        task.plan.check_values(task.plan.encode(values))
    except DataError as refused:
        raise DataError(refused.parameter, typed, refused.problem, "`shuffledp task show` says what is asked") from None


def _tell(task: "Task", values: int, left: "Sent", sent: "Sent", seconds: float) -> None:
    from shuffledp.protocols.presentation import numbered

    were = "was" if values - sent.reports == 1 else "were"
    known, again, lost = values - sent.reports, left.retried + sent.retried, left.refused + sent.refused
    before, late = left.reports, "old reports came too late and reached nobody: those may be reported again"
    what = f"{task.plan.protocol} by {task.plan.method}"
    rows = [
        ("task", task.id[:12]),
        ("acknowledged", f"{numbered(sent.reports, 'report')} in {seconds:.1f} s: {_on_disk(sent.reports)}"),
        ("from before", f"{numbered(before, 'report')} that the outbox held: acknowledged, too" if before else None),
        ("known", f"{numbered(known, 'row')} of this file {were} reported before" if known > 0 else None),
        ("sent again", f"{again:,}: nothing is counted twice" if again else None),
        ("refused", f"{lost:,} {late}" if lost else None),
        ("what was sent", f"{what}: noisy messages that only the analyzer reads" if sent.reports + before else None),
    ]
    show(facts("Reported", rows))


def _on_disk(reports: int) -> str:
    """What became of so many reports that were to be sent now."""
    if reports == 0:
        return "there was nothing new to send"
    return "the shuffler has it on disk" if reports == 1 else "the shuffler has them on disk"


def _values(value: str | None, domain: "Domain") -> Any:
    """Values from the command line or from standard input: numbers, or a category's name."""
    import numpy as np

    if value is None:
        return np.empty(0)
    lines = [line.strip() for line in sys.stdin.read().splitlines()] if value == "-" else [value]
    if not lines:
        raise DataError("value", "nothing", "must be on standard input, one a line", "write a value a line")
    if (domain.named or domain).reads == "words":
        return np.asarray(lines)
    rows = [_number(line, f" in line {place}" if value == "-" else "") for place, line in enumerate(lines, 1)]
    widths = {len(row) if isinstance(row, list) else 0 for row in rows}
    if len(widths) > 1:
        raise DataError("value", "lines of several lengths", "must all have the same numbers", "check the lines")
    return np.asarray(rows)


def _number(text: str, where: str) -> Any:
    def one(word: str) -> int | float:
        word = word.strip()
        if word.lower() in ("true", "false"):
            return int(word.lower() == "true")
        try:
            return int(word)
        except ValueError:
            return float(word)

    try:
        return [one(word) for word in text.split(",")] if "," in text else one(text)
    except ValueError:
        problem = "must be a number, or numbers with commas"
        meant = f", or --file {text} for what is in that file" if not where and _is_file(text) else ""
        raise DataError("value", f"{text!r}{where}", problem, f"for instance 1{meant}") from None


def _is_file(text: str) -> bool:
    """Whether a file has this name; what can be no name, as it is too long, is none."""
    try:
        return Path(text).is_file()
    except OSError:
        return False
