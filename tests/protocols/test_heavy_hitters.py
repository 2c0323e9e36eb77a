"""Frequent strings: planted ones are found, absent ones hardly ever, and too few users are refused."""

import dataclasses
import json
import math
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from shuffledp.accounting.worst_case import ClaimPair
from shuffledp.audit.trials import audit_plan
from shuffledp.errors import InfeasibleError, ParameterError, ShuffleDPError
from shuffledp.estimates import VectorEstimate
from shuffledp.privacy import Privacy
from shuffledp.protocols.catalogue import PROTOCOLS, plan_from_document
from shuffledp.protocols.heavy_hitters import HeavyHitters
from shuffledp.protocols.heavy_hitters.found import sampled_shares
from shuffledp.protocols.ledger_entries import entry_of
from shuffledp.randomness import RandomBits
from shuffledp.simulation.heavy_hitters import search_heavy_hitters
from shuffledp.simulation.run import simulate

TARGET = Privacy(1, 1e-6)
LETTERS = b"abcdefghijklmnopqrstuvwxyz"


def _people(planted: dict[str, int], users: int) -> np.ndarray:
    """The planted strings, and random ones for everybody else."""
    rest = users - sum(planted.values())
    letters = np.random.default_rng(1).integers(97, 123, (rest, 6), dtype=np.uint8)
    others = letters.reshape(-1).view("S6")
    known = np.repeat([name.encode() for name in planted], list(planted.values()))
    return np.concatenate((known.astype("S6"), others))


def test_planted_strings_are_found() -> None:
    planted = {"banana": 16_000, "kiwi": 11_000, "ban": 9_000, "quince": 6_000}
    users = 120_000
    search = HeavyHitters(users=users, privacy=TARGET, length=6, top=4, alphabet=LETTERS)
    people = _people(planted, users)
    for fast in (True, False):
        found = search_heavy_hitters(search, people, bits=RandomBits.seeded(2), fast=fast)
        assert [each.string for each in found] == list(planted)
        for each in found:
            assert each.lower <= planted[each.string] <= each.upper
            assert each.upper - each.lower < 6_000
            assert each.noise_bound > 0 and each.sampling_bound > 0


def test_what_nobody_has_is_found_as_rarely_as_declared() -> None:
    """300 searches among strings that are all different at the last level: at most 5%, Hoeffding, false alarm 1e-9."""
    search = HeavyHitters(users=2_000, privacy=Privacy(2, 1e-3), length=1, top=3, alphabet=LETTERS)
    people = np.array([b"%"] * 2_000)
    bits, runs = RandomBits.seeded(3), 300
    wrong = sum(bool(search_heavy_hitters(search, people, bits=bits, fast=True)) for _ in range(runs))
    assert wrong / runs <= 0.05 + math.sqrt(math.log(1e9) / (2 * runs))
    # The twin that lets half of the bound pass finds strings that are not there.
    half = sum(_passes_half(search, people, bits) for _ in range(runs))
    assert half / runs > 0.5


def _passes_half(search: HeavyHitters, people: np.ndarray, bits: RandomBits) -> bool:
    state = search.start()
    estimate = search.ask(state).sample_estimate(search.codes(state, people), bits=bits)
    return bool((estimate.value[:-1] >= estimate.bound / 2).any())


def test_a_level_depends_on_earlier_groups_only() -> None:
    search = HeavyHitters(users=40_000, privacy=TARGET, length=2, top=2, alphabet=b"ab")
    state = search.start()
    assert state.candidates == (b"", b"a", b"b")
    plan = search.ask(state)
    value = np.array([0.0, 9_000.0, 8_000.0, 3_000.0])
    heard = VectorEstimate(value=value, standard_error=1.0, bound=plan.error_bound, confidence=0.95)
    following = search.tell(state, heard)
    assert following.candidates == (b"a", b"aa", b"ab", b"b", b"ba", b"bb")
    codes = search.codes(following, ["a", "ab", "abc", "c", "", "bé"])
    assert codes.tolist() == [0, 2, 2, 6, 6, 6]
    nobody = VectorEstimate(value=np.zeros(4), standard_error=1.0, bound=plan.error_bound, confidence=0.95)
    assert search.tell(state, nobody).found == ()
    with pytest.raises(ParameterError, match="nothing more"):
        search.ask(search.tell(state, nobody))


def test_every_user_is_in_one_group() -> None:
    search = HeavyHitters(users=50_003, privacy=TARGET, length=4, top=1, alphabet=b"ab")
    sizes = [search.group_size(level) for level in range(1, 5)]
    assert sum(sizes) == 50_003 and max(sizes) - min(sizes) == 1


def test_sampling_intervals_hold_the_truth() -> None:
    """A group of 2000 of 10,000 users, 3% of whom have the string: 5% may fail (Hoeffding, false alarm 1e-9)."""
    generator, runs = np.random.default_rng(4), 2000
    drawn = generator.hypergeometric(300, 9700, 2000, runs)
    outside = 0
    for count, times in zip(*np.unique(drawn, return_counts=True), strict=True):
        lower, upper = sampled_shares(count / 2000, 2000, 0.05)
        assert lower <= count / 2000 <= upper
        outside += times * (not lower <= 0.03 <= upper)
    assert outside / runs <= 0.05 + math.sqrt(math.log(1e9) / (2 * runs))
    narrow = sampled_shares(0.03, 2000, 0.05)
    assert narrow[1] - narrow[0] < 0.03


def test_refusals_are_one_sentence() -> None:
    for asked in (
        {"users": 100, "length": 6},
        {"users": 5, "length": 6},
        {"users": 50_000, "length": 0},
        {"users": 50_000, "top": 0},
        {"users": 50_000, "alphabet": b"aa"},
        {"users": 50_000, "keep": 1},
    ):
        with pytest.raises(ParameterError) as refused:
            HeavyHitters(privacy=TARGET, **asked)
        assert str(refused.value).endswith(".") and "\n" not in str(refused.value)
    with pytest.raises(InfeasibleError, match="too few"):
        HeavyHitters(users=20, privacy=TARGET, length=2, alphabet=b"ab")
    search = HeavyHitters(users=50_000, privacy=TARGET, length=2, alphabet=b"ab")
    with pytest.raises(ParameterError):
        search.as_bytes([1, 2])
    with pytest.raises(ParameterError):
        search_heavy_hitters(search, ["a"], bits=RandomBits.seeded(1))


def test_strings_with_zeros_or_half_characters_are_other_at_every_level() -> None:
    """NumPy ends strings by zeros: cut after one, "a\\0b" looked like "a" and was reported as such."""
    search = HeavyHitters(users=20_000, privacy=TARGET, length=2, top=2, alphabet=b"abc")
    state = search.start()
    assert search.codes(state, ["", "a", "\0a", "\ud800", "é", "a\0b"]).tolist() == [0, 1, 4, 4, 4, 1]
    second = search.tell(state, VectorEstimate(value=np.eye(5)[1] * 1e4, standard_error=1, bound=10, confidence=0.95))
    assert second.candidates == (b"a", b"aa", b"ab", b"ac")
    assert search.codes(second, np.array([b"a", b"ab", b"a\0b", b"\0", b"abcdef"])).tolist() == [0, 2, 4, 4, 2]
    people = np.array([b"a\0b"] * 20_000)
    assert search_heavy_hitters(search, people, bits=RandomBits.seeded(1), fast=True) == ()
    assert np.array_equal(search.as_bytes(search.as_bytes(people)), search.as_bytes(people))


@pytest.mark.parametrize(
    ("field", "value"), [("alphabet", "abc"), ("alphabet", bytes(range(1, 256))), ("top", 1.5), ("length", 2.5)]
)
def test_what_is_no_alphabet_or_no_number_is_refused(field: str, value: object) -> None:
    with pytest.raises(ParameterError, match=f"^{field} must be"):
        HeavyHitters(**{"users": 20_000, "privacy": TARGET, "length": 2, field: value})  # type: ignore[arg-type]


def _abc(users: int = 6000, **more: Any) -> HeavyHitters:
    return HeavyHitters(users=users, privacy=TARGET, length=2, top=2, alphabet=b"abc", **more)


@pytest.mark.parametrize("more", [{}, {"honest_fraction": 0.8, "max_messages": 40, "keep": 5}])
def test_a_search_is_saved_and_loaded(more: dict[str, Any]) -> None:
    plan = _abc(**more)
    document = json.loads(json.dumps(plan.document()))
    again = plan_from_document(document)
    assert again == plan and again.fingerprint == plan.fingerprint
    assert PROTOCOLS["heavy-hitters"].plan(users=6000, privacy=TARGET, length=2, top=2, alphabet="abc", **more) == plan
    for key, value in {"length": 3, "alphabet": "abd", "alphabet ": 7, "users": 7000, "top": 3}.items():
        with pytest.raises(ParameterError, match="plan"):
            plan_from_document(document | {key.strip(): value})
    with pytest.raises(ParameterError, match="noise_part must be 1"):
        dataclasses.replace(plan, noise_part=0.5)


def test_one_driver_runs_a_search_message_by_message_and_by_law() -> None:
    plan = _abc(40_000)
    people = np.array(["ab"] * 20_000 + ["c"] * 15_000 + ["ba"] * 5_000)
    assert plan.true_value(people) == {"ab": 20_000, "c": 15_000}
    for fast in (False, True):
        answer = simulate(plan, people, bits=RandomBits.seeded(1), fast=fast)
        assert (
            answer.names == ("ab", "c") and answer.simulated and [each.string for each in answer.found] == ["ab", "c"]
        )
        assert (np.abs(answer.value - [20_000, 15_000]) <= answer.bounds).all() and answer.bound <= plan.error_bound
        assert answer == simulate(plan, people, bits=RandomBits.seeded(1), fast=fast)
    few = simulate(plan, np.array(["?"] * 40_000), bits=RandomBits.seeded(1))
    assert few.found == () and few.value.size == 0 and "no string" in str(few)
    for wrong in (people[:-1], np.concatenate((people, people))):
        with pytest.raises(ShuffleDPError):
            simulate(plan, wrong, bits=RandomBits.seeded(1))


def test_groups_are_drawn_at_random_whatever_the_order_of_the_file() -> None:
    """Sorted strings would give every level people of its own kind: both strings' counts must be those of all."""
    plan = _abc(40_000)
    people = np.sort(np.array(["ab"] * 20_000 + ["c"] * 20_000))
    answer = simulate(plan, people, bits=RandomBits.seeded(5))
    assert set(answer.names) == {"ab", "c"} and np.abs(answer.value - 20_000).max() <= 2000


def test_a_searchs_privacy_is_that_of_every_level() -> None:
    plan = _abc()
    first = plan.ask(plan.start())
    assert plan.guarantee().terms == first.guarantee().terms and plan.guarantee().holds
    assert plan.epsilon_with(0.5) == first.epsilon_with(0.5) > 1
    assert [row.epsilon for row in plan.collusions()] == [row.epsilon for row in first.collusions()]
    entry = entry_of(plan, datetime(2026, 1, 31, tzinfo=UTC))
    assert type(entry.pair) is ClaimPair and entry.extra_delta == 0 and entry.description == "heavy-hitters by prefixes"
    assert entry.pair.claim == TARGET
    assert plan.influence > first.influence and "near the cut" in plan.lying_client


def test_a_search_is_audited_at_its_first_level() -> None:
    plan = HeavyHitters(users=120, privacy=Privacy(4, 1e-3), length=1, top=1, alphabet=b"ab")
    assert audit_plan(plan, bits=RandomBits.seeded(1), trials=20_000).verdict == "stands"
    assert audit_plan(plan, bits=RandomBits.seeded(1), trials=20_000, sabotage=0.02).verdict == "refuted"


def test_a_search_is_not_served_live_and_says_why() -> None:
    plan = _abc()
    for refused in (lambda: plan.layout, lambda: plan.mechanism(plan.users)):
        with pytest.raises(ParameterError, match="rounds of different people; the live service") as told:
            refused()
        assert str(told.value).endswith(".")
    with pytest.raises(ParameterError, match="of a level"):
        plan.learner().tell(plan.learner().start(), 5, {})
