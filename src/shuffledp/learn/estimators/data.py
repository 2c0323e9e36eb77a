"""People's rows as scikit-learn checks them, and its numbers as plain ones."""

import re
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from shuffledp.errors import DataError, ParameterError
from shuffledp.learn.estimators.columns import numbers_of

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
        problem = f"must be rows that can be learned from. {_without_values(str(refused)).rstrip('.')}"
        wrong = data[1] if "Input y" in problem else data[0]
        got = _bad_place(wrong) or getattr(data[0], "shape", type(data[0]).__name__)
        raise DataError("data", got, problem, "mend those rows, or find more") from None


def _without_values(text: str) -> str:
    r"""What scikit-learn says, but for people's values: those belong in no log.

    >>> _without_values("could not convert string to float: 'Oslo'")
    'could not convert string to float'
    >>> _without_values("Expected 2D array, got 1D array instead:\narray=[3. 7.].\nReshape your data.")
    'Expected 2D array, got 1D array instead. Reshape your data.'
    >>> _without_values("Input X contains NaN.\nAnything does not accept missing values encoded as NaN. See ...")
    'Input X contains NaN.'
    """
    text = re.sub(r"\n\w+ does not accept missing values.*", "", text, flags=re.DOTALL)
    text = re.sub(r"(could not convert string to float|Complex data not supported)\b.*", r"\1", text, flags=re.DOTALL)
    return re.sub(r":\s*array=.*?\.\n(?=Reshape)", ". ", text, flags=re.DOTALL)


def _bad_place(rows: Any) -> str | None:
    """The first row, and column, of a table that is no finite number; None where none is, or nobody can say."""
    try:
        table = np.asarray(rows, dtype=object)
    except ValueError:
        return None
    if table.ndim not in (1, 2) or sparse.issparse(rows):
        return None
    for place, column in enumerate(np.atleast_2d(table.T)):
        try:
            numbers_of(column, place, 0)
        except DataError as refused:
            return f"{refused.value}, column {place + 1}" if table.ndim == 2 else str(refused.value)
    return None


def plain(number: Any) -> Any:
    """Numpy's numbers as Python's, which plans and files are made of."""
    return number.item() if isinstance(number, np.generic) else number
