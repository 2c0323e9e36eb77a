"""What private linear models share: declared bounds, a planned solver, its run, and the guarantee afterwards."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import NothingLearnedWarning, ParameterError
from shuffledp.learn.callers import warn_caller
from shuffledp.learn.estimators.clipping import ClipCounts, ClippedShare, complain
from shuffledp.learn.estimators.data import checked_data, plain
from shuffledp.learn.estimators.declared import Changed, Floats, check_moderate
from shuffledp.learn.estimators.elsewhere import Learned, PeopleElsewhere, PreparedPeople
from shuffledp.learn.estimators.guarantees import guarantee_of
from shuffledp.learn.estimators.models import LinearModel
from shuffledp.learn.estimators.preparation import Preparation
from shuffledp.learn.estimators.running import Fitting, bits_of, mean_losses, watched_run, watched_sums
from shuffledp.learn.estimators.uncounted import look_at_bounds
from shuffledp.learn.estimators.weights import WeightedLoss, scaled_weights
from shuffledp.learn.fit_register import REGISTER
from shuffledp.learn.fit_spending import charge, charge_unseen, warn_if_scaled_by_data
from shuffledp.learn.optimize import Loss, OptimizationGuarantee, Problem, Solver, plan
from shuffledp.learn.optimize.choosing import METHODS
from shuffledp.learn.optimize.noise_alone import NoiseAlone, noise_alone
from shuffledp.learn.optimize.outlook import Outlook, outlook
from shuffledp.privacy import Privacy

# `data` says in words what to install, so it comes first.
from sklearn.base import BaseEstimator  # isort: skip
from sklearn.utils.validation import check_is_fitted  # isort: skip

_ENOUGH_FOR_FEW = 10


def is_poor_for_few(epsilon: Any) -> bool:
    """Whether scikit-learn's checks, which learn from 200 and 300 people, would see next to nothing but noise."""
    return not (isinstance(epsilon, int | float) and epsilon >= _ENOUGH_FOR_FEW)


@dataclass(kw_only=True, eq=False, repr=False)
class ShuffleLinearModel(BaseEstimator, ABC):
    """A linear model that people teach by a few shuffled messages each.

    Which row is in which cohort is drawn at random. `clipped_shares_` says privately how much was clipped, and a
    warning says so where it is more than a tenth. Where people are too few for that it is empty and
    `clipped_counted_from_` says from how many on it would not be; an `UncountedBoundsWarning`, for whoever holds the
    rows, tells bounds that are far off. `clipped_` counts rows, targets and gradients that were clipped, read
    from the data without noise: the guarantee covers coefficients, intercept, `path_` and `clipped_shares_`, not that.
    `outlook_` says what rehearsals on synthetic people let one expect at this size, and in how many of them nothing was
    learned; `noise_alone_` whether this model's weights, as published, are longer than noise alone makes them (None
    where that is not rehearsed, or after several calls of `partial_fit`). Both cost nothing, and warn.
    `bound_` is proved for the expected excess loss in scaled units, and None where gradients may be clipped (then
    `solver_.bound` is a guide to planning only) or where the solver has none, as `conditioned`.

    Parameters are all decided before any data is seen.

    Attributes:
        epsilon: how private every row is, replaced by any other; smaller is safer.
        delta: the probability that is left over.
        solver: auto takes the best of those that rehearse on synthetic people of this shape, least-bound the least of
            the bounds that `shuffledp plan optimize` compares; none that is pan-private. `solver_.chosen` says which.
        visits: in how many rounds one person may be asked; None is all.
        max_rounds: how many rounds there are at most.
        radius: no model has scores beyond it on rows of length `feature_norm`.
        alpha: times half the squared length of the model without its intercept, added to the loss.
        feature_bounds: one (low, high) for all columns of numbers, one each, or by name, that become -1 and 1; values
            beyond are cut off. Without them `feature_norm` must be given.
        feature_norm: longer rows are shortened; with bounds the longest row within them, unless it is given.
        categories: public lists of what columns of categories may be, by name or number: each becomes a one-hot block
            that is never longer than 1.
        other: one more category of each such column, for values outside its list.
        fit_intercept: whether a model has an intercept, which `alpha` leaves alone.
        gradient_bound: what gradients are clipped to; the loss's own bound if None, which none passes. Where it is
            less, clipped gradients are those of another loss and no bound is proved; privacy does not depend on it.
        max_weight: no `sample_weight` is larger; larger ones are cut off. It may be anybody's, so noise grows with it.
        count_clipped: how many people are asked, instead of for a gradient, whether something of theirs had to be
            clipped; "auto" a few hundred where they are at most 5% of all, 0 nobody. Then a ledger is charged epsilon
            and delta, and not the solver's own pair, which adds up to less over many fits.
        honest_fraction: people of every cohort who are counted on to add their noise.
        random_state: None draws secure bits; a seed repeats a simulation and protects nobody.
        ledger: a `Ledger` or its file, whose budget every fit is charged to before its first question; None counts the
            fits of this process that share people, and warns from the second on.
    """

    epsilon: float = 1.0
    delta: float = 1e-6
    solver: str = "auto"
    visits: int | None = 1
    max_rounds: int = 1000
    radius: float = 10.0
    alpha: float = 0.0
    feature_bounds: Any = None
    feature_norm: float | None = None
    categories: Mapping[Any, Any] | None = None
    other: str | None = None
    fit_intercept: bool = True
    gradient_bound: float | None = None
    max_weight: float = 1.0
    count_clipped: int | str = "auto"
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

    def problem(self, users: int, features: int | Sequence[str]) -> Problem:
        """What a solver is planned from: no data.

        Args:
            users: how many people there are; those who are asked what was clipped are not in the problem.
            features: how many columns they have, or the columns' names.
        """
        prepared, people = self._declared(features), plain(users)
        if self.alpha != 0:
            check_moderate("alpha", plain(self.alpha), "0 leaves it out")
        loss = self._loss()
        radius = check_moderate("radius", plain(self.radius), "say how large a score may be")
        domain = prepared.models(radius, loss.outputs)
        limits = {"rounds": self.max_rounds, "visits": self.visits, "honest_fraction": self.honest_fraction}
        limits = {name: plain(value) for name, value in limits.items()}
        asked = people - self._clip_counts(people).users
        problem = Problem.of(loss, domain, users=asked, privacy=self._privacy, **limits)
        if self.gradient_bound is None:
            return problem
        bound = check_moderate("gradient_bound", plain(self.gradient_bound), "None takes the loss's own")
        return replace(problem, lipschitz=min(bound, problem.lipschitz))

    @abstractmethod
    def _loss(self) -> Loss:
        """The loss of rows no longer than 1 and of scaled targets."""

    @property
    def _privacy(self) -> Privacy:
        return Privacy(plain(self.epsilon), plain(self.delta))

    @property
    def _questions(self) -> tuple[str, ...]:
        """What is counted of what had to be clipped."""
        return ("rows",)

    def _clip_counts(self, users: int) -> ClipCounts:
        asked, honest = plain(self.count_clipped), plain(self.honest_fraction)
        return ClipCounts.planned(asked, users, self._questions, self._privacy, honest)

    def _counted_from(self) -> int | None:
        """From how many people on it is counted what was clipped, unless somebody said how many are asked."""
        if plain(self.count_clipped) != "auto":
            return None
        return ClipCounts.counted_from(self._questions, self._privacy, honest_fraction=plain(self.honest_fraction))

    def _declared(self, features: int | Sequence[str]) -> Preparation:
        return Preparation.of(
            features,
            bounds=self.feature_bounds,
            norm=plain(self.feature_norm),
            intercept=self.fit_intercept,
            categories=self.categories,
            other=self.other,
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

    def _fit(self, data: Fitting) -> None:
        """Run the solver and keep its model.

        What was declared is kept: parameters that are set afterwards say nothing of this model.
        """
        users, width = data.people.shape
        columns = getattr(self, "feature_names_in_", width)
        prepared, counts, solver = self._planned(users, columns)
        rows, changed = prepared.rows(data.people)
        loss, bits = self._loss(), bits_of(self.random_state)
        data = replace(data, rows=rows, clipped={**data.clipped, "rows": changed})
        weighted = loss if data.weights is None else WeightedLoss(of=loss)
        warn_if_scaled_by_data(data.people)
        look_at_bounds(prepared, data.people, data.clipped, counted=counts.users > 0)
        self.outlook_: Outlook | None = outlook(solver)
        spending = charge(self.ledger, solver, data.people, asks_else=counts.users > 0)
        run = watched_run(
            solver, weighted, data, bits, counts=counts, start=data.start, progress=vars(self).get("_progress")
        )
        exact = {name: int(np.count_nonzero(which)) for name, which in data.clipped.items()}
        self._keep(Learned(prepared, counts, solver, spending, run, exact, users, data.start is not None))

    def fit_elsewhere(self, people: PeopleElsewhere) -> Self:
        """Fit the model on people whose rows this process does not hold: whoever does answers the solver's questions.

        What reads rows without noise to warn of bounds that are far off is left out, and nobody is recognised who was
        asked before: only a ledger is charged.

        Args:
            people: who they are, and how they are asked.

        Returns:
            The estimator itself.

        Raises:
            ParameterError: something must be read from all rows at once, or the solver is not of the shuffle model.
        """
        with self._all_or_nothing():
            self._declare()
            self.n_features_in_: int = len(people.names)
            prepared, counts, solver = self._planned(people.users, people.names)
            self.outlook_ = outlook(solver)
            progress = vars(self).get("_progress")
            with people.dealt(solver, prepared, self._made, self._questions) as dealt:
                # Charged before the first question, and after rows that cannot be learned from are refused.
                spending = charge_unseen(self.ledger, solver, asks_else=counts.users > 0)
                flags, asked = dealt.flags(counts.users), np.arange(counts.users)
                shares = counts.counted(flags, asked, bits=bits_of(self.random_state)) if counts.users else ()
                run = watched_sums(solver, dealt.sums(self._loss(), counts.users), shares, progress=progress)
                exact = dict(dealt.clipped)
            self._keep(Learned(prepared, counts, solver, spending, run, exact, people.users))
        return self

    @abstractmethod
    def _declare(self) -> None:
        """Keep what was declared of targets; refuse where they would have to be read from all rows."""

    def _made(self, prepared: Preparation) -> Callable[[Any], tuple[Floats, Floats, NDArray[np.bool_]]]:
        """What prepares some people: a function that can travel, and knows what was declared and nothing else."""
        declared = copy(self)
        for name in ("_progress", "ledger"):
            declared.__dict__[name] = None
        return PreparedPeople(prepared, declared, self._questions)

    def _planned(self, users: int, columns: int | Sequence[str]) -> tuple[Preparation, ClipCounts, Solver]:
        """What is done with rows, who is asked what was clipped, and the solver of everybody else."""
        method = METHODS.get(self.solver)
        if method is not None and method.model != "shuffle":
            problem = (
                "must be of the shuffle model: here all rows are in memory at once, so an intruder would read them"
            )
            raise ParameterError("solver", self.solver, problem, "take auto, or read a stream by PanPrivateLearner")
        prepared, counts = self._declared(columns), self._clip_counts(users)
        return prepared, counts, plan(self.problem(users, columns), solver=self.solver)

    def _keep(self, learned: Learned) -> None:
        """Keep a model, and all that is known about it."""
        solver, run, counts, loss = learned.solver, learned.run, learned.counts, self._loss()
        proved = solver.problem.lipschitz >= loss.lipschitz(solver.problem.domain) and not learned.went_on
        self.bound_: float | None = solver.bound if proved else None
        self.loss_: Loss = loss
        self.preparation_: Preparation = learned.preparation
        self.declaration_: dict[str, Any] = self._declaration()
        self.solver_: Solver = solver
        self.unprotected_: tuple[str, ...] = self._unprotected()
        guarantee = guarantee_of(solver, counts, self.unprotected_)
        self.guarantee_: OptimizationGuarantee = learned.spending.said_of(guarantee)
        self.simulated_: bool = run.simulated
        self.clipped_: dict[str, int] = {**learned.clipped, "gradients": run.clipped}
        self.clipped_shares_: tuple[ClippedShare, ...] = run.shares
        self.clipped_counted_from_: int | None = self._counted_from() if counts.users == 0 else None
        self.n_iter_: int = solver.rounds
        self.n_users_: int = learned.users
        self.path_rounds_: NDArray[np.int64] = run.path_rounds
        self.path_: Floats = run.path
        self.theta_: Floats = run.theta
        self._set_model(*self._natural(run.theta))
        # A model that others were averaged into, or that began elsewhere, has another law.
        self.noise_alone_: NoiseAlone | None = None if learned.went_on else noise_alone(solver, run.theta)
        complain(run.shares)
        if self.noise_alone_ is not None and self.noise_alone_.is_all:
            words = f"{self.noise_alone_}. Evaluate it on people kept out"
            words += "; more people, a larger epsilon, fewer features or asking people often may help"
            warn_caller(f"{words[0].upper()}{words[1:]}.", NothingLearnedWarning)

    def _natural(self, theta: Floats) -> tuple[Floats, Floats]:
        """Coefficients and intercepts of prepared rows in the units of the data, a row a score."""
        found = [self.preparation_.features.model(each) for each in theta.reshape(self.loss_.outputs, -1)]
        return np.array([one for one, _ in found]), np.array([one for _, one in found])

    @abstractmethod
    def _set_model(self, coefficients: Floats, intercepts: Floats) -> None:
        """Keep a model of prepared rows, a row a score, under scikit-learn's names and in the targets' units."""

    def _weights(self, weights: Any, users: int) -> tuple[Floats | None, dict[str, Changed]]:
        """Parts of the declared maximum, and whose were cut off; None where nobody has any."""
        if weights is None:
            return None, {}
        scaled, cut = scaled_weights(weights, users, plain(self.max_weight))
        return scaled, {"weights": cut}

    def _scores(self, X: Any) -> Floats:  # noqa: N803
        """A number a row, or one for each class where there are more than two."""
        check_is_fitted(self)
        people = checked_data(self, X, reset=False)
        coefficients = np.asarray(self.coef_)
        if self.loss_.outputs > 1:
            return self.preparation_.scores(people, coefficients, self.intercept_)
        return self.preparation_.scores(people, np.ravel(coefficients), np.ravel(self.intercept_)[0])

    @abstractmethod
    def _scaled_targets(self, y: NDArray[Any]) -> tuple[Floats, Changed]:
        """As the loss takes them, and which had to be cut off."""

    def _unprotected(self) -> tuple[str, ...]:
        """Fields of the model file that are read from data without noise."""
        return ()

    def losses(self, X: ArrayLike, y: ArrayLike) -> Floats:  # noqa: N803
        """The mean loss, without `alpha`, after each of `path_rounds_`, in scaled units: read without noise."""
        check_is_fitted(self)
        return self._losses(self.path_, X, y)

    def _losses(self, path: Floats, *data: ArrayLike) -> Floats:
        return mean_losses(self.loss_, path, self._checked(*data))

    def _checked(self, *data: ArrayLike) -> Fitting:
        people, targets = checked_data(self, *data, reset=False)
        return Fitting(people, self._scaled_targets(targets)[0], {}, rows=self.preparation_.rows(people)[0])

    def part_learned_from(self, X: ArrayLike) -> float:  # noqa: N803
        """About which part of these people some fit of this process had; read without noise, for whoever holds them."""
        check_is_fitted(self)
        return REGISTER.part_learned_from(REGISTER.sketch(checked_data(self, X, reset=False)))

    def twin_losses(self, X: ArrayLike, y: ArrayLike, *on: ArrayLike) -> Floats:  # noqa: N803
        """As `losses` on other rows, of the solver's twin: the same steps and clipping on these rows, without noise."""
        check_is_fitted(self)
        twin = watched_run(self.solver_, self.loss_, self._checked(X, y), bits_of(self.random_state), exact=True)
        return self._losses(twin.path, *(on or (X, y)))

    def model(self, features: Sequence[str] | None = None) -> LinearModel:
        """The fitted model as a file keeps it.

        Args:
            features: names of the input columns; those of the data frame it was fitted on, or x0, x1, if left out.

        Returns:
            Coefficients with all that is needed to predict by them, and the guarantee.

        Raises:
            ParameterError: not one name for each column.
        """
        check_is_fitted(self)
        width = self.preparation_.columns.width
        names = features if features is not None else getattr(self, "feature_names_in_", None)
        if names is None:
            names = [f"x{place}" for place in range(width)]
        if len(names) != width:
            raise ParameterError("features", list(names), f"must be {width} names", "name every column")
        classes = getattr(self, "classes_", None)
        several = self.loss_.outputs > 1
        coefficients, intercept = np.array(self.coef_, dtype=np.float64), np.ravel(self.intercept_)
        return LinearModel(
            estimator=type(self).__name__,
            features=tuple(map(str, names)),
            classes=None if classes is None else tuple(classes.tolist()),
            coefficients=coefficients if several else np.ravel(coefficients),
            intercept=np.array(intercept, dtype=np.float64) if several else float(intercept[0]),
            guarantee=self.guarantee_.document(),
            declared=self.declaration_,
            solver=self.solver_.name,
            users=self.n_users_,
            simulated=self.simulated_,
            unprotected=self.unprotected_,
            preparation=self.preparation_,
            clipped=tuple(share.document() for share in self.clipped_shares_),
        )

    def _declaration(self) -> dict[str, Any]:
        return {
            "feature_norm": plain(self.feature_norm),
            "radius": plain(self.radius),
            "alpha": plain(self.alpha),
            "fit_intercept": bool(self.fit_intercept),
            "gradient_bound": plain(self.gradient_bound),
            "max_weight": plain(self.max_weight),
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.categorical = self.categories is not None
        tags.input_tags.string = self.categories is not None
        return tags
