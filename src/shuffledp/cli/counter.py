"""`shuffledp plan counter` and `shuffledp count`: a private running count or sum with k concurrent shufflers."""

import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import counter_values, options
from shuffledp.cli.counter_output import (
    draw_estimates,
    draw_plan,
    in_words,
    plan_comparison,
    plan_facts,
    table_columns,
    truth_in_words,
)
from shuffledp.cli.counter_values import AskedValues, Kind, options_for, words_for
from shuffledp.cli.domains import refuse_data
from shuffledp.cli.output import facts, next_steps, print_json, show
from shuffledp.cli.progress import users_reporting

if TYPE_CHECKING:
    from shuffledp.continual.plan import CounterPlan


_MOST_NAMED = 10


class Noise(StrEnum):
    """The noise of every batch."""

    auto = "auto"
    laplace = "laplace"
    coins = "coins"
    skellam = "skellam"


class Bound(StrEnum):
    """Where the bound comes from."""

    proved = "proved"
    certified = "certified"


class Estimators(StrEnum):
    """What estimates are made of."""

    auto = "auto"
    completed = "completed"
    combined = "combined"


Shufflers = Annotated[int | None, typer.Option("--shufflers", help="How many work concurrently.", metavar="K")]
NoiseFamily = Annotated[Noise, typer.Option("--noise", help="The noise of every batch.")]
Confidence = Annotated[float, typer.Option("--confidence", help="Of the bound over the whole horizon.", metavar="C")]
BoundKind = Annotated[Bound, typer.Option("--bound", help="Proved, or measured on the noise itself (slower, smaller).")]
EstimatorName = Annotated[
    Estimators, typer.Option("--estimator", help="Batches added up, or two that close together combined.")
]
Out = Annotated[Path | None, typer.Option("-o", "--out", help="Write the plan to this file.", metavar="FILE")]
Picture = Annotated[Path | None, typer.Option("--picture", help="Draw a PNG or SVG.", metavar="FILE")]
File = Annotated[Path | None, typer.Argument(help="CSV, Parquet or .npy.", metavar="[FILE]", show_default=False)]
Column = Annotated[str | None, typer.Option("--column", help="The file's column of values.", metavar="C")]
Columns = Annotated[
    str | None, typer.Option("--columns", help="vectors: the file's columns, else all.", metavar="A,B,C")
]
TableOut = Annotated[Path | None, typer.Option("--out", help="Estimates as .csv or .parquet.", metavar="FILE")]
Every = Annotated[bool, typer.Option("--every", help="A row for every user, not only where a batch closed.")]
WithTruth = Annotated[bool, typer.Option("--with-truth", help="Show the true sums, too: for trying it out.")]
Synthetic = Annotated[bool, typer.Option("--synthetic", help="Made-up data instead of a file.")]
Fast = Annotated[bool, typer.Option("--fast", help="Draw the estimates from their own law, without messages.")]
Seed = Annotated[int | None, typer.Option("--seed", help="A repeatable simulation; protects nobody.", metavar="S")]


def plan_counter(
    values: counter_values.Values = Kind.bits,
    dimension: counter_values.Dimension = None,
    radius: counter_values.Radius = None,
    categories: counter_values.Categories = None,
    domain: options.Domain = None,
    other: options.Other = None,
    users: options.Users = None,
    shufflers: Shufflers = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    confidence: Confidence = 0.95,
    noise: NoiseFamily = Noise.auto,
    estimator: EstimatorName = Estimators.auto,
    bound: BoundKind = Bound.proved,
    honest_fraction: options.HonestFraction = 1.0,
    picture: Picture = None,
    out: Out = None,
    as_json: options.AsJson = False,
) -> None:
    """A running count, sum or histogram, estimated after every user, with K concurrent shufflers."""
    from shuffledp.continual.reference import counter_reference
    from shuffledp.pictures.curves import check_picture_path

    if picture is not None:
        check_picture_path(picture)
    kind = AskedValues(values, dimension, radius, categories, domain, other)
    plan = _planned(kind, users, shufflers, epsilon, delta, confidence, noise, estimator, bound, honest_fraction)
    document = plan.document() | {"values": plan.domain.kind, "reference": counter_reference(plan)}
    if picture is not None:
        draw_plan(plan, picture)
    if out is not None:
        import json

        from shuffledp.tables.whole import write_text_whole

        write_text_whole(out, json.dumps(plan.document(), indent=2) + "\n")
    if as_json:
        print_json(document)
        return
    rows = plan_facts(plan)
    if picture is not None:
        rows.append(("picture", str(picture)))
    if out is not None:
        rows.append(("written to", str(out)))
    show(facts(f"A private {words_for(plan.domain).running}", rows), plan_comparison(plan, document["reference"]))
    same = f"--shufflers {plan.shufflers} --epsilon {plan.privacy.epsilon!r} --delta {plan.privacy.delta!r}"
    same += options_for(plan.domain)
    which = "--columns A,B,C" if plan.domain.kind == Kind.vectors else "--column C"
    next_steps(
        [
            (
                "run it on made-up data",
                f"count --synthetic --users {plan.users} {same} --with-truth --picture count.png",
            ),
            ("your own data", f"count YOUR.csv {which} {same} --out estimates.csv --picture count.png"),
            ("see the schedule", f"plan counter --users {plan.users} {same} --picture schedule.png"),
            *([] if out is None else [("why it is private", f"explain --plan {out}")]),
        ]
    )


def count(
    file: File = None,
    column: Column = None,
    columns: Columns = None,
    synthetic: Synthetic = False,
    values: counter_values.Values = Kind.bits,
    dimension: counter_values.Dimension = None,
    radius: counter_values.Radius = None,
    categories: counter_values.Categories = None,
    domain: options.Domain = None,
    other: options.Other = None,
    users: options.Users = None,
    shufflers: Shufflers = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    confidence: Confidence = 0.95,
    noise: NoiseFamily = Noise.auto,
    estimator: EstimatorName = Estimators.auto,
    bound: BoundKind = Bound.proved,
    honest_fraction: options.HonestFraction = 1.0,
    plan_file: options.PlanFile = None,
    out: TableOut = None,
    every: Every = False,
    picture: Picture = None,
    with_truth: WithTruth = False,
    fast: Fast = False,
    seed: Seed = None,
    as_json: options.AsJson = False,
) -> None:
    """A private running count, sum or histogram over a file: estimates, bounds, a table and a picture."""
    import numpy as np

    from shuffledp.continual.counter import Counter
    from shuffledp.errors import ParameterError
    from shuffledp.pictures.curves import check_picture_path
    from shuffledp.randomness import RandomBits
    from shuffledp.simulation.running_truth import RunningTruth, closing_times, estimates_at
    from shuffledp.tables.written import check_table_path, write_table

    if synthetic == (file is not None):
        raise ParameterError("file", file, "or --synthetic must be given, one of them", "name a file, or make data up")
    for name, value in (("column", column), ("columns", columns)):
        if synthetic and value is not None:
            raise ParameterError(name, value, "is a file's; there is none beside --synthetic", "leave it out")
    if out is not None:
        check_table_path(out)
    if picture is not None:
        check_picture_path(picture)
    bits = RandomBits.secure() if seed is None else RandomBits.seeded(seed)
    data, plan = None, None
    if plan_file is not None:
        options.refuse_both(
            plan_file,
            users=users,
            shufflers=shufflers,
            epsilon=epsilon,
            delta=delta,
            confidence=None if confidence == 0.95 else confidence,
            noise=None if noise is Noise.auto else noise.value,
            estimator=None if estimator is Estimators.auto else estimator.value,
            bound=None if bound is Bound.proved else bound.value,
            honest_fraction=None if honest_fraction == 1 else honest_fraction,
            values=None if values is Kind.bits else values.value,
            dimension=dimension,
            radius=radius,
            categories=categories,
            domain=domain,
            other=other,
        )
        plan = _load(plan_file)
    kind = AskedValues(values, dimension, radius, categories, domain, other)
    if plan is None:
        kind.check_complete(width_known=file is not None)
    if file is not None:
        if plan is not None:
            named = counter_values.named_categories(plan.domain)
        else:
            refuse_data(domain, file)
            named = None if kind.domain is None else kind.running_domain.named
        data = counter_values.read_values(file, kind.kind if plan is None else plan.domain.kind, column, columns, named)
        if kind.kind is Kind.vectors and dimension is None:
            kind = AskedValues(values, data.shape[1], radius)
    if plan is None:
        people = users if users is not None or data is None else len(data)
        plan = _planned(kind, people, shufflers, epsilon, delta, confidence, noise, estimator, bound, honest_fraction)
    if data is None:
        from shuffledp.simulation.environments.synthetic import synthetic_values

        data = synthetic_values(plan, seed=seed)
    counter = Counter(plan)
    checked = counter.check_values(data)
    started = time.perf_counter()
    with users_reporting(len(checked), shown=not (fast or as_json)) as progress:
        estimates = counter.run(checked, bits=bits, fast=fast, progress=progress)
    seconds = time.perf_counter() - started
    closing = closing_times(estimates)
    times = np.arange(1, estimates.users + 1) if every else closing
    if out is not None:
        write_table(out, table_columns(plan, times, estimates_at(estimates, times)))
    truth = RunningTruth.of(estimates, checked) if with_truth else None
    if picture is not None:
        names = counter_values.coordinate_names(plan.domain, columns)
        draw_estimates(plan, estimates, closing, None if truth is None else truth.at_closing, names, picture)
    last = estimates.at(estimates.users)
    batches = len(estimates.prefixes) - 1
    if plan.estimator == "combined":
        batches += int(np.searchsorted(plan.second_opinions.places, batches, side="right"))
    document: dict[str, Any] = {
        "schema": 1,
        "protocol": plan.protocol,
        "values": plan.domain.kind,
        "users": estimates.users,
        "shufflers": plan.shufflers,
        "shufflers_used": plan.shufflers_used,
        "epsilon": plan.privacy.epsilon,
        "delta": plan.privacy.delta,
        "estimate": np.asarray(last.value).tolist(),
        "bound": estimates.bound,
        "confidence": estimates.confidence,
        "batches": batches,
        "truth": None if truth is None else truth.at_the_end.tolist(),
        "largest_error": None if truth is None else truth.largest_error,
        "rows": int(times.size) if out is not None else 0,
        "out": out,
        "picture": picture,
        "fidelity": "law" if fast else "messages",
        "simulated": estimates.simulated,
        "seconds": seconds,
        "fingerprint": plan.fingerprint,
    }
    if as_json:
        print_json(document)
        return
    words = words_for(plan.domain)
    rows = [
        (
            "what happened",
            "people came one by one; each device sent noisy messages to every shuffler that held an open batch; a full "
            f"batch was mixed and read, and the {words.total} went on",
        ),
        *plan_facts(plan),
        (f"{words.total} at the end", in_words(last)),
        *_by_name(plan, last),
        ("at every time", f"off by at most {estimates.bound:g}{words.each}, all {estimates.users:,} times at once"),
    ]
    if truth is not None:
        rows.append((f"true {words.total}", truth_in_words(truth, words)))
    how = "from its own law" if fast else "every message made, shuffled and read"
    rows.append(("ran", f"{batches:,} batches closed, {how}, in {seconds:.1f} s"))
    rows += [("table", str(out))] if out is not None else []
    rows += [("picture", str(picture))] if picture is not None else []
    show(facts(f"A private {words.running}", rows))
    same = f"--users {plan.users} --shufflers {plan.shufflers} --epsilon {plan.privacy.epsilon!r}"
    asked = options_for(plan.domain)
    which = "--columns A,B,C" if plan.domain.kind == Kind.vectors else "--column C"
    target = "--shufflers 4 --epsilon 1 --delta 1e-6"
    next_steps(
        [
            ("how good is that", f"plan counter {same} --delta {plan.privacy.delta!r}{asked}"),
            ("your own data", f"count YOUR.csv {which} {target}{asked} --out estimates.csv"),
        ]
    )


def _by_name(plan: "CounterPlan", last: Any) -> list[tuple[str, str]]:
    """The largest categories at the end, where they have names."""
    import numpy as np

    named = counter_values.named_categories(plan.domain)
    if named is None:
        return []
    largest = np.argsort(-last.value, kind="stable")[:_MOST_NAMED]
    said = ", ".join(f"{named.name(int(code))} {last.value[code]:,.0f}" for code in largest)
    more = f" and {named.size - _MOST_NAMED:,} more" if named.size > _MOST_NAMED else ""
    return [("the largest" if more else "by name", said + more)]


def _planned(
    kind: AskedValues,
    users: int | None,
    shufflers: int | None,
    epsilon: float | None,
    delta: float | None,
    confidence: float,
    noise: Noise,
    estimator: Estimators,
    bound: Bound,
    honest_fraction: float,
) -> "CounterPlan":
    from shuffledp.continual.certified import certify
    from shuffledp.errors import ParameterError

    if bound is Bound.certified and kind.kind is not Kind.bits:
        problem = f"can be certified for bits only, not for {kind.kind.value}"
        raise ParameterError("bound", bound.value, problem, "take the proved bound")

    people, privacy = options.target(users, epsilon, delta)
    if shufflers is None:
        raise ParameterError("shufflers", None, "must be given", "add --shufflers; four are a good choice")
    plan = kind.plan(
        users=people,
        shufflers=shufflers,
        privacy=privacy,
        noise=noise.value,
        honest_fraction=honest_fraction,
        confidence=confidence,
        estimator=estimator.value,
    )
    return certify(plan) if bound is Bound.certified else plan


def load_counter(plan_file: Path) -> "CounterPlan | None":
    """The counter's plan in this file, or None if it holds something else."""
    import json

    try:
        document = json.loads(plan_file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return _load(plan_file) if isinstance(document, dict) and document.get("protocol") == "counter" else None


def _load(plan_file: Path) -> "CounterPlan":
    import json

    from shuffledp.continual.plan import CounterPlan
    from shuffledp.errors import DataError, ParameterError

    try:
        document = json.loads(plan_file.read_bytes())
    except OSError:
        raise ParameterError("plan", plan_file, "must be a file that can be read", "check the path") from None
    except ValueError:
        raise DataError("plan", plan_file, "must be a JSON document", "make it again") from None
    return CounterPlan.from_document(document)
