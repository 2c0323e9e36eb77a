"""The two transports of sums: any cut of a batch says the same, and what is drawn has the law of what is sent."""

import itertools

import numpy as np
import pytest

from shuffledp.accounting.laws import Binomial
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
