"""What users of a linear bandit are sent, by kind: bounds whose largest is taken, or a law to draw theta from."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from shuffledp.errors import DataError
from shuffledp.learn.bandits.linear.confidence import ConfidentModel
from shuffledp.learn.bandits.linear.posterior import PosteriorModel

LinearModel = ConfidentModel | PosteriorModel

# Models by a number that only they have.
_KINDS: dict[str, type[ConfidentModel] | type[PosteriorModel]] = {"radius": ConfidentModel, "root": PosteriorModel}


def linear_model_from(document: Any) -> LinearModel:
    """The model that a JSON document describes.

    Raises:
        DataError: it describes none that this version knows.

    >>> linear_model_from({"theta": [0.5], "root": [[0.1]]}).draws
    1
    """
    for name, kind in _KINDS.items():
        if isinstance(document, Mapping) and name in document and "theta" in document:
            return kind.from_document(document)
    raise DataError("model", type(document).__name__, "must be a model of a linear bandit", "update the device")


def is_linear_model(document: Any, dimension: int) -> bool:
    """Whether a JSON document is one model of so many features, all of whose numbers are finite.

    >>> is_linear_model({"theta": [0.5], "root": [[0.1]]}, 1), is_linear_model({"theta": [0.5], "root": [0.1]}, 1)
    (True, False)
    """
    try:
        model = linear_model_from(document)
    except (DataError, KeyError, TypeError, ValueError):
        return False
    parts = {field.name: getattr(model, field.name) for field in fields(model)}
    shapes = {"theta": (dimension,), "radius": ()}
    return set(parts) == set(document) and all(
        part.shape == shapes.get(name, (dimension, dimension)) and np.isfinite(part).all()
        for name, part in parts.items()
    )
