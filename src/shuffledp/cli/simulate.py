"""`shuffledp simulate`: run a plan on a column of data, in one process."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.output import asked, comparison, facts, next_steps, plan_options, print_json, show, what_a_user_sends

if TYPE_CHECKING:
    from shuffledp.simulation.run import Progress

File = Annotated[Path | None, typer.Argument(help="CSV, Parquet or .npy.", metavar="[FILE]", show_default=False)]
Column = Annotated[str | None, typer.Option("--column", help="The file's column of 0s and 1s.", metavar="C")]
Synthetic = Annotated[bool, typer.Option("--synthetic", help="Made-up data instead of a file.")]
Fast = Annotated[bool, typer.Option("--fast", help="Draw the estimate from its own law, without messages.")]
Seed = Annotated[int | None, typer.Option("--seed", help="A repeatable simulation; protects nobody.", metavar="S")]


def simulate_command(
    file: File = None,
    plan_file: options.PlanFile = None,
    column: Column = None,
    synthetic: Synthetic = False,
    fast: Fast = False,
    seed: Seed = None,
    protocol: options.Protocol = "binary-sum",
    users: options.Users = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    method: options.Method = "auto",
    honest_fraction: options.HonestFraction = 1.0,
    max_messages: options.MaxMessages = None,
    constants: options.Constants = options.ConstantsChoice.exact,
    as_json: options.AsJson = False,
) -> None:
    """Run a plan on data: every message randomized, shuffled and read, in one process."""
    from shuffledp.errors import ParameterError
    from shuffledp.randomness import RandomBits
    from shuffledp.simulation.run import simulate

    if synthetic == (file is not None):
        raise ParameterError(
            "file",
            file,
            "or --synthetic must be given, one of them",
            "name a CSV, Parquet or .npy file, or make data up",
        )
    bits = RandomBits.secure() if seed is None else RandomBits.seeded(seed)
    options.refuse_both(plan_file, users=users, epsilon=epsilon, delta=delta, max_messages=max_messages)
    plan = options.load(plan_file) if plan_file is not None else None
    values = None if synthetic else _column(file, column)
    if plan is None:
        plan = options.chosen(
            protocol=protocol,
            users=users if users is not None or values is None else len(values),
            epsilon=epsilon,
            delta=delta,
            method=method,
            honest_fraction=honest_fraction,
            max_messages=max_messages,
            constants=constants,
        ).plan
    if values is None:
        from shuffledp.simulation.environments.binary import synthetic_bits

        values = synthetic_bits(plan.users, seed=seed)
    if len(values) != plan.users:
        raise ParameterError(
            "rows",
            len(values),
            f"must be the plan's {plan.users} users",
            "make a plan for as many users as the file has rows",
        )
    checked = plan.check_values(values)
    started = time.perf_counter()
    with _progress(plan.users, shown=not (fast or as_json)) as progress:
        estimate = simulate(plan, checked, bits=bits, fast=fast, progress=progress)
    seconds = time.perf_counter() - started
    truth = plan.true_value(checked)
    messages = 0 if fast else plan.users * plan.messages_per_user_max
    document: dict[str, Any] = {
        "schema": 1,
        "protocol": plan.protocol,
        "method": plan.method,
        "users": plan.users,
        "epsilon": plan.privacy.epsilon,
        "delta": plan.privacy.delta,
        "estimate": estimate.value,
        "standard_error": estimate.standard_error,
        "bound": estimate.bound,
        "confidence": estimate.confidence,
        "dropped": estimate.dropped,
        "truth": truth,
        "fidelity": "law" if fast else "messages",
        "messages": messages,
        "simulated": estimate.simulated,
        "seconds": seconds,
        "reference": plan.reference(),
        "fingerprint": plan.fingerprint,
    }
    if as_json:
        print_json(document)
        return
    how = "its own law, no messages made" if fast else f"{messages:,} messages made, shuffled and read"
    happened = "each device randomized its own bit, a shuffler mixed the messages, the analyzer read the mix"
    rows = [
        ("asked", asked(plan)),
        ("what happened", "the estimate was drawn from its law" if fast else happened),
        ("each user sends", what_a_user_sends(plan)),
        ("estimate", str(estimate)),
        ("true value", f"{truth:,.0f}  (the estimate is off by {abs(estimate.value - truth):,.3g})"),
        ("ran", f"{how} in {seconds:.2f} s"),
    ]
    show(facts(f"A private count: {plan.protocol} by {plan.method}", rows), comparison(plan))
    same = f"--plan {plan_file}" if plan_file is not None else plan_options(plan)
    next_steps(
        [
            ("why it is private", f"explain {same}"),
            ("keep the plan", f"plan {plan.protocol} {plan_options(plan)} -o plan.json"),
            ("your own data", "simulate YOUR.csv --column C --epsilon 1 --delta 1e-6"),
        ]
    )


def _column(file: Path | None, column: str | None) -> Any:
    from shuffledp.tables.columns import read_column

    assert file is not None
    return read_column(file, column)


@contextmanager
def _progress(users: int, *, shown: bool) -> "Iterator[Progress | None]":
    if not shown:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("users reporting", total=users)
        yield lambda reported: bar.update(
            task, completed=reported, description="shuffling" if reported == users else "users reporting"
        )
