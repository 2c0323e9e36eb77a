"""People's rows as so many reports each of another plan: everybody sends the same number of them to one batch.

The other plan is made for a part of epsilon: replacing all of a person's rows is as many steps between its neighbours
(`accounting.groups`). Rows that a person does not have are of a cell of their own, the last, which is not shown.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.groups import GroupPair, one_step, steps_factor
from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.accounting.pairs import DominatingPair
from shuffledp.errors import ParameterError
from shuffledp.messages import Reports
from shuffledp.privacy import Privacy
from shuffledp.protocols.derived import DerivedPlan
from shuffledp.protocols.domains.repeated import check_at_most
from shuffledp.protocols.fields import check_fields, forwarded, saved_fields
from shuffledp.protocols.plan import Plan
from shuffledp.protocols.request import Request
from shuffledp.protocols.rounds import RoundPlan
from shuffledp.protocols.tallies import Tally
from shuffledp.randomness import RandomBits


class StepsPlan(DerivedPlan):
    """Counts of the rows of people who have many, of whom at most `at_most` count; `sum_plan` counts single rows.

    `sum_plan` is for users * at_most reports, at the privacy of one row. The adversary sees what it sees of it.
    """

    __slots__ = ()
    theory_page: ClassVar[str] = "docs/theory/people-and-groups.md"
    counted_in: ClassVar[str]
    """What a replaced row is one of, in words."""

    at_most: int

    # --- planning ----------------------------------------------------------------------------

    @staticmethod
    def row_request(request: Request, at_most: int) -> Request:
        """What the plan of all rows is asked for: so many reports, a step's privacy, and as many honest ones."""
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
    def check_saved(cls, domain: Mapping[str, Any]) -> None:
        """Refuse what a document says about people's rows where no plan writes it so."""

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        domain: dict[str, Any] = {name: document.get(name) for name, _, _ in saved_fields(cls, "domain")}
        cls.check_saved(domain)
        privacy = Privacy(document.get("epsilon"), document.get("delta"))  # type: ignore[arg-type]
        common = {name: document.get(name) for name in ("users", "honest_fraction", "constants")}
        request = Request(privacy=privacy, **common)  # type: ignore[arg-type]
        rows = cls.row_request(request, domain["at_most"])
        kind = cls.summed.method_of(document)
        own = {"users": rows.users, "epsilon": rows.privacy.epsilon, "delta": rows.privacy.delta}
        own["honest_fraction"] = rows.honest_fraction
        sum_plan = kind.from_document({**document, **own, **cls.sum_domain(**domain)})
        return cls.of_people(sum_plan, request.common, **domain)

    def __post_init__(self) -> None:
        check_fields(self)
        request = self.row_request(Request(**self.common), self.at_most)
        wanted = request.common | self.sum_domain(
            **{name: getattr(self, name) for name, _, _ in saved_fields(type(self), "domain")}
        )
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
            f"{self.counted_in}: group privacy. One row: {self.sum_plan.dominates_because}"
        )

    def _paper_epsilon_with(self, honest_fraction: float) -> float | None:
        return None

    # --- values and messages -----------------------------------------------------------------

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
    def least_mean_messages(self) -> float:
        return float(self.at_most * self.sum_plan.least_mean_messages)

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

    def summary(self, values: ArrayLike, *, bits: RandomBits) -> Tally:
        codes = self.check_values(values)
        every: Tally = self.sum_plan.summary(codes.reshape(-1), bits=bits)
        return replace(every, reports=len(codes))

    def sample_from(self, summary: Tally, *, bits: RandomBits) -> Any:
        self.check_reports(summary.reports)
        every = replace(summary, reports=summary.reports * self.at_most)
        return self.answer(self.sum_plan.sample_from(every, bits=bits))

    def answer(self, estimate: Any) -> Any:
        """What is counted, without the rows that nobody has."""
        return replace(estimate, value=estimate.value[:-1])

    def true_value(self, values: ArrayLike) -> Any:
        return self.sum_plan.true_value(self._rows(values))[:-1]

    # --- people who lie, audits --------------------------------------------------------------

    def _moved(self, by: float) -> float:
        return by

    @property
    def influence(self) -> float | None:
        moved = self.sum_plan.influence
        return None if moved is None else float(self.at_most * moved)

    @property
    def neighbours(self) -> tuple[Any, Any, Any]:
        """All of a person's rows as one of two neighbours of the plan of all rows, the others' as everybody else's."""
        first, second, others = (np.repeat(code, self.at_most).reshape(1, -1) for code in self.sum_plan.neighbours)
        return first, second, others

    @property
    def audited_messages(self) -> int:
        return int(self.at_most * self.sum_plan.audited_messages)

    def audited_reports(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        found: Reports = self.sum_plan.audited_reports(self._rows(values), bits=bits)
        return found

    views = RoundPlan.views
