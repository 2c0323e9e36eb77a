"""What is recorded of each kind of case: every number, every sentence, and seeded runs on plain values."""

import hashlib
import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from shuffledp import (
    Batch,
    BoundedSum,
    Counter,
    Privacy,
    RandomBits,
    ShuffleDPError,
    UniformityTest,
    VectorSum,
    simulate,
)
from shuffledp.accounting.ledger import Ledger
from shuffledp.continual.certified import certify
from shuffledp.continual.doubling import UnboundedCounter
from shuffledp.continual.plan import CounterPlan
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.protocols.domains.repeated import RowCounts
from shuffledp.protocols.domains.summed import OneHot
from shuffledp.protocols.heavy_hitters import HeavyHitters
from shuffledp.protocols.ledger_entries import entry_of
from shuffledp.protocols.masked_sum import MaskedSum
from shuffledp.protocols.statistics import Mean, Moments, WeightedMean
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.task import Task
from shuffledp.simulation.heavy_hitters import search_heavy_hitters
from shuffledp.simulation.masked_sum import run_masked_sum

from .cases import Case
from .states import STATE_KINDS, record_states
from .store import Record, plain

SEED = 7
# Message by message up to so many messages; by the estimate's law up to so many users.
MOST_MESSAGES, MOST_USERS = 150_000, 10_000
# Some methods draw even the law of such a user's messages slowly.
MOST_A_USER = 100_000
TIME = datetime(2026, 1, 31, 12, tzinfo=UTC)
KEY = PrivateKey(bytes(range(32)))


def record_of(case: Case) -> Record:
    """The record of a case; where it is refused, the refusal."""
    try:
        return plain(_KINDS[case.kind](case))
    except ShuffleDPError as refusal:
        return plain(refused(refusal))


def refused(refusal: ShuffleDPError) -> Record:
    """An error in data."""
    return {
        "error": type(refusal).__name__,
        "parameter": getattr(refusal, "parameter", None),
        "message": str(refusal),
    }


def _bits() -> RandomBits:
    return RandomBits.seeded(SEED)


def _sha256(*arrays: Any) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _floats(values: Any) -> Record:
    """An array by its bytes, and its first numbers to look at."""
    array = np.asarray(values, dtype=np.float64)
    return {"sha256": _sha256(array), "shape": array.shape, "first": array.ravel()[:4]}


def _estimate(estimate: Any) -> Record:
    found = {each.name: getattr(estimate, each.name) for each in fields(estimate)}
    return {key: _floats(value) if isinstance(value, np.ndarray) else value for key, value in found.items()}


def _or_refusal(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except ShuffleDPError as refusal:
        return refused(refusal)


def _order(document: Any) -> str:
    """A hash of the order in which a document has its keys: files are written in it."""

    def keys(value: Any) -> Any:
        if isinstance(value, dict):
            return [[key, keys(each)] for key, each in value.items()]
        return [keys(each) for each in value] if isinstance(value, list | tuple) else None

    return hashlib.sha256(json.dumps(keys(document)).encode()).hexdigest()[:16]


def _claim(guarantee: Any) -> Record:
    return {
        "terms": [[term.name, term.value, term.why] for term in guarantee.terms],
        "pair": guarantee.pair.describe(),
        "dominates_because": guarantee.dominates_because,
        "theory_page": guarantee.theory_page,
    }


def _collusions(plan: Any) -> list[Record]:
    return [asdict(row) for row in plan.collusions()]


def _with_privacy(ask: Record) -> Record:
    given = {key: value for key, value in ask.items() if key not in ("epsilon", "delta")}
    return {**given, "privacy": Privacy(ask["epsilon"], ask["delta"])}


# --- one round -----------------------------------------------------------------------------------


def plan_of(ask: Record) -> Any:
    """The plan that is asked for, by the public facade of its protocol."""
    asked = {key: value for key, value in ask.items() if key not in ("protocol", "allow_unbounded")}
    if ask["protocol"] == CounterPlan.protocol:
        return counter_plan(asked)
    return PROTOCOLS[ask["protocol"]].plan(**_with_privacy(asked))


def values_for(plan: Any) -> Any:
    """Users' values by plain arithmetic."""
    i = np.arange(plan.users)
    if plan.protocol == "binary-sum":
        return ((i * 7) % 10 < 3).astype(np.uint8)
    if plan.protocol == "bounded-sum":
        return plan.low + (plan.high - plan.low) * ((i * 37) % 101) / 100
    if plan.protocol == "vector-sum":
        return vectors(plan.users, plan.dimension, plan.radius)
    if plan.protocol == "ranges":
        codes = [(i * i + 3 * i + place) % axis.size for place, axis in enumerate(plan.axes)]
        return codes[0] if len(codes) == 1 else np.stack(codes, axis=1)
    if plan.domain.most_rows is not None:
        sizes = i % (plan.domain.most_rows + 1)
        owners = np.repeat(i, sizes)
        place = np.arange(owners.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        rows = _plain_rows(plan, owners + place)
        if plan.domain.group_list is not None:
            rows = plan.domain.with_groups((owners + place) % plan.domain.group_list.size, rows)
        return plan.domain.gathered(rows, owners, place, plan.users)
    if plan.domain.group_list is not None:
        return plan.domain.with_groups(i % plan.domain.group_list.size, _plain_rows(plan, i))
    return (i * i + 3 * i) % min(plan.bins, 17)


def _plain_rows(plan: Any, i: Any) -> Any:
    """A value a row, of the domain of a plan's rows."""
    row = plan.domain.row
    if row.named is not None:
        return (i * i + 3 * i) % min(row.named.size, 17)
    if hasattr(row, "low"):
        return row.low + (row.high - row.low) * ((i * 37) % 101) / 100
    return ((i * 7) % 10 < 3).astype(np.uint8)


def vectors(users: int, dimension: int, radius: float) -> Any:
    """A vector a user, none longer than the radius: grid points in a cube in the ball."""
    i, j = np.arange(users)[:, np.newaxis], np.arange(dimension)
    return 0.999 * radius / dimension * (((i * (j + 3) * 11) % 21) - 10) / 10


def _plan(case: Case) -> Record:
    protocol = case.name.split("/")[0]
    family, asked = PROTOCOLS[protocol], _with_privacy(case.ask)
    chosen: Record = {}
    if "method" in asked:
        plan = family.plan(**asked)
    else:
        choice = family.choose(**asked)
        plan = choice.plan
        considered = {name: getattr(each, "fingerprint", str(each)) for name, each in choice.considered.items()}
        chosen = {"why": choice.why, "considered": considered}
    document = plan.document()
    record = {
        **chosen,
        "document": document,
        "order": _order(document),
        "question": plan.question,
        "title": plan.title,
        "lying_client": plan.lying_client,
        "is_unbiased": plan.is_unbiased,
        "is_labelled": plan.is_labelled,
        "influence": plan.influence,
        "alphabet_size": plan.alphabet_size,
        "honest_users": plan.honest_users,
        **_claim(plan.guarantee()),
    }
    if plan.users > MOST_USERS or plan.messages_per_user_max > MOST_A_USER:
        return record
    values = values_for(plan)
    estimates = {"fast": _estimate(simulate(plan, values, bits=_bits(), fast=True))}
    base = "base" in case.options
    if base or plan.users * plan.messages_per_user_mean <= MOST_MESSAGES:
        estimates["messages"] = _estimate(simulate(plan, values, bits=_bits()))
        reports = plan.randomize(values[:20], bits=_bits())
        record["reports"] = {
            "sha256": _sha256(reports.payloads, *([] if reports.labels is None else [reports.labels])),
            "sizes": _sha256(reports.sizes.astype(np.int64)),
            "types": [str(reports.payloads.dtype), None if reports.labels is None else str(reports.labels.dtype)],
        }
    if base:
        record |= {"collusions": _collusions(plan), **_base(plan, values)}
        if protocol in ("bounded-sum", "vector-sum"):
            estimates["clipped"] = _estimate(simulate(plan, values * 1.5, bits=_bits(), fast=True, clip=True))
    return record | {"estimates": estimates}


def _base(plan: Any, values: Any) -> Record:
    """What else a plan says of values, and what becomes of broken batches."""
    reports = plan.randomize(values, bits=_bits())
    payloads = reports.payloads.copy()
    payloads[0] = np.iinfo(payloads.dtype).max
    return {
        "true_value": _floats(plan.true_value(values)),
        "standard_errors_for": _floats(plan.standard_errors_for(values)),
        "mean_messages": plan.mean_messages(values),
        "neighbours": [np.asarray(each).tolist() for each in plan.neighbours],
        "malformed": {
            "message": _or_refusal(lambda: _estimate(plan.analyze(Batch(payloads, plan.users, reports.labels)))),
            "reports": _or_refusal(lambda: _estimate(plan.analyze(Batch(payloads, plan.users - 1, reports.labels)))),
        },
        "refused_values": _or_refusal(lambda: plan.check_values(np.full(np.shape(values), 1e9))),
    }


# --- running sums --------------------------------------------------------------------------------


def counter_plan(ask: Record) -> CounterPlan:
    """The running sum's plan, by the facade of its domain."""
    asked = _with_privacy({key: value for key, value in ask.items() if key not in ("domain", "certify")})
    domain = dict(ask.get("domain", {"kind": "bits"}))
    kind = domain.pop("kind")
    if kind == "reals":
        return CounterPlan.plan_reals(**domain, **asked)
    if kind == "vectors":
        return CounterPlan.plan_vectors(**domain, **asked)
    if kind == "categories":
        made = OneHot.of(domain["named"]) if "named" in domain else OneHot(domain["count"])
        return CounterPlan.plan(domain=made, **asked)
    if kind == "counts":
        return CounterPlan.plan(domain=RowCounts(domain["at_most"]), **asked)
    plan = CounterPlan.plan(**asked)
    return certify(plan, runs=ask["certify"], seed=SEED) if "certify" in ask else plan


def counter_values(plan: CounterPlan) -> Any:
    """Users' values of the plan's domain by plain arithmetic."""
    i, kind = np.arange(plan.users), plan.domain.kind
    if kind == "bits":
        return (i * 7) % 10 < 3
    if kind == "reals":
        return ((i * 37) % 101) / 100
    if kind == "counts":
        return (i * i + 3 * i) % (plan.domain.at_most + 1)
    if kind == "vectors":
        return vectors(plan.users, plan.domain.dimension, plan.domain.radius)
    return (i * i + 3 * i) % plan.domain.coordinates


def _counter(case: Case) -> Record:
    plan = counter_plan(case.ask)
    document = plan.document()
    record = {
        "document": document,
        "order": _order(document),
        "method": plan.method,
        "lying_client": plan.lying_client,
        "slot_users": plan.slot_users,
        "batch_sizes": plan.batch_sizes,
        "standard_errors": [plan.standard_error_of(slot) for slot in range(3)],
        **_claim(plan.guarantee()),
    }
    if "collusions" in case.options:
        record["collusions"] = _collusions(plan)
    for option, fast in (("run", True), ("messages", False)):
        if option in case.options:
            run = Counter(plan).run(counter_values(plan), bits=_bits(), fast=fast)
            times = sorted({0, 1, plan.users // 3, plan.users})
            record[option] = {
                "every": _floats(run.every()),
                "prefixes": _sha256(run.prefixes.astype(np.int64)),
                "at": {str(time): _estimate(run.at(time)) for time in times},
            }
    return record


def _unbounded(case: Case) -> Record:
    counter = UnboundedCounter.plan(**_with_privacy(case.ask))
    values = (np.arange(700) * 7) % 10 < 3
    return {
        "shufflers_used": counter.shufflers_used,
        "terms": [[term.name, term.value, term.why] for term in counter.delta_terms(counter.privacy.epsilon)],
        "epochs": [
            [epoch.users_before, epoch.users, epoch.error_bound, epoch.inner.fingerprint]
            for epoch in map(counter.epoch, range(4))
        ],
        "fast": _floats(counter.run(values, bits=_bits())),
        "messages": _floats(counter.run(values, bits=_bits(), fast=False)),
    }


# --- what is made of several ---------------------------------------------------------------------


def _distribution_test(case: Case) -> Record:
    test = UniformityTest.plan(**_with_privacy(case.ask))
    document = test.document()
    runs = {}
    for name, values in (("uniform", np.arange(test.users) % test.categories.size), ("far", np.arange(test.users) % 3)):
        tested = simulate(test, values, bits=_bits())
        runs[name] = {**asdict(tested), "words": tested.words}
    return {"document": document, "order": _order(document), "claim": test.claim, "runs": runs}


def _users_needed(case: Case) -> Record:
    return {"users": UniformityTest.users_needed(**_with_privacy(case.ask))}


def _heavy_hitters(case: Case) -> Record:
    asked = _with_privacy(case.ask)
    if "alphabet" in asked:
        asked["alphabet"] = asked["alphabet"].encode()
    search = HeavyHitters.plan(method="prefixes", **asked)
    people = ["ab", "abc", "ca", "b"]
    strings = [people[(place * place + place) % 4] if place % 5 else "ab" for place in range(search.users)]
    states: list[Record] = []

    def watch(state: Any) -> None:
        prefixes = [each.decode("latin-1") for each in state.prefixes]
        states.append({"depth": state.depth, "prefixes": prefixes, "plan": search.ask(state).document()})

    found = search_heavy_hitters(search, strings, bits=_bits(), fast=True, progress=watch)
    by_messages = search_heavy_hitters(search, strings, bits=_bits())
    return {
        "document": search.document(),
        "levels": states,
        "fast": [asdict(each) for each in found],
        "messages": [asdict(each) for each in by_messages],
    }


def _masked_sum(case: Case) -> Record:
    plan = MaskedSum.plan(**_with_privacy(case.ask))
    run = run_masked_sum(plan, (np.arange(plan.users) * 7) % (plan.high + 1), bits=_bits())
    happened = {key: value for key, value in asdict(run).items() if key != "seconds"}
    numbers = ("high", "ratio", "modulus_bits", "largest_deviation", "repetitions", "standard_error")
    return {
        "numbers": {name: getattr(plan, name) for name in numbers},
        "collusions": _collusions(plan),
        "run": happened,
        **_claim(plan.guarantee()),
    }


def _mean(case: Case) -> Record:
    mean = Mean.plan(**_with_privacy(case.ask))
    total = simulate(mean.sum_plan, values_for(mean.sum_plan), bits=_bits(), fast=True)
    return {
        "plan": mean.sum_plan.document(),
        "standard_error": mean.standard_error,
        "error_bound": mean.error_bound,
        "estimate": _estimate(mean.from_estimate(total)),
    }


def _column(plan: Any, low: float, high: float) -> Any:
    return low + (high - low) * ((np.arange(plan.users) * 37) % 101) / 100


def _moments(case: Case) -> Record:
    moments = Moments.plan(**_with_privacy(case.ask))
    points = moments.encode(_column(moments.vector_plan, moments.low, moments.high))
    answer = moments.from_estimate(simulate(moments.vector_plan, points, bits=_bits(), fast=True))
    return {
        "plan": moments.vector_plan.document(),
        "mean_standard_error": moments.mean_standard_error,
        "variance_standard_error": moments.variance_standard_error(moments.low),
        "points": _floats(points),
        "answer": asdict(answer),
    }


def _weighted_mean(case: Case) -> Record:
    weighted = WeightedMean.plan(**_with_privacy(case.ask))
    plan = weighted.vector_plan
    weights = weighted.largest_weight * ((np.arange(plan.users) * 13) % 11) / 10
    points = weighted.encode(_column(plan, weighted.low, weighted.high), weights)
    return {
        "plan": plan.document(),
        "standard_error": weighted.mean_standard_error(weighted.high, float(plan.users)),
        "points": _floats(points),
        "answer": asdict(weighted.from_estimate(simulate(plan, points, bits=_bits(), fast=True))),
    }


def _comparison(case: Case) -> Record:
    family = BoundedSum if case.name.endswith("bounded-sum") else VectorSum
    return {"document": family.comparisons["gaussian"](**_with_privacy(case.ask))}


# --- files ---------------------------------------------------------------------------------------


def _task(case: Case) -> Record:
    task = Task.create(
        plan_of(case.ask), KEY.public, bits=_bits(), allow_unbounded=case.ask.get("allow_unbounded", False)
    )
    return task_numbers(task)


def task_numbers(task: Task) -> Record:
    """What a task's text says."""
    return plain({"text": task.text, "id": task.id, "routing": task.routing.document(), "warnings": task.warnings})


def _ledger(case: Case) -> Record:
    refusals = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ledger.json"
        ledger = Ledger.open(file, "a golden panel", Privacy(case.ask["epsilon"], case.ask["delta"]))
        for ask in case.ask["plans"]:
            try:
                ledger.spend(entry_of(plan_of(ask), TIME))
            except ShuffleDPError as refusal:
                refusals.append(refused(refusal))
        left = ledger.left()
        if case.ask.get("close"):
            ledger.close()
        return {
            "text": file.read_text("utf-8"),
            "refusals": refusals,
            "left before closing": {**asdict(left), "words": left.in_words()},
            **ledger_numbers(file),
        }


def ledger_numbers(file: Path) -> Record:
    """What a ledger's file says is spent and left."""
    ledger = Ledger.load(file)
    left = ledger.left()
    return plain(
        {
            "left": {**asdict(left), "words": left.in_words()},
            "spent": ledger.account.document()["spent"],
            "version": ledger.account.version,
            "pairs": [entry.pair.describe() for entry in ledger.account.entries],
        }
    )


def _model(case: Case) -> Record:
    from shuffledp.learn import ShuffleRidge

    users = case.ask["users"]
    features = np.stack([((np.arange(users) * 7) % 11) / 10, ((np.arange(users) * 3) % 13) / 12], axis=1)
    targets = features[:, 0] * 0.5 - features[:, 1] * 0.25
    estimator = ShuffleRidge(
        epsilon=case.ask["epsilon"], feature_bounds=(0, 1), target_bounds=(-1, 1), random_state=SEED
    )
    return {"document": estimator.fit(features, targets).model().document()}


_KINDS: dict[str, Callable[[Case], Record]] = {
    "plan": _plan,
    "counter": _counter,
    "unbounded": _unbounded,
    "distribution test": _distribution_test,
    "users needed": _users_needed,
    "heavy hitters": _heavy_hitters,
    "masked sum": _masked_sum,
    "mean": _mean,
    "moments": _moments,
    "weighted mean": _weighted_mean,
    "comparison": _comparison,
    "task": _task,
    "ledger": _ledger,
    "model": _model,
    **dict.fromkeys(STATE_KINDS, record_states),
}
