"""What the paper's own tree of concurrent shufflers comes to with its own constants."""

import math

from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.references.continual.horizon import check_users, failure_of, gaussian_factor


def paper_tree_error_bound(users: int, shufflers: int, privacy: Privacy, confidence: float) -> float:
    """The error over the whole horizon of [000]'s Algorithm 3, with real degrees and Gaussian tails.

    The degree is n^(2/(2k+1)), as in the appendix: section 3.2's n^(1/(2k+1)) is a slip. Every batch has the
    96 ln(2/delta') / epsilon'^2 fair coins of [003]'s Algorithm 3 at epsilon' = epsilon/k, delta' = delta/k.

    >>> [round(paper_tree_error_bound(1_000_000, k, Privacy(1, 1e-6), 0.95)) for k in (1, 2, 3, 4, 8)]
    [8617, 4234, 3654, 3666, 4839]
    """
    check_users(users)
    if shufflers < 1:
        raise ParameterError("shufflers", shufflers, "must be >= 1", "1 is a single sequential shuffler")
    failure = failure_of(confidence)
    degree = math.pow(users, 2 / (2 * shufflers + 1))
    lowest = users / math.pow(degree, shufflers)
    coins = 96 * math.log(2 * shufflers / privacy.delta) * (shufflers / privacy.epsilon) ** 2
    deviation = math.sqrt(coins * shufflers * (degree - 1)) / 2
    return deviation * gaussian_factor(users / lowest, failure) + lowest - 1
