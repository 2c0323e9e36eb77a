"""The losses that devices know by name: a cohort's step names one and its parameters, and a device makes it again."""

from collections.abc import Mapping
from typing import Any

from shuffledp.errors import ParameterError
from shuffledp.learn.optimize.linear_losses import HingeLoss, HuberLoss, LogisticLoss, SquaredLoss
from shuffledp.learn.optimize.losses import Loss
from shuffledp.learn.optimize.poisson import PoissonLoss
from shuffledp.learn.optimize.softmax import SoftmaxLoss

LOSSES: dict[str, type[Loss]] = {
    loss.name: loss for loss in (LogisticLoss, HingeLoss, SquaredLoss, HuberLoss, SoftmaxLoss, PoissonLoss)
}
"""The losses that are saved and chosen by name: their classes."""


def loss_from(document: Any) -> Loss:
    """The loss that a JSON document names.

    Args:
        document: what a loss's `document` wrote.

    Returns:
        The loss.

    Raises:
        ParameterError: the document names no loss of `LOSSES`; a custom loss is known to whoever made it only.

    >>> loss_from({"loss": "huber", "ridge": 0.0, "feature_bound": 1.0, "threshold": 2.0}).document()["threshold"]
    2.0
    """
    kind = LOSSES.get(str(document.get("loss"))) if isinstance(document, Mapping) else None
    if kind is None:
        raise ParameterError("loss", document, f"must be one of {', '.join(LOSSES)}", "take a loss that devices know")
    return kind(**{name: value for name, value in document.items() if name != "loss"})
