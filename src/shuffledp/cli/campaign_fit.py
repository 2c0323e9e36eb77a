"""`shuffledp campaign create fit`: the words of `shuffledp fit`, for rows that stay on people's devices."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from shuffledp.cli import options
from shuffledp.cli.asked import target
from shuffledp.cli.campaign_making import AllowUnbounded, CampaignOut, DropAfter, MakingOptions, make_campaign
from shuffledp.cli.fit import (
    Categories,
    Classes,
    FitTask,
    GradientBound,
    Interactive,
    Norm,
    Other,
    TargetBounds,
    estimator_class,
)
from shuffledp.cli.fit_data import declared_targets, parse_bounds, parse_categories, parse_classes
from shuffledp.cli.optimize import SolverName
from shuffledp.cli.progress import working
from shuffledp.errors import DataError, ParameterError

if TYPE_CHECKING:
    from shuffledp.learn.live.rows import DeviceRows

Estimator = Literal["auto", "logistic", "svc", "ridge", "huber"]
Method = Literal["bits", "shares", "auto"]

Bounds = Annotated[
    str | None, typer.Option(help="What features may be: 0:1 for all, or a=0:9,b=-1:1 for each.", metavar="LOW:HIGH")
]
Features = Annotated[str | None, typer.Option(help="The columns that devices have.", metavar="A,B")]
Rounds = Annotated[int, typer.Option("--rounds-allowed", "--rounds", help="Rounds at most.", metavar="R")]


def create_fit(
    keys: options.KeysFolder,
    out: CampaignOut,
    features: Features = None,
    task: Annotated[FitTask, typer.Option(help="What the target is: a label, or a number.")] = "classification",
    users: options.Users = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    estimator: Annotated[Estimator, typer.Option(help="auto is logistic, or ridge for numbers.")] = "auto",
    solver: SolverName = "auto",
    bounds: Bounds = None,
    target_bounds: TargetBounds = None,
    classes: Classes = None,
    categories: Categories = None,
    other: Other = None,
    feature_norm: Norm = None,
    radius: Annotated[float | None, typer.Option(help="No score is larger: 10, or 2 for numbers.", metavar="R")] = None,
    alpha: Annotated[float | None, typer.Option(help="How much long models are penalized.", metavar="A")] = None,
    gradient_bound: GradientBound = None,
    visits: Annotated[int, typer.Option(help="In how many rounds one person may be asked.", metavar="M")] = 1,
    interactive: Interactive = False,
    rounds_allowed: Rounds = 1000,
    method: Annotated[Method, typer.Option(help="bits: no liar can spoil it; shares sends far less.")] = "bits",
    honest_fraction: options.HonestFraction = 1.0,
    drop_after: DropAfter = None,
    hop: options.HopKeys = None,
    issuer: options.IssuerFile = None,
    allow_unbounded: AllowUnbounded = False,
    ledger: options.LedgerFile = None,
    as_json: options.AsJson = False,
) -> None:
    """A classifier or regression that devices teach, a clipped gradient each; `campaign model -o` writes it."""
    from shuffledp.learn.optimize import plan
    from shuffledp.protocols.domains.categories import split_names

    people, privacy = target(users, epsilon, delta)
    if features is None:
        raise ParameterError("features", None, "must be given", "add --features A,B: the columns that devices have")
    names = [*split_names(features, "features")]
    if len(set(names)) < len(names):
        raise DataError("features", features, "must name each column once", "leave one out")
    if interactive and visits != 1:
        raise ParameterError("visits", visits, "and --interactive must not both be given", "leave one out")
    making = MakingOptions(keys, out, drop_after, allow_unbounded, ledger, as_json, hop, issuer)
    making.check()
    model_class = estimator_class(estimator, task)
    labels = _labels(task, classes, target_bounds, has_one_score=estimator == "svc")
    lists = None if categories is None else parse_categories(categories)
    numeric = [name for name in names if name not in (lists or {})]
    if bounds is None and feature_norm is None and numeric:
        problem = f"must say what {', '.join(numeric[:3])} may be: it cannot be read from people's rows"
        raise ParameterError("bounds", None, problem, "add --bounds 0:1, or a=0:9,b=-1:1 for each, or --feature-norm")
    pairs = None if bounds is None else parse_bounds(bounds, numeric, "bounds")
    targets = declared_targets(target_bounds, model_class) if task == "regression" else {}
    given = {"radius": radius, "alpha": alpha, "gradient_bound": gradient_bound, "classes": labels, **targets}
    # What was not given is left to the estimator, whose own defaults differ.
    chosen = {name: value for name, value in given.items() if value is not None}
    rows = _rows(names, pairs, feature_norm, lists, other, labels, targets.get("target_bounds"))
    model = model_class(
        epsilon=privacy.epsilon,
        delta=privacy.delta,
        visits=None if interactive else visits,
        max_rounds=rounds_allowed,
        feature_bounds=pairs,
        feature_norm=feature_norm,
        categories=lists,
        other=other,
        honest_fraction=honest_fraction,
        # Nobody is asked anything but for a gradient.
        count_clipped=0,
        **chosen,
    )
    with working("choosing a solver", shown=not as_json):
        learner = plan(replace(model.problem(people, names), method=method), solver=solver)
    make_campaign(learner, making, rows)


def _labels(task: str, classes: str | None, target_bounds: str | None, *, has_one_score: bool) -> Any:
    """The declared labels, or None where targets are numbers."""
    if task == "regression":
        if classes is not None:
            raise DataError("classes", classes, "is for labels; numbers have none", "leave it out")
        return None
    if target_bounds is not None:
        raise DataError("target_bounds", target_bounds, "is for numbers; labels have none", "leave it out")
    if classes is None:
        problem = "must say which labels there are"
        raise ParameterError("classes", None, problem, "add --classes 0,1, or --task regression for numbers")
    labels = parse_classes(classes)
    if has_one_score and len(labels) > 2:
        raise ParameterError("classes", classes, "must be two for svc", "take --estimator logistic")
    return labels


def _rows(
    names: list[str],
    pairs: Any,
    norm: float | None,
    lists: dict[str, list[str]] | None,
    other: str | None,
    labels: Any,
    target_bounds: Any,
) -> "DeviceRows":
    from shuffledp.learn.live.rows import DeviceRows

    return DeviceRows.of(
        names,
        bounds=pairs,
        norm=norm,
        categories=lists,
        other=other,
        classes=labels,
        target_bounds=target_bounds,
    )
