"""What a trusted curator's noise makes the error of sums of people, by a Gaussian and by Laplace's law."""

import math

from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.privacy import Privacy


def curator_errors(
    privacy: Privacy, *, apart: float, moved: float, local: float | None = None
) -> dict[str, float | None]:
    """Standard errors beside a plan's own, by their names in its document; a paper's is not known.

    Args:
        privacy: what the curator promises.
        apart: how far one person moves all sums at most, as a distance in space: a Gaussian's.
        moved: how far one person moves all sums at most, added up: Laplace's.
        local: the error without anybody who is trusted; None where it is not known.

    >>> found = curator_errors(Privacy(1, 1e-6), apart=1, moved=2)
    >>> round(found["central_laplace_standard_error"], 2), found["local_standard_error"]
    (2.83, None)
    """
    return {
        "paper_standard_error": None,
        "central_standard_error": gaussian_standard_deviation(privacy, apart),
        "central_laplace_standard_error": math.sqrt(2) * moved / privacy.epsilon,
        "local_standard_error": local,
    }
