"""What a learner on people's devices learns, promises and costs: in words, and as data for a ledger.

One entry a kind of learner (`learn/live/documents.py`), so that whoever shows a campaign asks nobody for its class.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from shuffledp.accounting.ledger import Entry
from shuffledp.learn.fit_spending import entry_of_solver
from shuffledp.learn.live.documents import learner_document
from shuffledp.learn.optimize.named_losses import loss_from
from shuffledp.learn.optimize.vacuous import PROVES_NOTHING, proves_nothing
from shuffledp.privacy import Privacy
from shuffledp.protocols.learner import Learner
from shuffledp.protocols.ledger_entries import entry_of

_SHUFFLED = "shufflers permute and do not collude with the analyzer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A learner in words.

    Attributes:
        kind: its name among the kinds that devices know.
        learns: what it finds out.
        people: how many are asked.
        reports: how many reports they send at most, all together.
        rounds: how many rounds there are, in words.
        privacy: what every person is promised for everything that the campaign ever asks.
        proved_delta: what the accountant finds at that epsilon.
        because: why that holds.
        trusted: whom one trusts, and with what.
        accurate: what is proved about the result, and what is not.
        bound: the number that is proved, in the result's own unit; None where there is none.
        proves_nothing: whether that number is no less than what the worst or an untaught model is known to reach.
        entry: what the campaign costs its population, for a ledger.
        planned: for how many it was asked to plan, where rounds of whole batches leave some of them out.
    """

    kind: str
    learns: str
    people: int
    reports: int
    rounds: str
    privacy: Privacy
    proved_delta: float
    because: str
    trusted: str
    accurate: str
    bound: float | None
    proves_nothing: bool
    entry: Entry
    planned: int | None = None


def described(learner: Learner[Any]) -> Described:
    """What there is to say about a learner that runs live.

    >>> from shuffledp.learn.bandits.arms.fixed_batches import FixedBatches
    >>> policy = FixedBatches(arms=2, horizon=1000, privacy=Privacy(1, 1e-6), batch=100, method="coins")
    >>> found = described(policy)
    >>> found.learns, found.reports, found.entry.claim == policy.privacy
    ('which of 2 arms has the best reward', 1000, True)
    """
    kind = str(learner_document(learner)["kind"])
    return _KINDS[kind](learner)


def _claimed(learner: Any, privacy: Privacy, people: int, words: str) -> Entry:
    """The bare claim, which is safe for any mechanism."""
    return Entry.of_claim(
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        fingerprint=learner.fingerprint,
        users=people,
        description=words,
        claim=privacy,
    )


def _arms(learner: Any) -> Described:
    guarantee, people, last = learner.guarantee(), learner.horizon, learner.stages[-1]
    sizes = learner.batch_sizes
    of = f"of {sizes[0]:,} people" if len(sizes) == 1 else f"of {sizes[0]:,} to {sizes[-1]:,} people"
    return Described(
        kind="arms",
        learns=f"which of {learner.arms} arms has the best reward",
        people=people,
        reports=people,
        rounds=f"one arm each, {of}, until one arm is left or everybody has come",
        privacy=guarantee.shuffle,
        proved_delta=guarantee.proved_delta,
        because=guarantee.because,
        trusted=f"{_SHUFFLED}; {learner.honest_fraction:.0%} of the people of every round follow the protocol",
        accurate=(
            f"the best arm is dropped with probability {learner.failure_probability:.3g} at most; after the last "
            f"comparison only arms are left that seem at most {last.width:.3g} worse than the best"
            + _vain_arms(last.width)
        ),
        bound=last.width,
        proves_nothing=bool(_vain_arms(last.width)),
        entry=_claimed(learner, guarantee.shuffle, people, f"arms by {learner.method}"),
    )


def _vain_arms(width: float) -> str:
    """What to say of a width that no two arms can be apart by more than: rewards lie between 0 and 1."""
    return ", which proves nothing at this size: no arm can be worse by more than 1" if width >= 1 else ""


def _linear(learner: Any) -> Described:
    guarantee, people, setting = learner.guarantee(), learner.setting.users, learner.setting
    aged = f", counting models up to {learner.model_age} slots old" if learner.model_age else ""
    proved = learner.choice == "confidence"
    bound = learner.rule.regret_bound if proved else None
    vain = bound is not None and bound >= people
    accurate = "nothing is proved of Thompson sampling's regret; in simulations it is the least"
    if bound is not None:
        accurate = f"regret is at most {bound:,.0f} with {setting.confidence:.0%} confidence{aged}"
        if vain:
            accurate += f", which proves nothing at this size: {people:,} people cannot lose more than {people:,}"
    return Described(
        kind="linear-bandit",
        learns=f"which offers suit whom, from {setting.dimension} features and a reward, by {learner.name}"
        + ("" if proved else " and Thompson sampling"),
        people=people,
        reports=people,
        rounds=f"one, whose slots are {learner.slot_users:,} people each; a new model after every slot",
        privacy=learner.privacy,
        proved_delta=guarantee.delta,
        because=guarantee.because,
        trusted=guarantee.trusted,
        accurate=accurate,
        bound=bound,
        proves_nothing=vain,
        entry=_claimed(learner, learner.privacy, people, f"a linear bandit by {learner.name}"),
    )


def _fit(learner: Any) -> Described:
    guarantee, problem = learner.guarantee(), learner.problem
    assert guarantee.privacy is not None
    loss = loss_from(problem.loss)
    # Where gradients may be clipped, they are those of another loss.
    proved = problem.lipschitz >= loss.lipschitz(problem.domain)
    bound = learner.bound if proved else None
    vain = proves_nothing(problem, bound)
    accurate = "no bound is proved where gradients are clipped"
    if bound is not None:
        accurate = f"at most {bound:.3g} above the least mean loss, in expectation" + (
            f", {PROVES_NOTHING}" if vain else ""
        )
    entry = entry_of_solver(learner)
    assert entry is not None
    often = "once" if guarantee.rounds_per_user == 1 else f"in up to {guarantee.rounds_per_user:,} of them"
    return Described(
        kind="fit",
        learns=f"a model of {problem.dimension} numbers by {learner.name}, with the {loss.name} loss",
        people=learner.users,
        reports=sum(stage.rounds * stage.users for stage in learner.stages),
        rounds=f"{learner.rounds:,}, of {guarantee.users_per_round:,} people or more; a person is asked {often}",
        privacy=guarantee.privacy,
        proved_delta=guarantee.delta,
        because=guarantee.because,
        trusted=f"{guarantee.trusted}; {guarantee.honest_fraction:.0%} of them do",
        accurate=accurate,
        bound=bound,
        proves_nothing=vain,
        entry=entry,
        planned=problem.users,
    )


def _statistic(learner: Any) -> Described:
    plan = learner.plan
    guarantee = plan.guarantee()
    return Described(
        kind="statistic",
        learns=plan.question,
        people=plan.users,
        reports=plan.users,
        rounds="one",
        privacy=plan.privacy,
        proved_delta=guarantee.delta,
        because=plan.dominates_because,
        trusted=f"{_SHUFFLED}; {plan.honest_fraction:.0%} of the people of every batch follow the protocol",
        accurate=(
            f"every number is within {plan.error_bound:,.4g}{plan.unit}, with the confidence that estimates say; "
            f"{plan.in_the_end}"
        ),
        bound=plan.error_bound,
        proves_nothing=False,
        entry=replace(entry_of(plan, datetime.now(UTC)), description=f"{plan.protocol} by {plan.method}"),
    )


_KINDS: dict[str, Callable[[Any], Described]] = {
    "arms": _arms,
    "linear-bandit": _linear,
    "fit": _fit,
    "statistic": _statistic,
}
