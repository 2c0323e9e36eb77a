"""Methods for comparison only: their noise is made of floats, so they protect nobody here."""

from typing import Any

from shuffledp.privacy import Privacy
from shuffledp.references.amplified_gaussian import AmplifiedGaussian

GAUSSIAN = "gaussian"


def gaussian_document(
    protocol: str, *, users: int, privacy: Privacy, dimension: int, radius: float, domain: dict[str, Any]
) -> dict[str, Any]:
    """P_Amp of [002] beside a plan's numbers: local Gaussian noise, amplified by shuffling.

    >>> gaussian_document("vector-sum", users=1000, privacy=Privacy(1, 1e-6), dimension=10, radius=1.0,
    ...                   domain={})["comparison_only"]
    True
    """
    reference = AmplifiedGaussian(users=users, privacy=privacy, dimension=dimension, radius=radius)
    local = reference.local_privacy
    return {
        "schema": 1,
        "protocol": protocol,
        "method": GAUSSIAN,
        "comparison_only": True,
        "users": users,
        "epsilon": privacy.epsilon,
        "delta": privacy.delta,
        **domain,
        "standard_error": reference.standard_error,
        "messages_per_user_mean": 1.0,
        "messages_per_user_max": 1,
        "bits_per_message": 64 * dimension,
        "local_epsilon": local.epsilon,
        "local_delta": local.delta,
        "noise": {"law": "gaussian", "standard_deviation": reference.noise_standard_deviation},
        "reference": {"paper_standard_error": reference.paper_standard_error},
        "why": "for comparison only: float noise protects nobody",
    }
