"""`shuffledp sum`: a private sum of one column of a file, or of several columns as vectors."""

from shuffledp.cli import options
from shuffledp.cli.asked import Asked
from shuffledp.cli.engine_options import HERE, EngineAsked, on_engine
from shuffledp.cli.numbers import answer_numbers


@options.takes_plan(
    *("binary-sum", "bounded-sum", "vector-sum"),
    domain=("low", "high", "dimension", "radius", "rotation", "at_most", "groups", "other_group"),
    without=("users", "noise"),
)
@on_engine
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
    engine: EngineAsked = HERE,
    as_json: options.AsJson = False,
) -> None:
    """The sum of a file's column: of 0s and 1s, of numbers between --low and --high, or with --radius of vectors."""
    how = {"clip": clip, "fast": fast, "seed": seed, "with_truth": with_truth, "engine": engine}
    answer_numbers(asked, file, column, columns, out=out, csv=csv, as_json=as_json, **how)
