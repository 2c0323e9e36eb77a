"""The family of running sums: counts, sums, vectors and histograms that are known after every person."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from shuffledp.continual.carried.plan import CarriedPlan
from shuffledp.continual.carried.planner import best_carried, with_fine_grid
from shuffledp.continual.certified import certify
from shuffledp.continual.plan import CounterPlan
from shuffledp.continual.planner import with_grid
from shuffledp.continual.request import CountRequest
from shuffledp.continual.running import RunningPlan
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.protocols.domains.domain import Categories
from shuffledp.protocols.domains.repeated import RowCounts
from shuffledp.protocols.domains.summed import BITS, OneHot, Reals, SummedDomain, Vectors
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
class RunningFamily(Family[RunningPlan]):
    """Methods are families of noise; the planners compare them, with schedules and grids."""

    def method_of(self, document: Any) -> type[RunningPlan]:
        # Documents of noise that is not carried do not name a method.
        named = document.get("method") if isinstance(document, Mapping) else None
        return CarriedPlan if named == CarriedPlan.method else CounterPlan

    def read_domain(self, given: Mapping[str, Any]) -> dict[str, Any]:
        found = Family.read_domain(self, given)
        described = {name: found[name] for needed in KINDS.values() for name in needed if name in found}
        _check_described(_kind(found.get("values"), described), described)
        return found

    def question_of(self, plan: Any) -> dict[str, Any]:
        # How batches make an estimate is each noise's own, and only one noise has suppliers that may be silent.
        return {**Family.question_of(self, plan), "estimator": None, "silent_slots": None}

    def choice(self, request: Request, *, method: str = "auto", **domain: Any) -> Choice[RunningPlan]:
        """The smallest proved bound over the whole horizon, and why."""
        self._tried(method)
        plan = self._allowed(request, method, self.read_domain(domain))
        why = (
            f"{plan.method}: every estimate within {plan.error_bound:,.4g} by {plan.shufflers_used} shufflers, with "
            f"{plan.messages_per_user_mean:.3g} messages a user"
        )
        return Choice(plan, why if method == "auto" else f"{plan.method}: as asked", {plan.method: plan})

    def _allowed(self, request: Request, method: str, given: Mapping[str, Any]) -> RunningPlan:
        """The plan of this noise; for the live service the best one that no client can spoil."""
        given = dict(given)
        method = _with_estimator(method, given)
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


def _each(request: Request, names: Iterable[str], given: Mapping[str, Any]) -> list[RunningPlan]:
    """The plans of these noises that keep to the request; where messages are limited, by fewer shufflers, too."""
    most = given["shufflers"]
    fewer = [most] if request.max_messages is None else sorted({most, *(1 << k for k in range(most.bit_length() - 1))})
    found: list[RunningPlan] = []
    for name in names:
        for shufflers in fewer:
            with suppress(InfeasibleError, ParameterError):
                found.append(_planned(request, name, **{**given, "shufflers": shufflers}))
    return found


def _domain(kind: str, domain: SummedDomain | None, given: dict[str, Any]) -> tuple[SummedDomain, bool]:
    """What is added up, taken out of what is given, and whether its grid is still to be chosen."""
    grid = given.pop("grid", None)
    if kind == "reals":
        return Reals(1 if grid is None else grid), grid is None
    if kind == "vectors":
        return Vectors(given.pop("dimension"), given.pop("radius"), 1 if grid is None else grid), grid is None
    if kind == "categories":
        categories = given.pop("categories")
        return OneHot(categories) if isinstance(categories, int) else OneHot.of(categories), False
    if kind == "counts":
        # A person comes once, with all its rows: it adds a whole number of 0..at_most.
        return RowCounts(given.pop("at_most")), False
    return (BITS if domain is None else domain), False


def _planned(
    request: Request,
    method: str,
    *,
    values: str | None = None,
    bound: str = "proved",
    domain: SummedDomain | None = None,
    **given: Any,
) -> RunningPlan:
    kind = _kind(values, given)
    if bound == "certified" and kind != "bits":
        problem = f"can be certified for bits only, not for {kind}"
        raise ParameterError("bound", bound, problem, "take the proved bound")
    added, is_free = _domain(kind, domain, given)
    if given.get("silent_slots"):
        # Only noise that is carried on suffers from them.
        method = CarriedPlan.method if method == "auto" else method
    noise = "auto" if method == CarriedPlan.method else method
    asked = CountRequest(**request.common, max_messages=request.max_messages, noise=noise, domain=added, **given)
    plan = min(_plans(asked, method, is_free), key=lambda plan: plan.error_bound)
    return certify(plan) if bound == "certified" else plan


def _with_estimator(method: str, given: dict[str, Any]) -> str:
    """The method that both words mean: carried noise has an estimator of its own, which no other noise has."""
    carried, estimator = CarriedPlan.method, given.get("estimator")
    if estimator == CarriedPlan.estimator and method in ("auto", carried):
        given["estimator"] = "auto"
        return carried
    if estimator == CarriedPlan.estimator or (method == carried and estimator not in (None, "auto")):
        raise ParameterError("estimator", estimator, f"does not go with the noise {method}", "leave one of them out")
    return method


def _plans(asked: CountRequest, method: str, is_free: bool) -> list[RunningPlan]:
    """The plan with noise of each batch's own, and the one whose noise is carried on, where they are asked for."""
    found: list[RunningPlan] = []
    refused: list[ParameterError] = []
    planners: list[Callable[[], RunningPlan]] = []
    if method != CarriedPlan.method:
        planners.append(lambda: CounterPlan.for_request(with_grid(asked) if is_free else asked))
    if method == CarriedPlan.method or (method == "auto" and asked.estimator == "auto"):
        planners.append(lambda: best_carried(with_fine_grid(asked) if is_free else asked))
    for planner in planners:
        try:
            found.append(planner())
        except ParameterError as reason:
            # Infeasible, or more messages than are allowed.
            refused.append(reason)
    if not found:
        raise refused[0]
    return found


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
    "estimator": "completed, combined, carried, or auto.",
    "silent_slots": "so many slots of false people in a row are planned for, where noise is carried on; 0.",
    "bound": "proved, or certified by a computation; bits only.",
    "domain": "another domain of sums.",
}

RunningSum = RunningFamily(
    "counter",
    "A count, sum or histogram that is known after every person, by several shufflers at once.",
    {CarriedPlan.method: CarriedPlan, **dict.fromkeys(FAMILIES, CounterPlan)},
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
