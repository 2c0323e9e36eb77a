"""`shuffledp mean`: a private mean of one column of a file, weighted by a second one if asked."""

from shuffledp.cli import options
from shuffledp.cli.asked import Asked
from shuffledp.cli.numbers import answer_numbers


@options.takes_plan(
    *("mean", "weighted-mean"),
    domain=("low", "high", "largest_weight", "at_most", "groups", "other_group"),
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
    how = {"clip": clip, "fast": fast, "seed": seed, "with_truth": with_truth}
    answer_numbers(asked, file, column, columns, out=out, csv=csv, as_json=as_json, **how)
