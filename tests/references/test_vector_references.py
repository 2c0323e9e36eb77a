import itertools
import math
import runpy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, special

from shuffledp.accounting.amplification import LocalDeltaCurve, local_delta_distance, stronger_clones
from shuffledp.accounting.gaussian import gaussian_delta, gaussian_standard_deviation
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.references.amplified_gaussian import AmplifiedGaussian
from shuffledp.references.local import LocalRandomizedResponse
from shuffledp.references.local_bounded import local_bounded_standard_error, piecewise_deviation
from shuffledp.references.local_vector import best_cap, cap_standard_error, local_vector_standard_error
from shuffledp.testing.statistics import assert_law, assert_mean, assert_not_law

USERS, RUNS = 60, 4000
MODERATE = Privacy(1, 1e-6)
DIMENSIONS = [1, 2, 3, 10, 1000, 100_000]


LOCAL = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "local_descent.py"))
"""PrivUnit's answers, which a benchmark learns from."""


def errors_of(estimate: Callable[[np.ndarray, np.random.Generator], np.ndarray], values: np.ndarray) -> np.ndarray:
    """One row a run: the estimate less the true sum."""
    generator = np.random.default_rng(1)
    runs = [np.atleast_1d(estimate(values, generator)) for _ in range(RUNS)]
    return np.stack(runs) - np.atleast_1d(values.sum(axis=0))


def priv_unit(epsilon: float) -> Callable[[np.ndarray, np.random.Generator], np.ndarray]:
    """Sums of vectors no longer than 2."""
    return lambda values, generator: LOCAL["sample_sum"](values, epsilon, 2.0, generator)


def noisy(values: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Every user adds the noise of `AmplifiedGaussian`."""
    noise = AmplifiedGaussian(users=USERS, privacy=MODERATE, dimension=3, radius=2).noise_standard_deviation
    return (values + noise * generator.standard_normal(values.shape)).sum(axis=0)


def by_bits(values: np.ndarray, generator: np.random.Generator) -> float:
    """Numbers in [-1, 5] rounded to an end, and told by randomized response."""
    response = LocalRandomizedResponse(users=USERS, privacy=MODERATE)
    bits = generator.random(USERS) < (values + 1) / 6
    return 6 * response.sample_estimate(bits, generator=generator).value - USERS


def by_pieces(values: np.ndarray, generator: np.random.Generator) -> float:
    """Numbers in [-1, 5] told by the piecewise mechanism."""
    return float((3 * Piecewise(4.0).sample((values - 2) / 3, generator=generator) + 2).sum())


class Piecewise:
    """The mechanism whose deviation `piecewise_deviation` is."""

    def __init__(self, epsilon: float) -> None:
        self.epsilon, self.gain = epsilon, math.expm1(epsilon / 2)
        self.width = 2 / self.gain
        self.reach = 1 + self.width

    def start(self, values: np.ndarray) -> np.ndarray:
        return values + self.width / 2 * (values - 1)

    def standard_deviation(self, value: float) -> float:
        return math.sqrt(value**2 / self.gain + (self.gain + 4) / (3 * self.gain**2))

    def sample(self, values: np.ndarray, *, generator: np.random.Generator) -> np.ndarray:
        near = generator.random(values.size) < special.expit(self.epsilon / 2)
        start, place = self.start(values), generator.random(values.size)
        far = (self.reach + 1) * place - self.reach
        return np.where(near, start + self.width * place, far + self.width * (far > start))


def assert_errors(errors: np.ndarray, standard_error: float, *, false_alarm: float = 1e-9) -> None:
    """No bias in any coordinate, and this root mean square over all of them."""
    for coordinate in errors.T:
        assert_mean(coordinate, 0.0, float(coordinate.std()), false_alarm=false_alarm)
    squares = (errors**2).mean(axis=1)
    assert_mean(squares, standard_error**2, float(squares.std()), false_alarm=false_alarm)


def on_the_sphere(dimension: int, radius: float) -> np.ndarray:
    rows = np.random.default_rng(2).standard_normal((USERS, dimension)) + 1
    return radius * rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("estimate", "standard_error", "worst_values"),
    [
        (
            noisy,
            AmplifiedGaussian(users=USERS, privacy=MODERATE, dimension=3, radius=2).standard_error,
            on_the_sphere(3, 2),
        ),
        (by_bits, local_bounded_standard_error(USERS, MODERATE, -1, 5), np.full(USERS, 2.0)),
        (
            by_pieces,
            local_bounded_standard_error(USERS, Privacy(4, 1e-6), -1, 5),
            np.tile([-1.0, 5.0, 5.0], 20),
        ),
        (priv_unit(1.0), cap_standard_error(USERS, 1.0, 1, 2), np.zeros((USERS, 1))),
        (priv_unit(1.0), cap_standard_error(USERS, 1.0, 2, 2), np.zeros((USERS, 2))),
        (priv_unit(4.0), cap_standard_error(USERS, 4.0, 5, 2), np.zeros((USERS, 5))),
    ],
)
def test_references_have_the_error_that_they_claim(estimate, standard_error: float, worst_values) -> None:
    errors = errors_of(estimate, worst_values)
    assert_errors(errors, standard_error)
    for wrong in (0.8, 1.25):
        with pytest.raises(AssertionError):
            assert_errors(errors, wrong * standard_error)


@pytest.mark.parametrize(("dimension", "epsilon"), [(1, 2.0), (3, 1.0), (3, 6.0)])
def test_unit_vectors_have_the_exact_second_moment_and_short_ones_no_bias(dimension: int, epsilon: float) -> None:
    for length in (2.0, 1.2):
        errors = errors_of(priv_unit(epsilon), on_the_sphere(dimension, length))
        exact = math.sqrt(USERS * ((2 / best_cap(epsilon, dimension).mean) ** 2 - length**2) / dimension)
        assert_errors(errors, exact)
        assert exact < cap_standard_error(USERS, epsilon, dimension, 2)
    with pytest.raises(AssertionError):
        assert_errors(errors * 1.25, exact)


@pytest.mark.parametrize("dimension", DIMENSIONS[1:])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
def test_answers_come_evenly_from_the_cap_and_evenly_from_the_rest(dimension: int, epsilon: float) -> None:
    cap = best_cap(epsilon, dimension)
    along, across = LOCAL["sample_components"](cap, 20_000, np.random.default_rng(4))
    assert np.allclose(along**2 + across**2, 1, atol=1e-12)
    tails = special.betaincc(0.5, (dimension - 1) / 2, along**2) / 2
    nearer = np.where(along > 0, tails, 1 - tails)
    cells = np.where(along >= cap.height, 10 * nearer / cap.share, 10 + 10 * (nearer - cap.share) / (1 - cap.share))
    cells = np.clip(np.floor(cells).astype(int), 0, 19)
    masses = np.repeat([cap.probability / 10, (1 - cap.probability) / 10], 10)
    assert_law(cells, 0, masses)
    assert_not_law(cells, 0, masses * np.tile([0.8, 1.2], 10))


def test_the_caps_share_and_mean_are_those_of_uniform_vectors() -> None:
    cap = best_cap(2.0, 5)
    vectors = np.random.default_rng(5).standard_normal((200_000, 5))
    along = vectors[:, 0] / np.linalg.norm(vectors, axis=1)
    inside = along >= cap.height
    assert_mean(inside, cap.share, math.sqrt(cap.share * (1 - cap.share)))
    density = np.where(inside, cap.probability / cap.share, (1 - cap.probability) / (1 - cap.share))
    assert_mean(density * along, cap.mean, float((density * along).std()))
    with pytest.raises(AssertionError):
        assert_mean(density * along, cap.mean * 1.1, float((density * along).std()))


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0])
def test_the_caps_density_ratio_is_the_promise(dimension: int, epsilon: float) -> None:
    cap = best_cap(epsilon, dimension)
    ratio = cap.probability * (1 - cap.share) / (cap.share * (1 - cap.probability))
    assert math.log(ratio) == pytest.approx(epsilon, rel=1e-8)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0, 50.0])
def test_no_other_height_is_better(epsilon: float) -> None:
    for dimension in DIMENSIONS[1:]:
        cap = best_cap(epsilon, dimension)
        assert cap.mean == pytest.approx(cap.height, rel=1e-4)
    # In dimension 3 the component is uniform on [-1, 1].
    heights = 1 - np.geomspace(1, 1e-14, 100_001)
    gain = math.expm1(epsilon)
    means = gain * (1 - heights**2) / 4 / (1 + gain * (1 - heights) / 2)
    assert best_cap(epsilon, 3).mean == pytest.approx(means.max(), rel=1e-6)


def test_one_dimension_is_randomized_response_on_the_sign() -> None:
    assert cap_standard_error(100, 1.0, dimension=1, radius=3) == pytest.approx(30 / math.tanh(0.5))
    almost_pure = LocalRandomizedResponse(users=1, privacy=Privacy(1, 1e-12))
    assert best_cap(1.0, 1).probability == pytest.approx(1 - almost_pure.lie_probability)


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_local_vectors_are_fine_at_every_epsilon(dimension: int) -> None:
    epsilons = [0.01, 0.1, 1, 3, 10, 30, 50, 100]
    errors = [cap_standard_error(1, e, dimension, 1) for e in epsilons]
    assert all(later <= earlier * (1 + 1e-12) for earlier, later in itertools.pairwise(errors))
    assert all(math.isfinite(error) and error * math.sqrt(dimension) >= 1 - 1e-12 for error in errors)
    generator = np.random.default_rng(6)
    values = np.zeros((3, dimension))
    for epsilon in (0.01, 50):
        assert np.isfinite(LOCAL["sample_sum"](values, epsilon, 1.0, generator)).all()


def test_the_smaller_local_error_is_taken() -> None:
    for epsilon in (1, 40):
        privacy = Privacy(epsilon, 1e-6)
        caps = cap_standard_error(100, epsilon, 4, 2)
        gaussian = 10 * gaussian_standard_deviation(privacy, 4)
        smaller = local_vector_standard_error(100, privacy, 4, 2)
        assert smaller == (caps if epsilon == 1 else gaussian) == min(caps, gaussian)


def amplified_delta(local_epsilon: float, users: int, deviation: float, epsilon: float) -> float:
    distance = local_delta_distance(local_epsilon, gaussian_delta(local_epsilon, deviation, 2), users)
    return LocalDeltaCurve(stronger_clones(local_epsilon, users), distance).delta(epsilon)


@pytest.mark.parametrize(
    ("users", "privacy"),
    [(100, MODERATE), (1000, MODERATE), (100_000, MODERATE), (1000, Privacy(0.01, 1e-6)), (50, Privacy(0.1, 0.3))],
)
def test_amplified_noise_meets_the_promise_and_a_tenth_less_does_not(users: int, privacy: Privacy) -> None:
    reference = AmplifiedGaussian(users=users, privacy=privacy)
    deviation, local = reference.noise_standard_deviation, reference.local_privacy
    assert local.epsilon > privacy.epsilon
    assert 0.999 * privacy.delta <= amplified_delta(local.epsilon, users, deviation, privacy.epsilon) <= privacy.delta
    candidates = np.concatenate(
        [np.geomspace(privacy.epsilon, 30, 60), local.epsilon * (1 + np.linspace(-0.05, 0.05, 101))]
    )
    for less in (0.9, 0.9999):
        deltas = [amplified_delta(float(e), users, less * deviation, privacy.epsilon) for e in candidates]
        assert min(deltas) > privacy.delta


def test_amplification_is_never_worse_than_none_and_helps_more_among_more_users() -> None:
    for privacy in (MODERATE, Privacy(0.1, 0.01), Privacy(10, 1e-6), Privacy(100, 1e-3), Privacy(0.1, 0.99)):
        alone = gaussian_standard_deviation(privacy, 2)
        noises = [
            AmplifiedGaussian(users=n, privacy=privacy).noise_standard_deviation for n in (1, 2, 30, 1000, 30_000)
        ]
        assert noises[0] == alone
        assert all(later <= earlier for earlier, later in itertools.pairwise(noises))
    by_epsilon = [AmplifiedGaussian(users=1000, privacy=Privacy(e, 1e-6)).standard_error for e in (0.1, 0.5, 1, 2, 4)]
    assert by_epsilon == sorted(by_epsilon, reverse=True)


def test_the_papers_noise_has_a_range_and_is_larger() -> None:
    assert AmplifiedGaussian(users=1000, privacy=MODERATE).paper_standard_error is None
    edge = math.sqrt(math.log(2e6) / 1000)
    for epsilon in (0.01, 0.99 * edge):
        reference = AmplifiedGaussian(users=1000, privacy=Privacy(epsilon, 1e-6), radius=3)
        sigma = 4 * math.sqrt(2 * math.log(2.5e9) * math.log(2e6)) / (epsilon * math.sqrt(1000))
        assert reference.paper_standard_error == pytest.approx(3 * sigma * math.sqrt(1000))
        assert reference.standard_error < reference.paper_standard_error


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_the_piecewise_mechanism_is_exactly_private_and_has_its_moments(epsilon: float) -> None:
    mechanism = Piecewise(epsilon)
    near = math.exp(epsilon / 2) / (math.exp(epsilon / 2) + 1)
    inside, outside = near / mechanism.width, (1 - near) / (mechanism.reach + 1)
    assert inside / outside == pytest.approx(math.exp(epsilon))
    for value in (-1.0, 0.3, 1.0):
        start = float(mechanism.start(np.array(value)))
        edges = [-mechanism.reach, start, start + mechanism.width, mechanism.reach]
        densities = (outside, inside, outside)
        mass, mean, square = (
            sum(
                integrate.quad(lambda y, power=power, density=density: density * y**power, low, high)[0]
                for low, high, density in zip(edges, edges[1:], densities, strict=False)
            )
            for power in (0, 1, 2)
        )
        assert (mass, mean) == pytest.approx((1, value), abs=1e-9)
        assert math.sqrt(square - mean**2) == pytest.approx(mechanism.standard_deviation(value))
        answers = mechanism.sample(np.full(20_000, value), generator=np.random.default_rng(7))
        assert np.abs(answers).max() <= mechanism.reach
        # At the ends of the range one of the two sides is empty.
        cells = np.searchsorted(edges[1:3], np.clip(answers, edges[0] + 1e-12, edges[3] - 1e-12))
        masses = np.diff(edges) * densities
        kept = np.flatnonzero(masses > 1e-9)
        assert_law(cells, int(kept[0]), masses[kept])
        if value == 0.3:
            assert_not_law(cells, 0, masses[::-1])
    assert mechanism.standard_deviation(1.0) == pytest.approx(1 / (math.sqrt(3) * math.sinh(epsilon / 4)))
    assert piecewise_deviation(epsilon) == mechanism.standard_deviation(1.0)


def test_the_best_bounded_mechanism_is_chosen_and_laplace_never_is() -> None:
    epsilons = np.geomspace(0.01, 100, 50)
    errors = [local_bounded_standard_error(1, Privacy(float(e), 1e-6), 0, 2) for e in epsilons]
    assert errors == sorted(errors, reverse=True)
    assert all(error < math.sqrt(8) / e for error, e in zip(errors, epsilons, strict=True))
    # Wang et al. 2019: the piecewise mechanism is the better one above 1.29.
    by_pieces = [error == piecewise_deviation(float(e)) for error, e in zip(errors, epsilons, strict=True)]
    assert by_pieces == [e >= 1.29 for e in epsilons]


@pytest.mark.parametrize(
    "build",
    [
        lambda: AmplifiedGaussian(users=0, privacy=MODERATE),
        lambda: AmplifiedGaussian(users=1, privacy=MODERATE, radius=math.inf),
        lambda: AmplifiedGaussian(users=1, privacy=MODERATE, dimension=0),
    ],
)
def test_what_makes_no_sense_is_refused(build) -> None:
    with pytest.raises(ParameterError):
        build()
