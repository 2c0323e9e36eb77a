"""`shuffledp fit`: a private classifier or regression from a file, as a model file and a report."""

import time
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from shuffledp.cli import options
from shuffledp.cli.asked import target as target_of
from shuffledp.cli.fit_data import (
    FitData,
    check_files_differ,
    check_target_path,
    parse_bounds,
    parse_classes,
    read_fit_data,
)
from shuffledp.cli.fit_output import UNPROTECTED, check_report_path, fit_facts, fit_next, report_writer
from shuffledp.cli.optimize import RoundsAllowed, SolverName
from shuffledp.cli.output import facts, next_steps, print_json, show
from shuffledp.errors import DataError, ParameterError

Task = Literal["classification", "regression"]
Estimator = Literal["auto", "logistic", "svc", "ridge", "huber"]

# What the next commands say in their own way, or not at all.
_NOT_SAID_AGAIN = ("file", "solver", "interactive", "seed", "out", "report", "as_json")
# The first of a task is what auto takes.
_ESTIMATORS: dict[str, dict[str, str]] = {
    "classification": {"logistic": "ShuffleLogisticRegression", "svc": "ShuffleLinearSVC"},
    "regression": {"ridge": "ShuffleRidge", "huber": "ShuffleHuberRegressor"},
}

_ROUNDS = ("honest_fraction", "rounds", "rounds_per_user", "users_per_round", "messages_per_user")

Bounds = Annotated[
    str | None, typer.Option(help="What features may be: 0:1 for all, or a=0:9,b=-1:1 for each.", metavar="LOW:HIGH")
]
TargetBounds = Annotated[str | None, typer.Option(help="What numbers may be; -1:1 if left out.", metavar="LOW:HIGH")]
Classes = Annotated[str | None, typer.Option(help="The two labels there are; else read from people's.", metavar="A,B")]
Norm = Annotated[float | None, typer.Option(help="Longer rows are shortened; 1 without --bounds.", metavar="L")]
GradientBound = Annotated[float | None, typer.Option(help="Clip gradients to less than the loss's bound.", metavar="L")]
Interactive = Annotated[bool, typer.Option("--interactive", help="People may be asked in every round, not only once.")]
Out = Annotated[Path | None, typer.Option("-o", "--out", help="Write the model to this JSON file.", metavar="FILE")]


@options.reads_file
def fit(
    context: typer.Context,
    file: options.File,
    target: Annotated[str, typer.Option(help="The column to predict; its number in a .npy.", metavar="C")],
    task: Annotated[Task, typer.Option(help="What the target is: one of two labels, or a number.")] = "classification",
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    estimator: Annotated[Estimator, typer.Option(help="auto is logistic, or ridge for numbers.")] = "auto",
    solver: SolverName = "auto",
    features: Annotated[str | None, typer.Option(help="Columns to learn from, else all.", metavar="A,B")] = None,
    bounds: Bounds = None,
    target_bounds: TargetBounds = None,
    classes: Classes = None,
    feature_norm: Norm = None,
    radius: Annotated[float | None, typer.Option(help="No score is larger: 10, or 2 for numbers.", metavar="R")] = None,
    alpha: Annotated[float | None, typer.Option(help="How much long models are penalized.", metavar="A")] = None,
    gradient_bound: GradientBound = None,
    interactive: Interactive = False,
    rounds_allowed: RoundsAllowed = 1000,
    honest_fraction: options.HonestFraction = 1.0,
    holdout: Annotated[float, typer.Option(help="Rows kept out to measure the model on.", metavar="F")] = 0.1,
    seed: options.Seed = None,
    out: Out = None,
    report: Annotated[
        Path | None, typer.Option(help="A learning curve: .html with all facts, .png, .svg or .pdf.", metavar="FILE")
    ] = None,
    reading: Any = None,
    as_json: options.AsJson = False,
) -> None:
    """A private classifier or regression from a file: a model, its guarantee, and how it learned."""
    privacy = target_of(1, epsilon, delta)[1]
    if out is not None:
        check_target_path("out", out)
    if report is not None:
        check_report_path(report)
    check_files_differ(file=file, out=out, report=report)
    model_class = _class(estimator, task)
    given = {
        "radius": radius,
        "alpha": alpha,
        "gradient_bound": gradient_bound,
        "target_bounds": None if target_bounds is None else parse_bounds(target_bounds, (), "target_bounds"),
        "classes": None if classes is None else parse_classes(classes),
    }
    # What was not given is left to the estimator, whose own defaults differ.
    chosen = {name: value for name, value in given.items() if value is not None}
    if task == "regression" and classes is not None:
        raise DataError("classes", classes, "is for labels; numbers have none", "leave it out")
    if task == "classification" and target_bounds is not None:
        raise DataError("target_bounds", target_bounds, "is for numbers; labels have none", "leave it out")
    data = read_fit_data(file, target, features, holdout, seed, labels=task == "classification", reading=reading)
    model = model_class(
        epsilon=privacy.epsilon,
        delta=privacy.delta,
        solver=solver,
        visits=None if interactive else 1,
        max_rounds=rounds_allowed,
        feature_bounds=None if bounds is None else parse_bounds(bounds, data.names, "bounds"),
        feature_norm=feature_norm,
        honest_fraction=honest_fraction,
        random_state=seed,
        **chosen,
    )
    started = time.perf_counter()
    try:
        model.fit(*data.training)
    except DataError as refused:
        name = {"y": "target"}.get(refused.parameter, refused.parameter)
        raise DataError(name, refused.value, refused.problem, refused.way_out) from None
    seconds = time.perf_counter() - started
    document = _document(model, data, target, task, seconds)
    write_report = None
    if report is not None:
        curves = {
            "the private model": model.losses(*data.measured).tolist(),
            "the same solver without noise": model.twin_losses(*data.training, *data.measured).tolist(),
        }
        write_report = report_writer(report, document, curves)
    if out is not None:
        model.model(data.names).save(out)
    if write_report is not None:
        write_report()
    document |= {"written": None if out is None else str(out), "report": None if report is None else str(report)}
    if as_json:
        print_json(document)
        return
    show(facts(f"A private {task} model", fit_facts(document)))
    said = {name.replace("_", "-"): value for name, value in context.params.items() if name not in _NOT_SAID_AGAIN}
    once_more = {"solver": None if solver == "auto" else solver, "interactive": interactive or None}
    next_steps(fit_next(document, file, said, once_more, model.solver_.problem))


def _class(asked: Estimator, task: Task) -> Any:
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


def _document(model: Any, data: FitData, target: str, task: Task, seconds: float) -> dict[str, Any]:
    import numpy as np

    features, labels = data.measured
    kept, guarantee = model.model(data.names), model.guarantee_
    baseline = 0.0
    if task == "classification":
        baseline = float(np.unique(labels, return_counts=True)[1].max() / len(labels))
    return {
        "schema": 1,
        "task": task,
        "estimator": kept.estimator,
        "target": target,
        "features": list(kept.features),
        "classes": None if kept.classes is None else list(kept.classes),
        "users": kept.users,
        "held_out": data.held_out,
        "solver": kept.solver,
        "bound": model.bound_,
        "model": guarantee.model,
        "epsilon": guarantee.privacy.epsilon,
        "delta": guarantee.privacy.delta,
        "delta_proved": guarantee.delta,
        **{name: getattr(guarantee, name) for name in _ROUNDS},
        "coefficients": kept.coefficients.tolist(),
        "intercept": kept.intercept,
        "score": float(model.score(features, labels)),
        "baseline": baseline,
        "clipped": dict(model.clipped_),
        "curve": {"rounds": model.path_rounds_.tolist(), "losses": model.losses(features, labels).tolist()},
        "unprotected": [*UNPROTECTED, *kept.unprotected],
        "simulated": model.simulated_,
        "seconds": seconds,
        "fingerprint": kept.fingerprint,
    }
