"""From the numbers that a campaign learned to the file that `shuffledp predict` takes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.errors import ParameterError
from shuffledp.learn.estimators.models import LinearModel
from shuffledp.learn.live.rows import DeviceRows
from shuffledp.learn.optimize.solver import Solver

# The estimators that have these losses, whose scores mean the same.
_ESTIMATORS = {
    "logistic": "ShuffleLogisticRegression",
    "softmax": "ShuffleLogisticRegression",
    "hinge": "ShuffleLinearSVC",
    "squared": "ShuffleRidge",
    "huber": "ShuffleHuberRegressor",
}


def linear_model(solver: Solver, rows: DeviceRows, theta: ArrayLike, *, rounds: int) -> LinearModel:
    """A solver's numbers in the units of people's own columns, with all that is needed to predict by them.

    Args:
        solver: what learned them.
        rows: what devices make of their columns.
        theta: the solver's numbers after so many rounds, as a model publishes them.
        rounds: how many rounds they are made of.

    Returns:
        The model, which predicts for people's own columns.

    Raises:
        ParameterError: the loss is none of a linear model's, or the numbers are not the solver's.

    >>> from shuffledp import Privacy
    >>> from shuffledp.learn.optimize import LogisticLoss, Problem, plan
    >>> rows = DeviceRows.of(["age"], bounds={"age": (0, 100)}, classes=["no", "yes"])
    >>> ball = rows.preparation.models(10.0, 1)
    >>> solver = plan(Problem.of(LogisticLoss(), ball, users=1000, privacy=Privacy(8, 1e-6), visits=1), solver="agd")
    >>> model = linear_model(solver, rows, [5.0, 0.0], rounds=1)
    >>> model.predict([[80.0], [20.0]]).tolist(), model.estimator
    (['yes', 'no'], 'ShuffleLogisticRegression')
    """
    problem = solver.problem
    name = str((problem.loss or {}).get("loss"))
    if name not in _ESTIMATORS:
        raise ParameterError("loss", name, f"must be one of {', '.join(_ESTIMATORS)}", "use the numbers themselves")
    numbers = np.asarray(theta, dtype=np.float64)
    if numbers.shape != (solver.dimension,):
        raise ParameterError("theta", f"shape {numbers.shape}", f"must be {solver.dimension} numbers", "fetch it again")
    found = [rows.preparation.features.model(each) for each in numbers.reshape(problem.outputs, -1)]
    coefficients, intercepts = np.array([one for one, _ in found]), np.array([one for _, one in found])
    if rows.targets is not None:
        coefficients = coefficients * rows.targets.half
        intercepts = intercepts * rows.targets.half + rows.targets.centre
    several = problem.outputs > 1
    return LinearModel(
        estimator=_ESTIMATORS[name],
        features=rows.features,
        classes=rows.classes,
        coefficients=coefficients if several else coefficients[0],
        intercept=intercepts if several else float(intercepts[0]),
        guarantee=solver.guarantee().document(),
        declared=_declared(solver, rows),
        solver=solver.name,
        users=people_of(solver, rounds),
        simulated=False,
        preparation=rows.preparation,
    )


def people_of(solver: Solver, rounds: int) -> int:
    """How many people the first so many rounds have; of a stage that asks the same people again, they count once."""
    people, left = 0, rounds
    for stage in solver.stages:
        done = min(left, stage.rounds)
        people += min(stage.people, done * stage.users)
        left -= done
    return people


def _declared(solver: Solver, rows: DeviceRows) -> dict[str, Any]:
    problem, targets = solver.problem, rows.targets
    bounds: Sequence[float] | None = None
    if targets is not None:
        bounds = [targets.centre - targets.half, targets.centre + targets.half]
    return {
        "feature_norm": rows.preparation.features.norm,
        "alpha": problem.ridge,
        "fit_intercept": rows.preparation.features.intercept,
        "gradient_bound": problem.lipschitz,
        **({} if bounds is None else {"target_bounds": bounds}),
    }
