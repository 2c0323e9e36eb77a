"""`shuffledp difference`: how far apart two groups are, as in an A/B test, in one command."""

from pathlib import Path
from typing import Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.asked import Asked
from shuffledp.cli.output import SEEDED, check_files, draw, facts, heading, next_steps, print_json, question, show
from shuffledp.cli.progress import simulated, working
from shuffledp.cli.typed import plan_options
from shuffledp.errors import ParameterError

_DOMAIN = ("groups", "other_group", "low", "high")


@options.takes_plan("grouped-rate", domain=_DOMAIN, without=("users", "noise", "constants"))
def difference(
    asked: Asked,
    file: options.File,
    column: options.Column = None,
    between: Annotated[
        str | None, typer.Option(help="Two of the groups, the second less the first; the first two.", metavar="A,B")
    ] = None,
    chart: Annotated[Path | None, typer.Option("-o", "--out", help="Draw a PNG or SVG.", metavar="FILE")] = None,
    clip: options.Clip = False,
    fast: options.Fast = False,
    with_truth: options.WithTruth = False,
    seed: options.Seed = None,
    as_json: options.AsJson = False,
) -> None:
    """The difference of two groups' rates, or means with --low and --high: an A/B test in which groups are private."""
    check_files(picture=chart)
    bits = options.bits_of(seed)
    with working("choosing a method", shown=not as_json):
        plan: Any
        plan, values, _ = asked.with_file(file, column, clip=clip, bits=bits)
    names = plan.group_names
    first, second = _compared(between, names)
    estimate, seconds = simulated(plan, values, bits=bits, fast=fast, shown=not as_json)
    found = plan.difference(estimate, first, second)
    truth = plan.true_value(values) if with_truth else None
    apart = None if truth is None else float(truth[names.index(second)] - truth[names.index(first)])
    presented = plan.present(estimate, truth)
    if chart is not None:
        draw(presented, chart)
    if as_json:
        print_json(
            {
                **heading(plan),
                **plan.domain_document,
                "first": first,
                "second": second,
                "difference": found.estimate.value,
                "standard_error": found.estimate.standard_error,
                "bound": found.estimate.bound,
                "people": list(found.people),
                "population": list(found.population),
                "confidence": found.confidence,
                "differs": found.differs,
                "truth": apart,
                **presented.figures,
                "fidelity": "law" if fast else "messages",
                "simulated": estimate.simulated,
                "fingerprint": plan.fingerprint,
                "out": chart,
            }
        )
        return
    sure = f"with {found.confidence:.0%} confidence"
    told = "yes: 0 lies outside" if found.differs else "cannot be told: 0 lies in"
    rows = [
        ("asked", question(plan)),
        (f"{second} less {first}", f"{found.estimate.value:+.4g}"),
        ("for these people", f"{_interval(found.people)} {sure}: only the noise is open"),
        ("for the population", f"{_interval(found.population)} {sure}: noise, and people are a random sample of it"),
        ("do they differ", f"{told} the population's interval"),
        ("proved", f"for these people it is off by at most {found.estimate.bound:.4g}, whatever their data"),
        ("in truth", None if apart is None else f"{apart:+.4g} for these people"),
        ("each person sends", plan.sends),
        ("ran", f"in {seconds:.2f} s"),
        ("protects", SEEDED if estimate.simulated else None),
        ("picture", chart),
    ]
    show(*presented.listings, facts(f"{second} less {first}, by {plan.method}", rows))
    made = f"--plan {asked.file}" if asked.file is not None else f"{plan.protocol} {plan_options(plan)}"
    keep = None if asked.file is not None else f"plan {made} -o plan.json"
    next_steps([("why it is private", f"explain {made}"), ("keep the plan", keep)])


def _compared(between: str | None, names: tuple[str, ...]) -> tuple[str, str]:
    """The two groups that are compared: those named, or the first two of the list."""
    if between is None:
        return names[0], names[1]
    from shuffledp.protocols.domains.categories import split_names

    pair = split_names(between, "between")
    if len(pair) != 2 or pair[0] == pair[1] or not set(pair) <= set(names):
        raise ParameterError("between", between, f"must be two of {', '.join(names)}", "write --between A,B")
    return pair[0], pair[1]


def _interval(ends: tuple[float, float]) -> str:
    return f"{ends[0]:+.4g} to {ends[1]:+.4g}"
