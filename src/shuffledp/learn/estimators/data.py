"""People's rows as scikit-learn checks them, and its numbers as plain ones."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.errors import DataError, ParameterError

try:
    from sklearn.utils.validation import validate_data
except ImportError:
    raise ImportError("Estimators need scikit-learn: pip install 'shuffledp[learn]'.") from None


def checked_data(estimator: Any, *data: ArrayLike, **how: Any) -> Any:
    """What scikit-learn makes of the data; its refusal is one of this package's.

    Columns of an estimator with categories may hold words: they come back as objects, and are checked when they are
    encoded. All others come back as finite floats, dense or in compressed sparse rows.

    Args:
        estimator: what is fitted on the data, or has been.
        *data: rows of features and, if there are any, targets.
        **how: what else `sklearn.utils.validation.validate_data` takes.

    Raises:
        DataError: data that cannot be learned from.
    """
    if getattr(estimator, "categories", None):
        how = {"dtype": None, "ensure_all_finite": False, **how}
    try:
        return validate_data(estimator, *data, **{"dtype": np.float64, "accept_sparse": "csr", **how})
    except ParameterError:
        raise
    except ValueError as refused:
        problem = f"must be rows that can be learned from. {str(refused).rstrip('.')}"
        raise DataError(
            "data", getattr(data[0], "shape", type(data[0]).__name__), problem, "mend those rows, or find more"
        ) from None


def plain(number: Any) -> Any:
    """Numpy's numbers as Python's, which plans and files are made of."""
    return number.item() if isinstance(number, np.generic) else number
