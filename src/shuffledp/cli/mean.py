"""`shuffledp mean`: a private mean of one column of a file, weighted by a second one if asked."""

from shuffledp.cli import options
from shuffledp.cli.answering import answered
from shuffledp.cli.asked import Asked
from shuffledp.cli.kept import KeptFiles
from shuffledp.cli.numbers import NO_PICTURE, tell_numbers


@options.takes_plan(
    *("mean", "weighted-mean"),
    domain=("low", "high", "largest_weight", "groups", "other_group"),
    without=("users", "noise"),
)
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
    as_json: options.AsJson = False,
) -> None:
    """The mean of a file's column, each number between --low and --high; weighted by a second one if asked."""
    # Several groups have a picture.
    no_picture = "" if asked.whose.get("by") else NO_PICTURE
    kept = KeptFiles.at(out=out, csv=csv, reads=(file, *asked.reads), no_picture=no_picture)
    found = answered(
        *(asked, file, column, columns),
        clip=clip,
        fast=fast,
        seed=seed,
        with_truth=with_truth,
        shown=not as_json,
    )
    tell_numbers(found, kept, as_json=as_json)
