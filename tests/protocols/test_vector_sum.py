"""Vector sums: figures, exact twins, rotation, streaming, matrices, refusals."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from shuffledp.accounting.laws import Binomial
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.audit.trials import audit_plan
from shuffledp.errors import BrokenBatchError, InfeasibleError, ParameterError
from shuffledp.messages import Batch
from shuffledp.privacy import Privacy
from shuffledp.protocols import runner
from shuffledp.protocols.bounded_sum import BoundedSum
from shuffledp.protocols.domains.summed import Vectors
from shuffledp.protocols.plan import changed
from shuffledp.protocols.vector_sum import VectorSum
from shuffledp.protocols.vector_sum.matrices import pack_symmetric, packed_dimension, unpack_symmetric
from shuffledp.protocols.vector_sum.rotation import likely_range, rotate, rotate_back
from shuffledp.randomness import RandomBits
from shuffledp.simulation.run import simulate
from shuffledp.testing.protocols import check_protocol
from shuffledp.testing.statistics import assert_deviation, assert_same_law

PRIVACY = Privacy(1, 1e-6)
LOOSE = Privacy(1, 1e-3)
BALL = {"dimension": 10, "radius": 1}


def half_steps(plan) -> np.ndarray:
    """Vectors between two steps of the grid in every coordinate, where rounding has its largest variance."""
    signs = 1 - 2 * (np.arange(plan.users * plan.dimension).reshape(plan.users, -1) % 2)
    return signs * plan.step * (0.5 + np.arange(plan.users)[:, np.newaxis] % 3)


@pytest.mark.parametrize("method", VectorSum.methods)
@pytest.mark.parametrize("honest_fraction", [pytest.param(1.0, marks=pytest.mark.sweep), 0.5])
def test_vector_sums_keep_their_promises(method: str, honest_fraction: float) -> None:
    plan = VectorSum.plan(
        users=30, privacy=Privacy(2, 1e-3), dimension=3, radius=2, method=method, honest_fraction=honest_fraction
    )
    bad = [np.full((30, 3), np.nan), np.full((30, 3), 2.0), np.zeros((30, 2)), np.zeros(30), [["a"] * 3] * 30]
    check_protocol(plan, half_steps(plan), bad, runs=2000)


@pytest.mark.parametrize(("users", "dimension"), [(1000, 10), (100_000, 1000)])
def test_the_figures_of_the_design(users: int, dimension: int) -> None:
    asked = {"users": users, "privacy": PRIVACY, "dimension": dimension, "radius": 1}
    plans = {method: VectorSum.plan(**asked, method=method) for method in VectorSum.methods}
    for plan in plans.values():
        reference = plan.reference()
        assert reference["central_standard_error"] == pytest.approx(8.449, abs=1e-3)
        assert plan.standard_error <= 1.1 * reference["central_standard_error"]
        assert reference["paper_standard_error"] > 400 * plan.standard_error
    assert plans["shares"].standard_error <= 1.01 * 8.45
    assert dimension == 10 or plans["shares"].shares <= 12
    if dimension == 10:
        assert plans["bits"].reference()["paper_standard_error"] == pytest.approx(3998, abs=1)


@pytest.mark.parametrize("method", VectorSum.methods)
def test_a_twin_with_a_fifth_less_noise_cannot_be_made(method: str) -> None:
    plan = VectorSum.plan(users=200, privacy=PRIVACY, **BALL, method=method)
    quieter = plan.twin(0.8)
    assert quieter.guarantee().delta > plan.privacy.delta
    with pytest.raises(InfeasibleError, match="noise"):
        dataclasses.replace(quieter)


@pytest.mark.parametrize("method", VectorSum.methods)
def test_the_claim_against_brute_force_over_all_shifts(method: str) -> None:
    """In two dimensions, with the plan's own noise: every shift that rounding can leave, exactly."""
    plan = VectorSum.plan(users=3, privacy=Privacy(3, 0.02), dimension=2, radius=1, method=method, rotation=None)
    plan = coarser(plan)
    law = plan.noise_law
    start, end = law.window(1e-12)
    length = plan.rounded_difference.length
    k = np.arange(start, end + math.ceil(length) + 1)
    worst = 0.0
    for shift in itertools.product(range(math.floor(length) + 1), repeat=2):
        if 0 < math.hypot(*shift) <= length:
            p = np.exp(law.log_pmf(k * 1.0))
            joint = np.outer(p, p)
            moved = np.outer(*(np.exp(law.log_pmf((k - s) * 1.0)) for s in shift))
            worst = max(worst, float(np.maximum(joint - math.exp(3) * moved, 0).sum()))
    assert 0.2 * plan.privacy.delta < worst <= plan.guarantee().delta <= plan.privacy.delta


@pytest.mark.parametrize(("epsilon", "most", "needs_it"), [(1, 8, True), (10, 16, False), (1, None, False)])
def test_a_vector_of_one_number_by_bits_is_a_bounded_sum(epsilon: float, most: int | None, needs_it: bool) -> None:
    """With few people and messages normal scores took a coin more of everybody: errors of 11.18 and 1.538."""
    asked = {"users": 100, "privacy": Privacy(epsilon, 1e-6), "method": "bits", "max_messages": most}
    line = VectorSum.plan(**asked, dimension=1, radius=1)
    number = BoundedSum.plan(**asked, low=-1, high=1)
    assert (line.grid, line.coins) == (number.grid, number.coins)
    assert line.standard_error == pytest.approx(number.standard_error)
    pair = line.pair(100)
    assert isinstance(pair, ShiftPair) and (pair.noise, pair.shift) == (Binomial(100 * line.coins, 0.5), line.grid)
    by_scores = sum(term.value for term in line.repeated_terms(epsilon, 100))
    assert line.guarantee().holds and line.guarantee().delta <= by_scores and (by_scores > 1e-6) == needs_it
    assert not changed(line, coins=line.coins - 1).guarantee().holds


def test_the_claim_of_one_number_against_brute_force_over_all_shifts() -> None:
    plan = VectorSum.plan(users=20, privacy=Privacy(3, 0.02), dimension=1, radius=1, method="bits")
    law = plan.noise_law
    start, end = law.window(1e-12)
    k = np.arange(start, end + plan.largest_shift + 1) * 1.0
    p = np.exp(law.log_pmf(k))
    deltas = [
        float(np.maximum(first - math.exp(3) * second, 0).sum())
        for shift in range(1, plan.largest_shift + 1)
        for moved in [np.exp(law.log_pmf(k - shift))]
        for first, second in ((p, moved), (moved, p))
    ]
    [noise] = [term.value for term in plan.guarantee().terms if term.name == "noise"]
    assert max(deltas) == pytest.approx(noise, rel=1e-6) and noise <= plan.privacy.delta
    assert not plan.twin(0.8).guarantee().holds


def coarser(plan):
    """A plan of the same claim on a grid of 3, with the noise that it needs there."""
    for variance in np.geomspace(1, 100, 400):
        noise = {"coins": math.ceil(4 * variance / plan.users)} if plan.method == "bits" else {"variance": variance}
        try:
            return dataclasses.replace(plan, grid=6 if plan.method == "bits" else 3, **noise)
        except InfeasibleError:
            continue
    raise AssertionError("no noise is enough")


@pytest.mark.parametrize(("method", "rotation"), [("bits", None), ("shares", None), ("shares", 5)])
def test_honest_plans_stand_and_half_the_noise_is_refuted(method: str, rotation: int | None) -> None:
    plan = VectorSum.plan(users=4, privacy=LOOSE, dimension=2, radius=1, method=method, rotation=rotation)
    trials = 150_000
    honest = audit_plan(plan, bits=RandomBits.seeded(1), trials=trials)
    assert honest.verdict == "stands" and honest.epsilon_lower_bound <= honest.epsilon_exact
    assert audit_plan(plan, bits=RandomBits.seeded(2), trials=trials, sabotage=0.4).verdict == "refuted"


def test_epsilon_at_honest_fractions_beside_the_papers_rule() -> None:
    for method in VectorSum.methods:
        plan = VectorSum.plan(users=2000, privacy=PRIVACY, **BALL, method=method)
        left = [plan.epsilon_with(fraction) for fraction in (1, 0.9, 0.5, 1 / 3)]
        assert left == sorted(left) and left[0] <= 1
        assert all(epsilon < 1 / fraction for epsilon, fraction in zip(left[1:], (0.9, 0.5, 1 / 3), strict=True))
        claimed = [row.paper_epsilon for row in plan.collusions() if row.paper_epsilon is not None]
        # The paper's claim is about its binomial noise.
        assert claimed == (pytest.approx([1 / 0.9, 2, 3]) if method == "bits" else [])


def test_a_robust_plan_meets_epsilon_at_its_fraction() -> None:
    for method in VectorSum.methods:
        plan = VectorSum.plan(users=300, privacy=PRIVACY, **BALL, method=method, honest_fraction=1 / 3)
        assert plan.epsilon_with(1 / 3) <= 1 and plan.standard_error < 1.13 * math.sqrt(3) * 8.45


def test_rounding_that_may_fail_is_a_term_of_delta() -> None:
    """With many coordinates neighbours are nearly never as far apart as they can be: nearly is a term."""
    plan = VectorSum.plan(users=1000, privacy=PRIVACY, dimension=100, radius=1, method="shares")
    [failure] = [term.value for term in plan.guarantee().terms if term.name == "rounding"]
    assert failure == plan.rounded_difference.failure > 0


def test_deltas_add_up() -> None:
    plan = VectorSum.plan(users=1000, privacy=PRIVACY, **BALL, method="shares")
    terms = {term.name: term.value for term in plan.guarantee().terms}
    assert set(terms) == {"noise", "cut-off", "rounding", "transport", "wrap-around", "sampling"}
    assert sum(terms.values()) == pytest.approx(plan.guarantee().delta) and 0.9e-6 < sum(terms.values()) <= 1e-6
    assert terms["cut-off"] == pytest.approx(1e-9) and 0 < terms["transport"] < 0.03e-6


@pytest.mark.parametrize("method", VectorSum.methods)
def test_streaming_by_coordinates_has_the_law_of_one_shuffle(method: str, monkeypatch) -> None:
    plan = VectorSum.plan(users=20, privacy=Privacy(4, 1e-3), dimension=3, radius=1, method=method)
    values = Vectors(3, 1.0, 1).synthesize(20, np.random.default_rng(1))
    together = [simulate(plan, values, bits=bits) for bits in RandomBits.seeded(1).spawn(1500)]
    monkeypatch.setattr(runner, "_MESSAGES_AT_A_TIME", 1)
    apart = [simulate(plan, values, bits=bits) for bits in RandomBits.seeded(2).spawn(1500)]
    for coordinate in range(3):
        assert_same_law([e.value[coordinate] for e in together], [e.value[coordinate] for e in apart])
    assert apart[0].bound == together[0].bound


def test_rotation_keeps_lengths_and_turns_back() -> None:
    vectors = Vectors(13, 2.0, 1).synthesize(50, np.random.default_rng(1))
    turned = rotate(vectors, 7)
    assert turned.shape == (50, 16)
    np.testing.assert_allclose(np.linalg.norm(turned, axis=1), np.linalg.norm(vectors, axis=1))
    np.testing.assert_allclose(rotate_back(turned, 7)[:, :13], vectors, atol=1e-12)
    spike = np.zeros((1, 1024))
    spike[0, 3] = 1
    assert np.abs(rotate(spike, 1)).max() == pytest.approx(1 / 32) and likely_range(1, 1024, 1e-6) < 0.21


def test_rotation_saves_messages_by_bits_where_there_are_many_coordinates() -> None:
    asked = {"users": 20_000, "privacy": PRIVACY, "dimension": 1000, "radius": 1, "method": "bits"}
    plain, turned = VectorSum.plan(**asked), VectorSum.plan(**asked, rotation=1)
    assert turned.messages_per_user_max < 0.8 * plain.messages_per_user_max
    assert turned.standard_error <= 1.1 * 8.45


@pytest.mark.parametrize("method", VectorSum.methods)
def test_rotated_plans_are_as_accurate_as_they_say(method: str) -> None:
    plan = VectorSum.plan(users=40, privacy=Privacy(4, 1e-3), dimension=5, radius=1, method=method, rotation=3)
    assert plan.coordinates == 8
    values = Vectors(5, 1.0, 1).synthesize(40, np.random.default_rng(2))
    for fast in (False, True):
        errors = np.array(
            [
                simulate(plan, values, bits=b, fast=fast).value - values.sum(axis=0)
                for b in RandomBits.seeded(4).spawn(800)
            ]
        )
        assert (np.abs(errors) <= plan.error_bound).all(axis=1).mean() > 0.95
        spread = errors.std() / plan.standard_error
        assert 0.9 < spread < 1.03, spread  # rounding is less than its worst


def test_noise_has_the_deviation_that_is_claimed_in_many_dimensions() -> None:
    plan = VectorSum.plan(users=50, privacy=PRIVACY, dimension=400, radius=1, method="shares")
    values = np.zeros((50, 400))
    errors = np.concatenate([plan.sample_estimate(values, bits=b).value for b in RandomBits.seeded(5).spawn(20)])
    assert_deviation(errors, plan.step * plan.noise_law.standard_deviation)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_symmetric_matrices_are_packed_with_their_length(size: int) -> None:
    raw = np.random.default_rng(1).normal(size=(6, size, size))
    matrices = raw + raw.transpose(0, 2, 1)
    packed = pack_symmetric(matrices)
    assert packed.shape == (6, packed_dimension(size))
    np.testing.assert_allclose(np.linalg.norm(packed, axis=1), np.linalg.norm(matrices, axis=(1, 2)))
    np.testing.assert_allclose(unpack_symmetric(packed), matrices)
    if size > 1:
        with pytest.raises(ParameterError, match="symmetric"):
            pack_symmetric(raw)


@pytest.mark.parametrize("change", ["lost", "altered", "label", "swapped"])
def test_a_bad_share_voids_the_batch(change: str) -> None:
    plan = VectorSum.plan(users=20, privacy=PRIVACY, dimension=3, radius=1, method="shares")
    reports = plan.randomize(np.zeros((20, 3)), bits=RandomBits.seeded(1))
    payloads, labels = reports.payloads.copy(), reports.labels.copy()
    if change == "altered":
        payloads[5] ^= np.uint64(1 << 40)
    if change == "label":
        labels[0] = 3 - 1
    if change == "swapped":
        labels[0], labels[-1] = labels[-1], labels[0]
    if change == "lost":
        payloads, labels = payloads[1:], labels[1:]
    with pytest.raises(BrokenBatchError, match="void"):
        plan.analyze(Batch(payloads, 20, labels))


def test_lost_or_malformed_bits_widen_the_bound() -> None:
    plan = VectorSum.plan(users=20, privacy=PRIVACY, dimension=3, radius=1, method="bits")
    reports = plan.randomize(np.zeros((20, 3)), bits=RandomBits.seeded(1))
    payloads, labels = reports.payloads.copy(), reports.labels.copy()
    whole = plan.analyze(Batch(payloads, 20, labels))
    payloads[0], labels[1] = 7, 200
    spoiled = plan.analyze(Batch(payloads[:-1], 20, labels[:-1]))
    assert spoiled.dropped == 3 and spoiled.bound == pytest.approx(whole.bound + 3 * plan.step)
    with pytest.raises(BrokenBatchError, match="more than the plan"):
        plan.analyze(Batch(np.repeat(payloads, 2), 20, np.repeat(labels, 2)))


def test_bad_vectors_are_named() -> None:
    plan = VectorSum.plan(users=3, privacy=PRIVACY, dimension=2, radius=1)
    good = np.zeros((3, 2))
    for row, column, value, message in (
        (1, 0, 1.5, "length 1.5 in row 2"),
        (2, 1, np.nan, "nan in row 3, column 2"),
        (0, 1, np.inf, "inf in row 1, column 2"),
        (0, 1, 1e200, "length inf in row 1|1e\\+200"),
    ):
        bad = good.copy()
        bad[row, column] = value
        for call in (plan.check_values, lambda x: plan.sample_estimate(x, bits=RandomBits.seeded(1))):
            with pytest.raises(ParameterError, match=message):
                call(bad)
    with pytest.raises(ParameterError, match="2 columns"):
        plan.check_values(np.zeros((3, 5)))


def test_clipping_is_counted_and_keeps_directions() -> None:
    plan = VectorSum.plan(users=3, privacy=PRIVACY, dimension=2, radius=1)
    values = np.array([[3.0, 4.0], [0.1, 0.2], [-6e200, 8e200]])
    clipped, count = plan.clip_values(values)
    assert count == 2
    np.testing.assert_allclose(clipped, [[0.6, 0.8], [0.1, 0.2], [-0.6, 0.8]], rtol=1e-8)
    plan.check_values(clipped)
    assert simulate(plan, values[:, :], bits=RandomBits.seeded(1), clip=True, fast=True).clipped == 2
    with pytest.raises(ParameterError, match="nan in row 1"):
        plan.clip_values(np.array([[np.nan, 0.0], [0.0, 0.0], [0.0, 0.0]]))


def test_vectors_on_the_sphere_are_not_refused_for_floats() -> None:
    vectors = np.random.default_rng(1).normal(size=(5000, 7))
    vectors /= np.linalg.norm(vectors, axis=1)[:, np.newaxis]
    for method in VectorSum.methods:
        plan = VectorSum.plan(users=5000, privacy=Privacy(8, 1e-3), dimension=7, radius=1, method=method)
        plan.sample_estimate(vectors, bits=RandomBits.seeded(1))


@pytest.mark.parametrize(
    ("change", "parameter"),
    [
        ({"dimension": 0}, "dimension"),
        ({"dimension": 2.5}, "dimension"),
        ({"dimension": None}, "dimension"),
        ({"radius": 0}, "radius"),
        ({"radius": float("nan")}, "radius"),
        ({"rotation": -1}, "rotation"),
        ({"method": "gaussian"}, "method"),
        ({"users": 2, "privacy": Privacy(1, 1e-30), "method": "shares"}, "delta"),
        ({"constants": "paper", "rotation": 1, "method": "bits"}, "constants"),
        ({"max_messages": 3, "method": "bits"}, "max_messages"),
    ],
)
def test_bad_parameters_are_named(change, parameter: str) -> None:
    with pytest.raises(ParameterError) as refused:
        VectorSum.plan(**({"users": 100, "privacy": PRIVACY, **BALL} | change))
    assert refused.value.parameter == parameter, str(refused.value)


# Every crowd at a common epsilon and at an extreme one, every epsilon for some crowd: the others are a sweep.
CROWDS = [
    *((1, 1e-4), (1, 1), (1, 30), (2, 1), (2, 30), (10**6, 0.1), (10**6, 1), (10**6, 30)),
    *((10**12, 1e-4), (10**12, 1), (10**12, 30)),
]
SWEPT = [(1, 0.1), (2, 1e-4), (2, 0.1), (10**6, 1e-4), (10**12, 0.1)]


@pytest.mark.parametrize(
    ("users", "epsilon"), [*CROWDS, *(pytest.param(*case, marks=pytest.mark.sweep) for case in SWEPT)]
)
def test_shares_can_be_planned_for_any_crowd(users: int, epsilon: float) -> None:
    plan = VectorSum.plan(users=users, privacy=Privacy(epsilon, 1e-6), dimension=3, radius=1, method="shares")
    assert plan.guarantee().holds and plan.modulus_bits <= 64
    with pytest.raises(ParameterError, match="64 bits"):
        dataclasses.replace(plan, modulus_bits=8)
    with pytest.raises(ParameterError, match="64 bits"):
        dataclasses.replace(plan, modulus_bits=65)


def test_a_client_that_labels_all_its_messages_alike_moves_what_is_said() -> None:
    """A fault of 0.1.0, which said that a liar has only its messages about a coordinate to move it by."""
    plan = VectorSum.plan(users=20, privacy=Privacy(4, 1e-3), dimension=3, radius=1, method="bits")
    reports = plan.randomize(np.zeros((20, 3)), bits=RandomBits.seeded(1))
    honest = plan.analyze(Batch(reports.payloads, 20, reports.labels)).value
    payloads, labels = reports.payloads.copy(), reports.labels.copy()
    mine = slice(0, plan.messages_per_user_max)
    payloads[mine], labels[mine] = 1, 0
    moved = plan.analyze(Batch(payloads, 20, labels)).value - honest
    assert plan.step * plan.batch.each < moved[0] <= plan.influence
