"""Plans of running counts: figures, exact composition, dropouts, files, refusals."""

import dataclasses
import json
import time

import pytest

from shuffledp.accounting.composition import Composition
from shuffledp.accounting.laws import Binomial, DiscreteLaplace
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.continual.bounds import horizon_bound, sum_tails
from shuffledp.continual.certified import certified_rank, certify
from shuffledp.continual.noise import calibrate
from shuffledp.continual.plan import CounterPlan
from shuffledp.continual.planner import layout_bound
from shuffledp.continual.reference import counter_reference
from shuffledp.continual.request import CountRequest
from shuffledp.errors import InfeasibleError, ParameterError, ShuffleDPError
from shuffledp.privacy import Privacy
from shuffledp.protocols.catalogue import plan_from_document
from shuffledp.protocols.sums.noise import CoinNoise, LaplaceNoise, SkellamNoise
from shuffledp.schedules.combinatorial import slots

PRIVACY = Privacy(1, 1e-6)


@pytest.mark.parametrize(
    ("users", "shufflers", "noise", "limit"),
    [
        (10**6, 4, "auto", 160),
        (10**6, 2, "auto", 192),
        (10**6, 1, "auto", 490),
        (10**6, 8, "coins", 192),
        (10**5, 4, "auto", 114),
        (10**4, 3, "auto", 70),
        (10**8, 5, "auto", 292),
    ],
)
def test_the_bounds_of_the_design_are_kept(users: int, shufflers: int, noise: str, limit: float) -> None:
    plan = CounterPlan.plan(users=users, shufflers=shufflers, privacy=PRIVACY, noise=noise)
    assert plan.error_bound <= limit and plan.shufflers_used <= shufflers


@pytest.mark.parametrize(
    ("users", "shufflers", "budget", "bound"),
    [(10**4, 3, 11, 68.5), (10**4, 4, 7, 77.0), (10**5, 4, 14, 112.0), (10**6, 3, 44, 158.5), (10**6, 4, 24, 158.0)],
)
def test_layouts_of_the_design_have_its_bounds(users: int, shufflers: int, budget: int, bound: float) -> None:
    asked = CountRequest(users=users, shufflers=shufflers, privacy=PRIVACY)
    assert layout_bound(asked, budget, shufflers, calibrate("laplace", shufflers, PRIVACY)) == bound


@pytest.mark.parametrize(("batches", "coins"), [(1, 80), (2, 148), (4, 288), (10, 716), (20, 1430)])
def test_coins_compose_as_in_the_design(batches: int, coins: int) -> None:
    """The design's 715 and 1429 are odd; a batch has an even number of coins."""
    assert calibrate("coins", batches, PRIVACY).coins == coins
    assert Composition([(ShiftPair(Binomial(coins - 2, 0.5)), batches)]).delta(1.0) > 1e-6


def test_laplace_takes_its_part_of_epsilon() -> None:
    for batches in (1, 2, 4, 8):
        assert calibrate("laplace", batches, PRIVACY).pair().pure_epsilon * batches == pytest.approx(1.0)
    assert calibrate("laplace", 10, PRIVACY).pair().pure_epsilon * 10 > 1


@pytest.mark.parametrize("family", ["laplace", "coins", "skellam"])
def test_a_twin_with_a_fifth_less_noise_cannot_be_made(family: str) -> None:
    plan = CounterPlan.plan(users=5000, shufflers=3, privacy=PRIVACY, noise=family)
    quieter = {
        "laplace": lambda: LaplaceNoise(plan.batch_noise.ratio**1.12),
        "coins": lambda: CoinNoise(2 * int(0.4 * plan.batch_noise.coins)),
        "skellam": lambda: SkellamNoise(0.8 * plan.batch_noise.variance),
    }[family]()
    assert quieter.law().variance == pytest.approx(0.8 * plan.batch_noise.law().variance, rel=0.02)
    with pytest.raises(InfeasibleError, match="noise"):
        dataclasses.replace(plan, batch_noise=quieter)


def test_tails_are_those_of_the_sum() -> None:
    """Against a direct convolution, and the union against adding it up by hand."""
    import numpy as np

    law = DiscreteLaplace(0.6)
    tails = sum_tails(law, 5)
    k = np.arange(-400, 401)
    one = np.exp(law.log_pmf(k * 1.0))
    total = one
    for count in range(1, 6):
        a = np.arange(0, 40)
        middle = (total.size - 1) // 2
        exact = [1 - total[middle - x : middle + x + 1].sum() for x in a]
        above = tails.tails[:40, count - 1] - exact
        assert (above >= 0).all() and (above < 2e-12).all()
        total = np.convolve(total, one)
    bound = horizon_bound(tails, 5, lambda j: slots(j, 2), 0.05)
    union = [sum((j + 1) * tails.tails[a, j - 1] for j in range(1, 6)) for a in (bound - 1, bound)]
    assert union[1] <= 0.05 < union[0]


@pytest.mark.parametrize("noise", [Binomial(2, 0.5), Binomial(40, 0.5)], ids=str)
def test_tails_of_very_many_noises_are_bounds_with_their_rounding(noise: Binomial) -> None:
    """Sums of coins are coins: their tails are known to all digits."""
    import numpy as np

    tails = sum_tails(noise, 400_000, 3.0)
    errors = []
    for column in (0, 1, 40, -2, -1):
        count = int(tails.counts[column])
        law = Binomial(count * noise.trials, 0.5)
        rows = np.arange(0, len(tails.tails), 37)
        exact = np.array([law.sf(law.mean + a) + law.cdf(law.mean - a - 1) for a in rows * tails.stride])
        above = tails.tails[rows, column] - exact
        assert tails.width == 1 and (above > 0).all()
        errors.append(float(above.max()))
    # It grows with their number: beyond some ten thousand noises more than the least that is added to all.
    assert errors[0] < 2e-12 and 2e-12 < errors[-1] < 1e-6


def test_what_rounds_too_much_is_refused() -> None:
    tails = sum_tails(Binomial(2, 0.5), 400_000, 3.0)
    with pytest.raises(InfeasibleError, match=r"so many releases at once.* of the people with one counter"):
        horizon_bound(tails, 400_000, lambda j: j**3, 0.05)


def test_groups_of_sums_are_upper_bounds() -> None:
    law = calibrate("laplace", 1, PRIVACY).law()
    fine, rough = sum_tails(law, 400, 1.001), sum_tails(law, 400, 1.2)
    exact, upper = (horizon_bound(t, 377, lambda j: 1 + j, 0.05) for t in (fine, rough))
    assert exact <= upper <= 1.1 * exact


def test_planning_a_billion_users_is_quick() -> None:
    for shufflers in (1, 4, 30):
        started = time.process_time()
        plan = CounterPlan.plan(users=10**9, shufflers=shufflers, privacy=PRIVACY)
        assert plan.messages_per_user_mean > 1
        assert time.process_time() - started < 6  # 2 s by itself on an idle core; see make bench


def test_references() -> None:
    reference = counter_reference(CounterPlan.plan(users=10**6, shufflers=4, privacy=PRIVACY))
    assert reference["paper_error_bound"] == pytest.approx(3666, abs=1) and reference["paper_error_bound"] > 22 * 154
    assert reference["central_error_bound"] == pytest.approx(96.5, abs=0.1) and 154 < 1.6 * 96.5
    assert 154 < reference["uniform_tree_error_bound"] < 284
    assert reference["sequential_error_bound"] < 490 and reference["local_error_bound"] > 2000


def test_a_certificate_is_smaller_than_the_proof_and_repeatable() -> None:
    plan = CounterPlan.plan(users=20_000, shufflers=3, privacy=PRIVACY)
    certified = certify(plan, runs=2000)
    assert 0.8 * plan.error_bound < certified.error_bound < plan.error_bound
    assert certify(plan, runs=2000) == certified and certified.document()["bound"] == "certified"
    assert certify(plan, runs=2000, seed=2).error_bound == pytest.approx(certified.error_bound, rel=0.05)
    assert 9500 < certified_rank(10_000, 0.95) < 9600
    with pytest.raises(ParameterError, match="runs"):
        certify(plan, runs=10)
    with pytest.raises(ParameterError, match="certified_noise_bound"):
        dataclasses.replace(plan, certified_noise_bound=10**6)


@pytest.mark.parametrize(("family", "costs"), [("laplace", 1.2), ("coins", 6.0)])
def test_dropouts(family: str, costs: float) -> None:
    """Coins cost more where users are not trusted: of a large batch every user must toss one."""
    plan = CounterPlan.plan(users=20_000, shufflers=2, privacy=PRIVACY, noise=family)
    assert plan.epsilon_with(1) <= 1 < plan.epsilon_with(0.9)
    robust = CounterPlan.plan(users=20_000, shufflers=2, privacy=PRIVACY, noise=family, honest_fraction=0.9)
    assert robust.epsilon_with(0.9) <= 1 and plan.error_bound < robust.error_bound < costs * plan.error_bound
    assert robust.surplus >= 1 / 0.9 - 1e-9
    assert [row.parties for row in plan.collusions()][-1] == "analyzer + a shuffler"


def test_every_term_of_delta_is_listed_and_within_the_claim() -> None:
    for family in ("laplace", "coins", "skellam"):
        terms = CounterPlan.plan(users=9000, shufflers=3, privacy=PRIVACY, noise=family).delta_terms(1.0, 9000)
        assert {term.name for term in terms} == {"noise", "transport", "sampling"}
        assert sum(term.value for term in terms) <= 1e-6


def test_files_are_read_back_and_changes_refused() -> None:
    plan = CounterPlan.plan(users=5000, shufflers=3, privacy=PRIVACY)
    document = json.loads(json.dumps(plan.document(), allow_nan=False))
    assert plan_from_document(document) == plan
    for key, value in document.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            with pytest.raises(ParameterError):
                plan_from_document(document | {key: value * 0.9 + 0.01})
    for bad in (None, {}, {"protocol": "counter"}, document | {"noise": {"family": "none"}}):
        with pytest.raises(ParameterError):
            plan_from_document(bad)


@pytest.mark.parametrize(
    ("change", "parameter"),
    [
        ({"shufflers": 0}, "shufflers"),
        ({"shufflers": 2.5}, "shufflers"),
        ({"users": 0}, "users"),
        ({"users": 3}, "users"),
        ({"confidence": 1.0}, "confidence"),
        ({"noise": "gauss"}, "noise"),
        ({"honest_fraction": 0.0}, "honest_fraction"),
    ],
)
def test_bad_parameters_are_named(change, parameter: str) -> None:
    with pytest.raises(ParameterError) as refused:
        CounterPlan.plan(**({"users": 1000, "shufflers": 2, "privacy": PRIVACY} | change))
    assert refused.value.parameter == parameter


@pytest.mark.parametrize(
    ("users", "epsilon", "fraction"), [(2345, 4.0588, 0.05), (353, 0.72808, 0.02), (224, 8.02982, 0.3)]
)
def test_more_honest_users_than_planned_leave_at_most_the_plans_epsilon(users, epsilon, fraction) -> None:
    """Batches with one honest user send one share each: their messages are not mixed, however many are honest."""
    plan = CounterPlan.plan(users=users, shufflers=1, privacy=Privacy(epsilon, 1e-6), honest_fraction=fraction)
    assert plan.epsilon_with(1.0) == pytest.approx(epsilon)
    assert plan.delta_terms(0.5 * epsilon, users)[1].value >= 1


def test_a_delta_below_what_tables_round_is_refused() -> None:
    with pytest.raises(InfeasibleError, match="delta"):
        CounterPlan.plan(users=10**9, shufflers=3, privacy=Privacy(60, 1e-6), noise="laplace")
    plan = CounterPlan.plan(users=1000, shufflers=3, privacy=Privacy(45, 1e-6), noise="laplace")
    assert all(term.value >= 0 for term in plan.delta_terms(45, 1000)) and plan.messages_per_user_max > 1


@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 0.01), (1, 1e-2), (0.1, 1e-4), (1, 1e-6)])
def test_auto_is_no_worse_than_any_share_noise(epsilon: float, delta: float) -> None:
    asked = {"users": 10**5, "shufflers": 4, "privacy": Privacy(epsilon, delta)}
    best = CounterPlan.plan(**asked).error_bound
    for family in ("laplace", "skellam"):
        assert best <= 1.01 * CounterPlan.plan(**asked, noise=family).error_bound


def test_no_coin_left_is_no_privacy() -> None:
    plan = CounterPlan.plan(users=10**4, shufflers=1, privacy=Privacy(0.5, 0.55), noise="coins")
    assert plan.epsilon_with(0.1) == float("inf")
    for bad in (0, 3, -2, True, 2.0):
        with pytest.raises(ParameterError, match="coins"):
            CoinNoise(bad)


def test_a_certificate_that_would_take_days_is_refused() -> None:
    with pytest.raises(InfeasibleError, match="proved bound"):
        certify(CounterPlan.plan(users=10**9, shufflers=4, privacy=PRIVACY))


@pytest.mark.parametrize("noise", ["laplace", "coins"])
@pytest.mark.parametrize("name", ["budget", "shufflers_used"])
@pytest.mark.parametrize("wrong", [True, 1.5, None, "1"])
def test_a_schedule_is_whole_numbers(noise: str, name: str, wrong: object) -> None:
    document = CounterPlan.plan(users=300, shufflers=2, privacy=PRIVACY, noise=noise).document()
    with pytest.raises(ShuffleDPError, match=name):
        plan_from_document(document | {name: wrong})


def test_a_fingerprint_is_computed_once_and_not_kept_by_a_changed_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = CounterPlan.plan(users=300, shufflers=2, privacy=PRIVACY, noise="laplace")
    asked = []
    decides = CounterPlan._decides
    monkeypatch.setattr(CounterPlan, "_decides", lambda plan: asked.append(plan) or decides(plan))
    counter = plan.learner()
    state = counter.start()
    for _ in range(3):
        counter.ask(state)
        plan.learner().estimate(state)
    assert asked == [plan]
    for other in (dataclasses.replace(plan, confidence=0.9), plan.twin(0.5)):
        assert other.fingerprint != plan.fingerprint
