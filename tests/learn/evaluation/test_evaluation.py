"""Private metrics: brackets by brute force, intervals that hold together, and twins whose intervals do not."""

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse, stats

from shuffledp import Privacy
from shuffledp.accounting.ledger import Ledger
from shuffledp.errors import DataError, InfeasibleError, ParameterError, RepeatedFitWarning
from shuffledp.estimates import VectorEstimate
from shuffledp.learn import ShuffleLogisticRegression, evaluate
from shuffledp.learn.evaluation import EvaluationPlan, Metric, ScoreCells, evaluate_scores, people_needed, planned
from shuffledp.learn.evaluation.bands import area, area_interval, prefix_band
from shuffledp.learn.evaluation.constants import constant_answers
from shuffledp.learn.evaluation.enough import expected_width, judged
from shuffledp.learn.evaluation.evaluating import scored, true_metrics
from shuffledp.randomness import RandomBits
from shuffledp.simulation.run import simulate

PRIVACY = Privacy(1, 1e-6)
PLAN = EvaluationPlan.plan(users=1000, privacy=PRIVACY)
EVALUATED = PLAN.read(VectorEstimate(value=np.full(64, 1000 / 64), standard_error=0.0, bound=0.0, confidence=1.0))
LINEAR = {
    "right": "accuracy",
    "positive": "positive_rate",
    "log_loss": "log_loss",
    "brier": "brier",
    "predicted": "mean_prediction",
}


def _people(count: int, seed: int, spread: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    logits = rng.normal(-1.0, spread, count)
    return logits, (rng.random(count) < 1 / (1 + np.exp(-0.8 * logits))).astype(np.int64)


@pytest.mark.parametrize("bins", [2, 8, 64])
def test_every_person_is_between_the_weights_of_its_cell(bins: int) -> None:
    """All metrics that are means, person by person: the cell's least and most enclose what the person adds."""
    cells = ScoreCells(bins=bins, limit=3.0)
    logits, labels = _people(500, 1, spread=4.0)
    logits = np.concatenate([logits, cells.edges, [-1e9, 1e9, 0.0]])
    labels = np.concatenate([labels, np.arange(bins + 1) % 2, [1, 0, 1]])
    codes = cells.codes(logits, labels)
    for name, metric in LINEAR.items():
        least, most = getattr(cells, name)
        for person in range(len(logits)):
            own = slice(person, person + 1)
            exact = true_metrics(logits[own], labels[own], limit=3.0, scores="probabilities")[metric]
            assert least[codes[person]] - 1e-12 <= exact <= most[codes[person]] + 1e-12
    # Halving intervals halves what binning may cost.
    fine = ScoreCells(bins=2 * bins, limit=3.0)
    assert np.subtract(*fine.log_loss[::-1]).max() < 0.6 * np.subtract(*cells.log_loss[::-1]).max()


def test_the_area_is_the_part_of_pairs_in_order() -> None:
    logits, labels = _people(300, 2)
    cells = ScoreCells(bins=16, limit=3.0)
    prefixes = np.concatenate([[0], np.cumsum(np.bincount(cells.codes(logits, labels), minlength=32))]).astype(float)
    coarse = np.searchsorted(cells.edges[1:-1], logits, side="left")
    wins = [(a > b) + 0.5 * (a == b) for a in coarse[labels == 1] for b in coarse[labels == 0]]
    assert area(prefixes) == pytest.approx(np.mean(wins), abs=1e-12)
    exact = true_metrics(logits, labels, limit=3.0, scores="scores")["auc"]
    assert area(prefixes, ties=0.0) <= exact <= area(prefixes, ties=1.0)
    pairs = [(a > b) + 0.5 * (a == b) for a in logits[labels == 1] for b in logits[labels == 0]]
    assert exact == pytest.approx(np.mean(pairs), abs=1e-12)
    assert area(np.array([0.0, 3.0, 3.0, 3.0, 3.0])) is None


@pytest.mark.parametrize("seed", range(6))
def test_the_interval_of_the_area_is_the_least_and_the_most_of_all_counts_in_the_band(seed: int) -> None:
    """Brute force: every rising sequence of whole numbers in the band, with all ties lost and all ties won."""
    rng, users = np.random.default_rng(seed), 8
    estimates = np.sort(rng.uniform(1, 7, 5))
    low, high = prefix_band(np.append(estimates, 8.0) + rng.normal(scale=0.4, size=6), 1.3, users)
    found = []
    for middle in itertools.product(*(np.arange(a, b + 1) for a, b in zip(low[1:-1], high[1:-1], strict=True))):
        prefixes = np.array([0.0, *middle, users])
        if (np.diff(prefixes) >= 0).all() and 0 < prefixes[3] < users:
            found.append((area(prefixes, ties=0.0), area(prefixes, ties=1.0)))
    least, most = area_interval(low, high)
    if 1 <= low[3] <= high[3] <= users - 1:
        assert least == pytest.approx(min(ends[0] for ends in found))
        assert most == pytest.approx(max(ends[1] for ends in found))
    else:
        assert (least, most) == (0.0, 1.0)


def _misses(plan: EvaluationPlan, runs: int, *, noisier: EvaluationPlan | None = None) -> int:
    """Runs in which any interval, those of the groups as well, misses the truth; noise of another plan if given."""
    logits, labels = _people(plan.users, 3)
    codes, bits = plan.cells.codes(logits, labels), RandomBits.seeded(4)
    truth = true_metrics(logits, labels, limit=plan.cells.limit, scores="probabilities")
    chances, missed = 1 / (1 + np.exp(-logits)), 0
    for _ in range(runs):
        found = plan.read((noisier or plan).ranges.sample_estimate(codes, bits=bits))
        holds = [metric.lower <= truth[name] <= metric.upper for name, metric in found.metrics.items()]
        for group in found.calibration:
            rate = labels[(chances > group.low) & (chances <= group.high)].mean()
            holds.append(group.rate.lower - 1e-12 <= rate <= group.rate.upper + 1e-12)
        missed += not all(holds)
    return missed


def test_all_intervals_hold_together() -> None:
    """At most 5% of runs may miss anything: more than 30 of 200 would, if it were exactly 5%, with chance 3e-8.

    Twins: the noise of a third of epsilon read as if it were that of all of it, and coarse bins without their error.
    """
    runs, most = 200, 30
    assert stats.binom.sf(most, runs, 0.05) < 3e-8
    plan = EvaluationPlan.plan(users=3000, privacy=PRIVACY, bins=32)
    assert _misses(plan, runs) <= most
    noisier = EvaluationPlan.plan(users=3000, privacy=Privacy(1 / 3, 1e-6), bins=32)
    assert _misses(plan, runs, noisier=noisier) > most


def test_the_error_of_bins_is_in_the_interval(monkeypatch) -> None:
    """Few intervals and many people: hardly any noise, and all people at the lower end of their intervals."""
    plan = EvaluationPlan.plan(users=200_000, privacy=PRIVACY, bins=4, limit=4.0)
    logits = np.repeat([-3.9, -1.9, 0.1, 2.1], 50_000)
    labels = np.tile([0, 1], 100_000)
    found = plan.read(plan.ranges.sample_estimate(plan.cells.codes(logits, labels), bits=RandomBits.seeded(5)))
    truth = true_metrics(logits, labels, limit=4.0, scores="probabilities")
    for name, metric in found.metrics.items():
        assert metric.lower <= truth[name] <= metric.upper
    widths = {name: metric.upper - metric.lower for name, metric in found.metrics.items()}
    assert widths["accuracy"] < 0.005 and widths["log_loss"] > 0.5 and widths["mean_prediction"] > 0.1
    monkeypatch.setattr(ScoreCells, "log_loss", property(lambda cells: (_middles(cells.edges),) * 2))
    planned._noise.cache_clear()
    twin = plan.read(plan.ranges.sample_estimate(plan.cells.codes(logits, labels), bits=RandomBits.seeded(5)))
    planned._noise.cache_clear()
    assert not twin["log_loss"].lower <= truth["log_loss"] <= twin["log_loss"].upper


def _middles(edges: np.ndarray) -> np.ndarray:
    losses = np.logaddexp(0.0, (edges[1:] + edges[:-1]) / 2)
    return np.concatenate([losses, losses[::-1]])


def test_one_report_a_person_by_messages_too() -> None:
    """Every message made and shuffled: the same metrics, and one epsilon for all of them."""
    plan = EvaluationPlan.plan(users=600, privacy=Privacy(2, 1e-4), bins=8, scores="scores")
    logits, labels = _people(600, 6)
    codes = plan.cells.codes(logits, labels)
    assert codes.shape == (600,) and plan.ranges.guarantee().delta <= 1e-4
    changed = logits.copy()
    changed[5] = 9.0
    assert np.count_nonzero(codes != plan.cells.codes(changed, labels)) == 1
    found = plan.read(simulate(plan.ranges, codes, bits=RandomBits.seeded(7)))
    truth = true_metrics(logits, labels, limit=8.0, scores="scores")
    assert set(found.metrics) == set(truth) == {"auc", "accuracy", "positive_rate"} and found.calibration == ()
    assert all(metric.lower <= truth[name] <= metric.upper for name, metric in found.metrics.items())
    assert found.simulated and "protect nobody" in str(found)


class _Classifier:
    """What scikit-learn's classifiers have."""

    classes_ = ("no", "yes")
    n_users_ = 4000

    def predict_proba(self, rows):
        chances = 1 / (1 + np.exp(-np.asarray(rows)[:, 0]))
        return np.column_stack([1 - chances, chances])


def test_a_model_is_evaluated_and_bad_input_is_a_sentence() -> None:
    logits, labels = _people(4000, 8)
    rows, y = logits[:, None], np.array(["no", "yes"])[labels]
    found = evaluate(_Classifier(), rows, y, epsilon=1.0, bins=32, random_state=1)
    truth = true_metrics(logits, labels, limit=8.0, scores="probabilities")
    assert all(metric.lower <= truth[name] <= metric.upper for name, metric in found.metrics.items())
    assert "were they kept out" in found.warnings[0]
    assert evaluate(_Classifier(), rows[:3999], y[:3999], bins=2, random_state=1).warnings == ()
    document = found.document()
    assert document["metrics"]["auc"]["lower"] == found["auc"].lower and len(document["caveats"]) == 2
    rates = found.roc
    assert rates[0][0] == rates[1][0] == 0 and rates[0][-1] == rates[1][-1] == 1
    for labels_given, words in (
        (np.append(y[:-1], "maybe"), r"one of the model's classes no, yes, got something else in row 4000"),
        (y[:, None], "a label a person"),
        (y[:5], "a probability a person and class"),
    ):
        with pytest.raises(DataError, match=words):
            evaluate(_Classifier(), rows, labels_given)
    with pytest.raises(DataError, match="got nan in row 3"):
        evaluate_scores([0.0, 1.0, np.nan] * 100, [0, 1, 1] * 100, privacy=PRIVACY, bins=2, bits=RandomBits.seeded(1))
    with pytest.raises(DataError, match="one of the model's classes 0, 1, got nan in row 2"):
        evaluate_scores([0.0, 1.0], [0.0, np.nan], privacy=PRIVACY, bits=RandomBits.seeded(1))
    for classes, error, words in (
        (None, ParameterError, "must be a classifier"),
        (("no", "yes", "maybe"), DataError, "a probability a person and class"),
    ):
        other = _Classifier()
        other.classes_ = classes
        with pytest.raises(error, match=words):
            evaluate(other, rows, y)
    with pytest.raises(ParameterError, match="must have probabilities"):
        evaluate(type("Guess", (), {"classes_": ("no", "yes")})(), rows, y)
    with pytest.raises(ParameterError, match="must be even"):
        ScoreCells(bins=5)
    with pytest.raises(ParameterError, match="must have 16 cells"):
        replace(EvaluationPlan.plan(users=600, privacy=PRIVACY, bins=16), cells=ScoreCells(bins=8))


def test_rows_that_were_learned_from_are_refused_and_some_are_warned_of() -> None:
    """By the register of this process's fits: nothing is spent on people who paid already."""
    # Of a stream of their own: what other tests learned from is remembered, too.
    rng = np.random.default_rng([10, 2, 6000])
    rows = rng.uniform(-1, 1, (6000, 2))
    labels = (rows[:, 0] + 0.3 * rng.logistic(size=6000) > 0).astype(int)
    model = ShuffleLogisticRegression(
        epsilon=2, delta=1e-4, solver="agd", feature_bounds=(-1, 1), classes=[0, 1], count_clipped=0, random_state=1
    )
    model.fit(rows[:4000], labels[:4000])
    asked = {"epsilon": 2, "delta": 1e-4, "bins": 4, "random_state": 1}
    for again in (slice(0, 4000), slice(1000, 2000), slice(2000, 5500)):
        with pytest.raises(DataError, match=r"who were kept out.*got mostly rows that were learned from"):
            evaluate(model, rows[again], labels[again], **asked)
    # What is read without noise is told to whoever holds the rows, and is no part of the answer; of few, nothing is.
    with pytest.warns(RepeatedFitWarning, match="Read without noise"):
        some = evaluate(model, rows[3600:], labels[3600:], **asked)
    with warnings.catch_warnings():
        # They were evaluated on before, which is another warning: nobody learned from that.
        warnings.simplefilter("ignore", RepeatedFitWarning)
        warnings.filterwarnings("error", "Some of these rows", RepeatedFitWarning)
        one = evaluate(model, rows[3999:], labels[3999:], **asked)
        none = evaluate(model, rows[4000:], labels[4000:], **asked)
    assert [each.warnings for each in (some, one, none)] == [()] * 3
    # The same model as a file has it, other labels, sparse rows: the people are the same.
    for kept, again in ((model.model(), rows[:4000]), (model, sparse.csr_array(rows[:4000]))):
        with pytest.raises(DataError, match="who were kept out"):
            evaluate(kept, again, 1 - labels[:4000], **asked)


def test_an_evaluation_is_registered_and_charged(tmp_path) -> None:
    """People who are evaluated on twice pay twice: said, or charged to a ledger, which may refuse."""
    logits, labels = _people(1500, 12)
    rows, y = logits[:, None] + 0.125, np.array(["no", "yes"])[labels]
    asked = {"bins": 4, "random_state": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("error", RepeatedFitWarning)
        evaluate(_Classifier(), rows[:800], y[:800], **asked)
        evaluate(_Classifier(), rows[800:], y[800:], **asked)
    with pytest.warns(RepeatedFitWarning, match=r"question 3 .* epsilon 1 again, together epsilon"):
        evaluate(_Classifier(), rows[500:1000], y[500:1000], **asked)
    ledger = Ledger.open(tmp_path / "panel.json", "panel", Privacy(1.5, 1e-5))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RepeatedFitWarning)
        found = evaluate(_Classifier(), rows, y, **asked, ledger=ledger)
    entry = Ledger.load(ledger.path).account.entries[0]
    assert (entry.users, entry.fingerprint) == (1500, found.fingerprint)
    with pytest.raises(InfeasibleError, match="budget"):
        evaluate(_Classifier(), rows, y, **asked, ledger=ledger.path)
    # What is refused for another reason costs nothing.
    with pytest.raises(DataError, match="one of the model's classes"):
        evaluate(_Classifier(), rows, np.append(y[:-1], "maybe"), epsilon=0.1, ledger=ledger)
    assert len(Ledger.load(ledger.path).account.entries) == 1


class _Several:
    """Three classes, with too much confidence."""

    classes_ = (1, 2, 3)

    def predict_proba(self, rows):
        weights = np.exp(2 * np.asarray(rows))
        return weights / weights.sum(axis=1, keepdims=True)


def test_several_classes_have_accuracy_and_the_calibration_of_confidence() -> None:
    rng = np.random.default_rng(9)
    scores = rng.normal(size=(20_000, 3))
    labels = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1) + 1
    found = evaluate(_Several(), scores, labels, bins=32, random_state=2)
    truth = scored(_Several(), scores, labels).truth()
    assert set(found.metrics) == set(truth) == {"accuracy", "mean_confidence"} and found.roc is None
    assert all(metric.lower <= truth[name] <= metric.upper for name, metric in found.metrics.items())
    assert truth["accuracy"] == pytest.approx((scores.argmax(axis=1) + 1 == labels).mean())
    # Too sure of itself, provably: all of the most confident group's interval is below what was predicted.
    assert found.calibration[-2].rate.upper < found.calibration[-2].low
    with pytest.raises(DataError, match="classes 1, 2, 3, got something else in row 1"):
        evaluate(_Several(), scores, labels + 3)


@pytest.mark.parametrize("users", [1, 2, 40])
def test_a_few_people_show_nothing_and_break_nothing(users: int) -> None:
    logits, labels = _people(users, 11)
    found = evaluate_scores(logits, labels, privacy=Privacy(1, 1e-2), bits=RandomBits.seeded(3))
    truth = true_metrics(logits, labels, limit=8.0, scores="probabilities")
    assert found.bins == 32
    for name, metric in found.metrics.items():
        assert truth[name] is None or metric.lower <= truth[name] <= metric.upper
    assert found["auc"].upper - found["auc"].lower > 0.9
    with pytest.raises(ParameterError, match="users"):
        EvaluationPlan.plan(users=0, privacy=PRIVACY)


def test_one_label_alone_says_nothing_about_the_area() -> None:
    found = evaluate_scores(np.linspace(-3, 3, 500), np.ones(500), privacy=PRIVACY, bins=4, bits=RandomBits.seeded(2))
    assert (found["auc"].lower, found["auc"].upper) == (0.0, 1.0)
    assert found["positive_rate"].upper == 1.0


def test_an_interval_that_leaves_everything_open_says_so_and_how_many_people_would_do() -> None:
    logits, labels = _people(228, 5)
    found = evaluate_scores(logits, labels, privacy=PRIVACY, bits=RandomBits.seeded(4))
    area = found["auc"]
    assert area.says_nothing and area.upper - area.lower > 0.5
    assert area.remark == "says nothing: it may be no better than chance, 0.500"
    assert f"{area.remark}; within 0.05 from about {area.people_needed:,} people on" in str(found)
    told = found.document()["metrics"]["auc"]
    assert told["says_nothing"] is True and told["people_needed"] == area.people_needed
    assert told["remark"] == area.remark
    # A plan for so many people is as accurate as was said, of even scores and labels.
    plan = EvaluationPlan.plan(users=area.people_needed, privacy=PRIVACY)
    cells = 2 * plan.cells.bins
    even = VectorEstimate(value=np.full(cells, plan.users / cells), standard_error=0.0, bound=0.0, confidence=1.0)
    there = plan.read(even).metrics
    assert 0.08 < there["auc"].upper - there["auc"].lower < 0.12
    few = EvaluationPlan.plan(users=228, privacy=PRIVACY)
    for name in ("accuracy", "log_loss"):
        width = there[name].upper - there[name].lower
        assert 0.7 < expected_width(name, few, plan.users) / width < 1.4
    assert people_needed("auc", few, 0.5) < area.people_needed


RATE = Metric(0.35, 0.3, 0.4)


@pytest.mark.parametrize(
    ("name", "ends", "rate", "nothing", "words"),
    [
        ("auc", (0.49, 0.96), RATE, True, "no better than chance"), ("auc", (0.52, 1.0), RATE, False, ""),
        ("auc", (0.3, 0.9), RATE, True, "no better than chance"), ("auc", (0.4, 0.49), RATE, True, "worse than chance"),
        ("accuracy", (0.2, 0.71), RATE, True, "more frequent class, 0.600 to 0.700"),
        ("accuracy", (0.69, 0.8), RATE, True, "no better than always answering"),
        ("accuracy", (0.71, 0.8), RATE, False, ""),
        ("accuracy", (0.5, 0.59), RATE, True, "worse than always answering"),
        ("accuracy", (0.61, 0.8), Metric(0.63, 0.6, 0.65), True, "0.600 to 0.650"),
        ("log_loss", (0.07, 1.35), RATE, True, "says nothing: from near perfection to worse"),
        ("log_loss", (0.07, 1.35), RATE, True, "than predicting everybody's rate, 0.611 to 0.673"),
        ("log_loss", (0.2, 0.7), RATE, False, "it may be no better than"), ("log_loss", (0.2, 0.61), RATE, False, ""),
        ("log_loss", (0.68, 0.8), RATE, True, "worse than predicting"),
        ("log_loss", (0.01, 0.13), Metric(0.02, 0.02, 0.03), True, "0.098 to 0.135"),
        ("brier", (0.01, 0.26), RATE, True, "near perfection"), ("brier", (0.1, 0.2), RATE, False, ""),
        ("mean_prediction", (0.2, 0.71), RATE, True, "most of what there can be"),
        ("mean_prediction", (0.2, 0.6), RATE, False, ""), ("accuracy", (0.3, 0.5), None, True, "at its worst, 0.333"),
        ("accuracy", (0.34, 0.5), None, False, ""), ("log_loss", (0.1, 1.1), None, True, "even odds, 1.099"),
    ],
)  # fmt: skip
def test_what_an_interval_must_hold_to_say_nothing_for_a_model(name, ends, rate, nothing, words) -> None:
    """A constant answer's figures come from the same release: two classes by their rate, three without one by ln 3."""
    metrics = {name: Metric(sum(ends) / 2, *ends)} | ({} if rate is None else {"positive_rate": rate})
    found = judged(replace(EVALUATED, metrics=metrics), PLAN, classes=3 if rate is None else 2)[name]
    assert found.says_nothing is nothing and words in found.remark
    assert bool(words) is bool(found.remark)
    assert found.remark.startswith("says nothing: " if nothing and "worse" not in words[:5] else words[:5])
    # More people do not make a model better that is worse.
    assert (found.people_needed is None) is (not nothing or found.remark.startswith("worse"))


def test_what_a_constant_answer_reaches_is_between_its_ends_for_every_rate_in_the_interval() -> None:
    """By brute force over the rates of an interval on either side of a half, and around it."""
    for low, high in ((0.1, 0.3), (0.55, 0.9), (0.4, 0.8), (0.0, 1.0)):
        rate, rates = Metric((low + high) / 2, low, high), np.linspace(low, high, 1001)
        found = constant_answers(dict.fromkeys(("accuracy", "log_loss", "brier", "positive_rate"), rate), classes=2)
        reached = {
            "accuracy": np.maximum(rates, 1 - rates),
            "log_loss": stats.bernoulli.entropy(rates),
            "brier": rates * (1 - rates),
        }
        for name, each in reached.items():
            assert (found[name].least, found[name].most) == pytest.approx((each.min(), each.max()), abs=1e-6)


def test_many_people_are_not_told_that_their_intervals_say_nothing() -> None:
    logits, labels = _people(20_000, 6)
    found = evaluate_scores(logits, labels, privacy=PRIVACY, bits=RandomBits.seeded(4))
    assert not any(metric.says_nothing or metric.remark for metric in found.metrics.values())
    assert "says nothing" not in str(found)
    with pytest.raises(ParameterError, match="width"):
        people_needed("auc", PLAN, width=0.0)
    with pytest.raises(ParameterError, match="metric"):
        people_needed("f1", PLAN)
