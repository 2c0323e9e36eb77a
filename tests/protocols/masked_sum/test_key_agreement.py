"""Keys from a shuffler: exactly uniform given all that others see, by enumeration; wrong twins are not."""

import itertools
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from shuffledp.errors import BrokenBatchError, ParameterError
from shuffledp.messages import Batch, Reports
from shuffledp.protocols.masked_sum.key_agreement import KeyAgreement, as_numbers, repetitions_for, too_few_tosses
from shuffledp.randomness import RandomBits
from shuffledp.shuffle.shuffler import BatchSpec, Shuffler

Law = Counter[tuple[object, object]]
"""How many equally likely outcomes show this view and have this key."""


@pytest.mark.parametrize(("key_bits", "repetitions"), [(64, 233), (128, 394), (256, 696)])
def test_repetitions_for_a_failure_of_2_to_the_minus_40(key_bits: int, repetitions: int) -> None:
    assert repetitions_for(key_bits) == repetitions
    assert too_few_tosses(key_bits, repetitions) <= Fraction(1, 1 << 40) < too_few_tosses(key_bits, repetitions - 1)


def test_the_tail_is_that_of_all_sequences_of_coins() -> None:
    for repetitions, key_bits in itertools.product((1, 5, 9), (1, 2, 5, 12)):
        few = sum(sum(tosses) < key_bits for tosses in itertools.product((0, 1), repeat=repetitions))
        assert too_few_tosses(key_bits, repetitions) == Fraction(few, 2**repetitions)


def test_all_pairs_together_fail_no_more_often() -> None:
    few, many = (KeyAgreement.plan(users=users, key_bits=64) for users in (2, 100))
    assert few.repetitions == 233 < many.repetitions
    assert many.failure <= Fraction(1, 1 << 40) and many.messages == 100 * 99 * many.repetitions
    fewer = KeyAgreement(users=100, key_bits=64, repetitions=many.repetitions - 1)
    assert fewer.failure > Fraction(1, 1 << 40)


class KeyOfEqualCoins(KeyAgreement):
    """A twin that takes the coins that agree: everybody reads them."""

    def useful(self, batch: Batch) -> np.ndarray:
        return ~super().useful(batch)

    def keys(self, coins: np.ndarray, useful: np.ndarray) -> np.ndarray:
        leader_like = super().keys(coins, useful)
        return leader_like ^ ~self.leads[:, :, np.newaxis]


class FollowerForgets(KeyAgreement):
    """A twin whose follower does not flip its coin."""

    def keys(self, coins: np.ndarray, useful: np.ndarray) -> np.ndarray:
        return super().keys(coins, useful) ^ ~self.leads[:, :, np.newaxis]


def every_order(reports: Reports) -> list[tuple[int, ...]]:
    return list(itertools.permutations(range(reports.payloads.size)))


def no_shuffle(reports: Reports) -> list[tuple[int, ...]]:
    return [tuple(range(reports.payloads.size))]


def every_toss(agreement: KeyAgreement) -> list[np.ndarray]:
    shape = (agreement.users, agreement.users - 1, agreement.repetitions)
    size = int(np.prod(shape))
    return [np.array(coins, dtype=np.uint8).reshape(shape) for coins in itertools.product((0, 1), repeat=size)]


def joint_law(agreement: KeyAgreement, orders: Callable[[Reports], list[tuple[int, ...]]]) -> Law:
    """Of the shuffler's output, in its order, and the key of users 0 and 1; no key where round 1 failed."""
    law: Law = Counter()
    for coins in every_toss(agreement):
        reports = agreement.reports(coins)
        batch = Batch(reports.payloads, agreement.users, reports.labels)
        try:
            key: object = tuple(agreement.keys(coins, agreement.useful(batch))[0, 0].tolist())
        except BrokenBatchError:
            key = None
        messages = list(zip(reports.labels.tolist(), reports.payloads.tolist(), strict=True))
        for order in orders(reports):
            law[tuple(messages[place] for place in order), key] += 1
    return law


def is_secret(law: Law, key_bits: int) -> bool:
    """Whether the joint law is, exactly, that of the view times the uniform law on keys; failures are public."""
    views: Counter[object] = Counter()
    for (view, _), count in law.items():
        views[view] += count
    keys: list[object] = list(itertools.product((0, 1), repeat=key_bits))
    for view, count in views.items():
        if law[view, None]:
            if law[view, None] != count:
                return False
        elif any(law[view, key] * 2**key_bits != count for key in keys):
            return False
    return True


@pytest.mark.parametrize(("key_bits", "repetitions"), [(1, 1), (1, 2), (2, 2), (1, 3)])
def test_given_the_output_the_key_is_exactly_uniform(key_bits: int, repetitions: int) -> None:
    agreement = KeyAgreement(users=2, key_bits=key_bits, repetitions=repetitions)
    law = joint_law(agreement, every_order if repetitions < 3 else sorted_order)
    assert is_secret(law, key_bits)
    assert Fraction(sum(law[v, k] for v, k in law if k is None), law.total()) == agreement.failure


def sorted_order(reports: Reports) -> list[tuple[int, ...]]:
    """One order that forgets who sent what: the multiset, to which a uniform order adds nothing."""
    messages = list(zip(reports.labels.tolist(), reports.payloads.tolist(), strict=True))
    return [tuple(sorted(range(len(messages)), key=messages.__getitem__))]


def test_wrong_twins_are_not_secret() -> None:
    sizes = {"users": 2, "key_bits": 1, "repetitions": 2}
    assert not is_secret(joint_law(KeyOfEqualCoins(**sizes), every_order), 1)
    assert not is_secret(joint_law(KeyAgreement(**sizes), no_shuffle), 1)


def test_a_follower_that_forgets_to_flip_has_another_key() -> None:
    for twin, agrees in ((KeyAgreement, True), (FollowerForgets, False)):
        agreement = twin(users=2, key_bits=1, repetitions=2)
        both = set()
        for coins in every_toss(agreement):
            reports = agreement.reports(coins)
            useful = agreement.useful(Batch(reports.payloads, 2, reports.labels))
            if useful.any():
                keys = agreement.keys(coins, useful)
                both.add(bool((keys[0, 0] == keys[1, 0]).all()))
        assert both == {agrees}


def test_another_user_and_its_coins_learn_nothing() -> None:
    """Three users, one of whom shows all its coins: user 2 learns nothing of the key of 0 and 1; user 1 has it."""
    agreement = KeyAgreement(users=3, key_bits=1, repetitions=2)
    laws: dict[int, Law] = {1: Counter(), 2: Counter()}
    for coins in every_toss(agreement):
        reports = agreement.reports(coins)
        useful = agreement.useful(Batch(reports.payloads, 3, reports.labels))
        key = tuple(agreement.keys(coins, useful)[0, 0].tolist()) if useful.any(axis=1).all() else None
        for colluder, law in laws.items():
            law[(sorted_messages(reports), coins[colluder].tobytes()), key] += 1
    assert is_secret(laws[2], 1) and not is_secret(laws[1], 1)


def sorted_messages(reports: Reports) -> bytes:
    return np.sort(reports.labels.astype(np.int64) * 2 + reports.payloads).tobytes()


def test_every_two_of_many_users_agree_through_the_shuffler() -> None:
    agreement = KeyAgreement.plan(users=30, key_bits=47)
    coins = agreement.toss(bits=RandomBits.seeded(1))
    shuffler = Shuffler(bits=RandomBits.seeded(2))
    shuffler.open(BatchSpec(30, agreement.messages_per_user))
    shuffler.accept(agreement.reports(coins))
    keys = as_numbers(agreement.keys(coins, agreement.useful(shuffler.close())))
    low, high = np.triu_indices(30, 1)
    assert (keys[low, high - 1] == keys[high, low]).all()
    assert np.unique(keys).size == agreement.pairs
    assert int(keys.max()).bit_length() == 47


def test_a_batch_without_somebody_is_refused() -> None:
    agreement = KeyAgreement.plan(users=3, key_bits=4)
    reports = agreement.reports(agreement.toss(bits=RandomBits.seeded(1)))
    labels = reports.labels
    bad = [
        Batch(reports.payloads[: -agreement.messages_per_user], 2, labels[: -agreement.messages_per_user]),
        Batch(reports.payloads, 3),
        Batch(reports.payloads + np.uint8(1), 3, labels),
        Batch(reports.payloads, 3, labels + np.uint32(1)),
        Batch(reports.payloads, 3, np.zeros_like(labels)),
        Batch(reports.payloads[:0], 3, labels[:0]),
    ]
    for batch in bad:
        with pytest.raises(BrokenBatchError, match="begin again"):
            agreement.useful(batch)


def test_too_few_coins_that_differ_are_no_key() -> None:
    agreement = KeyAgreement(users=2, key_bits=3, repetitions=3)
    equal = np.zeros((2, 1, 3), dtype=np.uint8)
    with pytest.raises(BrokenBatchError, match="must be 3 for every pair, got 0"):
        agreement.keys(equal, np.zeros((1, 3), dtype=np.bool_))


@pytest.mark.parametrize(
    ("wrong", "parameter"),
    [
        ({"users": 1, "key_bits": 8}, "users"),
        ({"users": 2.5, "key_bits": 8}, "users"),
        ({"users": 0, "key_bits": 8}, "users"),
        ({"users": 10_000, "key_bits": 64}, "users"),
        ({"users": 2, "key_bits": 0}, "key_bits"),
        ({"users": 2, "key_bits": 10**6}, "key_bits"),
        ({"users": 2, "key_bits": 8, "failure": Fraction(0)}, "failure"),
    ],
)
def test_bad_plans_are_named(wrong: dict, parameter: str) -> None:
    with pytest.raises(ParameterError) as told:
        KeyAgreement.plan(**wrong)
    assert told.value.parameter == parameter


@pytest.mark.parametrize("field", ["key_bits", "repetitions"])
def test_half_a_bit_is_refused(field: str) -> None:
    with pytest.raises(ParameterError, match=f"^{field} must be a whole number"):
        KeyAgreement(**{"users": 3, "key_bits": 2, "repetitions": 5, field: 2.5})  # type: ignore[arg-type]
