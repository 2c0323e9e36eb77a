"""`shuffledp difference`: how far apart two groups are, as in an A/B test, in one command."""

from dataclasses import replace
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
    from shuffledp.protocols.presentation import Presentation

_DOMAIN = ("groups", "other_group", "low", "high", "at_most")


@options.takes_plan("grouped-rate", "grouped-mean", domain=_DOMAIN, without=("users", "noise", "constants"))
@on_engine
def difference(
    asked: Asked,
    file: options.File,
    column: options.Column = None,
    between: Annotated[
        str | None, typer.Option(help="Two of the groups, the second less the first; the first two.", metavar="A,B")
    ] = None,
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
    """The difference of two groups' rates, or means with --low and --high: an A/B test in which groups are private."""
    kept = KeptFiles.at(out=out, picture=picture, csv=csv, reads=(file, *asked.reads))
    pair: list[str] = []

    def check_pair(made: Any) -> None:
        """Refuse groups that there are not before anybody is asked."""
        pair.extend(_compared(between, made.group_names))

    answer = answered(
        *(asked, file, column),
        clip=clip,
        fast=fast,
        seed=seed,
        with_truth=with_truth,
        view=check_pair,
        shown=not as_json,
        engine=engine,
    )
    plan: Any = answer.plan
    names, (first, second) = plan.group_names, pair
    found, truth = plan.difference(answer.estimate, first, second), answer.truth
    presented = _with_picture(answer.presented, found, plan.what, truth)
    apart = None if truth is None else float(truth[names.index(second)] - truth[names.index(first)])
    document = answer.document(
        {
            "first": first,
            "second": second,
            "difference": found.estimate.value,
            "standard_error": found.estimate.standard_error,
            "bound": found.estimate.bound,
            "people": list(found.people),
            "population": list(found.population),
            "standard_deviations": None if found.deviations is None else list(found.deviations),
            "confidence": found.confidence,
            "differs": found.differs,
            "verdict": found.verdict,
            "truth": apart,
            **presented.figures,
            **kept.named,
        }
    )
    kept.write(document, presented, asked.whose.get("by"))
    if as_json:
        print_json(document)
        return
    sure = f"with {found.confidence:.0%} confidence"
    told = [
        (f"{second} less {first}", f"{found.estimate.value:+.4g}"),
        ("for these people", f"{_interval(found.people)} {sure}: only the noise is open"),
        ("for the population", f"{_interval(found.population)} {sure}: noise, and people are a random sample of it"),
        *_spreads(found),
        ("do they differ", found.verdict),
        ("proved", f"for these people it is off by at most {found.estimate.bound:.4g}, whatever their data"),
        *([] if apart is None else [("in truth", f"{apart:+.4g} for these people")]),
    ]
    rows = answer.facts(*kept.facts, told=told)
    show(*presented.listings, facts(f"{second} less {first}, by {plan.method}", rows))
    keep = answer.other(f"plan {plan.protocol}", "-o plan.json")
    next_steps([("why it is private", answer.other("explain")), ("keep the plan", keep)])


def _spreads(found: Any) -> list[tuple[str, str]]:
    """How far numbers spread in both groups, where that was asked for."""
    if found.deviations is None:
        return []
    first, second = (f"{deviation:.3g}" for deviation in found.deviations)
    return [("numbers spread by", f"{first} in {found.first}, {second} in {found.second}: standard deviations")]


def _with_picture(presented: "Presentation", found: Any, what: str, truth: Any) -> "Presentation":
    """The answer as it is presented, with a picture of the difference in place of the groups' alone."""
    groups = presented.chart
    return presented if groups is None else replace(presented, chart=found.chart(what, groups.data["title"], truth))


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
