"""What others would achieve: the paper's own, the best uniform tree, a trusted curator, one shuffler, none."""

from shuffledp.continual.noise import calibrate
from shuffledp.continual.plan import CounterPlan
from shuffledp.continual.planner import best_layout
from shuffledp.continual.uniform_tree import uniform_tree_bound
from shuffledp.errors import InfeasibleError
from shuffledp.references.continual.local_counter import LocalCounter
from shuffledp.references.continual.paper_tree import paper_tree_error_bound
from shuffledp.references.continual.square_root import CuratorSquareRoot, best_batch


def counter_reference(plan: CounterPlan) -> dict[str, float | None]:
    """Bounds over the same horizon, with the same confidence, at the same privacy.

    >>> from shuffledp.privacy import Privacy
    >>> reference = counter_reference(CounterPlan.plan(users=1_000_000, shufflers=4, privacy=Privacy(1, 1e-6)))
    >>> round(reference["paper_error_bound"]), round(reference["central_error_bound"], 1)
    (3666, 102.7)
    """
    users, privacy, confidence = plan.users, plan.privacy, plan.confidence
    curator = CuratorSquareRoot(users=users, privacy=privacy, batch=best_batch(users, privacy, confidence))
    unbatched = CuratorSquareRoot(users=users, privacy=privacy)
    sequential: float | None
    try:
        sequential = best_layout(users, 1, privacy, confidence=confidence).bound
    except InfeasibleError:
        sequential = None
    return {
        "paper_error_bound": paper_tree_error_bound(users, plan.shufflers, privacy, confidence),
        "uniform_tree_error_bound": uniform_tree_bound(
            users, plan.shufflers, lambda levels: calibrate("laplace", levels, privacy).law(), confidence
        ),
        # For a few thousand users the plan itself is the best known: a curator may run it, too.
        "central_error_bound": min(
            curator.error_bound(confidence), unbatched.error_bound(confidence), plan.error_bound
        ),
        "sequential_error_bound": sequential,
        "local_error_bound": LocalCounter(users=users, privacy=privacy).error_bound(confidence),
    }
