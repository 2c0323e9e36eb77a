"""Everything that an accountant leaves out, cuts off or rounds is a term of delta: made large here, so that it is seen.

In plans these terms are far below any delta that is asked for. A slip in one of them would therefore change no figure,
and would still be a hole in the proof.
"""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from shuffledp.accounting import amplification, composition, mixing, pairs, products, split_coins
from shuffledp.accounting.amplification import clones, closed_form_2023, stronger_clones
from shuffledp.accounting.anonymous_sum import AnonymousSumPair
from shuffledp.accounting.composition import Composition, PrivacyLoss
from shuffledp.accounting.correlated import CorrelatedPair
from shuffledp.accounting.curves import epsilon_at
from shuffledp.accounting.differences import PolyaDifference
from shuffledp.accounting.guarantee import DeltaTerm, Guarantee
from shuffledp.accounting.laws import Binomial, Poisson
from shuffledp.accounting.mixing import mixing_distance, robust_messages, smallest_messages
from shuffledp.accounting.normal_scores import normal_scores
from shuffledp.accounting.pairs import Atoms, DominatingPair, FinitePair, ShiftPair
from shuffledp.accounting.products import FewerAtomsPair, ProductPair
from shuffledp.accounting.split_coins import BallsPair, SplitCoinsPair
from shuffledp.accounting.two_bins import ReversedPair, TwoBinsPair
from shuffledp.accounting.worst_case import ClaimPair, EitherOrder
from shuffledp.privacy import Privacy

P, Q = np.array([0.5, 0.3, 0.15]), np.array([0.3, 0.4, 0.27])
# A twentieth of P and a thirty-third of Q are left out.
P_OUTSIDE, Q_OUTSIDE = 0.05, 0.03
EPSILONS = (0.0, 0.4, 1.0, 3.0)


@dataclass(frozen=True, eq=False)
class Made(DominatingPair):
    """Three outcomes, and what is said to lie outside of them, or to be wrong in all."""

    p_outside: float = P_OUTSIDE
    q_outside: float = Q_OUTSIDE
    absolute_error: float = 0.0

    def atoms(self) -> Atoms:
        return Atoms(np.log(P), np.log(Q), self.p_outside, self.q_outside, self.absolute_error)

    def describe(self) -> str:
        return "made up"


# What lies outside of either is an outcome that the other never has.
WHOLE = FinitePair([*P, P_OUTSIDE, 0.0], [*Q, 0.0, Q_OUTSIDE])


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_what_is_outside_and_what_is_wrong_reaches_the_curve(epsilon: float) -> None:
    pair = Made()
    assert pair.forward(epsilon) == pytest.approx(WHOLE.forward(epsilon), rel=1e-8)
    assert pair.reverse(epsilon) == pytest.approx(WHOLE.reverse(epsilon), rel=1e-8)
    wrong = Made(absolute_error=1e-3)
    more = (1 + math.exp(epsilon)) * 1e-3
    assert wrong.forward(epsilon) == pytest.approx(pair.forward(epsilon) + more, rel=1e-9)
    assert wrong.reverse(epsilon) == pytest.approx(pair.reverse(epsilon) + more, rel=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("times", [1, 3])
def test_and_compositions(epsilon: float, times: int) -> None:
    made, whole = Composition([(Made(), times)]), Composition([(WHOLE, times)])
    assert made.delta(epsilon) == pytest.approx(whole.delta(epsilon), rel=1e-6)
    assert made.delta(epsilon) >= 1 - (1 - P_OUTSIDE) ** times
    more = times * (1 + math.exp(epsilon)) * 1e-4
    wrong = Composition([(Made(absolute_error=1e-4), times)])
    assert wrong.delta(epsilon) == pytest.approx(min(1.0, made.delta(epsilon) + more), rel=1e-6)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_and_two_bins_and_either_order(epsilon: float) -> None:
    two, whole = TwoBinsPair(Made()), TwoBinsPair(WHOLE)
    assert two.delta(epsilon) >= whole.delta(epsilon) * (1 - 1e-9)
    assert two.delta(epsilon) >= max(P_OUTSIDE, Q_OUTSIDE)
    wrong = TwoBinsPair(Made(absolute_error=1e-3))
    assert wrong.delta(epsilon) >= min(1.0, two.delta(epsilon) + 2e-3)
    either = EitherOrder(Made()).atoms()
    assert min(either.p_outside, either.q_outside) >= max(P_OUTSIDE, Q_OUTSIDE)
    assert either.hockey_stick(epsilon) >= WHOLE.delta(epsilon) * (1 - 1e-9)


def test_two_bins_several_times_over() -> None:
    pair = ShiftPair(Binomial(40, 0.3))
    three = Composition([(pair, 3), (ReversedPair(pair), 3)])
    for epsilon in (0.5, 1.5):
        assert TwoBinsPair(pair, 3).delta(epsilon) == pytest.approx(three.delta(epsilon), rel=1e-9)
        assert TwoBinsPair(pair, 3).delta(epsilon) > 1.5 * TwoBinsPair(pair).delta(epsilon)


def test_a_shifts_atoms_count_what_their_window_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = [ShiftPair(Poisson(30.0)).delta(epsilon) for epsilon in EPSILONS]
    monkeypatch.setattr(pairs, "WINDOW_TAIL", 1e-3)
    pair = ShiftPair(Poisson(30.0))
    atoms = pair.atoms()
    assert float(np.exp(atoms.log_p).sum()) < 1 - 1e-5
    assert float(np.exp(atoms.log_p).sum()) + atoms.p_outside >= 1 - 1e-12
    for epsilon, delta in zip(EPSILONS, exact, strict=True):
        assert max(atoms.hockey_stick(epsilon), atoms.reversed().hockey_stick(epsilon)) >= delta * (1 - 1e-9)
        assert pair.delta(epsilon) >= delta * (1 - 1e-9)


def test_outcomes_that_are_dropped_from_a_grid_count_as_ruin(monkeypatch: pytest.MonkeyPatch) -> None:
    atoms = ShiftPair(Binomial(60, 0.5)).atoms()
    for unlikely in (1e-28, 1e-3):
        monkeypatch.setattr(composition, "_UNLIKELY", unlikely)
        loss = PrivacyLoss.from_atoms(atoms, 1e-3)
        assert float(loss.masses.sum()) + loss.infinite == pytest.approx(1.0, abs=1e-12)
    assert 1e-5 < loss.infinite < 1e-3


def test_what_a_transform_loses_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = ShiftPair(Binomial(300, 0.5))
    before = Composition([(pair, 4)]).delta(1.0)
    monkeypatch.setattr(composition, "_FFT_ERROR", 1e-3)
    assert Composition([(pair, 4)]).delta(1.0) > 1.001 * before


def test_a_composed_epsilon_holds_in_both_directions() -> None:
    """Poisson noise is far from symmetric: one direction's epsilon is not the other's."""
    pair = ShiftPair(Poisson(20.0))
    for turned in (pair, ReversedPair(pair)):
        composed = Composition([(turned, 3)], grid=2e-3)
        for delta in (1e-2, 1e-5):
            assert composed.delta(composed.epsilon(delta)) <= delta * (1 + 1e-6)


def test_masses_made_by_a_transform_are_not_exact() -> None:
    law = PolyaDifference(1.0, math.exp(-0.001))
    assert not law.is_log_concave and law.numerical_error >= 1e-12
    assert ShiftPair(law).atoms().absolute_error == law.numerical_error
    assert PolyaDifference(1.0, 0.5).numerical_error == 0


def test_few_honest_shares_are_not_as_pure_as_all() -> None:
    """Between the epsilon of all users and that of the few there is a delta."""
    law = PolyaDifference(0.4, math.exp(-0.6))
    steepest = -law.log_ratio(1)
    assert not law.is_log_concave and steepest > 0.65
    assert ShiftPair(law).delta((0.6 + steepest) / 2) > 1e-3
    assert ShiftPair(law).delta(steepest + 1e-6) == 0


@pytest.mark.parametrize("make", [clones, stronger_clones])
def test_numbers_of_clones_that_are_not_looked_at_count_as_ruin(make, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = make(2.0, 300)
    deltas = [exact.delta(epsilon) for epsilon in (0.0, 0.3, 0.8)]
    monkeypatch.setattr(amplification, "_RARE_COUNT", 5e-3)
    rough = make(2.0, 300)
    _, weights, outside = rough._clones
    assert 1e-3 < outside < 0.5 and float(weights.sum()) + outside == pytest.approx(1.0, abs=1e-9)
    atoms = rough.atoms()
    assert atoms.p_outside >= outside and atoms.q_outside >= outside
    for epsilon, delta in zip((0.0, 0.3, 0.8), deltas, strict=True):
        assert rough.delta(epsilon) >= max(outside, delta * (1 - 1e-9))
        assert atoms.hockey_stick(epsilon) >= max(outside, delta * (1 - 1e-9))


@pytest.mark.parametrize(("local_epsilon", "users"), [(1.0, 10_000), (3.0, 10_000), (2.0, 100_000)])
def test_the_formula_of_2023_term_by_term(local_epsilon: float, users: int) -> None:
    """Theorem 3.2: e^eps - 1 = (e^eps0 - 1) (4 sqrt(2 ln(4/delta) / ((e^eps0 + 1) n)) + 4/n)."""
    e, delta = math.exp(local_epsilon), 1e-6
    excess = (e - 1) * (4 * math.sqrt(2 * math.log(4 / delta) / ((e + 1) * users)) + 4 / users)
    formula = closed_form_2023(local_epsilon, users)
    assert formula.epsilon(delta) == pytest.approx(math.log1p(excess), rel=1e-8)
    assert formula.delta(formula.epsilon(delta)) == pytest.approx(delta, rel=1e-6)
    assert formula.smallest_delta == pytest.approx(2 * math.exp(-users / (8 * (e + 1))), rel=1e-12)


# --- sums, products and groups ------------------------------------------------------------------


def test_the_worst_bits_of_the_others_count() -> None:
    """Noise that is not symmetric: the worst is that all the others have a one."""
    pair = AnonymousSumPair(6, 0.7, (0.15, 0.04, 0.76, 0.05))
    each = [pair.pure_epsilon_for(ones) for ones in range(6)]
    assert pair.pure_epsilon == max(each) == each[5] > 2 * each[0]


def test_a_plane_of_correlated_noise_allows_for_rounding() -> None:
    atoms = CorrelatedPair(math.exp(-0.9), 2, math.exp(-0.9), 0.7).atoms()
    for masses, outside in ((atoms.log_p, atoms.p_outside), (atoms.log_q, atoms.q_outside)):
        assert outside >= 1e-13 and float(np.exp(masses).sum()) + outside >= 1


@pytest.mark.parametrize("balls", [BallsPair(427_000, 1e-3), BallsPair(3000, 0.5), BallsPair(5000, 0.01)])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.3])
def test_fewer_atoms_are_no_harder_to_tell_apart(balls: BallsPair, epsilon: float) -> None:
    assert FewerAtomsPair(balls).delta(epsilon) >= balls.delta(epsilon) * (1 - 1e-9)


def test_products_count_every_factor() -> None:
    one, other = BallsPair(20_000, 2e-3), BallsPair(30_000, 2e-3)
    assert ProductPair((one, one)).delta(0.5) == pytest.approx(Composition([(one, 2)]).delta(0.5), rel=0.05)
    assert ProductPair((one, other)).delta(0.5) > 1.2 * max(one.delta(0.5), other.delta(0.5))
    assert ProductPair((one, one, other)).delta(0.5) > 1.2 * ProductPair((one, other)).delta(0.5)


def test_what_windows_of_coins_leave_out_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    products._fair_coins.cache_clear()
    for module in (products, split_coins):
        monkeypatch.setattr(module, "WINDOW_TAIL", 1e-3)
    for pair in (BallsPair(20_000, 2e-3), SplitCoinsPair(80.0)):
        _, weights, outside = pair._totals
        assert outside > 1e-6 and float(weights.sum()) + outside == pytest.approx(1.0, abs=1e-12)
        assert pair.delta(8.0) >= outside
    few = FewerAtomsPair(BallsPair(20_000, 2e-3)).atoms()
    assert float(np.exp(few.log_p).sum()) + few.p_outside >= 1 - 1e-12 and few.p_outside > 1e-6
    only = FewerAtomsPair(BallsPair(3000, 0.5)).atoms()
    assert float(np.exp(only.log_p).sum()) + only.p_outside >= 1 - 1e-12 and only.p_outside > 1e-6
    products._fair_coins.cache_clear()


def test_numbers_of_coins_taken_together_count_as_their_smallest(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = [BallsPair(20_000, 2e-3).delta(epsilon) for epsilon in EPSILONS]
    monkeypatch.setattr(split_coins, "_MOST_TOTALS", 16)
    for epsilon, delta in zip(EPSILONS, exact, strict=True):
        assert BallsPair(20_000, 2e-3).delta(epsilon) >= delta * (1 - 1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.6, 0.9, 1.0, 1.2])
def test_a_bare_claims_curve_is_that_of_its_atoms(epsilon: float) -> None:
    pair = ClaimPair(Privacy(1.0, 1e-3))
    assert pair.delta(epsilon) == pytest.approx(pair.atoms().hockey_stick(epsilon), rel=1e-6)


def test_scores_say_what_their_window_leaves_out() -> None:
    for outside in (1e-4, 1e-9):
        assert normal_scores(Binomial(4000, 0.5), 3, outside).outside == outside


# --- split and mix ------------------------------------------------------------------------------


@pytest.mark.parametrize(("shares", "modulus"), [(5, 2**20), (9, 2**40)])
def test_the_bound_beyond_the_recursion_is_above_it(shares: int, modulus: int) -> None:
    known = mixing._recursion(256, shares, modulus)
    exact = mixing._recursion(900, shares, modulus).log_excess
    for users in (257, 300, 500, 900):
        # Just beyond it terms are counted from both ends: twice the sum, at most.
        assert exact[users] - 1e-9 <= mixing._beyond(users, known, shares, modulus) <= exact[users] + math.log(2.1)


@pytest.mark.parametrize("users", [30, 100, 600, 1000, 3000, 10_000])
@pytest.mark.parametrize("distance", [1e-6, 3e-7, 1e-8])
def test_robust_messages_keep_the_distance_if_a_third_is_honest(users: int, distance: float) -> None:
    """A quarter of it, as epsilon grows, too; with two more messages at most, or not at all."""
    modulus = 2**50
    fewest, messages = smallest_messages(users, modulus, distance), robust_messages(users, modulus, distance)
    enough = [m for m in range(fewest, fewest + 3) if mixing_distance(users // 3, m, modulus) <= distance / 4]
    assert messages == (enough[0] if enough else fewest)


# --- guarantees ---------------------------------------------------------------------------------


def test_a_guarantee_is_the_sum_of_all_its_terms() -> None:
    def guarantee(*values: float) -> Guarantee:
        terms = tuple(DeltaTerm(f"term {value}", value, "made up") for value in values)
        return Guarantee(
            claim=Privacy(1.0, 1e-6), pair=Made(), theory_page="none", dominates_because="it is made up", terms=terms
        )

    assert guarantee(5e-7, 3e-7, 1e-7).delta == pytest.approx(9e-7) and guarantee(5e-7, 3e-7, 1e-7).holds
    assert not guarantee(5e-7, 3e-7, 3e-7).holds and not guarantee(3e-7, 5e-7, 3e-7).holds
    assert not guarantee(1.01e-6).holds and guarantee(1e-6).holds


def test_a_curve_that_no_epsilon_brings_down_has_none() -> None:
    assert epsilon_at(Made(), P_OUTSIDE / 2) == math.inf
    assert epsilon_at(Made(), 0.2) < 10
