"""What others would achieve: the paper's own, the best uniform tree, a trusted curator, one shuffler, none."""

from shuffledp.continual.guarantee import PrivateCount
from shuffledp.continual.noise import calibrate
from shuffledp.continual.planner import best_layout
from shuffledp.continual.request import CountRequest
from shuffledp.continual.uniform_tree import best_uniform_tree
from shuffledp.errors import InfeasibleError
from shuffledp.protocols.domains.summed import BITS, OneHot, Vectors
from shuffledp.references.continual.local_counter import local_error_bound
from shuffledp.references.continual.paper_tree import paper_tree_error_bound
from shuffledp.references.continual.square_root import best_curator_bound


def counter_reference(plan: PrivateCount) -> dict[str, float | None]:
    """Bounds over the same horizon, with the same confidence, at the same privacy.

    Of numbers in [0, 1] they are those of bits, which are such numbers; of people with up to m rows, m times those. Of
    vectors and categories there is the curator's, for all coordinates at once; one shuffler's for categories only, as
    it is slow to find for vectors; the paper gives no constants, and neither the tree nor the local model is computed:
    None.

    >>> from shuffledp.privacy import Privacy
    >>> from shuffledp.continual.plan import CounterPlan
    >>> reference = counter_reference(CounterPlan.plan(users=1_000_000, shufflers=4, privacy=Privacy(1, 1e-6)))
    >>> round(reference["paper_error_bound"]), round(reference["central_error_bound"], 1)
    (3666, 102.7)
    """
    users, privacy, confidence = plan.users, plan.privacy, plan.confidence
    paper = tree = local = None
    if not isinstance(plan.domain, Vectors | OneHot):
        paper = paper_tree_error_bound(users, plan.shufflers, privacy, confidence)
        tree = best_uniform_tree(
            users, plan.shufflers, lambda levels: calibrate("laplace", levels, privacy).law(), confidence
        ).bound
        local = local_error_bound(users, privacy, confidence)
        paper, tree, local = (plan.domain.diameter * bound for bound in (paper, tree, local))
    return {
        "paper_error_bound": paper,
        "uniform_tree_error_bound": tree,
        "central_error_bound": _central(plan),
        "sequential_error_bound": None if isinstance(plan.domain, Vectors) else _sequential(plan),
        "local_error_bound": local,
    }


def _central(plan: PrivateCount) -> float:
    """The square root's; for a few thousand users the plan's, which a curator may run, too."""
    domain = plan.domain
    curator = best_curator_bound(
        plan.users,
        plan.privacy,
        plan.confidence,
        sensitivity=domain.diameter,
        coordinates=domain.coordinates,
        reach=domain.reach,
    )
    return min(curator, plan.error_bound)


def _sequential(plan: PrivateCount) -> float | None:
    domain = BITS if plan.domain.rounds else plan.domain
    try:
        return best_layout(
            CountRequest(
                users=plan.users,
                shufflers=1,
                privacy=plan.privacy,
                confidence=plan.confidence,
                domain=domain,
                estimator="completed",
            )
        ).bound
    except InfeasibleError:
        return None
