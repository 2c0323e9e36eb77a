"""Smoothing and acceleration: P_AGD on the Moreau envelopes of a loss that is not smooth.

An envelope of smoothness beta lies below the loss by at most L^2 / (2 beta), and its gradients are no longer than L:
with the beta that balances this against acceleration, 2 L distance / sqrt(T (T+1)) is all that smoothing costs.

Reference: [001] Theorem 4.7, with L instead of 2 L.
"""

from typing import ClassVar

from shuffledp.learn.optimize.agd import Agd
from shuffledp.learn.optimize.problem import Problem


class SmoothedAgd(Agd):
    """Rounds, envelopes and steps of P_AGD for losses with a proximal map."""

    name: ClassVar[str] = "smoothed-agd"
    reference: ClassVar[str] = "[001] Theorem 4.7"

    def refusal(self, problem: Problem) -> str | None:
        if problem.smoothness is not None:
            return "is for losses that are not smooth; agd is better here"
        return None if problem.has_prox else "needs the loss's proximal map"
