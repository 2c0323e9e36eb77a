"""Learning from people without seeing them: policies and solvers that ask and are told, and estimators on top.

>>> from shuffledp.learn import ShuffleRidge
>>> ShuffleRidge(epsilon=1).get_params()["epsilon"]
1
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shuffledp.learn.estimators.classification import ShuffleLinearSVC as ShuffleLinearSVC
    from shuffledp.learn.estimators.classification import ShuffleLogisticRegression as ShuffleLogisticRegression
    from shuffledp.learn.estimators.counts import ShufflePoissonRegressor as ShufflePoissonRegressor
    from shuffledp.learn.estimators.models import LinearModel as LinearModel
    from shuffledp.learn.estimators.models import load_model as load_model
    from shuffledp.learn.estimators.regression import ShuffleHuberRegressor as ShuffleHuberRegressor
    from shuffledp.learn.estimators.regression import ShuffleRidge as ShuffleRidge
    from shuffledp.learn.estimators.scaler import ShuffleScaler as ShuffleScaler
    from shuffledp.learn.evaluation import evaluate as evaluate

# Lazy, so that policies and solvers need no scikit-learn.
_HOMES = {
    "LinearModel": "models",
    "ShuffleHuberRegressor": "regression",
    "ShuffleLinearSVC": "classification",
    "ShuffleLogisticRegression": "classification",
    "ShufflePoissonRegressor": "counts",
    "ShuffleRidge": "regression",
    "ShuffleScaler": "scaler",
    "load_model": "models",
}

__all__ = sorted([*_HOMES, "evaluate"])


def __getattr__(name: str) -> Any:
    if name == "evaluate":
        return import_module("shuffledp.learn.evaluation").evaluate
    if name in _HOMES:
        return getattr(import_module(f"shuffledp.learn.estimators.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'shuffledp.learn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
