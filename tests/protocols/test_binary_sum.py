import math

import numpy as np
import pytest

from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.messages import Batch
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.testing.protocols import check_protocol

TARGET = Privacy(1, 1e-6)
BAD = [[0, 2], [0, -1], [0.5, 1.0], [float("nan"), 1.0], [], ["a"], [[0, 1]], 1, [None, 1]]


SOME = Privacy(0.3, 1e-9)
LOOSE = Privacy(4, 1e-4)
CASES = [
    ("coins", 1, 1.0, TARGET),
    ("coins", 300, 0.5, TARGET),
    ("shares", 1, 1.0, TARGET),
    ("shares", 200, 0.9, LOOSE),
    ("rr", 250, 0.5, LOOSE),
    ("zsum", 250, 0.5, TARGET),
    ("poisson-bits", 250, 0.5, LOOSE),
    ("correlated", 250, 0.5, LOOSE),
    ("pure", 60, 0.5, LOOSE),
]
# The same methods with everybody honest, or with other noise: calibration is tested exactly below.
SWEPT = [
    ("coins", 400, 1.0, SOME),
    ("shares", 300, 0.5, TARGET),
    ("shares", 400, 1.0, SOME),
    ("rr", 60, 1.0, TARGET),
    ("zsum", 300, 1.0, LOOSE),
    ("poisson-bits", 30, 1.0, TARGET),
    ("correlated", 30, 1.0, TARGET),
    ("pure", 40, 1.0, TARGET),
]


@pytest.mark.parametrize(
    ("method", "users", "honest_fraction", "privacy"),
    [*CASES, *(pytest.param(*case, marks=pytest.mark.sweep) for case in SWEPT)],
)
def test_every_method_keeps_its_promises(method: str, users: int, honest_fraction: float, privacy: Privacy) -> None:
    plan = BinarySum.plan(users=users, privacy=privacy, method=method, honest_fraction=honest_fraction)
    check_protocol(plan, np.arange(users) % 3 != 0, BAD, runs=3000)


def test_every_method_is_checked() -> None:
    assert {case[0] for case in CASES} == set(BinarySum.methods)


@pytest.mark.parametrize(
    ("method", "constants"),
    [*[(m, "exact") for m in BinarySum.methods], *[(m, "paper") for m in ("coins", "shares", "correlated")]],
)
def test_what_is_claimed_is_what_is_proved(method: str, constants) -> None:
    plan = BinarySum.plan(users=2000, privacy=TARGET, method=method, constants=constants)
    guarantee = plan.guarantee()
    assert guarantee.holds and guarantee.delta == sum(term.value for term in guarantee.terms) <= TARGET.delta
    assert guarantee.pair.delta(1.0) <= guarantee.delta


@pytest.mark.parametrize("method", ["rr", "zsum", "poisson-bits", "pure"])
def test_methods_without_constants_of_a_paper_say_so(method: str) -> None:
    with pytest.raises(InfeasibleError, match="constants"):
        BinarySum.plan(users=1000, privacy=TARGET, method=method, constants="paper")


def test_the_most_accurate_method_is_picked_and_says_why() -> None:
    choice = BinarySum.choose(users=10_000, privacy=TARGET)
    assert choice.plan.method == "shares"
    assert "coins: standard error 5.83 with 2 messages" in choice.why
    assert all(method in choice.why for method in BinarySum.methods)


def test_a_limit_on_messages_is_kept() -> None:
    choice = BinarySum.choose(users=10_000, privacy=TARGET, max_messages=6)
    assert choice.plan.method == "poisson-bits" and choice.plan.messages_per_user_max <= 6
    assert "shares would send up to 9 messages" in choice.why
    few = BinarySum.choose(users=10_000, privacy=TARGET, max_messages=2)
    assert few.plan.method == "rr", "of three methods with one error, the one with the fewest messages"
    with pytest.raises(InfeasibleError, match="max_messages must be at least 2"):
        BinarySum.plan(users=10_000, privacy=TARGET, max_messages=1, method="coins")
    with pytest.raises(InfeasibleError, match="max_messages must be at least 9"):
        BinarySum.plan(users=10_000, privacy=TARGET, max_messages=2, method="shares")


def test_a_method_that_cannot_is_passed_over() -> None:
    choice = BinarySum.choose(users=1000, privacy=Privacy(2, 1e-6), constants="paper")
    assert choice.plan.method == "shares" and "coins cannot" in choice.why
    with pytest.raises(InfeasibleError, match="epsilon <= 1"):
        BinarySum.plan(users=1000, privacy=Privacy(2, 1e-6), constants="paper", method="coins")
    tiny = BinarySum.choose(users=1000, privacy=Privacy(1, 1e-40))
    assert tiny.plan.method == "pure" and "shares cannot" in tiny.why


@pytest.mark.parametrize(
    ("change", "parameter"),
    [
        ({"users": 0}, "users"),
        ({"users": -5}, "users"),
        ({"users": 2.5}, "users"),
        ({"users": True}, "users"),
        ({"users": 10**13}, "users"),
        ({"method": "magic"}, "method"),
        ({"honest_fraction": 0}, "honest_fraction"),
        ({"honest_fraction": 1.5}, "honest_fraction"),
        ({"max_messages": 0}, "max_messages"),
        ({"constants": "guess"}, "constants"),
    ],
)
def test_bad_parameters_are_named(change, parameter: str) -> None:
    with pytest.raises(ParameterError) as caught:
        BinarySum.plan(**{"users": 1000, "privacy": TARGET} | change)
    assert caught.value.parameter == parameter
    assert str(caught.value).endswith(".")


def test_bad_values_are_named_with_their_row() -> None:
    plan = BinarySum.plan(users=4, privacy=TARGET)
    for values, said in (
        ([0, 1, 7, 1], "7 in row 3"),
        ([0.0, math.nan, 1.0, 1.0], "NaN in row 2"),
        (np.array([0.0, 1.0, 0.5, 1.0]), "0.5 in row 3"),
        (["yes", "no", "no", "no"], "dtype <U3"),
    ):
        with pytest.raises(ParameterError, match=said):
            plan.check_values(values)
    # A column with a missing value is one of floats in most tools: 1.0 is 1.
    assert plan.check_values([0.0, 1.0, 1.0, -0.0]).tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize(
    ("method", "fraction"),
    [(m, f) for m in ("coins", "shares") for f in (0.9, 0.5, 1 / 3)]
    + [(m, 0.5) for m in ("rr", "zsum", "poisson-bits", "correlated")],
)
def test_a_plan_for_dropouts_still_meets_epsilon(method: str, fraction: float) -> None:
    plan = BinarySum.plan(users=600, privacy=TARGET, method=method, honest_fraction=fraction)
    assert plan.epsilon_with(fraction) <= 1 + 1e-9
    assert plan.epsilon_with(1.0) < 1
    unprepared = BinarySum.plan(users=600, privacy=TARGET, method=method)
    assert unprepared.epsilon_with(fraction) > 1.05


def test_a_pure_plan_counts_on_few_users_and_needs_no_more() -> None:
    plan = BinarySum.plan(users=1000, privacy=TARGET, method="pure")
    assert plan.epsilon_with(0.5) <= 1
    small = BinarySum.plan(users=40, privacy=TARGET, method="pure")
    assert small.epsilon_with(0.5) > 1


@pytest.mark.parametrize("method", ["coins", "shares"])
def test_what_collusions_reveal(method: str) -> None:
    rows = {row.parties: row for row in BinarySum.plan(users=10_000, privacy=TARGET, method=method).collusions()}
    assert rows["analyzer alone"].epsilon == 1
    assert rows["analyzer + 0.1 of the users"].epsilon == pytest.approx(1.095, abs=0.005)
    assert rows["analyzer + shuffler"].epsilon is None


def test_one_method_protects_from_the_analyzer_and_the_shuffler_together() -> None:
    rows = {row.parties: row for row in BinarySum.plan(users=1000, privacy=TARGET, method="rr").collusions()}
    assert rows["analyzer + shuffler"].epsilon == pytest.approx(3.45, abs=0.05)
    assert rows["analyzer + shuffler"].delta == 0


def test_references() -> None:
    reference = BinarySum.plan(users=10_000, privacy=TARGET).reference()
    assert reference["central_standard_error"] == pytest.approx(1.357, abs=5e-4)
    assert reference["local_standard_error"] == pytest.approx(95.9, abs=0.1)
    assert reference["paper_standard_error"] == pytest.approx(25.45, abs=0.01)
    assert BinarySum.plan(users=10_000, privacy=Privacy(2, 1e-6)).reference()["paper_standard_error"] is None


@pytest.mark.parametrize("users", [1, 2, 7, 80, 81, 10**3, 10**5, 10**7, 10**9])
@pytest.mark.parametrize("epsilon", [0.02, 0.3, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
def test_plans_over_the_whole_range(users: int, epsilon: float, delta: float) -> None:
    for method in ("coins", "shares"):
        plan = BinarySum.plan(users=users, privacy=Privacy(epsilon, delta), method=method)
        assert plan.guarantee().holds


@pytest.mark.parametrize("method", ["rr", "zsum", "poisson-bits", "correlated", "pure"])
@pytest.mark.parametrize(("users", "epsilon", "delta"), [(10**6, 0.2, 1e-9), (300, 5.0, 1e-3), (5000, 1.0, 1e-12)])
def test_the_other_methods_over_a_range(method: str, users: int, epsilon: float, delta: float) -> None:
    assert BinarySum.plan(users=users, privacy=Privacy(epsilon, delta), method=method).guarantee().holds


def test_a_client_that_sends_only_minus_ones_moves_a_correlated_sum_as_said() -> None:
    """As many messages as are taken from one user, all minus ones instead of plus ones."""
    plan = BinarySum.plan(users=200, privacy=Privacy(1, 1e-6), method="correlated")
    honest = np.ones(200, dtype=np.uint8)
    most = plan.messages_per_user_max
    up, down = (np.concatenate((honest[1:], np.full(most, sign, dtype=np.uint8))) for sign in (1, 0))
    moved = plan.analyze(Batch(up, 200)).value - plan.analyze(Batch(down, 200)).value
    assert moved == plan.influence == 2 * most
