"""What a device chose by a model: kept on the device until the reward is known."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.rounding import TOLERANCE
from shuffledp.errors import DataError
from shuffledp.learn.steps import chosen_arms
from shuffledp.randomness import RandomBits
from shuffledp.service.models import Model

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DeviceChoice:
    """Which offer was chosen, by which model; printing it says nothing of features.

    Attributes:
        offer: the place of the offer that was chosen, from 0; of arms the arm's number.
        model: what it was chosen by.
        features: of the offer that was chosen; None where offers have none.
    """

    offer: int
    model: Model
    features: Floats | None = None

    def __repr__(self) -> str:
        return f"DeviceChoice(offer {self.offer} by model {self.model.number})"


def offered_features(context: Any, offers: Any, dimension: int, *, nonnegative: bool = False) -> Floats:
    """The features of each offer, (offers, dimension): the offers themselves, or every product with a context's number.

    Args:
        context: numbers that describe the person and the moment; None where offers say all.
        offers: a row of numbers for each offer.
        dimension: how many numbers the campaign's features have.
        nonnegative: whether the campaign's epsilon rests on features without a negative number.

    Raises:
        DataError: something is not finite, of another dimension, longer than 1, or negative where nothing may be.

    >>> offered_features([0.6, 0.8], [[1, 0], [0, 1]], 4).tolist()
    [[0.6, 0.0, 0.8, 0.0], [0.0, 0.6, 0.0, 0.8]]
    """
    found = _numbers("offers", offers)
    if found.ndim != 2 or len(found) == 0:
        raise DataError("offers", f"shape {found.shape}", "must be a row of numbers for each offer", "pass rows")
    if context is not None:
        own = _numbers("context", context)
        if own.ndim != 1:
            raise DataError("context", f"shape {own.shape}", "must be one row of numbers", "pass a row")
        found = np.einsum("c,af->acf", own, found).reshape(len(found), -1)
    if found.shape[1] != dimension:
        way_out = "pass offers with so many numbers, or a context and offers whose numbers multiply to it"
        raise DataError("offers", f"{found.shape[1]} features", f"must have {dimension}", way_out)
    if (np.linalg.norm(found, axis=1) > 1 + TOLERANCE).any():
        problem = "must be no longer than 1"
        raise DataError("offers", "longer features", problem, "divide by the greatest length that there can be")
    if nonnegative and (found < 0).any():
        problem = "must have no negative number: this campaign's epsilon rests on it"
        raise DataError("offers", "negative features", problem, "shift them, or create it without --nonnegative")
    return found


def _numbers(name: str, values: Any) -> Floats:
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(name, type(values).__name__, "must be numbers", "pass rows of numbers") from None
    # What it holds is the person's: it is not shown.
    if not np.isfinite(found).all():
        raise DataError(name, "something else", "must be finite numbers", "mend it first")
    return found


def choose_among(model: Model, context: Any, offers: Any, *, bits: RandomBits) -> DeviceChoice:
    """The offer that a linear bandit's model chooses for this person.

    Args:
        model: the newest.
        context: numbers that describe the person and the moment, or None.
        offers: a row of numbers for each offer.
        bits: where a theta that the person draws comes from.
    """
    assert model.step is not None
    parameters = model.step.parameters
    joint = parameters["joint"]
    features = offered_features(context, offers, int(joint["dimension"]), nonnegative=bool(joint["nonnegative"]))
    place = int(chosen_arms(parameters, features[np.newaxis], bits=bits)[0])
    return DeviceChoice(place, model, features[place])
