"""`shuffledp quantile`: private quantiles of one column of a file, from counts of all ranges."""

from pathlib import Path
from typing import Annotated

import typer

from shuffledp.cli import options
from shuffledp.cli.asked import Asked
from shuffledp.cli.output import SEEDED, check_files, draw, facts, heading, next_steps, print_json, question, show
from shuffledp.cli.progress import simulated
from shuffledp.cli.typed import data_options, target_options
from shuffledp.errors import ParameterError


@options.takes_plan("ranges", domain=("domain", "steps", "branching"), without=("users", "noise"))
def quantile(
    asked: Asked,
    file: options.File,
    column: options.Column = None,
    quantiles: Annotated[str, typer.Option(help="Ranks between 0 and 1.", metavar="Q,Q,...")] = "0.25,0.5,0.75",
    clip: options.Clip = False,
    fast: options.Fast = False,
    with_truth: options.WithTruth = False,
    seed: options.Seed = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="Draw the distribution: PNG, SVG or PDF.", metavar="FILE"),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Private quantiles of a file's column, each with an interval that holds the true one."""
    from shuffledp.cli.domains import numbers_in
    from shuffledp.protocols.presentation import View

    axes = len(asked.domain["domain"]) if asked.loaded is None else asked.loaded.domain.columns
    if axes != 1:
        raise ParameterError("domain", asked.typed.get("domain"), "must be one axis for quantiles", "give one LOW:HIGH")
    ranks = numbers_in(quantiles)
    if not ranks or not all(0 <= rank <= 1 for rank in ranks):
        raise ParameterError("quantiles", quantiles, "must be numbers between 0 and 1", "write them as 0.25,0.5,0.75")
    check_files(picture=out)
    plan, codes, clipped = asked.with_file(file, column, clip=clip)
    estimate, seconds = simulated(plan, codes, bits=options.bits_of(seed), fast=fast, shown=not as_json)
    # The truth is nobody's to see unless somebody asks for it: without it, what is printed and drawn is private.
    shows_truth = with_truth or seed is not None
    presented = plan.present(estimate, plan.true_value(codes) if shows_truth else None, View(quantiles=ranks))
    if out is not None:
        draw(presented, out, column)
    if as_json:
        print_json(
            {
                **heading(plan),
                **plan.domain_document,
                **presented.figures,
                "confidence": estimate.confidence,
                "messages_per_user_mean": plan.messages_per_user_mean,
                "messages_per_user_max": plan.messages_per_user_max,
                "clipped": clipped if shows_truth else None,
                "fidelity": "law" if fast else "messages",
                "simulated": estimate.simulated,
                "seconds": seconds,
                "fingerprint": plan.fingerprint,
                "out": out,
            }
        )
        return
    rows = [
        ("asked", question(plan)),
        ("each user sends", plan.sends),
        *presented.facts,
        ("ran", f"{'its own law, no messages made' if fast else 'message by message'} in {seconds:.2f} s"),
        ("protects", SEEDED if estimate.simulated else None),
        ("clipped", f"{clipped:,} values were brought into the domain" if clipped and shows_truth else None),
        ("picture", out),
    ]
    show(facts(f"Private quantiles: ranges by {plan.method}", rows), *presented.listings)
    limit = asked.request["max_messages"]
    same = f"{plan.options} {target_options(plan.privacy)}" + ("" if limit is None else f" --max-messages {limit}")
    see = f"quantile {data_options(file, column, asked.reading)} {same} -o cdf.png" if out is None else None
    keep = f"plan ranges --users {plan.users} {same} -o plan.json"
    next_steps([("see the distribution", see), ("keep the plan", keep)])
