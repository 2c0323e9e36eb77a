"""Which method of a family is the best for a request, and what became of the others."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from shuffledp.errors import InfeasibleError
from shuffledp.protocols.plan import Plan
from shuffledp.protocols.presentation import figure
from shuffledp.protocols.request import Request

P = TypeVar("P", bound=Plan, covariant=True)

FEW_MESSAGES = 32
"""Messages a user, and number of its value, that the best method may send where no limit is given."""


@dataclass(frozen=True, slots=True)
class Choice(Generic[P]):
    """The best plan for the limits given, and why.

    Attributes:
        plan: the best one.
        why: why it was taken, in one sentence.

    >>> from shuffledp import BinarySum
    >>> BinarySum.choose(users=1000, privacy=(1, 1e-6), method="coins").why
    'coins: as asked'
    """

    plan: P
    why: str
    considered: Mapping[str, Any] = field(default_factory=dict)
    """What became of each method that was tried: its plan, the error that refuses it, or the least error it can have
    (a `Skipped`) where that is more than another's."""
    more: str | None = None
    """What more messages than are sent without being asked for would buy; None where nothing."""
    limit: int | None = None
    """The limit of messages with which the plan's method makes it again; None where that needs none."""

    def document(self) -> dict[str, Any]:
        """The plan as JSON with why it was chosen, its warnings, and figures of others beside it."""
        said = {"why": self.why, "more_messages": self.more, "warnings": list(self.plan.cautions)}
        return self.plan.document() | said | self.plan.beside()


@dataclass(frozen=True, slots=True)
class Skipped:
    """A method that was not planned, as it cannot have as small an error as another."""

    least_error: float


@dataclass(slots=True)
class Choosing:
    """The methods of a family, tried one after another for one request.

    Attributes:
        methods: the plans' classes by the names of their methods, in the order in which equals are preferred.
        error: what the best method has the least of.
        error_name: the same in words.
        error_unit: what it is counted in, where its name does not say it.
        request: what is asked for.
        given: what is said about the users' values.
        few: the messages that are sent without being asked for; None for any number.
    """

    methods: Mapping[str, Any]
    error: Callable[[Any], float]
    error_name: str
    request: Request
    given: Mapping[str, Any]
    few: int | None = None
    error_unit: str = ""
    plans: dict[str, Any] = field(default_factory=dict)
    larger: dict[str, Any] = field(default_factory=dict)
    skipped: dict[str, Skipped] = field(default_factory=dict)
    refusals: dict[str, InfeasibleError] = field(default_factory=dict)

    @property
    def limit(self) -> float:
        """Messages a user may send, asked for or not."""
        asked = self.request.max_messages
        return math.inf if asked is None and self.few is None else float(asked or self.few or 0)

    def run(self, names: Iterable[str]) -> None:
        """Plan each of these methods, but for those that cannot win any more."""
        kinds = {name: self.methods[name] for name in names}
        least = {name: kind.least_error(self.request, **self.given) for name, kind in kinds.items()}
        best: Any = None
        for name in sorted(kinds, key=least.__getitem__):
            if best is not None and self._step(least[name] * (1 - 1e-9)) > self._step(self.error(best)):
                self.skipped[name] = Skipped(least[name])
                continue
            plan = self._planned(name, best)
            if plan is not None and self._fits(plan) and (best is None or self.rank(plan) < self.rank(best)):
                best = plan

    def _planned(self, name: str, best: Any) -> Any:
        kind = self.methods[name]
        try:
            plan = kind.for_request(self.request, **self.given)
        except InfeasibleError as refusal:
            self.refusals[name] = refusal
            return None
        if self.request.live and plan.can_be_spoiled:
            self.refusals[name] = InfeasibleError("method", name, plan.spoiled, "take another, or do not ask for live")
            return None
        if not self._fits(plan):
            self.larger[name] = plan
            # With fewer messages it has no smaller error.
            if best is None or self._step(self.error(plan)) <= self._step(self.error(best)):
                plan = self._with_fewer(kind) or plan
        self.plans[name] = plan
        return plan

    def _with_fewer(self, kind: Any) -> Any:
        """The plan of a method that gets by with few messages if it must; None where it does not."""
        if self.request.max_messages is not None or not kind.trades_messages:
            return None
        try:
            plan = kind.for_request(replace(self.request, max_messages=self.few), **self.given)
        except InfeasibleError:
            return None
        return plan if self._fits(plan) else None

    def _fits(self, plan: Plan) -> bool:
        return plan.messages_per_user_max <= self.limit

    def winner(self) -> Any:
        """The best plan within the limit; without one that was asked for, else the one with the fewest messages.

        Raises:
            InfeasibleError: there is no plan, or none that keeps to the limit asked for.
        """
        if not self.plans:
            raise next(self.refusals[name] for name in self.methods if name in self.refusals)
        fitting = [plan for plan in self._in_order() if self._fits(plan)]
        if fitting:
            return min(fitting, key=self.rank)
        fewest = min(self._in_order(), key=lambda plan: (plan.messages_per_user_max, self.rank(plan)))
        if self.request.max_messages is None:
            return fewest
        raise InfeasibleError(
            "max_messages",
            self.request.max_messages,
            f"must be at least {fewest.messages_per_user_max}, what {fewest.method} sends",
            "allow more messages, or a larger epsilon or delta",
        )

    def why(self, best: Any) -> str:
        """The best plan, the others, and those that cannot be had, in words."""
        fitting = sorted((plan for plan in self._in_order() if self._fits(plan) and plan is not best), key=self.rank)
        reasons = [
            f"{plan.method}: {self._told(plan)} with {plan.messages_per_user_mean:.3g} messages a user"
            for plan in (best, *fitting)
        ]
        over = sorted((plan for plan in self._in_order() if not self._fits(plan) and plan is not best), key=self.rank)
        reasons += [f"{plan.method} would send up to {plan.messages_per_user_max} messages" for plan in over]
        reasons += [f"{name} cannot be below {each.least_error:.3g}" for name, each in self.skipped.items()]
        reasons += [
            f"{name} cannot: {self.refusals[name].parameter} {self.refusals[name].problem}"
            for name in self.methods
            if name in self.refusals
        ]
        return "; ".join(reasons)

    def _told(self, plan: Any) -> str:
        return f"{self.error_name} {figure(self.error(plan), 3)}{self.error_unit}"

    def more(self, best: Any) -> str | None:
        """What the most exact method would do with more messages than are sent without being asked for."""
        better = [plan for plan in self.larger.values() if self._step(self.error(plan)) < self._step(self.error(best))]
        if self.request.max_messages is not None or not better:
            return None
        plan = min(better, key=self.rank)
        sent = plan.messages_per_user_max
        digit = 10 ** (len(str(sent)) - 1)
        return (
            f"{plan.method} would send up to {sent:,} messages for {self._told(plan)} instead of "
            f"{figure(self.error(best), 3)}: --max-messages {-(-sent // digit) * digit}"
        )

    def limit_of(self, best: Any) -> int | None:
        """The limit of messages that decided the plan, asked for or not."""
        is_smaller = best.method in self.larger and self.larger[best.method] is not best
        return self.few if is_smaller else self.request.max_messages

    @property
    def considered(self) -> dict[str, Any]:
        """What became of each method, in the family's order."""
        found = {**self.plans, **self.skipped, **self.refusals}
        return {name: found[name] for name in self.methods if name in found}

    def _in_order(self) -> list[Any]:
        return [self.plans[name] for name in self.methods if name in self.plans]

    @staticmethod
    def _step(error: float) -> float:
        """An error in steps of 2%; where almost nothing is asked for it may be 0: the first step."""
        return round(math.log(error) / math.log(1.02)) if error > 0 else -math.inf

    def rank(self, plan: Plan) -> tuple[float, float, float]:
        """By error in steps of 2%, then by messages, then by what one lying client can do."""
        influence = plan.influence
        moved = math.inf if influence is None else influence
        return self._step(self.error(plan)), plan.messages_per_user_mean, moved
