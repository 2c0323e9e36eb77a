"""Narrow feature bounds from wide ones, privately: quantiles of every feature, each from people of its own."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.learn.estimators.data import checked_data, plain
from shuffledp.learn.estimators.declared import pairs_of
from shuffledp.learn.estimators.running import bits_of
from shuffledp.learn.fit_spending import charge_plan
from shuffledp.learn.guarantee import LearnerGuarantee
from shuffledp.learn.spec import check_number, check_whole
from shuffledp.privacy import Privacy
from shuffledp.protocols.ranges import Ranges
from shuffledp.protocols.ranges.tree import Tree
from shuffledp.sampling.permutation import uniform_permutation

# `data` says in words what to install, so it comes first.
from sklearn.base import BaseEstimator, TransformerMixin  # isort: skip
from sklearn.utils.validation import check_is_fitted  # isort: skip

Floats = NDArray[np.float64]

# Ranks that are further off than this part of all people say nothing about where a feature lies.
_FURTHEST = 0.3
_BECAUSE = (
    "Every person was asked about one feature or none: groups of people are disjoint, so that one group's pair is all "
    "that is seen of anybody. Who was not asked (`others`) has paid nothing yet; who was pays again in a model."
)


@dataclass(kw_only=True, eq=False, repr=False)
class ShuffleScaler(TransformerMixin, BaseEstimator):
    """Bounds of features from quantiles of people who are asked about one feature each, and for nothing else.

    Afterwards `bounds_` are bounds for an estimator's `feature_bounds`, `asked_` says who was asked, and `others` gives
    the rows of everybody else: with a model of theirs everybody has paid once.

    Parameters are all decided before any data is seen.

    Attributes:
        bounds: one wide (low, high) for all features, or one each; values beyond are cut off.
        epsilon: how private every row is, replaced by any other; smaller is safer.
        delta: the probability that is left over.
        people: how many are asked about each feature.
        rank: bounds are the quantiles of this rank and of 1 - `rank`, a quarter further apart.
        steps: into how many cells the wide bounds are cut: none of the narrow ones is narrower than two of them.
        honest_fraction: people of every group who are counted on to add their noise.
        random_state: None draws secure bits; a seed repeats a simulation and protects nobody.
        ledger: a `Ledger` or its file, whose budget is charged before anybody is asked; None counts what this process
            asked the same people, and warns from the second time on.

    >>> X = np.arange(1, 20_001)[:, np.newaxis] * np.sqrt([2, 3]) % 1 * [1, 50]
    >>> scaler = ShuffleScaler(bounds=(0, 1000), random_state=1).fit(X)
    >>> narrow = scaler.bounds_
    >>> bool(narrow[0, 1] < 10), bool(40 < narrow[1, 1] < 80), len(scaler.others(X))
    (True, True, 17000)
    >>> print(scaler.guarantee_.privacy, scaler.guarantee_.holds)
    epsilon 1, delta 1e-06 True
    """

    bounds: ArrayLike | None = None
    epsilon: float = 1.0
    delta: float = 1e-6
    people: int = 1500
    rank: float = 0.05
    steps: int = 512
    honest_fraction: float = 1.0
    random_state: Any = None
    ledger: Any = None

    def plan(self) -> Tree:
        """What every group is asked by: no data."""
        people = check_whole("people", plain(self.people), 1, 1 << 40, "1500 say where most features lie")
        steps = check_whole("steps", plain(self.steps), 8, 1 << 20, "512 narrow bounds up to 250 times")
        privacy = Privacy(plain(self.epsilon), plain(self.delta))
        asked = {"domain": steps, "honest_fraction": plain(self.honest_fraction)}
        found: Tree = Ranges.plan(users=people, privacy=privacy, **asked)
        off = found.errors.prefix_bound / people
        if off > _FURTHEST:
            problem = f"are too few: ranks would be off by up to {off:.0%} at epsilon {privacy.epsilon:g}"
            raise InfeasibleError("people", people, problem, "ask more people about each feature")
        return found

    def fit(self, X: ArrayLike, y: Any = None) -> Self:  # noqa: N803
        """Ask groups of people, drawn at random, where their features lie.

        Args:
            X: a row of features a person.
            y: not used.

        Returns:
            The scaler itself, fitted.

        Raises:
            DataError: data that cannot be learned from.
            InfeasibleError: too few people for a group a feature, or for quantiles at this privacy; or the ledger's
                budget does not cover it. Nothing is spent.
        """
        features = checked_data(self, X, accept_sparse=False)
        count, width = features.shape
        if self.bounds is None:
            raise ParameterError("bounds", None, "must say how far features can lie at all", "for instance (0, 1e6)")
        lows, highs = pairs_of(self.bounds, width, "bounds")
        rank = check_number("rank", plain(self.rank), 0.0, 0.45, "0.05 leaves a tenth of all people beyond")
        plan = self.plan()
        if plan.users * width > count:
            problem = f"are too few for {width} groups of {plan.users:,}"
            raise InfeasibleError(
                "rows", count, problem, f"find {plan.users * width:,}, or ask fewer about each feature"
            )
        bits = bits_of(self.random_state)
        groups = uniform_permutation(count, bits=bits)[: plan.users * width].reshape(width, plan.users)
        asked = np.sort(groups, axis=None)
        spending = charge_plan(self.ledger, plan, features[asked], f"bounds of {width} features")
        cells = (highs - lows) / self.steps
        found = np.empty((width, 2))
        for place, group in enumerate(groups):
            codes = np.clip((features[group, place] - lows[place]) / cells[place], 0, self.steps - 1).astype(np.int64)
            ranges = plan.ranges(plan.sample_estimate(codes, bits=bits))
            low, high = ranges.quantile(rank).value, ranges.quantile(1 - rank).value + 1
            # A quarter further apart, at least two cells, and never beyond what was declared.
            apart = max(2.0, 1.25 * (high - low))
            ends = (low + high) / 2 + np.array([-0.5, 0.5]) * apart
            found[place] = lows[place] + cells[place] * np.clip(ends, 0, self.steps)
        self.bounds_: Floats = found
        self.asked_: NDArray[np.intp] = asked
        self.plan_: Tree = plan
        self.simulated_: bool = not bits.is_secure
        guarantee = plan.guarantee()
        self.guarantee_ = LearnerGuarantee(
            privacy=plan.privacy,
            terms=guarantee.terms,
            trusted="shufflers permute and do not collude with the analyzer; people of a group add their noise",
            because=f"{_BECAUSE} This is what holds {spending.history}.",
        )
        return self

    def others(self, *arrays: ArrayLike) -> Any:
        """The rows of people who were not asked: each array's, or the one array's if it is one."""
        check_is_fitted(self)
        left = np.ones(len(np.asarray(arrays[0])), dtype=np.bool_)
        left[self.asked_] = False
        found = tuple(np.asarray(array)[left] for array in arrays)
        return found if len(found) > 1 else found[0]

    def transform(self, X: ArrayLike) -> Floats:  # noqa: N803
        """Features between -1 and 1: the narrow bounds become these, and values beyond are cut off."""
        check_is_fitted(self)
        features = checked_data(self, X, reset=False, accept_sparse=False)
        centre, half = self.bounds_.mean(axis=1), np.diff(self.bounds_, axis=1)[:, 0] / 2
        return np.asarray(np.clip((features - centre) / half, -1.0, 1.0))
