"""`shuffledp quantile`: private quantiles of one column of a file, from counts of all ranges."""

from typing import Annotated

import typer

from shuffledp.cli import options
from shuffledp.cli.answering import answered
from shuffledp.cli.asked import Asked
from shuffledp.cli.engine_options import HERE, EngineAsked, on_engine
from shuffledp.cli.kept import KeptFiles
from shuffledp.cli.output import facts, next_steps, print_json, show
from shuffledp.errors import ParameterError


@options.takes_plan("ranges", domain=("domain", "steps", "branching", "at_most"), without=("users", "noise"))
@on_engine
def quantile(
    asked: Asked,
    file: options.File,
    column: options.Column = None,
    quantiles: Annotated[str, typer.Option(help="Ranks between 0 and 1.", metavar="Q,Q,...")] = "0.25,0.5,0.75",
    clip: options.Clip = False,
    out: options.Out = None,
    picture: options.Picture = None,
    csv: options.Csv = None,
    fast: options.Fast = False,
    with_truth: options.WithTruth = False,
    seed: options.Seed = None,
    engine: EngineAsked = HERE,
    as_json: options.AsJson = False,
) -> None:
    """Private quantiles of a file's column (the median, say), each with an interval that holds the true one."""
    from shuffledp.cli.domains import numbers_in
    from shuffledp.protocols.presentation import View

    axes = len(asked.domain["domain"]) if asked.loaded is None else asked.loaded.domain.row.columns
    if axes != 1:
        raise ParameterError("domain", asked.typed.get("domain"), "must be one axis for quantiles", "give one LOW:HIGH")
    ranks = numbers_in(quantiles)
    if not ranks or not all(0 <= rank <= 1 for rank in ranks):
        raise ParameterError("quantiles", quantiles, "must be numbers between 0 and 1", "write them as 0.25,0.5,0.75")
    kept = KeptFiles.at(out=out, picture=picture, csv=csv, reads=(file, *asked.reads))
    found = answered(
        *(asked, file, column),
        clip=clip,
        fast=fast,
        seed=seed,
        with_truth=with_truth,
        view=lambda _: View(quantiles=ranks),
        shown=not as_json,
        engine=engine,
    )
    plan, presented = found.plan, found.presented
    sent = {name: getattr(plan, name) for name in ("messages_per_user_mean", "messages_per_user_max")}
    document = found.document({**presented.figures, "confidence": found.estimate.confidence, **sent, **kept.named})
    kept.write(document, presented, column)
    if as_json:
        print_json(document)
        return
    show(*presented.listings, facts(f"Private quantiles: ranges by {plan.method}", found.facts(*kept.facts)))
    drawn = None if kept.picture is not None else asked.said.again("--picture cdf.png")
    next_steps(
        [
            (found.spending("see the distribution"), drawn),
            ("why it is private", found.other("explain")),
            ("keep the plan", found.other("plan ranges", "-o plan.json")),
        ]
    )
