"""Answers that are one number: a count, a sum, a mean, a variance."""

from typing import Any

from shuffledp.answers.asking import answered, clipped, numbers_in, planned, says_what_is_missing
from shuffledp.answers.whose import Whose
from shuffledp.estimates import Estimate, NamedEstimate
from shuffledp.randomness import RandomBits


@says_what_is_missing
def count(
    data: Any,
    column: str | None = None,
    *,
    epsilon: float,
    delta: float,
    method: str = "auto",
    honest_fraction: float = 1.0,
    max_messages: int | None = None,
    missing: Any = "refuse",
    user: Any = None,
    at_most: int | None = None,
    by: Any = None,
    groups: Any = None,
    other_group: str | None = None,
    seed: int | None = None,
    bits: RandomBits | None = None,
) -> Estimate:
    """How many people have the value 1 (or True).

    On the command line that is `shuffledp sum`. A count that is known after every person is `running_count`, and
    `shuffledp count` there.

    Args:
        data: a value a person: a list, an array, a Series, or a table of pandas, polars, pyarrow or DuckDB.
        column: the name of the column, where `data` is a table.
        epsilon: how private the answer is; 1 is a common choice, smaller is safer.
        delta: the probability that is left over; well below one over the number of people, 1e-6 for example.
        method: the name of a method, or auto for the best one; `shuffledp.BinarySum.methods` lists them.
        honest_fraction: the part of the people who are counted on to follow the protocol.
        max_messages: how many messages a person may send at most.
        missing: what people without a value report: "default=0" or another public value; by default they are refused.
        user: where a person may have several rows, whose each is: a list, an array, or the name of a column.
        at_most: how many rows of one person count, the first in the order of the data; the rest count for nothing.
        by: a group a person, for a number of each group: a list, an array, or the name of a column. It stays private.
        groups: all groups there may be; public, and not read from the data.
        other_group: the name of one more group, for everybody whose group is not in the list.
        seed: a number for a repeatable simulation, which protects nobody; leave it out for real noise.
        bits: a source of randomness of your own, instead of a seed.

    Returns:
        The estimate with its error. `float(estimate)` is the number, `estimate.plan` what it was made by.
        By group, a `GroupsEstimate` with a number and an interval for each: `estimate.of("A")`.

    Raises:
        ParameterError: a value outside what it may be; the sentence says which and what to do.
        InfeasibleError: no plan meets the limits.

    >>> print(count([True] * 20 + [False] * 80, epsilon=2, delta=1e-4, seed=1))
    20.00 ± 0.602 (within 1 with 95% confidence; a simulation: seeded bits protect nobody)
    """
    values = numbers_in(data, column, missing)
    whose = Whose.of(data, user=user, at_most=at_most, by=by, groups=groups, other_group=other_group)
    people = whose.people(values)
    plan = planned("binary-sum", people, epsilon, delta, method, honest_fraction, max_messages, missing, **whose.domain)
    found: Estimate = answered(plan, whose.contributed(plan, values), seed, bits)
    return found


@says_what_is_missing
def total(
    data: Any,
    column: str | None = None,
    *,
    low: float,
    high: float,
    epsilon: float,
    delta: float,
    clip: bool = False,
    method: str = "auto",
    honest_fraction: float = 1.0,
    max_messages: int | None = None,
    missing: Any = "refuse",
    user: Any = None,
    at_most: int | None = None,
    by: Any = None,
    groups: Any = None,
    other_group: str | None = None,
    seed: int | None = None,
    bits: RandomBits | None = None,
) -> Estimate:
    """The sum of everybody's number.

    Args:
        data: a number a person: a list, an array, a Series, or a table of pandas, polars, pyarrow or DuckDB.
        column: the name of the column, where `data` is a table.
        low: the lowest value that anybody may have; known beforehand, not read from the data.
        high: the highest value that anybody may have; the noise grows with `high - low`.
        epsilon: how private the answer is; 1 is a common choice, smaller is safer.
        delta: the probability that is left over; well below one over the number of people, 1e-6 for example.
        clip: whether values outside low..high are brought to its ends, where they would be refused.
        method: the name of a method, or auto for the best one; `shuffledp.BoundedSum.methods` lists them.
        honest_fraction: the part of the people who are counted on to follow the protocol.
        max_messages: how many messages a person may send at most.
        missing: what people without a value report: "default=0" or another public value; by default they are refused.
        user: where a person may have several rows, whose each is: a list, an array, or the name of a column.
        at_most: how many rows of one person count, the first in the order of the data; the rest count for nothing.
        by: a group a person, for a number of each group: a list, an array, or the name of a column. It stays private.
        groups: all groups there may be; public, and not read from the data.
        other_group: the name of one more group, for everybody whose group is not in the list.
        seed: a number for a repeatable simulation, which protects nobody; leave it out for real noise.
        bits: a source of randomness of your own, instead of a seed.

    Returns:
        The estimate with its error, in the unit of the values.
        By group, a `GroupsEstimate` with a number and an interval for each: `estimate.of("A")`.

    Raises:
        ParameterError: a value outside what it may be; the sentence says which and what to do.
        InfeasibleError: no plan meets the limits.

    >>> round(float(total([0.5] * 1000, low=0, high=1, epsilon=1, delta=1e-6, seed=1)), -1)
    500.0
    """
    whose = Whose.of(data, user=user, at_most=at_most, by=by, groups=groups, other_group=other_group)
    found: Estimate = _of_numbers(
        "bounded-sum", data, column, low, high, epsilon, delta, clip, method, honest_fraction, max_messages, missing,
        seed, bits, whose,
    )  # fmt: skip
    return found


@says_what_is_missing
def mean(
    data: Any,
    column: str | None = None,
    *,
    low: float,
    high: float,
    epsilon: float,
    delta: float,
    clip: bool = False,
    method: str = "auto",
    honest_fraction: float = 1.0,
    max_messages: int | None = None,
    missing: Any = "refuse",
    user: Any = None,
    at_most: int | None = None,
    by: Any = None,
    groups: Any = None,
    other_group: str | None = None,
    seed: int | None = None,
    bits: RandomBits | None = None,
) -> Estimate:
    """The mean of everybody's number, or of everybody's rows. How many people there are is no secret.

    Args:
        data: a number a person: a list, an array, a Series, or a table of pandas, polars, pyarrow or DuckDB.
        column: the name of the column, where `data` is a table.
        low: the lowest value that anybody may have; known beforehand, not read from the data.
        high: the highest value that anybody may have; the noise grows with `high - low`.
        epsilon: how private the answer is; 1 is a common choice, smaller is safer.
        delta: the probability that is left over; well below one over the number of people, 1e-6 for example.
        clip: whether values outside low..high are brought to its ends, where they would be refused.
        method: the name of a method, or auto for the best one; `shuffledp.Mean.methods` lists them.
        honest_fraction: the part of the people who are counted on to follow the protocol.
        max_messages: how many messages a person may send at most.
        missing: what people without a value report: "default=0" or another public value; by default they are refused.
        user: where a person may have several rows, whose each is: a list, an array, or the name of a column. The mean
            is that of all rows that count, and how many they are stays private.
        at_most: how many rows of one person count, the first in the order of the data; the rest count for nothing.
        by: a group a person, for a number of each group: a list, an array, or the name of a column. It stays private.
        groups: all groups there may be; public, and not read from the data.
        other_group: the name of one more group, for everybody whose group is not in the list.
        seed: a number for a repeatable simulation, which protects nobody; leave it out for real noise.
        bits: a source of randomness of your own, instead of a seed.

    Returns:
        The estimate with its error, in the unit of the values.
        By group, a `GroupsEstimate` with a number and an interval for each: `estimate.of("A")`.

    Raises:
        ParameterError: a value outside what it may be; the sentence says which and what to do.
        InfeasibleError: no plan meets the limits.

    >>> round(float(mean([20, 40] * 500, low=0, high=100, epsilon=1, delta=1e-6, seed=1)))
    30
    """
    whose = Whose.of(data, user=user, at_most=at_most, by=by, groups=groups, other_group=other_group)
    found: Estimate = _of_numbers(
        "mean", data, column, low, high, epsilon, delta, clip, method, honest_fraction, max_messages, missing, seed,
        bits, whose,
    )  # fmt: skip
    return found


@says_what_is_missing
def variance(
    data: Any,
    column: str | None = None,
    *,
    low: float,
    high: float,
    epsilon: float,
    delta: float,
    clip: bool = False,
    method: str = "auto",
    honest_fraction: float = 1.0,
    max_messages: int | None = None,
    missing: Any = "refuse",
    user: Any = None,
    at_most: int | None = None,
    seed: int | None = None,
    bits: RandomBits | None = None,
) -> Estimate:
    """The variance of everybody's number, or of everybody's rows: over all of them, not of a sample.

    The mean comes at the same price: `shuffledp.Moments` plans both at once.

    Args:
        data: a number a person: a list, an array, a Series, or a table of pandas, polars, pyarrow or DuckDB.
        column: the name of the column, where `data` is a table.
        low: the lowest value that anybody may have; known beforehand, not read from the data.
        high: the highest value that anybody may have; the noise grows with the square of `high - low`.
        epsilon: how private the answer is; 1 is a common choice, smaller is safer.
        delta: the probability that is left over; well below one over the number of people, 1e-6 for example.
        clip: whether values outside low..high are brought to its ends, where they would be refused.
        method: the name of a method, or auto for the best one; `shuffledp.Moments.methods` lists them.
        honest_fraction: the part of the people who are counted on to follow the protocol.
        max_messages: how many messages a person may send at most.
        missing: what people without a value report: "default=0" or another public value; by default they are refused.
        user: where a person may have several rows, whose each is: a list, an array, or the name of a column. The
            variance is that of all rows that count, and how many they are stays private.
        at_most: how many rows of one person count, the first in the order of the data; the rest count for nothing.
        seed: a number for a repeatable simulation, which protects nobody; leave it out for real noise.
        bits: a source of randomness of your own, instead of a seed.

    Returns:
        The estimate with its error, in the square of the values' unit.

    Raises:
        ParameterError: a value outside what it may be; the sentence says which and what to do.
        InfeasibleError: no plan meets the limits.

    >>> round(float(variance([20, 40] * 5000, low=0, high=100, epsilon=1, delta=1e-6, seed=1)), -1)
    100.0
    """
    both: NamedEstimate = _of_numbers(
        "moments", data, column, low, high, epsilon, delta, clip, method, honest_fraction, max_messages, missing,
        seed, bits, Whose.of(data, user=user, at_most=at_most),
    )  # fmt: skip
    return both["variance"]


def _of_numbers(
    protocol: str,
    data: Any,
    column: str | None,
    low: float,
    high: float,
    epsilon: float,
    delta: float,
    clip: bool,
    method: str,
    honest_fraction: float,
    max_messages: int | None,
    missing: Any,
    seed: int | None,
    bits: RandomBits | None,
    whose: Whose | None = None,
) -> Any:
    """The answer of a family whose values are numbers in a range."""
    values, of = numbers_in(data, column, missing), whose or Whose()
    told = {"low": low, "high": high, **of.domain}
    plan = planned(protocol, of.people(values), epsilon, delta, method, honest_fraction, max_messages, missing, **told)
    return answered(plan, of.contributed(plan, clipped(plan, values, clip)), seed, bits)
