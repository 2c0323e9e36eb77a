"""What users of a linear bandit are sent, by kind: bounds whose largest is taken, or a law to draw theta from."""

from collections.abc import Mapping
from typing import Any

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
