"""How one finds out that a mechanism lies."""

import numpy as np
import pytest
from scipy import special

from shuffledp.audit import trials as trials_module
from shuffledp.audit.events import Outcomes, epsilon_lower_bound, find, lower_limit, upper_limit
from shuffledp.audit.trials import audit_plan
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.randomness import RandomBits

USERS = {"coins": 8, "shares": 8, "rr": 30, "zsum": 40, "poisson-bits": 6, "correlated": 6, "pure": 12}
LOOSE = Privacy(1, 1e-3)  # events are likelier, so that fewer runs show them


@pytest.mark.parametrize("method", BinarySum.methods)
def test_an_honest_plan_stands_and_half_the_noise_is_refuted(method: str) -> None:
    plan = BinarySum.plan(users=USERS[method], privacy=LOOSE, method=method)
    trials = 1_500_000 if method in ("coins", "poisson-bits", "zsum") else 200_000
    honest = audit_plan(plan, bits=RandomBits.seeded(1), trials=trials)
    assert honest.verdict == "stands" and honest.epsilon_lower_bound <= honest.epsilon_exact
    half = audit_plan(plan, bits=RandomBits.seeded(2), trials=trials, sabotage=0.5)
    assert half.verdict == "refuted", half


def test_dropouts_are_exposed() -> None:
    plan = BinarySum.plan(users=8, privacy=LOOSE, method="shares")
    audited = audit_plan(plan, bits=RandomBits.seeded(1), trials=200_000, honest_fraction=0.25)
    assert audited.verdict == "refuted" and 1 < audited.epsilon_lower_bound <= audited.epsilon_exact
    prepared = BinarySum.plan(users=8, privacy=LOOSE, method="shares", honest_fraction=0.25)
    assert audit_plan(prepared, bits=RandomBits.seeded(1), trials=100_000).verdict == "stands"


def lengths(inputs: list[int], allowed: dict[int, list[int]], trials: int, seed: int) -> np.ndarray:
    """Total numbers of messages of a protocol in which an input chooses a set of equally likely lengths."""
    rng = np.random.default_rng(seed)
    return sum(rng.choice(allowed[bit], trials) for bit in inputs).reshape(-1, 1)


def test_the_brittle_pure_protocol_of_theorem_36_is_exposed() -> None:
    """Private with n users, not with n - 1. The printed inputs are wrong: 1...1 against 1...10 tell."""
    n = 4
    allowed = {0: list(range(n + 3)), 1: [0, 1, n + 1, n + 2]}

    def bound(users: int) -> float:
        p, q = (lengths([1] * (users - 1) + [bit], allowed, 400_000, seed) for bit, seed in ((0, 1), (1, 2)))
        return find(Outcomes.of(p), Outcomes.of(q), delta=0.0, confidence=0.999).epsilon_lower_bound

    exact = np.array([exact_ratio([1] * (n - 1), allowed)])
    assert bound(n) <= exact
    assert bound(n - 1) > 4 > exact


def exact_ratio(others: list[int], allowed: dict[int, list[int]]) -> float:
    laws = []
    for bit in (0, 1):
        law = np.ones(1)
        for value in [*others, bit]:
            one = np.zeros(max(map(max, allowed.values())) + 1)
            one[allowed[value]] = 1 / len(allowed[value])
            law = np.convolve(law, one)
        laws.append(law)
    return float(np.abs(np.log(laws[0]) - np.log(laws[1])).max())


def test_the_brittle_protocol_of_theorem_37_is_exposed() -> None:
    """With n users the views overlap; with n - 1 they are disjoint."""
    n = 6
    allowed = {0: [0, 1], 1: [n, n + 1]}
    p, q = (lengths([0] * (n - 2) + [bit], allowed, 20_000, seed) for bit, seed in ((0, 1), (1, 2)))
    finding = find(Outcomes.of(p), Outcomes.of(q), delta=0.5, confidence=0.999)
    assert finding.epsilon_lower_bound > 5


def test_the_bound_is_wrong_as_rarely_as_it_says() -> None:
    """Two inputs with one law, 1000 audits at 90%: epsilon > 0 is claimed in at most about a tenth."""
    rng = np.random.default_rng(1)
    wrong = sum(
        find(
            *(Outcomes.of(rng.binomial(10, 0.5, (2000, 1))) for _ in range(2)), delta=0.0, confidence=0.9
        ).epsilon_lower_bound
        > 0
        for _ in range(1000)
    )
    assert wrong <= 100 + 4 * np.sqrt(90)


def test_an_event_is_not_tested_on_the_trials_that_chose_it() -> None:
    """One law with a thousand outcomes: among so many some event is always far likelier on the trials that chose it."""
    rng = np.random.default_rng(2)
    wrong = sum(
        find(
            *(Outcomes.of(rng.integers(0, 1000, (2000, 1))) for _ in range(2)), delta=0.0, confidence=0.9
        ).epsilon_lower_bound
        > 0
        for _ in range(100)
    )
    assert wrong <= 10 + 4 * np.sqrt(9)


def test_both_inputs_must_be_run_equally_often() -> None:
    rows = np.zeros((100, 1), dtype=np.int64)
    with pytest.raises(ParameterError, match="trials"):
        find(Outcomes.of(rows), Outcomes.of(rows[:60]), delta=0.0, confidence=0.9)


def test_clopper_pearson_limits() -> None:
    assert epsilon_lower_bound(np.array(0), np.array(5), 100, 0.0, 0.01) == 0
    assert epsilon_lower_bound(np.array(100), np.array(0), 100, 0.0, 0.01) > 2
    assert epsilon_lower_bound(np.array(50), np.array(50), 100, 0.0, 0.01) == 0


@pytest.mark.parametrize("error", [0.1, 1e-3])
def test_limits_are_wrong_exactly_as_often_as_they_say(error: float) -> None:
    trials = 40
    for seen in range(trials + 1):
        low, high = (float(limit(np.array(seen), trials, error)) for limit in (lower_limit, upper_limit))
        assert low <= seen / trials <= high
        if seen > 0:
            # As many successes, or more, would be rarer than this at any smaller probability.
            assert special.bdtrc(seen - 1, trials, low) == pytest.approx(error, rel=1e-6)
        if seen < trials:
            assert special.bdtr(seen, trials, high) == pytest.approx(error, rel=1e-6)
    assert (float(lower_limit(np.array(0), trials, error)), float(upper_limit(np.array(40), trials, error))) == (0, 1)


def test_a_bound_on_epsilon_divides_its_error_and_leaves_delta_out() -> None:
    p, q = np.array(700), np.array(60)
    low, high = (float(limit(seen, 1000, 0.005)) for limit, seen in ((lower_limit, p), (upper_limit, q)))
    for delta in (0.0, 0.3):
        bound = float(epsilon_lower_bound(p, q, 1000, delta, 0.01))
        assert bound == pytest.approx(np.log((low - delta) / high)) and bound > 0
    assert epsilon_lower_bound(p, q, 1000, 0.69, 0.01) == 0


@pytest.mark.parametrize("turned", [False, True])
def test_an_event_is_found_in_either_direction(turned: bool) -> None:
    """A rare outcome that one input never has tells them apart in one direction only."""
    rng = np.random.default_rng(3)
    sides = [Outcomes.of((rng.random((20_000, 1)) < share).astype(np.int64)) for share in (0.02, 0.0)]
    finding = find(*(reversed(sides) if turned else sides), delta=0.0, confidence=0.999)
    assert finding.epsilon_lower_bound > 2
    assert 0.01 < finding.event_probability < 0.03 and finding.other_probability == 0


def test_all_trials_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """In pieces or at once, the bound is that of all trials."""
    plan = BinarySum.plan(users=20, privacy=LOOSE, method="shares")
    whole = audit_plan(plan, bits=RandomBits.seeded(4), trials=20_000, sabotage=0.3)
    monkeypatch.setattr(trials_module, "_AT_A_TIME", 1 << 11)
    pieces = audit_plan(plan, bits=RandomBits.seeded(4), trials=20_000, sabotage=0.3)
    assert whole.trials == pieces.trials == 20_000
    assert (
        pieces.epsilon_lower_bound == pytest.approx(whole.epsilon_lower_bound, rel=0.15) and whole.verdict == "refuted"
    )


def test_a_bound_below_the_claim_refutes_nothing() -> None:
    plan = BinarySum.plan(users=8, privacy=LOOSE, method="shares")
    result = audit_plan(plan, bits=RandomBits.seeded(1), trials=400_000)
    # The claim is met, and almost reached.
    assert 0.8 * LOOSE.epsilon < result.epsilon_lower_bound <= LOOSE.epsilon and result.verdict == "stands"


def test_sabotage_takes_away_what_it_says() -> None:
    for method in BinarySum.methods:
        plan = BinarySum.plan(users=200, privacy=Privacy(1, 1e-6), method=method)
        assert plan.twin(0.5).standard_error < 0.8 * plan.standard_error, method


@pytest.mark.parametrize(
    ("change", "parameter"),
    [({"trials": 5}, "trials"), ({"confidence": 1.0}, "confidence"), ({"sabotage": 0.0}, "sabotage")],
)
def test_bad_parameters_are_named(change, parameter: str) -> None:
    with pytest.raises(ParameterError, match=parameter):
        audit_plan(BinarySum.plan(users=8, privacy=LOOSE, method="shares"), bits=RandomBits.seeded(1), **change)
