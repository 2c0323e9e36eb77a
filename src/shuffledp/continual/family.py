"""The family of running sums: counts, sums, vectors and histograms that are known after every person."""

from dataclasses import dataclass
from typing import Any

from shuffledp.continual.certified import certify
from shuffledp.continual.plan import CounterPlan
from shuffledp.errors import ParameterError
from shuffledp.protocols.domains.summed import OneHot, SummedDomain
from shuffledp.protocols.family import Choice, DomainParameter, Family
from shuffledp.protocols.request import Request
from shuffledp.protocols.sums.noise import FAMILIES

KINDS = ("bits", "reals", "vectors", "categories")


@dataclass(frozen=True)
class RunningFamily(Family[CounterPlan]):
    """Methods are families of noise; the planner compares them itself, with schedules and grids."""

    def method_of(self, document: Any) -> type[CounterPlan]:
        return CounterPlan

    def choice(self, request: Request, *, method: str = "auto", **domain: Any) -> Choice[CounterPlan]:
        """The smallest proved bound over the whole horizon, and why."""
        self._tried(method)
        given = self.read_domain(domain)
        if request.constants != "exact":
            raise ParameterError("constants", request.constants, "are not given for running sums", "leave it out")
        plan = _planned(request, method, **given)
        most = request.max_messages
        if most is not None and plan.messages_per_user_max > most:
            problem = f"must be at least {plan.messages_per_user_max}, what {plan.method} sends to all shufflers"
            raise ParameterError("max_messages", most, problem, "allow more messages, or use fewer shufflers")
        why = (
            f"{plan.method}: every estimate within {plan.error_bound:,.4g} by {plan.shufflers_used} shufflers, with "
            f"{plan.messages_per_user_mean:.3g} messages a user"
        )
        return Choice(plan, why if method == "auto" else f"{plan.method}: as asked", {plan.method: plan})


def _planned(
    request: Request,
    method: str,
    *,
    shufflers: int = 4,
    values: str | None = None,
    dimension: int | None = None,
    radius: float | None = None,
    categories: Any = None,
    confidence: float = 0.95,
    estimator: str = "auto",
    bound: str = "proved",
    domain: SummedDomain | None = None,
) -> CounterPlan:
    kind = values or ("vectors" if dimension is not None else "categories" if categories is not None else "bits")
    asked: dict[str, Any] = {
        "users": request.users,
        "privacy": request.privacy,
        "honest_fraction": request.honest_fraction,
        "shufflers": shufflers,
        "noise": method,
        "confidence": confidence,
        "estimator": estimator,
    }
    planners = {
        "bits": lambda: CounterPlan.plan(domain=domain, **asked),
        "reals": lambda: CounterPlan.plan_reals(**asked),
        "vectors": lambda: CounterPlan.plan_vectors(dimension=dimension, radius=radius, **asked),  # type: ignore[arg-type]
        "categories": lambda: CounterPlan.plan(
            domain=OneHot(categories) if isinstance(categories, int) else OneHot.of(categories), **asked
        ),
    }
    if kind not in planners:
        raise ParameterError("values", values, f"must be one of {', '.join(planners)}", "bits are the default")
    plan = planners[kind]()
    return certify(plan) if bound == "certified" else plan


RunningSum = RunningFamily(
    "counter",
    "A count, sum or histogram that is known after every person, by several shufflers at once.",
    dict.fromkeys(FAMILIES, CounterPlan),
    domain=tuple(
        DomainParameter(name)
        for name in (
            "shufflers",
            "values",
            "dimension",
            "radius",
            "categories",
            "confidence",
            "estimator",
            "bound",
            "domain",
        )
    ),
    error=lambda plan: plan.error_bound,
    error_name="error at all times",
)
