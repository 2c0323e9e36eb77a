"""Families of methods that answer one question, and which of them is the best for given limits."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from types import MappingProxyType
from typing import Any, Generic, Literal, TypeVar

from shuffledp.errors import DataError, ParameterError
from shuffledp.privacy import Privacy, as_privacy
from shuffledp.protocols.choosing import FEW_MESSAGES, Choice, Choosing
from shuffledp.protocols.domains.categories import as_categories
from shuffledp.protocols.fields import AGAIN, Constants
from shuffledp.protocols.plan import Plan
from shuffledp.protocols.request import Request

P = TypeVar("P", bound=Plan, covariant=True)

_NAME = re.compile("[a-z][a-z0-9-]*")
# What every plan is asked for, by the names that a domain's parameter cannot have.
_ASKED = {"method", "epsilon", "delta", *(each.name for each in fields(Request))}

__all__ = ["CATEGORIES", "Choice", "DomainParameter", "Family", "few_a_user", "standard_error", "worst_number"]


def check_name(what: str, name: Any) -> None:
    """Refuse a name of a family or of a method that documents, fingerprints and commands cannot tell apart."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name == "auto":
        shown = name if isinstance(name, str) else type(name).__name__
        problem = "must be small letters, digits and hyphens, and not auto"
        raise ParameterError(what, shown, problem, "choose another name")


@dataclass(frozen=True, slots=True)
class DomainParameter:
    """One thing that a family must be told about its users' values.

    Attributes:
        name: as an argument in Python, and as an option of the command line.
        read: turns what a person may write into what methods take.
        way_out: what to do where it is missing; None if it may be left out.
        problem: what is wrong where it is missing.
        meaning: what it is, for `help`.

    >>> DomainParameter("low", way_out="add --low, the lowest value there is").name
    'low'
    """

    name: str
    read: Callable[[Any], Any] | None = None
    way_out: str | None = None
    problem: str = "must be given"
    meaning: str = ""


CATEGORIES = DomainParameter(
    "categories",
    as_categories,
    "pass a number, a range or names",
    "must say which categories there are",
    "all that a user may have: names, a range, or how many codes 0, 1, ... there are. Public, not read from the data.",
)
"""What families that count categories must be told: which ones there are."""
RANGE = (
    DomainParameter(
        "low",
        way_out="add --low, the lowest value there is",
        meaning="the lowest value that a user may have; known beforehand, not read from the data.",
    ),
    DomainParameter(
        "high",
        way_out="add --high, the highest value there is",
        meaning="the highest value that a user may have; the noise grows with the range.",
    ),
)
AT_MOST = DomainParameter(
    "at_most",
    way_out="add --at-most, how many rows of one person may count",
    meaning="how many rows of one person count; everybody contributes as many.",
)


ROW_A_PERSON = (
    "make one row a person first, such as everybody's own mean or last value: a guarantee for rows protects nobody who "
    "has several"
)
LEAVE_ONE = "leave one of them out"


def standard_error(plan: Plan) -> float:
    """The error by which sums are compared.

    Args:
        plan: one that is compared.

    Returns:
        Its standard error.

    >>> from shuffledp import BinarySum
    >>> round(standard_error(BinarySum.plan(users=1000, privacy=(1, 1e-6), method="shares")), 2)
    1.36
    """
    return plan.standard_error


def few_a_user(given: Mapping[str, Any]) -> int:
    """The messages a user that auto keeps to where no limit is given: a phone's report stays below 4 kB.

    Args:
        given: what is said about the values; the number is the same for all.

    Returns:
        How many messages.

    >>> few_a_user({})
    32
    """
    return FEW_MESSAGES


def worst_number(plan: Plan) -> float:
    """The error by which vectors of counts are compared: that of the worst of them.

    Args:
        plan: one that is compared.

    Returns:
        Its error bound.

    >>> from shuffledp import Histogram
    >>> plan = Histogram.plan(users=1000, privacy=(1, 1e-6), categories=3)
    >>> worst_number(plan) == plan.error_bound
    True
    """
    return plan.error_bound


@dataclass(frozen=True, repr=False)
class Family(Generic[P]):
    """Everything that is known about one question: its name, its values, its methods, and how they are compared.

    Attributes:
        name: as in documents and on the command line.
        summary: the question in one sentence.
        methods: the plans' classes, by the names of their methods.
        domain: what must be said about the users' values.
        error: what the best method has the least of.
        error_name: the same in words.
        error_unit: words after its number, with a blank before them, where the name does not say what is counted.
        reads: how a table is read before there is a plan whose domain could say it: a column of numbers or of words,
            or rows of several numbers.
        variants: families that answer the same question where more is said, "module:attribute" by the name of what is
            said: how many rows of one person count, or which groups there are; "first+second" where both are.

    >>> from shuffledp import BinarySum, Privacy
    >>> BinarySum.plan(users=60, privacy=Privacy(1, 1e-6), method="coins").noise
    {'law': 'binomial', 'bits_per_user': 2, 'probability': 0.5}
    """

    name: str
    summary: str
    methods: Mapping[str, Any]
    domain: tuple[DomainParameter, ...] = ()
    error: Callable[[Any], float] = standard_error
    error_name: str = "standard error"
    error_unit: str = ""
    reads: Literal["numbers", "words", "rows"] = "numbers"
    few_messages: Callable[[Mapping[str, Any]], int] | None = None
    """Messages that auto lets a user send where no limit is given, from what is said about the values; None for any
    number. Where no method keeps to it, the one with the fewest messages is taken."""
    comparisons: Mapping[str, Callable[..., dict[str, Any]]] = field(default_factory=dict)
    """Methods that protect nobody, for comparison: a function of users, privacy and domain, to a document."""
    variants: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._check()
        # What `help` and a notebook's question mark show of a family is its own, not that of all families.
        object.__setattr__(self, "__doc__", self._help())

    def _check(self) -> None:
        """Refuse what is no family: names that cannot be told apart, methods without names, parameters of no kind."""
        check_name("protocol", self.name)
        methods: Any = self.methods
        if not isinstance(methods, Mapping):
            raise ParameterError(
                "methods", type(methods).__name__, "must be classes of plans by their names", "use Family.of"
            )
        for name in methods:
            check_name("method", name)
        for parameter in self.domain if isinstance(self.domain, tuple) else (self.domain,):
            if not isinstance(parameter, DomainParameter) or not str(parameter.name).isidentifier():
                raise ParameterError("domain", parameter, "must be a tuple of DomainParameters", "name each one")
            if parameter.name in _ASKED:
                problem = "must not be what every plan is asked for"
                raise ParameterError("domain", parameter.name, problem, "choose another name")

    def _help(self) -> str:
        own = [(parameter.name, parameter.meaning or parameter.problem, parameter.way_out) for parameter in self.domain]
        told = [f"    {name}: {text}{'' if needed else ' May be left out.'}" for name, text, needed in own]
        lines = [
            self.summary.replace("--", ""),
            "",
            f"Methods: {', '.join(self.methods)}; `auto` takes the one with the least error that keeps to the limits.",
            "",
            "plan(users=..., privacy=Privacy(epsilon=1, delta=1e-6), ...) makes a plan. Its parameters:",
            "    users: how many people report.",
            "    privacy: a Privacy, or the pair (epsilon, delta), that must hold.",
            *told,
            "    method: the name of a method, or auto.",
            "    honest_fraction: the part of the users that is counted on to follow the protocol; 1 if left out.",
            "    max_messages: how many messages a user may send at most.",
            "    constants: exact noise, or the paper's own for comparison.",
            "",
            "A plan says its error before anybody reports: plan.standard_error, plan.error_bound. It runs by",
            "simulate(plan, plan.encode(values), bits=RandomBits.secure()), or live by `shuffledp task create`.",
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.summary.replace('--', '')} Methods: {', '.join(self.methods)}>"

    @classmethod
    def of(cls, name: str, summary: str, *methods: type[Plan], **more: Any) -> "Family[Any]":
        """A family of these classes, each under the name of its method."""
        return cls(name, summary, MappingProxyType({method.method: method for method in methods}), **more)

    def with_method(self, method: type[Plan]) -> "Family[P]":
        """The family with one more method."""
        return replace(self, methods=MappingProxyType({**self.methods, method.method: method}))

    def plan(
        self,
        *,
        users: int,
        privacy: Privacy | tuple[float, float],
        method: str = "auto",
        honest_fraction: float = 1.0,
        max_messages: int | None = None,
        live: bool = False,
        constants: Constants = "exact",
        **domain: Any,
    ) -> P:
        """The plan of the named method, or of the best one for these limits.

        Args:
            users: how many people report.
            privacy: the (epsilon, delta) that must hold, as a `Privacy` or as a pair.
            method: the name of a method, or auto.
            honest_fraction: the part of the users that is counted on to follow the protocol.
            max_messages: how many messages a user may send at most; None for no limit on a named method, and for
                few (see `few_messages`) where the method is auto.
            live: whether the plan is for the live service, which takes none that one client can spoil for everybody.
            constants: exact noise, or the paper's own for comparison.
            **domain: what the family must be told about the users' values; see `domain`.

        Returns:
            A frozen plan whose noise reaches the target.

        Raises:
            ParameterError: a value outside what it may be.
            InfeasibleError: no method meets the limits.
        """
        request = Request(
            users=users,
            privacy=as_privacy(privacy),
            honest_fraction=honest_fraction,
            max_messages=max_messages,
            live=live,
            constants=constants,
        )
        plan: P = self.for_what(domain).choice(request, method=method, **domain).plan
        return plan

    def choose(self, *, method: str = "auto", **asked: Any) -> Choice[P]:
        """As `plan`, with the reason for the choice and what became of the other methods."""
        request, domain = Request.split(asked)
        return self.for_what(domain).choice(request, method=method, **domain)

    def for_what(self, said: Mapping[str, Any]) -> "Family[Any]":
        """The family that answers where this is said: itself, or the variant that one of the names asks for.

        >>> from shuffledp import Histogram
        >>> Histogram.for_what({"at_most": 3}).name, Histogram.for_what({"at_most": None}).name
        ('repeated-histogram', 'histogram')
        """
        found = {self.variants[name]: name for name in reversed(list(self.variants)) if said.get(name) is not None}
        if len(found) > 1:
            second, first = found.values()
            both = f"{first}+{second}"
            if both in self.variants:
                return self._variant(both)
            problem = f"cannot be said together with {first} here"
            shown = ", ".join(names) if (names := getattr(said[second], "listed", None)) else said[second]
            raise ParameterError(second, shown, problem, ROW_A_PERSON if AT_MOST.name in (first, second) else LEAVE_ONE)
        return self._variant(*found.values()) if found else self

    def _variant(self, name: str) -> "Family[Any]":
        """The family that answers where this is said."""
        module, _, attribute = self.variants[name].partition(":")
        variant: Family[Any] = getattr(import_module(module), attribute)
        return variant

    def choice(self, request: Request, *, method: str = "auto", **domain: Any) -> Choice[P]:
        """The least error among the methods that keep to the limits, and why."""
        names, given = self._tried(method), self.read_domain(domain)
        is_free = method == "auto" and request.max_messages is None
        few = self.few_messages(given) if is_free and self.few_messages is not None else None
        chosen = Choosing(self.methods, self.error, self.error_name, request, given, few, self.error_unit)
        chosen.run(names)
        best = chosen.winner()
        if method != "auto":
            return Choice(best, f"{best.method}: as asked", chosen.considered)
        more = chosen.more(best)
        why = chosen.why(best)
        words = why if more is None else f"{why}; {more}"
        return Choice(best, words, chosen.considered, more, chosen.limit_of(best))

    def method_of(self, document: Mapping[str, Any]) -> type[P]:
        """The class of plans that a document belongs to."""
        kind: type[P] | None = self.methods.get(str(document.get("method")))
        if kind is None:
            raise DataError("plan.method", document.get("method"), f"must be one of {', '.join(self.methods)}", AGAIN)
        return kind

    def check_own(self, plan: Plan) -> None:
        """Refuse a plan of another family; one of a variant answers the same question."""
        if plan.protocol != self.name and plan.protocol not in (self._variant(name).name for name in self.variants):
            way_out = f"make one with `shuffledp plan {self.name} ... -o FILE`, or run this with `shuffledp simulate`"
            raise ParameterError("plan", plan.protocol, f"must be a plan of {self.name}", way_out)

    def question_of(self, plan: Any) -> dict[str, Any]:
        """What a plan of this family is asked about its users' values, for another method to answer."""
        return {parameter.name: getattr(plan, parameter.name, None) for parameter in self.domain}

    def read_domain(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What is said about the users' values, as methods take it; what is missing is asked for."""
        known = {parameter.name: parameter for parameter in self.domain}
        for name, value in given.items():
            if name not in known and value is not None:
                way_out = ROW_A_PERSON if name == AT_MOST.name else "leave it out"
                raise ParameterError(name, value, f"is not a parameter of {self.name}", way_out)
        found = {}
        for name, parameter in known.items():
            value = given.get(name)
            if value is None and parameter.way_out is not None:
                raise ParameterError(name, None, parameter.problem, parameter.way_out)
            if value is not None:
                found[name] = value if parameter.read is None else parameter.read(value)
        return found

    def _tried(self, method: str) -> list[str]:
        if method == "auto":
            return list(self.methods)
        if method not in self.methods:
            compared = f"{method} can only be compared, by `shuffledp plan`"
            way_out = compared if method in self.comparisons else "auto picks the best"
            raise ParameterError("method", method, f"must be auto, {' or '.join(self.methods)}", way_out)
        return [method]
