"""`shuffledp plan counter` and `shuffledp count`: a private running count with k concurrent shufflers."""

import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.output import facts, next_steps, print_json, show
from shuffledp.cli.progress import users_reporting

if TYPE_CHECKING:
    from shuffledp.continual.plan import CounterPlan


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
Column = Annotated[str | None, typer.Option("--column", help="The file's column of 0s and 1s.", metavar="C")]
TableOut = Annotated[Path | None, typer.Option("--out", help="Estimates as .csv or .parquet.", metavar="FILE")]
Every = Annotated[bool, typer.Option("--every", help="A row for every user, not only where a batch closed.")]
WithTruth = Annotated[bool, typer.Option("--with-truth", help="Show the true count, too: for trying it out.")]
Synthetic = Annotated[bool, typer.Option("--synthetic", help="Made-up data instead of a file.")]
Fast = Annotated[bool, typer.Option("--fast", help="Draw the estimates from their own law, without messages.")]
Seed = Annotated[int | None, typer.Option("--seed", help="A repeatable simulation; protects nobody.", metavar="S")]


def plan_counter(
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
    """A running count, estimated after every user, with K concurrent shufflers."""
    from shuffledp.continual.reference import counter_reference
    from shuffledp.pictures.curves import check_picture_path

    if picture is not None:
        check_picture_path(picture)
    plan = _planned(users, shufflers, epsilon, delta, confidence, noise, estimator, bound, honest_fraction)
    document = plan.document() | {"reference": counter_reference(plan)}
    if picture is not None:
        _draw_schedule(plan, picture)
    if out is not None:
        import json

        from shuffledp.tables.whole import write_text_whole

        write_text_whole(out, json.dumps(plan.document(), indent=2) + "\n")
    if as_json:
        print_json(document)
        return
    rows = _facts(plan)
    if picture is not None:
        rows.append(("picture", str(picture)))
    if out is not None:
        rows.append(("written to", str(out)))
    show(facts("A private running count", rows), _comparison(plan, document["reference"]))
    same = f"--shufflers {plan.shufflers} --epsilon {plan.privacy.epsilon!r} --delta {plan.privacy.delta!r}"
    next_steps(
        [
            (
                "run it on made-up data",
                f"count --synthetic --users {plan.users} {same} --with-truth --picture count.png",
            ),
            ("your own data", f"count YOUR.csv --column C {same} --out estimates.csv --picture count.png"),
            ("see the schedule", f"plan counter --users {plan.users} {same} --picture schedule.png"),
            *([] if out is None else [("why it is private", f"explain --plan {out}")]),
        ]
    )


def count(
    file: File = None,
    column: Column = None,
    synthetic: Synthetic = False,
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
    """A private running count over a column: estimates, bounds, a table and a picture."""
    import numpy as np

    from shuffledp.continual.counter import Counter
    from shuffledp.errors import ParameterError
    from shuffledp.pictures.curves import check_picture_path
    from shuffledp.randomness import RandomBits
    from shuffledp.tables.written import check_table_path, write_table

    if synthetic == (file is not None):
        raise ParameterError("file", file, "or --synthetic must be given, one of them", "name a file, or make data up")
    if synthetic and column is not None:
        raise ParameterError("column", column, "is a file's; there is none beside --synthetic", "leave it out")
    if out is not None:
        check_table_path(out)
    if picture is not None:
        check_picture_path(picture)
    bits = RandomBits.secure() if seed is None else RandomBits.seeded(seed)
    values = None
    if file is not None:
        from shuffledp.tables.columns import read_column

        values = read_column(file, column)
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
        )
        plan = _load(plan_file)
    else:
        people = users if users is not None or values is None else len(values)
        plan = _planned(people, shufflers, epsilon, delta, confidence, noise, estimator, bound, honest_fraction)
    if values is None:
        from shuffledp.simulation.environments.binary import synthetic_bits

        values = synthetic_bits(plan.users, seed=seed)
    counter = Counter(plan)
    checked = counter.check_values(values)
    started = time.perf_counter()
    with users_reporting(len(checked), shown=not (fast or as_json)) as progress:
        estimates = counter.run(checked, bits=bits, fast=fast, progress=progress)
    seconds = time.perf_counter() - started
    times = np.arange(1, estimates.users + 1) if every else estimates.times
    values_at = estimates.every() if every else estimates.prefixes.astype(np.float64)
    if out is not None:
        width = estimates.bound
        columns = {"time": times, "estimate": values_at, "lower": values_at - width, "upper": values_at + width}
        write_table(out, columns)
    truth = np.concatenate(([0], np.cumsum(checked, dtype=np.int64))) if with_truth else None
    largest = None if truth is None else float(np.abs(estimates.every() - truth[1:]).max())
    if picture is not None:
        _draw_count(plan, estimates, truth, picture)
    last = estimates.at(estimates.users)
    batches = len(estimates.prefixes) - 1
    if plan.estimator == "combined":
        batches += int(np.searchsorted(plan.second_opinions.places, batches, side="right"))
    document: dict[str, Any] = {
        "schema": 1,
        "protocol": plan.protocol,
        "users": estimates.users,
        "shufflers": plan.shufflers,
        "shufflers_used": plan.shufflers_used,
        "epsilon": plan.privacy.epsilon,
        "delta": plan.privacy.delta,
        "estimate": last.value,
        "bound": estimates.bound,
        "confidence": estimates.confidence,
        "batches": batches,
        "truth": None if truth is None else int(truth[-1]),
        "largest_error": largest,
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
    rows = [
        (
            "what happened",
            "people came one by one; each device sent noisy messages to every shuffler that held an open batch; a full "
            "batch was mixed and read, and the count went on",
        ),
        *_facts(plan),
        ("count at the end", str(last)),
        ("at every time", f"off by at most {estimates.bound:g}, all {estimates.users:,} times at once"),
    ]
    if truth is not None:
        rows.append(("true count", f"{truth[-1]:,}  (the largest error at any time was {largest:,.1f})"))
    how = "from its own law" if fast else "every message made, shuffled and read"
    rows.append(("ran", f"{batches:,} batches closed, {how}, in {seconds:.1f} s"))
    rows += [("table", str(out))] if out is not None else []
    rows += [("picture", str(picture))] if picture is not None else []
    show(facts("A private running count", rows))
    same = f"--users {plan.users} --shufflers {plan.shufflers} --epsilon {plan.privacy.epsilon!r}"
    next_steps(
        [
            ("how good is that", f"plan counter {same} --delta {plan.privacy.delta!r}"),
            ("your own data", "count YOUR.csv --column C --shufflers 4 --epsilon 1 --delta 1e-6 --out estimates.csv"),
        ]
    )


def _planned(
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
    from shuffledp.continual.plan import CounterPlan
    from shuffledp.errors import ParameterError

    people, privacy = options.target(users, epsilon, delta)
    if shufflers is None:
        raise ParameterError("shufflers", None, "must be given", "add --shufflers; four are a good choice")
    plan = CounterPlan.plan(
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


def _facts(plan: "CounterPlan") -> list[tuple[str, str]]:
    privacy = plan.privacy
    smallest, largest = plan.slot_users, max(sizes[0] for sizes in plan.batch_sizes.values())
    used = "" if plan.shufflers_used == plan.shufflers else f" of {plan.shufflers}: more would only split epsilon"
    return [
        ("asked", f"a running count of {plan.users:,} users, epsilon {privacy.epsilon:g}, delta {privacy.delta:g}"),
        ("shufflers used", f"{plan.shufflers_used}{used}"),
        ("batches", f"of {smallest:,} to {largest:,} users; an estimate is the sum of at most {plan.budget}"),
        *(
            [("second opinions", "where two batches close together, the noisier one has the smaller weight")]
            if plan.estimator == "combined"
            else []
        ),
        ("noise of a batch", str(plan.noise.law(plan.surplus))),
        (
            "each user sends",
            f"{plan.messages_per_user_mean:.3g} messages on average, at most {plan.messages_per_user_max}, "
            f"of up to {plan.bits_per_message} bits",
        ),
        (
            "error",
            f"at most {plan.error_bound:g} at all times, with {plan.confidence:.0%} confidence "
            f"({'proved' if plan.certified_noise_bound is None else 'certified by 10,000 runs of the noise'})",
        ),
    ]


def _comparison(plan: "CounterPlan", reference: dict[str, float | None]) -> Any:
    from rich import box
    from rich.table import Table

    rows = [
        ("trusted curator, the strongest known", reference["central_error_bound"]),
        (f"this plan, {plan.shufflers_used} shufflers", plan.error_bound),
        ("the best uniform tree, exact accounting", reference["uniform_tree_error_bound"]),
        ("one shuffler", reference["sequential_error_bound"]),
        ("the paper's algorithm and constants", reference["paper_error_bound"]),
        ("local model, no shuffler", reference["local_error_bound"]),
    ]
    table = Table(
        title=f"Largest error over all {plan.users:,} times, {plan.confidence:.0%}",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        title_style="bold",
    )
    table.add_column("who")
    table.add_column("bound", justify="right")
    table.add_column("beside this plan", justify="right")
    for name, bound in rows:
        ratio = "" if bound is None or bound == plan.error_bound else f"{bound / plan.error_bound:,.3g}x"
        table.add_row(name, "-" if bound is None else f"{bound:,.4g}", ratio)
    return table


def _draw_schedule(plan: "CounterPlan", picture: Path) -> None:
    import numpy as np

    from shuffledp.pictures.running import draw_schedule

    schedule, slot = plan.schedule, plan.slot_users
    batches = {}
    for level, ends in enumerate(schedule.ends_by_level, 1):
        firsts = schedule.parents[ends]
        if level == 1 and plan.estimator == "combined":
            ends = np.arange(1, schedule.slots)
            firsts = ends - 1
        batches[level] = list(zip((firsts * slot).tolist(), (ends * slot).tolist(), strict=True))
    title = f"{plan.users:,} users, {plan.shufflers_used} shufflers, at most {plan.budget} batches an estimate"
    draw_schedule(picture, batches, title)


def _draw_count(plan: "CounterPlan", estimates: Any, truth: Any, picture: Path) -> None:
    from shuffledp.pictures.running import draw_running_count

    ends = plan.schedule.ends_by_level[-1] * plan.slot_users
    draw_running_count(
        picture,
        times=estimates.times,
        estimates=estimates.prefixes,
        bound=estimates.bound,
        confidence=estimates.confidence,
        title=f"A private running count: {plan.shufflers_used} shufflers, epsilon {plan.privacy.epsilon:g}",
        truth=None if truth is None else truth[estimates.times],
        boundaries=ends[ends <= estimates.users],
    )
