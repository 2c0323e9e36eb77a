"""`shuffledp predict`: what a model that `fit -o` wrote says about the rows of a file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.kept import KeptFiles
from shuffledp.cli.output import facts, print_json, show
from shuffledp.errors import DataError, ParameterError

_FIRST = 5


@options.reads_file
def predict(
    file: options.File,
    model_file: Annotated[Path, typer.Option("--model", help="The model's file, of `fit -o`.", metavar="FILE")],
    target: Annotated[
        str | None, typer.Option(help="With --with-truth: the column of true values to score against.", metavar="C")
    ] = None,
    out: options.Out = None,
    csv: options.Csv = None,
    with_truth: options.WithTruth = False,
    reading: Any = None,
    as_json: options.AsJson = False,
) -> None:
    """Predict a label or a number for every row of a file, by a model of `shuffledp fit -o`."""
    import numpy as np

    from shuffledp.learn.estimators.models import load_model
    from shuffledp.protocols.presentation import Presentation

    only = "cannot be drawn: there are only predictions"
    kept = KeptFiles.at(out=out, csv=csv, reads=(file, model_file), no_picture=only)
    if target is not None and not with_truth:
        problem = "is compared with predictions without noise"
        raise ParameterError("target", target, problem, "leave it out, or add --with-truth")
    if with_truth and target is None:
        raise ParameterError("target", None, "must be given beside --with-truth", "name the column of true values")
    model = load_model(model_file)
    rows = rows_of(file, model.features, [model.features[place] for place in model.preparation.columns.levels], reading)
    said = model.predict(rows)
    columns: dict[str, Any] = {"prediction": said}
    if model.has_probabilities:
        found = model.probabilities(rows)
        several = zip(model.classes or (), found.T, strict=True) if found.ndim == 2 else ()
        columns |= {f"probability_{label}": column for label, column in several} or {"probability": found}
    score = None
    if target is not None:
        has_words = model.classes is not None and isinstance(model.classes[0], str)
        true = rows_of(file, (target,), (target,) if has_words else (), reading)[:, 0]
        if model.classes is not None:
            score = float(np.mean(said == true.astype(said.dtype if has_words else np.float64)))
        else:
            spread = float(np.square(true - true.mean()).sum())
            score = 1 - float(np.square(true - said).sum()) / spread if spread > 0 else None
    document = {
        "schema": 1,
        "estimator": model.estimator,
        "features": list(model.features),
        "classes": None if model.classes is None else list(model.classes),
        "rows": len(said),
        "predictions": None if kept.table is not None else {name: column.tolist() for name, column in columns.items()},
        "score": score,
        "fingerprint": model.fingerprint,
        **kept.named,
    }
    kept.write(document, Presentation((), columns=columns))
    if as_json:
        print_json(document)
        return
    shown = ", ".join(f"{value:.6g}" if model.classes is None else str(value) for value in said[:_FIRST].tolist())
    word = "right" if model.classes is not None else "R²"
    told = [
        ("predicted", f"{len(said):,} rows from {', '.join(model.features)}, by {model.estimator}"),
        ("the first", shown + (", ..." if len(said) > _FIRST else "")),
        (
            "how accurate",
            None if score is None else f"{word} {score:.3g} on these rows (without noise: not for publication)",
        ),
        ("privacy", "predicting costs the people it learned from nothing more: the model was private already"),
        ("not private", "each prediction says something about the row it is for: it belongs to whoever owns the row"),
        *kept.facts,
        ("all of them", None if kept.table is not None else "add --csv predictions.csv"),
    ]
    show(facts("Predictions", told))


def rows_of(file: Path, names: Sequence[str], words: Sequence[str], reading: Any) -> Any:
    """A file's columns of these names, all finite numbers but for words; of a .npy by their numbers."""
    from shuffledp.cli.fit_data import read_rows
    from shuffledp.tables.names import column_names

    there = column_names(file, reading=reading)
    missing = [name for name in names if name not in there]
    if missing:
        listed = ", ".join(there[:10]) + (f" and {len(there) - 10} more" if len(there) > 10 else "")
        raise DataError("file", missing[0], f"must be a column of {file.name}", f"it has {listed}")
    return read_rows(file, names, words, reading=reading, parameter="file")
