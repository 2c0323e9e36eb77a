"""Vector sums: the sum of vectors in a ball, by several methods."""

from typing import Any

from shuffledp.privacy import Privacy
from shuffledp.protocols.domains.ball import check_ball
from shuffledp.protocols.family import DomainParameter, Family
from shuffledp.protocols.vector_sum.base import VectorSumPlan
from shuffledp.protocols.vector_sum.bits import VectorBits
from shuffledp.protocols.vector_sum.shares import VectorShares
from shuffledp.references.comparison import GAUSSIAN, gaussian_document


def _gaussian(
    *, users: int, privacy: Privacy, dimension: int, radius: float, rotation: int | None = None
) -> dict[str, Any]:
    """P_Amp of [002] in numbers; a rotation changes nothing."""
    check_ball(dimension, radius)
    given = {"dimension": dimension, "radius": radius}
    return gaussian_document(
        "vector-sum", users=users, privacy=privacy, dimension=dimension, radius=radius, domain=given
    )


VectorSum: Family[VectorSumPlan] = Family.of(
    "vector-sum",
    "The sum of everybody's vector, each of length at most --radius.",
    VectorBits,
    VectorShares,
    domain=(
        DomainParameter("dimension", way_out="add --dimension", meaning="how many numbers a vector has."),
        DomainParameter("radius", way_out="add --radius", meaning="the largest length that a user's vector may have."),
        DomainParameter(
            "rotation", meaning="the seed of a public rotation, which spreads vectors that have one large number."
        ),
    ),
    comparisons={GAUSSIAN: _gaussian},
)
