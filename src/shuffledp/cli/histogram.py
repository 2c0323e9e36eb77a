"""`shuffledp histogram`: a private histogram of one column of a file, in one command."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.asked import Asked
from shuffledp.cli.output import (
    SEEDED,
    check_files,
    draw,
    facts,
    heading,
    is_same_file,
    next_steps,
    print_json,
    question,
    show,
)
from shuffledp.cli.progress import simulated, working
from shuffledp.cli.typed import data_options, target_options
from shuffledp.errors import ParameterError

if TYPE_CHECKING:
    from shuffledp.protocols.domains.domain import Categories

# More messages than this take a minute and a gigabyte: then the estimate comes from its own law.
_MOST_MESSAGES = 20_000_000

Csv = Annotated[Path | None, typer.Option("--csv", help="All estimates as .csv or .parquet.", metavar="FILE")]
IsPublic = Annotated[bool, typer.Option("--domain-is-public", help="Allow --domain data: what occurs is no secret.")]


@options.takes_plan(
    "histogram",
    domain=("domain", "categories", "other", "at_most", "groups", "other_group"),
    without=("users", "noise"),
)
def histogram(
    asked: Asked,
    file: options.File,
    column: options.Column = None,
    domain_is_public: IsPublic = False,
    names: Annotated[
        str | None, typer.Option(help="hash domains: public names to look up, a,b,c or a file.", metavar="NAMES")
    ] = None,
    top: Annotated[int, typer.Option(help="Categories to print; all go into --csv and --json.", metavar="K")] = 20,
    chart: Annotated[Path | None, typer.Option("-o", "--out", help="Draw a PNG, SVG or PDF.", metavar="FILE")] = None,
    table: Csv = None,
    fast: options.Fast = False,
    with_truth: options.WithTruth = False,
    seed: options.Seed = None,
    as_json: options.AsJson = False,
) -> None:
    """A private histogram of a file's column: how many people have each category, and how far off that is."""
    from shuffledp.cli.domains import looked_up
    from shuffledp.protocols.presentation import View

    check_files(picture=chart, csv=table)
    # People's own data stays as it is.
    if table is not None and is_same_file(table, file):
        raise ParameterError("csv", str(table), "must not be the data's own file", "name another")
    if top < 1:
        raise ParameterError("top", top, "must be >= 1", "20 is the default")
    bits = options.bits_of(seed)
    if asked.file is None:
        asked.target(users=1)
        asked = asked.with_data_as_domain(file, column, public=domain_is_public)
    with working("choosing a method", shown=not as_json):
        plan, codes, _ = asked.with_file(file, column, bits=bits)
    categories: Any = plan.domain.named
    candidates = looked_up(names, categories)
    messages = round(plan.users * plan.mean_messages(codes))
    by_law = fast or messages > _MOST_MESSAGES
    estimate, seconds = simulated(plan, codes, bits=bits, fast=by_law, shown=not as_json)
    # The truth is nobody's to see unless somebody asks for it: without it, what is printed is private.
    truth = plan.true_value(codes) if with_truth or seed is not None else None
    presented = plan.present(estimate, truth, View(top=top, names=candidates))
    if chart is not None:
        draw(presented, chart, column)
    if table is not None:
        from shuffledp.tables.written import write_table

        write_table(table, presented.columns)
    # How many different names people have is not known: a hundred, or as many as are looked up.
    in_use = max(100, len(candidates or ()))
    chance = categories.collision_probability(in_use - 1) if categories.is_open else None
    if as_json:
        print_json(
            {
                **heading(plan),
                **plan.domain_document,
                "histogram": presented.records(),
                "standard_error": estimate.standard_error,
                "bound": estimate.bound,
                "confidence": estimate.confidence,
                "largest_error": None,
                **presented.figures,
                "names_in_use": None if chance is None else in_use,
                "collision_probability": chance,
                "fidelity": "law" if by_law else "messages",
                "messages": 0 if by_law else messages,
                "simulated": estimate.simulated,
                "reference": plan.reference(),
                "fingerprint": plan.fingerprint,
                "out": chart,
                "csv": table,
            }
        )
        return
    too_many = "" if fast else f": {messages:,} messages would be too many here"
    how = f"about {messages:,} messages made, shuffled and read in {seconds:.2f} s"
    rows = [
        ("asked", question(plan)),
        ("each person sends", plan.sends),
        *presented.facts,
        *([] if chance is None else _shared_cells(categories, candidates, in_use, chance)),
        ("ran", f"from its own law in {seconds:.2f} s{too_many}" if by_law else how),
        ("protects", SEEDED if estimate.simulated else None),
        ("picture", chart),
        ("table", table),
    ]
    told = facts(f"{plan.title}, by {plan.method}", rows)
    show(*presented.listings, told, plan.compared())
    values, target = asked.values or plan.options, target_options(plan.privacy)
    same = f"histogram --users {plan.users} {target} {values}"
    given, explained = f"{values} {target}", f"{same} --method {plan.method}"
    if asked.file is not None:
        given = explained = f"--plan {asked.file}"
    drawn = f"histogram {data_options(file, column, asked.reading)} {given} -o chart.png" if chart is None else None
    next_steps([("draw it", drawn), ("why it is private", f"explain {explained}"), ("other methods", f"plan {same}")])


def _shared_cells(
    categories: "Categories", candidates: Sequence[str] | None, in_use: int, chance: float
) -> list[tuple[str, str]]:
    """What hashing adds to the error: names that share a cell are counted together."""
    told = f"a cell counts all names in it; if people have {in_use:,} different names, a given one "
    told += f"shares its cell with probability {chance:.2g}"
    if candidates is None:
        return [("cells", told + "; --names a,b,c looks public names up")]
    cells: dict[int, list[str]] = {}
    for name, cell in zip(candidates, categories.encode(list(candidates)).tolist(), strict=True):
        cells.setdefault(cell, []).append(name)
    shared = [" and ".join(together) for together in cells.values() if len(together) > 1]
    return [("cells", told), *([("counted together", "; ".join(shared[:10]))] if shared else [])]
