"""Range counts, distribution functions and quantiles, in one and two dimensions."""

from dataclasses import dataclass
from typing import Any

from shuffledp.protocols.domains.axes import Axis, as_axes, parse_axes
from shuffledp.protocols.family import Choice, DomainParameter, Family
from shuffledp.protocols.ranges.base import RangesPlan
from shuffledp.protocols.ranges.grid import Grid
from shuffledp.protocols.ranges.tree import Dyadic, Tree
from shuffledp.protocols.request import Request


def axes_asked(given: dict[str, Any]) -> tuple[Axis, ...]:
    """The axes that are asked for, taken out of what is said about the users' values."""
    axes, steps = given.pop("domain"), given.pop("steps", None)
    return parse_axes(axes, steps) if isinstance(axes, str) else as_axes(axes)


@dataclass(frozen=True, repr=False)
class RangesFamily(Family[RangesPlan]):
    """Trees for one axis, grids for two: the domain decides which method there is."""

    def choice(self, request: Request, *, method: str = "auto", **domain: Any) -> Choice[RangesPlan]:
        """The least error of the worst prefix within the messages allowed, and why."""
        given = self.read_domain(domain)
        axes = axes_asked(given)
        (name,) = self._tried(method) if method != "auto" else ["tree" if len(axes) == 1 else "grid"]
        plan: RangesPlan = self.methods[name].for_request(request, axes=axes, **given)
        levels = f"{len(plan.levels)} levels of branching {plan.branching[0]}"
        what = "all prefixes within" if len(axes) == 1 else "all corners within"
        bound = plan.errors.prefix_bound
        why = (
            f"{name}: {levels}; {what} {bound:,.4g} users ({bound / request.users:.3%}) "
            f"with {plan.messages_per_user_mean:.3g} messages a user"
        )
        return Choice(plan, why if method == "auto" else f"{why}; as asked")


AXES = (
    DomainParameter(
        "domain",
        None,
        "add LOW:HIGH",
        "must be given: which values there are is public",
        "the values: a number of codes, a range, (low, high), (low, high, steps), or LOW:HIGH as text.",
    ),
    DomainParameter(
        "steps", meaning="how many cells the reals from low to high are cut into; whole numbers need none."
    ),
    DomainParameter(
        "branching", meaning="into how many parts every node of the tree is split; the best number is taken."
    ),
)

Ranges = RangesFamily.of(
    "ranges",
    "How many users have a value in each range of --domain.",
    Tree,
    Dyadic,
    Grid,
    domain=AXES,
    variants={"at_most": "shuffledp.protocols.people.ranges:RepeatedRangesFamily"},
)
