"""`shuffledp histogram`: a private histogram of one column of a file, in one command."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.answering import answered
from shuffledp.cli.asked import Asked
from shuffledp.cli.engine_options import HERE, EngineAsked, on_engine
from shuffledp.cli.kept import KeptFiles
from shuffledp.cli.output import facts, next_steps, print_json, show
from shuffledp.errors import ParameterError

if TYPE_CHECKING:
    from shuffledp.protocols.domains.domain import Categories

IsPublic = Annotated[bool, typer.Option("--domain-is-public", help="Allow --domain data: what occurs is no secret.")]


@options.takes_plan(
    "histogram",
    domain=("domain", "categories", "other", "at_most", "groups", "other_group"),
    without=("users", "noise"),
)
@on_engine
def histogram(
    asked: Asked,
    file: options.File,
    column: options.Column = None,
    domain_is_public: IsPublic = False,
    names: Annotated[
        str | None, typer.Option(help="hash domains: public names to look up, a,b,c or a file.", metavar="NAMES")
    ] = None,
    top: Annotated[int, typer.Option(help="Categories to print; all go into --csv and --json.", metavar="K")] = 20,
    out: options.Out = None,
    picture: options.Picture = None,
    csv: options.Csv = None,
    fast: options.Fast = False,
    with_truth: options.WithTruth = False,
    seed: options.Seed = None,
    engine: EngineAsked = HERE,
    as_json: options.AsJson = False,
) -> None:
    """A private histogram of a file's column: how many people have each category, and how far off that is."""
    from shuffledp.cli.domains import looked_up
    from shuffledp.protocols.presentation import View

    # A domain that is the data's own file is refused as such, or read.
    kept = KeptFiles.at(out=out, picture=picture, csv=csv, reads=(file, *asked.reads))
    if top < 1:
        raise ParameterError("top", top, "must be >= 1", "20 is the default")
    if asked.file is None:
        asked.target(users=1)
        asked = asked.with_data_as_domain(file, column, public=domain_is_public)
    found = answered(
        *(asked, file, column),
        fast=fast,
        seed=seed,
        with_truth=with_truth,
        view=lambda plan: View(top=top, names=looked_up(names, plan.domain.named)),  # type: ignore[arg-type]
        shown=not as_json,
        engine=engine,
    )
    plan, estimate, presented = found.plan, found.estimate, found.presented
    categories: Any = plan.domain.named
    candidates = looked_up(names, categories)
    # How many different names people have is not known: a hundred, or as many as are looked up.
    in_use = max(100, len(candidates or ()))
    chance = categories.collision_probability(in_use - 1) if categories.is_open else None
    document = found.document(
        {
            "histogram": presented.records(),
            **{name: getattr(estimate, name) for name in ("standard_error", "bound", "confidence")},
            "largest_error": None,
            **presented.figures,
            "names_in_use": None if chance is None else in_use,
            "collision_probability": chance,
            **kept.named,
        }
    )
    kept.write(document, presented, column)
    if as_json:
        print_json(document)
        return
    cells = [] if chance is None else _shared_cells(categories, candidates, in_use, chance)
    told = facts(f"{plan.title}, by {plan.method}", found.facts(*cells, *kept.facts))
    show(*presented.listings, told, plan.compared())
    drawn = None if kept.picture is not None else asked.said.again("--picture chart.png")
    next_steps(
        [
            (found.spending("draw it"), drawn),
            ("why it is private", found.other("explain")),
            ("other methods", found.other(f"plan {plan.protocol}")),
            ("keep the plan", found.other(f"plan {plan.protocol}", "-o plan.json")),
        ]
    )


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
