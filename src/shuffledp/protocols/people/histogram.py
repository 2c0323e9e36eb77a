"""A histogram of people's rows: everybody sends the same number of them to one batch.

A person's rows are so many reports of an ordinary histogram, which is planned for a part of epsilon: replacing all of
them is as many steps between neighbours (`accounting.groups`). Rows that a person does not have are of a category of
their own, which is not shown.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.groups import GroupPair, one_step, steps_factor
from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.accounting.pairs import DominatingPair
from shuffledp.errors import DataError, ParameterError
from shuffledp.messages import Reports
from shuffledp.privacy import Privacy
from shuffledp.protocols.derived import DerivedPlan
from shuffledp.protocols.domains.categories import as_categories
from shuffledp.protocols.domains.domain import Categories
from shuffledp.protocols.domains.repeated import Filled, RowCodes, check_at_most
from shuffledp.protocols.family import AT_MOST, CATEGORIES, Choice, Family, worst_number
from shuffledp.protocols.fields import AGAIN, check_fields, domain, forwarded, saved_fields
from shuffledp.protocols.histogram import Histogram
from shuffledp.protocols.plan import Plan
from shuffledp.protocols.presentation import Presentation, View, present_categories
from shuffledp.protocols.request import Request
from shuffledp.protocols.rounds import RoundPlan
from shuffledp.protocols.tallies import Tally
from shuffledp.randomness import RandomBits
from shuffledp.references.curator_histogram import CuratorHistogram


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedHistogram(DerivedPlan):
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
    theory_page: ClassVar[str] = "docs/theory/people-and-groups.md"
    title: ClassVar[str] = "A private histogram of rows"
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

    @staticmethod
    def row_request(request: Request, at_most: int) -> Request:
        """What the histogram of all rows is asked for: so many reports, a step's privacy, and as many honest ones."""
        check_at_most(at_most)
        limit = request.max_messages
        if limit is not None and limit < at_most:
            problem = f"must be at least {at_most}, a message a row"
            raise ParameterError("max_messages", limit, problem, "allow more, or lower at_most")
        return replace(
            request,
            users=request.users * at_most,
            privacy=one_step(request.privacy, at_most),
            # Whole people are honest or not: never more rows than theirs are counted on.
            honest_fraction=1.0 if request.honest_fraction == 1 else request.honest / request.users,
            max_messages=None if limit is None else limit // at_most,
        )

    @classmethod
    def of_people(cls, sum_plan: Any, common: Mapping[str, Any], **domain: Any) -> Self:
        """The plan for people from the plan of all their rows."""
        return cls(sum_plan=sum_plan, **common, **domain)

    @classmethod
    def for_request(cls, request: Request, *, method: str = "auto", **domain: Any) -> Self:
        rows = cls.row_request(request, domain["at_most"])
        chosen = _few(domain["at_most"]).choice(rows, method=method, **cls.sum_domain(**domain))
        return cls.of_people(chosen.plan, request.common, **domain)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        domain: dict[str, Any] = {name: document.get(name) for name, _, _ in saved_fields(cls, "domain")}
        privacy = Privacy(document.get("epsilon"), document.get("delta"))  # type: ignore[arg-type]
        common = {name: document.get(name) for name in ("users", "honest_fraction", "constants")}
        request = Request(privacy=privacy, **common)  # type: ignore[arg-type]
        if not isinstance(domain["categories"], Mapping):
            raise DataError("plan.categories", domain["categories"], "must be an object", AGAIN)
        rows = cls.row_request(request, domain["at_most"])
        kind = cls.summed.method_of(document)
        own = {"users": rows.users, "epsilon": rows.privacy.epsilon, "delta": rows.privacy.delta}
        own["honest_fraction"] = rows.honest_fraction
        sum_plan = kind.from_document({**document, **own, **cls.sum_domain(**domain)})
        return cls.of_people(sum_plan, request.common, **domain)

    def __post_init__(self) -> None:
        check_fields(self)
        request = self.row_request(Request(**self.common), self.at_most)
        wanted = request.common | self.sum_domain(categories=self.categories, at_most=self.at_most)
        if any(getattr(self.sum_plan, name, None) != value for name, value in wanted.items()):
            raise ParameterError("sum_plan", self.sum_plan.question, "must be the one made here", "use plan")
        # The rows' own plan proved one step; that all of them keep the claim is proved here.
        Plan.__post_init__(self)

    def _check_noise(self) -> None:
        rows, people = self.sum_plan.honest_users, self.honest_users * self.at_most
        if rows > people:
            problem = f"must not count on more than the honest users' {people:,} rows"
            raise ParameterError("honest_fraction", self.honest_fraction, problem, "choose another fraction")

    # --- privacy -----------------------------------------------------------------------------

    def pair(self, honest: int) -> DominatingPair:
        return GroupPair(self.sum_plan.pair(honest * self.at_most), self.at_most)

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        """Every term of one step at a part of epsilon, as often as group privacy counts it."""
        steps, factor = self.at_most, steps_factor(epsilon, self.at_most)
        return tuple(
            DeltaTerm(term.name, factor * term.value, f"{factor:.4g} times, for {steps} rows: {term.why}")
            for term in self.sum_plan.delta_terms(epsilon / steps, honest * steps)
        )

    @property
    def dominates_because(self) -> str:
        return (
            f"Replacing all of a person's {self.at_most:,} rows is as many steps, each of which replaces one row of "
            f"the histogram, whatever bins they are in: group privacy. One row: {self.sum_plan.dominates_because}"
        )

    def _paper_epsilon_with(self, honest_fraction: float) -> float | None:
        return None

    # --- values and messages -----------------------------------------------------------------

    @property
    def domain(self) -> RowCodes:
        return RowCodes(self.categories, self.at_most)

    is_unbiased = forwarded("sum_plan.is_unbiased")
    keeps_zero = forwarded("sum_plan.keeps_zero")
    standard_error = forwarded("sum_plan.standard_error")
    error_bound = forwarded("sum_plan.error_bound")

    def check_values(self, values: ArrayLike) -> Any:
        return self.domain.check_values(values)

    def clip_values(self, values: ArrayLike) -> tuple[Any, int]:
        return self.check_values(values), 0

    def standard_errors_for(self, values: ArrayLike) -> Any:
        found = self.sum_plan.standard_errors_for(self._rows(values))
        return found[:-1] if np.ndim(found) else found

    def _rows(self, values: ArrayLike) -> NDArray[np.int64]:
        return np.asarray(self.check_values(values).reshape(-1))

    @property
    def messages_per_user_max(self) -> int:
        return int(self.at_most * self.sum_plan.messages_per_user_max)

    @property
    def messages_per_user_mean(self) -> float:
        return float(self.at_most * self.sum_plan.messages_per_user_mean)

    def mean_messages(self, values: ArrayLike) -> float:
        """Messages a person sends on average with these rows."""
        return float(self.at_most * self.sum_plan.mean_messages(self._rows(values)))

    @property
    def local_epsilon(self) -> float | None:
        """A person's rows are randomized independently: what each shows adds up."""
        once = self.sum_plan.local_epsilon
        return None if once is None else float(self.at_most * once)

    @property
    def local_delta(self) -> float | None:
        once = self.sum_plan.local_delta
        return None if once is None else float(self.at_most * once)

    def randomize(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        """One report a person: the messages of all its rows."""
        rows: Reports = self.sum_plan.randomize(self._rows(values), bits=bits)
        return replace(rows, sizes=rows.sizes.reshape(-1, self.at_most).sum(axis=1))

    parts = RoundPlan.parts

    def estimate(self, tally: Tally, *, simulated: bool = False) -> Any:
        self.check_reports(tally.reports)
        every = replace(tally, reports=tally.reports * self.at_most)
        return self.answer(self.sum_plan.estimate(every, simulated=simulated))

    def sample_estimate(self, values: ArrayLike, *, bits: RandomBits) -> Any:
        codes = self.check_values(values)
        self.check_reports(len(codes))
        return self.answer(self.sum_plan.sample_estimate(codes.reshape(-1), bits=bits))

    def answer(self, estimate: Any) -> Any:
        """The categories' counts, without the rows that nobody has."""
        return replace(estimate, value=estimate.value[:-1])

    def true_value(self, values: ArrayLike) -> Any:
        return self.sum_plan.true_value(self._rows(values))[:-1]

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

    # --- words, people who lie, audits -------------------------------------------------------

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

    def _moved(self, by: float) -> float:
        return by

    @property
    def influence(self) -> float | None:
        moved = self.sum_plan.influence
        return None if moved is None else float(self.at_most * moved)

    @property
    def question(self) -> str:
        size, most = self.categories.size, self.at_most
        return f"count the rows of {self.users:,} users in {size:,} categories, at most {most:,} rows of each user"

    @property
    def neighbours(self) -> tuple[Any, Any, Any]:
        """All of a person's rows in the first bin, or all in the second, the others' in a third."""
        first, second, others = (np.repeat(code, self.at_most).reshape(1, -1) for code in self.sum_plan.neighbours)
        return first, second, others

    @property
    def audited_messages(self) -> int:
        return int(self.at_most * self.sum_plan.audited_messages)

    def audited_reports(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        found: Reports = self.sum_plan.audited_reports(self._rows(values), bits=bits)
        return found

    views = RoundPlan.views


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
