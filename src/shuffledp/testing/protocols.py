"""check_protocol: what every protocol of this package must pass."""

import dataclasses
import json
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.errors import BatchError, ParameterError, TooFewReportsError
from shuffledp.messages import Batch, Reports
from shuffledp.protocols.catalogue import plan_from_document
from shuffledp.protocols.rounds import RoundPlan
from shuffledp.randomness import RandomBits
from shuffledp.sampling.permutation import uniform_permutation
from shuffledp.shuffle.shuffler import BatchSpec, Shuffler
from shuffledp.simulation.run import simulate
from shuffledp.testing.statistics import assert_deviation, assert_mean, assert_same_law

FALSE_ALARM = 1e-9


def check_protocol(
    plan: RoundPlan, values: ArrayLike, bad_values: list[ArrayLike], *, runs: int = 4000, seed: int = 1
) -> None:
    """Fail unless the plan keeps every promise that plans make.

    Unbiased; standard error as claimed; message by message the same law as `sample_estimate`;
    invariant under permutation; integer messages in the declared alphabet, as many as declared; the
    same bits from any pieces of a batch; lost messages counted, and no further off than said; no report
    of one client moves a number further than `influence`; a quieter twin that its guarantee refutes and
    whose runs differ; too few reports refused; survives saving and loading; frozen; rejects bad input;
    labels simulations.
    Statistical parts have a false-alarm rate of 1e-9 each.
    """
    bits = RandomBits.seeded(seed)
    _check_accuracy(plan, values, runs, bits)
    _check_messages(plan, values, bits)
    _check_pieces(plan, values, bits)
    _check_losses(plan, values, bits)
    _check_influence(plan, values, bits)
    _check_twin(plan)
    _check_refusals(plan, values, bad_values, bits)
    _check_file(plan)
    _check_labels(plan, values)


def _check_accuracy(plan: RoundPlan, values: ArrayLike, runs: int, bits: RandomBits) -> None:
    truth = plan.true_value(values)
    by_messages = [simulate(plan, values, bits=bits) for _ in range(runs)]
    by_law = [plan.sample_estimate(values, bits=bits) for _ in range(runs)]
    for estimates in (by_messages, by_law):
        errors = np.array([estimate.value - truth for estimate in estimates]).reshape(runs, -1)
        if plan.is_unbiased:
            exact = np.broadcast_to(np.asarray(plan.standard_errors_for(values)), errors.shape[1:])
            assert (exact <= plan.standard_error * (1 + 1e-12)).all()
            # Coordinates of a vector have independent errors.
            assert_mean((errors / exact).reshape(-1), 0.0, 1.0, false_alarm=FALSE_ALARM)
            assert_deviation((errors / exact).reshape(-1), 1.0, false_alarm=FALSE_ALARM)
        outside = (np.abs(errors) > estimates[0].bound).any(axis=1)
        # The bound may fail in 5% of runs; Hoeffding's inequality on top of that.
        slack = np.sqrt(np.log(1 / FALSE_ALARM) / (2 * runs))
        assert outside.mean() <= 1 - estimates[0].confidence + slack, f"bound fails in {outside.mean():.1%} of runs"
        assert {estimate.standard_error for estimate in estimates} == {plan.standard_error}
    values_seen = [np.array([e.value for e in estimates]).reshape(runs, -1) for estimates in (by_messages, by_law)]
    for first, second in zip(*(seen.T for seen in values_seen), strict=True):
        assert_same_law(first, second, false_alarm=FALSE_ALARM)


def _check_messages(plan: RoundPlan, values: ArrayLike, bits: RandomBits) -> None:
    reports = plan.randomize(values, bits=bits)
    assert len(reports) == plan.users
    assert reports.payloads.dtype.kind == "u", "messages must be unsigned integers"
    assert int(reports.payloads.max()) < plan.alphabet_size, "a message lies outside the alphabet"
    assert int(reports.sizes.max()) <= plan.messages_per_user_max
    repeats = max(1, 20_000 // plan.users)
    sizes = np.concatenate([plan.randomize(values, bits=bits).sizes for _ in range(repeats)])
    mean, spread = float(sizes.mean()), float(sizes.std()) * 6.2 / np.sqrt(sizes.size) + 1e-12
    expected = plan.mean_messages(values)
    assert abs(mean - expected) <= spread, f"{mean} messages a user, not the {expected} claimed"
    assert expected <= plan.messages_per_user_mean + 1e-12
    batch = _shuffled(plan, reports, bits)
    order = uniform_permutation(len(batch), bits=bits)
    again = Batch(batch.payloads[order], batch.reports, None if batch.labels is None else batch.labels[order])
    assert plan.analyze(again) == plan.analyze(batch), "the order of messages matters"


def _shuffled(plan: RoundPlan, reports: Reports, bits: RandomBits) -> Batch:
    shuffler = Shuffler(bits=bits)
    shuffler.open(BatchSpec(plan.users, plan.messages_per_user_max))
    shuffler.accept(reports)
    return shuffler.close()


def _part(batch: Batch, rows: Any, reports: int) -> Batch:
    return Batch(batch.payloads[rows], reports, None if batch.labels is None else batch.labels[rows])


def _check_pieces(plan: RoundPlan, values: ArrayLike, bits: RandomBits) -> None:
    batch = _shuffled(plan, plan.randomize(values, bits=bits), bits)
    whole = plan.tally(batch)
    for cuts in ([0], [len(batch) // 3, len(batch) // 2], [1, len(batch)]):
        pieces = np.split(uniform_permutation(len(batch), bits=bits), cuts)
        tallies = [plan.tally(_part(batch, rows, 0 if place else batch.reports)) for place, rows in enumerate(pieces)]
        merged = plan.merge(tallies[::-1])
        assert np.array_equal(merged.counts, whole.counts), f"pieces cut at {cuts} add up to another tally"
        assert plan.estimate(merged) == plan.analyze(batch), "pieces give another answer than the whole batch"


def _check_losses(plan: RoundPlan, values: ArrayLike, bits: RandomBits) -> None:
    batch = _shuffled(plan, plan.randomize(values, bits=bits), bits)
    whole = plan.analyze(batch)
    assert whole.dropped == 0, "a whole batch has lost messages"
    try:
        told = plan.estimate(plan.tally(batch, malformed=3))
    except BatchError:
        assert plan.can_be_voided, "a malformed message voids a batch that cannot be voided"
        return
    assert told.dropped >= 3, "malformed messages are not counted"
    assert told.bound >= whole.bound + 3 * plan.message_influence * (1 - 1e-9), "malformed messages leave the bound"
    if not plan.is_unbiased:  # at a cut one message decides between an answer and 0
        return
    for missing in range(min(5, len(batch) - 1)):
        less = plan.analyze(_part(batch, np.arange(len(batch)) != missing, batch.reports))
        moved = float(np.max(np.abs(np.asarray(less.value) - whole.value)))
        assert moved <= plan.message_influence * (1 + 1e-9), f"a lost message moves a number by {moved}"


def _check_influence(plan: RoundPlan, values: ArrayLike, bits: RandomBits) -> None:
    """Reports of one client, all others' the same: its own, and as many equal messages as are taken from one."""
    if plan.influence is None:
        assert plan.can_be_spoiled, "a plan without a limit on lies must say that it can be spoiled"
        return
    reports, most = plan.randomize(values, bits=bits), plan.messages_per_user_max
    first = int(reports.sizes[0])
    lies = [np.full(most, letter, dtype=np.uint64) for letter in range(min(8, plan.alphabet_size))]
    answers = []
    for place, lie in enumerate((reports.payloads[:first], *lies)):
        labels = reports.labels
        if labels is not None and place:
            labels = np.concatenate((np.zeros(lie.size, labels.dtype), labels[first:]))
        payloads = np.concatenate((lie.astype(np.uint64), reports.payloads[first:].astype(np.uint64)))
        try:
            answers.append(np.atleast_1d(plan.analyze(Batch(payloads, plan.users, labels)).value))
        except BatchError:
            assert plan.can_be_voided, "a client voids a batch that cannot be voided"
    moved = float(np.max(np.ptp(np.stack(answers), axis=0))) if answers else 0.0
    # Where a cut is is random: it is as far off as the answer may be.
    allowed = plan.influence + (0.0 if plan.is_unbiased else plan.error_bound)
    assert moved <= allowed * (1 + 1e-9), f"a client moves a number by {moved}, not {plan.influence}"


def _check_twin(plan: RoundPlan) -> None:
    twin = plan.twin(0.25)
    assert not twin.guarantee().holds, "a twin with a quarter of the noise variance keeps the plan's promise"
    honest = min(plan.honest_users, 300)
    trials = max(20, int(3e6 / (honest * max(1.0, plan.messages_per_user_mean))))
    runs, quieter = (each.views(1, trials, honest, bits=RandomBits.seeded(1)) for each in (plan, twin))
    assert not np.array_equal(runs, quieter), "a twin's noise is the plan's: an audit of it would show nothing"


def _check_refusals(plan: RoundPlan, values: ArrayLike, bad_values: list[ArrayLike], bits: RandomBits) -> None:
    reports = plan.randomize(values, bits=bits)
    batch = _shuffled(plan, reports, bits)
    _must_raise(TooFewReportsError, plan.analyze, Batch(batch.payloads, plan.users - 1, batch.labels))
    _must_raise(ParameterError, plan.analyze, Batch(batch.payloads, plan.users + 1, batch.labels))
    shuffler = Shuffler(bits=bits)
    shuffler.open(BatchSpec(plan.users + 1, plan.messages_per_user_max))
    shuffler.accept(reports)
    _must_raise(TooFewReportsError, shuffler.close)
    for bad in bad_values:
        _must_raise(ParameterError, plan.check_values, bad)
        _must_raise(ParameterError, plan.true_value, bad)
        _must_raise(ParameterError, plan.randomize, bad, bits=bits)
        _must_raise(ParameterError, plan.sample_estimate, bad, bits=bits)
    _must_raise(ParameterError, simulate, plan, np.asarray(values)[:-1], bits=bits, kinds=(TooFewReportsError,))
    _must_raise(ParameterError, simulate, plan, np.concatenate((values, values)), bits=bits)


def _must_raise(
    kind: type[Exception], call: Any, *arguments: Any, kinds: tuple[type[Exception], ...] = (), **named: Any
) -> None:
    try:
        call(*arguments, **named)
    except (kind, *kinds) as error:
        text = str(error)
        assert text.endswith(".") and "\n" not in text, f"not one sentence: {text}"
        return
    raise AssertionError(f"{call} took what it must refuse: {arguments}")


def _check_file(plan: RoundPlan) -> None:
    document = json.loads(json.dumps(plan.document(), allow_nan=False))
    again = plan_from_document(document)
    assert again == plan and again.fingerprint == plan.fingerprint == document["fingerprint"]
    for key, value in document.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            _must_raise(ParameterError, plan_from_document, document | {key: value * 0.9 + 0.01})
    try:
        plan.users = plan.users + 1  # type: ignore[misc]
    except dataclasses.FrozenInstanceError:
        return
    raise AssertionError("the plan can be changed")


def _check_labels(plan: RoundPlan, values: ArrayLike) -> None:
    for fast in (False, True):
        first, second = (simulate(plan, values, bits=RandomBits.seeded(7), fast=fast) for _ in range(2))
        assert first == second and first.simulated, "a seeded run must repeat and say that it is a simulation"
        assert not simulate(plan, values, bits=RandomBits.secure(), fast=fast).simulated
