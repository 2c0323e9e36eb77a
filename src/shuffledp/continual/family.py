"""The family of running sums: counts, sums, vectors and histograms that are known after every person."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from shuffledp.continual.certified import certify
from shuffledp.continual.plan import CounterPlan
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.protocols.domains.domain import Categories
from shuffledp.protocols.domains.repeated import RowCounts
from shuffledp.protocols.domains.summed import OneHot, SummedDomain
from shuffledp.protocols.family import Choice, DomainParameter, Family
from shuffledp.protocols.request import Request
from shuffledp.protocols.sums.noise import FAMILIES

KINDS: dict[str, tuple[str, ...]] = {
    "bits": (),
    "reals": (),
    "vectors": ("radius", "dimension"),
    "categories": ("categories",),
    "counts": ("at_most",),
}
"""What must be said of each kind of values; whoever says the last means this kind."""


@dataclass(frozen=True, repr=False)
class RunningFamily(Family[CounterPlan]):
    """Methods are families of noise; the planner compares them itself, with schedules and grids."""

    def method_of(self, document: Any) -> type[CounterPlan]:
        return CounterPlan

    def read_domain(self, given: Mapping[str, Any]) -> dict[str, Any]:
        found = Family.read_domain(self, given)
        described = {name: found[name] for needed in KINDS.values() for name in needed if name in found}
        _check_described(_kind(found.get("values"), described), described)
        return found

    def choice(self, request: Request, *, method: str = "auto", **domain: Any) -> Choice[CounterPlan]:
        """The smallest proved bound over the whole horizon, and why."""
        self._tried(method)
        plan = self._allowed(request, method, self.read_domain(domain))
        why = (
            f"{plan.method}: every estimate within {plan.error_bound:,.4g} by {plan.shufflers_used} shufflers, with "
            f"{plan.messages_per_user_mean:.3g} messages a user"
        )
        return Choice(plan, why if method == "auto" else f"{plan.method}: as asked", {plan.method: plan})

    def _allowed(self, request: Request, method: str, given: Mapping[str, Any]) -> CounterPlan:
        """The plan of this noise; for the live service the best one that no client can spoil."""
        names = tuple(self.methods) if method == "auto" else (method,)
        try:
            plan = _planned(request, method, **given)
        except ParameterError as refusal:
            if refusal.parameter != "max_messages":
                raise
            # The best of all sends more than that: another noise, or fewer shufflers than there may be, send less.
            found = _each(request, names, given)
            if not found:
                raise
            plan = min(found, key=self.error)
        if not (request.live and plan.can_be_spoiled):
            return plan
        allowed = [each for each in _each(request, names, given) if not each.can_be_spoiled] if method == "auto" else []
        if not allowed:
            raise InfeasibleError("noise", plan.method, plan.spoiled, "take another, or do not ask for live")
        return min(allowed, key=self.error)


def _each(request: Request, names: Iterable[str], given: Mapping[str, Any]) -> list[CounterPlan]:
    """The plans of these noises that keep to the request; where messages are limited, by fewer shufflers, too."""
    most = given["shufflers"]
    fewer = [most] if request.max_messages is None else sorted({most, *(1 << k for k in range(most.bit_length() - 1))})
    found: list[CounterPlan] = []
    for name in names:
        for shufflers in fewer:
            with suppress(InfeasibleError, ParameterError):
                found.append(_planned(request, name, **{**given, "shufflers": shufflers}))
    return found


def _plan_categories(*, categories: Any, **asked: Any) -> CounterPlan:
    domain = OneHot(categories) if isinstance(categories, int) else OneHot.of(categories)
    return CounterPlan.plan(domain=domain, **asked)


def _plan_counts(*, at_most: int, **asked: Any) -> CounterPlan:
    """A person comes once, with all its rows: it adds a whole number of 0..at_most."""
    return CounterPlan.plan(domain=RowCounts(at_most), **asked)


_PLANNERS: dict[str, Callable[..., CounterPlan]] = {
    "bits": CounterPlan.plan,
    "reals": CounterPlan.plan_reals,
    "vectors": CounterPlan.plan_vectors,
    "categories": _plan_categories,
    "counts": _plan_counts,
}


def _planned(
    request: Request,
    method: str,
    *,
    values: str | None = None,
    bound: str = "proved",
    domain: SummedDomain | None = None,
    **given: Any,
) -> CounterPlan:
    kind = _kind(values, given)
    if bound == "certified" and kind != "bits":
        problem = f"can be certified for bits only, not for {kind}"
        raise ParameterError("bound", bound, problem, "take the proved bound")
    own = {"domain": domain} if kind == "bits" and domain is not None else {}
    plan = _PLANNERS[kind](**request.common, max_messages=request.max_messages, noise=method, **given, **own)
    return certify(plan) if bound == "certified" else plan


def _kind(values: str | None, described: Mapping[str, Any]) -> str:
    """The kind of values that is meant: bits, unless something of another kind is said."""
    return values or next((kind for kind, needed in KINDS.items() if needed and needed[-1] in described), "bits")


def _check_described(kind: str, described: Mapping[str, Any]) -> None:
    """Refuse what another kind of values is described by, and ask for what is missing of this one."""
    if kind not in KINDS:
        raise ParameterError("values", kind, f"must be one of {', '.join(KINDS)}", "bits are the default")
    for name, value in described.items():
        if name not in KINDS[kind]:
            owner = next(other for other, needed in KINDS.items() if name in needed)
            # A list of names is typed as --domain.
            option, shown = ("domain", value.text) if isinstance(value, Categories) else (name, value)
            way_out = f"leave it out, or choose --values {owner}"
            raise ParameterError(option, shown, f"is not an option of --values {kind}", way_out)
    for name in KINDS[kind]:
        if name not in described:
            way_out = f"add --{name}, or --plan with a plan's file"
            raise ParameterError(name, None, f"must be given for --values {kind}", way_out)
    if described.get("dimension") == 1:
        raise ParameterError("dimension", 1, "must be at least 2", "one number is --values reals, scaled to [0, 1]")


_MEANINGS = {
    "values": "what is added up: bits, reals in [0, 1], vectors or categories; bits.",
    "dimension": "vectors: how many numbers one has.",
    "radius": "vectors: the largest length of one.",
    "categories": "categories: names, a range, or how many there are.",
    "at_most": "how many rows of one person count; everybody contributes as many.",
    "confidence": "with which the error bound holds, over the whole horizon; 0.95.",
    "estimator": "completed, combined, or auto.",
    "bound": "proved, or certified by a computation; bits only.",
    "domain": "another domain of sums.",
}

RunningSum = RunningFamily(
    "counter",
    "A count, sum or histogram that is known after every person, by several shufflers at once.",
    dict.fromkeys(FAMILIES, CounterPlan),
    domain=(
        DomainParameter(
            "shufflers",
            way_out="add --shufflers; four are a good choice",
            meaning="how many shufflers may hold open batches at once.",
        ),
        *(DomainParameter(name, meaning=meaning) for name, meaning in _MEANINGS.items()),
    ),
    error=lambda plan: plan.error_bound,
    error_name="error at all times",
)
