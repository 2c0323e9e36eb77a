"""`shuffledp fit`: a private classifier or regression from a file, as a model file and a report."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from shuffledp.cli import options
from shuffledp.cli.asked import target as target_of
from shuffledp.cli.engine_options import HERE, EngineAsked, on_engine
from shuffledp.cli.fit_data import (
    FitData,
    check_files_differ,
    declared_targets,
    parse_bounds,
    parse_categories,
    parse_classes,
    read_fit_data,
    words_of,
)
from shuffledp.cli.fit_output import UNPROTECTED, check_report_path, fit_facts, fit_next, writer
from shuffledp.cli.kept import KeptFiles
from shuffledp.cli.optimize import RoundsAllowed, SolverName
from shuffledp.cli.output import charged, facts, next_steps, print_json, show
from shuffledp.cli.progress import of_how_much
from shuffledp.cli.said import Said
from shuffledp.cli.warned import kept_warnings
from shuffledp.errors import DataError, ParameterError

if TYPE_CHECKING:
    from shuffledp.cli.fit_pieces import FilePeople

FitTask = Literal["classification", "regression"]
Estimator = Literal["auto", "logistic", "svc", "ridge", "huber", "poisson"]

# The first of a task is what auto takes.
_ESTIMATORS: dict[str, dict[str, str]] = {
    "classification": {"logistic": "ShuffleLogisticRegression", "svc": "ShuffleLinearSVC"},
    "regression": {"ridge": "ShuffleRidge", "huber": "ShuffleHuberRegressor", "poisson": "ShufflePoissonRegressor"},
}

_ROUNDS = ("honest_fraction", "rounds", "rounds_per_user", "users_per_round", "messages_per_user")

Bounds = Annotated[
    str | None, typer.Option(help="What features may be: 0:1 for all, or a=0:9,b=-1:1 for each.", metavar="LOW:HIGH")
]
TargetBounds = Annotated[
    str | None, typer.Option(help="What numbers may be; 0:HIGH for poisson's counts.", metavar="LOW:HIGH")
]
Classes = Annotated[
    str | None, typer.Option(help="The labels there are; with --with-truth read from people's.", metavar="A,B,C")
]
Categories = Annotated[
    str | None, typer.Option(help="What columns of categories may be: city=Oslo,Rome,size=s,m,l.", metavar="C=A,B")
]
Other = Annotated[str | None, typer.Option(help="One more category, for values outside a list.", metavar="NAME")]
Norm = Annotated[float | None, typer.Option(help="Longer rows are shortened to this.", metavar="L")]
CountClipped = Annotated[
    int | None, typer.Option(help="People asked if their data were clipped, not to learn from.", metavar="N")
]
GradientBound = Annotated[float | None, typer.Option(help="Clip gradients to less than the loss's bound.", metavar="L")]
Interactive = Annotated[bool, typer.Option("--interactive", help="People may be asked in every round, not only once.")]
Holdout = Annotated[
    float | None,
    typer.Option(help="With --with-truth: rows kept out to measure the model on; 0.1 of them.", metavar="F"),
]
Out = Annotated[
    Path | None,
    typer.Option("-o", "--out", help="Write the model, .json; .png .svg .pdf draws as --picture does.", metavar="FILE"),
]
Report = Annotated[
    Path | None, typer.Option(help="With --with-truth: all facts and the learning curve, .html.", metavar="FILE")
]


@options.reads_file
@on_engine
def fit(
    context: typer.Context,
    file: options.File,
    target: Annotated[str, typer.Option(help="The column to predict; its number in a .npy.", metavar="C")],
    task: Annotated[FitTask, typer.Option(help="What the target is: a label, or a number.")] = "classification",
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    estimator: Annotated[Estimator, typer.Option(help="auto is logistic, or ridge for numbers.")] = "auto",
    solver: SolverName = "auto",
    features: Annotated[str | None, typer.Option(help="Columns to learn from, else all.", metavar="A,B")] = None,
    bounds: Bounds = None,
    target_bounds: TargetBounds = None,
    classes: Classes = None,
    categories: Categories = None,
    other: Other = None,
    feature_norm: Norm = None,
    radius: Annotated[float | None, typer.Option(help="No score is larger: 10, or 2 for numbers.", metavar="R")] = None,
    alpha: Annotated[float | None, typer.Option(help="How much long models are penalized.", metavar="A")] = None,
    gradient_bound: GradientBound = None,
    interactive: Interactive = False,
    rounds_allowed: RoundsAllowed = 1000,
    honest_fraction: options.HonestFraction = 1.0,
    count_clipped: CountClipped = None,
    holdout: Holdout = None,
    ledger: options.Ledger = None,
    out: Out = None,
    picture: options.Picture = None,
    report: Report = None,
    with_truth: options.WithTruth = False,
    seed: options.Seed = None,
    reading: Any = None,
    engine: EngineAsked = HERE,
    as_json: options.AsJson = False,
) -> None:
    """A private classifier or regression from a file: a model, its guarantee, and how it learned."""
    privacy = target_of(1, epsilon, delta)[1]
    kept = KeptFiles.at(
        out=out, picture=picture, reads=(file, ledger), no_table="has no table: a model is no list", documents=()
    )
    if report is not None:
        check_report_path(report)
    check_files_differ(file=file, ledger=ledger, out=kept.document, picture=kept.picture, report=report)
    for name, value in (("holdout", holdout), ("picture", kept.picture), ("report", report)):
        if value is not None and not with_truth:
            problem = "measures the model on people's rows without noise"
            raise ParameterError(name, str(value), problem, "leave it out, or add --with-truth")
    if task == "classification" and classes is None and not with_truth:
        problem = "must say which labels there are, without a look at people's"
        raise ParameterError("classes", None, problem, "add --classes 0,1, or --with-truth to read them from the file")
    model_class = estimator_class(estimator, task)
    if task == "regression" and classes is not None:
        raise DataError("classes", classes, "is for labels; numbers have none", "leave it out")
    if task == "classification" and target_bounds is not None:
        raise DataError("target_bounds", target_bounds, "is for numbers; labels have none", "leave it out")
    labels = None if classes is None else parse_classes(classes)
    lists = None if categories is None else parse_categories(categories)
    given = {
        "radius": radius,
        "alpha": alpha,
        "gradient_bound": gradient_bound,
        "classes": labels,
        "categories": lists,
        "other": other,
        "count_clipped": count_clipped,
        **(declared_targets(target_bounds, model_class) if task == "regression" else {}),
    }
    # What was not given is left to the estimator, whose own defaults differ.
    chosen = {name: value for name, value in given.items() if value is not None}
    kept_out = (0.1 if holdout is None else holdout) if with_truth else 0.0
    words = words_of(target, labels, lists)
    is_label = task == "classification"
    how = {"labels": is_label, "words": words, "reading": reading}
    from shuffledp.cli.fit_pieces import people_in_pieces

    data: FitData | FilePeople | None = people_in_pieces(
        file, target, features, seed, engine, with_truth=with_truth, **how
    )
    if data is None:
        data = read_fit_data(file, target, features, kept_out, seed, **how)
    numeric = [name for name in data.names if name not in words]
    if bounds is None and feature_norm is None and numeric:
        problem = f"must say what {', '.join(numeric[:3])} may be: it cannot be read from people's rows unpaid"
        raise ParameterError("bounds", None, problem, "add --bounds 0:1, or a=0:9,b=-1:1 for each, or --feature-norm")
    model = model_class(
        epsilon=privacy.epsilon,
        delta=privacy.delta,
        solver=solver,
        visits=None if interactive else 1,
        max_rounds=rounds_allowed,
        feature_bounds=None if bounds is None else parse_bounds(bounds, numeric, "bounds"),
        feature_norm=feature_norm,
        honest_fraction=honest_fraction,
        random_state=seed,
        ledger=ledger,
        **chosen,
    )
    if not as_json:
        _say_before(model, data)
    started = time.perf_counter()
    try:
        with kept_warnings(with_truth=with_truth) as warned, of_how_much("learning", shown=not as_json) as progress:
            _fit(model.watched_by(progress), data)
    except DataError as refused:
        name = {"y": "target"}.get(refused.parameter, refused.parameter)
        raise DataError(name, refused.value, refused.problem, refused.way_out) from None
    seconds = time.perf_counter() - started
    document = _document(model, data, target, task, seconds, with_truth=with_truth) | {"warnings": warned}
    curves = {}
    if (kept.picture is not None or report is not None) and isinstance(data, FitData):
        curves = {
            "the private model": model.losses(*data.measured).tolist(),
            "the same solver without noise": model.twin_losses(*data.training, *data.measured).tolist(),
        }
    writers = [writer(path, document, curves) for path in (kept.picture, report) if path is not None]
    if kept.document is not None:
        model.model(data.names).save(kept.document)
    for write in writers:
        write()
    document |= {"written": kept.document, "picture": kept.picture, "report": report, "ledger": ledger}
    if as_json:
        print_json(document)
        return
    show(facts(f"A private {task} model", [*fit_facts(document), *charged(ledger)]))
    next_steps(fit_next(document, Said(context), file, model.solver_.problem))


def estimator_class(asked: str, task: FitTask) -> Any:
    """The estimator's class; one of another task is refused."""
    from shuffledp import learn

    fitting = _ESTIMATORS[task]
    name = next(iter(fitting)) if asked == "auto" else asked
    if name not in fitting:
        problem = f"must be {' or '.join(fitting)} for {task}"
        raise ParameterError("estimator", asked, problem, "or choose another --task")
    try:
        return getattr(learn, fitting[name])
    except ImportError as missing:
        way_out = "install it with: pip install 'shuffledp[learn]'"
        raise ParameterError("estimator", name, "needs scikit-learn", way_out) from missing


def _say_before(model: Any, data: "FitData | FilePeople") -> None:
    """Tell on standard error, before anybody is asked, that so few people may learn nothing; by the plan alone."""
    from shuffledp.errors import ShuffleDPError
    from shuffledp.learn.optimize import plan
    from shuffledp.learn.optimize.outlook import words_before

    if getattr(model, "classes", ()) is None:
        return
    try:
        words = words_before(plan(model.problem(data.users, data.names), solver=model.solver))
    except ShuffleDPError:
        # The fit itself says what is wrong, in the words of its options.
        return
    if words is not None:
        typer.echo(f"Before anything is spent: {words}.", err=True)


def _fit(model: Any, data: "FitData | FilePeople") -> None:
    """Learn from a file's rows; names of categories are those of its columns."""
    import warnings

    from shuffledp.learn.estimators.clipping import ClippedWarning

    if model.categories is not None:
        # An array has no names, and a data frame would need another package.
        places = {name: place for place, name in enumerate(data.names)}
        model.set_params(categories={places[name]: levels for name, levels in model.categories.items()})
    with warnings.catch_warnings():
        # It is among the facts that are shown.
        warnings.simplefilter("ignore", ClippedWarning)
        try:
            if isinstance(data, FitData):
                model.fit(*data.training)
            else:
                model.fit_elsewhere(data)
        except DataError as wrong:
            said, is_place, number = wrong.problem.rpartition(" in column ")
            if wrong.parameter != "categories" or not is_place:
                raise
            problem = f"{said} in column {data.names[int(number) - 1]}"
            way_out = (
                "add it to the list, or name a category for all others and for people without a value: --other NAME"
            )
            raise DataError("categories", wrong.value, problem, way_out) from None


def _document(
    model: Any, data: "FitData | FilePeople", target: str, task: FitTask, seconds: float, *, with_truth: bool
) -> dict[str, Any]:
    from shuffledp.learn.optimize.vacuous import proves_nothing

    kept, guarantee = model.model(data.names), model.guarantee_
    return {
        "schema": 1,
        "task": task,
        "estimator": kept.estimator,
        "target": target,
        "features": list(kept.features),
        "columns": list(kept.columns),
        "classes": None if kept.classes is None else list(kept.classes),
        "users": kept.users,
        "held_out": data.held_out,
        "solver": kept.solver,
        "chosen_by": model.solver_.chosen.by,
        "bound": model.bound_,
        "bound_proves_nothing": proves_nothing(model.solver_.problem, model.bound_),
        "expected": None if model.outlook_ is None else model.outlook_.document(),
        "beside_noise": None if model.noise_alone_ is None else model.noise_alone_.document(),
        "model": guarantee.model,
        "epsilon": guarantee.privacy.epsilon,
        "delta": guarantee.privacy.delta,
        "delta_proved": guarantee.delta,
        **{name: getattr(guarantee, name) for name in _ROUNDS},
        "coefficients": kept.coefficients.tolist(),
        "intercept": kept.intercept if isinstance(kept.intercept, float) else kept.intercept.tolist(),
        "clipped_shares": list(kept.clipped),
        "clipped_counted_from": model.clipped_counted_from_,
        **(_measured(model, data, task) if with_truth else dict.fromkeys(UNPROTECTED)),
        "unprotected": [*(UNPROTECTED if with_truth else ()), *kept.unprotected],
        "simulated": model.simulated_,
        "seconds": seconds,
        "fingerprint": kept.fingerprint,
    }


def _measured(model: Any, data: Any, task: FitTask) -> dict[str, Any]:
    """What is read from people's rows without noise, under the names of `UNPROTECTED`."""
    import numpy as np

    features, labels = data.measured
    baseline = 0.0
    if task == "classification":
        baseline = float(np.unique(labels, return_counts=True)[1].max() / len(labels))
    return {
        "score": float(model.score(features, labels)),
        "baseline": baseline,
        "clipped": dict(model.clipped_),
        "curve": {"rounds": model.path_rounds_.tolist(), "losses": model.losses(features, labels).tolist()},
    }
