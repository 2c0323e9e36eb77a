"""What a private running sum is compared with: others' bounds over the same horizon, at the same privacy."""

from dataclasses import replace
from typing import Any

from shuffledp.accounting.laws import IntegerLaw
from shuffledp.continual.planner import best_layout
from shuffledp.continual.request import ROUNDING_FAILURE, CountRequest, noise_failure
from shuffledp.continual.running import RunningPlan
from shuffledp.continual.uniform_tree import best_uniform_tree
from shuffledp.continual.views import UserView
from shuffledp.errors import InfeasibleError
from shuffledp.protocols.domains.summed import Bits, OneHot, SummedDomain, Vectors
from shuffledp.protocols.sums.noise import FAMILIES
from shuffledp.references.continual.buffered import buffered_curator_bound
from shuffledp.references.continual.local_counter import local_error_bound
from shuffledp.references.continual.paper_tree import paper_tree_error_bound
from shuffledp.references.continual.square_root import best_curator_bound


def counter_reference(plan: RunningPlan) -> dict[str, float | None]:
    """Bounds over the same horizon, with the same confidence, at the same privacy, of the same values.

    The tree and the one shuffler have the plan's kind of noise and count on the same part of the users; the curator is
    trusted, so it takes the best that is known. None stands for what is not computed: of vectors all but the curator's;
    of categories the tree, the paper and the local model; of numbers and of several rows the paper, which has no
    constants for them; and the tree where coins are dealt out to users who are not all counted on.

    >>> from shuffledp.privacy import Privacy
    >>> from shuffledp.continual.plan import CounterPlan
    >>> reference = counter_reference(CounterPlan.plan(users=1_000_000, shufflers=4, privacy=Privacy(1, 1e-6)))
    >>> round(reference["paper_error_bound"]), round(reference["central_error_bound"], 1)
    (3666, 96.5)
    """
    users, privacy, confidence, domain = plan.users, plan.privacy, plan.confidence, plan.domain
    is_bit = isinstance(domain, Bits)
    local = None
    if not isinstance(domain, Vectors | OneHot):
        local = domain.diameter * local_error_bound(users, privacy, confidence, numbers=not is_bit)
    return {
        "paper_error_bound": paper_tree_error_bound(users, plan.shufflers, privacy, confidence) if is_bit else None,
        "independent_error_bound": _independent(plan),
        "uniform_tree_error_bound": _uniform_tree(plan),
        "central_error_bound": _central(plan),
        "sequential_error_bound": None if isinstance(domain, Vectors) else _best(_asked(plan, shufflers=1)),
        "local_error_bound": local,
    }


def _asked(plan: RunningPlan, *, shufflers: int) -> CountRequest:
    """The plan's own question, with its kind of noise, to so many shufflers."""
    return CountRequest(
        users=plan.users,
        shufflers=shufflers,
        privacy=plan.privacy,
        honest_fraction=plan.honest_fraction,
        confidence=plan.confidence,
        domain=plan.domain,
        noise=plan.reference_noise,
    )


def _best(asked: CountRequest) -> float | None:
    """The smallest bound that is proved for this question; None where there is no private answer."""
    try:
        noise_and_rest = best_layout(asked).bound
    except InfeasibleError:
        return None
    return noise_and_rest + _rounding(asked.domain, asked.users, asked.confidence)


def _rounding(domain: SummedDomain, users: int, confidence: float) -> float:
    return domain.rounding_bound(users, ROUNDING_FAILURE * (1 - confidence))


def _uniform_tree(plan: RunningPlan) -> float | None:
    """The best tree whose batches of a level are all of one size, with the plan's kind of noise."""
    domain, family = plan.domain, plan.reference_noise
    if isinstance(domain, Vectors | OneHot) or (FAMILIES[family].is_exact and plan.honest_fraction < 1):
        return None

    def law(levels: int) -> IntegerLaw:
        return UserView.of(domain, levels, plan.privacy).calibrate(family, plan.privacy).law(plan.surplus)

    failure = noise_failure(domain, plan.confidence)
    tree = best_uniform_tree(plan.users, plan.shufflers, law, 1 - failure, domain.reach / domain.step)
    return domain.step * tree.bound + _rounding(domain, plan.users, plan.confidence)


def _independent(plan: RunningPlan) -> float | None:
    """What the same shufflers reach where every batch has noise of its own; None where that is the plan itself."""
    return None if plan.is_independent else _best(replace(_asked(plan, shufflers=plan.shufflers), noise="auto"))


def _central(plan: RunningPlan) -> float:
    """The smallest of what is known: the square root, a few buffers, and the shufflers' own schedule and noise."""
    domain = plan.domain
    values: dict[str, Any] = {"sensitivity": domain.diameter, "coordinates": domain.coordinates, "reach": domain.reach}
    found = [
        curator(plan.users, plan.privacy, plan.confidence, **values)
        for curator in (best_curator_bound, buffered_curator_bound)
    ]
    found.append(plan.error_bound)
    if FAMILIES[plan.reference_noise].is_exact or plan.honest_fraction < 1:
        # A curator draws all the noise itself, of any kind.
        alone = (
            None
            if isinstance(domain, Vectors)
            else _best(replace(_asked(plan, shufflers=plan.shufflers), noise="auto", honest_fraction=1.0))
        )
        found += [] if alone is None else [alone]
    return min(found)
