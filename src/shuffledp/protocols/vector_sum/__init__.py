"""Vector sums: the sum of vectors in a ball, by several methods."""

from collections.abc import Mapping
from typing import Any

from shuffledp.privacy import Privacy
from shuffledp.protocols.choosing import FEW_MESSAGES
from shuffledp.protocols.domains.ball import check_ball
from shuffledp.protocols.family import DomainParameter, Family
from shuffledp.protocols.vector_sum.base import VectorSumPlan
from shuffledp.protocols.vector_sum.bits import VectorBits
from shuffledp.protocols.vector_sum.rotation import padded_dimension
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


def _few(given: Mapping[str, Any]) -> int:
    """So many for each coordinate: a vector is sent as that many numbers, after a rotation as a power of two."""
    dimension = int(given["dimension"])
    return FEW_MESSAGES * (dimension if given.get("rotation") is None else padded_dimension(dimension))


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
    few_messages=_few,
    comparisons={GAUSSIAN: _gaussian},
)
