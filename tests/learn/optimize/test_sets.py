import numpy as np
import pytest

from shuffledp.errors import ParameterError
from shuffledp.learn.optimize import Box, ConvexSet, L2Ball, Simplex

SETS = [
    L2Ball(dimension=4, radius=1.5),
    Box(dimension=4, low=-0.5, high=2.0),
    Simplex(dimension=4, total=2.0),
    Simplex(dimension=1),
]


@pytest.mark.parametrize("domain", SETS, ids=lambda domain: domain.kind)
def test_projection_is_the_nearest_point(domain: ConvexSet) -> None:
    rng = np.random.default_rng(1)
    inside = [domain.project(rng.normal(size=domain.dimension) * 3) for _ in range(200)]
    for _ in range(50):
        anywhere = rng.normal(size=domain.dimension) * 4
        nearest = domain.project(anywhere)
        # A point is the nearest of a convex set if no point of the set lies beyond it.
        assert max(float((anywhere - nearest) @ (point - nearest)) for point in inside) <= 1e-9
        assert np.allclose(domain.project(nearest), nearest, atol=1e-12)


@pytest.mark.parametrize("domain", SETS, ids=lambda domain: domain.kind)
def test_widths_hold_and_are_reached(domain: ConvexSet) -> None:
    rng = np.random.default_rng(2)
    corners = np.array([domain.project(50 * rng.choice([-1.0, 0.0, 1.0], domain.dimension)) for _ in range(3000)])
    from_centre = np.linalg.norm(corners - domain.centre, axis=1)
    assert np.allclose(domain.project(domain.centre), domain.centre)
    assert domain.reach * 0.999 <= from_centre.max() <= domain.reach + 1e-9
    assert domain.largest_norm * 0.999 <= np.linalg.norm(corners, axis=1).max() <= domain.largest_norm + 1e-9
    apart = np.linalg.norm(corners[:, None] - corners[None, :100], axis=2)
    assert domain.diameter * 0.99 <= apart.max() + 1e-12 <= domain.diameter + 1e-9


def test_bad_sets_are_refused() -> None:
    for make in (
        lambda: L2Ball(dimension=0, radius=1),
        lambda: L2Ball(dimension=2, radius=float("nan")),
        lambda: Box(dimension=2, low=1, high=1),
        lambda: Box(dimension=2, low=float("-inf"), high=1),
        lambda: Simplex(dimension=2, total=0),
    ):
        with pytest.raises(ParameterError):
            make()


def test_projections_of_huge_points_are_in_the_set() -> None:
    for theta in (np.array([1e17, 1e17, -1e17]), np.array([1e200, 1e200, 0.0]), np.array([1.7e308, 0.0, -1.7e308])):
        ball = L2Ball(dimension=3, radius=2.0).project(theta)
        assert np.linalg.norm(ball) == pytest.approx(2.0)
        simplex = Simplex(dimension=3).project(theta / 4)
        assert simplex.sum() == pytest.approx(1.0) and (simplex >= 0).all()
