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
from shuffledp.protocols.heavy_hitters import ANY_TEXT, GroupSearch, HeavyHitters
from shuffledp.protocols.heavy_hitters.found import sampled_shares
from shuffledp.protocols.heavy_hitters.levels import Descent
from shuffledp.protocols.heavy_hitters.words import UnlistedStrings
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


def _search(users: int, **asked: Any) -> GroupSearch:
    return GroupSearch.plan(users=users, **{"privacy": TARGET, **asked})


def test_planted_strings_are_found() -> None:
    planted = {"banana": 16_000, "kiwi": 11_000, "ban": 9_000, "quince": 6_000}
    users = 120_000
    search = _search(users, length=6, top=4, alphabet=LETTERS)
    assert search.surely_found < 1000
    people = _people(planted, users)
    for fast in (True, False):
        found = search_heavy_hitters(search, people, bits=RandomBits.seeded(2), fast=fast)
        assert [each.string for each in found] == list(planted)
        for each in found:
            assert each.lower <= planted[each.string] <= each.upper
            assert each.upper - each.lower < 6_000
            assert each.noise_bound > 0 and each.sampling_bound > 0


def test_any_script_is_found_and_what_was_cut_says_so() -> None:
    planted = {"München": 9_000, "東京": 8_000, "Llanfairpwllgwyngyll": 7_000, "Llanfairpwllgwyn": 6_000, "Ærø": 5_000}
    people = np.repeat(list(planted), list(planted.values()))
    found = simulate(_search(people.size, top=5), people, bits=RandomBits.seeded(3), fast=True)
    assert set(found.names) == {"München", "東京", "Llanfairpwllgwyn…", "Llanfairpwllgwyn", "Ærø"}
    counted = dict(zip(found.names, found.value, strict=True))
    assert abs(counted["Llanfairpwllgwyn…"] - 7_000) < 1_000 and abs(counted["Llanfairpwllgwyn"] - 6_000) < 1_000


def test_what_is_promised_is_found_among_prefixes_that_are_all_alike() -> None:
    """4,000 strings of nearly equal counts that begin alike, and ten of as many users as the promise says.

    Kept by mass alone, a fixed number of prefixes loses them. Four searches, each of which may miss one in 5% of runs:
    at most 2, with a false alarm of 5e-4.
    """
    users, runs = 100_000, 4
    search = _search(users, length=6, alphabet=b"N0123456789")
    promised = math.ceil(search.surely_found)
    assert 200 < promised < 1200
    generator = np.random.default_rng(5)
    heavy = [f"N{20_000 + 7 * place}" for place in range(10)]
    light = np.array([f"N{10_000 + place}" for place in range(4_000)])
    people = np.concatenate((np.repeat(heavy, promised), generator.choice(light, users - 10 * promised)))
    bits = RandomBits.seeded(6)
    missed = sum(
        not set(heavy) <= {each.string for each in search_heavy_hitters(search, people, bits=bits, fast=True)}
        for _ in range(runs)
    )
    assert missed <= 2


def test_fewer_prefixes_than_planned_promise_less() -> None:
    users = 200_000
    planned, narrow = _search(users, length=8, top=5), _search(users, length=8, top=5, keep=8)
    assert narrow.keep == 8 and narrow.surely_found > 2 * planned.surely_found
    shorter, named = _search(users, length=4, top=5), _search(users, length=8, top=5, alphabet=LETTERS)
    assert shorter.surely_found < planned.surely_found and named.surely_found < planned.surely_found


@pytest.mark.parametrize("bits", [5, 20, 21, 33, 129])
@pytest.mark.parametrize("width", [1, 4, 11])
def test_a_search_never_needs_more_groups_than_it_has(bits: int, width: int) -> None:
    """Whatever survives: with as many prefixes as may be, with one, and with some that have ended."""
    bins = 1 << min(bits, 20)
    descent = Descent(bits, bins, max(2, bins >> width))
    generator = np.random.default_rng(7)
    for _ in range(200):
        left, used, is_open, ended = bits, 0, 1, 0
        while left:
            step = descent.width(is_open, ended, left)
            assert (step >= 1 and (is_open << step) + ended <= bins) or is_open == 0
            parts = (descent.groups - used) // (1 + descent.most_after(left - step))
            assert parts >= 1
            left, used = left - step, used + parts
            alive = int(generator.integers(1, descent.keep + 1)) if generator.random() < 0.7 else descent.keep
            ended = int(generator.integers(0, alive + 1))
            is_open = alive - ended
        assert used == descent.groups


def test_what_nobody_has_is_found_as_rarely_as_declared() -> None:
    """300 searches among people of whom nobody has a string: at most 2.5% may find one; Hoeffding, false alarm 1e-9."""
    search = _search(2_000, privacy=Privacy(2, 1e-3), length=1, top=3, alphabet=LETTERS)
    people = np.array([b"%"] * 2_000)
    bits, runs = RandomBits.seeded(3), 300
    wrong = sum(bool(search_heavy_hitters(search, people, bits=bits, fast=True)) for _ in range(runs))
    assert wrong / runs <= 0.025 + math.sqrt(math.log(1e9) / (2 * runs))
    # The twin that lets half of the bound pass finds strings that are not there.
    half = sum(_passes_half(search, people, bits) for _ in range(runs))
    assert half / runs > 0.5


def _passes_half(search: GroupSearch, people: np.ndarray, bits: RandomBits) -> bool:
    state = search.start()
    estimate = search.ask(state).sample_estimate(search.codes(state, people), bits=bits)
    return bool((estimate.value[:-1] >= estimate.bound / 2).any())


def _heard(plan: Any, counts: dict[int, float]) -> VectorEstimate:
    value = np.zeros(plan.bins)
    value[list(counts)] = list(counts.values())
    return VectorEstimate(value=value, standard_error=1.0, bound=plan.error_bound, confidence=0.95)


def _small(users: int = 40_000) -> GroupSearch:
    """A search of strings of a and b, three symbols of two bits and one for what is longer: two bits a level."""
    return GroupSearch(users=users, privacy=TARGET, length=3, top=2, alphabet=b"ab", bins=4, keep=2)


def test_a_level_depends_on_earlier_groups_only() -> None:
    search = _small()
    state = search.start()
    assert search.groups == 6 and search.ask(state).bins == 5 and state.depth == 0
    assert search.codes(state, ["", "a", "ab", "b", "c", "bé"]).tolist() == [0, 1, 1, 2, 4, 4]
    following = search.tell(state, _heard(search.ask(state), {0: 3_000, 2: 2_500, 1: 100}))
    # The empty string has ended and has one bin; what begins with b goes on by a bit beside it, in two of the others.
    assert following.depth == 2 and following.parts == 1 and search.ask(following).bins == 4
    assert search.codes(following, ["", "b", "ba", "bb", "a"]).tolist() == [0, 1, 1, 2, 3]
    nobody = search.tell(state, _heard(search.ask(state), {}))
    assert nobody.found == ()
    with pytest.raises(ParameterError, match="nothing more"):
        search.ask(nobody)
    with pytest.raises(ParameterError, match="must have 5 bins"):
        search.tell(state, VectorEstimate(value=np.zeros(3), standard_error=1.0, bound=1.0, confidence=0.95))


def test_when_all_strings_have_ended_everybody_who_is_left_counts_them() -> None:
    search = _small()
    state = search.tell(search.start(), _heard(search.first_level, {0: 3_000}))
    last = search.ask(state)
    assert last.users == 40_000 - 40_000 // 6 and last.bins == 2
    found = search.tell(state, _heard(last, {0: 20_000})).found
    assert [each.string for each in found] == [""] and found[0].count == pytest.approx(20_000 * 40_000 / last.users)


def test_every_user_is_in_one_group() -> None:
    search = GroupSearch(users=50_003, privacy=TARGET, length=4, top=1, alphabet=b"ab", bins=4, keep=2)
    state, sizes = search.start(), []
    while state.found is None:
        plan = search.ask(state)
        sizes.append(plan.users)
        state = search.tell(state, _heard(plan, dict.fromkeys(range(1, plan.bins - 1), plan.users / 2)))
    assert sum(sizes) == 50_003 and max(sizes) - min(sizes) == 1 and len(sizes) == search.groups


@pytest.mark.parametrize("alphabet", [b"ab", b"abcdefg", LETTERS, ANY_TEXT], ids=len)
def test_a_string_is_found_as_it_was_spelled(alphabet: bytes) -> None:
    words = UnlistedStrings(5, alphabet)
    generator = np.random.default_rng(8)
    letters = [bytes(generator.choice(list(alphabet), generator.integers(0, 9)).astype(np.uint8)) for _ in range(200)]
    strings = words.check_values(np.array(letters))
    bits = words.spelled(strings)
    assert bits.shape == (200, words.bits) and words.can_spell(strings).all()
    assert [words.string(row) for row in bits] == strings.tolist()
    ended = words.have_ended(bits[:, : 2 * words.symbol_bits])
    assert ended.tolist() == [len(word) < 2 for word in letters]


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


def test_intervals_hold_for_strings_that_were_chosen() -> None:
    """Of 3,000 strings of equal counts, the one with the most people in a random group is chosen.

    As good as in a search whose earlier groups are others: an interval for one fixed string fails nearly always, one
    that holds for all strings at once in 2.5% of runs at most (Hoeffding, false alarm 1e-9).
    """
    search = _search(300_000, length=8)
    group, share, runs = 300_000 // search.groups, 1 / 3_000, 400
    most = np.random.default_rng(9).binomial(group, share, (runs, 3_000)).max(axis=1)
    fails = {"fixed": 0, "search": 0}
    for count, times in zip(*np.unique(most, return_counts=True), strict=True):
        for name, failure in (("fixed", 0.05), ("search", search._sampling_failure)):
            fails[name] += times * (sampled_shares(count / group, group, failure)[0] > share)
    assert fails["fixed"] > runs / 2
    assert fails["search"] / runs <= 0.025 + math.sqrt(math.log(1e9) / (2 * runs))


def test_refusals_are_one_sentence() -> None:
    for asked in (
        {"users": 100, "length": 6},
        {"users": 5, "length": 6},
        {"users": 50_000, "length": 0},
        {"users": 50_000, "top": 0},
        {"users": 50_000, "alphabet": b"aa"},
        {"users": 50_000, "keep": 1},
        {"users": 50_000, "keep": 1 << 20},
        {"users": 50_000, "length": 65},
    ):
        with pytest.raises(ParameterError) as refused:
            _search(**asked)
        assert str(refused.value).endswith(".") and "\n" not in str(refused.value)
    with pytest.raises(InfeasibleError, match="too few"):
        _search(20, length=2, alphabet=b"ab")
    search = _search(50_000, length=2, alphabet=b"ab")
    with pytest.raises(ParameterError):
        search.as_bytes([1, 2])
    with pytest.raises(ParameterError):
        search_heavy_hitters(search, ["a"], bits=RandomBits.seeded(1))


def test_the_truth_is_told_by_strings_that_can_be_found() -> None:
    """Two characters cut in the middle are two strings, and what cannot be spelled is none."""
    search = _search(40_000, length=2, top=3)
    people = np.repeat(["€", "ℂ", "a", "a\0b"], [15_000, 10_000, 5_000, 10_000])
    assert search.true_value(people) == {"\\xe2\\x82…": 15_000, "\\xe2\\x84…": 10_000, "a": 5_000}
    found = {each.string for each in search_heavy_hitters(search, people, bits=RandomBits.seeded(1), fast=True)}
    assert found == set(search.true_value(people))
    assert "if it is among the top 3 of the estimates" in dict(search.facts())["finds"]


def test_all_strings_that_there_are_may_be_kept_and_no_more_asked_for() -> None:
    asked: dict[str, Any] = {"length": 2, "alphabet": b"abc"}
    assert _search(6_000, top=2, keep=65, **asked).groups == 1
    assert _search(6_000, top=100, **asked).keep >= 100
    with pytest.raises(ParameterError, match="top must be at most the 128 strings"):
        _search(6_000, top=200, **asked)


def test_strings_with_zeros_or_half_characters_are_other_at_every_level() -> None:
    """NumPy ends strings by zeros: cut after one, "a\\0b" looked like "a" and was reported as such."""
    search = _small(20_000)
    state = search.start()
    assert search.codes(state, ["", "a", "\0a", "\ud800", "é", "a\0b"]).tolist() == [0, 1, 4, 4, 4, 4]
    people = np.array([b"a\0b"] * 20_000)
    assert search_heavy_hitters(search, people, bits=RandomBits.seeded(1), fast=True) == ()
    assert np.array_equal(search.as_bytes(search.as_bytes(people)), search.as_bytes(people))


@pytest.mark.parametrize(
    ("field", "value"),
    [("alphabet", "abc"), ("alphabet", bytes(range(1, 256))), ("top", 1.5), ("length", 2.5), ("bins", 6), ("keep", 9)],
)
def test_what_is_no_alphabet_or_no_number_is_refused(field: str, value: object) -> None:
    with pytest.raises(ParameterError, match=f"^{field} must be"):
        GroupSearch(**{"users": 20_000, "privacy": TARGET, "length": 2, "top": 2, "bins": 16, "keep": 4, field: value})


def _abc(users: int = 6000, **more: Any) -> GroupSearch:
    return _search(users, length=2, top=2, alphabet=b"abc", **more)


@pytest.mark.parametrize("more", [{}, {"honest_fraction": 0.8, "max_messages": 40, "keep": 5}])
def test_a_search_is_saved_and_loaded(more: dict[str, Any]) -> None:
    plan = _abc(**more)
    document = json.loads(json.dumps(plan.document()))
    again = plan_from_document(document)
    assert again == plan and again.fingerprint == plan.fingerprint
    assert PROTOCOLS["heavy-hitters"] is HeavyHitters
    asked = {"users": 6000, "privacy": TARGET, "length": 2, "top": 2, "alphabet": "abc", **more}
    assert HeavyHitters.plan(method="prefixes", **asked) == plan
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
        assert (np.abs(answer.value - [20_000, 15_000]) <= answer.bounds).all()
        assert answer.bound <= plan.error_bound * (1 + 1e-12)
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


@pytest.mark.parametrize("length", [2, 24])
def test_a_searchs_privacy_is_that_of_every_level(length: int) -> None:
    # Short strings are found by one group of everybody, longer ones by several.
    plan = _search(6000, length=length, top=2, alphabet=b"abc")
    assert (plan.groups > 1) == (length > 2)
    first = plan.ask(plan.start())
    assert plan.guarantee().terms == first.guarantee().terms and plan.guarantee().holds
    assert plan.epsilon_with(0.5) == first.epsilon_with(0.5) > 1
    assert [row.epsilon for row in plan.collusions()] == [row.epsilon for row in first.collusions()]
    assert f"{first.users // 2:,} users of one's own group" in plan.collusions()[2].in_words
    entry = entry_of(plan, datetime(2026, 1, 31, tzinfo=UTC))
    assert type(entry.pair) is ClaimPair and entry.extra_delta == 0 and entry.description == "heavy-hitters by prefixes"
    assert entry.pair.claim == TARGET
    assert plan.influence > first.influence and "near the cut" in plan.lying_client


def test_a_search_is_audited_at_its_first_level() -> None:
    plan = _search(120, privacy=Privacy(4, 1e-3), length=1, top=1, alphabet=b"ab")
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
