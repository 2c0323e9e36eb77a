"""What private linear models share: declared bounds, a planned solver, its run, and the guarantee afterwards."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import ParameterError
from shuffledp.learn.estimators.data import checked_data, plain
from shuffledp.learn.estimators.declared import DeclaredFeatures, Floats, check_moderate
from shuffledp.learn.estimators.models import LinearModel
from shuffledp.learn.estimators.running import bits_of, watched_run
from shuffledp.learn.fit_spending import charge, warn_if_scaled_by_data
from shuffledp.learn.optimize import (
    L2Ball,
    LinearLoss,
    OptimizationGuarantee,
    Problem,
    Solver,
    plan,
)
from shuffledp.learn.optimize.choosing import METHODS
from shuffledp.privacy import Privacy

# `data` says in words what to install, so it comes first.
from sklearn.base import BaseEstimator  # isort: skip
from sklearn.utils.validation import check_is_fitted  # isort: skip

_READ_FROM_LABELS = (
    "Which two classes there are was read from people's labels and is not covered: "
    "all this holds between rows of these two. Declare classes to cover it."
)


@dataclass(kw_only=True, eq=False, repr=False)
class ShuffleLinearModel(BaseEstimator, ABC):
    """A linear model that people teach by a few shuffled messages each.

    Parameters, all decided before any data is seen:

    - `epsilon`, `delta`: what holds for every row, replaced by any other.
    - `solver`: auto takes the best of those that rehearse on synthetic people of this shape, least-bound the least of
      the bounds that `shuffledp plan optimize` compares; none that is pan-private. `solver_.chosen` says which.
    - `visits`: in how many rounds one person may be asked; None is all. `max_rounds`: how many rounds at most.
    - `feature_bounds`: one (low, high) for all features, or one each, that become -1 and 1; values beyond are cut off.
    - `feature_norm`: longer rows are shortened; 1 without bounds, else the longest row within them.
    - `radius`: no model has scores beyond it on rows of that length. `alpha`: times half the model's squared length.
    - `gradient_bound`: what gradients are clipped to; the loss's own bound if None, which none passes. Where it is
      less, clipped gradients are those of another loss and no bound is proved; privacy does not depend on it.
    - `honest_fraction`: people of every cohort who are counted on to add their noise.
    - `random_state`: None draws secure bits; a seed repeats a simulation and protects nobody.
    - `ledger`: a `Ledger` or its file, whose budget every fit is charged to before its first question; None counts the
      fits of this process that share people, and warns from the second on.

    Which row is in which cohort is drawn at random. `clipped_` counts rows, targets and gradients that were clipped,
    read from the data without noise: the guarantee covers coefficients, intercept and `path_`, not that. `bound_` is
    proved for the expected excess loss in scaled units, and None where gradients may be clipped: then `solver_.bound`
    is a guide to planning only.
    """

    epsilon: float = 1.0
    delta: float = 1e-6
    solver: str = "auto"
    visits: int | None = 1
    max_rounds: int = 1000
    radius: float = 10.0
    alpha: float = 0.0
    feature_bounds: ArrayLike | None = None
    feature_norm: float | None = None
    fit_intercept: bool = True
    gradient_bound: float | None = None
    honest_fraction: float = 1.0
    random_state: Any = None
    ledger: Any = None

    def watched_by(self, progress: Callable[[int, int], None] | None) -> Self:
        """Have `fit` tell how many rounds are done and of how many; returns the estimator itself.

        Args:
            progress: called after every round; None for nobody.
        """
        # Not a field: scikit-learn takes those for parameters of the model.
        self.__dict__["_progress"] = progress
        return self

    def problem(self, users: int, features: int) -> Problem:
        """What a solver is planned from: no data."""
        declared = self._declared(features)
        radius = check_moderate("radius", plain(self.radius), "say how large a score may be")
        if self.alpha != 0:
            check_moderate("alpha", plain(self.alpha), "0 leaves it out")
        domain = L2Ball(dimension=declared.dimension, radius=radius)
        privacy = Privacy(plain(self.epsilon), plain(self.delta))
        limits = {"rounds": self.max_rounds, "visits": self.visits, "honest_fraction": self.honest_fraction}
        limits = {name: plain(value) for name, value in limits.items()}
        problem = Problem.of(self._loss(), domain, users=plain(users), privacy=privacy, **limits)
        if self.gradient_bound is None:
            return problem
        bound = check_moderate("gradient_bound", plain(self.gradient_bound), "None takes the loss's own")
        return replace(problem, lipschitz=min(bound, problem.lipschitz))

    @abstractmethod
    def _loss(self) -> LinearLoss:
        """Of rows no longer than 1 and of scaled targets."""

    def _declared(self, features: int) -> DeclaredFeatures:
        return DeclaredFeatures.of(
            features, bounds=self.feature_bounds, norm=plain(self.feature_norm), intercept=self.fit_intercept
        )

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """What fails leaves the estimator as it was."""
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit(self, features: Floats, targets: Floats, clipped_targets: int) -> tuple[Floats, float]:
        """Run the solver; the coefficients and the intercept, if targets were not scaled.

        What was declared is kept: parameters that are set afterwards say nothing of this model.
        """
        users, width = features.shape
        method = METHODS.get(self.solver)
        if method is not None and method.model != "shuffle":
            problem = (
                "must be of the shuffle model: here all rows are in memory at once, so an intruder would read them"
            )
            raise ParameterError("solver", self.solver, problem, "take auto, or read a stream by PanPrivateLearner")
        solver = plan(self.problem(users, width), solver=self.solver)
        declared = self._declared(width)
        rows, clipped = declared.rows(features)
        loss, bits = self._loss(), bits_of(self.random_state)
        warn_if_scaled_by_data(features)
        spending = charge(self.ledger, solver, rows, targets)
        run, rounds, path = watched_run(solver, loss, rows, targets, bits, progress=vars(self).get("_progress"))
        proved = solver.problem.lipschitz >= loss.lipschitz(solver.problem.domain)
        self.bound_: float | None = solver.bound if proved else None
        self.loss_: LinearLoss = loss
        self.features_: DeclaredFeatures = declared
        self.declaration_: dict[str, Any] = self._declaration()
        self.solver_: Solver = solver
        self.unprotected_: tuple[str, ...] = self._unprotected()
        guarantee = solver.guarantee()
        if self.unprotected_:
            guarantee = replace(guarantee, because=f"{guarantee.because} {_READ_FROM_LABELS}")
        self.guarantee_: OptimizationGuarantee = spending.said_of(guarantee)
        self.simulated_: bool = run.simulated
        self.clipped_: dict[str, int] = {"rows": clipped, "targets": clipped_targets, "gradients": run.clipped}
        self.n_iter_: int = solver.rounds
        self.n_users_: int = users
        self.path_rounds_: NDArray[np.int64] = rounds
        self.path_: Floats = path
        return declared.model(run.theta)

    def _scores(self, X: Any) -> Floats:  # noqa: N803
        check_is_fitted(self)
        features = checked_data(self, X, reset=False)
        return np.asarray(features @ np.ravel(self.coef_) + np.ravel(self.intercept_)[0])

    @abstractmethod
    def _scaled_targets(self, y: NDArray[Any]) -> tuple[Floats, int]:
        """As the loss takes them, and how many had to be cut off."""

    def _unprotected(self) -> tuple[str, ...]:
        """Fields of the model file that are read from data without noise."""
        return ()

    def losses(self, X: ArrayLike, y: ArrayLike) -> Floats:  # noqa: N803
        """The mean loss, without `alpha`, after each of `path_rounds_`, in scaled units: read without noise."""
        check_is_fitted(self)
        return self._losses(self.path_, X, y)

    def _losses(self, path: Floats, *data: ArrayLike) -> Floats:
        rows, targets = self._checked(*data)
        return np.array([float(self.loss_.values(theta, rows, targets).mean()) for theta in path])

    def _checked(self, *data: ArrayLike) -> tuple[Floats, Floats]:
        features, targets = checked_data(self, *data, reset=False)
        return self.features_.rows(features)[0], self._scaled_targets(targets)[0]

    def twin_losses(self, X: ArrayLike, y: ArrayLike, *on: ArrayLike) -> Floats:  # noqa: N803
        """As `losses` on other rows, of the solver's twin: the same steps and clipping on these rows, without noise."""
        check_is_fitted(self)
        path = watched_run(self.solver_, self.loss_, *self._checked(X, y), bits_of(self.random_state), exact=True)[2]
        return self._losses(path, *(on or (X, y)))

    def model(self, features: Sequence[str] | None = None) -> LinearModel:
        """The fitted model as a file keeps it, its features by these names."""
        check_is_fitted(self)
        names = features if features is not None else getattr(self, "feature_names_in_", None)
        coefficients = np.array(np.ravel(self.coef_), dtype=np.float64)
        if names is None:
            names = [f"x{place}" for place in range(coefficients.size)]
        if len(names) != coefficients.size:
            raise ParameterError("features", list(names), f"must be {coefficients.size} names", "name every column")
        classes = getattr(self, "classes_", None)
        return LinearModel(
            estimator=type(self).__name__,
            features=tuple(map(str, names)),
            classes=None if classes is None else tuple(classes.tolist()),
            coefficients=coefficients,
            intercept=float(np.ravel(self.intercept_)[0]),
            guarantee=self.guarantee_.document(),
            declared=self.declaration_,
            solver=self.solver_.name,
            users=self.n_users_,
            simulated=self.simulated_,
            unprotected=self.unprotected_,
        )

    def _declaration(self) -> dict[str, Any]:
        bounds = None if self.feature_bounds is None else np.asarray(self.feature_bounds, dtype=np.float64).tolist()
        return {
            "feature_bounds": bounds,
            "feature_norm": plain(self.feature_norm),
            "radius": plain(self.radius),
            "alpha": plain(self.alpha),
            "fit_intercept": bool(self.fit_intercept),
            "gradient_bound": plain(self.gradient_bound),
        }
