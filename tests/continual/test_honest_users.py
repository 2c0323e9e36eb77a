"""An honest fraction is a fraction of users: any of them, so many, leave enough coins."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest

from shuffledp.accounting.dropouts import honest_users
from shuffledp.continual.batches import batch_mechanism
from shuffledp.continual.plan import CounterPlan
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.domains.summed import BITS, OneHot, Reals, SummedDomain
from shuffledp.protocols.sums.noise import CoinNoise
from shuffledp.randomness import RandomBits

EASY = Privacy(2, 1e-2)


@dataclass(frozen=True)
class CoinsOfTheBatch(CoinNoise):
    """The wrong twin: the fraction is one of the coins, so that a few seats hold all noise."""

    def dealt(self, users: int, honest: int) -> int:
        return 2 * math.ceil(self.coins * users / honest / 2)


def coins_of_every_seat(noise: CoinNoise, users: int, fraction: float) -> list[int]:
    """As the devices send them: what is in a report beside the user's own bit."""
    mechanism = batch_mechanism(users, fraction, noise, 0.0)
    reports = mechanism.randomize(np.zeros(users, dtype=np.uint8), 0, bits=RandomBits.seeded(1))
    return [int(size) - 1 for size in reports.sizes]


def fewest(coins: list[int], honest: int) -> int:
    """Of any so many users, by trying all of them."""
    return min(sum(kept) for kept in itertools.combinations(coins, honest))


@pytest.mark.parametrize("fraction", [0.3, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("users", [2, 3, 5, 8, 13])
@pytest.mark.parametrize("needed", [2, 6, 10, 40])
def test_whoever_is_dishonest_enough_coins_are_left(users: int, needed: int, fraction: float) -> None:
    noise, honest = CoinNoise(needed), honest_users(users, fraction)
    coins = coins_of_every_seat(noise, users, fraction)
    assert fewest(coins, honest) >= needed and sum(coins) % 2 == 0
    # The law of everybody's noise, and of what fewer users leave, is that of the coins which are sent.
    assert noise.surplus(users, honest) * needed == sum(coins)
    for fewer in range(1, users + 1):
        assert noise.left(users, honest, fewer) * needed == fewest(coins, fewer)


def test_the_wrong_twin_leaves_too_few() -> None:
    assert fewest(coins_of_every_seat(CoinsOfTheBatch(2), 13, 0.5), 6) == 0
    assert fewest(coins_of_every_seat(CoinNoise(2), 13, 0.5), 6) >= 2


def hockey_stick(coins: int, epsilon: float) -> float:
    """Of a count with so many fair coins and one more or less in it, term by term."""
    masses = [math.comb(coins, k) / 2**coins for k in range(coins + 1)]
    zero, one = [*masses, 0.0], [0.0, *masses]
    return sum(max(0.0, p - math.exp(epsilon) * q) for p, q in zip(zero, one, strict=True))


@pytest.mark.parametrize("fraction", [0.4, 0.7])
def test_the_worst_dishonest_users_of_a_small_plan_learn_no_more_than_it_says(fraction: float) -> None:
    plan = CounterPlan.plan(users=60, shufflers=1, privacy=EASY, noise="coins", honest_fraction=fraction)
    size = plan.slot_users
    coins = sorted(coins_of_every_seat(plan.batch_noise, size, fraction))
    left = sum(coins[: honest_users(size, fraction)])
    assert hockey_stick(left, EASY.epsilon) <= EASY.delta
    # With half of them the plan's own figure holds, too.
    half = plan.epsilon_with(fraction / 2)
    assert hockey_stick(sum(coins[: honest_users(size, fraction / 2)]), half) <= EASY.delta * (1 + 1e-9)
    twin = sorted(coins_of_every_seat(CoinsOfTheBatch(plan.batch_noise.coins), 40 * size, fraction))
    assert sum(twin[: honest_users(40 * size, fraction)]) < plan.batch_noise.coins


@pytest.mark.parametrize("domain", [BITS, OneHot(3)])
def test_every_batch_of_a_plan_keeps_its_word(domain) -> None:
    plan = CounterPlan.plan(users=3000, shufflers=3, privacy=EASY, noise="coins", honest_fraction=0.8, domain=domain)
    for size in plan.all_sizes:
        mechanism = plan.mechanism(size)
        assert mechanism.law(honest_users(size, 0.8)).trials >= plan.batch_noise.coins
        assert mechanism.coins <= plan.surplus * plan.batch_noise.coins * (1 + 1e-12)
    assert plan.warnings == () and plan.epsilon_with(0.8) <= EASY.epsilon < plan.epsilon_with(0.1)
    assert not any("coins" in row.parties for row in plan.collusions())


def test_a_plan_that_trusts_everybody_says_what_dishonest_seats_take() -> None:
    """All coins of a large batch are in few seats: without them nothing is left."""
    plan = CounterPlan.plan(users=100_000, shufflers=3, privacy=Privacy(1, 1e-6), noise="coins")
    assert plan.epsilon_with(1.0) <= 1 and plan.epsilon_with(0.9) == math.inf


@pytest.mark.parametrize("domain", [BITS, Reals(3)])
def test_where_no_coin_is_left_everything_is_shown(domain: SummedDomain) -> None:
    """Coins are dealt to a few seats of a large batch: half of its users may hold none of them."""
    plan = CounterPlan.plan(users=30_000, shufflers=2, privacy=EASY, noise="coins", domain=domain)
    size = max(plan.all_sizes)
    assert plan.batch_noise.left(size, size, honest_users(size, 0.5)) == 0
    assert plan.epsilon_with(0.5) == math.inf
    for epsilon in (0.0, 2.0, 50.0):
        assert plan.delta_terms_at(epsilon, 0.5)[0].value == 1.0
    assert plan.pair(plan.users // 2).delta(2.0) == 1.0
    with pytest.raises(ParameterError, match="trials"):
        plan.batch_noise.law(0)
