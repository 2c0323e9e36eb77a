"""`shuffledp sum`: a private sum of one column of a file, or of several columns as vectors."""

from shuffledp.cli import options
from shuffledp.cli.answering import answered
from shuffledp.cli.asked import Asked
from shuffledp.cli.kept import KeptFiles
from shuffledp.cli.numbers import NO_PICTURE, tell_numbers


@options.takes_plan(
    *("binary-sum", "bounded-sum", "vector-sum"),
    domain=("low", "high", "dimension", "radius", "rotation", "at_most", "groups", "other_group"),
    without=("users", "noise"),
)
def private_sum(
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
    """The sum of a file's column: of 0s and 1s, of numbers between --low and --high, or with --radius of vectors."""
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
