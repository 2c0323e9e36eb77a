"""What people without a value report is something that a person can have: the domain decides that, never the data."""

from collections.abc import Sequence
from typing import Any

from shuffledp.errors import DataError, ParameterError
from shuffledp.protocols.domains.domain import Categories, Domain
from shuffledp.tables.missing import MISSING_CATEGORY, Missing


def with_missing(categories: Categories, missing: Missing, *, grows: bool = True) -> Categories:
    """The categories with one for people without a value, where they are asked to report one.

    Args:
        categories: as they are without.
        missing: what people without a value report.
        grows: whether a category may be added; a plan that was made has those that it has.

    Raises:
        ParameterError: such a category can not be added.

    >>> from shuffledp.protocols.domains.categories import Names
    >>> with_missing(Names(("a", "b")), Missing.of("other")).names()
    ['a', 'b', 'missing']
    """
    if missing.rule != "other" or categories.other is not None:
        return categories
    larger = categories.including(MISSING_CATEGORY)
    if larger is None:
        problem = f"needs a list of names, and the domain is one of {categories.kind}"
        raise ParameterError("missing", "other", problem, "write default=VALUE with a public value of the domain")
    if not grows and larger != categories:
        problem = "needs a category that the plan does not have"
        raise ParameterError("missing", "other", problem, "make the plan with --other NAME, or write default=VALUE")
    return larger


def check_public(missing: Missing, named: Categories | None, *, words: bool) -> None:
    """Refuse a policy that does not fit the domain, before any value is read: a refusal must not depend on the data.

    Args:
        missing: what people without a value report.
        named: the categories that values are looked up in; None where there are none.
        words: whether values are words where no categories are named.
    """
    if named is None and words:
        return
    if named is None or named.reads == "numbers":
        missing.check_number()
    if named is not None and missing.rule == "default":
        value: Any = missing.number if named.reads == "numbers" else missing.value
        if not named.lists(value):
            way_out = "name a category of the domain, or write other"
            raise ParameterError("missing", missing.typed, "must name a public value of the domain", way_out)


def check_public_number(missing: Missing, domain: Domain, columns: Sequence[str | None] = (None,)) -> None:
    """Refuse a public number that no person could have, whoever needs it.

    Args:
        missing: what people without a value report.
        domain: what a person may have.
        columns: the columns that are read, where each has a public value of its own.

    >>> from shuffledp.protocols.domains.summed import Bits
    >>> check_public_number(Missing.of("default=2"), Bits())
    Traceback (most recent call last):
        ...
    shuffledp.errors.ParameterError: missing names a value that must be 0 or 1, got default=2: name a public value of
    the domain.
    """
    one = domain.row
    policies = [missing.of_column(name) for name in columns] if missing.each else [missing] * one.columns
    if any(policy.rule != "default" for policy in policies):
        return
    public: list[Any] = [policy.value if one.reads == "words" else policy.number for policy in policies]
    try:
        one.check_values(one.encode([public] if one.is_row else public))
    except DataError as refused:
        found = f"names a value that {refused.problem}"
        raise ParameterError("missing", missing.typed, found, "name a public value of the domain") from None
