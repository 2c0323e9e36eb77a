"""Plans that answer with what can be computed from another plan's answer.

A post-processing costs no privacy: messages, noise, pairs and proofs are those of the plan underneath.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self

from numpy.typing import ArrayLike

from shuffledp.errors import ParameterError
from shuffledp.protocols.family import Choice, DomainParameter, Family
from shuffledp.protocols.fields import check_fields, forwarded, saved_fields, written
from shuffledp.protocols.plan import Plan
from shuffledp.protocols.request import Request
from shuffledp.protocols.rounds import RoundPlan
from shuffledp.protocols.tallies import Tally
from shuffledp.randomness import RandomBits


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedPlan(RoundPlan):
    """A statistic that is computed from the answer of `sum_plan`, a plan of the family `summed`.

    Its method is the sum's, and its document has the sum's noise: with the statistic's own domain that makes the sum
    again.

    Attributes:
        sum_plan: the plan of the sum that the statistic is computed from.
    """

    summed: ClassVar[Family[Any]]

    sum_plan: Any

    @classmethod
    @abstractmethod
    def sum_domain(cls, **domain: Any) -> dict[str, Any]:
        """What the sum is told about its values, from what the statistic is told about the users'."""

    @abstractmethod
    def answer(self, estimate: Any) -> Any:
        """The statistic that this estimate of the sum says."""

    @abstractmethod
    def _moved(self, by: float) -> float:
        """How far a number of the statistic moves at most where a number of the sum moves by this."""

    @classmethod
    def of(cls, sum_plan: Any, **domain: Any) -> Self:
        """The statistic from this plan of the sum."""
        return cls(sum_plan=sum_plan, **sum_plan.common, **domain)

    @classmethod
    def for_request(cls, request: Request, *, method: str = "auto", **domain: Any) -> Self:
        """The statistic from the best sum for these limits, or from the named method's."""
        return cls.of(cls.summed.choice(request, method=method, **cls.sum_domain(**domain)).plan, **domain)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        domain = {name: document.get(name) for name, _, _ in saved_fields(cls, "domain")}
        kind = cls.summed.method_of(document)
        return cls.of(kind.from_document({**document, **cls.sum_domain(**domain)}), **domain)

    def __post_init__(self) -> None:
        # What the sum claims it proved when it was made.
        check_fields(self)
        wanted = self.common | type(self).sum_domain(**written(self, "domain"))
        if any(getattr(self.sum_plan, name, None) != value for name, value in wanted.items()):
            raise ParameterError("sum_plan", self.sum_plan.question, "must be the one made here", "use plan")

    method = forwarded("sum_plan.method")
    theory_page = forwarded("sum_plan.theory_page")
    is_labelled = forwarded("sum_plan.is_labelled")
    is_pure = forwarded("sum_plan.is_pure")
    can_be_voided = forwarded("sum_plan.can_be_voided")
    noise = forwarded("sum_plan.noise")
    bits_per_message = forwarded("sum_plan.bits_per_message")
    alphabet_size = forwarded("sum_plan.alphabet_size")
    messages_per_user_mean = forwarded("sum_plan.messages_per_user_mean")
    messages_per_user_max = forwarded("sum_plan.messages_per_user_max")
    mean_messages = forwarded("sum_plan.mean_messages")
    local_epsilon = forwarded("sum_plan.local_epsilon")
    local_delta = forwarded("sum_plan.local_delta")
    pair = forwarded("sum_plan.pair")
    delta_terms = forwarded("sum_plan.delta_terms")
    dominates_because = forwarded("sum_plan.dominates_because")
    _paper_epsilon_with = forwarded("sum_plan._paper_epsilon_with")
    check_values = forwarded("sum_plan.check_values")
    clip_values = forwarded("sum_plan.clip_values")
    randomize = forwarded("sum_plan.randomize")
    tally = forwarded("sum_plan.tally")
    parts = forwarded("sum_plan.parts")
    neighbours = forwarded("sum_plan.neighbours")
    summaries = forwarded("sum_plan.summaries")
    audited_messages = forwarded("sum_plan.audited_messages")
    audited_reports = forwarded("sum_plan.audited_reports")
    views = forwarded("sum_plan.views")
    adds_up = forwarded("sum_plan.adds_up")
    summary = forwarded("sum_plan.summary")
    tally_bytes = forwarded("sum_plan.tally_bytes")
    summary_bytes = forwarded("sum_plan.summary_bytes")

    def estimate(self, tally: Tally, *, simulated: bool = False) -> Any:
        return self.answer(self.sum_plan.estimate(tally, simulated=simulated))

    def sample_estimate(self, values: ArrayLike, *, bits: RandomBits) -> Any:
        return self.answer(self.sum_plan.sample_estimate(values, bits=bits))

    def sample_from(self, summary: Tally, *, bits: RandomBits) -> Any:
        return self.answer(self.sum_plan.sample_from(summary, bits=bits))

    domain = forwarded("sum_plan.domain")

    @property
    def influence(self) -> float | None:
        moved = self.sum_plan.influence
        return None if moved is None else self._moved(moved)

    @property
    def message_influence(self) -> float:
        return self._moved(self.sum_plan.message_influence)

    @property
    def lying_client(self) -> str:
        """What one client that does not follow the protocol can do to the statistic: a clause after "it"."""
        moved = self.influence
        text: str = self.sum_plan.lying_client
        return text if moved is None else f"moves a number of the answer by at most {moved:.4g}"

    def quieter(self, part: float) -> dict[str, Any]:
        return {"sum_plan": self.sum_plan.twin(part)}


@dataclass(frozen=True, repr=False)
class DerivedFamily(Family[DerivedPlan]):
    """A statistic by every method of the sum that it is computed from."""

    @classmethod
    def by(
        cls,
        kind: type[DerivedPlan],
        summary: str,
        *domain: DomainParameter,
        error_name: str = "standard error",
        reads: Literal["numbers", "words", "rows"] = "numbers",
        variants: Mapping[str, str] = MappingProxyType({}),
    ) -> "DerivedFamily":
        """The family of one statistic."""
        methods = MappingProxyType(dict.fromkeys(kind.summed.methods, kind))
        return cls(
            kind.protocol, summary, methods, domain=domain, error_name=error_name, reads=reads, variants=variants
        )

    def choice(self, request: Request, *, method: str = "auto", **domain: Any) -> Choice[DerivedPlan]:
        """The statistic from the best sum, and what became of the others."""
        self._tried(method)
        kind, given = next(iter(self.methods.values())), self.read_domain(domain)
        chosen = kind.summed.choice(request, method=method, **kind.sum_domain(**given))
        found = {
            name: kind.of(each, **given) if isinstance(each, Plan) else each for name, each in chosen.considered.items()
        }
        return Choice(found[chosen.plan.method], f"by its sum, {chosen.why}", found, chosen.more, chosen.limit)
