"""`shuffledp evaluate`: how good a model is on people who were kept out, private for them too."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.asked import target as target_of
from shuffledp.cli.kept import KeptFiles
from shuffledp.cli.output import charged, facts, next_steps, print_json, show, table
from shuffledp.cli.predict import rows_of
from shuffledp.cli.said import Said, target_options
from shuffledp.errors import DataError

if TYPE_CHECKING:
    from shuffledp.learn.evaluation import Evaluation
    from shuffledp.protocols.presentation import Presentation

Model = Annotated[Path, typer.Argument(help="The model's file, of `fit -o`.", metavar="MODEL", show_default=False)]
Bins = Annotated[int | None, typer.Option(help="Intervals that scores are cut into, else by the people.", metavar="B")]

_NAMES = {
    "auc": "AUC",
    "accuracy": "accuracy",
    "positive_rate": "rate of the second class",
    "log_loss": "log loss",
    "brier": "Brier score",
    "mean_prediction": "mean predicted probability",
    "mean_confidence": "mean confidence",
}


@options.reads_file
def evaluate(
    context: typer.Context,
    model_file: Model,
    file: options.File,
    target: Annotated[str, typer.Option(help="The column of true labels; its number in a .npy.", metavar="C")],
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    bins: Bins = None,
    honest_fraction: options.HonestFraction = 1.0,
    ledger: options.Ledger = None,
    out: options.Out = None,
    picture: options.Picture = None,
    csv: options.Csv = None,
    with_truth: options.WithTruth = False,
    seed: options.Seed = None,
    reading: Any = None,
    as_json: options.AsJson = False,
) -> None:
    """How good a model of `fit -o` is on people who were kept out: AUC, accuracy, losses and calibration."""
    from shuffledp.learn.estimators.models import load_model
    from shuffledp.learn.evaluation import evaluate as evaluated
    from shuffledp.learn.evaluation.evaluating import scored

    privacy = target_of(1, epsilon, delta)[1]
    kept = KeptFiles.at(out=out, picture=picture, csv=csv, reads=(file, model_file, ledger))
    model = load_model(model_file)
    if model.classes is None:
        raise DataError("model", model.estimator, "must be a classifier", "predict takes others")
    words = [model.features[place] for place in model.preparation.columns.levels]
    rows = rows_of(file, model.features, words, reading)
    labels = rows_of(file, (target,), (target,) if isinstance(model.classes[0], str) else (), reading)[:, 0]
    found = evaluated(
        model,
        rows,
        labels,
        epsilon=privacy.epsilon,
        delta=privacy.delta,
        bins=bins,
        honest_fraction=honest_fraction,
        random_state=seed,
        ledger=ledger,
    )
    truth = scored(model, rows, labels).truth() if with_truth else None
    document = {
        **found.document(),
        "estimator": model.estimator,
        "target": target,
        "classes": list(model.classes),
        "truth": truth,
        "model_fingerprint": model.fingerprint,
        "ledger": None if ledger is None else str(ledger),
        **kept.named,
    }
    kept.write(document, _presented(found, truth, target), target)
    if as_json:
        print_json(document)
        return
    headings = ["metric", "estimate", "at least", "at most", *(() if truth is None else ("true",))]
    listed = [
        [_NAMES[name], *(f"{number:.4f}" for number in (metric.value, metric.lower, metric.upper)), *_true(truth, name)]
        for name, metric in found.metrics.items()
    ]
    title = f"{model.estimator} on {found.users:,} people who were kept out"
    caption = f"all of them, and the groups below, hold together with {found.confidence:.0%} confidence"
    show(table(title, headings, listed, caption=caption))
    if any(metric.verdict for metric in found.metrics.values()):
        show(facts("What they say", [(_NAMES[name], metric.verdict or None) for name, metric in found.metrics.items()]))
    if found.calibration:
        columns = ("predicted", "people", "rate", "at least", "at most")
        groups = [
            (f"{group.low:.3f} to {group.high:.3f}", f"{group.people:,.0f}", *_three(group.rate))
            for group in found.calibration
        ]
        what = "had the second class" if len(model.classes) == 2 else "had the class that was predicted"
        show(table(f"Calibration: people by the predicted probability, and the part who {what}", columns, groups))
    show(facts("", [*_facts(found, kept, honest_fraction), *charged(ledger)]))
    drawn = None if kept.picture is not None else Said(context).again("--picture evaluation.png")
    fraction = "" if honest_fraction == 1 else f" --honest-fraction {honest_fraction!r}"
    cells = f"ranges --users {found.users} --domain 0:{2 * found.bins - 1} {target_options(found.privacy)}{fraction}"
    next_steps(
        [
            ("see the curves (spends epsilon again)", drawn),
            ("why it is private", f"explain {cells}"),
            ("keep the plan, for a ledger", f"plan {cells} -o plan.json"),
        ]
    )


def _three(metric: Any) -> tuple[str, ...]:
    return tuple(f"{number:.3f}" for number in (metric.value, metric.lower, metric.upper))


def _true(truth: dict[str, float | None] | None, name: str) -> tuple[str, ...]:
    if truth is None:
        return ()
    exact = truth[name]
    return ("-" if exact is None else f"{exact:.4f}",)


def _facts(found: "Evaluation", kept: KeptFiles, honest: float) -> list[tuple[str, Any]]:
    from shuffledp.learn.evaluation.metrics import CAVEATS

    return [
        (
            "privacy",
            f"{found.privacy} for every person, all metrics together: trusted are shufflers, and {honest:.0%} of these "
            "people",
        ),
        ("each person", f"reports once and sends at most {found.messages_per_user:,} messages"),
        ("mind", CAVEATS[1]),
        ("about whom", CAVEATS[0]),
        *(("warning", words) for words in found.warnings),
        ("seeded", "a simulation: its noise can be repeated, so it protects nobody" if found.simulated else None),
        *kept.facts,
    ]


def _presented(found: "Evaluation", truth: dict[str, float | None] | None, target: str) -> "Presentation":
    import numpy as np

    from shuffledp.protocols.presentation import Chart, Presentation

    columns: dict[str, Any] = {"metric": np.array(list(found.metrics))}
    for name in ("value", "lower", "upper"):
        columns[name] = np.array([getattr(metric, name) for metric in found.metrics.values()])
    if truth is not None:
        columns["truth"] = np.array([np.nan if truth[name] is None else truth[name] for name in found.metrics])
    chart = {
        "groups": [(each.predicted, each.rate.value, each.rate.lower, each.rate.upper) for each in found.calibration],
        "curve": found.roc,
        "area": str(found.metrics.get("auc")),
        "confidence": found.confidence,
        "title": f"{found.users:,} people who were kept out, {found.privacy}"
        + (" (seeded)" if found.simulated else ""),
    }
    return Presentation((), chart=Chart("evaluation", chart), columns=columns)
