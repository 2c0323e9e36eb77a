"""The two transports of sums: any cut of a batch says the same, and what is drawn has the law of what is sent."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from shuffledp.accounting.guarantee import delta_of_distance
from shuffledp.accounting.laws import Binomial
from shuffledp.accounting.mixing import mixing_distance_of
from shuffledp.errors import BrokenBatchError
from shuffledp.messages import Batch
from shuffledp.protocols.splitting import Splitting
from shuffledp.protocols.sums.batches import CoinBatch, ShareBatch, SumBatch
from shuffledp.protocols.sums.noise import LaplaceNoise, SkellamNoise
from shuffledp.protocols.tallies import Tally
from shuffledp.randomness import RandomBits
from shuffledp.testing.statistics import assert_law, assert_same_law

BATCHES: dict[str, SumBatch] = {
    "even coins": CoinBatch(6, 12, length=3, probability=0.3),
    "uneven coins": CoinBatch(6, 8, length=3, lowest=-1),
    "coins of two": CoinBatch(6, 18, coordinates=2, length=3),
    "one labelled": CoinBatch(6, 12, length=3, labelled=True),
    "laplace": ShareBatch(6, 4, LaplaceNoise(0.5), Splitting(4, 50, -500, 500)),
    "skellam of two": ShareBatch(6, 6, SkellamNoise(7.0), Splitting(3, 50, -500, 500), coordinates=2),
}


def steps_for(batch: SumBatch) -> np.ndarray:
    steps = np.arange(6 * batch.coordinates) % 3
    return steps if batch.coordinates == 1 else steps.reshape(6, -1)


def sent(batch: SumBatch, bits: RandomBits) -> Batch:
    reports = batch.randomize(steps_for(batch), 0, bits=bits)
    return Batch(reports.payloads, len(reports), reports.labels)


@pytest.mark.parametrize("name", BATCHES)
def test_any_cut_of_a_batch_says_the_same(name: str) -> None:
    batch = BATCHES[name]
    whole = sent(batch, RandomBits.seeded(1))
    expected = batch.sums(batch.tally(whole))
    for pieces in (2, 3, 7):
        ends = np.linspace(0, len(whole), pieces + 1).astype(int)
        tallies = []
        for place, (start, end) in enumerate(itertools.pairwise(ends)):
            labels = None if whole.labels is None else whole.labels[start:end]
            tallies.append(batch.tally(Batch(whole.payloads[start:end], 6 if place == 0 else 0, labels)))
        sums, dropped = batch.sums(Tally.merge(tallies))
        np.testing.assert_array_equal(sums, expected[0])
        assert dropped == expected[1] == 0


@pytest.mark.parametrize("name", BATCHES)
def test_sums_have_the_law_that_is_sampled(name: str) -> None:
    batch = BATCHES[name]
    truth = steps_for(batch).reshape(6, -1)[:, 0].sum()
    shift = truth - (6 * batch.lowest if isinstance(batch, CoinBatch) else 0)
    seen = [int(batch.sums(batch.tally(sent(batch, bits)))[0][0]) - shift for bits in RandomBits.seeded(2).spawn(4000)]
    drawn = batch.sample(4000, bits=RandomBits.seeded(3))
    assert_same_law(np.array(seen), drawn)
    if isinstance(batch, CoinBatch):
        law = batch.law(6)
        assert isinstance(law, Binomial) and law.mean == batch.mean
        assert_law(seen, 0, np.exp(law.log_pmf(np.arange(law.trials + 1.0))))


@pytest.mark.parametrize("name", BATCHES)
def test_messages_are_counted_as_they_are_sent(name: str) -> None:
    batch = BATCHES[name]
    reports = batch.randomize(steps_for(batch), 0, bits=RandomBits.seeded(1))
    assert reports.sizes.max() == batch.messages_max and reports.sizes.mean() == pytest.approx(batch.messages_mean)
    assert int(reports.payloads.max()) < 1 << batch.payload_bits


def test_one_message_too_many_or_too_few() -> None:
    coins, shares = BATCHES["even coins"], BATCHES["laplace"]
    whole = sent(coins, RandomBits.seeded(1))
    assert coins.sums(coins.tally(Batch(whole.payloads[1:], 6)))[1] == 1
    with pytest.raises(BrokenBatchError, match="more than the plan"):
        coins.sums(coins.tally(Batch(np.append(whole.payloads, [0]).astype(np.uint8), 6)))
    whole = sent(shares, RandomBits.seeded(1))
    for payloads in (whole.payloads[1:], np.append(whole.payloads, whole.payloads[:1])):
        with pytest.raises(BrokenBatchError, match="lost or altered"):
            shares.sums(shares.tally(Batch(payloads, 6)))


def test_what_could_not_be_read_is_missing_though_a_liars_filler_hides_it() -> None:
    """As many messages as expected count, and one did not open: it widens the bound all the same."""
    for name in ("even coins", "coins of two"):
        batch = BATCHES[name]
        whole = sent(batch, RandomBits.seeded(1))
        assert batch.sums(batch.tally(whole, malformed=1))[1] == 1
        assert batch.sums(batch.tally(whole, malformed=3))[1] == 3
    shares = BATCHES["laplace"]
    with pytest.raises(BrokenBatchError):
        shares.sums(shares.tally(sent(shares, RandomBits.seeded(1)), malformed=1))


@pytest.mark.parametrize("name", ["coins of two", "skellam of two"])
def test_coordinates_have_noise_of_their_own(name: str) -> None:
    """The same noise in two coordinates would be taken off by their difference."""
    batch = BATCHES[name]
    seen = np.array([batch.sums(batch.tally(sent(batch, bits)))[0] for bits in RandomBits.seeded(5).spawn(3000)])
    correlation = np.corrcoef(seen[:, 0], seen[:, 1])[0, 1]
    # Of independent noises it is within this but for a probability of 1e-9.
    assert abs(correlation) < 6.2 / math.sqrt(3000)


def test_what_shares_show_and_tables_round_adds_up_over_coordinates_and_users() -> None:
    shares = BATCHES["skellam of two"]
    assert isinstance(shares, ShareBatch)
    for coordinates, users in ((1, 6), (2, 6), (5, 12)):
        splitting = replace(shares.splitting, shares=40)
        batch = replace(shares, coordinates=coordinates, users=users, splitting=splitting)
        terms = {term.name: term.value for term in batch.transport_terms(4, 0.5)}
        distance = mixing_distance_of([(4, 40, 1 << 50, coordinates)])
        assert terms["transport"] == pytest.approx(delta_of_distance(math.exp(0.5), distance), abs=0)
        assert batch.distance_with(4) == pytest.approx(distance, abs=0)
        one = mixing_distance_of([(4, 40, 1 << 50, 1)])
        assert 1 > distance >= math.sqrt(coordinates) * one > 0
        alone = {term.name: term.value for term in replace(batch, coordinates=1, users=1).transport_terms(4, 0.5)}
        assert (
            terms["sampling"] == pytest.approx(coordinates * users * alone["sampling"], abs=0) and alone["sampling"] > 0
        )


def test_a_share_under_another_label_voids_the_batch_though_nothing_moves() -> None:
    """A share of 0 moves no sum: its label is looked at all the same."""
    shares = BATCHES["skellam of two"]
    payloads = np.zeros(6 * 2 * 3, dtype=np.uint64)
    labels = np.repeat([0, 1], 18).astype(np.uint8)
    assert shares.sums(shares.tally(Batch(payloads, 6, labels)))[0].tolist() == [0, 0]
    labels[0] = 1
    with pytest.raises(BrokenBatchError, match="label altered"):
        shares.sums(shares.tally(Batch(payloads, 6, labels)))
