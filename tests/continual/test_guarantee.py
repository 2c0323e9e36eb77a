"""Every term of a running sum's delta, by itself: most are far below any delta, and a slip would change no figure."""

import json
import math
from dataclasses import replace
from fractions import Fraction

import pytest

from shuffledp.accounting.composition import Composition
from shuffledp.accounting.dropouts import honest_users
from shuffledp.accounting.guarantee import delta_of_distance
from shuffledp.accounting.mixing import distance_together
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.continual.batches import batch_mechanism
from shuffledp.continual.counter import Counter
from shuffledp.continual.doubling import UnboundedCounter
from shuffledp.continual.noise import TRANSPORT_PART, calibrate
from shuffledp.continual.plan import CounterPlan
from shuffledp.continual.views import ROUNDING_PART, WINDOW_PART, UserView
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.catalogue import plan_from_document
from shuffledp.protocols.domains.summed import BITS, Reals, SummedDomain, Vectors
from shuffledp.protocols.sums.noise import CoinNoise, LaplaceNoise

PRIVACY = Privacy(1, 1e-6)


def values_of(terms) -> dict[str, float]:
    return {term.name: term.value for term in terms}


@pytest.mark.parametrize(("batches", "dimension"), [(1, 80), (4, 150)])
def test_rounding_and_windows_are_terms_of_vectors(batches: int, dimension: int) -> None:
    domain = Vectors(dimension, 1.0, 40)
    view = UserView.of(domain, batches, PRIVACY)
    noise = view.calibrate("skellam", PRIVACY)
    terms = values_of(view.delta_terms(noise, 1.0))
    assert terms["rounding"] == domain.difference(ROUNDING_PART * PRIVACY.delta).failure > 0
    assert terms["cut-off"] == pytest.approx(WINDOW_PART * PRIVACY.delta, rel=1e-9, abs=0)
    # What all batches show is the composition of what one shows.
    composed = Composition([(view.pair(noise), batches)])
    assert terms["noise"] == pytest.approx(composed.delta(1.0), rel=1e-2, abs=0)


@pytest.mark.parametrize("noise", ["laplace", "skellam"])
def test_shares_of_all_batches_and_tables_of_all_users_are_terms(noise: str) -> None:
    plan = CounterPlan.plan(users=3000, shufflers=3, privacy=PRIVACY, noise=noise, estimator="completed")
    used, factor = plan.shufflers_used, math.exp(PRIVACY.epsilon)
    assert used > 1
    terms = values_of(plan.guarantee().terms)
    shown = distance_together([plan.distance_per_batch] * used)
    assert terms["transport"] == pytest.approx(delta_of_distance(factor, shown), rel=1e-8, abs=0)
    # Where noise takes no delta, the shares have all of it.
    part = 1.0 if noise == "laplace" else TRANSPORT_PART
    assert (terms["noise"] == 0) == (noise == "laplace")
    assert 0.999 * part * PRIVACY.delta < terms["transport"] + terms["sampling"] <= part * PRIVACY.delta
    assert plan.guarantee().holds
    # Every batch shows at most its part, and every user of a user's smallest batches draws from tables.
    assert all(plan.mechanism(size).distance_with(size) <= plan.distance_per_batch for size in plan.all_sizes)
    part = Fraction(1, plan.slot_users)
    rounded = plan.batch_noise.draws(part) * plan.slot_users * used * plan.batch_noise.table_distance(part)
    assert terms["sampling"] >= delta_of_distance(factor, rounded) > 0


def test_fewer_honest_users_mix_the_shares_of_the_worst_batch_of_each_level() -> None:
    plan = CounterPlan.plan(users=3000, shufflers=3, privacy=PRIVACY, noise="laplace", estimator="completed")
    for honest in (plan.users * 9 // 10, plan.users * 7 // 10):
        fraction = honest / plan.users
        worst = []
        for sizes in plan.batch_sizes.values():
            shown = [plan.mechanism(size).distance_with(math.floor(fraction * size + 1e-9)) for size in sizes]
            assert len(sizes) == 1 or max(shown) > min(shown)
            worst.append(max(shown))
        terms = values_of(plan.delta_terms(1.0, honest))
        together = distance_together(worst)
        assert terms["transport"] == pytest.approx(delta_of_distance(math.e, together), rel=1e-6, abs=0)
        assert together > max(worst) > 0


@pytest.mark.parametrize(
    "asked", [{"noise": "laplace"}, {"noise": "skellam"}, {"noise": "skellam", "domain": Vectors(3, 1.0, 20)}], ids=str
)
def test_plans_that_add_distances_up_stay_as_they_were_and_send_more(asked: dict) -> None:
    plan = CounterPlan.plan(users=3000, shufflers=3, privacy=PRIVACY, estimator="completed", **asked)
    before = replace(plan, mixed_together=False)
    assert plan.mixed_together and plan.document()["mixed_together"] is True
    assert "mixed_together" not in before.document() and before.fingerprint != plan.fingerprint
    for each in (plan, before):
        assert plan_from_document(json.loads(json.dumps(each.document()))) == each
    # Version 0.1.0: a tenth of delta for shares, a part of it for every batch, and a part of that for every coordinate.
    tenth = TRANSPORT_PART * PRIVACY.delta
    parts = plan.shufflers_used * plan.domain.coordinates
    each = before.distance_per_batch / plan.domain.coordinates
    assert 0.999 * tenth < delta_of_distance(math.e, parts * each) <= tenth
    assert before.guarantee().holds and before.error_bound == plan.error_bound
    assert plan.messages_per_user_max <= before.messages_per_user_max
    if asked != {"noise": "skellam"}:  # Two batches of bits save the root of 2, which is less than a share.
        assert plan.messages_per_user_mean < before.messages_per_user_mean
    with pytest.raises(ParameterError, match="mixed_together"):
        replace(plan, mixed_together=1)


def test_coins_have_nothing_to_mix() -> None:
    plan = CounterPlan.plan(users=3000, shufflers=3, privacy=PRIVACY, noise="coins")
    assert not plan.mixed_together and values_of(plan.guarantee().terms)["transport"] == 0


def test_a_batch_that_cannot_mix_is_not_opened() -> None:
    with pytest.raises(InfeasibleError):
        batch_mechanism(2, 1.0, LaplaceNoise(0.5), 1e-100)


@pytest.mark.parametrize(
    ("domain", "expected"),
    [(BITS, 50), (Reals(4), 200), (Vectors(2, 1.0, 3), [0, 0])],
    ids=["bits", "reals", "vectors"],
)
def test_a_void_batch_counts_as_its_middle(domain: SummedDomain, expected) -> None:
    plan = CounterPlan.plan(users=3000, shufflers=2, privacy=Privacy(8, 1e-3), noise="skellam", domain=domain)
    counter = Counter(plan)
    mechanism = batch_mechanism(100, 1.0, plan.batch_noise, 1e-3, domain)
    told = counter.stand_in(mechanism)
    assert counter.told_document(told) == expected
    # Whatever its users had, the truth is no further from that than the estimates are widened by.
    widest = counter.widening(mechanism, 0, True)
    assert widest == pytest.approx(100 * domain.reach + domain.step / 2)
    assert counter.widening(mechanism, 3, False) == pytest.approx(3 * domain.step)


def test_an_unknown_horizon_pays_for_the_epochs_own_batch() -> None:
    counter = UnboundedCounter.plan(first_users=2000, shufflers=4, privacy=PRIVACY)
    used = counter.shufflers_used
    law = calibrate("laplace", used, PRIVACY).law()
    for epsilon in (0.5, 0.8):
        noise = values_of(counter.delta_terms(epsilon))["noise"]
        assert (
            noise == pytest.approx(Composition([(ShiftPair(law), used)]).delta(epsilon), rel=1e-2, abs=0) and noise > 0
        )


def test_coins_are_dealt_so_that_whoever_is_honest_tosses_enough() -> None:
    for users, honest in ((10, 7), (1001, 900), (40, 40), (7, 2)):
        noise = CoinNoise(24)
        assert noise.left(users, honest, honest) >= 1
        assert noise.surplus(users, honest) == Fraction(noise.dealt(users, honest), 24) >= 1


@pytest.mark.parametrize("noise", ["laplace", "skellam", "coins"])
def test_the_honest_users_of_every_batch_add_the_whole_noise(noise: str) -> None:
    plan = CounterPlan.plan(users=3000, shufflers=3, privacy=Privacy(2, 1e-3), noise=noise, honest_fraction=0.7)
    needed = plan.batch_noise.law().variance
    for size in plan.all_sizes:
        mechanism = plan.mechanism(size)
        assert mechanism.law(honest_users(size, 0.7)).variance >= needed * (1 - 1e-9)
        # Less than that many leave less: nobody's noise is counted twice.
        assert mechanism.law(max(1, honest_users(size, 0.3))).variance < mechanism.law(size).variance
