"""`shuffledp mean`: a private mean of one column of a file, numbers or days; weighted by a second one if asked."""

from typing import TYPE_CHECKING, Any

from shuffledp.cli import options
from shuffledp.cli.answering import Answered, answered
from shuffledp.cli.asked import Asked
from shuffledp.cli.engine_options import HERE, EngineAsked, on_engine
from shuffledp.cli.kept import KeptFiles
from shuffledp.cli.numbers import NO_PICTURE, answer_numbers, tell_numbers
from shuffledp.errors import ParameterError

if TYPE_CHECKING:
    from shuffledp.cli.days import DayRange


@options.takes_plan(
    *("mean", "weighted-mean"),
    domain=("low", "high", "largest_weight", "at_most", "groups", "other_group"),
    without=("users", "noise"),
    days=True,
)
@on_engine
def private_mean(
    asked: Asked,
    file: options.File,
    column: options.Column = None,
    columns: options.Columns = None,
    clip: options.Clip = False,
    out: options.Out = None,
    csv: options.Csv = None,
    fast: options.Fast = False,
    with_truth: options.WithTruth = False,
    seed: options.Seed = None,
    engine: EngineAsked = HERE,
    as_json: options.AsJson = False,
) -> None:
    """The mean of a file's column, each number or day between --low and --high; weighted by a second one if asked."""
    how = {"clip": clip, "fast": fast, "seed": seed, "with_truth": with_truth, "engine": engine}
    if asked.days is None:
        answer_numbers(asked, file, column, columns, out=out, csv=csv, as_json=as_json, **how)
        return
    for name, value in (("by", asked.whose.get("by")), ("columns", columns), ("csv", csv)):
        if value is not None:
            raise ParameterError(name, str(value), "is for numbers; a mean of days is one day", "leave it out")
    kept = KeptFiles.at(out=out, reads=(file, *asked.reads), no_picture=NO_PICTURE)
    found = answered(asked, file, column, shown=not as_json, **how)  # type: ignore[arg-type]
    told, figures = in_days(found, asked.days)
    tell_numbers(found, kept, as_json=as_json, told=told, figures=figures)


def in_days(found: Answered, days: "DayRange") -> tuple[list[tuple[str, str]], dict[str, Any]]:
    """A mean of days in words, and as JSON: the estimate and its interval are days, its errors numbers of them."""
    estimate, (first, last) = found.estimate, days.ends
    # Nobody's day lies outside the range, so neither does the mean, whatever the noise says.
    value, lower, upper = (
        days.shown(min(last, max(first, estimate.value + by))) for by in (0.0, -estimate.bound, estimate.bound)
    )
    told = [
        ("mean", f"{value} (from {lower} to {upper}, {estimate.confidence:.0%} confidence)"),
        ("standard error", f"{estimate.standard_error:.3g} days"),
        ("counted", f"in days since 1970-01-01: {first:g} is {days.low}, {last:g} is {days.high}"),
    ]
    figures: dict[str, Any] = {"estimate": value, "lower": lower, "upper": upper, "unit": "days"}
    if found.shows_truth:
        figures["truth"] = days.shown(float(found.truth))
        told.append(("in truth", figures["truth"]))
    return told, figures
