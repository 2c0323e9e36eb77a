"""Learners as documents, so that servers and devices elsewhere run the very one that was planned.

A document says what decides the learner; its plans stand apart, in the order of its `seatings`, as devices need them
without the rest. Whatever reads one is checked by the fingerprint that was written.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from shuffledp.errors import DataError, ParameterError, ShuffleDPError
from shuffledp.learn.bandits.arms.doubling_batches import DoublingBatches
from shuffledp.learn.bandits.arms.elimination import PrivateElimination
from shuffledp.learn.bandits.arms.fixed_batches import FixedBatches
from shuffledp.learn.bandits.linear.concurrent import ConcurrentLinUCB
from shuffledp.learn.bandits.linear.counted import CountedPolicy
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.learn.bandits.linear.shuffle_vec import ShuffleVecLinUCB
from shuffledp.learn.optimize.solver import Solver
from shuffledp.learn.optimize.solver_documents import solver_document, solver_from
from shuffledp.privacy import Privacy
from shuffledp.protocols.learner import Learner, PlanLearner
from shuffledp.protocols.plan import Plan

Document = Mapping[str, Any]
_AGAIN = "create it again with this version"

_ELIMINATIONS: dict[str, type[PrivateElimination]] = {kind.policy: kind for kind in (FixedBatches, DoublingBatches)}
_POLICIES: dict[str, type[CountedPolicy]] = {kind.kind: kind for kind in (ShuffleVecLinUCB, ConcurrentLinUCB)}


def _claimed(document: Document) -> Privacy:
    return Privacy(document["epsilon"], document["delta"])


def _arms_document(learner: PrivateElimination) -> dict[str, Any]:
    return dict(learner.spec)


def _arms_from(document: Document, plans: Sequence[Plan]) -> Learner[Any]:
    kind = _ELIMINATIONS[document["policy"]]
    given = {field.name: document[field.name] for field in fields(kind) if field.name != "privacy"}
    return kind(privacy=_claimed(document), **given)


def _linear_document(learner: CountedPolicy) -> dict[str, Any]:
    return {
        "policy": learner.kind,
        "setting": learner.setting.document(),
        "epsilon": learner.privacy.epsilon,
        "delta": learner.privacy.delta,
        "visits": learner.visits,
        "choice": learner.choice,
        "model_age": learner.model_age,
    }


def _linear_from(document: Document, plans: Sequence[Plan]) -> Learner[Any]:
    return _POLICIES[document["policy"]](
        setting=LinearSetting(**document["setting"]),
        privacy=_claimed(document),
        plan=plans[0],  # type: ignore[arg-type]
        **{name: document[name] for name in ("visits", "choice", "model_age")},
    )


def _statistic_from(document: Document, plans: Sequence[Plan]) -> Learner[Any]:
    return plans[0].learner()


@dataclass(frozen=True, slots=True)
class LearnerKind:
    """A kind of learner that can run on people's devices.

    Attributes:
        learners: the class of its learners.
        write: what decides one of them, as JSON, but for its plans.
        read: the learner of such a document and the plans of its seatings.
    """

    learners: type[Any]
    write: Callable[[Any], dict[str, Any]]
    read: Callable[[Document, Sequence[Plan]], Learner[Any]]


KINDS = {
    "arms": LearnerKind(PrivateElimination, _arms_document, _arms_from),
    "linear-bandit": LearnerKind(CountedPolicy, _linear_document, _linear_from),
    "fit": LearnerKind(Solver, solver_document, solver_from),
    "statistic": LearnerKind(PlanLearner, lambda learner: {}, _statistic_from),
}
"""What campaigns may learn, by name."""


def learner_document(learner: Learner[Any]) -> dict[str, Any]:
    """What decides a learner, as JSON; its plans are those of its `seatings`.

    Args:
        learner: one that can run live.

    Raises:
        ParameterError: it cannot run live, or is of no kind that devices know.

    >>> policy = FixedBatches(arms=2, horizon=1000, privacy=Privacy(1, 1e-6), batch=100)
    >>> document = learner_document(policy)
    >>> again = learner_from(document, [seating.plan for seating in policy.seatings])
    >>> document["kind"], again.fingerprint == policy.fingerprint
    ('arms', True)
    """
    name = next((name for name, kind in KINDS.items() if isinstance(learner, kind.learners)), None)
    if name is None or not learner.seatings or learner.states is None:
        problem = "must be one that runs on people's devices"
        raise ParameterError("learner", type(learner).__name__, problem, f"take one of {', '.join(KINDS)}")
    return {"kind": name, "fingerprint": learner.fingerprint, **KINDS[name].write(learner)}


def learner_from(document: Any, plans: Sequence[Plan]) -> Learner[Any]:
    """The learner that a document and the plans of its seatings describe.

    Args:
        document: what `learner_document` wrote.
        plans: of its seatings, in their order.

    Raises:
        DataError: it describes none, or another one than was written.
    """
    kind = KINDS.get(str(document.get("kind"))) if isinstance(document, Mapping) else None
    if kind is None:
        found = document.get("kind") if isinstance(document, Mapping) else type(document).__name__
        raise DataError("learner.kind", found, f"must be one of {', '.join(KINDS)}", _AGAIN)
    try:
        learner = kind.read(document, plans)
    except ParameterError as refused:
        raise DataError(f"learner.{refused.parameter}", refused.value, refused.problem, _AGAIN) from None
    except ShuffleDPError:
        raise DataError("learner", document["kind"], "must be one that can be planned", _AGAIN) from None
    except KeyError as missing:
        raise DataError("learner", document["kind"], f"must have {missing.args[0]}", _AGAIN) from None
    except (TypeError, ValueError, IndexError, AttributeError):
        raise DataError("learner", document["kind"], "must have fields as they were written", _AGAIN) from None
    planned = [seating.plan for seating in learner.seatings]
    # Written again it is the same: nothing is passed over that somebody added.
    if json.loads(json.dumps(learner_document(learner))) != document or planned != list(plans):
        raise DataError("learner", document["kind"], "must be the one whose plans and fingerprint these are", _AGAIN)
    return learner
