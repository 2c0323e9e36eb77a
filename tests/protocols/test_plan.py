"""What every plan says of itself, where a slip would change no figure that is usually looked at."""

import math
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from shuffledp.accounting.guarantee import DeltaTerm, delta_of_distance
from shuffledp.accounting.laws import Poisson
from shuffledp.accounting.spending import Spending
from shuffledp.accounting.worst_case import ClaimPair
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.messages import Batch
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.protocols.binary_sum.coins import Coins
from shuffledp.protocols.fields import Interval
from shuffledp.protocols.histogram import Histogram
from shuffledp.protocols.ledger_entries import entry_of
from shuffledp.protocols.plan import changed
from shuffledp.protocols.ranges import Ranges
from shuffledp.protocols.tallies import Tally
from shuffledp.randomness import RandomBits

PRIVACY = Privacy(1, 1e-6)
COINS = BinarySum.plan(users=60, privacy=PRIVACY, method="coins")


class Unproved(Coins):
    """Coins whose accountant says that it does not know."""

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        return (DeltaTerm("noise", math.nan, "nobody knows"),)


def test_what_is_no_number_proves_nothing() -> None:
    with pytest.raises(InfeasibleError):
        Unproved(users=60, privacy=PRIVACY, bits_per_user=COINS.bits_per_user, probability=COINS.probability)


@pytest.mark.parametrize(
    ("method", "fraction"),
    [("shares", 1.0), ("poisson-bits", 1.0), ("poisson-bits", 0.5), ("coins", 0.9), ("rr", 0.5), ("correlated", 1.0)],
)
def test_the_epsilon_that_is_left_has_room_for_every_term(method: str, fraction: float) -> None:
    plan = BinarySum.plan(users=1000, privacy=Privacy(1, 1e-3), method=method)
    left = plan.epsilon_with(fraction)
    honest = int(fraction * plan.users)
    assert math.isfinite(left)
    assert sum(term.value for term in plan.delta_terms(left, honest)) <= plan.privacy.delta * (1 + 1e-6)


@pytest.mark.parametrize("method", ["coins", "shares", "rr", "poisson-bits"])
def test_a_ledger_is_told_the_honest_users_pair(method: str) -> None:
    plan = BinarySum.plan(users=500, privacy=PRIVACY, method=method, honest_fraction=0.5)
    for epsilon in (0.3, 0.7):
        charged = plan.charged_pair.delta(epsilon)
        assert charged == plan.pair(plan.honest_users).delta(epsilon) > 1.1 * plan.pair(plan.users).delta(epsilon)


@pytest.mark.parametrize("method", ["shares", "poisson-bits"])
def test_a_ledger_is_told_all_of_delta(method: str) -> None:
    """What shares show and tables cut off is in the entry, beside the pair."""
    plan = BinarySum.plan(users=500, privacy=Privacy(1, 1e-3), method=method)
    entry = entry_of(plan, datetime(2026, 1, 31, tzinfo=UTC))
    proved = sum(term.value for term in plan.delta_terms(1.0, plan.honest_users))
    assert Spending([entry]).delta(1.0) >= proved * (1 - 1e-9)
    beyond = sum(term.value for term in plan.delta_terms(1.0, plan.honest_users) if term.name != "noise")
    assert beyond > 0 and (entry.extra_delta >= beyond or isinstance(entry.pair, ClaimPair))


def test_what_decides_a_plan_decides_its_fingerprint() -> None:
    less = changed(COINS, probability=COINS.probability / 2)
    more = changed(COINS, bits_per_user=COINS.bits_per_user + 1)
    assert len({COINS.fingerprint, less.fingerprint, more.fingerprint}) == 3


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("(0, 1/2]", (1e-300, 0.25, 0.5), (0.0, -1.0, 0.5000001, math.nan, math.inf)),
        ("[1, inf)", (1, 1e300), (0.999, math.inf, math.nan)),
        ("(0, 1)", (0.5,), (0.0, 1.0, math.nan)),
        ("[0, 1]", (0.0, 1.0), (-1e-300, 1.0000001)),
    ],
)
def test_ends_of_intervals(text: str, inside: tuple[float, ...], outside: tuple[float, ...]) -> None:
    interval = Interval.parse(text)
    assert all(map(interval.holds, inside)) and not any(map(interval.holds, outside))


def test_every_number_of_a_list_is_checked() -> None:
    plan = Ranges.plan(users=2000, privacy=Privacy(2, 1e-3), domain=64, branching=4)
    assert len(plan.probabilities) > 1
    for place in range(len(plan.probabilities)):
        for wrong in (0.0, 1.5, math.nan):
            numbers = list(plan.probabilities)
            numbers[place] = wrong
            with pytest.raises(ParameterError) as refused:
                replace(plan, probabilities=tuple(numbers))
            assert refused.value.parameter == "probabilities"


def test_pieces_of_a_batch_add_up_whole() -> None:
    pieces = [Tally(np.array([3, 1]), 4, 4, malformed=2), Tally(np.array([0, 2]), 0, 3, malformed=1)]
    whole = Tally.merge(pieces)
    assert (whole.counts.tolist(), whole.reports, whole.messages, whole.malformed) == ([3, 3], 4, 7, 3)


def test_a_round_is_told_once_and_when_it_is_full() -> None:
    """Fewer users hide each other than the plan counts on: their tally is not taken, and a full batch must have one."""
    learner = COINS.learner()
    reports = COINS.randomize(np.zeros(60, dtype=np.uint8), bits=RandomBits.seeded(1))
    tally = COINS.tally(Batch(reports.payloads, 60))
    for users, closed in ((59, {1: tally}), (60, {}), (61, {1: tally}), (1, {1: tally})):
        with pytest.raises(ParameterError):
            learner.tell(learner.start(), users, closed)
    half = learner.tell(learner.start(), 30, {})
    assert learner.estimate(half) is None
    with pytest.raises(ParameterError):
        learner.tell(half, 60, {1: tally})
    done = learner.tell(half, 30, {1: tally})
    assert learner.estimate(done) == COINS.estimate(tally) and learner.ask(done) is None


def test_noise_bits_that_are_cut_off_are_a_term_of_delta() -> None:
    plan = BinarySum.plan(users=1000, privacy=PRIVACY, method="poisson-bits", honest_fraction=0.5)
    for most in (0, 1, plan.most_noise_bits):
        twin = changed(plan, most_noise_bits=most)
        [cut] = [term.value for term in twin.delta_terms(1.0, 500) if term.name == "cut-off"]
        expected = delta_of_distance(math.e, 1000 * Poisson(plan.rate / 500).sf(most))
        assert cut == pytest.approx(expected, rel=1e-9, abs=0) and cut > 0


@pytest.mark.parametrize("method", ["decoys", "opt-in", "zsum"])
def test_what_did_not_open_is_dropped(method: str) -> None:
    """A histogram's messages that could not be read at all widen its bound like those outside its alphabet."""
    plan = Histogram.plan(users=500, privacy=Privacy(2, 1e-3), categories=4, method=method)
    reports = plan.randomize(np.arange(500) % 4, bits=RandomBits.seeded(1))
    batch = Batch(reports.payloads, 500, reports.labels)
    whole, less = plan.estimate(plan.tally(batch)), plan.estimate(plan.tally(batch, malformed=2))
    assert (whole.dropped, less.dropped) == (0, 2) and less.bound > whole.bound
