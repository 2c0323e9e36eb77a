"""`shuffledp simulate`: run a plan on a column of data, in one process."""

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from shuffledp.cli import options
from shuffledp.cli.domains import refuse_data
from shuffledp.cli.output import (
    asked,
    comparison,
    facts,
    next_steps,
    plan_options,
    print_json,
    show,
    value_options,
    what_a_user_sends,
)
from shuffledp.cli.progress import users_reporting

if TYPE_CHECKING:
    from shuffledp.protocols.domains.domain import Categories
    from shuffledp.protocols.histogram.base import HistogramPlan
    from shuffledp.protocols.plan import Plan

File = Annotated[Path | None, typer.Argument(help="CSV, Parquet or .npy.", metavar="[FILE]", show_default=False)]
Column = Annotated[str | None, typer.Option("--column", help="The file's column of values.", metavar="C")]
Columns = Annotated[
    str | None, typer.Option("--columns", help="vector-sum: the file's columns; all if left out.", metavar="C,C,...")
]
Clip = Annotated[bool, typer.Option("--clip", help="Bring values into the plan's range, and count them.")]
Synthetic = Annotated[bool, typer.Option("--synthetic", help="Made-up data instead of a file.")]
Fast = Annotated[bool, typer.Option("--fast", help="Draw the estimate from its own law, without messages.")]
OptionalProtocol = Annotated[
    str | None, typer.Option("--protocol", help="What to compute, if there is no --plan: binary-sum.", metavar="NAME")
]
Seed = Annotated[int | None, typer.Option("--seed", help="A repeatable simulation; protects nobody.", metavar="S")]


def simulate_command(
    file: File = None,
    plan_file: options.PlanFile = None,
    column: Column = None,
    columns: Columns = None,
    clip: Clip = False,
    synthetic: Synthetic = False,
    fast: Fast = False,
    seed: Seed = None,
    protocol: OptionalProtocol = None,
    users: options.Users = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    method: options.Method = "auto",
    honest_fraction: options.HonestFraction = 1.0,
    max_messages: options.MaxMessages = None,
    constants: options.Constants = options.ConstantsChoice.exact,
    low: options.Low = None,
    high: options.High = None,
    dimension: options.Dimension = None,
    radius: options.Radius = None,
    rotation: options.Rotation = None,
    domain: options.Domain = None,
    categories: options.Count = None,
    other: options.Other = None,
    as_json: options.AsJson = False,
) -> None:
    """Run a plan on data: every message randomized, shuffled and read, in one process."""
    import numpy as np

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
    given: dict[str, Any] = {"low": low, "high": high, "dimension": dimension, "radius": radius, "rotation": rotation}
    given |= {"domain": domain, "categories": categories, "other": other}
    options.refuse_both(
        plan_file,
        protocol=protocol,
        users=users,
        epsilon=epsilon,
        delta=delta,
        max_messages=max_messages,
        method=None if method == "auto" else method,
        honest_fraction=None if honest_fraction == 1 else honest_fraction,
        constants=None if constants is options.ConstantsChoice.exact else constants.value,
        **given,
    )
    for name, value in (("column", column), ("columns", columns)):
        if synthetic and value is not None:
            raise ParameterError(name, value, "is a file's; there is none beside --synthetic", "leave it out")
    protocol = protocol or "binary-sum"
    plan = options.load(plan_file) if plan_file is not None else None
    asked_for = plan.protocol if plan is not None else protocol
    if file is not None:
        refuse_data(domain, file)
    asked_values = {} if plan is not None else options.domain_of(protocol, **given)
    if asked_for == "histogram":
        named = asked_values["categories"] if plan is None else cast("HistogramPlan", plan).categories
        values = None if file is None else _codes(file, column, columns, named)
    else:
        values = None if file is None else _values(file, column, columns, asked_for)
    if values is not None and asked_for == "vector-sum" and plan is None:
        asked_values.setdefault("dimension", values.shape[1])
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
            domain=asked_values,
        ).plan
    if values is None:
        from shuffledp.simulation.environments.synthetic import synthetic_values

        values = synthetic_values(plan, seed=seed)
    elif plan.protocol == "ranges":
        values = plan.encode(values)
    if len(values) != plan.users:
        raise ParameterError(
            "rows",
            len(values),
            f"must be the plan's {plan.users} users",
            "make a plan for as many users as the file has rows",
        )
    checked, clipped = plan.clip_values(values) if clip else (plan.check_values(values), 0)
    started = time.perf_counter()
    with users_reporting(plan.users, shown=not (fast or as_json)) as progress:
        estimate = simulate(plan, checked, bits=bits, fast=fast, progress=progress)
    seconds = time.perf_counter() - started
    estimate = replace(estimate, clipped=clipped)
    truth = plan.true_value(checked)
    error = float(np.sqrt(np.mean(np.square(estimate.value - truth))))
    messages = 0 if fast else round(plan.users * plan.mean_messages(checked))
    document: dict[str, Any] = {
        "schema": 1,
        "protocol": plan.protocol,
        "method": plan.method,
        "users": plan.users,
        "epsilon": plan.privacy.epsilon,
        "delta": plan.privacy.delta,
        **plan.domain_document,
        "estimate": _listed(estimate.value),
        "standard_error": estimate.standard_error,
        "bound": estimate.bound,
        "confidence": estimate.confidence,
        "dropped": estimate.dropped,
        "clipped": clipped,
        "truth": _listed(truth),
        "error": error,
        **({"largest_error": float(np.abs(estimate.value - truth).max())} if plan.protocol == "histogram" else {}),
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
    about = "" if plan.messages_per_user_mean == plan.messages_per_user_max else "about "
    how = "its own law, no messages made" if fast else f"{about}{messages:,} messages made, shuffled and read"
    happened = "each device randomized its own value, a shuffler mixed the messages, the analyzer read the mix"
    rows = [
        ("asked", asked(plan)),
        ("what happened", "the estimate was drawn from its law" if fast else happened),
        ("each user sends", what_a_user_sends(plan)),
        *_answer(plan, estimate, truth, error),
        ("ran", f"{how} in {seconds:.2f} s"),
    ]
    named_table = _categories(plan, estimate, truth)
    show(*named_table, facts(f"{plan.title}: {plan.protocol} by {plan.method}", rows), comparison(plan))
    same = (
        f"--plan {plan_file}"
        if plan_file is not None
        else f"{plan.protocol} {plan_options(plan, max_messages, domain)}"
    )
    next_steps(
        [
            ("why it is private", f"explain {same}"),
            ("keep the plan", f"plan {plan.protocol} {plan_options(plan, max_messages, domain)} -o plan.json"),
            ("your own data", _own_data(plan, domain)),
        ]
    )


def _values(file: Path, column: str | None, columns: str | None, protocol: str) -> Any:
    """One column of the file, or a matrix of several."""
    from shuffledp.errors import ParameterError

    if protocol == "vector-sum":
        from shuffledp.tables.matrices import read_matrix

        if column is not None:
            raise ParameterError("column", column, "is one column; a vector has several", "use --columns A,B,C")
        return read_matrix(file, None if columns is None else [name.strip() for name in columns.split(",")])
    from shuffledp.tables.columns import read_column

    if columns is not None:
        raise ParameterError("columns", columns, f"are for vectors, not for {protocol}", "use --column")
    return read_column(file, column)


def _answer(plan: "Plan", estimate: Any, truth: Any, error: float) -> list[tuple[str, str]]:
    if plan.protocol == "histogram":
        from shuffledp.cli.histogram_output import Read, how_far_off

        return how_far_off(Read.of(cast("HistogramPlan", plan).categories, estimate, plan.users, truth))
    return [("estimate", str(estimate)), ("true value", _in_words(truth, error))]


def _categories(plan: "Plan", estimate: Any, truth: Any) -> list[Any]:
    """A histogram has a table of its own."""
    if plan.protocol != "histogram":
        return []
    from shuffledp.cli.histogram_output import Read, category_table

    return [category_table(Read.of(cast("HistogramPlan", plan).categories, estimate, plan.users, truth))]


def _listed(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def _in_words(truth: Any, error: float) -> str:
    import numpy as np

    if np.ndim(truth) == 0:
        shown = f"{truth:,.0f}" if float(truth).is_integer() else f"{truth:,.2f}"
        return f"{shown}  (the estimate is off by {error:,.3g})"
    shown = np.array2string(np.asarray(truth), precision=1, threshold=8, edgeitems=3, floatmode="fixed")
    return f"{shown}  (off by {error:,.3g} in root mean square)"


def _codes(file: Path, column: str | None, columns: str | None, categories: "Categories") -> Any:
    """One column of the file by its categories."""
    from shuffledp.cli.domains import read_codes
    from shuffledp.errors import ParameterError

    if columns is not None:
        raise ParameterError("columns", columns, "are for vectors, not for histogram", "use --column")
    return read_codes(file, column, categories)


def _own_data(plan: "Plan", typed: str | None) -> str:
    if plan.protocol == "histogram":
        return f"histogram YOUR.csv --column C {value_options(plan, typed)} --epsilon 1 --delta 1e-6 -o chart.png"
    if plan.protocol == "ranges":
        return f"quantile YOUR.csv --column C {value_options(plan, typed)} --epsilon 1 --delta 1e-6"
    domain = " ".join(f"--{name} {value!r}" for name, value in plan.domain_document.items() if name != "dimension")
    what = "" if plan.protocol == "binary-sum" else f" --protocol {plan.protocol} {domain}"
    which = "--columns A,B,C" if plan.protocol == "vector-sum" else "--column C"
    return f"simulate YOUR.csv {which}{what} --epsilon 1 --delta 1e-6"
