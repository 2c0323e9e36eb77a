"""Cells for a claimed distribution: exactly uniform if it is true, and a declared part of the distance if not."""

from fractions import Fraction

import numpy as np
import pytest

from shuffledp.errors import ParameterError
from shuffledp.protocols.distribution_test.cells import GRAINS, Cells, check_claim
from shuffledp.randomness import RandomBits
from shuffledp.testing.statistics import judge_law

CLAIMS = [
    (0.5, 0.25, 0.25),
    (0.1, 0.2, 0.3, 0.4),
    (0.7, 0.3, 0.0),
    tuple((np.arange(1, 21) ** -1.1 / np.sum(np.arange(1, 21) ** -1.1)).tolist()),
    tuple(np.random.default_rng(1).dirichlet(np.ones(12)).tolist()),
]


@pytest.mark.parametrize("claim", CLAIMS)
def test_cells_are_uniform_if_the_claim_is_true(claim) -> None:
    cells = Cells.of(claim)
    assert sum(cells.weights) == cells.size * GRAINS
    assert np.allclose(cells.law(claim), 1 / cells.size, atol=1e-6)
    users = np.random.default_rng(2).choice(len(claim), 200_000, p=np.array(claim) / sum(claim))
    seen = cells.assign(users, bits=RandomBits.seeded(3))
    assert judge_law(seen, 0, np.full(cells.size, 1 / cells.size)).stands(1e-9)
    # Users of another law are seen.
    wrong = cells.assign(np.zeros(20_000, dtype=np.int64), bits=RandomBits.seeded(4))
    assert not judge_law(wrong, 0, np.full(cells.size, 1 / cells.size)).stands(1e-9)


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_distance_kept_is_kept(claim) -> None:
    cells, generator = Cells.of(claim), np.random.default_rng(5)
    corners = np.eye(len(claim))
    for law in [*corners, *generator.dirichlet(np.full(len(claim), 0.3), 300)]:
        far = np.abs(law - np.array(claim)).sum() / 2
        near = np.abs(cells.law(law) - 1 / cells.size).sum() / 2
        assert near >= cells.distance_kept * far - cells.rounding - 1e-12
    assert 0.2 <= cells.distance_kept <= 1 and cells.rounding <= len(claim) / (2 * cells.size * GRAINS)


def test_commensurable_claims_lose_nothing() -> None:
    assert Cells.of([0.1, 0.2, 0.3, 0.4]) == Cells(
        size=10, mixed=0, weights=tuple(GRAINS * k for k in (1, 2, 3, 4)), rounding=0.0
    )
    assert Cells.of([1 / 3] * 3).size == 3 and Cells.of([1 / 3] * 3).distance_kept == 1


@pytest.mark.parametrize(
    ("claim", "bins", "said"),
    [
        ([0.5, 0.6], 2, "1.1"),
        ([1.5, -0.5], 2, "-0.5"),
        ([0.5, 0.5], 3, "2 probabilities"),
        ([float("nan"), 1.0], 2, "nan"),
        (["a", "b"], 2, "a"),
        (5, 2, "5"),
    ],
)
def test_what_is_no_distribution_is_refused_by_its_value(claim, bins: int, said: str) -> None:
    with pytest.raises(ParameterError) as caught:
        check_claim(claim, bins)
    assert caught.value.parameter == "against" and said in str(caught.value)


def test_cells_of_a_few_hundred_uneven_categories_are_made_at_once() -> None:
    """Against plain fractions, category by category; comparing fractions took seconds where this takes none."""
    claim = np.random.default_rng(1).dirichlet(np.ones(300))
    cells = Cells.of((claim / claim.sum()).tolist())
    exact = [Fraction(value) for value in (claim / claim.sum()).tolist()]
    total, mixed = sum(exact), Fraction(cells.mixed, 8)
    wanted = [((1 - mixed) * share / total + mixed / 300) * cells.size * GRAINS for share in exact]
    assert all(abs(weight - value) < 1 for weight, value in zip(cells.weights, wanted, strict=True))
    assert sum(cells.weights) == cells.size * GRAINS
    off = sum(abs(weight - value) for weight, value in zip(cells.weights, wanted, strict=True))
    assert cells.rounding >= off / (2 * cells.size * GRAINS)
