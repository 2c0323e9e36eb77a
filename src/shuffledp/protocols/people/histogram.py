"""A histogram of people's rows, by every method of a histogram: rows that a person does not have are a category."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, Self

from shuffledp.accounting.groups import one_step
from shuffledp.errors import DataError
from shuffledp.protocols.derived import DerivedPlan
from shuffledp.protocols.domains.categories import as_categories
from shuffledp.protocols.domains.domain import Categories
from shuffledp.protocols.domains.repeated import Filled, RowCodes, check_at_most
from shuffledp.protocols.family import AT_MOST, CATEGORIES, Choice, Family, worst_number
from shuffledp.protocols.fields import AGAIN, domain
from shuffledp.protocols.histogram import Histogram
from shuffledp.protocols.people.steps import StepsPlan
from shuffledp.protocols.plan import Plan
from shuffledp.protocols.presentation import Presentation, View, present_categories
from shuffledp.protocols.request import Request
from shuffledp.references.curator_histogram import CuratorHistogram


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedHistogram(StepsPlan):
    """How many rows have each category, where a person has many and at most `at_most` of them count.

    `sum_plan` is the histogram of users * at_most rows, planned for the privacy of one row. The adversary sees what it
    sees of that histogram.

    >>> from shuffledp import Privacy, RandomBits, simulate
    >>> plan = RepeatedHistogram.plan(
    ...     users=10_000, privacy=Privacy(1, 1e-6), categories=["a", "b"], at_most=2, method="decoys"
    ... )
    >>> plan.sum_plan.users, plan.messages_per_user_max, round(plan.standard_error, 1)
    (20000, 4, 10.0)
    >>> people = [["a", "b"], ["a"]] * 5000
    >>> estimate = simulate(plan, plan.encode(people), bits=RandomBits.secure())
    >>> estimate.value.size, bool(abs(estimate.value[0] - 10_000) < 100)
    (2, True)
    """

    protocol: ClassVar[str] = "repeated-histogram"
    title: ClassVar[str] = "A private histogram of rows"
    counted_in: ClassVar[str] = "the histogram, whatever bins they are in"
    unit: ClassVar[str] = " rows in every category"
    file_command: ClassVar[str] = "histogram"
    summed = Histogram

    categories: Categories = domain(read=as_categories, write=Categories.document)
    at_most: int = domain("[1, 1000]")

    # --- planning ----------------------------------------------------------------------------

    @classmethod
    def sum_domain(cls, *, categories: Any, at_most: int) -> dict[str, Any]:  # type: ignore[override]
        check_at_most(at_most)
        return {"categories": Filled(as_categories(categories))}

    @classmethod
    def for_request(cls, request: Request, *, method: str = "auto", **domain: Any) -> Self:
        rows = cls.row_request(request, domain["at_most"])
        chosen = _few(domain["at_most"]).choice(rows, method=method, **cls.sum_domain(**domain))
        return cls.of_people(chosen.plan, request.common, **domain)

    @classmethod
    def check_saved(cls, domain: Mapping[str, Any]) -> None:
        if not isinstance(domain["categories"], Mapping):
            raise DataError("plan.categories", domain["categories"], "must be an object", AGAIN)

    # --- values and words --------------------------------------------------------------------

    @property
    def domain(self) -> RowCodes:
        return RowCodes(self.categories, self.at_most)

    def further_numbers(self) -> dict[str, Any]:
        return {"l_inf_error": self.error_bound}

    def reference(self) -> dict[str, float | None]:
        """A trusted curator who adds noise for all of a person's rows: as many steps of Laplace, or a Gaussian."""
        curator = CuratorHistogram(privacy=one_step(self.privacy, self.at_most), bins=self.categories.size)
        found: dict[str, float | None] = {
            **dict.fromkeys(("paper_standard_error", "local_standard_error")),
            "central_standard_error": curator.standard_error,
            "central_l_inf_error": curator.l_inf_error,
        }
        return found

    def present(self, estimate: Any, truth: Any = None, view: View | None = None) -> Presentation:
        people = self.users if view is None or view.users is None else view.users
        title = f"{self.title} of {people:,} users: {self.method}, epsilon {self.privacy.epsilon:g}"
        most = people * self.at_most
        return present_categories(
            self.categories,
            estimate,
            users=most,
            chart_title=self.cautioned(title),
            truth=truth,
            view=view,
            counted="rows",
        )

    def facts(self) -> list[tuple[str, str]]:
        sends, *others = DerivedPlan.facts(self)
        worst = f"no category is off by more than {self.error_bound:,.4g} rows, with 95% confidence"
        each = f"exactly {self.at_most:,} rows of every user, filled up with rows of no category"
        return [("what counts", each), sends, ("worst category", worst), *others]

    @property
    def question(self) -> str:
        size, most = self.categories.size, self.at_most
        return f"count the rows of {self.users:,} users in {size:,} categories, at most {most:,} rows of each user"


def _few(at_most: int) -> Family[Any]:
    """The family of histograms, where a user's few messages are shared by all its rows."""
    whole = RepeatedHistogram.summed.few_messages
    if whole is None:
        return RepeatedHistogram.summed
    return replace(RepeatedHistogram.summed, few_messages=lambda given: max(1, whole(given) // at_most))


class RepeatedFamily(Family[RepeatedHistogram]):
    """A histogram of people's rows by every method of the histogram of rows."""

    def choice(self, request: Request, *, method: str = "auto", **domain: Any) -> Choice[RepeatedHistogram]:
        """The plan from the best histogram of the rows, and what became of the others."""
        self._tried(method)
        kind, given = RepeatedHistogram, self.read_domain(domain)
        rows = kind.row_request(request, given["at_most"])
        chosen = _few(given["at_most"]).choice(rows, method=method, **kind.sum_domain(**given))
        found = {
            name: kind.of_people(each, request.common, **given) if isinstance(each, Plan) else each
            for name, each in chosen.considered.items()
        }
        best = found[chosen.plan.method]
        if method != "auto":
            return Choice(best, f"{best.method}: as asked", found)
        plans = [each for each in found.values() if isinstance(each, Plan)]
        better = sorted((each for each in plans if self.error(each) < 0.98 * self.error(best)), key=self.error)
        more = None
        if better:
            sent = f"up to {better[0].messages_per_user_max:,} messages a user"
            gain = f"{self.error_name} {self.error(better[0]):.3g} instead of {self.error(best):.3g}"
            more = f"{better[0].method} would send {sent} for {gain}: set a larger --max-messages"
        sends = f"{best.messages_per_user_mean:.3g} messages a user"
        why = f"{best.method}: {self.error_name} {self.error(best):.3g} with {sends} for its {best.at_most} rows"
        return Choice(best, why if more is None else f"{why}; {more}", found, more)


RepeatedHistogramFamily = RepeatedFamily(
    RepeatedHistogram.protocol,
    "How many rows have each category, where a person has several and at most --at-most of them count.",
    MappingProxyType(dict.fromkeys(Histogram.methods, RepeatedHistogram)),
    domain=(CATEGORIES, AT_MOST),
    error=worst_number,
    error_name="error of the worst bin",
)
