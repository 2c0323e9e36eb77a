"""`shuffledp histogram`: a private histogram of one column of a file, in one command."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import domains, options
from shuffledp.cli.output import (
    asked,
    comparison,
    facts,
    next_steps,
    print_json,
    show,
    value_options,
    what_a_user_sends,
)
from shuffledp.cli.progress import users_reporting, working

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shuffledp.cli.histogram_output import Read
    from shuffledp.protocols.domains.domain import Categories
    from shuffledp.protocols.histogram.base import HistogramPlan

# More messages than this take a minute and a gigabyte: then the estimate comes from its own law.
_MOST_MESSAGES = 20_000_000

File = Annotated[Path, typer.Argument(help="CSV, Parquet or .npy: a row a person.", metavar="FILE")]
Column = Annotated[str | None, typer.Option("--column", help="The file's column of categories.", metavar="C")]
Top = Annotated[int, typer.Option("--top", help="Categories to print; all go into --csv and --json.", metavar="K")]
Fast = Annotated[bool, typer.Option("--fast", help="Draw the estimate from its own law, without messages.")]
Seed = Annotated[int | None, typer.Option("--seed", help="A repeatable simulation; protects nobody.", metavar="S")]
WithTruth = Annotated[
    bool, typer.Option("--with-truth", help="Show the true counts, too: for trying it out. --seed does the same.")
]
Chart = Annotated[Path | None, typer.Option("-o", "--out", help="Draw a PNG or SVG.", metavar="FILE")]
Csv = Annotated[Path | None, typer.Option("--csv", help="All estimates as .csv or .parquet.", metavar="FILE")]
Candidates = Annotated[
    str | None,
    typer.Option("--names", help="hash domains: public names to look up, a,b,c or a file.", metavar="NAMES"),
]


def histogram(
    file: File,
    column: Column = None,
    domain: options.Domain = None,
    categories: options.Count = None,
    other: options.Other = None,
    domain_is_public: domains.IsPublic = False,
    names: Candidates = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    method: options.Method = "auto",
    honest_fraction: options.HonestFraction = 1.0,
    max_messages: options.MaxMessages = None,
    constants: options.Constants = options.ConstantsChoice.exact,
    plan_file: options.PlanFile = None,
    top: Top = 20,
    chart: Chart = None,
    table: Csv = None,
    fast: Fast = False,
    with_truth: WithTruth = False,
    seed: Seed = None,
    as_json: options.AsJson = False,
) -> None:
    """A private histogram of a file's column: how many people have each category, and how far off that is."""
    from shuffledp.cli.histogram_output import Read, category_table, how_far_off
    from shuffledp.errors import ParameterError
    from shuffledp.randomness import RandomBits
    from shuffledp.simulation.run import simulate

    _check_outputs(file, chart, table)
    if top < 1:
        raise ParameterError("top", top, "must be >= 1", "20 is the default")
    bits = RandomBits.secure() if seed is None else RandomBits.seeded(seed)
    plan, listed = None, None
    if plan_file is not None:
        options.refuse_both(
            plan_file,
            domain=domain,
            categories=categories,
            other=other,
            epsilon=epsilon,
            delta=delta,
            max_messages=max_messages,
            method=None if method == "auto" else method,
            honest_fraction=None if honest_fraction == 1 else honest_fraction,
            constants=None if constants is options.ConstantsChoice.exact else constants.value,
        )
        plan = _load(plan_file)
        listed = plan.categories
    else:
        options.target(1, epsilon, delta)
        listed = domains.categories_for(file, column, domain, categories, other, public=domain_is_public)
    candidates = _candidates(names, listed)
    codes = domains.read_codes(file, column, listed)
    if plan is None:
        with working("choosing a method", shown=not as_json):
            plan = _plan(
                users=len(codes),
                epsilon=epsilon,
                delta=delta,
                method=method,
                honest_fraction=honest_fraction,
                max_messages=max_messages,
                constants=constants,
                domain={"categories": listed},
            )
    if len(codes) != plan.users:
        way_out = "make a plan for as many users as the file has rows"
        raise ParameterError("rows", len(codes), f"must be the plan's {plan.users} users", way_out)
    messages = round(plan.users * plan.mean_messages(codes))
    by_law = fast or messages > _MOST_MESSAGES
    started = time.perf_counter()
    with users_reporting(plan.users, shown=not (by_law or as_json)) as progress:
        estimate = simulate(plan, codes, bits=bits, fast=by_law, progress=progress)
    seconds = time.perf_counter() - started
    # The truth is nobody's to see unless somebody asks for it: without it, what is printed is private.
    truth = plan.true_value(codes) if with_truth or seed is not None else None
    read = Read.of(plan.categories, estimate, plan.users, truth, candidates)
    if chart is not None:
        _draw(plan, read, chart)
    if table is not None:
        from shuffledp.tables.written import write_table

        write_table(table, read.columns())
    if as_json:
        written = {"out": chart, "csv": table}
        print_json(_document(plan, estimate, read, 0 if by_law else messages, candidates) | written)
        return
    how = (
        f"from its own law in {seconds:.2f} s" + ("" if fast else f": {messages:,} messages would be too many here")
        if by_law
        else f"about {messages:,} messages made, shuffled and read in {seconds:.2f} s"
    )
    rows = [
        ("asked", asked(plan)),
        ("each person sends", what_a_user_sends(plan)),
        *how_far_off(read),
        *_hashed(plan.categories, candidates),
        ("ran", how),
        *([("protects", "nobody: seeded noise can be repeated; leave --seed out")] if estimate.simulated else []),
        *([("picture", str(chart))] if chart is not None else []),
        *([("table", str(table))] if table is not None else []),
    ]
    show(
        category_table(read, top),
        facts(f"{plan.title}, by {plan.method}", rows),
        comparison(plan),
    )
    _say_what_next(plan, file, column, None if domains.is_from_data(domain, file) else domain, plan_file, chart)


def _say_what_next(
    plan: "HistogramPlan",
    file: Path,
    column: str | None,
    typed: str | None,
    plan_file: Path | None,
    chart: Path | None,
) -> None:
    import shlex

    target = f"--epsilon {plan.privacy.epsilon!r} --delta {plan.privacy.delta!r}"
    which = value_options(plan, typed)
    same = f"--users {plan.users} {target} {which}"
    data = shlex.quote(str(file)) + ("" if column is None else f" --column {shlex.quote(column)}")
    given = f"{which} {target}" if plan_file is None else f"--plan {plan_file}"
    explained = f"--plan {plan_file}" if plan_file is not None else f"histogram {same} --method {plan.method}"
    next_steps(
        [
            *([("draw it", f"histogram {data} {given} -o chart.png")] if chart is None else []),
            ("why it is private", f"explain {explained}"),
            ("other methods", f"plan histogram {same}"),
        ]
    )


def _check_outputs(file: Path, chart: Path | None, table: Path | None) -> None:
    """Refuse names that nothing can be written to, before any work is done; people's own data stays as it is."""
    from shuffledp.errors import ParameterError
    from shuffledp.pictures.curves import check_picture_path
    from shuffledp.tables.written import check_table_path

    if chart is not None:
        check_picture_path(chart)
    if table is not None:
        check_table_path(table, "csv")
        if domains.is_same_file(table, file):
            raise ParameterError("csv", str(table), "must not be the data's own file", "name another")


def _load(plan_file: Path) -> "HistogramPlan":
    from shuffledp.errors import ParameterError
    from shuffledp.protocols.histogram.base import HistogramPlan

    plan = options.load(plan_file)
    if not isinstance(plan, HistogramPlan):
        way_out = "make one with `shuffledp plan histogram ... -o FILE`, or run this with `shuffledp simulate --plan`"
        raise ParameterError("plan", plan.protocol, "must be a histogram's", way_out)
    return plan


def _plan(**given: Any) -> "HistogramPlan":
    plan: HistogramPlan = options.chosen(protocol="histogram", **given).plan  # type: ignore[assignment]
    return plan


def _candidates(names: str | None, categories: "Categories") -> "tuple[str, ...] | None":
    from shuffledp.errors import ParameterError

    if names is None:
        return None
    if categories.kind != "hashed":
        problem = f"are for hashed domains; {categories.kind} are known already"
        raise ParameterError("names", names, problem, "leave it out, or take --domain hash:CELLS")
    found = domains.parse_names(names, "names")
    if len(set(found)) < len(found):
        twice = next(name for place, name in enumerate(found) if name in found[:place])
        raise ParameterError("names", f"{twice} twice", "must name each once", "remove one of them")
    return found


def _hashed(categories: "Categories", candidates: "Sequence[str] | None") -> list[tuple[str, str]]:
    """What hashing adds to the error: names that share a cell are counted together."""
    from shuffledp.protocols.domains.categories import Hashed

    if not isinstance(categories, Hashed):
        return []
    in_use = _names_in_use(candidates)
    chance = categories.collision_probability(in_use - 1)
    told = f"a cell counts all names in it; if people have {in_use:,} different names, a given one shares its cell "
    told += f"with probability {chance:.2g}"
    if candidates is None:
        return [("cells", told + "; --names a,b,c looks public names up")]
    cells: dict[int, list[str]] = {}
    for name, cell in zip(candidates, categories.encode(list(candidates)).tolist(), strict=True):
        cells.setdefault(cell, []).append(name)
    shared = [" and ".join(together) for together in cells.values() if len(together) > 1]
    rows = [("cells", told)]
    return [*rows, ("counted together", "; ".join(shared[:10]))] if shared else rows


def _names_in_use(candidates: "Sequence[str] | None") -> int:
    """How many different names people have is not known: a hundred, or as many as are looked up."""
    return max(100, len(candidates or ()))


def _draw(plan: "HistogramPlan", read: "Read", chart: Path) -> None:
    from shuffledp.pictures.bars import draw_bars

    draw_bars(
        chart,
        names=read.names,
        estimates=read.estimates,
        bound=read.bound,
        confidence=read.confidence,
        title=f"A private histogram of {plan.users:,} users: {plan.method}, epsilon {plan.privacy.epsilon:g}",
        truth=read.truth,
        in_order=read.in_order,
    )


def _document(
    plan: "HistogramPlan", estimate: Any, read: "Read", messages: int, candidates: "Sequence[str] | None"
) -> dict[str, Any]:
    import numpy as np

    from shuffledp.protocols.domains.categories import Hashed

    in_use, categories = _names_in_use(candidates), plan.categories
    chance = categories.collision_probability(in_use - 1) if isinstance(categories, Hashed) else None
    return {
        "schema": 1,
        "protocol": plan.protocol,
        "method": plan.method,
        "users": plan.users,
        "epsilon": plan.privacy.epsilon,
        "delta": plan.privacy.delta,
        **plan.domain_document,
        "histogram": read.rows(),
        "standard_error": estimate.standard_error,
        "bound": read.bound,
        "confidence": read.confidence,
        "largest_error": None if read.truth is None else float(np.abs(read.estimates - read.truth).max()),
        "names_in_use": None if chance is None else in_use,
        "collision_probability": chance,
        "fidelity": "messages" if messages else "law",
        "messages": messages,
        "simulated": estimate.simulated,
        "reference": plan.reference(),
        "fingerprint": plan.fingerprint,
    }
