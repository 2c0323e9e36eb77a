"""Answers about groups: how far apart two of them are, as in an A/B test."""

from typing import Any

from shuffledp.answers.asking import answered, clipped, numbers_in, planned, says_what_is_missing
from shuffledp.answers.whose import Whose
from shuffledp.protocols.grouped.difference import Difference
from shuffledp.randomness import RandomBits


@says_what_is_missing
def difference(
    data: Any,
    column: str | None = None,
    *,
    by: Any,
    groups: Any,
    epsilon: float,
    delta: float,
    low: float | None = None,
    high: float | None = None,
    between: tuple[str, str] | None = None,
    other_group: str | None = None,
    clip: bool = False,
    method: str = "auto",
    honest_fraction: float = 1.0,
    max_messages: int | None = None,
    missing: Any = "refuse",
    user: Any = None,
    at_most: int | None = None,
    seed: int | None = None,
    bits: RandomBits | None = None,
) -> Difference:
    """The rate, or mean, of one group of people less that of another: an A/B test in which groups are private, too.

    Args:
        data: a 0 or 1 a person, or a number where low and high are given: a list, an array, a Series, or a table of
            pandas, polars, pyarrow or DuckDB.
        column: the name of the column, where `data` is a table.
        by: a group a person: a list, an array, a Series, or the name of a column, where `data` is a table.
        groups: all groups there may be. The list is public; one that was read from the data would tell what occurs.
        epsilon: how private the answer is; 1 is a common choice, smaller is safer.
        delta: the probability that is left over; well below one over the number of people, 1e-6 for example.
        low: the lowest number that anybody may have, for a difference of means; known beforehand.
        high: the highest number that anybody may have.
        between: two of the groups, the second less the first; the first two if left out.
        other_group: the name of one more group, for everybody whose group is not in the list.
        clip: whether numbers outside low..high are brought to its ends, where they would be refused.
        method: the name of a method, or auto for the best one.
        honest_fraction: the part of the people who are counted on to follow the protocol.
        max_messages: how many messages a person may send at most.
        missing: what people without a value report: "default=0" or another public value; by default they are refused.
        user: where a person may have several rows, whose each is: a list, an array, or the name of a column.
        at_most: how many rows of one person count over all groups, the first in the order of the data.
        seed: a number for a repeatable simulation, which protects nobody; leave it out for real noise.
        bits: a source of randomness of your own, instead of a seed.

    Returns:
        A `Difference`: `people` is an interval for the people who reported, `population` one for everybody of whom
        they are a random sample, and `estimate` the number itself with a proved bound. `deviations` are the standard
        deviations of both groups' numbers.

    Raises:
        ParameterError: a value outside what it may be; the sentence says which and what to do.
        InfeasibleError: no plan meets the limits.

    >>> clicked, variant = [0, 0, 1, 0, 1, 1, 0, 1] * 500, ["A", "A", "A", "A", "B", "B", "B", "B"] * 500
    >>> found = difference(clicked, by=variant, groups=["A", "B"], epsilon=1, delta=1e-6, seed=1)
    >>> found.differs, found.people[0] < 0.5 < found.people[1]
    (True, True)
    """
    whose = Whose.of(data, user=user, at_most=at_most, by=by, groups=groups, other_group=other_group)
    values = numbers_in(data, column, missing)
    ends = {name: end for name, end in (("low", low), ("high", high)) if end is not None}
    told = {**whose.domain, **ends}
    people = whose.people(values)
    plan: Any = planned("grouped-rate", people, epsilon, delta, method, honest_fraction, max_messages, missing, **told)
    points = whose.contributed(plan, clipped(plan, values, clip))
    first, second = plan.group_names[:2] if between is None else between
    found: Difference = plan.difference(answered(plan, points, seed, bits), first, second)
    return found
