"""Learning on from new people, call by call: each call's people are others, so that their guarantees do not add up."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError
from shuffledp.learn.estimators.base import ShuffleLinearModel
from shuffledp.learn.estimators.declared import Floats
from shuffledp.learn.estimators.guarantees import over_calls
from shuffledp.learn.estimators.running import Fitting
from shuffledp.learn.optimize import OptimizationGuarantee


@dataclass(kw_only=True, eq=False, repr=False)
class OnlineModel(ShuffleLinearModel):
    """A model that goes on where it stood: `calls_` counts calls of `partial_fit`, `n_users_` the people of all.

    A call's solver begins at the model so far and learns from the call's people only. The model is then the mean of all
    calls' models, weighted by their people: for convex losses it is no worse than they are on average, and noise of
    several calls averages out.
    """

    def _begin(self, learn: Callable[[], None]) -> Self:
        """Forget what calls of `partial_fit` have learned, and learn anew; what fails leaves all as it was."""
        with self._all_or_nothing():
            self.__dict__.pop("calls_", None)
            learn()
        return self

    @property
    def _has_begun(self) -> bool:
        return "calls_" in self.__dict__

    @property
    def _start(self) -> Floats | None:
        return self.theta_ if self._has_begun else None

    def _fit_targets(self, people: Any, targets: NDArray[Any], sample_weight: Any) -> None:
        """Learn from people's rows and targets as they came, on from where the calls before have ended.

        Args:
            people: checked rows of features.
            targets: a label or a number a person.
            sample_weight: how much each person's loss counts; None where all count alike.
        """
        scaled, cut = self._scaled_targets(targets)
        weights, too_large = self._weights(sample_weight, len(targets))
        self._fit(Fitting(people, scaled, {"targets": cut, **too_large}, weights, start=self._start))

    def _check_promise(self, first: OptimizationGuarantee) -> None:
        """Refuse another promise than that of the calls before: the model has one guarantee, for everybody."""
        assert first.privacy is not None
        promised = {
            "epsilon": first.privacy.epsilon,
            "delta": first.privacy.delta,
            "honest_fraction": first.honest_fraction,
        }
        for name, value in promised.items():
            if getattr(self, name) != value:
                problem = f"must be {value:g}, as in the calls of partial_fit before"
                raise ParameterError(name, getattr(self, name), problem, "begin anew by fit, or by another estimator")

    def _go_on(self, learn: Callable[[], None]) -> Self:
        """One more call: learn from its people, then take the mean of all calls; what fails leaves all as it was."""
        with self._all_or_nothing():
            self._one_more(learn)
        return self

    def _one_more(self, learn: Callable[[], None]) -> None:
        before = dict(self.__dict__) if self._has_begun else None
        if before is not None:
            self._check_promise(before["guarantee_"])
        learn()
        now = self.n_users_
        if before is None:
            self.calls_ = 1
            self.guarantee_ = over_calls(None, self.guarantee_, now, 1)
            return
        self.calls_ = before["calls_"] + 1
        self.n_users_ = before["n_users_"] + now
        self.n_iter_ += before["n_iter_"]
        parts = np.array([before["n_users_"], now]) / self.n_users_
        self.simulated_ = self.simulated_ or before["simulated_"]
        self.theta_ = parts[0] * before["theta_"] + parts[1] * self.theta_
        self.guarantee_ = over_calls(before["guarantee_"], self.guarantee_, self.n_users_, self.calls_)
        self._set_model(*self._natural(self.theta_))
