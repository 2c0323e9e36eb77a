"""`shuffledp variance`: a private variance of one column of a file, with its mean and standard deviation."""

import math
from dataclasses import replace
from typing import Any

from shuffledp.cli import options
from shuffledp.cli.answering import answered
from shuffledp.cli.asked import Asked
from shuffledp.cli.engine_options import HERE, EngineAsked, on_engine
from shuffledp.cli.kept import KeptFiles
from shuffledp.cli.numbers import NO_PICTURE, tell_numbers


@options.takes_plan("moments", domain=("low", "high", "at_most"), without=("users", "noise"))
@on_engine
def private_variance(
    asked: Asked,
    file: options.File,
    column: options.Column = None,
    clip: options.Clip = False,
    out: options.Out = None,
    csv: options.Csv = None,
    fast: options.Fast = False,
    with_truth: options.WithTruth = False,
    seed: options.Seed = None,
    engine: EngineAsked = HERE,
    as_json: options.AsJson = False,
) -> None:
    """The variance of a file's column, each number between --low and --high, and the mean from the same messages."""
    kept = KeptFiles.at(out=out, csv=csv, reads=(file, *asked.reads), no_picture=NO_PICTURE)
    found = answered(
        *(asked, file, column),
        clip=clip,
        fast=fast,
        seed=seed,
        with_truth=with_truth,
        shown=not as_json,
        engine=engine,
    )
    variance, mean = (found.estimate.of(name) for name in ("variance", "mean"))
    # A variance is not below 0, whatever the noise says.
    low, high = max(0.0, variance.lower), max(0.0, variance.upper)
    ends = [math.sqrt(low), math.sqrt(high)]
    told = [
        ("variance", str(variance)),
        ("standard deviation", f"between {ends[0]:.4g} and {ends[1]:.4g}, {variance.confidence:.0%} confidence"),
        ("mean", str(mean)),
        *[(name, words) for name, words in found.presented.facts if name != "estimate"],
    ]
    figures: dict[str, Any] = {
        "estimate": variance.value,
        "standard_error": variance.standard_error,
        "bound": variance.bound,
        "lower": low,
        "upper": high,
        "standard_deviation": math.sqrt(max(0.0, variance.value)),
        "mean": {"estimate": mean.value, "standard_error": mean.standard_error, "bound": mean.bound},
    }
    if found.shows_truth:
        truth = dict(zip(found.estimate.names, found.truth.tolist(), strict=True))
        figures |= {"truth": truth["variance"], "error": abs(variance.value - truth["variance"])}
        figures["mean"]["truth"] = truth["mean"]
    columns = dict(found.presented.columns)
    shown = replace(found.presented, columns={**columns, "lower": columns["lower"].clip(min=_FLOOR)})
    tell_numbers(replace(found, presented=shown), kept, as_json=as_json, told=told, figures=figures)


_FLOOR = [-math.inf, 0.0]
